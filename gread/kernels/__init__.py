"""Kernels of training besides the sparse product: dropout by counters, attention on edges, Adam for ensembles."""
