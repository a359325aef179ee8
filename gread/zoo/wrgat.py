"""WRGAT: Suresh et al., "Breaking the Limit of Graph Neural Networks by Improving the Assortativity of Graphs with
Local Mixing Patterns", KDD 2021.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.spatial import cKDTree
from torch import Tensor

from gread.kernels.edge_attention import additive_scores, edge_softmax, weighted_sums
from gread.models.batched_model import BatchedModel
from gread.models.features import Features
from gread.models.randomness import Dropper
from gread.settings.model_records import ModelRecord, ModelSettings
from rdgraph import Graph
from rdgraph.graphs import stack
from rdgraph.graphs.operator import Operator

# ---------------------------------------------------------------------- structural roles
# Which nodes have the same role in a graph: neighbours by the degrees around them, ring by ring.
#
# struc2vec (Ribeiro et al. 2017) compares the sorted degrees of the nodes at every distance by dynamic time warping.
# The stand-in here compares their quantiles on a logarithmic scale, which is one vector per node and ring, so that the
# closest nodes are found by a tree and not by looking at all pairs.

#: Quantiles of the degrees in a ring.
QUANTILES = 9
#: Rings with more pairs of nodes than this in all are not looked at: they hold most of the graph, and tell nothing.
WIDEST = 20_000_000


def degree_profiles(graph: Graph, rings: int) -> list[np.ndarray]:
    """For every ring, distance 0, 1, ..., a vector (n, 1 + QUANTILES): log(1 + its size), quantiles of log(1 + degree).

    The quantiles of ring k go beside those of the rings before, as struc2vec adds up its distances. Rings that would
    join too many pairs are left out.

    >>> from rdgraph.graphs.generators import star
    >>> profiles = degree_profiles(star(5), 1)
    >>> bool((profiles[0][1] == profiles[0][4]).all()), bool((profiles[0][0] == profiles[0][1]).all())
    (True, False)
    """
    n = graph.num_nodes
    sources, targets = graph.edge_index
    near = csr_array((np.ones(len(sources)), (targets, sources)), shape=(n, n))
    near = csr_array(((near + near.T) > 0).astype(np.float32))
    near.setdiag(0)
    near.eliminate_zeros()
    degree = np.log1p(np.diff(near.indptr))
    reached = ring = csr_array(np.eye(1), dtype=np.float32) if n == 1 else _identity(n)
    found: list[np.ndarray] = []
    for _ in range(rings):
        own = _quantiles(ring, degree)
        found.append(own if not found else np.concatenate([found[-1], own], 1))
        beyond = csr_array((ring @ near > 0).astype(np.float32))
        ring = csr_array(beyond - beyond.multiply(reached))
        ring.eliminate_zeros()
        reached = csr_array(reached + ring)
        if ring.nnz == 0 or ring.nnz > WIDEST:
            break
    return found


def _identity(n: int) -> csr_array:
    places = np.arange(n)
    return csr_array((np.ones(n, dtype=np.float32), (places, places)), shape=(n, n))


def _quantiles(ring: csr_array, degree: np.ndarray) -> np.ndarray:
    """log(1 + size) and quantiles of the degrees in the ring of every node."""
    n, shares = ring.shape[0], np.linspace(0, 1, QUANTILES)
    counts = np.diff(ring.indptr)
    rows = np.repeat(np.arange(n), counts)
    values = degree[ring.indices]
    order = np.lexsort((values, rows))
    values = values[order]
    last = np.maximum(counts - 1, 0)
    places = ring.indptr[:-1, None] + np.rint(last[:, None] * shares).astype(int)
    filled = np.where(counts[:, None] > 0, values[np.minimum(places, max(0, len(values) - 1))], 0.0)
    return np.concatenate([np.log1p(counts)[:, None], filled], 1)


def role_graph(profile: np.ndarray, neighbours: int) -> Graph:
    """Every node with the `neighbours` nodes whose profiles are closest, weights exp(-distance); to the node from them.

    Nodes at one distance are all taken together with the farthest of the closest, up to twice as many, so that the
    numbering of the nodes does not decide.
    """
    n = len(profile)
    asked = min(n - 1, 2 * neighbours)
    if asked < 1:
        return Graph.from_edges([[], []], n)
    lengths, indices = cKDTree(profile).query(profile, k=asked + 1)
    targets = np.repeat(np.arange(n), asked + 1)
    limit = np.round(lengths[:, min(neighbours, asked)], 9)[:, None]
    kept = (np.round(lengths, 9) <= limit).ravel() & (indices.ravel() != targets)
    edges = np.stack([indices.ravel()[kept], targets[kept]])
    return Graph.from_edges(edges, n, weight=np.exp(-lengths.ravel()[kept]))


# ---------------------------------------------------------------------- wrgat
#: The slope of the leaky relu below zero.
LEAK = 0.2


@dataclass(frozen=True, kw_only=True)
class WRGATSettings(ModelSettings):
    """Settings of WRGAT.

    Args:
        rings: Relations of nodes with alike degrees around them, one for every distance; the graph itself is one more.
        neighbours: How many alike nodes a node is joined with in each of them.
    """

    model: ClassVar[str] = "wrgat"

    hidden: int = 128
    rings: int = 3
    neighbours: int = 8

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_at_least(1, "rings", "neighbours")


class WRGAT(BatchedModel):
    """h_i' = relu(W_0 h_i + sum_r mean_j w_ij a_ij W_r h_j + b), a_ij = softmax_j leaky(c . W_r h_i + d . W_r h_j).

    Relation 0 is the graph, the others join nodes with alike degrees around them (`gread.zoo.wrgat`,
    where the authors warp sequences of degrees). Two layers; no relu after the last, the logits. The authors' figures
    on the citation graphs are of random splits, and their code keeps the last weights where it means the best.
    """

    settings: WRGATSettings

    def build(self) -> None:
        """W_0, b, and a matrix with two vectors for every relation and layer."""
        key = "wrgat", self.settings.rings, self.settings.neighbours
        self.relations: list[tuple[Operator, Tensor]] = self.place.once(key, self._relations)
        widths = [(self.features, self.settings.hidden), (self.settings.hidden, self.classes)]
        for k, (inputs, outputs) in enumerate(widths):
            self.add_linear(f"root_{k}", inputs, outputs, start="glorot")
            for r in range(len(self.relations)):
                self.add_linear(f"layer_{k}_{r}", inputs, outputs, bias=False, start="glorot")
                for end in ("own", "neighbour"):
                    self.add_parameter(f"layer_{k}_{r}_{end}", self.uniform((1, outputs), (6 / (1 + outputs)) ** 0.5))

    def _relations(self) -> list[tuple[Operator, Tensor]]:
        """The operator of every relation, and w_ij over the number of neighbours, (1 or M, E)."""
        kinds = [relations(graph, self.settings.rings, self.settings.neighbours) for graph in self.place.graphs]
        found = []
        for each in zip(*kinds, strict=True):
            made = [one.operator("none", device=self.place.device, dtype=self.place.dtype) for one in each]
            operator = (made[0] if self.place.is_shared else stack(made)).prepare()
            weights = operator.weights.reshape(-1, operator.num_edges)
            rows = operator.pattern.rows.long()
            counts = torch.zeros(len(weights), self.place.nodes, dtype=weights.dtype, device=weights.device)
            counts.index_add_(1, rows, (weights != 0).to(weights.dtype))
            found.append((operator, weights / counts.clamp(min=1)[:, rows]))
        return found

    def layer(self, k: int, h: Tensor | Features) -> Tensor:
        """W_0 h + sum over the relations + b."""
        total = self.linear(f"root_{k}", h)
        for r, (operator, weights) in enumerate(self.relations):
            values = self.times(f"layer_{k}_{r}", h)
            own, neighbour = (self.get_parameter(f"layer_{k}_{r}_{end}") for end in ("own", "neighbour"))
            soft = edge_softmax(operator, additive_scores(operator, values, own, neighbour, LEAK))
            total = total + weighted_sums(operator, soft * weights[:, None], values)
        return total

    def states(self, x: Features, drop: Dropper) -> list[Tensor]:
        """The output of both layers."""
        first = torch.relu(self.layer(0, drop.features(x)))
        return [first, self.layer(1, drop(first))]


def relations(graph: Graph, rings: int, neighbours: int) -> list[Graph]:
    """The graph itself with weights 1, then one of alike nodes for every ring; as many on every graph."""
    profiles = degree_profiles(graph, rings)
    profiles += [profiles[-1]] * (rings - len(profiles))
    own = Graph.from_edges(np.asarray(graph.edge_index), graph.num_nodes)
    return [own, *(role_graph(profile, neighbours) for profile in profiles)]


RECORDS = (
    ModelRecord(
        "wrgat", "WRGAT", "heterophily", source="Suresh et al., KDD 2021",
        rule="h' = relu(W_0 h + sum_r mean_j w_ij a_ij W_r h_j + b)",
        settings=WRGATSettings, network=WRGAT, published="WRGAT",
    ),
)  # fmt: skip
