"""Text, tree and normal form: `reader` and `printer`, `tree`, `sympy_form`, `normal_form`, limits of size."""
