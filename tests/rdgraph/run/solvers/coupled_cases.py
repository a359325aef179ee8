"""Linear systems of several fields, graphs and starts for them, and their solutions by dense exponentials."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.integrate
import scipy.linalg
import torch
from torch import Tensor

import rdgraph as rd
from rdgraph.graphs.operator import Operator
from rdgraph.language.reader import start_of
from rdgraph.run.lowering.vector_field import VectorField, lower
from rdgraph.theory.equality.dense_oracle import evaluate

DOUBLE = torch.float64
WAVE = "H'' = -gamma*H - alpha*H' - L@H"
PAIR = "u' = -alpha*L@u + beta*v; v' = -u - gamma*L@L@v"
FORCED = "u' = -alpha*L@u + beta*v + gamma*A@u0; v' = -u - L@v + v0 + delta"
TRIPLE = "u' = -L@u + v; v' = -alpha*w - L@v; w' = beta*u - gamma*A@w"
VALUES = {"alpha": 0.7, "beta": 1.3, "gamma": 0.4, "delta": 0.25}


def random_matrix(generator: np.random.Generator, *, directed: bool = False, nodes: int = 7) -> np.ndarray:
    """Weighted and irregular, with one isolated node."""
    matrix = (generator.random((nodes, nodes)) < 0.5) * generator.uniform(0.2, 2, (nodes, nodes))
    np.fill_diagonal(matrix, 0)
    matrix[-1], matrix[:, -1] = 0, 0
    matrix[0, 1] = matrix[1, 0] = 1
    return matrix if directed else np.triu(matrix) + np.triu(matrix).T


def made(text: str, operator: Operator, values: Mapping[str, Any] = VALUES, **options: Any) -> VectorField:
    system = rd.parse(text)
    return lower(system, operator, {n: v for n, v in values.items() if n in system.letters}, **options)


def dense_solution(field: VectorField, H0: Tensor, time: float) -> np.ndarray:
    """The packed state after a time, channel by channel, from the equations' dense interpretation and scipy's expm."""
    names, nodes = field.system.fields, len(H0)
    blocks = np.split(H0.detach().numpy(), len(names), axis=1)
    channels = blocks[0].shape[1]
    matrix = field.operator.dense().detach().numpy()
    values: dict[str, Any] = {"A": matrix}
    if field.operator.degree is not None:
        values["L"] = np.diag(field.operator.degree.numpy()[:, 0]) - matrix
    values |= {name: value.detach().numpy() for name, value in field.coefficients.items()}
    values |= {start_of(name): block for name, block in zip(names, blocks, strict=True)}

    def at(state: np.ndarray) -> np.ndarray:
        parts = dict(zip(names, np.split(state, len(names)), strict=True))
        shape = (nodes, channels)
        return np.concatenate([np.broadcast_to(evaluate(t, values | parts), shape) for t in field.system.flow.values()])

    size = nodes * len(names)
    forcing = at(np.zeros((size, channels)))
    columns = [at(np.repeat(unit[:, None], channels, axis=1)) - forcing for unit in np.eye(size)]
    start, answer = np.concatenate(blocks), np.empty((size, channels))
    for c in range(channels):
        whole = np.zeros((size + 1, size + 1))
        whole[:size, :size] = np.stack([column[:, c] for column in columns], axis=1)
        whole[:size, size] = forcing[:, c]
        answer[:, c] = (scipy.linalg.expm(time * whole) @ np.append(start[:, c], 1.0))[:size]
    return np.concatenate(np.split(answer, len(names)), axis=1)


def start(nodes: int, width: int, seed: int = 0, batch: tuple[int, ...] = ()) -> Tensor:
    return torch.randn(*batch, nodes, width, dtype=DOUBLE, generator=torch.Generator().manual_seed(seed))
