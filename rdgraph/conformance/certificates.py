"""What agreement on probes is worth: a proof up to rounding for a class of layers, or agreement on so many probes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from rdgraph.conformance.equation_target import longest_word
from rdgraph.conformance.layer_check import PRECISION, Comparison, LayerCheck
from rdgraph.conformance.probe_graphs import ProbeGraph
from rdgraph.conformance.probe_stack import Probe, coefficients_of

#: Above this condition number, rounding could hide a difference.
WORST_CONDITION = 1e5

Array = np.ndarray


@dataclass(frozen=True)
class Certificate:
    """How far agreement goes.

    `dimension` is the number of coefficients that a polynomial of degree `degree` in the entries of the state has,
    summed over `graphs`; `rank` counts the independent probes among those that were put on these graphs. Where both are
    equal, every layer of that class which gives the same answers is equal to the equation for all states on these
    graphs, up to rounding, which is amplified by at most `condition`.
    """

    probes: int
    graphs: int
    degree: int | None = None
    dimension: int = 0
    rank: int = 0
    condition: float = 1.0
    words: int = 0
    error: float = 0.0

    @property
    def is_proof(self) -> bool:
        """Whether the class is spanned, so that agreement is a proof up to rounding for the layers in it."""
        return self.degree is not None and 0 < self.dimension == self.rank

    def __str__(self) -> str:
        most = f"largest error {self.error:.1g}"
        if not self.is_proof:
            return f"agrees on {self.probes} probes of {self.graphs} graphs ({most})"
        kind = {0: "constant", 1: "affine"}.get(self.degree or 0, f"a polynomial of degree {self.degree} at most")
        words = f"; I, A, ..., A^{self.words} are independent on them" if self.words else ""
        return (
            f"equal on {self.probes} probes, {self.rank} of them independent, spanning a hypothesis space of dimension "
            f"{self.dimension}: a proof up to rounding, for all states on {self.graphs} graphs, if the layer is {kind} "
            f"in the state ({most}, condition {self.condition:.1g}){words}"
        )


def certificate(check: LayerCheck, comparison: Comparison) -> Certificate:
    """What the agreement of a comparison is worth."""
    degree = comparison.target.degree
    count, graphs = len(check.whole.probes), len(check.answers.graphs)
    plain = Certificate(count, graphs, error=comparison.error)
    if degree is None or check.precision > PRECISION or not is_polynomial(check, degree):
        return plain
    dimension = rank = spanned = 0
    condition = 1.0
    for graph in check.answers.graphs:
        needed = coefficients_of(graph, check.call, degree)
        own = [p for p in check.answers.probes if p.graph is graph and p.sort == "generic"]
        if len(own) < needed:
            continue
        sizes = np.linalg.svd(monomials(own, degree, check.call.takes_start), compute_uv=False)
        full = int((sizes > sizes[0] / WORST_CONDITION).sum())
        dimension, rank, spanned = dimension + needed, rank + full, spanned + 1
        condition = max(condition, float(sizes[0] / max(sizes[-1], 1e-300)))
    if not spanned or rank < dimension:
        return plain
    words = independent_words(check, comparison)
    return Certificate(count, spanned, degree, dimension, rank, condition, words, comparison.error)


def monomials(probes: Sequence[Probe], degree: int, with_start: bool) -> Array:
    """The monomials up to a degree in the entries of the states, one row per probe.

    >>> p = Probe(ProbeGraph("single node", 1, ()), np.array([[2.0]]), np.array([[0.0]]), np.zeros((1, 1)))
    >>> monomials([p], 3, False)
    array([[1., 2., 4., 8.]])
    """
    flat = [np.concatenate([p.state.ravel(), *([p.start.ravel()] if with_start else [])]) for p in probes]
    entries = np.stack(flat)
    columns = [np.ones(len(entries))]
    for total in range(1, degree + 1):
        places = combinations_with_replacement(range(entries.shape[1]), total)
        columns += [np.prod(entries[:, chosen], axis=1) for chosen in places]
    return np.stack(columns, axis=1)


def is_polynomial(check: LayerCheck, degree: int) -> bool:
    """Whether the layer looks like a polynomial of that degree along a line through random states, measured anew."""
    graph = max(check.answers.graphs, key=lambda g: g.num_nodes)
    rng = np.random.default_rng(29)
    shape = (graph.num_nodes, check.call.width)
    begin, way = rng.normal(size=(2, *shape))
    places = np.linspace(-2.0, 2.0, degree + 4)
    rows = np.stack([check.call(graph, begin + s * way, begin + s * way).ravel() for s in places])
    basis = np.vander(places, degree + 1)
    rest = rows - basis @ np.linalg.lstsq(basis, rows, rcond=None)[0]
    return bool(np.abs(rest).max() <= 10 * check.precision * max(1.0, float(np.abs(rows).max())))


def independent_words(check: LayerCheck, comparison: Comparison) -> int:
    """The largest K for which I, A, ..., A^K are independent on the probed graphs, up to what the equation uses."""
    target = comparison.target
    longest = longest_word(target.tree) * (target.count if target.compared in ("map", "step") else 1)
    matrices = [_powers(comparison, graph, longest) for graph in check.answers.graphs]
    stacked = np.concatenate([m.reshape(longest + 1, -1) for m in matrices], axis=1)
    return longest if np.linalg.matrix_rank(stacked, tol=1e-8 * max(1.0, float(np.abs(stacked).max()))) > longest else 0


def _powers(comparison: Comparison, graph: ProbeGraph, longest: int) -> Array:
    A = comparison.reading.operators(graph)["A"]
    found = [np.eye(graph.num_nodes)]
    for _ in range(longest):
        found.append(A @ found[-1])
    return np.stack(found)
