"""Graphs: `graph` and how to make one, `generators`, `operators` (numpy) and `sparse`, the operator on a device."""
