"""The least and the largest value of a function of one variable on the real line, by interval arithmetic.

Where the extreme is attained at a closed form, or approached far out, it is exact; elsewhere it is a decimal number of
five digits, rounded to the safe side. Jumps at kinks count with both their sides.
"""

from __future__ import annotations

import heapq
import itertools
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import sympy as sp

from rdgraph.errors import Undecided
from rdgraph.reals.budget import remaining, spend
from rdgraph.reals.enclosure import NotEnclosed, enclose_at, precision, sign_of
from rdgraph.reals.line_pieces import (
    BITS,
    CONSTANT,
    Neighbourhood,
    Piece,
    Tail,
    in_factors,
    neighbourhood,
    pieces,
    rational,
    shorter,
)
from rdgraph.reals.zeros import period
from rdgraph.vocabulary.functions import at_zero

#: Most intervals for one piece (an extreme that can be enclosed takes about a hundred), for the first of two forms of a
#: formula, and the relative width at which an enclosure is close enough.
MAX_CELLS, FEW_CELLS = 600, 150
CLOSENESS = sp.Rational(1, 10**8)
#: Largest ratio of a reported bound to the largest value that was seen.
LOOSENESS = 3
#: How many more intervals are cut where a value in closed form is as close.
PATIENCE = 40
#: Digits of a bound, and its decimals at most; a smallest bound of either sign is one unit of the last decimal.
DIGITS, DECIMALS = 5, 7
#: Fractions with a smaller denominator are read as they are.
LONG_DENOMINATOR = 500
RESERVED_SECONDS = 1.5
#: Effort of one cell, in seconds.
CELL_COST = 0.0005
#: The numbers from which on a tail is tried: far enough out to be flat.
STARTS = tuple(map(sp.Integer, (32, 100, 1000)))


@dataclass(frozen=True)
class Extreme:
    """A supremum: its value if `exact`, else a number above it; infinite where there is none."""

    value: sp.Expr
    exact: bool


def supremum(formula: sp.Expr, letter: sp.Symbol) -> Extreme:
    """The least upper bound of a function of one letter, numbers as coefficients.

    Raises Undecided where nothing is known far out, a kink is not found, or time runs out.

    >>> x = sp.Symbol("x", real=True)
    >>> supremum(sp.exp(-(x**2)) * (1 - 2 * x**2), x), supremum(sp.diff(x * sp.tanh(x), x), x).value
    (Extreme(value=1, exact=True), 11997/10000)
    """
    factored = in_factors(formula)
    if sum(part.has(letter) for part in sp.Mul.make_args(factored)) < 2:
        return _supremum(shorter(formula), letter, MAX_CELLS)
    first = _tried(shorter(formula), letter, FEW_CELLS)
    if first is not None and first.exact:
        return first
    second = _tried(factored, letter, MAX_CELLS)  # parts that cancel in a sum are far apart in intervals
    if second is not None and (first is None or second.exact or second.value <= first.value):
        return second
    return _supremum(shorter(formula), letter, MAX_CELLS)


def _tried(formula: sp.Expr, letter: sp.Symbol, cells: int) -> Extreme | None:
    with suppress(Undecided):
        return _supremum(formula, letter, cells)
    return None


def _supremum(formula: sp.Expr, letter: sp.Symbol, cells: int) -> Extreme:
    with precision(BITS):
        turn = period(formula, letter)
        whole = pieces(formula, letter) if turn is None else [Piece(formula, letter, sp.S.Zero, turn)]
        return _largest([_Climb(piece, cells).run() for piece in whole])


def infimum(formula: sp.Expr, letter: sp.Symbol) -> Extreme:
    """The largest lower bound; otherwise as `supremum`."""
    found = supremum(-formula, letter)
    return Extreme(-found.value, found.exact)


@dataclass(frozen=True)
class _Height:
    """What is known of one stretch: suprema in closed form, and an upper bound of everything else, None for nothing.

    `reached` is the largest value that was seen, below which no supremum lies; None where none was looked at.
    """

    exact: tuple[sp.Expr, ...] = ()
    above: Any = None
    reached: Any = None


def _largest(heights: list[_Height]) -> Extreme:
    exact = [value for height in heights for value in height.exact]
    if sp.oo in exact:
        return Extreme(sp.oo, True)
    rest = [height.above for height in heights if height.above is not None]
    if not exact and not rest:
        raise Undecided("the largest value is unknown")
    if exact:
        best = exact[0]
        for value in exact[1:]:
            best = value if sign_of(value - best) == 1 else best
        ball = enclose_at(best, {})
        if all(above < ball for above in rest) and all(_is_at_most(value, best) for value in exact):
            return Extreme(best, True)
        rest.append(ball.upper())
        rest += [enclose_at(value, {}).upper() for value in exact]
    _refuse_loose(rest, [height.reached for height in heights if height.reached is not None])
    return Extreme(max(map(_decimal_above, rest)), False)


def _refuse_loose(above: list[Any], reached: list[Any]) -> None:
    """Bounds far above everything that was seen say nothing: parts cancel that intervals keep apart."""
    if not reached:
        return
    seen = max(reached, key=float)
    if any(not ball - seen < LOOSENESS * (1 + abs(seen)) for ball in above):
        raise Undecided("the largest value is not enclosed closely")


def _is_at_most(value: sp.Expr, best: sp.Expr) -> bool:
    return value == best or sign_of(best - value) == 1 or sp.simplify(best - value) == 0


def _decimal_above(ball: Any) -> sp.Rational:
    """A short decimal number that is larger than a ball, with room for the rounding of floating-point numbers."""
    upper = rational(ball.upper())
    value = round_up(upper)
    return value if value - upper > sp.Rational(1, 10**12) * (1 + abs(upper)) else round_up(value + _unit(value) / 2)


def round_up(number: sp.Rational) -> sp.Rational:
    """The least decimal number of `DIGITS` digits, and of `DECIMALS` decimals at most, that is not smaller.

    >>> round_up(sp.Rational("1.19967864")), round_up(sp.Rational("-0.98765432")), round_up(sp.Rational(1, 10**30))
    (11997/10000, -19753/20000, 1/10000000)
    """
    unit = _unit(number)
    return sp.ceiling(number / unit) * unit


def _unit(number: sp.Rational) -> sp.Rational:
    """What the last of the digits of a number counts."""
    places, size = DECIMALS, abs(number)
    while places > 0 and size * sp.Integer(10) ** places >= 10**DIGITS:
        places -= 1
    return sp.Rational(1, 10**places)


@dataclass
class _Climb:
    """The largest value of one smooth piece, from at most `cells` intervals."""

    piece: Piece
    cells: int

    def run(self) -> _Height:
        if not self.piece.formula.has(self.piece.letter):
            return _Height((self.piece.formula,))
        exact: list[sp.Expr] = []
        above: list[Any] = []
        ends = []
        for end, way in ((self.piece.lower, -1), (self.piece.upper, 1)):
            if end in (sp.oo, -sp.oo):
                start, height = self._far(way)
                exact += height.exact
                above += [] if height.above is None else [height.above]
                ends.append(way * start)
            else:
                exact.append(self._value(end))
                ball = enclose_at(end, {})
                ends.append(rational(ball.lower() if way < 0 else ball.upper()))
        if sp.oo in exact:
            return _Height((sp.oo,))
        reached = None
        if ends[0] < ends[1]:
            tops = self._tops()
            exact += [self._value(top.place) for top in tops]
            found, reached = self._bounded(ends[0], ends[1], tops, exact, above)
            above += [] if found is None else [found]
        top = None
        for ball in above:
            top = ball if top is None or ball.upper() > top.upper() else top
        return _Height(tuple(exact), top, reached)

    def _value(self, place: sp.Expr) -> sp.Expr:
        return at_zero(self.piece.formula.xreplace({self.piece.letter: place}))

    # ------------------------------------------------------------------ far out
    def _far(self, way: int) -> tuple[sp.Rational, _Height]:
        """From where on a tail is known, and its supremum: infinite, a limit from below, or a bound."""
        far = self.piece.tail(way, STARTS)
        if far is None:
            raise Undecided(f"{self.piece.formula} is not enclosed far out")
        if far.grows:
            if far.sign is None:
                raise Undecided(f"the sign of {self.piece.formula} is not known far out")
            return far.start, _Height((sp.oo,)) if far.sign > 0 else _Height(above=self._first(far))
        limit = _limit(far)
        if limit is not None and Tail({s: b for s, b in far.terms.items() if s != CONSTANT}, far.start).sign in (-1, 0):
            return far.start, _Height((limit,))
        try:
            return far.start, _Height(above=far.values.upper())
        except NotEnclosed as problem:
            raise Undecided(str(problem)) from None

    def _first(self, far: Tail) -> Any:
        """A bound of a tail that falls to minus infinity."""
        try:
            return far.farthest().upper()
        except NotEnclosed as problem:
            raise Undecided(str(problem)) from None

    # ------------------------------------------------------------------ in between
    def _tops(self) -> list[Neighbourhood]:
        """Closed forms at which the slope vanishes and falls, and ends from which on it does: nothing near is above."""
        found = []
        for place in self.piece.closed_zeros(1):
            around = None if is_long(place) else neighbourhood(self.piece, place, first=1)
            if around is not None and self._is_top(around):
                found.append(around)
        for end, inward in ((self.piece.lower, 1), (self.piece.upper, -1)):
            if end not in (sp.oo, -sp.oo) and not any(top.place == end for top in found):
                found += self._end(end, inward)
        return sorted(found, key=lambda n: n.ends)

    def _end(self, end: sp.Expr, inward: int) -> list[Neighbourhood]:
        """An end of the piece from which on the function falls, as far as that is seen."""
        for exponent in range(0, 24, 2):
            width = sp.Rational(1, 2**exponent)
            reach = enclose_at(end, {}) + inward * enclose_at(sp.S.Zero, {}).union(enclose_at(width, {}))
            if inward * self.piece.over(reach, 1) < 0:
                return [Neighbourhood(end, width, 1)]
        return []

    def _is_top(self, around: Neighbourhood) -> bool:
        """Whether the slope is positive before a place and negative after it, as far as the piece goes."""
        before, after = (self.piece.over(enclose_at(end, {}), 1) for end in around.ends)
        starts, ends = around.place == self.piece.lower, around.place == self.piece.upper
        return bool((starts or before > 0) and (ends or after < 0))

    def _bounded(
        self, lower: sp.Rational, upper: sp.Rational, tops: list[Neighbourhood], exact: list[sp.Expr], far: list[Any]
    ) -> tuple[Any, Any]:
        """An upper bound outside the neighbourhoods of exact tops, as close as others ask for; the largest seen."""
        waiting = [(a, b) for a, b in _gaps(lower, upper, tops) if a < b]
        if not waiting:
            return None, None
        known = [enclose_at(value, {}).lower() for value in exact]
        lowest = None
        for ball in known:
            lowest = ball if lowest is None or ball > lowest else lowest
        order = itertools.count()
        heap: list[tuple[float, int, sp.Rational, sp.Rational, Any]] = []
        reached = lowest

        def push(a: sp.Rational, b: sp.Rational) -> None:
            nonlocal reached
            place = enclose_at(a, {}).union(enclose_at(b, {}))
            values, slope = self.piece.values(place)
            here = [self.piece.over(enclose_at(end, {})) for end in (a, b)]
            top = values.upper()
            if slope > 0 or slope < 0:
                top = here[slope > 0].upper()
            for ball in here:
                if ball.is_finite() and (reached is None or ball.lower() > reached):
                    reached = ball.lower()
            heapq.heappush(heap, (-float(top) if top.is_finite() else -float("inf"), next(order), a, b, top))

        for a, b in waiting:
            push(a, b)
        patience = PATIENCE
        for _ in range(self.cells):
            _, _, a, b, top = heap[0]
            if any(top < other for other in (*far, *([] if lowest is None else [lowest]))):
                break
            # What may reach no higher than a value in closed form is cut a little more: below it, that is the supremum.
            close = (
                reached is not None
                and top.is_finite()
                and top - reached < enclose_at(CLOSENESS, {}) * (1 + abs(reached))
            )
            if close and lowest is not None and not reached > lowest and patience:
                close, patience = False, patience - 1
            spend(CELL_COST)
            if close or remaining() < RESERVED_SECONDS:
                break
            heapq.heappop(heap)
            cut = a + (b - a) * sp.Rational(17, 32)
            push(a, cut)
            push(cut, b)
        top = heap[0][4]
        if not top.is_finite():
            raise Undecided(f"the values of {self.piece.formula} are not enclosed")
        return top, reached


def _gaps(lower: sp.Rational, upper: sp.Rational, tops: list[Neighbourhood]) -> list[tuple[sp.Rational, sp.Rational]]:
    """What is left of an interval without neighbourhoods."""
    found = []
    start = lower
    for top in tops:
        if start < min(top.ends[0], upper):
            found.append((start, min(top.ends[0], upper)))
        start = max(start, top.ends[1])
    return [*found, (start, upper)] if start < upper else found


def _limit(far: Tail) -> sp.Rational | None:
    """The limit of a tail, where it is a number that is known exactly."""
    ball = far.terms.get(CONSTANT)
    if ball is None:
        return sp.S.Zero
    return rational(ball) if ball.is_exact() else None


def is_long(number: sp.Expr) -> bool:
    """Whether a closed form is too long to read: roots of large polynomials, or roots within roots.

    >>> is_long(3 * sp.sqrt(3) / 8), is_long(sp.sqrt(2 + sp.sqrt(11)))
    (False, True)
    """
    roots = {power for power in number.atoms(sp.Pow) if power.is_number and not power.exp.is_Integer}
    return number.has(sp.CRootOf) or any(root.base.has(*roots) for root in roots)


def is_decimal(expression: sp.Expr) -> bool:
    """Whether numbers with several decimals, such as bounds, stand in an expression."""
    return any(_has_decimals(number) for number in expression.atoms(sp.Rational))


def _has_decimals(number: sp.Rational) -> bool:
    """Whether a fraction is easier to read as a decimal number; powers of two below come from exact answers."""
    return bool(
        number.q >= LONG_DENOMINATOR and 10 ** (DECIMALS + 1) % number.q == 0 and number.q & (number.q - 1) != 0
    )


def in_decimals(expression: sp.Expr) -> sp.Expr:
    """An expression whose bounds are written as decimal numbers.

    >>> in_decimals(sp.Symbol("a") + sp.Rational(11997, 10000)), in_decimals(sp.Symbol("a") * sp.Rational(9, 8))
    (a + 1.1997, 9*a/8)
    """
    return expression.xreplace({n: sp.Float(_digits(n), 15) for n in expression.atoms(sp.Rational) if _has_decimals(n)})


def _digits(number: sp.Rational) -> str:
    """A number with finitely many decimals, in full."""
    scaled = int(abs(number) * 10 ** (DECIMALS + 1))
    whole, part = divmod(scaled, 10 ** (DECIMALS + 1))
    return f"{'-' if number < 0 else ''}{whole}.{part:0{DECIMALS + 1}d}"
