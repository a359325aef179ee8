"""Geom-GCN: Pei et al., "Geom-GCN: Geometric Graph Convolutional Networks", ICLR 2020."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path
from scipy.spatial import cKDTree
from torch import Tensor

from gread.models.batched_model import BatchedModel
from gread.models.features import Features
from gread.models.randomness import Dropper
from gread.settings.model_records import ModelRecord, ModelSettings
from rdgraph import Graph
from rdgraph.graphs import stack
from rdgraph.graphs.operator import Operator

# ---------------------------------------------------------------------- plane positions
# Positions of the nodes in a plane from their distances along the graph: flat (Isomap) or hyperbolic.
#
# Distances go from landmarks, which are all nodes of small graphs. Both positions come from one eigenvalue problem, so
# they are the same on every run; axes point to where the farthest node is.

#: Nodes that distances are measured from, at most: evenly among all, in the order of their degrees.
LANDMARKS = 1000
#: Nodes that cannot be reached are this much farther than the farthest that can.
BEYOND = 1.0
#: The size of the largest distance on the hyperbolic plane.
RADIUS = 5.0
#: Steps of the search for a radius.
HALVINGS = 40


def plane_positions(graph: Graph, kind: str) -> np.ndarray:
    """(n, 2) of kind "isomap" or "poincare".

    Isomap (Tenenbaum et al. 2000) is classical scaling of the distances, with the other nodes placed by their distances
    from the landmarks (de Silva and Tenenbaum 2004). The hyperbolic positions, in the Poincare disc, are those of the
    strain-minimal embedding by the eigenvectors of cosh(distance) (Keller-Ressel and Nargang 2020).

    >>> from rdgraph.graphs.generators import path
    >>> abs(plane_positions(path(3), "isomap")[:, 0]).round(6).tolist()
    [1.0, 0.0, 1.0]
    """
    chosen = landmarks(graph)
    far = distances(graph, chosen)
    found = _flat(far, chosen) if kind == "isomap" else _hyperbolic(far, chosen)
    return _turned(found)


def landmarks(graph: Graph) -> np.ndarray:
    """The numbers of the nodes that distances are measured from."""
    n = graph.num_nodes
    if n <= LANDMARKS:
        return np.arange(n)
    order = np.argsort(-graph.degree, kind="stable")
    return np.sort(order[np.linspace(0, n - 1, LANDMARKS).astype(int)])


def distances(graph: Graph, chosen: np.ndarray) -> np.ndarray:
    """Steps (landmarks, n) along edges in either direction."""
    sources, targets = graph.edge_index
    n = graph.num_nodes
    steps = csr_array((np.ones(len(sources)), (sources, targets)), shape=(n, n))
    found = np.asarray(shortest_path(steps, directed=False, unweighted=True, indices=chosen))
    reached = np.isfinite(found)
    return np.where(reached, found, found[reached].max() + BEYOND)


def _flat(far: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    squared = far**2
    own = squared[:, chosen]
    mean = own.mean(0)
    gram = -0.5 * (own - mean - mean[:, None] + own.mean())
    values, vectors = np.linalg.eigh(gram)
    values, vectors = np.maximum(values[-2:][::-1], 1e-12), vectors[:, -2:][:, ::-1]
    return np.asarray(-0.5 * (squared - mean[:, None]).T @ vectors / np.sqrt(values))


def _hyperbolic(far: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """By Keller-Ressel and Nargang: the largest eigenvalue gives the height, the two least the directions."""
    raised = np.cosh(RADIUS * far / max(1.0, far.max()))
    values, vectors = np.linalg.eigh(raised[:, chosen])
    height = np.abs(raised.T @ vectors[:, -1]) / np.sqrt(values[-1])
    sides = raised.T @ vectors[:, :2] / np.sqrt(np.maximum(-values[:2], 1e-12))
    lengths = np.linalg.norm(sides, axis=1, keepdims=True)
    lowest = max(1.0, float(height.min()))
    radius = np.sqrt(np.maximum((height - lowest) / (height + lowest), 0))
    return np.asarray(np.divide(sides, lengths, out=np.zeros_like(sides), where=lengths > 0) * radius[:, None])


def _turned(positions: np.ndarray) -> np.ndarray:
    """With the sign of every axis such that its largest entry is positive; nodes at one place have the same numbers,
    whatever the rounding of the machine."""
    rounded = np.round(positions, 9)
    top, bottom = rounded.max(0), -rounded.min(0)
    tie = rounded[:, :] ** 3
    sign = np.where(top > bottom, 1.0, np.where(top < bottom, -1.0, np.where(tie.sum(0) < 0, -1.0, 1.0)))
    return np.asarray(rounded * sign)


def near_pairs(positions: np.ndarray, count: int) -> np.ndarray:
    """At most `count` ordered pairs (2, pairs), those of nodes closest to each other in the plane.

    The authors of Geom-GCN take all within a radius that gives as many neighbours as the graph has on average.
    """
    tree = cKDTree(positions)
    low, high = 0.0, float(np.ptp(positions, axis=0).max()) * 2 + 1
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if tree.count_neighbors(tree, middle) - len(positions) <= count:
            low = middle
        else:
            high = middle
    pairs = tree.query_pairs(low, output_type="ndarray")
    if not len(pairs):  # many at one distance, as copies of a position: the closest, then the lowest numbers
        pairs = tree.query_pairs(high, output_type="ndarray")
        gaps = np.linalg.norm(positions[pairs[:, 0]] - positions[pairs[:, 1]], axis=1)
        pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0], gaps))[: max(1, count // 2)]]
    return np.concatenate([pairs, pairs[:, ::-1]]).T


# ---------------------------------------------------------------------- geom gcn
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
    it from files; here positions are computed (`gread.zoo.geom_gcn`): Isomap where they have "MDS", a
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
        "geomgcn", "Geom-GCN", "heterophily", source="Pei et al., ICLR 2020",
        rule="H' = relu([s A_r s H W_r] over nine kinds r of neighbours)",
        settings=GeomGCNSettings, network=GeomGCN, published="Geom-GCN",
    ),
)  # fmt: skip
