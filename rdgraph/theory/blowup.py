"""Blow-up of a scalar equation h' = f(h): from which h0, and when.

Where f grows faster than linearly, h reaches +oo iff f(x) > 0 for all x >= h0, that is, no zero lies at h0 or beyond.
Candidates for the zeros are proved to be zeros and to be the last ones; -oo is +oo of the reflected equation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import sympy as sp
from sympy.polys.polyerrors import BasePolynomialError

from rdgraph.decisions.budget import limited, remaining
from rdgraph.decisions.condition_words import condition_in_words
from rdgraph.decisions.domain import Domain
from rdgraph.decisions.regions import Split, cases, reduced, strict_sign
from rdgraph.decisions.zero_candidates import Zero, candidates
from rdgraph.errors import Undecided
from rdgraph.syntax.answer_symbols import h, h0, public
from rdgraph.syntax.functions import in_exponentials
from rdgraph.theory.blowup_times import escape_time, with_short_logs
from rdgraph.theory.growth_at_infinity import Trend, growth

#: Starts that are tried where no closed condition is found and the equation depends on its start.
EXAMPLES = (1, 10, 100, 1000)

#: Seconds for the times of one region, what is left to the rest of the answer, and how many formulas are still one.
TIME_SECONDS = 4.0
RESERVED_SECONDS = 2.0
MAX_FORMS = 3

#: What ends the search for a closed form: no decision, or an algorithm of sympy's that gives up.
NOT_FOUND = (Undecided, BasePolynomialError, NotImplementedError)

x = sp.Dummy("x", real=True)
start = sp.Dummy("start", real=True)


@dataclass(frozen=True)
class BlowUp:
    """A start h0 that reaches infinity in the direction `way` (+1 or -1): from which h0, and when.

    `condition` is necessary and sufficient, conditions on the coefficients included; without a closed one it is None,
    and where `where` holds every h0 far enough on that side blows up. `time` is None where it was not integrated. An
    `example` is one choice of h0 and coefficients out of many.
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
    """What became of a scalar equation: its blow-ups, and why others could not be excluded."""

    blow_ups: tuple[BlowUp, ...]
    open: tuple[str, ...] = ()

    @property
    def is_bounded(self) -> bool:
        """Proved never to reach infinity."""
        return not self.blow_ups and not self.open


@dataclass(frozen=True)
class _Escape:
    """x' = f(x) reaches infinity iff the start lies beyond all thresholds; None where they have no closed form."""

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
                found = _blow_ups(way, condition, answer, reflected, mirrored)
                blow_ups += found
                if not found:
                    unsettled.append(f"no start and coefficients were found that show it, where {condition}")
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
    """Zeros beyond which, and only beyond which, the rate is positive; None where every start lies behind one.

    `Undecided` where no closed ones are found.
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
    """Zeros that are real on the whole domain; it is split on those that are not and matter."""
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
    """Those that are not proved to lie below another one."""
    kept = list(dict.fromkeys(zeros))
    for zero in list(kept):
        if any(domain.proves(sp.Ge(other, zero, evaluate=False)) for other in kept if other != zero):
            kept.remove(zero)
    return kept


def _blow_ups(way: int, condition: sp.Basic, escape: _Escape, rate: sp.Expr, domain: Domain) -> list[BlowUp]:
    """The answer in h0; empty where no admissible point shows that it can happen."""
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
    found = []
    for part, time in _times(rate, escape.thresholds, inside):
        where = sp.And(*(_in_h0(c, way) for c in _needed([*_conjuncts(condition), *_conjuncts(part)], domain)))
        when = None if time is None else public(with_short_logs(time.subs(start, way * h0)))
        found.append(BlowUp(way, sp.And(where, *sides), when, where))
    return found


def _conjuncts(condition: sp.Basic) -> tuple[sp.Basic, ...]:
    return tuple(condition.args) if isinstance(condition, sp.And) else (condition,)


def _needed(conditions: list[sp.Basic], domain: Domain) -> list[sp.Basic]:
    """Conditions without those that follow from the others."""
    kept = [c for c in dict.fromkeys(conditions) if c != sp.true]
    for condition in list(kept):
        others = [c for c in kept if c is not condition]
        if others and domain.where(*others).proves(condition):
            kept = others
    return kept


def _times(rate: sp.Expr, thresholds: tuple[sp.Expr, ...], domain: Domain) -> list[tuple[sp.Basic, sp.Expr | None]]:
    """Times to infinity with the conditions on which their form depends; one None where they are not found."""

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
        found = limited(seconds, cases, domain, question)
    except NOT_FOUND:
        return unknown
    return found if len(found) <= MAX_FORMS else unknown


def _side(threshold: sp.Expr, way: int) -> sp.Basic:
    """start > threshold in terms of h0; roots of numbers that are all >= 0 become one root."""
    value = sp.powsimp(public(threshold.subs(start, way * h0)), force=True, combine="base")
    own = sp.Symbol("h0")
    return sp.Gt(own, value) if way > 0 else sp.Lt(own, -value)


def _in_h0(condition: sp.Basic, way: int) -> sp.Basic:
    """A condition in plain letters, every inequality with its numbers on the right and no leading minus."""
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
    """One start and one choice of coefficients that blow up, where the rate depends on the start."""
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
    """x' = f(exp(q x)) as an equation for y = exp(q x), q > 0."""

    rate: sp.Expr
    y: sp.Symbol
    y0: sp.Symbol
    unit: sp.Expr

    def thresholds(self, zeros: tuple[sp.Expr, ...] | None) -> tuple[sp.Expr, ...] | None:
        return None if zeros is None else tuple(sp.log(z) / self.unit for z in zeros)

    def starts(self, thresholds: tuple[sp.Expr, ...]) -> tuple[sp.Expr, ...]:
        return tuple(sp.exp(sp.expand(self.unit * z)) for z in thresholds)


def _through_exponential(rate: sp.Expr, domain: Domain) -> _Exponential | None:
    """y = exp(q x) where x occurs in no other way; exponents must be rational multiples of one q x, plus constants."""
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
