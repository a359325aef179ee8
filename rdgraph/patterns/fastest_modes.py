"""The lam that grows fastest: searched numerically, and proved to be the largest up to a small tolerance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import sympy as sp
from scipy.optimize import minimize_scalar

from rdgraph.patterns.bands import Band
from rdgraph.patterns.linearisation import Linearisation

#: Points of a band that are looked at, and how far the proved bound lies above what was found.
POINTS = 201
TOLERANCE = 1e-9
ROUNDS = 4


class Fastest(NamedTuple):
    """The fastest lam, its growth and frequency; with `is_proved` no lam grows faster by a part of more than 1e-9."""

    lam: float
    growth: float
    frequency: float
    is_proved: bool

    def __float__(self) -> float:
        return self.lam

    def __str__(self) -> str:
        turning = f", frequency {self.frequency:.6g}" if self.frequency > TOLERANCE * max(self.growth, 1.0) else ""
        proof = "" if self.is_proved else ", not proved to be the largest"
        return f"lam = {self.lam:.6g}, growth {self.growth:.6g}{turning}{proof}"


def fastest_mode(linearisation: Linearisation, bands: Sequence[Band], to: sp.Expr) -> Fastest | None:
    """The largest growth in the bands; None where there are none, or it has no largest value on an unbounded range.

    >>> from rdgraph.syntax.answer_symbols import lam
    >>> swift = Linearisation(sp.ImmutableMatrix([[lam - lam**2]]))
    >>> print(fastest_mode(swift, swift.bands(sp.Integer(2)).bands, sp.Integer(2)))
    lam = 0.5, growth 0.25
    """
    if not bands or any(not band.upper.is_finite for band in bands):
        return None
    place, growth = max((_best_in(linearisation, *band.ends) for band in bands), key=lambda pair: pair[1])
    is_proved = False
    for _ in range(ROUNDS):
        bound = sp.Rational(growth * (1 + TOLERANCE)) + sp.Rational(TOLERANCE) * sp.Rational(1, 1000)
        higher = linearisation.shifted(bound).bands(to)
        inside = [band for band in higher.bands if any(_overlap(band, own) for own in bands)]
        if not inside:
            is_proved = higher.is_sure
            break
        again, value = max((_best_in(linearisation, *band.ends) for band in inside), key=lambda pair: pair[1])
        if value <= growth:
            break
        place, growth = again, value
    return Fastest(place, growth, float(abs(linearisation.eigenvalues(place)[0].imag)), is_proved)


def _overlap(one: Band, other: Band) -> bool:
    return one.ends[0] < other.ends[1] and other.ends[0] < one.ends[1]


def _best_in(linearisation: Linearisation, lower: float, upper: float) -> tuple[float, float]:
    """The best of a grid, refined between its neighbours."""
    grid = np.linspace(lower, upper, POINTS)
    values = linearisation.eigenvalues(grid)[:, 0].real
    k = int(values.argmax())
    left, right = grid[max(k - 1, 0)], grid[min(k + 1, POINTS - 1)]
    found = minimize_scalar(
        lambda x: -float(linearisation.eigenvalues(x)[0].real), bounds=(left, right), method="bounded",
        options={"xatol": 1e-12 * max(1.0, upper)},
    )  # fmt: skip
    return (float(found.x), -float(found.fun)) if -found.fun > values[k] else (float(grid[k]), float(values[k]))
