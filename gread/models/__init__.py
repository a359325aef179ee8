"""Networks in batches, and the one of GREAD: features, flow, norms, label propagation, and what a training leaves."""
