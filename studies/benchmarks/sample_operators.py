"""Operators whose products are timed: random graphs, a local lattice, and the products everybody writes first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

import rdgraph as rd
from rdgraph.graphs.operator import Operator, Pattern
from rdgraph.kernels import torch_reference as plain


def random_operator(
    nodes: int, entries: int, device: str, dtype: torch.dtype = torch.float32, seed: int = 0
) -> Operator:
    """A random undirected graph with about `entries` stored entries, symmetric normalisation, made on the device."""
    generator = torch.Generator(device).manual_seed(seed)
    ends = torch.randint(nodes, (2, entries // 2), generator=generator, device=device)
    flat = torch.cat([ends[0] * nodes + ends[1], ends[1] * nodes + ends[0]])
    flat = torch.unique(flat)
    return _operator(flat // nodes, flat % nodes, nodes, dtype)


def _operator(rows: Tensor, columns: Tensor, nodes: int, dtype: torch.dtype) -> Operator:
    """Symmetric normalisation of a pattern with unit weights, entries sorted by row."""
    degree = torch.bincount(rows, minlength=nodes)
    indptr = torch.cat([degree.new_zeros(1), degree.cumsum(0)])
    root = degree.clamp(min=1).double().rsqrt()
    pattern = Pattern.from_csr(indptr, columns, rows.device)
    return Operator(pattern, (root[rows] * root[columns]).to(dtype), "symmetric")


def lattice(side: int) -> rd.Graph:
    """A local graph: a torus of side x side nodes with 20 neighbours each, its nodes in random order."""
    node = np.arange(side * side)
    row, column = node // side, node % side
    steps = [(i, j) for i in range(-2, 3) for j in range(-2, 3) if (i, j) != (0, 0) and abs(i) + abs(j) < 4]
    others = [((row + i) % side) * side + (column + j) % side for i, j in steps]
    name = np.random.default_rng(0).permutation(len(node))
    edges = np.stack([name[np.concatenate(others)], name[np.tile(node, len(steps))]])
    return rd.Graph.from_edges(edges, num_nodes=len(node))


def gather_scatter(op: Operator, x: Tensor) -> Callable[[], Tensor]:
    """The product everybody writes first: index_select, times weight, scatter_add."""
    rows, columns = op.pattern.rows.long(), op.pattern.indices.long()
    target = rows[:, None].expand(-1, x.shape[1])

    def product() -> Tensor:
        messages = x.index_select(0, columns) * op.weights[:, None]
        return torch.zeros_like(x).scatter_add_(0, target, messages)

    return product


def torch_csr(op: Operator) -> Tensor:
    plain._accept_csr()
    pattern = op.pattern
    return torch.sparse_csr_tensor(
        pattern.indptr, pattern.indices, op.weights, size=(op.num_nodes,) * 2, check_invariants=False
    )


def scipy_csr(op: Operator) -> Any:
    import scipy.sparse

    pattern = op.pattern
    return scipy.sparse.csr_array(
        (op.weights.numpy(), pattern.indices.numpy(), pattern.indptr.numpy()), shape=(op.num_nodes,) * 2
    )
