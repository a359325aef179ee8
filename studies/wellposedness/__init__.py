"""Lipschitz constants and lifetimes of the equations, as written and as trained."""
