"""Fields on a ring of four nodes, for the tests of solvers."""

from __future__ import annotations

from typing import Any

import torch

from rdgraph.graphs.graph import Graph
from rdgraph.run.lowering.vector_field import VectorField, lower

F64 = torch.float64
RING = Graph.from_edges([[0, 1, 2, 3, 1, 2, 3, 0], [1, 2, 3, 0, 0, 1, 2, 3]])


def field_of(text: str, batch: tuple[int, ...] = (), dtype: torch.dtype = F64, **coefficients: Any) -> VectorField:
    return lower(text, RING.operator("row", dtype=dtype), coefficients, batch=batch)
