"""Inverse problems: coefficients from observed states, with intervals and identifiability."""
