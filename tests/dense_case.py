"""A small graph with features, and a network on it as it starts: what a rule written out in numpy is compared with."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from gread.models.batched_model import BatchedModel
from gread.models.features import Features
from gread.models.place import Place
from gread.settings.config import Config
from gread.settings.model_records import find_model
from rdgraph import Graph

NODES, COLUMNS, CLASSES, SEEDS = 13, 5, 3, (3, 8)


@dataclass(frozen=True, eq=False)
class DenseCase:
    """Two members of a network in double precision on one undirected graph (dense, 0 or 1); its last node is alone."""

    model: BatchedModel
    adjacency: np.ndarray
    x: np.ndarray

    def part(self, name: str, member: int) -> np.ndarray:
        """A parameter or buffer of one member."""
        found: np.ndarray = self.model.parts[name][member].detach().numpy()
        return found

    def logits(self, member: int) -> np.ndarray:
        """What the network gives in prediction."""
        with torch.no_grad():
            found: np.ndarray = self.model(Features.make(self.x, dtype=torch.float64))[member].numpy()
        return found

    @property
    def edges(self) -> torch.Tensor:
        """The edges (2, E), sources first, as torch-geometric takes them."""
        targets, sources = self.adjacency.nonzero()
        return torch.tensor(np.stack([sources, targets]))


def make_case(name: str, *, spread: bool = True, **settings: Any) -> DenseCase:
    """A network by name with settings; with `spread`, its parameters and buffers are moved away from where they start,
    so that what starts at zero or one counts."""
    rng = np.random.default_rng(5)
    upper = np.triu(rng.random((NODES, NODES)) < 0.35, 1)
    upper[:, -1] = False
    adjacency = (upper | upper.T).astype(float)
    targets, sources = adjacency.nonzero()
    place = Place.of(Graph.from_edges(np.stack([sources, targets]), NODES), dtype=torch.float64)
    config = Config.of(name, **settings)
    model = find_model(name).network(config.model, place, features=COLUMNS, classes=CLASSES, seeds=list(SEEDS))
    if spread:
        with torch.no_grad():
            for part in model.parts.values():
                part.add_(torch.tensor(rng.uniform(0, 0.4, tuple(part.shape))))
    return DenseCase(model, adjacency, rng.normal(size=(NODES, COLUMNS)))


def symmetric(adjacency: np.ndarray) -> np.ndarray:
    """D^-1/2 A D^-1/2, zero in the rows of nodes without edges."""
    root = np.sqrt(adjacency.sum(1))
    inverse = np.divide(1, root, out=np.zeros_like(root), where=root > 0)
    return np.diag(inverse) @ adjacency @ np.diag(inverse)


def averaging(adjacency: np.ndarray) -> np.ndarray:
    """D^-1 A with self-loops of weight 1 in both."""
    looped = adjacency + np.eye(len(adjacency))
    return looped / looped.sum(1, keepdims=True)


def geometric() -> Any:
    """torch_geometric.nn, whose own import warns of things that are not ours to mend."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("torch_geometric.nn", reason="torch-geometric is not installed: rdgraph[pyg]")
