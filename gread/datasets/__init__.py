"""Data sets: the public ones, embedded ones, synthetic ones, and your own graph.

public:     sources (catalogue), download, transfer, raw, pickles, planetoid, webkb, npz, variants, loading
yours:      nodes, masks, checks, tables, interchange, splits
others:     embedded, synthetic
about them: facts, twins, comparison

The names for daily use stand in `gread`.
"""
