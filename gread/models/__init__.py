"""Networks in batches, and the one of GREAD: features, soft adjacency, flow; and what is left of a training."""
