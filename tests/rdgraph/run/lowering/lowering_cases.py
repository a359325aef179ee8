"""An operator, numbers for every coefficient and the dense interpreter on them, for the tests of lowering."""

from __future__ import annotations

import numpy as np
import torch

import rdgraph as rd
from rdgraph.theory.equality.dense_oracle import evaluate

STATE_LETTERS = {"H", "H0", "A", "L", "I"}
NODES, CHANNELS = 4, 3


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def operator(normalisation: str = "symmetric") -> rd.graphs.Operator:
    edges = [[0, 1, 1, 2, 2, 3, 0, 2], [1, 0, 2, 1, 3, 2, 2, 0]]
    return rd.Graph.from_edges(edges).operator(normalisation, dtype=torch.float64)


def values_for(system: rd.System, nodes: int, channels: int, batch: tuple[int, ...] = ()) -> dict[str, torch.Tensor]:
    """Positive values for every coefficient, in the shape of its kind."""
    own = {"scalar": (), "channel": (channels,), "node": (nodes,), "matrix": (channels, channels)}
    wanted = {n: k for n, k in system.letters.items() if n not in STATE_LETTERS}
    return {n: random(*batch, *own[str(k)], seed=i).abs() + 0.1 for i, (n, k) in enumerate(wanted.items())}


def oracle(system: rd.System, matrix: np.ndarray, values: dict, H: torch.Tensor, H0: torch.Tensor) -> np.ndarray:
    """The dense interpreter on the same numbers."""
    kinds = system.letters
    plain = {n: v.numpy()[:, None] if str(kinds[n]) == "node" else v.numpy() for n, v in values.items()}
    with np.errstate(all="ignore"):
        found = evaluate(
            system.expression, {"A": matrix, "I": np.eye(len(matrix)), "H": H.numpy(), "H0": H0.numpy(), **plain}
        )
    return np.broadcast_to(np.asarray(found, dtype=float), H.shape)
