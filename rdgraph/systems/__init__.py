"""What an equation is: `system`, its `structure`, the `parser`, the `catalogue`."""
