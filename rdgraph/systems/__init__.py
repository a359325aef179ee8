"""What an equation is: `system`, its `structure`, the `parser`, the `catalogue`; `canonical/` one form for equal
functions."""
