"""Cells of trainings: configurations on a data set, trained once and stored."""
