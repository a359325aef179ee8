"""Patterns of several fields: steady states, dispersion, Turing's conditions, thresholds."""
