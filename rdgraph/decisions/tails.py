"""Functions of one variable far out: enclosures that hold for all x >= X, whatever x.

A `Tail` is a sum of c exp(a(x)) x^p with polynomials a; every c is a ball that contains a function of x for all x >= X.
Sums and products are exact in a and p; powers and functions take out what grows fastest and enclose the rest by the
mean value theorem. What is told of signs and sizes is therefore proved, from a number X on that is known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sympy as sp

from rdgraph.decisions.enclosure import NotEnclosed, enclose_at
from rdgraph.syntax.functions import ElementwiseFunction, record_of, softplus

#: Higher powers, and sums of more terms, are not multiplied out.
MAX_POWER, MAX_TERMS = 24, 120

#: The largest degree of a in exp(a(x)) x^p.
MAX_DEGREE = 6
#: (a_6, ..., a_1, p) of exp(a_6 x^6 + ... + a_1 x) x^p: the larger of two grows faster.
Scale = tuple[sp.Rational, ...]
CONSTANT: Scale = (sp.S.Zero,) * (MAX_DEGREE + 1)


@dataclass(frozen=True)
class Tail:
    """sum of ball * scale for all x >= start, a positive rational number."""

    terms: dict[Scale, Any]
    start: sp.Rational

    def __add__(self, other: Tail) -> Tail:
        terms = dict(self.terms)
        for scale, ball in other.terms.items():
            terms[scale] = terms[scale] + ball if scale in terms else ball
        return Tail(_without_zeros(terms), self.start)

    def __mul__(self, other: Tail) -> Tail:
        terms: dict[Scale, Any] = {}
        for one, a in self.terms.items():
            for two, b in other.terms.items():
                scale = _times(one, two)
                terms[scale] = terms[scale] + a * b if scale in terms else a * b
        if len(terms) > MAX_TERMS:
            raise NotEnclosed("too many terms far out")
        return Tail(_without_zeros(terms), self.start)

    def scaled(self, ball: Any) -> Tail:
        """The same times a ball."""
        return Tail(_without_zeros({scale: ball * c for scale, c in self.terms.items()}), self.start)

    # ------------------------------------------------------------------ what is known of it
    @property
    def lead(self) -> Scale:
        """The scale that grows fastest; of zero the constant."""
        return max(self.terms, default=CONSTANT)

    def relative(self, scale: Scale) -> Any:
        """A ball that contains value / scale for all x >= start; NotEnclosed where it has none."""
        from flint import arb

        total = arb(0)
        for one, ball in self.terms.items():
            total += ball * _shrinking(_times(one, _power(scale, -1)), self.start)
        return total

    @property
    def sign(self) -> int | None:
        """1 or -1 where the value is proved to be positive or negative for all x >= start, 0 if it is zero."""
        if not self.terms:
            return 0
        try:
            ball = self.relative(self.lead)
        except NotEnclosed:
            return None
        return 1 if ball > 0 else -1 if ball < 0 else None

    @property
    def values(self) -> Any:
        """A ball with all values; NotEnclosed where they grow."""
        return self.relative(CONSTANT)

    @property
    def grows(self) -> bool:
        """Whether the fastest scale goes to infinity."""
        return self.lead > CONSTANT

    def farthest(self) -> Any:
        """The value nearest to zero that a growing tail of one sign has: it goes on from there to infinity."""
        lead = self.lead
        _shrinking(_power(lead, -1), self.start)  # it never falls
        return self.relative(lead) * _at(lead, self.start)


def tail(expression: sp.Expr, letter: sp.Symbol, start: sp.Rational) -> Tail:
    """An expression in one letter for all values of it from `start` > 0 on, with the bits in force.

    Raises NotEnclosed where its growth is not of this kind.

    >>> from rdgraph.decisions.enclosure import precision
    >>> x = sp.Symbol("x", real=True)
    >>> with precision(128):
    ...     [tail(f, x, sp.Integer(8)).sign for f in (sp.tanh(x) - x / 2, sp.exp(x) - x**3, sp.sqrt(1 + x**2) - x)]
    [-1, 1, 1]
    """
    return _Reader(letter, start).read(expression)


def _times(one: Scale, two: Scale) -> Scale:
    return tuple(a + b for a, b in zip(one, two, strict=True))


def _power(scale: Scale, exponent: sp.Rational | int) -> Scale:
    return tuple(exponent * a for a in scale)


def _without_zeros(terms: dict[Scale, Any]) -> dict[Scale, Any]:
    return {scale: ball for scale, ball in terms.items() if not ball.is_zero()}


def _at(scale: Scale, place: sp.Rational) -> Any:
    """The scale at a point."""
    *exponents, power = scale
    exponent = sp.Add(*(a * place ** (MAX_DEGREE - k) for k, a in enumerate(exponents)))
    return enclose_at(exponent, {}).exp() * (enclose_at(power, {}) * enclose_at(place, {}).log()).exp()


def _shrinking(scale: Scale, start: sp.Rational) -> Any:
    """A ball with all values of a scale that never grows from `start` on."""
    from flint import arb

    if scale == CONSTANT:
        return arb(1)
    *exponents, power = scale
    slope = [a * (MAX_DEGREE - k) for k, a in enumerate(exponents)]  # of the exponent, the highest power first
    slope[-1] += max(power, sp.S.Zero) / start  # at least power/x
    if max(_shifted(slope, start)) <= 0 and min(scale) < 0:
        return arb(0).union(_at(scale, start))
    raise NotEnclosed("a term grows, or does not shrink from here on")


def _shifted(coefficients: list[sp.Rational], by: sp.Rational) -> list[sp.Rational]:
    """A polynomial in x, the highest power first, in powers of x - by; if none is positive, it is not beyond."""
    found = list(coefficients)
    for last in range(len(found), 1, -1):
        for k in range(1, last):
            found[k] += by * found[k - 1]
    return found


@dataclass(frozen=True)
class _Reader:
    letter: sp.Symbol
    start: sp.Rational

    def constant(self, ball: Any) -> Tail:
        return Tail({} if ball.is_zero() else {CONSTANT: ball}, self.start)

    def read(self, expression: sp.Expr) -> Tail:
        if not expression.has(self.letter):
            return self.constant(enclose_at(expression, {}))
        if expression == self.letter:
            return Tail({(*CONSTANT[:-1], sp.S.One): enclose_at(sp.S.One, {})}, self.start)
        match expression:
            case sp.Add():
                return self._folded(expression.args, Tail.__add__)
            case sp.Mul():
                return self._folded(expression.args, Tail.__mul__)
            case sp.exp():
                return self._exponential(expression.args[0])
            case sp.Pow():
                return self._power(self.read(expression.base), expression.exp)
        return self._function(expression)

    def _folded(self, parts: tuple[sp.Expr, ...], join: Callable[[Tail, Tail], Tail]) -> Tail:
        total = self.read(parts[0])
        for part in parts[1:]:
            total = join(total, self.read(part))
        return total

    def _power(self, base: Tail, exponent: sp.Expr) -> Tail:
        """base^q, the fastest term c s taken out: (c s)^q (1 + u)^q with (1 + u)^q = 1 + q u (1 + theta u)^(q - 1)."""
        if not exponent.is_Rational or abs(exponent) > MAX_POWER:
            raise NotEnclosed(f"no power {exponent} far out")
        if exponent.is_Integer and exponent > 0:
            return self._folded_power(base, int(exponent))
        lead = base.lead
        first = base.terms.get(lead)
        if first is None or not (first > 0 or (first < 0 and exponent.is_Integer)):
            raise NotEnclosed("a power of what may be zero or negative far out")
        inverse = Tail({_power(lead, -1): 1 / first}, self.start)
        rest = Tail({scale: ball for scale, ball in base.terms.items() if scale != lead}, self.start) * inverse
        around = 1 + rest.relative(CONSTANT).union(0 * first) if rest.terms else first / first
        if not around > 0:
            raise NotEnclosed("a power of what may be zero far out")
        q = enclose_at(exponent, {})
        front = Tail({_power(lead, exponent): _ball_power(first, exponent)}, self.start)
        return front + front * rest.scaled(q * ((q - 1) * around.log()).exp())

    def _folded_power(self, base: Tail, times: int) -> Tail:
        total = base
        for _ in range(times - 1):
            total = total * base
        return total

    # ------------------------------------------------------------------ functions
    def _exponential(self, argument: sp.Expr) -> Tail:
        """exp of a polynomial is a scale; of what falls in another way, a number between 0 and its first value."""
        if argument.is_polynomial(self.letter) and sp.degree(argument, self.letter) <= MAX_DEGREE:
            *exponents, constant = (sp.Poly(argument, self.letter).nth(k) for k in range(MAX_DEGREE, -1, -1))
            if all(a.is_Rational for a in exponents):
                return Tail({(*exponents, sp.S.Zero): enclose_at(constant, {}).exp()}, self.start)
        inner = self.read(argument)
        if inner.grows:
            if inner.sign != -1:
                raise NotEnclosed("an exponential of what grows in another way")
            return self.constant((0 * inner.farthest()).union(inner.farthest().exp()))
        return self._smooth(inner, lambda ball: ball.exp(), lambda ball: ball.exp())

    def _smooth(self, inner: Tail, value: Callable[[Any], Any], slope: Callable[[Any], Any]) -> Tail:
        """f of an argument that stays bounded, f(c + u) = f(c) + u f'(c + theta u), c its constant part."""
        from flint import arb

        middle = inner.terms.get(CONSTANT, arb(0))
        rest = Tail({scale: ball for scale, ball in inner.terms.items() if scale != CONSTANT}, self.start)
        if not rest.terms:
            return self.constant(value(middle))
        around = middle + rest.relative(CONSTANT).union(arb(0))
        return self.constant(value(middle)) + rest.scaled(slope(around))

    def _function(self, call: sp.Expr) -> Tail:
        if isinstance(call, sp.sign | sp.Heaviside):
            sign = self._sign_of(call)
            return self.constant(enclose_at(sp.Integer(max(sign, 0) if isinstance(call, sp.Heaviside) else sign), {}))
        record = record_of(call)
        if record is None or len(call.args) != 1:
            raise NotEnclosed(f"no enclosure of {call} far out")
        if record.pieces is not None:
            factor = record.pieces[self._sign_of(call) > 0]
            return self.read(call.args[0]).scaled(enclose_at(sp.Integer(factor), {}))
        inner = self.read(call.args[0])
        if not inner.grows:
            return self._of_bounded(record, inner)
        if isinstance(call, softplus):
            return self._softplus(call.args[0], inner)
        if record.rewriting is not None:
            try:
                return self.read(record.rewriting(call.args[0]))
            except NotEnclosed:
                pass
        if record.range is None or not record.range.is_bounded:
            raise NotEnclosed(f"no enclosure of {call} far out")
        return self.constant(enclose_at(record.range.lower, {}).union(enclose_at(record.range.upper, {})))

    def _of_bounded(self, record: ElementwiseFunction, inner: Tail) -> Tail:
        place = sp.Dummy("place", real=True)
        slope = record.derivative(place)
        return self._smooth(inner, record.ball, lambda ball: enclose_at(slope, {place: ball}))

    def _sign_of(self, call: sp.Expr) -> int:
        sign = self.read(call.args[0]).sign
        if sign is None:
            raise NotEnclosed(f"the sign of {call.args[0]} far out is not known")
        return sign

    def _softplus(self, argument: sp.Expr, inner: Tail) -> Tail:
        """a + log(1 + exp(-a)) where a grows, log(1 + exp(a)) where -a does; log(1 + y) = y times what is near 1."""
        sign = inner.sign
        if sign is None:
            raise NotEnclosed(f"the sign of {argument} far out is not known")
        small = self._exponential(sp.expand(-sign * argument))
        size = small.values.upper()
        logarithm = small.scaled((size.log1p() / size).union(1 + 0 * size)) if size > 0 else small
        return inner + logarithm if sign > 0 else logarithm


def _ball_power(ball: Any, exponent: sp.Rational) -> Any:
    if exponent.is_Integer:
        return ball ** int(exponent)
    return (enclose_at(exponent, {}) * ball.log()).exp()
