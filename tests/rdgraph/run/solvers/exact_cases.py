"""Fields, states and dense solutions for the tests of exact flows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.linalg
import scipy.special
import torch
from torch import Tensor

from rdgraph.graphs.graph import Graph
from rdgraph.run.lowering.vector_field import VectorField, lower
from rdgraph.run.solvers.propagator import exact_states
from rdgraph.systems.parser import parse
from rdgraph.theory.equality.dense_oracle import evaluate

DOUBLE = torch.float64


def random_graph(nodes_: int = 14, seed: int = 0, share: float = 0.3) -> Graph:
    generator = np.random.default_rng(seed)
    upper = np.triu(generator.random((nodes_, nodes_)) < share, 1) * generator.uniform(0.5, 2, (nodes_, nodes_))
    return Graph.from_dense(upper + upper.T)


def made(text: str, operator: Any, values: Mapping[str, Any], **options: Any) -> VectorField:
    system = parse(text)
    used = {name: value for name, value in values.items() if name in system.letters}
    return lower(system, operator, used, **options)


def matrix_exponential(field: VectorField, H0: Tensor, time: float) -> np.ndarray:
    """H(time) of an unbatched linear field, from its dense interpretation: exp of [[G, F], [0, 0]] per channel."""
    nodes_, channels = H0.shape
    matrix = field.operator.dense().detach().double().numpy()
    values: dict[str, Any] = {"A": matrix, "H0": H0.detach().double().numpy()}
    if field.operator.degree is not None:
        values["L"] = np.diag(field.operator.degree.double().numpy()[:, 0]) - matrix
    values |= {name: value.detach().double().numpy() for name, value in field.coefficients.items()}

    def at(state: np.ndarray) -> np.ndarray:
        return np.broadcast_to(evaluate(field.system.expression, values | {"H": state}), state.shape)

    forcing = at(np.zeros((nodes_, channels)))
    answer = np.empty((nodes_, channels))
    columns = [at(np.repeat(unit[:, None], channels, axis=1)) - forcing for unit in np.eye(nodes_)]
    for c in range(channels):
        whole = np.zeros((nodes_ + 1, nodes_ + 1))
        whole[:nodes_, :nodes_] = np.stack([column[:, c] for column in columns], axis=1)
        whole[:nodes_, nodes_] = forcing[:, c]
        answer[:, c] = (scipy.linalg.expm(time * whole) @ np.append(values["H0"][:, c], 1.0))[:nodes_]
    return answer


def solve(field: VectorField, H0: Tensor, time: Any, **options: Any) -> Tensor:
    times = torch.tensor([0.0, time], dtype=DOUBLE)
    return exact_states(field.bind(H0), H0, times, **options)[0][-1]
