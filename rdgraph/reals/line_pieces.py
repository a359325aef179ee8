"""The real line cut at the kinks of a function: smooth pieces with enclosures of values and slopes, and two tails."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import sympy as sp
from flint import arb

from rdgraph.errors import Undecided
from rdgraph.reals.budget import attempt
from rdgraph.reals.domain import NEGATIVE, Domain
from rdgraph.reals.enclosure import NotEnclosed, enclose_at, make_enclosure, precision, sign_of
from rdgraph.reals.rewriting import outermost
from rdgraph.vocabulary.functions import ElementwiseFunction, Span, at_zero, record_of, softplus

# ---------------------------------------------------------------------- closed zeros
# Zeros of a function of one variable in closed form, and where they are real.


def zeros(expression: sp.Expr, x: sp.Symbol) -> list[sp.Expr]:
    """The zeros for which a closed form is found; square roots of coefficients need not be real everywhere.

    Products are taken apart, quotients by their numerators, functions by their inverses.

    >>> a, x = sp.symbols("a x", real=True)
    >>> sorted(zeros(x**3 - a * x, x), key=str), zeros(sp.sin(x), x)
    ([-sqrt(a), 0, sqrt(a)], [0, pi])
    >>> zeros(x * sp.tanh(1 - x), x), zeros(x / (x**2 + 1), x), zeros(sp.exp(-x), x)
    ([0, 1], [0], [])
    """
    found: list[sp.Expr] = []
    for factor in sp.Mul.make_args(sp.factor_terms(expression)):
        if factor.has(x):
            found += _of_factor(factor, x)
    return list(dict.fromkeys(found))


def _of_factor(expression: sp.Expr, x: sp.Symbol) -> list[sp.Expr]:
    if expression.is_rational_function(x):
        return _closed_zeros_of_polynomial(sp.fraction(sp.together(expression))[0], x)[0]
    if isinstance(expression, sp.Pow) and expression.exp.is_positive:
        return zeros(expression.base, x)
    calls = [f for f in expression.atoms(sp.Function) if f.has(x)]
    y = sp.Dummy("y", real=True)
    if len(calls) != 1 or expression.xreplace({calls[0]: y}).has(x):
        return []
    return [z for value in zeros(expression.xreplace({calls[0]: y}), y) for z in _inverse(calls[0], value, x)]


def _inverse(call: sp.Expr, value: sp.Expr, x: sp.Symbol) -> list[sp.Expr]:
    """Where a function of x has a value, as far as that is found."""
    record = record_of(call)
    if record is not None and record.range is not None and value.is_number and not _is_in(value, record.range):
        return []
    if record is not None and record.inverse is not None:
        return [z for z in zeros(call.args[0] - record.inverse(value), x) if _may_be_real(z)]
    try:
        return [z for z in sp.solve(call - value, x) if isinstance(z, sp.Expr) and _may_be_real(z)]
    except (NotImplementedError, TypeError, ValueError):
        return []


def _is_in(value: sp.Expr, span: Span) -> bool:
    """Not refuted: a number is one of the values of a function."""
    below = span.lower.is_finite and sign_of(value - span.lower) in ((-1,) if span.has_lower else (-1, 0))
    above = span.upper.is_finite and sign_of(value - span.upper) in ((1,) if span.has_upper else (1, 0))
    return not below and not above


def _may_be_real(value: sp.Expr) -> bool:
    return value.is_real is not False and not value.has(sp.I, sp.nan, sp.zoo, sp.oo)


def all_zeros(expression: sp.Expr, x: sp.Symbol, domain: Domain) -> list[tuple[sp.Expr, tuple[sp.Expr, ...]]]:
    """Every real zero, with the expressions that must be >= 0 for it to be real; Undecided where some may be missing.

    >>> a = sp.Symbol("a", positive=True)
    >>> x = sp.Symbol("x", real=True)
    >>> all_zeros(x**2 - x + a, x, Domain())[0]
    (1/2 - sqrt(1 - 4*a)/2, (1 - 4*a,))
    >>> all_zeros(a * sp.exp(-x), x, Domain())
    []
    """
    if expression.is_polynomial(x):
        found, complete = _closed_zeros_of_polynomial(expression, x)
    else:
        found = zeros(expression, x)
        apart = [sp.Ne(x, z) for z in found]
        complete = domain.where(*apart).proves(sp.Ne(expression, 0, evaluate=False)) is True
    if not complete:
        known = f"; known are {', '.join(map(str, found))}" if found else ""
        raise Undecided(f"it is not proved which are all zeros of {expression}{known}")
    return [(z, conditions) for z in found if (conditions := _real_where(z, domain)) is not None]


def _closed_zeros_of_polynomial(expression: sp.Expr, x: sp.Symbol) -> tuple[list[sp.Expr], bool]:
    """Zeros that can be real, and whether there are no others."""
    if not expression.has(x):
        return [], expression != 0
    polynomial = sp.Poly(expression, x)
    if not polynomial.free_symbols_in_domain:
        try:
            return list(dict.fromkeys(sp.real_roots(polynomial))), True
        except NotImplementedError:
            return [], False
    found = sp.roots(polynomial)
    real = [z for z in found if z.is_real is not False]
    # Nothing makes Cardano's complex zeros real, and to simplify them takes longer than everything else.
    cubic = {z for z in real if z.has(sp.I) and any(p.exp == sp.Rational(1, 3) for p in z.atoms(sp.Pow))}
    shortest = {z if z in cubic else min(sp.expand(z), sp.simplify(z), key=sp.count_ops): None for z in real}
    kept = [z for z in shortest if not z.has(sp.I)]
    return kept, sum(found.values()) == polynomial.degree() and len(kept) == len(shortest)


def _real_where(value: sp.Expr, domain: Domain) -> tuple[sp.Expr, ...] | None:
    """What must be >= 0 for the value to be real and is not proved to be; None where it is never real."""
    needs = [power.base for power in sorted(value.atoms(sp.Pow), key=_size) if not power.exp.is_Integer]
    needs += [call.args[0] for call in sorted(value.atoms(sp.log), key=_size)]
    needs += [1 - call.args[0] ** 2 for call in sorted(value.atoms(sp.atanh, sp.acos, sp.asin), key=_size)]
    needs += [call.args[0] + sp.exp(-1) for call in sorted(value.atoms(sp.LambertW), key=_size)]
    conditions = []
    for need in needs:
        sign = domain.sign(need)
        if sign is NEGATIVE:
            return None
        if not sign.is_nonnegative:
            conditions.append(need)
    return tuple(conditions)


def _size(expression: sp.Expr) -> tuple[int, str]:
    return expression.count_ops(), str(expression)


# ---------------------------------------------------------------------- tails
# Functions of one variable far out: enclosures that hold for all x >= X.
#
# A `Tail` is a sum of c exp(a(x)) x^p with polynomials a; every c is a ball that contains a function of x for all x >=
# X. Sums and products are exact in a and p; powers and functions take out what grows fastest and enclose the rest by
# the mean value theorem. Signs and sizes are therefore proved for all x beyond a known X.

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
        """The tail times a ball."""
        return Tail(_without_zeros({scale: ball * c for scale, c in self.terms.items()}), self.start)

    # ------------------------------------------------------------------ what is known of it
    @property
    def lead(self) -> Scale:
        """The scale that grows fastest; of zero the constant."""
        return max(self.terms, default=CONSTANT)

    def relative(self, scale: Scale) -> Any:
        """A ball that contains value / scale for all x >= start; NotEnclosed where it has none."""
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

    >>> from rdgraph.reals.enclosure import precision
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


# ---------------------------------------------------------------------- line pieces
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
        """The sign of the function at a number; None if undecided."""
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
            attempt(CLOSED_SECONDS, self._collect_zeros, self.derivative(order), found)
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
    """A polynomial in symbols and function values, factored if its coefficients are rational; anything else unchanged.

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
