"""The GREAD network: features, soft adjacency, flow, and what is left of a training."""
