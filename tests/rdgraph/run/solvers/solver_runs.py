"""A field that blows up and starts for it, for the tests of `solve`."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.rdgraph.run.solvers.ring_fields import F64

SQUARE = "beta*H*H - alpha*L@H"  # blows up from positive data


def state(*batch: int, dtype: torch.dtype = F64, seed: int = 0) -> Tensor:
    return 0.1 + torch.rand(*batch, 4, 2, dtype=dtype, generator=torch.Generator().manual_seed(seed))
