"""Heterophily by wider, computed or signed neighbourhoods: MixHop, Geom-GCN, FA-GCN, GPR-GNN, H2GCN, WRGAT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
import torch
from scipy.sparse import csr_array, eye_array
from scipy.sparse.csgraph import shortest_path
from scipy.spatial import cKDTree
from torch import Tensor

from gread.kernels.edge_attention import additive_scores, edge_softmax, edge_sums, weighted_sums
from gread.models.batched_model import BatchedModel
from gread.models.features import Features
from gread.models.place import Place
from gread.models.randomness import Dropper
from gread.settings.model_records import ModelSettings, StackedSettings, printed_records
from gread.zoo.classical_networks import LEAK
from rdgraph import Graph
from rdgraph.graphs import stack
from rdgraph.graphs.operator import Operator

# ---------------------------------------------------------------------- mixhop
# Abu-El-Haija et al., "MixHop: Higher-Order Graph Convolutional Architectures via Sparsified Neighborhood
# Mixing", ICML 2019.
#: The number added to the variance of a channel, and the smallest squared length of features.
SPREAD, SHORT = 1e-3, 1e-12


@dataclass(frozen=True, kw_only=True)
class MixHopSettings(StackedSettings, model="mixhop", least={"hops": 1}):
    """Settings of MixHop: `hidden` channels for every power of A up to `hops`, side by side."""

    hops: int = 2


class MixHop(BatchedModel):
    """H' = relu(norm([H W_0, A H W_1, A^2 H W_2, ...])), A symmetric with self-loops.

    In the last layer every power has a column per class, and the logits are their mean with learned shares, a softmax.
    The norm centres and scales every channel over the current nodes, in prediction too, with a learned shift, as the
    authors' code does; features have length 1 after dropout. There the powers have separate widths, found by a search,
    and are trained by gradient descent with a decreasing rate. The shift and the shares have no weight decay.
    """

    settings: MixHopSettings

    def build(self) -> None:
        """Add the weights of all powers side by side for every layer, and the shares."""
        s = self.settings
        self.adjacency = self.place.operator("symmetric", self_loops=1.0)
        self.ones = self.full((self.features, 1), 1.0)
        self.powers = s.hops + 1
        self.widths = s.widths(self.features, self.classes)
        for k, (inputs, outputs) in enumerate(pairwise(self.widths)):
            columns = inputs if k == 0 else self.powers * inputs
            bound = (6 / (columns + outputs)) ** 0.5
            self.add_parameter(f"layer_{k}_weight", self.uniform((columns, self.powers * outputs), bound))
            if k + 1 < s.layers:
                self.add_parameter(f"layer_{k}_shift", self.full((self.powers * outputs,), 0.0), is_decayed=False)
        self.add_parameter("shares", self.full((self.powers,), 0.0), is_decayed=False)

    def mixed(self, values: Tensor) -> Tensor:
        """[U_0, A U_1, A^2 U_2, ...] of values [U_0, U_1, U_2, ...]; one product for every power."""
        width = values.shape[-1] // self.powers
        first, rest = values.split([width, values.shape[-1] - width], -1)
        parts = [first]
        for _ in range(self.settings.hops):
            rest = self.adjacency @ rest
            first, rest = rest.split([width, rest.shape[-1] - width], -1)
            parts.append(first)
        return torch.cat(parts, -1)

    def normed(self, k: int, h: Tensor) -> Tensor:
        """Every channel centred and scaled over the nodes, and shifted."""
        centred = h - h.mean(1, keepdim=True)
        scale = torch.rsqrt(centred.square().mean(1, keepdim=True) + SPREAD)
        return centred * scale + self.get_parameter(f"layer_{k}_shift")[:, None]

    def states(self, x: Features, drop: Dropper) -> list[Tensor]:
        """The output of every layer, the powers side by side."""
        dropped = drop.features(x)
        squares = Features(dropped.values.square(), dropped.shape, dropped.pattern) @ self.ones
        states = [self.mixed(self.times("layer_0", dropped) * torch.rsqrt(squares.clamp(min=SHORT)))]
        for k in range(1, self.settings.layers):
            states[-1] = torch.relu(self.normed(k - 1, states[-1]))
            states.append(self.mixed(self.times(f"layer_{k}", drop(states[-1]))))
        return states

    def read(self, states: list[Tensor], drop: Dropper) -> Tensor:
        """The mean over the powers, weighted by the learned shares."""
        shares = torch.softmax(self.get_parameter("shares"), -1)
        split = states[-1].view(self.members, self.place.nodes, self.powers, self.classes)
        return torch.einsum("mp,mnpc->mnc", shares, split)


# ---------------------------------------------------------------------- geom gcn
# Pei et al., "Geom-GCN: Geometric Graph Convolutional Networks", ICLR 2020.
#
# Nodes get positions in a plane from their distances along the graph: flat (Isomap) or hyperbolic. Distances are
# measured from landmarks, all nodes of small graphs. Both positions come from one eigenvalue problem, so they are the
# same on every run; axes point towards the farthest node.

#: The most landmarks: evenly spaced among all nodes in the order of their degrees.
LANDMARKS = 1000
#: The distance of unreachable nodes minus the largest finite distance.
BEYOND = 1.0
#: The largest distance in the hyperbolic plane.
RADIUS = 5.0
#: Bisection steps of the search for a radius.
HALVINGS = 40


def plane_positions(graph: Graph, kind: str) -> np.ndarray:
    """Positions (n, 2) of kind "isomap" or "poincare".

    Isomap (Tenenbaum et al. 2000) is classical scaling of the distances, with the other nodes placed by their distances
    from the landmarks (de Silva and Tenenbaum 2004). The hyperbolic positions, in the Poincare disc, are those of the
    strain-minimal embedding by the eigenvectors of cosh(distance) (Keller-Ressel and Nargang 2020).

    >>> from rdgraph.graphs.generators import path
    >>> abs(plane_positions(path(3), "isomap")[:, 0]).round(6).tolist()
    [1.0, 0.0, 1.0]
    """
    chosen = landmarks(graph)
    steps = distances(graph, chosen)
    return _oriented(_flat(steps, chosen) if kind == "isomap" else _hyperbolic(steps, chosen))


def landmarks(graph: Graph) -> np.ndarray:
    """The nodes that distances are measured from."""
    n = graph.num_nodes
    if n <= LANDMARKS:
        return np.arange(n)
    order = np.argsort(-graph.degree, kind="stable")
    return np.sort(order[np.linspace(0, n - 1, LANDMARKS).astype(int)])


def distances(graph: Graph, chosen: np.ndarray) -> np.ndarray:
    """Numbers of steps (landmarks, n) along edges in either direction."""
    sources, targets = graph.edge_index
    n = graph.num_nodes
    steps = csr_array((np.ones(len(sources)), (sources, targets)), shape=(n, n))
    lengths = np.asarray(shortest_path(steps, directed=False, unweighted=True, indices=chosen))
    reached = np.isfinite(lengths)
    return np.where(reached, lengths, lengths[reached].max() + BEYOND)


def _flat(steps: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    squared = steps**2
    between = squared[:, chosen]
    mean = between.mean(0)
    gram = -0.5 * (between - mean - mean[:, None] + between.mean())
    values, vectors = np.linalg.eigh(gram)
    values, vectors = np.maximum(values[-2:][::-1], 1e-12), vectors[:, -2:][:, ::-1]
    return np.asarray(-0.5 * (squared - mean[:, None]).T @ vectors / np.sqrt(values))


def _hyperbolic(steps: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Positions by Keller-Ressel and Nargang: height from the largest eigenvalue, directions from the two smallest."""
    curved = np.cosh(RADIUS * steps / max(1.0, steps.max()))
    values, vectors = np.linalg.eigh(curved[:, chosen])
    height = np.abs(curved.T @ vectors[:, -1]) / np.sqrt(values[-1])
    sides = curved.T @ vectors[:, :2] / np.sqrt(np.maximum(-values[:2], 1e-12))
    lengths = np.linalg.norm(sides, axis=1, keepdims=True)
    lowest = max(1.0, float(height.min()))
    radius = np.sqrt(np.maximum((height - lowest) / (height + lowest), 0))
    return np.asarray(np.divide(sides, lengths, out=np.zeros_like(sides), where=lengths > 0) * radius[:, None])


def _oriented(positions: np.ndarray) -> np.ndarray:
    """Positions with the largest entry of every axis positive, rounded so that coinciding nodes are exactly equal."""
    rounded = np.round(positions, 9)
    top, bottom = rounded.max(0), -rounded.min(0)
    tie = rounded[:, :] ** 3
    sign = np.where(top > bottom, 1.0, np.where(top < bottom, -1.0, np.where(tie.sum(0) < 0, -1.0, 1.0)))
    return np.asarray(rounded * sign)


def near_pairs(positions: np.ndarray, count: int) -> np.ndarray:
    """At most `count` ordered pairs (2, pairs) of the nodes closest to each other in the plane.

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
    if not len(pairs):  # many ties, such as copies of a position: the closest, then the lowest numbers
        pairs = tree.query_pairs(high, output_type="ndarray")
        gaps = np.linalg.norm(positions[pairs[:, 0]] - positions[pairs[:, 1]], axis=1)
        pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0], gaps))[: max(1, count // 2)]]
    return np.concatenate([pairs, pairs[:, ::-1]]).T


EMBEDDINGS = ("isomap", "poincare")
#: Kinds of neighbours: along the graph and in the plane, in four quarters each, and the node itself.
KINDS = 9


@dataclass(frozen=True, kw_only=True)
class GeomGCNSettings(ModelSettings, model="geomgcn"):
    """Settings of Geom-GCN: `embedding` isomap or poincare, the plane in which nodes have positions."""

    hidden: int = 16
    embedding: str = "isomap"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_one_of("embedding", EMBEDDINGS)


class GeomGCN(BatchedModel):
    """H' = relu(s [A_r (s H W_r)] side by side over r), logits = mean over r of s A_r (s H' W_r).

    A_r joins node i with its neighbours of kind r: along the graph or nearby in a plane, by the quadrant of z_j - z_i,
    and itself; s_i = 1/sqrt(neighbours of all kinds). The authors read the plane and the neighbours in it from files;
    here `plane_positions` computes them: Isomap where they have "MDS", a closed-form hyperbolic embedding where they
    train one, none for struc2vec, so the numbers cannot match theirs exactly. There are as many neighbours in the plane
    as edges. Their dropout before the second layer is kept.
    """

    settings: GeomGCNSettings

    def build(self) -> None:
        """Add a matrix for every kind, side by side, in both layers."""
        hidden = self.settings.hidden
        key = "geomgcn", self.settings.embedding
        self.relations, self.scale = self.place.once(key, self._relations)
        self.add_linear("first", self.features, KINDS * hidden, bias=False, start="glorot")
        self.add_linear("second", KINDS * hidden, KINDS * self.classes, bias=False, start="glorot")

    def _relations(self) -> tuple[list[Operator], Tensor]:
        """The operators of all kinds, and s (1 or M, n, 1)."""
        kinds = [geometric_relations(graph, self.settings.embedding) for graph in self.place.graphs]
        joined = [_stacked(self.place, each) for each in zip(*kinds, strict=True)]
        counts = np.stack([sum(np.bincount(g.edge_index[1], minlength=g.num_nodes) for g in each) for each in kinds])
        return joined, self.place.tensor(counts**-0.5)[..., None]

    def gather(self, h: Tensor) -> list[Tensor]:
        """s A_r (s h_r) of the parts h_r, one for every kind."""
        parts = (self.scale * h).chunk(KINDS, -1)
        return [self.scale * (one @ part.contiguous()) for one, part in zip(self.relations, parts, strict=True)]

    def states(self, x: Features, drop: Dropper) -> list[Tensor]:
        """The output of both layers."""
        first = torch.relu(torch.cat(self.gather(self.times("first", drop.features(x))), -1))
        return [first, torch.stack(self.gather(self.times("second", drop(first)))).mean(0)]


def _stacked(place: Place, graphs: Sequence[Graph]) -> Operator:
    """The adjacency of one graph per member, unweighted by degrees, on one pattern."""
    operators = [graph.operator("none", device=place.device, dtype=place.dtype) for graph in graphs]
    return (operators[0] if place.is_shared else stack(operators)).prepare()


def geometric_relations(graph: Graph, embedding: str) -> list[Graph]:
    """The graphs of all kinds: four quadrants along the graph, four in the plane, and every node with itself."""
    n = graph.num_nodes
    positions = plane_positions(graph, embedding)
    sources, targets = graph.edge_index
    along = np.stack([sources, targets])[:, sources != targets]
    nearby = near_pairs(positions, along.shape[1])
    loops = Graph.from_edges(np.stack([np.arange(n)] * 2), n)
    return [*_quadrants(along, positions, n), *_quadrants(nearby, positions, n), loops]


def _quadrants(edges: np.ndarray, positions: np.ndarray, nodes: int) -> list[Graph]:
    """The edges by the quadrant of their source as seen from their target."""
    ahead = positions[edges[0]] - positions[edges[1]]
    number = 2 * (ahead[:, 0] >= 0) + (ahead[:, 1] >= 0)
    return [Graph.from_edges(edges[:, number == k], nodes) for k in range(4)]


# ---------------------------------------------------------------------- fagcn
# Bo et al., "Beyond Low-Frequency Information in Graph Convolutional Networks", AAAI 2021.
#: The factor between the initial weights and Glorot and Bengio's.
GAIN = 1.414


@dataclass(frozen=True, kw_only=True)
class FAGCNSettings(ModelSettings, model="fagcn", least={"layers": 1, "epsilon": 0}):
    """Settings of FA-GCN: `layers` rounds of signed averaging, and the share `epsilon` of H_0 in every state."""

    hidden: int = 32
    layers: int = 2
    epsilon: float = 0.3


class FAGCN(BatchedModel):
    """H_0 = relu(X V + b), H' = epsilon H_0 + (T(H) o A) H, T_ij = tanh(g . h_i + f . h_j + c), logits = H U + d.

    A is the symmetrically normalised graph without self-loops, and o multiplies entries: an edge may attract or repel.
    H_0 and the edge weights are dropped at the same rate. Nothing differs from the authors' code but the data: they
    split the nodes of graphs with heterophily by the order in their own file.
    """

    settings: FAGCNSettings

    def build(self) -> None:
        """Add V, U, and the gate g, f, c of every round."""
        s = self.settings
        plain = self.place.derived(Graph.without_self_loops)
        self.adjacency = plain.with_weights(plain.weights).prepare()  # weights change, so that the transpose is needed
        self.add_wide("encoder", self.features, s.hidden)
        for k in range(s.layers):
            self.add_wide(f"gate_{k}", 2 * s.hidden, 1)
        self.add_wide("decoder", s.hidden, self.classes)

    def add_wide(self, name: str, inputs: int, outputs: int) -> None:
        """Add a linear layer with normal weights of standard deviation GAIN sqrt(2/(inputs + outputs))."""
        self.add_parameter(f"{name}_weight", self.normal((inputs, outputs), GAIN * (2 / (inputs + outputs)) ** 0.5))
        self.add_parameter(f"{name}_bias", self.uniform((outputs,), inputs**-0.5))

    def mixed(self, k: int, h: Tensor, drop: Dropper) -> Tensor:
        """(T(h) o A) h with the gate of round k."""
        gate, bias = self.get_parameter(f"gate_{k}_weight"), self.get_parameter(f"gate_{k}_bias")
        itself, neighbour = (h @ half for half in gate.chunk(2, 1))
        signs = torch.tanh(edge_sums(self.adjacency.pattern, itself[..., 0] + bias, neighbour[..., 0]))
        weights = drop(signs * self.adjacency.weights)
        return weighted_sums(self.adjacency, weights[:, None], h)

    def states(self, x: Features, drop: Dropper) -> list[Tensor]:
        """H_0 and the state after every round."""
        states = [drop(self.linear("encoder", drop.features(x)), relu=True)]
        for k in range(self.settings.layers):
            states.append(self.settings.epsilon * states[0] + self.mixed(k, states[-1], drop))
        return states

    def read(self, states: list[Tensor], drop: Dropper) -> Tensor:
        """Logits of the last state."""
        return self.linear("decoder", states[-1])


# ---------------------------------------------------------------------- gprgnn
# Chien et al., "Adaptive Universal Generalized PageRank Graph Neural Network", ICLR 2021.


@dataclass(frozen=True, kw_only=True)
class GPRGNNSettings(ModelSettings, model="gprgnn", least={"steps": 1}):
    """Settings of GPR-GNN: powers of A up to `steps`, weighted at the start as in PageRank with teleport `alpha`.

    `propagation_dropout` is the share of H_0 that is dropped before the powers.
    """

    free: ClassVar[tuple[str, ...]] = (*ModelSettings.free, "propagation_dropout")

    steps: int = 10
    alpha: float = 0.1
    propagation_dropout: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_share("propagation_dropout")
        self.check_between(0, 1, "alpha")


class GPRGNN(BatchedModel):
    """H_0 = relu(X V + b) U + c with a column per class, logits = sum_k g_k A^k H_0, A symmetric with self-loops.

    The g_k are learned, of either sign and without weight decay; they start at alpha (1 - alpha)^k, the last at
    (1 - alpha)^K, so that alpha 1 starts as an MLP and alpha 0 as A^K. Nothing differs from the authors' code but the
    data: their results are for random splits and other edges of chameleon and squirrel.
    """

    settings: GPRGNNSettings

    def build(self) -> None:
        """Add V, U and the weights of the powers."""
        s = self.settings
        self.adjacency = self.place.operator("symmetric", self_loops=1.0)
        self.add_linear("first", self.features, s.hidden)
        self.add_linear("second", s.hidden, self.classes)
        start = [s.alpha * (1 - s.alpha) ** k for k in range(s.steps)] + [(1 - s.alpha) ** s.steps]
        self.add_parameter("gamma", self.full((1,), 1.0) * self.place.tensor(start), is_decayed=False)

    def states(self, x: Features, drop: Dropper) -> list[Tensor]:
        """A^k H_0 for k from 0 to K."""
        hidden = drop(self.linear("first", drop.features(x)), relu=True)
        states = [drop(self.linear("second", hidden), "propagation_dropout")]
        for _ in range(self.settings.steps):
            states.append(self.adjacency @ states[-1])
        return states

    def read(self, states: list[Tensor], drop: Dropper) -> Tensor:
        """The weighted sum of all powers."""
        return torch.einsum("mk,mknc->mnc", self.get_parameter("gamma"), torch.stack(states, 1))


# ---------------------------------------------------------------------- h2gcn
# Zhu et al., "Beyond Homophily in Graph Neural Networks", NeurIPS 2020.


@dataclass(frozen=True, kw_only=True)
class H2GCNSettings(ModelSettings, model="h2gcn", least={"rounds": 1}):
    """Settings of H2GCN: `rounds` of aggregation, each of which doubles the width; `relu` after the encoder."""

    rounds: int = 2
    relu: bool = True


class H2GCN(BatchedModel):
    """H_0 = relu(X V), R_0 = H_0, R_k = [A1 R_(k-1), A2 R_(k-1)], logits = [R_0, ..., R_K] U.

    A1 and A2 are the symmetrically normalised graphs of neighbours and of strict second neighbours, both without
    self-loops. R_k has hidden*2^k columns. The authors drop features on some data sets only; here it is a setting.
    """

    settings: H2GCNSettings

    def build(self) -> None:
        """Add V, U and the two operators."""
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
    return _as_graph(neighbour_pattern(graph))


def second_ring(graph: Graph) -> Graph:
    """The graph that joins nodes at distance exactly two.

    >>> from rdgraph.graphs.generators import path
    >>> second_ring(path(4)).edge_index.tolist()
    [[2, 3, 0, 1], [0, 1, 2, 3]]
    """
    near = neighbour_pattern(graph)
    reached = csr_array((near @ near > 0).astype(np.float64))
    reached.setdiag(0)
    beyond = csr_array(reached - reached.multiply(near))
    beyond.eliminate_zeros()
    return _as_graph(beyond)


def neighbour_pattern(graph: Graph) -> csr_array:
    """A matrix (n, n) that is 1 where an edge joins two different nodes, in either direction."""
    sources, targets = graph.edge_index
    n = graph.num_nodes
    directed = csr_array((np.ones(len(sources)), (targets, sources)), shape=(n, n))
    both = csr_array((directed + directed.T > 0).astype(np.float64))
    both.setdiag(0)
    both.eliminate_zeros()
    return both


def _as_graph(matrix: csr_array) -> Graph:
    targets, sources = matrix.nonzero()
    return Graph.from_edges(np.stack([sources, targets]), matrix.shape[0])


# ---------------------------------------------------------------------- wrgat
# Suresh et al., "Breaking the Limit of Graph Neural Networks by Improving the Assortativity of Graphs with Local Mixing
# Patterns", KDD 2021.
#
# Nodes with the same role in a graph are joined: neighbours by the degrees around them, ring by ring. struc2vec
# (Ribeiro et al. 2017) compares the sorted degrees of the nodes at every distance by dynamic time warping. Here their
# quantiles on a logarithmic scale are compared, one vector per node and ring, so that a tree finds the closest nodes
# without all pairs.

#: Quantiles of the degrees in a ring.
QUANTILES = 9
#: The most pairs of nodes in a ring: larger ones hold most of the graph and carry no information.
WIDEST = 20_000_000


def degree_profiles(graph: Graph, rings: int) -> list[np.ndarray]:
    """For every ring, distance 0, 1, ..., a vector (n, 1 + QUANTILES): log(1 + its size), quantiles of log(1 + degree).

    The vector of ring k includes those of the rings before, as struc2vec sums its distances. Rings with too many pairs
    are skipped.

    >>> from rdgraph.graphs.generators import star
    >>> profiles = degree_profiles(star(5), 1)
    >>> bool((profiles[0][1] == profiles[0][4]).all()), bool((profiles[0][0] == profiles[0][1]).all())
    (True, False)
    """
    near = neighbour_pattern(graph).astype(np.float32)
    degree = np.log1p(np.diff(near.indptr))
    reached = ring = csr_array(eye_array(graph.num_nodes, dtype=np.float32))
    profiles: list[np.ndarray] = []
    for _ in range(rings):
        quantiles = _quantiles(ring, degree)
        profiles.append(np.concatenate([profiles[-1], quantiles], 1) if profiles else quantiles)
        beyond = csr_array((ring @ near > 0).astype(np.float32))
        ring = csr_array(beyond - beyond.multiply(reached))
        ring.eliminate_zeros()
        reached = csr_array(reached + ring)
        if ring.nnz == 0 or ring.nnz > WIDEST:
            break
    return profiles


def _quantiles(ring: csr_array, degree: np.ndarray) -> np.ndarray:
    """log(1 + size) and quantiles of the degrees in the ring of every node."""
    n, shares = ring.shape[0], np.linspace(0, 1, QUANTILES)
    counts = np.diff(ring.indptr)
    rows = np.repeat(np.arange(n), counts)
    values = degree[ring.indices]
    order = np.lexsort((values, rows))
    values = values[order]
    last = np.maximum(counts - 1, 0)
    positions = ring.indptr[:-1, None] + np.rint(last[:, None] * shares).astype(int)
    filled = np.where(counts[:, None] > 0, values[np.minimum(positions, max(0, len(values) - 1))], 0.0)
    return np.concatenate([np.log1p(counts)[:, None], filled], 1)


def role_graph(profile: np.ndarray, neighbours: int) -> Graph:
    """Edges to every node from the `neighbours` nodes with the closest profiles, with weights exp(-distance).

    Nodes tied with the farthest of these are included, up to twice as many in all, so that the numbering of the nodes
    does not matter.
    """
    n = len(profile)
    most = min(n - 1, 2 * neighbours)
    if most < 1:
        return Graph.from_edges([[], []], n)
    lengths, indices = cKDTree(profile).query(profile, k=most + 1)
    targets = np.repeat(np.arange(n), most + 1)
    limit = np.round(lengths[:, min(neighbours, most)], 9)[:, None]
    close = (np.round(lengths, 9) <= limit).ravel() & (indices.ravel() != targets)
    edges = np.stack([indices.ravel()[close], targets[close]])
    return Graph.from_edges(edges, n, weight=np.exp(-lengths.ravel()[close]))


@dataclass(frozen=True, kw_only=True)
class WRGATSettings(ModelSettings, model="wrgat", least={"rings": 1, "neighbours": 1}):
    """Settings of WRGAT.

    Args:
        rings: Relations of nodes with similar degrees around them, one for every distance, besides the graph itself.
        neighbours: How many similar nodes every node is joined with in each of them.
    """

    hidden: int = 128
    rings: int = 3
    neighbours: int = 8


class WRGAT(BatchedModel):
    """h_i' = relu(W_0 h_i + sum_r mean_j w_ij a_ij W_r h_j + b), a_ij = softmax_j leaky(c . W_r h_i + d . W_r h_j).

    Relation 0 is the graph, the others join nodes with similar degrees around them (`degree_profiles`; the authors warp
    sequences of degrees). Two layers; no ReLU after the last, the logits. The authors' results on the citation graphs
    are for random splits, and their code keeps the last weights where it means to keep the best.
    """

    settings: WRGATSettings

    def build(self) -> None:
        """Add W_0, b, and a matrix with two vectors for every relation and layer."""
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
        kinds = [role_relations(graph, self.settings.rings, self.settings.neighbours) for graph in self.place.graphs]
        pairs = []
        for each in zip(*kinds, strict=True):
            operator = _stacked(self.place, each)
            weights = operator.weights.reshape(-1, operator.num_edges)
            rows = operator.pattern.rows.long()
            counts = torch.zeros(len(weights), self.place.nodes, dtype=weights.dtype, device=weights.device)
            counts.index_add_(1, rows, (weights != 0).to(weights.dtype))
            pairs.append((operator, weights / counts.clamp(min=1)[:, rows]))
        return pairs

    def layer(self, k: int, h: Tensor | Features) -> Tensor:
        """W_0 h + sum over the relations + b."""
        total = self.linear(f"root_{k}", h)
        for r, (operator, weights) in enumerate(self.relations):
            values = self.times(f"layer_{k}_{r}", h)
            itself, neighbour = (self.get_parameter(f"layer_{k}_{r}_{end}") for end in ("own", "neighbour"))
            soft = edge_softmax(operator, additive_scores(operator, values, itself, neighbour, LEAK))
            total = total + weighted_sums(operator, soft * weights[:, None], values)
        return total

    def states(self, x: Features, drop: Dropper) -> list[Tensor]:
        """The output of both layers."""
        first = torch.relu(self.layer(0, drop.features(x)))
        return [first, self.layer(1, drop(first))]


def role_relations(graph: Graph, rings: int, neighbours: int) -> list[Graph]:
    """The graph itself with weights 1, then a graph of similar nodes for every ring; as many on every graph."""
    profiles = degree_profiles(graph, rings)
    profiles += [profiles[-1]] * (rings - len(profiles))
    unweighted = Graph.from_edges(np.asarray(graph.edge_index), graph.num_nodes)
    return [unweighted, *(role_graph(profile, neighbours) for profile in profiles)]


RECORDS = printed_records(
    (MixHopSettings, MixHop), (GeomGCNSettings, GeomGCN), (FAGCNSettings, FAGCN), (GPRGNNSettings, GPRGNN),
    (H2GCNSettings, H2GCN), (WRGATSettings, WRGAT),
)  # fmt: skip
