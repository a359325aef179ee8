"""H2GCN: Zhu et al., "Beyond Homophily in Graph Neural Networks", NeurIPS 2020."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from gread.models.batched_model import BatchedModel
from gread.models.features import Features
from gread.models.randomness import Dropper
from gread.settings.model_records import ModelRecord, ModelSettings
from rdgraph import Graph


@dataclass(frozen=True, kw_only=True)
class H2GCNSettings(ModelSettings):
    """Settings of H2GCN: how many `rounds` it looks around; each doubles the width. `relu` after the encoder."""

    model: ClassVar[str] = "h2gcn"

    rounds: int = 2
    relu: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_at_least(1, "rounds")


class H2GCN(BatchedModel):
    """H_0 = relu(X V), R_0 = H_0, R_k = [A1 R_(k-1), A2 R_(k-1)], logits = [R_0, ..., R_K] U.

    A1 and A2 are the symmetrically normalised graphs of neighbours and of strict second neighbours, both without
    self-loops. R_k has hidden*2^k columns. The authors drop the features too only where they say so; here it is a
    setting.
    """

    settings: H2GCNSettings

    def build(self) -> None:
        """V, U and the two operators."""
        hidden = self.settings.hidden
        self.first = self.place.derived(first_ring)
        self.second = self.place.derived(second_ring)
        self.add_linear("encoder", self.features, hidden, bias=False, start="glorot")
        columns = hidden * (2 ** (self.settings.rounds + 1) - 1)
        self.add_linear("decoder", columns, self.classes, bias=False, start="glorot")

    def states(self, x: Features, drop: Dropper) -> list[Tensor]:
        """R_0, ..., R_K."""
        h = self.times("encoder", drop.features(x))
        states = [torch.relu(h) if self.settings.relu else h]
        for _ in range(self.settings.rounds):
            states.append(self.around(states[-1]))
        return states

    def around(self, h: Tensor) -> Tensor:
        """[A1 h, A2 h], one round."""
        return torch.cat([self.first @ h, self.second @ h], -1)

    def read(self, states: list[Tensor], drop: Dropper) -> Tensor:
        """Logits from all rounds side by side."""
        return self.times("decoder", drop(torch.cat(states, -1)))


def first_ring(graph: Graph) -> Graph:
    """The graph that joins nodes at distance exactly one: undirected, unweighted, without loops."""
    return _as_graph(_pattern(graph))


def second_ring(graph: Graph) -> Graph:
    """The graph that joins nodes at distance exactly two.

    >>> from rdgraph.graphs.generators import path
    >>> second_ring(path(4)).edge_index.tolist()
    [[2, 3, 0, 1], [0, 1, 2, 3]]
    """
    near = _pattern(graph)
    reached = csr_array((near @ near > 0).astype(np.float64))
    reached.setdiag(0)
    beyond = csr_array(reached - reached.multiply(near))
    beyond.eliminate_zeros()
    return _as_graph(beyond)


def _pattern(graph: Graph) -> csr_array:
    """1 where an edge joins two nodes, in either direction."""
    sources, targets = graph.edge_index
    n = graph.num_nodes
    found = csr_array((np.ones(len(sources)), (targets, sources)), shape=(n, n))
    both = csr_array((found + found.T > 0).astype(np.float64))
    both.setdiag(0)
    both.eliminate_zeros()
    return both


def _as_graph(matrix: csr_array) -> Graph:
    targets, sources = matrix.nonzero()
    return Graph.from_edges(np.stack([sources, targets]), matrix.shape[0])


RECORDS = (
    ModelRecord(
        "h2gcn", "H2GCN", "heterophily", source="Zhu et al., NeurIPS 2020",
        rule="R' = [A1 R, A2 R], all rounds read out together",
        settings=H2GCNSettings, network=H2GCN, published="H2GCN",
    ),
)  # fmt: skip
