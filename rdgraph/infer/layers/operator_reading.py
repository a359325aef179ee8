"""`Reading`: what the letter A of an equation stands for on a graph, where the code does not say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from rdgraph.errors import InvalidArgument
from rdgraph.infer.layers.probe_graphs import ProbeGraph
from rdgraph.vocabulary.normalisations import find_normalisation

#: What becomes of the edges of nodes to themselves, in words.
LOOPS = {
    "none": "without self-loops",
    "removed": "without self-loops, those of the graph removed",
    "remaining": "with self-loops, added where a node has none",
    "added": "with self-loops, added to those of the graph",
    "replaced": "with self-loops, in place of those of the graph",
}
#: The rules that "with" and "without" self-loops admit, the usual ones first.
WITHOUT, WITH = ("none", "removed"), ("remaining", "added", "replaced")
#: By whose degrees the symmetric normalisation divides where a graph is directed, in words.
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
        incoming, outgoing = (_divisor(np.abs(weights).sum(axis=axis)) for axis in (1, 0))
        own = outgoing if self.degrees == "source" else incoming
        other = incoming if self.degrees == "target" else outgoing
        entries = np.asarray(record.entry(weights, own[:, None], other[None, :], outgoing[None, :]), dtype=float)
        entries = np.where(weights != 0, entries, 0.0)
        if record.is_symmetric and self.degrees != "both":  # 1/sqrt(0) is 0: a node without a degree sends nothing
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
    """The readings that are left open, the usual ones first; None leaves a thing open.

    >>> [str(r) for r in declared_readings("row", False)]
    ['row normalisation without self-loops', 'row normalisation without self-loops, those of the graph removed']
    """
    names = TRIED if normalisation is None else (normalisation,) if isinstance(normalisation, str) else normalisation
    names = tuple(names)
    for name in names:
        find_normalisation(name)
    ways = (transposed,) if transposed is not None else (False, True)
    found = [
        Reading(name, loops, way, degrees)
        for way, name, loops in product(ways, names, _loop_rules(self_loops))
        for degrees in (DEGREES if name == "symmetric" else ("target",))
    ]
    return tuple(sorted(found, key=lambda r: (r.transposed, r.degrees != "target", r.loops in ("removed", "replaced"))))


def _loop_rules(self_loops: bool | str | None) -> tuple[str, ...]:
    match self_loops:
        case None:
            return (*WITHOUT[:1], *WITH, *WITHOUT[1:])
        case bool():
            return WITH if self_loops else WITHOUT
        case str() if self_loops in LOOPS:
            return (self_loops,)
    raise InvalidArgument(f"expected self_loops to be True, False, None or one of {list(LOOPS)}, got {self_loops!r}")


def neighbouring_readings(reading: Reading) -> Iterator[tuple[str, str, Reading]]:
    """Readings that differ in one thing: the kind of the difference, what it is in words, and the reading."""
    way = "transposed edges: messages flow against the arrows"
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
    """In which things two readings differ: kinds, and what the other one is, in words.

    >>> differences(Reading("row"), Reading("none", "added"))
    [('normalisation', 'none in place of row'), ('self-loops', 'with self-loops, added to those of the graph')]
    """
    found = []
    if declared.transposed != other.transposed:
        found.append(("transposed edges", "messages flow against the arrows"))
    if (declared.normalisation, declared.degrees) != (other.normalisation, other.degrees):
        words = [] if declared.normalisation == other.normalisation else [
            f"{other.normalisation} in place of {declared.normalisation}"
        ]  # fmt: skip
        words += [DEGREES[other.degrees]] if DEGREES[other.degrees] else []
        found.append(("normalisation", ", ".join(words or ["divided by incoming degrees"])))
    if declared.loops != other.loops:
        found.append(("self-loops", LOOPS[other.loops]))
    if declared.weighted != other.weighted:
        found.append(("weights", "the edge weights are ignored"))
    return found


def _divisor(degree: np.ndarray) -> np.ndarray:
    return np.where(degree > 0, degree, 1.0)
