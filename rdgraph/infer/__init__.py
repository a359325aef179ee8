"""From data and code back to equations: `fit/` coefficients, `formulas/` functions, `layers/` code that computes an
equation."""
