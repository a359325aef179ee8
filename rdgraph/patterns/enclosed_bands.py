"""Bands of a matrix polynomial whose coefficients are known as balls: proved between enclosed ends.

Where a steady state has no rational coordinates, Hurwitz determinants are enclosed over intervals of lam. Positive ones
prove decay, a negative one proves growth, on the whole interval; the rest is halved until it is short.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import sympy as sp

from rdgraph.decisions.enclosure import enclose_at, precision
from rdgraph.errors import Undecided
from rdgraph.patterns.bands import Band
from rdgraph.patterns.half_planes import characteristic, hurwitz_determinants

#: Bits of the enclosures, how often an interval is halved, and how many intervals are looked at.
BITS = 192
HALVINGS = 46
MAX_CELLS = 20_000

Balls = Callable[[int], Mapping[sp.Basic, Any]]


class EnclosedGrowth:
    """The sign of the growth of a matrix in `letter` and other letters, which are given as balls."""

    def __init__(self, matrix: sp.Matrix, letter: sp.Symbol, balls: Balls) -> None:
        from flint import arb_poly

        coefficients = characteristic(matrix)
        tests = [sp.Poly(c, letter) for c in (*coefficients[1:], *hurwitz_determinants(coefficients))]
        with precision(BITS):
            given = balls(BITS)
            enclosed = [[enclose_at(c, given) for c in reversed(test.all_coeffs())] for test in tests]
            polynomials = [arb_poly(row) for row in enclosed]
            self._polynomials = [(p, p.derivative()) for p in polynomials]
        self._first_determinant = len(coefficients) - 1

    def sign(self, lower: sp.Rational, upper: sp.Rational) -> int | None:
        """1 or -1 where the growth is proved to be positive or negative on a whole interval, else None.

        >>> x, u = sp.symbols("x u")
        >>> from flint import arb
        >>> growth = EnclosedGrowth(sp.Matrix([[u - x]]), x, lambda bits: {u: arb(2).sqrt()})
        >>> [growth.sign(sp.Integer(low), sp.Integer(high)) for low, high in ((0, 1), (2, 3), (1, 2))]
        [1, -1, None]
        """
        with precision(BITS):
            place = enclose_at(lower, {}).union(enclose_at(upper, {}))
            values = [_value_over(p, slope, place) for p, slope in self._polynomials]
            if all(value > 0 for value in values[self._first_determinant :]):
                return -1
            return 1 if any(value < 0 for value in values) else None


def _value_over(polynomial: Any, slope: Any, place: Any) -> Any:
    """The values of a polynomial over a ball, by the mean value theorem: tighter than powers of the ball."""
    middle = place.mid()
    return polynomial(middle) + slope(place) * (place - middle)


def enclosed_bands(growth: EnclosedGrowth, to: sp.Expr) -> tuple[tuple[Band, ...], tuple[tuple[float, float], ...]]:
    """The bands in [0, to], and the short intervals on which nothing is proved and both sides agree."""
    if not to.is_finite:
        raise Undecided("bands on an unbounded range need rational coefficients; give a number as the range's end")
    cells = _cells(growth, sp.Rational(to))
    bands: list[Band] = []
    open_cells: list[tuple[float, float]] = []
    for i, (lower, upper, sign) in enumerate(cells):
        if sign == 1:
            before = cells[i - 1] if i else None
            gap = before[1] - before[0] if before and before[2] is None else sp.S.Zero
            after = cells[i + 1] if i + 1 < len(cells) else None
            slack = max(gap, after[1] - after[0] if after and after[2] is None else sp.S.Zero)
            bands.append(Band(lower, upper, lower == 0, upper == to, slack))
        elif sign is None:
            around = {cells[k][2] for k in (i - 1, i + 1) if 0 <= k < len(cells)}
            if len(around) == 1:
                open_cells.append((float(lower), float(upper)))
    return tuple(bands), tuple(open_cells)


def _cells(growth: EnclosedGrowth, to: sp.Rational) -> list[tuple[sp.Rational, sp.Rational, int | None]]:
    """[0, to] cut into intervals of one proved sign, or None; neighbours of one sign are joined."""
    waiting = [(to * k / 16, to * (k + 1) / 16) for k in reversed(range(16))]
    shortest = to / 2**HALVINGS
    cells: list[tuple[sp.Rational, sp.Rational, int | None]] = []
    seen = 0
    while waiting:
        lower, upper = waiting.pop()
        seen += 1
        sign = growth.sign(lower, upper)
        if sign is None and upper - lower > shortest and seen < MAX_CELLS:
            middle = (lower + upper) / 2
            waiting += [(middle, upper), (lower, middle)]
        elif cells and cells[-1][2] == sign:
            cells[-1] = (cells[-1][0], upper, sign)
        else:
            cells.append((lower, upper, sign))
    return cells
