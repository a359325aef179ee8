"""Inverse problems: coefficients from observed states, with what the states can and cannot tell of them."""
