"""The ablations: which adjacency, which kind of beta, and which sign it may have."""
