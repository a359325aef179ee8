"""States and graphs for the tests of measures."""

from __future__ import annotations

import torch
from torch import Tensor

import rdgraph as rd
from rdgraph.graphs.generators import star
from rdgraph.graphs.operator import Operator

F64 = torch.float64
KINDS = ("symmetric", "row", "column", "none")


def column(*values: float) -> Tensor:
    return torch.tensor(values, dtype=F64)[:, None]


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, dtype=F64, generator=torch.Generator().manual_seed(seed))


def operator(graph: rd.Graph, kind: str = "none", loops: float = 0.0) -> Operator:
    return graph.operator(kind, self_loops=loops, dtype=F64)


def value(measure, H: Tensor, op: Operator) -> float:
    return measure(H, op).item()


#: Hub 0 and three leaves, degrees 3, 1, 1, 1; a state on it.
STAR = star(4)
