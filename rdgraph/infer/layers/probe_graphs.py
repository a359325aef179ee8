"""The graphs that a layer is probed on, and `Reading`: the meaning of A in an equation on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from rdgraph.errors import InvalidArgument
from rdgraph.vocabulary.normalisations import find_normalisation

#: Classes of graphs that an equation may be restricted to.
DOMAINS = ("all", "undirected", "simple")

Edge = tuple[int, int]


@dataclass(frozen=True)
class ProbeGraph:
    """Edges source -> target with weights, between nodes 0..n-1; a pair occurs once.

    >>> ProbeGraph("edge", 2, ((0, 1),)).adjacency
    array([[0., 0.],
           [1., 0.]])
    """

    name: str
    num_nodes: int
    edges: tuple[Edge, ...]
    weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if len(set(self.edges)) != len(self.edges):
            raise InvalidArgument(f"expected every edge once, got {self.edges}; remove the repeated ones")
        if self.weights and len(self.weights) != len(self.edges):
            raise InvalidArgument(
                f"expected one weight for each of {len(self.edges)} edges, got {len(self.weights)}; give all or none"
            )

    @cached_property
    def edge_index(self) -> np.ndarray:
        """Sources in row 0, targets in row 1: (2, E)."""
        return np.array(self.edges, dtype=np.int64).reshape(-1, 2).T

    @cached_property
    def edge_weight(self) -> np.ndarray:
        """One number per edge, 1 where none was given."""
        return np.array(self.weights or [1.0] * len(self.edges), dtype=float)

    @cached_property
    def adjacency(self) -> np.ndarray:
        """M[i, j] is the weight of the edge j -> i: (n, n)."""
        matrix = np.zeros((self.num_nodes, self.num_nodes))
        source, target = self.edge_index
        matrix[target, source] = self.edge_weight
        return matrix

    @property
    def is_weighted(self) -> bool:
        """Whether some weight is not 1."""
        return any(weight != 1.0 for weight in self.weights)

    @property
    def has_loops(self) -> bool:
        """Whether a node has an edge to itself."""
        return any(source == target for source, target in self.edges)

    @property
    def is_directed(self) -> bool:
        """Whether some edge has no reverse of the same weight."""
        return not np.array_equal(self.adjacency, self.adjacency.T)

    def is_in(self, domain: str) -> bool:
        """Whether the graph belongs to a domain, one of the words of `DOMAINS`.

        >>> [ProbeGraph("loop", 1, ((0, 0),)).is_in(word) for word in DOMAINS]
        [True, True, False]
        """
        is_plain = not (self.has_loops or self.is_weighted)
        return domain == "all" or (not self.is_directed and (domain == "undirected" or is_plain))

    def __str__(self) -> str:
        pairs = [(s, t) for s, t in self.edges if self.is_directed or s <= t]
        drawn = ", ".join(f"{s}->{t}" if self.is_directed else f"{s}-{t}" for s, t in pairs)
        weights = dict(zip(self.edges, self.edge_weight, strict=True))
        heavy = f", weights {', '.join(f'{weights[pair]:g}' for pair in pairs)}" if self.is_weighted else ""
        return f"{self.num_nodes} node{'s' if self.num_nodes > 1 else ''}, edges {drawn or 'none'}{heavy}"


def undirected(name: str, num_nodes: int, pairs: Iterable[Edge], weights: Sequence[float] = ()) -> ProbeGraph:
    """A graph with both directions of every pair; a loop has one.

    >>> undirected("edge", 2, [(0, 1)]).edges
    ((0, 1), (1, 0))
    """
    given = list(pairs)
    heavy = list(weights) or [1.0] * len(given)
    both = {pair: w for (a, b), w in zip(given, heavy, strict=True) for pair in ((a, b), (b, a))}
    return ProbeGraph(name, num_nodes, tuple(both), tuple(both.values()) if weights else ())


def probe_graphs(*, weighted: bool = True, domain: str = "all", seed: int = 0) -> tuple[ProbeGraph, ...]:
    """Graphs of every kind that has exposed a difference between layers, the smallest first.

    Args:
        weighted: whether weights other than 1 occur.
        domain: "all"; "undirected" leaves out directed ones, "simple" those with loops and weights too.
        seed: of the random graphs and weights.

    >>> [g.num_nodes for g in probe_graphs(domain="simple")]
    [1, 2, 3, 4, 4, 5, 5, 6]
    """
    if domain not in DOMAINS:
        raise InvalidArgument(f"expected graphs that are {', '.join(DOMAINS)}, got {domain!r}; or give a list of them")
    rng = np.random.default_rng(seed)
    tail = [(0, 1), (1, 2), (0, 2), (2, 3)]
    chord = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (1, 4), (0, 2)]
    graphs = [
        ProbeGraph("single node", 1, ()),
        undirected("edge", 2, [(0, 1)]),
        undirected("path", 3, [(0, 1), (1, 2)]),
        undirected("triangle with a tail", 4, tail),
        undirected("isolated node", 4, [(0, 1), (1, 2)]),
        undirected("star", 5, [(0, k) for k in range(1, 5)]),
        undirected("two components", 5, [(0, 1), (2, 3), (3, 4)]),
        undirected("random", 6, chord),
    ]
    if domain != "simple":
        graphs += [undirected("self-loop", 4, [(0, 0), (0, 1), (1, 2), (2, 3)])]
        if weighted:
            heavy = [float(w) for w in rng.uniform(0.3, 2.5, 7)]
            graphs += [
                undirected("weighted", 4, tail, heavy[:4]),
                undirected("weighted with a loop", 3, [(0, 1), (1, 2), (1, 1)], [heavy[4], heavy[5], heavy[6]]),
            ]
    if domain == "all":
        arrows = ((0, 1), (1, 2), (2, 0), (0, 3), (3, 4), (4, 1), (2, 4))
        graphs += [ProbeGraph("directed path", 3, ((0, 1), (1, 2))), ProbeGraph("directed", 5, arrows)]
        if weighted:
            graphs += [ProbeGraph("directed and weighted", 5, arrows, tuple(map(float, rng.uniform(0.3, 2.5, 7))))]
    return tuple(sorted(graphs, key=lambda graph: (graph.num_nodes, len(graph.edges))))


def read_graphs(given: Any, *, weighted: bool, seed: int = 0) -> tuple[ProbeGraph, ...]:
    """The graphs of a domain by its word, or those of a list: `ProbeGraph`s, or rdgraph's `Graph`s."""
    if isinstance(given, str):
        return probe_graphs(weighted=weighted, domain=given, seed=seed)
    if not isinstance(given, Iterable):
        given = [given]
    return tuple(read_graph(graph) for graph in given)


def read_graph(graph: Any) -> ProbeGraph:
    """The `ProbeGraph` of a graph: itself, or from the edges of a `Graph`."""
    if isinstance(graph, ProbeGraph):
        return graph
    if not all(hasattr(graph, name) for name in ("edge_index", "weight", "num_nodes")):
        raise InvalidArgument(f"expected a Graph, got {type(graph).__name__}; make one with rd.Graph.from_edges(...)")
    pairs = tuple((int(s), int(t)) for s, t in np.asarray(graph.edge_index).T)
    return ProbeGraph("given", int(graph.num_nodes), pairs, tuple(map(float, graph.weight)))


# ---------------------------------------------------------------------- operator reading
#: The treatment of self-loops, in words.
LOOPS = {
    "none": "without self-loops",
    "removed": "without self-loops, those of the graph removed",
    "remaining": "with self-loops, added where a node has none",
    "added": "with self-loops, added to those of the graph",
    "replaced": "with self-loops, in place of those of the graph",
}
#: The rules for "without" and "with" self-loops, the usual ones first.
WITHOUT, WITH = ("none", "removed"), ("remaining", "added", "replaced")
#: The degrees that the symmetric normalisation divides by on a directed graph, in words.
DEGREES = {
    "target": "",
    "source": "both ends divided by their outgoing degrees",
    "both": "targets divided by incoming, sources by outgoing degrees",
}
#: The normalisations that are tried where none is declared.
TRIED = ("symmetric", "row", "column", "none")


@dataclass(frozen=True)
class Reading:
    """Normalisation, self-loops, direction of the edges, degrees and weights.

    >>> print(Reading("symmetric", "remaining"))
    symmetric normalisation with self-loops, added where a node has none
    """

    normalisation: str = "none"
    loops: str = "none"
    transposed: bool = False
    degrees: str = "target"
    weighted: bool = True

    def operators(self, graph: ProbeGraph) -> dict[str, np.ndarray]:
        """A and L on a graph; L is D - A where the normalisation has degrees, I - A otherwise."""
        weights = self.looped(graph)
        record = find_normalisation(self.normalisation)
        if record.entry is None:
            raise InvalidArgument(f"expected a normalisation with entries, got {self.normalisation!r}; choose another")
        incoming, outgoing = (np.where(d > 0, d, 1.0) for d in (np.abs(weights).sum(axis=axis) for axis in (1, 0)))
        targets = outgoing if self.degrees == "source" else incoming
        sources = incoming if self.degrees == "target" else outgoing
        entries = np.asarray(record.entry(weights, targets[:, None], sources[None, :], outgoing[None, :]), dtype=float)
        entries = np.where(weights != 0, entries, 0.0)
        if record.is_symmetric and self.degrees != "both":  # 1/sqrt(0) is 0: a node without degree sends nothing
            entries = entries * (np.abs(weights).sum(axis=0 if self.degrees == "source" else 1) > 0)[None, :]
            entries = entries * (np.abs(weights).sum(axis=0 if self.degrees == "source" else 1) > 0)[:, None]
        A = entries + record.identity * np.eye(len(weights))
        whole = np.diag(np.abs(weights).sum(axis=1)) if record.has_degrees else np.eye(len(weights))
        return {"A": A, "L": whole - A}

    def looped(self, graph: ProbeGraph) -> np.ndarray:
        """The weights with the rule for self-loops applied."""
        weights = graph.adjacency if self.weighted else (graph.adjacency != 0).astype(float)
        weights = (weights.T if self.transposed else weights).copy()
        loops = weights.diagonal().copy()
        match self.loops:
            case "removed":
                np.fill_diagonal(weights, 0.0)
            case "added":
                np.fill_diagonal(weights, loops + 1.0)
            case "remaining":
                np.fill_diagonal(weights, np.where(loops != 0, loops, 1.0))
            case "replaced":
                np.fill_diagonal(weights, 1.0)
        return weights

    @property
    def has_added_loops(self) -> bool:
        return self.loops in WITH

    def __str__(self) -> str:
        name = "no normalisation" if self.normalisation == "none" else f"{self.normalisation} normalisation"
        words = [f"{name} {LOOPS[self.loops]}"]
        words += [DEGREES[self.degrees]] if DEGREES[self.degrees] else []
        words += ["edges transposed"] if self.transposed else []
        words += ["weights ignored"] if not self.weighted else []
        return ", ".join(words)


def declared_readings(
    normalisation: str | Iterable[str] | None = None,
    self_loops: bool | str | None = None,
    transposed: bool | None = False,
) -> tuple[Reading, ...]:
    """The admitted readings, the usual ones first; None admits every value of an option.

    >>> [str(r) for r in declared_readings("row", False)]
    ['row normalisation without self-loops', 'row normalisation without self-loops, those of the graph removed']
    """
    names = TRIED if normalisation is None else (normalisation,) if isinstance(normalisation, str) else normalisation
    names = tuple(names)
    for name in names:
        find_normalisation(name)
    ways = (transposed,) if transposed is not None else (False, True)
    readings = [
        Reading(name, loops, way, degrees)
        for way, name, loops in product(ways, names, _loop_rules(self_loops))
        for degrees in (DEGREES if name == "symmetric" else ("target",))
    ]
    return tuple(
        sorted(readings, key=lambda r: (r.transposed, r.degrees != "target", r.loops in ("removed", "replaced")))
    )


def _loop_rules(self_loops: bool | str | None) -> tuple[str, ...]:
    match self_loops:
        case None:
            return (*WITHOUT[:1], *WITH, *WITHOUT[1:])
        case bool():
            return WITH if self_loops else WITHOUT
        case str() if self_loops in LOOPS:
            return (self_loops,)
    known = ", ".join(LOOPS)
    raise InvalidArgument(f"expected self_loops to be True, False, None or one of {known}, got {self_loops!r}")


def neighbouring_readings(reading: Reading) -> Iterator[tuple[str, str, Reading]]:
    """Readings that differ in one property: the kind of the difference, its description, and the reading."""
    way = "transposed edges: messages flow against the edge directions"
    yield "transposed edges", way, replace(reading, transposed=not reading.transposed)
    if reading.has_added_loops:
        for loops in WITHOUT:
            yield "self-loops", "self-loops are missing", replace(reading, loops=loops)
    else:
        for loops in WITH:
            yield "self-loops", "self-loops are added", replace(reading, loops=loops)
    for loops in WITH if reading.has_added_loops else WITHOUT:
        if loops != reading.loops:
            yield "self-loops", f"self-loops by another rule: {LOOPS[loops]}", replace(reading, loops=loops)
    for name in TRIED:
        if name != reading.normalisation:
            text = f"{'no' if name == 'none' else name} normalisation in place of {reading.normalisation}"
            for degrees in DEGREES if name == "symmetric" else ("target",):
                yield "normalisation", text, replace(reading, normalisation=name, degrees=degrees)
    if reading.normalisation == "symmetric":
        for degrees, words in DEGREES.items():
            if degrees != reading.degrees:
                yield "normalisation", words or "divided by incoming degrees", replace(reading, degrees=degrees)
    yield "weights", "the edge weights are ignored", replace(reading, weighted=not reading.weighted)


def differences(declared: Reading, other: Reading) -> list[tuple[str, str]]:
    """The differences of two readings: kinds, and descriptions of the other one.

    >>> differences(Reading("row"), Reading("none", "added"))
    [('normalisation', 'none in place of row'), ('self-loops', 'with self-loops, added to those of the graph')]
    """
    changes = []
    if declared.transposed != other.transposed:
        changes.append(("transposed edges", "messages flow against the edge directions"))
    if (declared.normalisation, declared.degrees) != (other.normalisation, other.degrees):
        words = [] if declared.normalisation == other.normalisation else [
            f"{other.normalisation} in place of {declared.normalisation}"
        ]  # fmt: skip
        words += [DEGREES[other.degrees]] if DEGREES[other.degrees] else []
        changes.append(("normalisation", ", ".join(words or ["divided by incoming degrees"])))
    if declared.loops != other.loops:
        changes.append(("self-loops", LOOPS[other.loops]))
    if declared.weighted != other.weighted:
        changes.append(("weights", "the edge weights are ignored"))
    return changes
