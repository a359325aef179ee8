"""Blow-up of a scalar equation h' = f(h): the starts h0 that blow up, and when.

Where f grows faster than linearly, h reaches +oo iff f(x) > 0 for all x >= h0, that is, no zero lies at h0 or beyond.
Candidates for the zeros are proved to be zeros and to be the last ones; -oo is +oo of the reflected equation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import mpmath
import sympy as sp
from sympy.polys.polyerrors import BasePolynomialError

from rdgraph.errors import Undecided
from rdgraph.language.answer_symbols import h, h0, public
from rdgraph.reals.budget import limited, remaining
from rdgraph.reals.condition_words import condition_in_words
from rdgraph.reals.domain import Domain
from rdgraph.reals.regions import Split, cases, reduced, strict_sign
from rdgraph.reals.zeros import Zero, candidates
from rdgraph.theory.growth_at_infinity import Trend, growth
from rdgraph.vocabulary.functions import in_exponentials

# ---------------------------------------------------------------------- blowup times
# The time a scalar equation takes to infinity, t = integral of dx/f(x) from the start on, for rational f.
#
# Partial fractions are integrated term by term (logarithms, inverse powers, arctangents), so that the value at infinity
# is known. The primitive is differentiated and the time compared with quadrature; a formula that fails is not returned.

#: Distances from the thresholds at which a formula is compared with quadrature, and how closely.
DISTANCES = (sp.Rational(1, 4), sp.S.One, sp.Integer(3))
TOLERANCE = 1e-8


def escape_time(
    rate: sp.Expr, x: sp.Symbol, start: sp.Symbol, thresholds: tuple[sp.Expr, ...], domain: Domain
) -> sp.Expr | None:
    """The time from x = start to infinity for x' = rate > 0 beyond the thresholds; None where it is not found.

    Raises `Split` where the formula depends on the coefficients.

    >>> x, s, a = sp.Symbol("x", real=True), sp.Symbol("s", real=True), sp.Symbol("a", positive=True)
    >>> escape_time(a * x**3, x, s, (sp.S.Zero,), Domain())
    1/(2*a*s**2)
    """
    if not rate.is_rational_function(x):
        return None
    try:
        lead = _leading(rate, x)
        primitive = _primitive(sp.apart(sp.cancel(lead / rate), x), x, domain)
    except (Undecided, BasePolynomialError):
        return None
    if primitive is None:
        return None
    time = primitive.remaining(x, start) / lead
    return time if _agrees(time, primitive.expression / lead, rate, x, start, thresholds, domain) else None


@dataclass(frozen=True)
class _Primitive:
    """A sum of factor * log(argument) that tends to zero, plus a rest that tends to `end`."""

    logs: tuple[tuple[sp.Expr, sp.Expr], ...] = ()
    rest: sp.Expr = sp.S.Zero
    end: sp.Expr = sp.S.Zero

    def __add__(self, other: _Primitive) -> _Primitive:
        return _Primitive(self.logs + other.logs, self.rest + other.rest, self.end + other.end)

    @property
    def expression(self) -> sp.Expr:
        return self.rest + sp.Add(*(factor * sp.log(argument) for factor, argument in self.logs))

    def remaining(self, x: sp.Symbol, start: sp.Symbol) -> sp.Expr:
        """The value at infinity less the value at the start, logarithms joined."""
        rest = sp.factor_terms(self.end - self.rest.subs(x, start))
        return rest + sp.Add(*_joined([(-factor, argument.subs(x, start)) for factor, argument in self.logs]))


def _leading(rate: sp.Expr, x: sp.Symbol) -> sp.Expr:
    top, bottom = sp.fraction(sp.cancel(rate))
    return sp.cancel(sp.Poly(top, x).LC() / sp.Poly(bottom, x).LC())


def _primitive(sum_of_fractions: sp.Expr, x: sp.Symbol, domain: Domain) -> _Primitive | None:
    """A primitive with logarithms of monic polynomials, which must cancel at infinity; else None."""
    total = _Primitive()
    for term in sp.Add.make_args(sum_of_fractions):
        piece = _piece(term, x, domain)
        if piece is None:
            return None
        total += piece
    balance = sp.Add(*(factor * sp.degree(argument, x) for factor, argument in total.logs if argument.is_polynomial(x)))
    return total if sp.cancel(balance) == 0 else None


def _piece(term: sp.Expr, x: sp.Symbol, domain: Domain) -> _Primitive | None:
    """The primitive of a partial fraction with a power of a linear factor or with a quadratic factor; else None."""
    top, bottom = sp.fraction(sp.together(term))
    if not bottom.has(x):
        return None
    constant, factors = sp.Poly(bottom, x).factor_list()
    if len(factors) != 1:
        return None
    factor, power = factors[0]
    scale = sp.sympify(constant) * factor.LC() ** power
    if strict_sign(domain, scale) == 0:
        return None
    q = sp.Poly({m: sp.cancel(c / factor.LC()) for m, c in factor.terms()}, x)
    above = sp.Poly(sp.expand(top), x)
    if q.degree() == 1 and above.degree() <= 0:
        weight = sp.cancel(above.as_expr() / scale)
        if power == 1:
            return _Primitive(((weight, q.as_expr()),))
        return _Primitive(rest=weight * q.as_expr() ** (1 - power) / (1 - power))
    if q.degree() == 2 and power == 1 and above.degree() <= 1:
        return _over_quadratic(sp.cancel(above.nth(1) / scale), sp.cancel(above.nth(0) / scale), q, x, domain)
    return None


def _over_quadratic(m: sp.Expr, n: sp.Expr, q: sp.Poly, x: sp.Symbol, domain: Domain) -> _Primitive:
    """The primitive of (m x + n)/(x^2 + b x + c): m/2 log(q), and a term by the sign of the discriminant."""
    b, c = q.nth(1), q.nth(0)
    discriminant = sp.cancel(b**2 - 4 * c)
    logs = ((m / 2, q.as_expr()),) if m != 0 else ()
    rest = sp.cancel(n - m * b / 2)
    if rest == 0:
        return _Primitive(logs)
    sign = strict_sign(domain, discriminant)
    if sign == 0:
        return _Primitive(logs, -2 * rest / (2 * x + b))
    root = sp.sqrt(sp.factor(sign * discriminant))
    if sign > 0:
        return _Primitive((*logs, (rest / root, (2 * x + b - root) / (2 * x + b + root))))
    return _Primitive(logs, 2 * rest / root * sp.atan((2 * x + b) / root), sp.pi * rest / root)


def _joined(logs: list[tuple[sp.Expr, sp.Expr]]) -> list[sp.Expr]:
    """Logarithms of rational functions whose factors are rational multiples of one another as one logarithm."""
    groups: list[tuple[sp.Expr, list[tuple[sp.Rational, sp.Expr]]]] = []
    for factor, argument in logs:
        for unit, members in groups:
            ratio = sp.cancel(factor / unit)
            if ratio.is_Rational and argument.is_rational_function():
                members.append((ratio, argument))
                break
        else:
            groups.append((factor, [(sp.S.One, argument)]))
    return [_one_log(unit, members) for unit, members in groups]


def _one_log(unit: sp.Expr, members: list[tuple[sp.Rational, sp.Expr]]) -> sp.Expr:
    """The shorter of unit log(inside) and -unit log(1/inside)."""
    share = sp.Rational(1, sp.ilcm(*(factor.q for factor, _ in members), 1))
    inside = sp.Mul(*(argument ** (factor / share) for factor, argument in members))
    forms = [(unit * share, inside), (-unit * share, 1 / inside)]
    if inside.is_rational_function():
        forms = [(factor, _short(argument)) for factor, argument in forms]
    return min((factor * sp.log(argument) for factor, argument in forms), key=lambda e: (e.count_ops(), str(e)))


def with_short_logs(expression: sp.Expr) -> sp.Expr:
    """The arguments of logarithms in lowest terms."""
    return expression.replace(sp.log, lambda a: sp.log(_short(a) if a.is_rational_function() else a))


def _short(fraction: sp.Expr) -> sp.Expr:
    whole = sp.factor(sp.cancel(fraction))
    return sp.apart(whole) if len(whole.free_symbols) == 1 else whole


def _agrees(
    time: sp.Expr, primitive: sp.Expr, rate: sp.Expr, x: sp.Symbol, start: sp.Symbol, thresholds: tuple[sp.Expr, ...],
    domain: Domain,
) -> bool:  # fmt: skip
    """Whether the derivative of the primitive, and sign and value of the time, are right at several starts."""
    checked = 0
    for distance in DISTANCES:
        beyond = [sp.Gt(start, z + distance, evaluate=False) for z in thresholds] or [sp.Gt(start, distance - 1)]
        point = domain.point(*beyond)
        if point is None:
            continue
        values = {k: sp.N(v, 30) for k, v in _filled(point, rate, start).items() if k != x}
        claimed, speed = sp.N(time.xreplace(values), 30), rate.xreplace(values)
        slope = sp.N((sp.diff(primitive, x).xreplace(values) * speed).xreplace({x: values[start]}), 30)
        measured = _quadrature(speed, x, float(values[start]))
        if not claimed.is_real or not claimed > 0 or abs(claimed - measured) > TOLERANCE * abs(measured):
            return False
        if abs(slope - 1) > TOLERANCE**2:
            return False
        checked += 1
    return checked > 0


def _filled(point: dict[sp.Basic, sp.Expr], rate: sp.Expr, start: sp.Symbol) -> dict[sp.Basic, sp.Expr]:
    """A point with values for all coefficients, 1 or -1 where no condition mentions them."""
    return {k: sp.Integer(-1 if k.is_nonpositive else 1) for k in rate.free_symbols | {start}} | point


def _quadrature(rate: sp.Expr, x: sp.Symbol, begin: float) -> float:
    """The integral of dx/rate from `begin` to infinity, over v in (0, 1] with x = begin + reach (1 - v)/v."""
    rate = sp.N(rate)  # functions of numbers alone, as sigmoid(0), become numbers
    reach = abs(begin) + 1.0

    def measured(modules: str, numbers: Any) -> float:
        speed = sp.lambdify(x, rate, modules=modules)
        return float(numbers.quad(lambda v: reach / (v * v * speed(begin + reach * (1 - v) / v)), [0, 0.5, 1]))

    try:
        return measured("math", mpmath.fp)
    except OverflowError:
        return measured("mpmath", mpmath.mp)  # slower, and no number is too large


# ---------------------------------------------------------------------- blowup
#: Starts that are tried where the equation depends on its start and no closed condition is found.
EXAMPLES = (1, 10, 100, 1000)

#: Seconds for the times of one region, seconds reserved for the rest of the answer, and most formulas for one time.
TIME_SECONDS = 4.0
RESERVED_SECONDS = 2.0
MAX_FORMS = 3

#: Errors that end the search for a closed form: no decision, or an algorithm of sympy that gives up.
NOT_FOUND = (Undecided, BasePolynomialError, NotImplementedError)

x = sp.Dummy("x", real=True)
start = sp.Dummy("start", real=True)


@dataclass(frozen=True)
class BlowUp:
    """The starts h0 that reach infinity in the direction `way` (+1 or -1), and when.

    `condition` is necessary and sufficient, including conditions on the coefficients. It is None where there is no
    closed one; then, where `where` holds, every h0 far enough on that side blows up. `time` is None where there is no
    closed form. An `example` is one choice of h0 and coefficients among many.
    """

    way: int
    condition: sp.Basic | None = None
    time: sp.Expr | None = None
    where: sp.Basic = sp.true
    example: bool = False

    def __str__(self) -> str:
        when = "in finite time" if self.time is None else f"at t = {self.time}"
        return f"{'for example ' if self.example else ''}from {self._start()}: blows up {when}"

    def _start(self) -> str:
        if self.condition is not None and self.condition.has(sp.Symbol("h0")):
            return condition_in_words(self.condition)
        far = "every h0"
        if self.condition is None:
            far = f"h0 {'large' if self.way > 0 else 'negative'} enough"
        where = self.where if self.condition is None else self.condition
        return far if where == sp.true else f"{far}, where {condition_in_words(where)}"


@dataclass(frozen=True)
class ScalarFate:
    """The blow-ups of a scalar equation, and why others could not be excluded."""

    blow_ups: tuple[BlowUp, ...]
    open: tuple[str, ...] = ()

    @property
    def is_bounded(self) -> bool:
        """Whether solutions are proved never to reach infinity."""
        return not self.blow_ups and not self.open


@dataclass(frozen=True)
class _Escape:
    """x' = f(x) reaches infinity iff the start exceeds all thresholds; None where they have no closed form."""

    thresholds: tuple[sp.Expr, ...] | None


@dataclass(frozen=True)
class _Unsettled:
    reason: str


def fate(rate: sp.Expr, domain: Domain) -> ScalarFate:
    """Whether and from where h' = rate(h), h(0) = h0, reaches infinity; h0 may occur in the rate.

    >>> b = sp.Symbol("b", real=True)
    >>> print(*fate(b * h**2 - h, Domain()).blow_ups, sep="\\n")
    from b > 0 and h0 > 1/b: blows up at t = log(b*h0/(b*h0 - 1))
    from b < 0 and h0 < 1/b: blows up at t = -log((b*h0 - 1)/(b*h0))
    """
    blow_ups: list[BlowUp] = []
    unsettled: list[str] = []
    for way in (1, -1):
        reflected = way * rate.subs({h: way * x, h0: way * start}, simultaneous=True)
        mirrored = Domain(tuple(c.subs(h0, way * start) for c in domain.conditions))
        try:
            answers = cases(mirrored, partial(_escape, reflected))
        except Undecided as problem:
            unsettled.append(str(problem))
            continue
        for condition, answer in answers:
            if isinstance(answer, _Unsettled):
                unsettled.append(answer.reason)
            elif answer is not None:
                more = _blow_ups(way, condition, answer, reflected, mirrored)
                blow_ups += more
                if not more:
                    unsettled.append(
                        f"no start and coefficients that blow up were found for {condition_in_words(condition)}"
                    )
    return ScalarFate(tuple(blow_ups), tuple(dict.fromkeys(unsettled)))


def _escape(rate: sp.Expr, domain: Domain) -> _Escape | _Unsettled | None:
    """Whether x' = rate reaches +oo, and from where; None if it never does."""
    rate = reduced(domain, rate)
    for mask in (m for m in rate.free_symbols if m.name == "M"):
        raise Split(sp.Eq(mask, 1), sp.Eq(mask, 0))
    try:
        if growth(rate, x, 1, domain).trend is not Trend.ESCAPING:
            return None
    except Undecided as problem:
        return _Unsettled(str(problem))
    try:
        through = _through_exponential(rate, domain)
        if through is None:
            last = _last_zeros(rate, x, start, domain)
        else:
            last = through.thresholds(_last_zeros(through.rate, through.y, through.y0, domain))
    except NOT_FOUND:
        return _Escape(None)
    return None if last is None else _Escape(last)


def _last_zeros(rate: sp.Expr, x: sp.Symbol, start: sp.Symbol, domain: Domain) -> tuple[sp.Expr, ...] | None:
    """The zeros such that the rate is positive exactly beyond all of them; None where no start is beyond them.

    Raises `Undecided` where no closed form is found.
    """
    ahead = domain.where(sp.Ge(x, start, evaluate=False))
    if ahead.proves(sp.Gt(rate, 0, evaluate=False)):
        return ()
    zeros = _certain([z for z in candidates(rate, x, domain) if _is_zero(rate, x, z, domain)], domain)
    if x.is_positive:
        zeros = [z for z in zeros if strict_sign(domain, z) > 0]
    last = _largest(zeros, domain)
    if any(domain.proves(sp.Le(start, z, evaluate=False)) for z in last):
        return None
    last = [z for z in last if not domain.proves(sp.Gt(start, z, evaluate=False))]
    if ahead.where(*(sp.Gt(start, z, evaluate=False) for z in last)).proves(sp.Gt(rate, 0, evaluate=False)):
        return tuple(last)
    raise Undecided(f"the last zero of {rate} has no closed form that could be proved")


def _is_zero(rate: sp.Expr, x: sp.Symbol, zero: Zero, domain: Domain) -> bool:
    value = rate.xreplace({x: zero.value})
    return bool(value == 0 or domain.given(*zero.needs).proves(sp.Eq(value, 0, evaluate=False)))


def _certain(zeros: list[Zero], domain: Domain) -> list[sp.Expr]:
    """Zeros that are real on the whole domain; raises `Split` for others that matter."""
    certain = [z.value for z in zeros if all(domain.is_nonnegative(n) for n in z.needs)]
    for zero in zeros:
        if zero.value in certain:
            continue
        inside = domain.given(*zero.needs)
        if inside.is_empty() or any(inside.proves(sp.Ge(z, zero.value, evaluate=False)) for z in certain):
            continue
        if all(strict_sign(domain, need) >= 0 for need in zero.needs):
            certain.append(zero.value)
    return certain


def _largest(zeros: list[sp.Expr], domain: Domain) -> list[sp.Expr]:
    """The zeros that are not proved to lie below another one."""
    largest = list(dict.fromkeys(zeros))
    for zero in list(largest):
        if any(domain.proves(sp.Ge(other, zero, evaluate=False)) for other in largest if other != zero):
            largest.remove(zero)
    return largest


def _blow_ups(way: int, condition: sp.Basic, escape: _Escape, rate: sp.Expr, domain: Domain) -> list[BlowUp]:
    """The answer in h0; empty where no admissible point with blow-up is found."""
    if escape.thresholds is None and rate.has(start):
        return _example(way, condition, rate, domain)
    inside = domain.where(condition)
    beyond = [sp.Gt(start, z, evaluate=False) for z in escape.thresholds or ()] if rate.has(start) else []
    if inside.point(*beyond) is None:
        return []
    if escape.thresholds is None:
        needed = _needed([*_conjuncts(condition)], domain)
        return [BlowUp(way, where=sp.And(*(_in_h0(c, way) for c in needed)))]
    sides = [_side(z, way) for z in escape.thresholds]
    blow_ups = []
    for part, time in _times(rate, escape.thresholds, inside):
        where = sp.And(*(_in_h0(c, way) for c in _needed([*_conjuncts(condition), *_conjuncts(part)], domain)))
        when = None if time is None else public(with_short_logs(time.subs(start, way * h0)))
        blow_ups.append(BlowUp(way, sp.And(where, *sides), when, where))
    return blow_ups


def _conjuncts(condition: sp.Basic) -> tuple[sp.Basic, ...]:
    return tuple(condition.args) if isinstance(condition, sp.And) else (condition,)


def _needed(conditions: list[sp.Basic], domain: Domain) -> list[sp.Basic]:
    """The conditions without those that follow from the others."""
    needed = [c for c in dict.fromkeys(conditions) if c != sp.true]
    for condition in list(needed):
        others = [c for c in needed if c is not condition]
        if others and domain.where(*others).proves(condition):
            needed = others
    return needed


def _times(rate: sp.Expr, thresholds: tuple[sp.Expr, ...], domain: Domain) -> list[tuple[sp.Basic, sp.Expr | None]]:
    """The times to infinity, each with its condition; a single None where they are not found."""

    def question(inside: Domain) -> sp.Expr | None:
        plain = reduced(inside, rate)
        through = _through_exponential(plain, inside)
        if through is None:
            return escape_time(plain, x, start, thresholds, inside)
        time = escape_time(through.rate, through.y, through.y0, through.starts(thresholds), inside)
        return None if time is None else time.subs(through.y0, sp.exp(through.unit * start))

    unknown: list[tuple[sp.Basic, sp.Expr | None]] = [(sp.true, None)]
    seconds = min(TIME_SECONDS, remaining() - RESERVED_SECONDS)
    if seconds <= 0:
        return unknown
    try:
        times = limited(seconds, cases, domain, question)
    except NOT_FOUND:
        return unknown
    return times if len(times) <= MAX_FORMS else unknown


def _side(threshold: sp.Expr, way: int) -> sp.Basic:
    """The condition start > threshold in terms of h0, with products of roots as one root."""
    value = sp.powsimp(public(threshold.subs(start, way * h0)), force=True, combine="base")
    letter = sp.Symbol("h0")
    return sp.Gt(letter, value) if way > 0 else sp.Lt(letter, -value)


def _in_h0(condition: sp.Basic, way: int) -> sp.Basic:
    """A condition in plain symbols, every inequality with its number on the right and no leading minus."""
    if condition == sp.true:
        return sp.true
    if isinstance(condition, sp.And | sp.Or):
        return condition.func(*(_in_h0(part, way) for part in condition.args))
    gap = sp.expand(public((condition.lhs - condition.rhs).subs(start, way * h0)))
    number, rest = gap.as_coeff_Add()
    relation = condition.func
    if rest.could_extract_minus_sign():
        number, rest, relation = -number, -rest, condition.reversed.func
    return relation(rest, -number)


def _example(way: int, condition: sp.Basic, rate: sp.Expr, domain: Domain) -> list[BlowUp]:
    """One start with coefficients for which it blows up, where the rate depends on the start."""
    for value in map(sp.Integer, EXAMPLES):
        point = domain.point(condition, sp.Eq(start, value))
        if point is None:
            continue
        chosen = {k: v for k, v in point.items() if k in rate.free_symbols} | {start: value}
        if Domain((sp.Ge(x, value),)).proves(sp.Gt(rate.xreplace(chosen), 0, evaluate=False)):
            names = [sp.Eq(public(k), v) for k, v in chosen.items() if k != start]
            whole = sp.And(*names, sp.Eq(sp.Symbol("h0"), way * value))
            return [BlowUp(way, whole, None, sp.And(*names), example=True)]
    return []


@dataclass(frozen=True)
class _Exponential:
    """The equation for y = exp(q x), q > 0, of x' = f(exp(q x))."""

    rate: sp.Expr
    y: sp.Symbol
    y0: sp.Symbol
    unit: sp.Expr

    def thresholds(self, zeros: tuple[sp.Expr, ...] | None) -> tuple[sp.Expr, ...] | None:
        return None if zeros is None else tuple(sp.log(z) / self.unit for z in zeros)

    def starts(self, thresholds: tuple[sp.Expr, ...]) -> tuple[sp.Expr, ...]:
        return tuple(sp.exp(sp.expand(self.unit * z)) for z in thresholds)


def _through_exponential(rate: sp.Expr, domain: Domain) -> _Exponential | None:
    """The substitution y = exp(q x); None unless x occurs only in exponents that are rational multiples of q x."""
    plain = in_exponentials(rate)
    calls = sorted((c for c in plain.atoms(sp.exp) if c.has(x, start)), key=str)
    slopes = [sp.expand(c.args[0]).coeff(x) for c in calls if c.has(x)]
    if not slopes:
        return None
    unit = slopes[0] if strict_sign(domain, slopes[0]) > 0 else -slopes[0]
    ratios = [sp.cancel(sp.diff(c.args[0], v) / unit) for c in calls for v in (x, start) if c.has(v)]
    if not all(r.is_Rational for r in ratios):
        return None
    share = sp.Rational(1, sp.ilcm(*(r.q for r in ratios), 1))
    y, y0 = sp.Dummy("y", positive=True), sp.Dummy("y0", positive=True)
    letters = {}
    for call in calls:
        argument = sp.expand(call.args[0])
        up, back = (sp.cancel(argument.coeff(v) / (unit * share)) for v in (x, start))
        letters[call] = y**up * y0**back * sp.exp(argument.subs({x: 0, start: 0}))
    through = plain.xreplace(letters)
    if through.has(x, start):
        return None
    return _Exponential(unit * share * y * through, y, y0, unit * share)
