"""Thresholds on the modes of one graph, in double precision.

Every mode grows on some intervals of the coefficient; their union, where the constant mode decays, is where patterns
form.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import sympy as sp

from rdgraph.errors import Undecided
from rdgraph.patterns.dispersion import ANTI, HOPF, MARGINAL, STABLE, TURING, UNSTABLE, WAVE
from rdgraph.patterns.half_planes import characteristic, hurwitz_determinants
from rdgraph.patterns.kinetics import Kinetics
from rdgraph.patterns.mode_spectra import ModeSpectrum
from rdgraph.patterns.rate_kinks import check_slopes
from rdgraph.patterns.state_branches import StateBranch
from rdgraph.syntax.answer_symbols import lam

#: What counts as zero: eigenvalues of the constant mode, growth, relative distances of two values.
TOLERANCE = 1e-9
#: Values that are tried where the eigenvalues of L are complex.
GRID = np.logspace(-4, 4, 401)

Interval = tuple[float, float]
Change = tuple[float, float, str, str]


class _Family:
    """P(lam; c) for numbers lam and c."""

    def __init__(self, kinetics: Kinetics, letter: sp.Symbol, branch: StateBranch) -> None:
        if branch.index is not None:
            raise Undecided("the steady state has no closed form in the coefficient; ask without an operator")
        state = {} if branch.state is None else dict(branch.state.point)
        matrix = kinetics.matrix.xreplace(state)
        check_slopes(kinetics, branch.state, matrix)
        self.size = int(matrix.shape[0])
        self._entries = sp.lambdify((lam, letter), [sp.sympify(x) for x in matrix], "numpy")
        tests = [
            sp.fraction(sp.together(t)) for t in hurwitz_determinants(characteristic(branch.matrix(kinetics)))[-2:]
        ]
        numbers = {x: sp.N(v, 30) for x, v in state.items()}
        parts = [sp.Poly(part.xreplace(numbers), letter) for pair in tests for part in pair if part.has(letter)]
        self._polynomials = [sp.lambdify(lam, [sp.sympify(c) for c in p.all_coeffs()], "numpy") for p in parts]

    def matrices(self, modes: Any, values: Any) -> np.ndarray:
        """(*shape, size, size)"""
        modes, values = np.broadcast_arrays(modes, values)
        entries = [np.broadcast_to(np.asarray(e), modes.shape) for e in self._entries(modes, values)]
        return np.stack(entries, axis=-1).reshape(*modes.shape, self.size, self.size)

    def eigenvalues(self, modes: Any, values: Any) -> np.ndarray:
        """(*shape, size), the one with the largest real part first."""
        found = np.linalg.eigvals(self.matrices(modes, values)).astype(complex)
        return np.take_along_axis(found, np.argsort(-found.real, axis=-1, kind="stable"), axis=-1)

    def growth(self, modes: Any, values: Any) -> np.ndarray:
        return self.eigenvalues(modes, values)[..., 0].real

    def changes(self, mode: Any, limits: Interval) -> list[float]:
        """The values at which the growth of one mode may change its sign, ascending."""
        places: list[float] = []
        if np.iscomplexobj(mode):
            signs = self.growth(mode, GRID) > 0
            switches = np.flatnonzero(signs[1:] != signs[:-1])
            places += [_bisected(lambda c: float(self.growth(mode, c)), GRID[k], GRID[k + 1]) for k in switches]
        else:
            for polynomial in self._polynomials:
                powers = np.trim_zeros(np.array([float(c) for c in polynomial(float(mode))]), "f")
                roots = np.roots(powers)
                real = np.abs(roots.imag) <= TOLERANCE * np.maximum(np.abs(roots), 1e-300)
                places += [float(x) for x in roots[real].real]
        return sorted(x for x in set(places) if limits[0] < x < limits[1])

    def growing(self, mode: Any, limits: Interval) -> list[Interval]:
        """The intervals of the coefficient on which one mode grows."""
        edges = [limits[0], *self.changes(mode, limits), limits[1]]
        pairs = list(itertools.pairwise(edges))
        values = self.growth(mode, np.array([_inside(*pair) for pair in pairs]))
        return [pair for pair, value in zip(pairs, values, strict=True) if value > TOLERANCE * 1e-3]


def mode_changes(
    kinetics: Kinetics, letter: sp.Symbol, branch: StateBranch, spectrum: ModeSpectrum, limits: tuple[sp.Expr, sp.Expr]
) -> tuple[list[Change], tuple[tuple[sp.Expr, sp.Expr, str], ...]]:
    """Thresholds (value, mode, kind below, kind above), and the regions between them."""
    family = _Family(kinetics, letter, branch)
    bounds = (float(limits[0]), float(limits[1]))
    modes = spectrum.eigenvalues
    moving = modes[np.abs(modes) > TOLERANCE * max(1.0, float(np.abs(modes).max()))]
    grown = [(low, high, mode) for mode in moving for low, high in family.growing(mode, bounds)]
    union = _merged([(low, high) for low, high, _ in grown])
    decaying = _complement(_merged(family.growing(0.0, bounds)), bounds)
    pattern = [pair for pair in _intersections(union, decaying) if pair[1] > pair[0]]
    edges = sorted({bounds[0], bounds[1], *(x for pair in [*pattern, *union, *decaying] for x in pair)})
    kinds = [_kind(family, moving, _inside(*pair)) for pair in itertools.pairwise(edges)]
    changes: list[Change] = []
    regions: list[tuple[sp.Expr, sp.Expr, str]] = []
    for (low, high), kind in zip(itertools.pairwise(edges), kinds, strict=True):
        if regions and regions[-1][2] == kind:
            regions[-1] = (regions[-1][0], _number(high), kind)
            continue
        if regions and (regions[-1][2] in (TURING, WAVE)) != (kind in (TURING, WAVE)):
            mode = moving[int(family.growth(moving, low).argmax())]
            at_rest = {regions[-1][2], kind} & {STABLE, MARGINAL, ANTI}
            changes.append((low, float(mode.real) if at_rest else 0.0, regions[-1][2], kind))
        regions.append((_number(low), _number(high), kind))
    return changes, tuple(regions)


def _kind(family: _Family, modes: np.ndarray, value: float) -> str:
    at_zero = family.eigenvalues(0.0, value)
    growing = int((at_zero.real > TOLERANCE).sum())
    if growing:
        return HOPF if growing % 2 == 0 else UNSTABLE
    found = family.eigenvalues(modes, value)
    best = found[int(found[:, 0].real.argmax()), 0]
    if best.real <= 0:
        return STABLE if at_zero[0].real < -TOLERANCE else MARGINAL
    alone = family.matrices(modes, value) - family.matrices(0.0, value)
    if np.linalg.eigvals(alone).real.max() > TOLERANCE:
        return ANTI
    return WAVE if abs(best.imag) > TOLERANCE * abs(best) else TURING


def _inside(low: float, high: float) -> float:
    if np.isinf(low) and np.isinf(high):
        return 0.0
    if np.isinf(high):
        return 2 * low + 1 if low >= 0 else low / 2 + 1
    if np.isinf(low):
        return 2 * high - 1 if high <= 0 else high / 2 - 1
    return (low + high) / 2


def _merged(intervals: list[Interval]) -> list[Interval]:
    merged: list[Interval] = []
    for low, high in sorted(intervals):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return merged


def _complement(intervals: list[Interval], limits: Interval) -> list[Interval]:
    edges = [limits[0], *(x for pair in intervals for x in pair), limits[1]]
    return [(edges[k], edges[k + 1]) for k in range(0, len(edges), 2) if edges[k + 1] > edges[k]]


def _intersections(left: list[Interval], right: list[Interval]) -> list[Interval]:
    return [(max(a, c), min(b, d)) for a, b in left for c, d in right if max(a, c) < min(b, d)]


def _bisected(function: Callable[[float], float], low: float, high: float) -> float:
    sign = function(low) > 0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if (function(middle) > 0) == sign else (low, middle)
    return (low + high) / 2


def _number(value: float) -> sp.Expr:
    return sp.oo if value == np.inf else -sp.oo if value == -np.inf else sp.Float(value, 17)
