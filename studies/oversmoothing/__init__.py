"""Energies over time on random graphs, and the paper's statements about them."""
