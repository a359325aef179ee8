"""Graphs: `graph` and its `edges`, `generators`, `graph_files`, and the `operator` on a device; `kernels/` the sparse
product."""
