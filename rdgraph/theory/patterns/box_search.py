"""All zeros of smooth equations in a box, proved by interval arithmetic (Krawczyk's operator).

A box on which an equation differs from zero holds no zero. With an approximate inverse Y of the Jacobian at the middle
m, every zero in the box X lies in K(X) = m - Y f(m) + (I - Y J(X)) (X - m), and where K(X) lies inside X there is
exactly one. Boxes that neither test decides are halved; boxes that remain undecided are reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sp
from flint import arb, arb_mat

from rdgraph.reals.budget import remaining
from rdgraph.reals.enclosure import NotEnclosed, enclose_at, precision

#: Bits, most boxes, the width below which a box stays undecided, seconds reserved for the rest of an answer, and the
#: fraction by which a box is widened before a zero in it is proved, so that zeros on the border of two boxes are found.
BITS = 160
MAX_BOXES = 4_000
SHORTEST = sp.Rational(1, 10**7)
RESERVED_SECONDS = 2.0
WIDENED = 0.05

Balls = tuple[Any, ...]


@dataclass(frozen=True)
class SearchResult:
    """Enclosures of exactly one zero each, and undecided boxes (centre and radius of every coordinate)."""

    zeros: tuple[Balls, ...]
    open_boxes: tuple[tuple[tuple[float, float], ...], ...]


def search_box(
    equations: Sequence[sp.Expr], letters: Sequence[sp.Symbol], lower: sp.Rational, upper: sp.Rational
) -> SearchResult:
    """The zeros with every coordinate between two numbers.

    >>> x = sp.Symbol("x")
    >>> found = search_box([2 * sp.tanh(x) - x], [x], sp.Integer(-5), sp.Integer(5))
    >>> [f"{abs(float(zero[0].mid())):.6f}" for zero in found.zeros], found.open_boxes
    (['1.915008', '0.000000', '1.915008'], ())
    """
    with precision(BITS):
        return _Search(equations, letters).run(lower, upper)


class _Search:
    def __init__(self, equations: Sequence[sp.Expr], letters: Sequence[sp.Symbol]) -> None:
        self.equations, self.letters = list(equations), list(letters)
        self.slopes = [[sp.diff(f, x) for x in letters] for f in equations]

    def run(self, lower: sp.Rational, upper: sp.Rational) -> SearchResult:
        whole = enclose_at(lower, {}).union(enclose_at(upper, {}))
        waiting: list[Balls] = [(whole,) * len(self.letters)]
        zeros: list[Balls] = []
        open_boxes: list[Balls] = []
        seen = 0
        while waiting:
            box = waiting.pop()
            seen += 1
            if not self._may_vanish(box):
                continue
            zero = self._proved_zero(box)
            if zero is not None:
                if all(x.overlaps(whole) for x in zero) and not any(_same(zero, other) for other in zeros):
                    zeros.append(zero)
                continue
            smaller = self._contracted(box)
            if smaller is None:
                continue
            if max(_width(x) for x in smaller) < SHORTEST or seen > MAX_BOXES or remaining() < RESERVED_SECONDS:
                open_boxes.append(smaller)
            else:
                waiting += _halves(smaller)
        zeros.sort(key=lambda zero: [float(x.mid()) for x in zero])
        unsettled = [
            box for box in open_boxes if not any(all(a.contains(b) for a, b in zip(z, box, strict=True)) for z in zeros)
        ]
        return SearchResult(tuple(zeros), tuple(tuple((float(x.mid()), float(x.rad())) for x in b) for b in unsettled))

    def _may_vanish(self, box: Balls) -> bool:
        given = dict(zip(self.letters, box, strict=True))
        try:
            return not any(_differs(enclose_at(f, given)) for f in self.equations)
        except NotEnclosed:
            return True

    def _krawczyk(self, box: Balls) -> Balls | None:
        """K(box); None where the Jacobian is singular or an expression has no enclosure."""
        middle = [x.mid() for x in box]
        here, there = (dict(zip(self.letters, point, strict=True)) for point in (middle, box))
        try:
            slope = arb_mat([[enclose_at(d, here) for d in row] for row in self.slopes])
            inverse = slope.inv().mid()
            value = arb_mat([[enclose_at(f, here)] for f in self.equations])
            slopes = arb_mat([[enclose_at(d, there) for d in row] for row in self.slopes])
        except (NotEnclosed, ZeroDivisionError):
            return None
        size = len(box)
        unit = arb_mat([[int(i == j) for j in range(size)] for i in range(size)])
        offset = arb_mat([[x - m] for x, m in zip(box, middle, strict=True)])
        moved = arb_mat([[m] for m in middle]) - inverse * value + (unit - inverse * slopes) * offset
        image = tuple(moved[i, 0] for i in range(size))
        return image if all(x.is_finite() for x in image) else None

    def _proved_zero(self, box: Balls) -> Balls | None:
        """A small enclosure of the only zero in a slightly widened box; None if none is proved."""
        spans = [(x.mid(), x.rad() * (1 + WIDENED) + _tiny()) for x in box]
        wide = tuple((middle - radius).union(middle + radius) for middle, radius in spans)
        image = self._krawczyk(wide)
        if image is None or not all(x.contains_interior(k) for x, k in zip(wide, image, strict=True)):
            return None
        for _ in range(12):
            again = self._krawczyk(image)
            if again is None or not all(x.overlaps(k) for x, k in zip(image, again, strict=True)):
                break
            image = tuple(x.intersection(k) for x, k in zip(image, again, strict=True))
        return image

    def _contracted(self, box: Balls) -> Balls | None:
        """The part of a box that may contain zeros; None where there is none."""
        image = self._krawczyk(box)
        if image is None:
            return box
        if not all(x.overlaps(k) for x, k in zip(box, image, strict=True)):
            return None
        return tuple(x.intersection(k) for x, k in zip(box, image, strict=True))


def _tiny() -> Any:
    return arb(2) ** -100


def _differs(ball: Any) -> bool:
    """Whether a ball is proved not to contain zero; a ball without finite bounds proves nothing."""
    return bool(ball > 0 or ball < 0)


def _width(ball: Any) -> sp.Rational:
    return sp.Rational(float(ball.rad()) * 2)


def _halves(box: Balls) -> list[Balls]:
    """Both halves along the widest coordinate, cut slightly off centre, where symmetric equations often vanish."""
    i = max(range(len(box)), key=lambda k: float(box[k].rad()))
    low, high = box[i].lower(), box[i].upper()
    cut = (low * 15 + high * 17) / 32
    return [(*box[:i], cut.union(high), *box[i + 1 :]), (*box[:i], low.union(cut), *box[i + 1 :])]


def _same(zero: Balls, other: Balls) -> bool:
    return all(a.overlaps(b) for a, b in zip(zero, other, strict=True))
