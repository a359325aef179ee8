"""The real line cut at the kinks of a function: smooth pieces with enclosures of values and slopes, and two tails."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import sympy as sp

from rdgraph.decisions.budget import limited
from rdgraph.decisions.closed_zeros import zeros
from rdgraph.decisions.enclosure import NotEnclosed, enclose_at, make_enclosure, precision, sign_of
from rdgraph.decisions.rewriting import outermost
from rdgraph.decisions.tails import Tail, tail
from rdgraph.errors import Undecided
from rdgraph.syntax.functions import at_zero, record_of

#: Bits of the enclosures, the numbers from which a tail is tried, and the number of kinks that are cut at.
BITS = 160
STARTS = tuple(map(sp.Integer, (2, 8, 32, 100, 1000)))
MAX_KINKS = 6
#: Seconds for closed forms of zeros.
CLOSED_SECONDS = 1.0


@dataclass(frozen=True)
class Piece:
    """A function that is smooth on [lower, upper], ends that are rational or closed forms, infinite ones included."""

    formula: sp.Expr
    letter: sp.Symbol
    lower: sp.Expr
    upper: sp.Expr
    _slopes: dict[int, sp.Expr] = field(default_factory=dict, compare=False)
    _enclosures: dict[int, Callable[[Any], Any]] = field(default_factory=dict, compare=False, repr=False)

    def derivative(self, order: int) -> sp.Expr:
        """The derivative of an order, the function itself for zero."""
        if order not in self._slopes:
            previous = self.derivative(order - 1) if order else self.formula
            self._slopes[order] = shorter(sp.diff(previous, self.letter)) if order else previous
        return self._slopes[order]

    def over(self, place: Any, order: int = 0) -> Any:
        """A ball with the values, or those of a derivative, over a ball; the whole line where there is none."""
        from flint import arb

        if order not in self._enclosures:
            self._enclosures[order] = make_enclosure(self.derivative(order), self.letter)
        try:
            return self._enclosures[order](place)
        except NotEnclosed:
            return arb(0, "inf")

    def values(self, place: Any) -> tuple[Any, Any]:
        """Balls with the values and the slopes over a ball; the values by the mean value theorem too."""
        slope = self.over(place, 1)
        middle = place.mid()
        direct, mean = self.over(place), self.over(middle) + slope * (place - middle)
        if not mean.is_finite():
            return direct, slope
        return (direct.intersection(mean) if direct.is_finite() else mean), slope

    def sign_at(self, place: sp.Expr) -> int | None:
        """The sign at a number, None where it cannot be told."""
        value = at_zero(self.formula.xreplace({self.letter: place}))
        return 0 if value == 0 else sign_of(value)

    def tail(self, way: int, starts: tuple[sp.Rational, ...] = STARTS) -> Tail | None:
        """The piece far out in a direction, from the first number on at which its sign is known; in x or in -x."""
        found = None
        for start in starts:
            try:
                found = tail(self.formula.xreplace({self.letter: way * self.letter}), self.letter, start)
            except NotEnclosed:
                continue
            if found.sign is not None:
                return found
        return found

    def closed_zeros(self, order: int = 0) -> list[sp.Expr]:
        """Numbers that may be zeros of the function or a derivative: closed forms found in time, zero, and the ends."""
        found: list[sp.Expr] = []
        with suppress(Undecided, NotImplementedError, sp.PolynomialError):
            limited(CLOSED_SECONDS, self._collect_zeros, self.derivative(order), found)
        ends = [end for end in (self.lower, self.upper) if end not in (sp.oo, -sp.oo)]
        numbers = [z for z in dict.fromkeys([sp.S.Zero, *ends, *found]) if z.is_number and z.is_real]
        return [z for z in numbers if not is_before(z, self.lower) and not is_before(self.upper, z)]

    def _collect_zeros(self, formula: sp.Expr, found: list[sp.Expr]) -> None:
        for factor in sp.Mul.make_args(sp.factor_terms(formula)):
            if factor.has(self.letter):
                rational_one = factor.is_rational_function(self.letter)
                found += zeros(sp.fraction(sp.together(factor))[0] if rational_one else factor, self.letter)


def shorter(formula: sp.Expr) -> sp.Expr:
    """The shorter of a formula and its form over one denominator: fewer parts, tighter enclosures."""
    if not any(power.exp.is_negative for power in formula.atoms(sp.Pow)):
        return formula
    top, bottom = sp.fraction(sp.together(formula))
    joined = sp.factor_terms(sp.expand(top)) / bottom
    return joined if joined.count_ops() < formula.count_ops() else formula


def in_factors(formula: sp.Expr) -> sp.Expr:
    """A polynomial in letters and function values with rational coefficients in factors, anything else as it is.

    >>> x = sp.Symbol("x", real=True)
    >>> in_factors(sp.expand((1 + x**4) * (1 - sp.tanh(x) ** 2)))
    -(x**4 + 1)*(tanh(x) - 1)*(tanh(x) + 1)
    """
    values = sorted((*outermost(formula.atoms(sp.Function)), *formula.free_symbols), key=str)
    try:
        polynomial = sp.Poly(formula, *values, domain=sp.QQ)
    except (sp.PolynomialError, sp.CoercionFailed):  # roots, quotients, or other numbers
        return formula
    number, factors = polynomial.factor_list()
    return sp.Mul(number, *(factor.as_expr() ** times for factor, times in factors))


def pieces(formula: sp.Expr, letter: sp.Symbol) -> list[Piece]:
    """The smooth pieces of a function of one letter without others, from left to right.

    Raises Undecided where a kink is not found in closed form.

    >>> x = sp.Symbol("x", real=True)
    >>> [(p.formula, p.lower, p.upper) for p in pieces(x * abs(1 - x), x)]
    [(x*(1 - x), -oo, 1), (x*(x - 1), 1, oo)]
    """
    return list(_Cutter(letter).cut(formula, -sp.oo, sp.oo))


@dataclass(frozen=True)
class _Cutter:
    letter: sp.Symbol

    def cut(self, formula: sp.Expr, lower: sp.Expr, upper: sp.Expr, depth: int = 0) -> Iterator[Piece]:
        """The pieces of one stretch of the line; the innermost kink first."""
        kinks = [c for c in formula.atoms(sp.Function) if c.has(self.letter) and _is_kinked(c)]
        if not kinks:
            yield Piece(formula, self.letter, lower, upper)
            return
        if depth > MAX_KINKS:
            raise Undecided("too many kinks")
        kink = min(kinks, key=lambda c: (c.args[0].count_ops(), str(c)))
        ends = [lower, *self._places(kink.args[0], lower, upper), upper]
        for left, right in itertools.pairwise(ends):
            inside = between(left, right)
            sign = Piece(kink.args[0], self.letter, left, right).sign_at(inside)
            if sign not in (1, -1):
                raise Undecided(f"the sign of {kink.args[0]} is not known at {inside}")
            yield from self.cut(formula.xreplace({kink: _side(kink, sign)}), left, right, depth + 1)

    def _places(self, argument: sp.Expr, lower: sp.Expr, upper: sp.Expr) -> list[sp.Expr]:
        """The zeros of an argument between two numbers; each is proved to be one, and there to be no other."""
        found = [z for z in zeros(argument, self.letter) if z.is_number]
        if not argument.is_polynomial(self.letter):
            raise Undecided(f"a kink where {argument} = 0")
        if len(found) < _count(argument, self.letter):
            raise Undecided(f"a kink where {argument} = 0")
        inside = [z for z in found if is_before(lower, z) and is_before(z, upper)]
        return sorted(inside, key=lambda z: float(z))


def _count(polynomial: sp.Expr, letter: sp.Symbol) -> int:
    try:
        return len(set(sp.real_roots(sp.Poly(polynomial, letter))))
    except (NotImplementedError, sp.PolynomialError):
        raise Undecided(f"the zeros of {polynomial} are not known") from None


def _is_kinked(call: sp.Expr) -> bool:
    record = record_of(call)
    return isinstance(call, sp.sign | sp.Heaviside) or (record is not None and record.pieces is not None)


def _side(call: sp.Expr, sign: int) -> sp.Expr:
    """What a function with a kink at zero is on one side of it."""
    if isinstance(call, sp.sign | sp.Heaviside):
        return sp.Integer(sign if isinstance(call, sp.sign) else max(sign, 0))
    record = record_of(call)
    assert record is not None
    assert record.pieces is not None
    return record.pieces[sign > 0] * call.args[0]


def is_before(left: sp.Expr, right: sp.Expr) -> bool:
    """Proved: one number, or infinity, lies to the left of another."""
    if left == right:
        return False
    if left == -sp.oo or right == sp.oo:
        return True
    return left != sp.oo and right != -sp.oo and sign_of(right - left) == 1


def between(left: sp.Expr, right: sp.Expr) -> sp.Rational:
    """A rational number between two numbers."""
    if left == -sp.oo and right == sp.oo:
        return sp.S.Zero
    if left == -sp.oo:
        return sp.Rational(sp.floor(right) - 1)
    if right == sp.oo:
        return sp.Rational(sp.floor(left) + 1)
    with precision(BITS):
        low, high = enclose_at(left, {}), enclose_at(right, {})
        return rational((low.upper() + high.lower()) / 2)


def rational(ball: Any) -> sp.Rational:
    """The middle of a ball, exactly."""
    mantissa, exponent = ball.mid().man_exp()
    return sp.Rational(int(mantissa)) * sp.Integer(2) ** int(exponent)


@dataclass(frozen=True)
class Neighbourhood:
    """An exact number around which a function, or its slope, is known: [place - width, place + width]."""

    place: sp.Expr
    width: sp.Rational
    order: int

    @cached_property
    def ends(self) -> tuple[sp.Rational, sp.Rational]:
        """Rational numbers inside the neighbourhood, before and after the place."""
        with precision(BITS):
            ball = enclose_at(self.place, {})
            low, high = rational(ball.lower()), rational(ball.upper())
        return low - self.width / 2, high + self.width / 2


def neighbourhood(piece: Piece, place: sp.Expr, first: int = 0, orders: int = 6) -> Neighbourhood | None:
    """Around a zero of the derivative of order `first`: a width on which it has no other, and the order of the zero.

    The derivative of order first + k, the first one that does not vanish, keeps its sign there.
    """
    for order in range(first, first + orders + 1):
        value = _exact(piece.derivative(order), piece.letter, place)
        if value is True:
            continue
        if value is None or order == first:
            return None
        for exponent in range(0, 24, 2):
            width = sp.Rational(1, 2**exponent)
            with precision(BITS):
                ball = enclose_at(place, {}) + enclose_at(-width, {}).union(enclose_at(width, {}))
                around = piece.over(ball, order)
            if around > 0 or around < 0:
                return Neighbourhood(place, width, order - first)
        return None
    return None


def _exact(formula: sp.Expr, letter: sp.Symbol, place: sp.Expr) -> bool | None:
    """Whether a formula is zero at a number: True by algebra, False by enclosure, None where neither tells."""
    value = at_zero(formula.xreplace({letter: place}))
    if value == 0:
        return True
    if value.has(sp.nan, sp.zoo, sp.oo):
        return None
    if sign_of(value) in (1, -1):
        return False
    return True if sp.simplify(value) == 0 else None


def is_zero_at(piece: Piece, place: sp.Expr) -> bool:
    """Proved by algebra: the function is zero at a number."""
    return _exact(piece.formula, piece.letter, place) is True
