"""Runs by dopri5 and starts for them, for the tests of adaptive steps."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rdgraph.run.lowering.vector_field import VectorField
from rdgraph.run.solvers import solver
from rdgraph.run.solvers.solution import Solution
from tests.rdgraph.run.solvers.ring_fields import F64


def solve(field: VectorField, H0: Tensor, t: Any, method: Any = "dopri5", **settings: Any) -> Solution:
    return solver.solve(field, H0, t, method, **settings)


def state(*batch: int, dtype: torch.dtype = F64, seed: int = 0) -> Tensor:
    return torch.rand(*batch, 4, 2, dtype=dtype, generator=torch.Generator().manual_seed(seed))
