"""The slope r'(h) of an entrywise reaction on an interval: exact extremes where sympy gives them, a bound elsewhere."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

import sympy as sp

from rdgraph.errors import Undecided
from rdgraph.language.answer_symbols import R
from rdgraph.language.normal_form import Act, H, Mix, State
from rdgraph.reals.branches import with_moduli
from rdgraph.reals.budget import limited
from rdgraph.reals.domain import NEGATIVE, POSITIVE, Domain
from rdgraph.reals.judge import remembered, rest_on_enclosures
from rdgraph.reals.line_extents import Extreme, infimum, is_long, supremum
from rdgraph.reals.maxima import Candidate, interval_candidates, maximum, rational_candidates
from rdgraph.reals.polynomials import factors, reduced
from rdgraph.reals.regions import strict_sign
from rdgraph.vocabulary.functions import Monotone, Span, record_of

# ---------------------------------------------------------------------- line slopes
# The extremes of slopes that are sums of coefficients times functions of the state alone, by interval arithmetic.
#
# A slope c_1 g_1(h) + c_2 g_2(h) + ... lies between the sums of the extremes of its parts; if only one part depends on
# h, these are its extremes. The extremes of every g over the reals come from `rdgraph.reals.line_extents`.

#: Most parts that are combined, and seconds for the extremes of one of them.
MAX_PARTS, SECONDS = 4, 2.5


def line_extremes(slope: sp.Expr, domain: Domain) -> tuple[tuple[Candidate, ...], bool] | None:
    """Candidates for the extreme values of a slope over the reals, and whether they are attained; None without any.

    Raises `Split` where the sign of a coefficient decides whether it is bounded.

    >>> a = sp.Symbol("a", positive=True)
    >>> found, exact = line_extremes(a * sp.exp(-(H**2)) * (1 - 2 * H**2), Domain())
    >>> [c.value for c in found], exact
    ([-2*a*exp(-3/2), a], True)
    """
    parts = _parts(_unscaled(slope, domain))
    moving = [c for c, g in parts.items() if g.has(H)]
    if len(moving) > MAX_PARTS or any(g.free_symbols - {H} for g in parts.values()):
        return None
    rest = sp.Add(*(c * g for c, g in parts.items() if not g.has(H)))
    try:
        ends = {c: limited(SECONDS, _both, parts[c]) for c in moving}
    except (Undecided, sp.PolynomialError, NotImplementedError):
        return None
    if not moving:
        return None
    rest_on_enclosures()
    choices = [[_product(c, end.value, domain) for end in ends[c]] for c in moving]
    # Not where infinite parts of both signs meet.
    values = [rest + sp.Add(*c) for c in itertools.product(*choices) if not (sp.oo in c and -sp.oo in c)]
    infinite = {x for chosen in choices for x in chosen if x in (sp.oo, -sp.oo)}
    candidates = [Candidate(v) for v in values if not v.has(sp.oo, -sp.oo)] + [Candidate(x) for x in infinite]
    return tuple(candidates), len(moving) == 1 and all(end.exact for end in ends[moving[0]])


def _unscaled(slope: sp.Expr, domain: Domain) -> sp.Expr:
    """The slope as a function of c h, where all functions are of c h with one coefficient c that is not zero."""
    calls = [call for call in slope.atoms(sp.Function) if call.has(H)]
    scales = {sp.expand(call.args[0]).coeff(H) for call in calls}
    scale = next(iter(scales)) if len(scales) == 1 else sp.S.One
    if not scale.free_symbols or scale.has(H) or domain.sign(scale) not in (POSITIVE, NEGATIVE):
        return slope
    return sp.expand(slope.xreplace({H: H / scale}))


def _parts(slope: sp.Expr) -> dict[sp.Expr, sp.Expr]:
    """The terms of a sum by coefficient: {coefficient: function of the state}, numbers with the functions."""
    parts: dict[sp.Expr, sp.Expr] = {}
    for term in sp.Add.make_args(slope):
        front, function = term.as_independent(H, as_Add=False)
        number, letters = front.as_coeff_Mul(rational=True)
        if not letters.free_symbols:
            number, letters = front, sp.S.One
        parts[letters] = parts.get(letters, sp.S.Zero) + number * function
    return {letters: function for letters, function in parts.items() if function != 0}


@remembered(512)
def _both(function: sp.Expr) -> tuple[Extreme, Extreme]:
    return infimum(function, H), supremum(function, H)


def _product(letters: sp.Expr, end: sp.Expr, domain: Domain) -> sp.Expr:
    if end not in (sp.oo, -sp.oo):
        return letters * end
    sign = strict_sign(domain, letters)
    return sp.S.Zero if sign == 0 else sign * end


# ---------------------------------------------------------------------- slope bounds
@dataclass(frozen=True)
class Slopes:
    """Candidates for the extreme values of r'; `exact` says whether they are attained.

    Symbols stand for transcendental ends of an interval while maxima are taken: `conditions` are what is known about
    these symbols, `back` are their values.
    """

    candidates: tuple[Candidate, ...]
    exact: bool
    conditions: tuple[sp.Basic, ...] = ()
    back: tuple[tuple[sp.Basic, sp.Expr], ...] = ()

    def domain(self, domain: Domain) -> Domain:
        return domain.where(*self.conditions)

    def restore(self, expression: sp.Expr) -> sp.Expr:
        return expression.xreplace(dict(self.back))


#: Values of the derivatives of abs and relu.
_STEPS = {sp.sign: Span.of(-1, 1, attained=True), sp.Heaviside: Span.of(0, 1, attained=True)}


def largest_value(expression: sp.Expr) -> sp.Expr:
    """sup |f| of the function that an expression is a value of; infinite where none is known."""
    record = record_of(expression)
    span = _STEPS.get(expression.func) if record is None else record.range
    return sp.oo if span is None else span.magnitude


def largest_slope(expression: sp.Expr) -> sp.Expr:
    """sup |f'| of the function that an expression is a value of; infinite where none is known."""
    record = record_of(expression)
    return record.slope.magnitude if record is not None and record.slope is not None else sp.oo


def slopes(reaction: sp.Expr, domain: Domain, *, local: bool) -> Slopes:
    """Extremes of r' on the reals, or on [-R, R] if `local`."""
    if reaction == 0:
        return Slopes((Candidate(sp.S.Zero),), exact=True)
    lower, upper = (-R, R) if local else (-sp.oo, sp.oo)
    if reaction.is_polynomial(H):
        slope = sp.expand(sp.diff(reaction, H))
        return Slopes(tuple(interval_candidates(slope, H, lower, upper, domain)), exact=True)
    if reaction.is_rational_function(H):
        top, bottom = reduced(sp.diff(sp.Mul(*_quotient(reaction)), H))
        if _is_defined(reaction, sp.Mul(*(f for f, _ in factors(bottom) if f.has(H))), domain):
            candidates = tuple(rational_candidates(top / bottom, H, lower, upper, domain))
            is_readable = local or not any(is_long(c.value) for c in candidates)
            on_line = None if is_readable else line_extremes(sp.diff(reaction, H), domain)
            return Slopes(candidates, exact=True) if on_line is None else Slopes(*on_line)
    return extremes(sp.diff(reaction, H), domain, local=local)


def steepest(reaction: sp.Expr, domain: Domain, *, local: bool) -> sp.Expr:
    """sup |r'| on the reals, or on [-R, R] if `local`; infinite where there is none.

    >>> steepest(sp.Symbol("a", real=True) * sp.tanh(H - H**3), Domain(), local=False).evalf(4)
    2.597*Abs(a)
    """
    steep = slopes(reaction, domain, local=local)
    both = [Candidate(sign * c.value, c.valid) for c in steep.candidates for sign in (1, -1)]
    return with_moduli(steep.restore(maximum(both, steep.domain(domain))))


def extremes(expression: sp.Expr, domain: Domain, *, local: bool) -> Slopes:
    """Extremes of a function of single entries that is not a quotient of polynomials."""
    expanded = _expanded(expression)
    through = _through_one_function(expanded, domain, local)
    if through is not None:
        return through
    on_line = None if local else line_extremes(expanded, domain)
    return _split_bound(expanded, domain, local) if on_line is None else Slopes(*on_line)


def _expanded(slope: sp.Expr) -> sp.Expr:
    """A sum of products; roots stay whole, so that (1 + H^2)^(3/2) remains a power."""
    rooted = any(not power.exp.is_Integer for power in slope.atoms(sp.Pow))
    return sp.expand_mul(slope) if rooted else sp.expand(slope)


def _split_bound(slope: sp.Expr, domain: Domain, local: bool) -> Slopes:
    """Polynomial part exactly, the rest by a term-by-term bound on both sides."""
    smooth = sp.Add(*(t for t in sp.Add.make_args(slope) if t.is_polynomial(H)))
    bound = _smaller(sup_magnitude(slope - smooth, local), _by_powers(slope - smooth, local))
    lower, upper = (-R, R) if local else (-sp.oo, sp.oo)
    main = interval_candidates(smooth, H, lower, upper, domain)
    return Slopes(tuple(Candidate(c.value + sign * bound, c.valid) for c in main for sign in (1, -1)), exact=False)


def _smaller(first: sp.Expr, second: sp.Expr) -> sp.Expr:
    """The second of two bounds where it is at most the first for all coefficients, else the first."""
    if second.has(sp.oo):
        return first
    return second if first.has(sp.oo) or sp.expand(first - second).is_nonnegative else first


def _by_powers(slope: sp.Expr, local: bool) -> sp.Expr:
    """The bound sum_k |c_k| R^k sup |g_k| of |sum_k c_k h^k g_k(h)|, functions with the same power of h together."""
    groups: dict[sp.Expr, sp.Expr] = {}
    for term in sp.Add.make_args(slope):
        letters, function = term.as_independent(H, as_Add=False)
        number, letters = letters.as_coeff_Mul()
        front = letters * sp.Mul(*(f for f in sp.Mul.make_args(function) if f.as_base_exp()[0] == H))
        groups[front] = groups.get(front, sp.S.Zero) + number * function * letters / front
    return sp.Add(*(sup_magnitude(front, local) * _largest_of(g, local) for front, g in groups.items()))


def _largest_of(function: sp.Expr, local: bool) -> sp.Expr:
    """sup |g| over all states: exact for a polynomial in one bounded function, else term by term."""
    through = _through_one_function(function, Domain(), local=False) if function.has(H) else None
    if through is None or function.free_symbols != {H}:
        return sup_magnitude(function, local)
    return maximum([Candidate(sign * c.value, c.valid) for c in through.candidates for sign in (1, -1)], Domain())


def _is_defined(reaction: sp.Expr, reduced_bottom: sp.Expr, domain: Domain) -> bool:
    """Proved: a quotient has a value everywhere, since its factors, also those that cancel, have no zero."""
    if not keeps_away_from_zero(reduced_bottom, domain):
        return False
    written = {power.base for power in reaction.atoms(sp.Pow) if power.exp.is_negative and power.base.has(H)}
    reduced_factors = {factor for factor, _ in factors(reduced_bottom)}
    return all(base in reduced_factors or keeps_away_from_zero(base, domain) for base in written)


def _quotient(reaction: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    top, bottom = reduced(reaction)
    return top, 1 / bottom


def keeps_away_from_zero(denominator: sp.Expr, domain: Domain | None = None) -> bool:
    """Proved: an expression has no real zero, for all values of what operators and matrices collect."""
    atoms = sorted(denominator.atoms(Act, Mix), key=lambda a: -a.count_ops())
    plain = denominator.xreplace({atom: sp.Dummy(f"x{i}", real=True) for i, atom in enumerate(atoms)})
    return (domain or Domain()).proves(sp.Ne(plain, 0, evaluate=False)) is True


def _through_one_function(slope: sp.Expr, domain: Domain, local: bool) -> Slopes | None:
    """The extremes of r' as a polynomial in one function value y = f(c h), over the range of f; None for others."""
    functions = sorted((f for f in slope.atoms(sp.Function) | slope.atoms(sp.sign) if f.has(H)), key=str)
    if len(functions) != 1:
        return None
    call = functions[0]
    argument = call.args[0]
    factor = argument.coeff(H)
    y = sp.Dummy("y", real=True)
    flat = slope.xreplace({call: y})
    if flat.has(H) or not flat.is_polynomial(y) or sp.expand(argument - factor * H) != 0:
        return None
    if domain.sign(factor) not in (POSITIVE, NEGATIVE):
        return None
    reach = factor * R if domain.sign(factor) == POSITIVE else -factor * R
    values = _reach_of(call, reach, local)
    if values is None:
        return None
    within = domain.where(*values.conditions)
    candidates = interval_candidates(flat, y, values.span.lower, values.span.upper, within)
    return Slopes(tuple(candidates), values.exact, values.conditions, values.back)


@dataclass(frozen=True)
class _Reach:
    """The values of a function over the reals or over |h| <= R; symbols stand for ends that are put in afterwards."""

    span: Span
    exact: bool
    back: tuple[tuple[sp.Basic, sp.Expr], ...] = ()
    conditions: tuple[sp.Basic, ...] = ()


def _reach_of(call: sp.Expr, reach: sp.Expr, local: bool) -> _Reach | None:
    """The values of a function of c h, where |c h| <= reach if `local`."""
    record = record_of(call)
    span = _STEPS.get(call.func) if record is None else record.range
    if span is None or record is None:
        return None if span is None else _Reach(span, exact=True)
    if not local:
        return _Reach(span, record.is_sharp)
    if record.monotone is Monotone.INCREASING and record.reflection is not None and record.at_zero is not None:
        end = sp.Dummy("end", positive=True)
        relations = [sp.Gt(end, record.at_zero), *(Span(-sp.oo, span.upper).relations(end))]
        known = tuple(r for r in relations if r != sp.true)
        return _Reach(Span(record.reflection(reach, end), end), True, ((end, record.sympy(reach)),), known)
    return _Reach(span, exact=False) if span.is_bounded else None  # a short interval need not reach the extremes


def sup_magnitude(expression: sp.Expr, local: bool) -> sp.Expr:
    """A crude bound of |expression| term by term, where all states and starts have |h| <= R or are any real numbers."""
    states = expression.atoms(State)
    if not states:
        return sp.Abs(expression)
    if isinstance(expression, State):
        return R if local else sp.oo
    if isinstance(expression, sp.Add):
        return sp.Add(*(sup_magnitude(a, local) for a in expression.args))
    if len(states) == 1:
        expression = expression.xreplace({states.pop(): H})
    if isinstance(expression, sp.Mul):
        decaying, rest = _decaying(expression)
        return sp.Mul(decaying, *(sup_magnitude(a, local) for a in rest))
    if isinstance(expression, sp.Pow) and expression.exp.is_nonnegative and expression.exp.is_number:
        return sup_magnitude(expression.base, local) ** expression.exp
    largest = largest_value(expression)
    if largest.is_finite:
        return largest
    if isinstance(expression, sp.Pow) and (bell := _bell(expression)) is not None:
        return bell[0] ** expression.exp
    if isinstance(expression, sp.exp):
        inner = sup_magnitude(expression.args[0], local)
        return sp.exp(inner)
    record = record_of(expression)
    if record is not None and record.is_lipschitz and record.at_zero is not None:
        return sp.Abs(record.at_zero) + largest_slope(expression) * sup_magnitude(expression.args[0], local)
    return sp.oo


def _bell(power: sp.Expr) -> tuple[sp.Expr, sp.Expr] | None:
    """c_0 and c_2 of (c_0 + c_2 H^2)^-q, both positive."""
    if not isinstance(power, sp.Pow) or not power.exp.is_negative or not power.base.is_polynomial(H):
        return None
    terms = dict(sp.Poly(power.base, H).terms())
    constant, square = terms.get((0,), sp.S.Zero), terms.get((2,), sp.S.Zero)
    alone = len(terms) == 2 and constant.is_positive and square.is_positive
    return (constant, square) if alone else None


def _decaying(product: sp.Mul) -> tuple[sp.Expr, list[sp.Expr]]:
    """A bound for H^n (c_0 + c_2 H^2)^-q with n <= 2q, that is c_2^(-n/2) c_0^(n/2 - q), and the other factors."""
    for power in product.args:
        bell = _bell(power)
        if bell is None:
            continue
        others = [a for a in product.args if a is not power]
        states = [a for a in others if a.as_base_exp()[0] == H and a.as_base_exp()[1].is_nonnegative]
        degree = sum((a.as_base_exp()[1] for a in states), sp.S.Zero)
        if degree <= -2 * power.exp:
            bound = bell[1] ** (-degree / 2) * bell[0] ** (degree / 2 + power.exp)
            return bound, [a for a in others if a not in states]
    return sp.S.One, list(product.args)


def is_kinked(call: sp.Expr, seen: Mapping[sp.Symbol, sp.Expr]) -> bool:
    """Whether the argument of a function with a kink at zero, such as abs, vanishes at all these states."""
    record = record_of(call)
    return record is not None and record.pieces is not None and sp.expand(call.args[0].xreplace(seen)) == 0
