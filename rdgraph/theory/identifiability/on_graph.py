"""Identifiability on one graph, where only its own frequencies are excited.

For a polynomial p in L plus an entrywise reaction r, f at a node is sum_j p(lam_j) x_j + r(sum_j x_j), where lam_j are
the distinct eigenvalues of L and x_j, which are free, the components of H in their eigenspaces. With more distinct
eigenvalues than the degree of p nothing is lost; a node at distance e from another proves that there are at least
e + 1. A in a normal form is I - L; where L = D - A, it is A in an equation in A alone, and I - D + A in an equation in
L alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import sympy as sp

from rdgraph.errors import NotApplicable, Undecided
from rdgraph.graphs.normalisation import dense_adjacency, dense_operator, is_symmetric
from rdgraph.language.normal_form import H
from rdgraph.language.tree import Kind
from rdgraph.systems.structure import Structure
from rdgraph.systems.system import System
from rdgraph.theory.equality import dense_oracle as dense
from rdgraph.vocabulary.normalisations import Normalisation, find_normalisation

#: Eigenvalues that differ by less count as one; those this close to a short fraction are replaced by it.
EIGENVALUE_TOLERANCE = 1e-9
MAX_DENOMINATOR = 1000
#: Singular values below this fraction of the largest count as zero in a measured rank.
RANK_TOLERANCE = 1e-7
MAX_NODES = 2000
MAX_EXACT_NODES = 40
MAX_UNKNOWNS = 400


@dataclass(frozen=True)
class Place:
    """A graph under a normalisation: its adjacency, and the operator A of normal forms, both (n, n).

    `in_degrees` says that this is I - D + A, for an equation in L = D - A.
    """

    adjacency: np.ndarray
    operator: np.ndarray
    normalisation: Normalisation
    in_degrees: bool = False

    @classmethod
    def of(cls, graph: Any, normalisation: str, letters: Collection[str] = ()) -> Place:
        """The graph for an equation with these letters; raises NotApplicable for both A and L where L = D - A."""
        weights, record = dense_adjacency(graph), find_normalisation(normalisation)
        operator = dense_operator(weights, normalisation)
        in_degrees = record.has_degrees and "L" in letters
        if in_degrees and "A" in letters:
            raise NotApplicable(
                f"the equation has both A and L, but with the normalisation {normalisation} L = D - A; write it in A "
                "alone or in L alone, or choose another normalisation"
            )
        if in_degrees:
            operator = np.eye(len(weights)) - np.diag(weights.sum(axis=1)) + operator
        return cls(weights, operator, record, in_degrees)

    @property
    def has_modes(self) -> bool:
        """Whether the operator is known to have the eigenvectors of a symmetric matrix."""
        return is_symmetric(self.adjacency) and (self.normalisation.is_similar or is_symmetric(self.operator))

    def eccentricity(self) -> int:
        """The largest distance from a node of largest degree, or from the node farthest from it.

        0 where weights of either sign could cancel on the way.
        """
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import shortest_path

        between = self.operator * (1 - np.eye(len(self.operator)))
        if (between < 0).any():
            return 0
        links = csr_array(between != 0)
        start = int((between != 0).sum(axis=1).argmax())
        far = 0
        for _ in range(2):
            distance = shortest_path(links, unweighted=True, directed=False, indices=start)
            reached = np.where(np.isfinite(distance), distance, -1)
            far, start = max(far, int(reached.max())), int(reached.argmax())
        return far

    def eigenvalues(self) -> tuple[sp.Rational, ...]:
        """The distinct eigenvalues of L = I - A of an undirected graph, ascending."""
        if len(self.adjacency) > MAX_NODES:
            raise Undecided(f"the spectrum of a graph with more than {MAX_NODES} nodes is not computed")
        similar = dense_operator(self.adjacency, "symmetric") if self.normalisation.is_similar else self.operator
        values = np.sort(1 - np.linalg.eigvalsh(similar))
        firsts = values[np.concatenate([[True], np.diff(values) > EIGENVALUE_TOLERANCE])]
        return tuple(_fraction(float(value)) for value in firsts)

    def is_spectrum(self, eigenvalues: tuple[sp.Rational, ...]) -> bool:
        """Whether the eigenvalues are proved: (L - lam_1) ... (L - lam_m) = 0 in exact arithmetic."""
        size, is_similar = len(self.adjacency), self.normalisation.is_similar
        if size > MAX_EXACT_NODES or not (is_similar or self.normalisation.has_degrees):
            return False
        weights = np.array([[Fraction(float(x)) for x in row] for row in self.adjacency], dtype=object)
        sums = np.array([[sum(row)] for row in weights], dtype=object)
        identity = np.array([[Fraction(int(i == j)) for j in range(size)] for i in range(size)], dtype=object)
        if is_similar:  # to D^-1 A, whose entries are fractions
            laplacian = identity - weights / (sums + (sums == 0))
        else:
            laplacian = (sums if self.in_degrees else 1) * identity - weights
        product = identity
        for lam in eigenvalues:
            product = product @ (laplacian - Fraction(int(lam.p), int(lam.q)) * identity)
        return not product.any()


def _fraction(value: float) -> sp.Rational:
    exact = sp.Rational(value)
    simple = exact.limit_denominator(MAX_DENOMINATOR)
    return simple if abs(simple - exact) < EIGENVALUE_TOLERANCE else exact


def degree(structure: Structure) -> int:
    """The highest power of A in front of H or H0."""
    return max([*structure.generator, *structure.source], default=0)


def modal_form(structure: Structure, eigenvalues: tuple[sp.Rational, ...]) -> sp.Expr:
    """f at a node, in the components x_j of H and y_j of H0 in the eigenspaces."""
    parts = [[sp.Symbol(f"{name}[mode {j}]", real=True) for name in ("H", "H0")] for j in range(len(eigenvalues))]
    total = structure.constant + structure.reaction.xreplace({H: sp.Add(*(x for x, _ in parts))})
    for lam, (x, y) in zip(eigenvalues, parts, strict=True):
        total += _value(structure.generator, lam) * x + _value(structure.source, lam) * y
    return sp.expand(total)


def _value(coefficients: Mapping[int, sp.Expr], lam: sp.Rational) -> sp.Expr:
    return sp.Add(*(c * (1 - lam) ** k for k, c in coefficients.items()))


# ---------------------------------------------------------------------- any other system, measured
@dataclass(frozen=True)
class Measurement:
    """The Jacobian df/dtheta on a graph at random states, with the columns of each unknown."""

    jacobian: np.ndarray
    values: Mapping[str, np.ndarray]
    columns: Mapping[str, slice]

    @property
    def rank(self) -> int:
        return _rank(self.jacobian)

    def reveals_formula(self, formula: sp.Expr) -> bool:
        """Whether the gradient of a formula in the coefficients lies in the row space, entry by entry."""
        gradients = self._gradients(formula)
        scale = np.linalg.norm(self.jacobian, axis=1).max() / np.abs(gradients).max()
        return _rank(np.concatenate([self.jacobian, gradients * scale])) == self.rank

    def _gradients(self, formula: sp.Expr) -> np.ndarray:
        """Gradients (entries, unknowns) of a formula that holds for every channel, node or entry of a matrix."""
        names = sorted({name for x in formula.free_symbols for name in x.name.split("@")} - {"I"})
        shape = np.broadcast_shapes(*(self.values[name].shape for name in names))
        rows = []
        for index in np.ndindex(*shape):
            row = np.zeros(self.jacobian.shape[1])
            for name in names:
                values = self.values[name]
                position = tuple(
                    k if size > 1 else 0
                    for k, size in zip(index[len(index) - values.ndim :], values.shape, strict=True)
                )
                offset = int(np.ravel_multi_index(position, values.shape)) if values.ndim else 0
                row[self.columns[name].start + offset] += self._slope(formula, name, index)
            rows.append(row)
        return np.array(rows)

    def _slope(self, formula: sp.Expr, name: str, index: tuple[int, ...]) -> float:
        point = {}
        for x in formula.free_symbols:
            values = self.values.get(x.name, np.asarray(float(len(set(index)) < 2)))
            point[x] = float(
                np.broadcast_to(values, np.broadcast_shapes(values.shape, (1,) * len(index)))[index]
                if values.ndim
                else values
            )
        return float(sp.diff(formula, sp.Symbol(name)).subs(point))


def _rank(matrix: np.ndarray) -> int:
    sizes = np.linalg.svd(matrix, compute_uv=False) if matrix.size else np.zeros(1)
    return int((sizes > RANK_TOLERANCE * max(sizes[0], 1e-300)).sum()) if sizes[0] > 0 else 0


def measure(system: System, graph: Place, values: Mapping[str, np.ndarray], samples: int = 4) -> Measurement:
    """Central differences of f in every unknown, at random states."""
    generator = np.random.default_rng(0)
    nodes, channels = len(graph.operator), 2
    columns, start = {}, 0
    for name, value in values.items():
        columns[name] = slice(start, start + value.size)
        start += value.size
    if start > MAX_UNKNOWNS or nodes > MAX_NODES:
        raise Undecided(f"{start} unknowns on {nodes} nodes are too many to measure their rank")
    rows = []
    for _ in range(samples):
        given = {"A": graph.operator, **{n: generator.normal(size=(nodes, channels)) for n in ("H", "H0")}}
        given["M"] = generator.integers(0, 2, size=(nodes, 1)).astype(float)
        rows.append(np.stack([_difference(system, given, values, name, k) for name in values
                              for k in range(values[name].size)], axis=1))  # fmt: skip
    jacobian = np.concatenate(rows)
    return Measurement(jacobian[np.isfinite(jacobian).all(axis=1)], values, columns)


def _difference(
    system: System, given: Mapping[str, np.ndarray], values: Mapping[str, np.ndarray], name: str, entry: int
) -> np.ndarray:
    size = 1e-5
    ends = []
    for sign in (1, -1):
        moved = values[name].copy()
        moved.flat[entry] += sign * size
        with np.errstate(all="ignore"):
            value = dense.evaluate(system.expression, {**given, **values, name: moved})
        ends.append(np.broadcast_to(value, given["H"].shape).ravel())
    return (ends[0] - ends[1]) / (2 * size)


def unknown_values(system: System, point: Mapping[str, float], nodes: int, channels: int = 2) -> dict[str, np.ndarray]:
    """Values of the coefficients near a point: one number, or one per channel, node or pair of channels."""
    generator = np.random.default_rng(1)
    shapes = {Kind.SCALAR: (), Kind.CHANNEL: (channels,), Kind.NODE: (nodes, 1), Kind.MATRIX: (channels, channels)}
    values = {}
    for name, value in point.items():
        kind = system.letters[name]
        spread = 0.0 if kind is Kind.SCALAR else 0.01 * generator.random(size=shapes[kind])
        drawn = generator.normal(size=shapes[kind]) if kind is Kind.MATRIX else value * (1 + spread)
        values[name] = np.asarray(drawn, dtype=float)
    return values
