"""Cells of trainings: configurations on a data set, trained once and kept, beside what was published."""
