"""Geom-GCN: Pei et al., "Geom-GCN: Geometric Graph Convolutional Networks", ICLR 2020."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from gread.models.batched_model import BatchedModel
from gread.models.features import Features
from gread.models.randomness import Dropper
from gread.settings.model_records import ModelRecord
from gread.settings.model_settings import ModelSettings
from gread.substrate.plane_positions import near_pairs, plane_positions
from rdgraph import Graph, stack
from rdgraph.graphs.operator import Operator

EMBEDDINGS = ("isomap", "poincare")
#: Kinds of neighbours: along the graph and in the plane, in four quarters each, and the node itself.
KINDS = 9


@dataclass(frozen=True, kw_only=True)
class GeomGCNSettings(ModelSettings):
    """Settings of Geom-GCN: `embedding` isomap or poincare, the plane in which nodes have positions."""

    model: ClassVar[str] = "geomgcn"

    hidden: int = 16
    embedding: str = "isomap"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_one_of("embedding", EMBEDDINGS)


class GeomGCN(BatchedModel):
    """H' = relu(s [A_r (s H W_r)] side by side over r), logits = mean over r of s A_r (s H' W_r).

    A_r joins node i with its neighbours of kind r: along the graph or close by in a plane, by the quarter in which
    z_j - z_i lies, and itself; s_i = 1/sqrt(neighbours of all kinds). The authors read the plane and the neighbours in
    it from files; here positions are computed (`gread.substrate.plane_positions`): Isomap where they have "MDS", a
    closed hyperbolic embedding where they train one, none for struc2vec, so that the numbers cannot be theirs exactly.
    The neighbours in the plane are as many as edges. Their dropout before the second layer is kept.
    """

    settings: GeomGCNSettings

    def build(self) -> None:
        """A matrix for every kind, side by side, in both layers."""
        hidden = self.settings.hidden
        key = "geomgcn", self.settings.embedding
        self.relations, self.scale = self.place.once(key, self._relations)
        self.add_linear("first", self.features, KINDS * hidden, bias=False, start="glorot")
        self.add_linear("second", KINDS * hidden, KINDS * self.classes, bias=False, start="glorot")

    def _relations(self) -> tuple[list[Operator], Tensor]:
        """The operators of all kinds, and s (1 or M, n, 1)."""
        kinds = [relations(graph, self.settings.embedding) for graph in self.place.graphs]
        options = {"device": self.place.device, "dtype": self.place.dtype}
        made = [[one.operator("none", **options) for one in each] for each in zip(*kinds, strict=True)]  # type: ignore[arg-type]
        joined = [(each[0] if self.place.is_shared else stack(each)).prepare() for each in made]
        counts = np.stack([sum(np.bincount(g.edge_index[1], minlength=g.num_nodes) for g in each) for each in kinds])
        return joined, self.place.tensor(counts**-0.5)[..., None]

    def gather(self, h: Tensor) -> list[Tensor]:
        """s A_r (s h_r) of the parts h_r, a list over the kinds."""
        parts = (self.scale * h).chunk(KINDS, -1)
        return [self.scale * (one @ part.contiguous()) for one, part in zip(self.relations, parts, strict=True)]

    def states(self, x: Features, drop: Dropper) -> list[Tensor]:
        """The output of both layers."""
        first = torch.relu(torch.cat(self.gather(self.times("first", drop.features(x))), -1))
        return [first, torch.stack(self.gather(self.times("second", drop(first)))).mean(0)]


def relations(graph: Graph, embedding: str) -> list[Graph]:
    """The graphs of all kinds: four quarters along the graph, four in the plane, and every node with itself."""
    n = graph.num_nodes
    positions = plane_positions(graph, embedding)
    sources, targets = graph.edge_index
    along = np.stack([sources, targets])[:, sources != targets]
    found = [*_quarters(along, positions, n), *_quarters(near_pairs(positions, along.shape[1]), positions, n)]
    return [*found, Graph.from_edges(np.stack([np.arange(n)] * 2), n)]


def _quarters(edges: np.ndarray, positions: np.ndarray, nodes: int) -> list[Graph]:
    """The edges by the quarter in which their source lies as seen from their target."""
    ahead = positions[edges[0]] - positions[edges[1]]
    number = 2 * (ahead[:, 0] >= 0) + (ahead[:, 1] >= 0)
    return [Graph.from_edges(edges[:, number == k], nodes) for k in range(4)]


RECORDS = (
    ModelRecord(
        "geomgcn", "Geom-GCN", "heterophily", "Pei et al., ICLR 2020",
        "H' = relu([s A_r s H W_r] over nine kinds r of neighbours)", GeomGCNSettings, GeomGCN, published="Geom-GCN",
    ),
)  # fmt: skip
