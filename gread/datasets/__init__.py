"""Data sets: the public ones, embedded ones, synthetic ones, and your own graph.

public:     sources (catalogue), download, raw, planetoid, npz, ogb_sets, variants, loading
yours:      node_data, splits, checks, node_tables, array_files, interchange
others:     embedded, synthetic
about them: facts, twins, published_comparison

The names for daily use stand in `gread`.
"""
