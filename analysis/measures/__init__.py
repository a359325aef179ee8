"""Measures of a state on a graph: energies, angles, ranks, separation of classes."""
