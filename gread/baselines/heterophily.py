"""H2GCN: neighbours at one and at two steps kept apart, and all rounds read out together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor, nn

from gread.baselines.layered import Layered, LayeredSettings, dropped
from rdgraph import Graph
from rdgraph.graphs.operator import Operator


@dataclass(frozen=True)
class H2GCNSettings(LayeredSettings):
    """Of H2GCN: how many `rounds` it looks around; each doubles the width. `relu` after the encoder."""

    rounds: int = 2
    relu: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_whole("rounds")


class H2GCN(Layered):
    """H_0 = relu(X V), R_0 = H_0, R_k = [A1 R_(k-1), A2 R_(k-1)], logits = [R_0, ..., R_K] U.

    A1 and A2 are the symmetrically normalised graphs of neighbours and of strict second neighbours, both without
    self-loops. Zhu et al. 2020. R_k has hidden*2^k columns.

    >>> x, edges = torch.eye(4), torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
    >>> [h.shape[1] for h in H2GCN(H2GCNSettings(hidden=3), 4, 2).layers(x, edges)]
    [3, 6, 12]
    """

    def __init__(self, settings: H2GCNSettings, features: int, classes: int) -> None:
        super().__init__()
        self.settings = settings
        self.encoder = nn.Linear(features, settings.hidden, bias=False)
        columns = settings.hidden * (2 ** (settings.rounds + 1) - 1)
        self.decoder = nn.Linear(columns, classes, bias=False)
        self._seen: tuple[Tensor, torch.dtype, tuple[Operator, Operator]] | None = None

    def operators(self, x: Tensor, edge_index: Tensor) -> tuple[Operator, Operator]:
        """A1 and A2 of a graph; kept for the edges seen last."""
        if self._seen is None or self._seen[0] is not edge_index or self._seen[1] != x.dtype:
            graphs = rings(Graph.from_edges(edge_index.cpu(), x.shape[0], duplicates="once"))
            first, second = (g.operator("symmetric", dtype=x.dtype, device=x.device).prepare() for g in graphs)
            self._seen = edge_index, x.dtype, (first, second)
        return self._seen[2]

    def encode(self, x: Tensor) -> Tensor:
        """H_0 (n, hidden)."""
        h = self.encoder(dropped(x, self.settings.input_dropout, self.training))
        return torch.relu(h) if self.settings.relu else h

    def layers(self, x: Tensor, edge_index: Tensor) -> list[Tensor]:
        """R_0, ..., R_K."""
        first, second = self.operators(x, edge_index)
        states = [self.encode(x)]
        for _ in range(self.settings.rounds):
            states.append(torch.cat([first @ states[-1], second @ states[-1]], dim=-1))
        return states

    def read(self, states: list[Tensor]) -> Tensor:
        """Logits from all rounds side by side."""
        return self.decoder(dropped(torch.cat(states, dim=-1), self.settings.dropout, self.training))

    def narrow_layers(self, x: Tensor, edge_index: Tensor, rounds: int) -> list[Tensor]:
        """States with the inner products of R_0, ..., R_rounds between nodes, in at most n columns each.

        Rounds have no parameters, so any number of them may be looked at; energies, angles and ranks of a state depend
        on R_k R_k' alone, which `narrowed` keeps, so that the width need not double.
        """
        first, second = self.operators(x, edge_index)
        states = [narrowed(self.encode(x))]
        for _ in range(rounds):
            states.append(narrowed(torch.cat([first @ states[-1], second @ states[-1]], dim=-1)))
        return states


def rings(graph: Graph) -> tuple[Graph, Graph]:
    """The graphs that join nodes at distance exactly one, and exactly two; undirected, unweighted, without loops.

    >>> from rdgraph.graphs.generators import path
    >>> rings(path(4))[1].edge_index.tolist()
    [[2, 3, 0, 1], [0, 1, 2, 3]]
    """
    near, n = graph.undirected().without_self_loops(), graph.num_nodes
    source, target = near.edge_index
    ones = csr_array((np.ones(near.num_edges), (target, source)), shape=(n, n))
    there, here = (ones @ ones).tocoo().coords
    far = np.setdiff1d(there.astype(np.int64) * n + here, np.concatenate([target * n + source, np.arange(n) * (n + 1)]))
    return Graph.from_edges(near.edge_index, n), Graph.from_edges(np.stack([far % n, far // n]), n)


def narrowed(state: Tensor) -> Tensor:
    """A state with the same inner products between nodes, H H', in no more columns than nodes (n, min(n, d)).

    >>> H = torch.arange(6.0).reshape(2, 3)
    >>> torch.allclose(narrowed(H) @ narrowed(H).T, H @ H.T), narrowed(H).shape
    (True, torch.Size([2, 2]))
    """
    if state.shape[-1] <= state.shape[-2]:
        return state
    return torch.linalg.qr(state.mT, mode="r").R.mT.contiguous()
