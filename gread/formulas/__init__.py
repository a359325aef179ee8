"""A learned function of trained networks put into a formula, which is trained in its place."""
