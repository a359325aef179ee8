"""Milliseconds of an epoch on Cora, and what they grow with."""
