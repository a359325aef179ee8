"""How fast a function of one real variable grows: its expansion at infinity in the scale exp(E(x)) x^p.

Sums, products, powers and functions are expanded; remainders are recorded as orders, and so are functions of which only
bounds are known. The first term gives growth and sign. Signs of coefficients come from the domain, which is split where
they vary; sin and cos of an argument without a limit are symbols between -1 and 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import sympy as sp

from rdgraph.errors import Undecided
from rdgraph.reals.domain import POSITIVE, Domain
from rdgraph.reals.regions import reduced, strict_sign
from rdgraph.vocabulary.functions import ElementwiseFunction, record_of, softplus

#: Terms kept of a power series.
TERMS = 5
MAX_TERMS = 200
MAX_POWER = 64

#: exp(E) x^p, with E a sum of positive powers of x.
Scale = tuple[sp.Expr, sp.Expr]
CONSTANT: Scale = (sp.S.Zero, sp.S.Zero)


class Trend(Enum):
    """The behaviour of a rate at large states: bounded by c (1 + |h|), pointing back, or pointing outwards."""

    LINEAR = "at most linear"
    DAMPED = "damped"
    ESCAPING = "escaping"


@dataclass(frozen=True)
class GrowthAtInfinity:
    """A trend and its power of |h|, infinite for exponentials."""

    trend: Trend
    order: sp.Expr


def growth(rate: sp.Expr, letter: sp.Symbol, way: int, domain: Domain) -> GrowthAtInfinity:
    """Growth of h' = rate in the direction `way` = +1 or -1, for all coefficients of the domain.

    Raises `Split` where it depends on the coefficients, `Undecided` where it is not found.

    >>> h, b = sp.Symbol("h", real=True), sp.Symbol("b", positive=True)
    >>> [growth(sp.exp(h) - b * h**3, h, way, Domain()).trend.value for way in (1, -1)]
    ['escaping', 'damped']
    >>> growth(sp.exp(h) - b * h**3, h, -1, Domain())
    GrowthAtInfinity(trend=<Trend.DAMPED: 'damped'>, order=3)
    """
    at = _Infinity(domain)
    series = at.expand(way * _unbounded(reduced(domain, rate), letter).xreplace({letter: way * at.x}))
    terms = dict(series.terms)
    while terms:
        top = at.largest(terms)
        if at.compare(top, (sp.S.Zero, sp.S.One)) <= 0:
            break
        if any(at.compare(error, top) >= 0 for error in series.errors):
            raise Undecided(f"the growth of {rate} is not found: its leading terms cancel")
        sign = at.sign(terms[top])
        if sign:
            trend = Trend.ESCAPING if sign > 0 else Trend.DAMPED
            return GrowthAtInfinity(trend, top[1] if top[0] == 0 else sp.oo)
        del terms[top]
    if any(at.compare(error, (sp.S.Zero, sp.S.One)) > 0 for error in series.errors):
        raise Undecided(f"the growth of {rate} is not found: its leading terms cancel")
    return GrowthAtInfinity(Trend.LINEAR, sp.S.One)


def order(expression: sp.Expr, letter: sp.Symbol, domain: Domain) -> sp.Expr:
    """A power p >= 0 with |expression| <= c (1 + |letter|^p); infinite where it grows faster than powers."""
    power = sp.S.Zero
    for way in (1, -1):
        at = _Infinity(domain)
        series = at.expand(_unbounded(reduced(domain, expression), letter).xreplace({letter: way * at.x}))
        for scale in (*series.terms, *series.errors):
            if at.compare(scale, CONSTANT) > 0:
                if scale[0] != 0:
                    if at.tendency(scale[0]) > 0:
                        return sp.oo
                else:
                    power = sp.Max(power, scale[1])
    return power


def _unbounded(expression: sp.Expr, letter: sp.Symbol) -> sp.Expr:
    """The sum without terms that are known to be bounded.

    >>> h = sp.Symbol("h", real=True)
    >>> _unbounded(h + 3 * sp.tanh(sp.exp(h)) ** 2 * sp.sin(h) - h * sp.cos(h), h)
    -h*cos(h) + h
    """
    return sp.Add(*(t for t in sp.Add.make_args(expression) if not all(map(_is_bounded, _factors(t, letter)))))


def _factors(term: sp.Expr, letter: sp.Symbol) -> list[sp.Expr]:
    """The factors of a product that contain a symbol, without their positive powers."""
    factors = (factor.as_base_exp() for factor in sp.Mul.make_args(term) if factor.has(letter))
    return [base if power.is_Integer and power > 0 else base**power for base, power in factors]


def _is_bounded(call: sp.Expr) -> bool:
    record = record_of(call)
    return record is not None and record.is_bounded


@dataclass(frozen=True)
class _Series:
    """A sum of coefficient * exp(E) x^p, and the orders of its remainders."""

    terms: dict[Scale, sp.Expr]
    errors: frozenset[Scale] = frozenset()

    @classmethod
    def constant(cls, value: sp.Expr) -> _Series:
        return cls({CONSTANT: value} if value != 0 else {})

    def __add__(self, other: _Series) -> _Series:
        terms = dict(self.terms)
        for scale, coefficient in other.terms.items():
            terms[scale] = terms.get(scale, sp.S.Zero) + coefficient
        return _collected(terms, self.errors | other.errors)

    def __mul__(self, other: _Series) -> _Series:
        if len(self.terms) * len(other.terms) > MAX_TERMS**2:
            raise Undecided("the expansion at infinity has too many terms")
        terms: dict[Scale, sp.Expr] = {}
        for one, a in self.terms.items():
            for two, b in other.terms.items():
                scale = _product(one, two)
                terms[scale] = terms.get(scale, sp.S.Zero) + a * b
        errors = {_product(e, s) for e in self.errors for s in (*other.terms, *other.errors)}
        errors |= {_product(s, e) for e in other.errors for s in self.terms}
        return _collected(terms, frozenset(errors))

    def scaled(self, factor: sp.Expr) -> _Series:
        return self * _Series.constant(factor)

    def without(self, *scales: Scale) -> _Series:
        return _Series({s: c for s, c in self.terms.items() if s not in scales}, self.errors)


def _product(one: Scale, two: Scale) -> Scale:
    return sp.expand(one[0] + two[0]), one[1] + two[1]


def _collected(terms: dict[Scale, sp.Expr], errors: frozenset[Scale]) -> _Series:
    """A series without zeros and without terms below the order of a remainder."""
    worst: dict[sp.Expr, sp.Expr] = {}
    for exponent, power in errors:
        worst[exponent] = max(power, worst.get(exponent, power))
    remaining = {}
    for (exponent, power), coefficient in terms.items():
        value = sp.expand(coefficient)
        if value != 0 and not (exponent in worst and power <= worst[exponent]):
            remaining[exponent, power] = value
    if len(remaining) > MAX_TERMS:
        raise Undecided("the expansion at infinity has too many terms")
    return _Series(remaining, frozenset(worst.items()))


@dataclass
class _Infinity:
    """Expansions as x -> oo for the coefficients of the domain."""

    domain: Domain
    x: sp.Symbol = field(default_factory=lambda: sp.Dummy("x", positive=True))
    _waves: dict[sp.Expr, sp.Symbol] = field(default_factory=dict)

    # ------------------------------------------------------------------ comparisons
    def sign(self, coefficient: sp.Expr) -> int:
        waves = [w for w in self._waves.values() if coefficient.has(w)]
        if not waves:
            return strict_sign(self.domain, coefficient)
        swing = [relation for w in waves for relation in (sp.Ge(w, -1), sp.Le(w, 1))]
        for sign in (1, -1):
            if self.domain.where(*swing).sign(sign * coefficient) is POSITIVE:
                return sign
        raise Undecided("a factor of the leading term oscillates")

    def tendency(self, exponent: sp.Expr) -> int:
        """1, 0 or -1 for a sum of positive powers of x that tends to infinity, is zero, or tends to minus infinity."""
        powers: dict[sp.Expr, sp.Expr] = {}
        for term in sp.Add.make_args(sp.expand(exponent)):
            coefficient, power = term.as_coeff_exponent(self.x)
            powers[power] = powers.get(power, sp.S.Zero) + coefficient
        for power in sorted(powers, reverse=True):
            sign = self.sign(powers[power])
            if sign:
                return sign
        return 0

    def compare(self, one: Scale, two: Scale) -> int:
        """1, 0 or -1 if the first scale grows faster, equally fast, or slower."""
        if one[0] != two[0]:
            tendency = self.tendency(one[0] - two[0])
            if tendency:
                return tendency
            if one[1] == two[1]:
                raise Undecided("two terms grow equally fast")
        return int(sp.sign(one[1] - two[1]))

    def largest(self, terms: dict[Scale, sp.Expr]) -> Scale:
        scales = iter(terms)
        top = next(scales)
        for scale in scales:
            if self.compare(scale, top) > 0:
                top = scale
        return top

    def lead(self, series: _Series) -> tuple[Scale, int, _Series] | None:
        """The first term that does not vanish, its sign, and the terms after it; None for zero."""
        terms = dict(series.terms)
        while terms:
            top = self.largest(terms)
            if any(self.compare(error, top) >= 0 for error in series.errors):
                break
            sign = self.sign(terms.pop(top))
            if sign:
                return top, sign, _Series(terms, series.errors)
        if series.errors:
            raise Undecided("the leading terms cancel at infinity")
        return None

    # ------------------------------------------------------------------ expansions
    def expand(self, expression: sp.Expr) -> _Series:
        if not expression.has(self.x):
            return _Series.constant(expression)
        if expression == self.x:
            return _Series({(sp.S.Zero, sp.S.One): sp.S.One})
        match expression:
            case sp.Add():
                total = _Series({})
                for part in expression.args:
                    total += self.expand(part)
                return total
            case sp.Mul():
                product = _Series.constant(sp.S.One)
                for part in expression.args:
                    product *= self.expand(part)
                return product
            case sp.exp():
                return self._exponential(self.expand(expression.args[0]))
            case sp.Pow():
                return self._power(expression)
        return self._function(expression)

    def _power(self, power: sp.Pow) -> _Series:
        base, exponent = self.expand(power.base), power.exp
        if not exponent.is_Rational or abs(exponent) > MAX_POWER:
            raise Undecided(f"no expansion of {power} at infinity")
        if exponent.is_Integer and exponent > 0:
            result = _Series.constant(sp.S.One)
            for _ in range(int(exponent)):
                result *= base
            return result
        lead = self.lead(base)
        if lead is None or (lead[1] < 0 and not exponent.is_Integer):
            raise Undecided(f"{power} is not defined at infinity")
        (grown, degree), _, others = lead
        coefficient = base.terms[grown, degree]
        rest = others * _Series({(sp.expand(-grown), -degree): 1 / coefficient})
        front = _Series({(sp.expand(exponent * grown), exponent * degree): coefficient**exponent})
        return front * self._powers(rest, [sp.binomial(exponent, k) for k in range(TERMS + 1)])

    def _powers(self, small: _Series, coefficients: list[sp.Expr]) -> _Series:
        """sum_k c_k u^k of a series u that vanishes at infinity, with the first omitted power as remainder."""
        total, power = _Series.constant(coefficients[0]), _Series.constant(sp.S.One)
        for coefficient in coefficients[1:]:
            power *= small
            total += power.scaled(coefficient)
        rest = power * small
        return _collected(total.terms, total.errors | frozenset(rest.terms) | rest.errors)

    def _exponential(self, argument: _Series) -> _Series:
        growing = {s: c for s, c in argument.terms.items() if self.compare(s, CONSTANT) > 0}
        if any(s[0] != 0 for s in growing):
            raise Undecided("an exponential of an exponential")
        exponent = sp.expand(sp.Add(*(c * self.x ** s[1] for s, c in growing.items())))
        front = _Series({(exponent, sp.S.Zero): sp.exp(argument.terms.get(CONSTANT, sp.S.Zero))})
        rest = argument.without(CONSTANT, *growing)
        if any(self.compare(error, CONSTANT) > 0 for error in rest.errors):
            raise Undecided("an exponential whose argument is known only up to growing terms")
        if any(self.compare(error, CONSTANT) == 0 for error in rest.errors):
            return _Series({}, frozenset(front.terms))
        return front * self._powers(rest, [1 / sp.factorial(k) for k in range(TERMS + 1)])

    def _function(self, call: sp.Expr) -> _Series:
        record = record_of(call)
        if record is None:
            raise Undecided(f"no expansion of {call} at infinity")
        try:
            return self._expanded(call, record)
        except Undecided:
            if not record.is_bounded:
                raise
            return _Series({}, frozenset({CONSTANT}))

    def _expanded(self, call: sp.Expr, record: ElementwiseFunction) -> _Series:
        """The expansion of a function by its definition, by the sign or the limit of its argument, or by bounds."""
        inner: sp.Expr = call.args[0]
        if record.rewriting is not None and record.pieces is None:
            return self.expand(record.rewriting(inner))
        argument = self.expand(inner)
        if record.pieces is not None:
            return self._by_sign(record.pieces, argument)
        if self._settles(argument):
            limit = argument.terms.get(CONSTANT, sp.S.Zero)
            others = argument.without(CONSTANT)
            return _collected(_Series.constant(call.func(limit)).terms, frozenset(others.terms) | others.errors)
        if isinstance(call, softplus):
            return self._softplus(inner, argument)
        if call.func in (sp.sin, sp.cos):
            return _Series.constant(self._waves.setdefault(call, sp.Dummy("wave", real=True)))
        return self._by_bounds(call, record, argument)

    def _by_bounds(self, call: sp.Expr, record: ElementwiseFunction, argument: _Series) -> _Series:
        """The order of a function from its bounds: a constant, or its argument if its slopes are bounded."""
        if record.is_bounded:
            return _Series({}, frozenset({CONSTANT}))
        if record.growth == "linear":
            return _Series({}, frozenset({CONSTANT, *argument.terms}) | argument.errors)
        raise Undecided(f"no expansion of {call} at infinity")

    def _settles(self, argument: _Series) -> bool:
        """Whether a series tends to a finite limit."""
        below = (self.compare(scale, CONSTANT) for scale in (*argument.terms, *argument.errors) if scale != CONSTANT)
        return CONSTANT not in argument.errors and all(c < 0 for c in below)

    def _by_sign(self, pieces: tuple[int, int], argument: _Series) -> _Series:
        """The expansion of a function with pieces a x below zero and b x above zero."""
        lead = self.lead(argument)
        factor = 0 if lead is None else pieces[lead[1] > 0]
        return argument.scaled(sp.Integer(factor)) if factor else _Series({})

    def _softplus(self, inner: sp.Expr, argument: _Series) -> _Series:
        """The expansion of softplus: a + log(1 + exp(-a)) for a -> oo, log(1 + exp(a)) for a -> -oo."""
        lead = self.lead(argument)
        rises = lead is not None and lead[1] > 0
        small = self.expand(sp.exp(-inner if rises else inner))
        logarithm = self._powers(small, [sp.S.Zero, *(sp.Rational((-1) ** (k + 1), k) for k in range(1, TERMS + 1))])
        return argument + logarithm if rises else logarithm
