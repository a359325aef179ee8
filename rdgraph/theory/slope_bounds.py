"""The slope r'(h) of an entrywise reaction on an interval: exact extremes where sympy gives them, a bound elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sympy as sp

from rdgraph.algebra.normal_form import Act, H, Mix
from rdgraph.decisions.absolute_values import with_moduli
from rdgraph.decisions.domain import NEGATIVE, POSITIVE, Domain
from rdgraph.decisions.interval_extrema import interval_candidates, rational_candidates
from rdgraph.decisions.line_extents import is_long
from rdgraph.decisions.maxima import Candidate, maximum
from rdgraph.decisions.polynomials import factors, reduced
from rdgraph.syntax.answer_symbols import R
from rdgraph.syntax.functions import Monotone, Span, record_of
from rdgraph.theory.line_slopes import line_extremes


@dataclass(frozen=True)
class Slopes:
    """Candidates for the extreme values of r'; `exact` says whether they are attained.

    Transcendental ends of an interval stand as letters while maxima are taken: `conditions` says what is known
    about them, `back` puts them back.
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
            found = tuple(rational_candidates(top / bottom, H, lower, upper, domain))
            is_readable = local or not any(is_long(c.value) for c in found)
            on_line = None if is_readable else line_extremes(sp.diff(reaction, H), domain)
            return Slopes(found, exact=True) if on_line is None else Slopes(*on_line)
    return extremes(sp.diff(reaction, H), domain, local=local)


def steepest(reaction: sp.Expr, domain: Domain, *, local: bool) -> sp.Expr:
    """sup |r'| on the reals, or on [-R, R] if `local`; infinite where there is none.

    >>> steepest(sp.Symbol("a", real=True) * sp.tanh(H - H**3), Domain(), local=False).evalf(4)
    2.597*Abs(a)
    """
    found = slopes(reaction, domain, local=local)
    both = [Candidate(sign * c.value, c.valid) for c in found.candidates for sign in (1, -1)]
    return with_moduli(found.restore(maximum(both, found.domain(domain))))


def extremes(expression: sp.Expr, domain: Domain, *, local: bool) -> Slopes:
    """Extremes of a function of single entries that is no quotient of polynomials."""
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
    bound = sup_magnitude(slope - smooth, local)
    lower, upper = (-R, R) if local else (-sp.oo, sp.oo)
    main = interval_candidates(smooth, H, lower, upper, domain)
    return Slopes(tuple(Candidate(c.value + sign * bound, c.valid) for c in main for sign in (1, -1)), exact=False)


def _is_defined(reaction: sp.Expr, reduced_bottom: sp.Expr, domain: Domain) -> bool:
    """Whether a quotient has a value everywhere, proved: the factors that cancel in it too keep away from zero."""
    if not keeps_away_from_zero(reduced_bottom, domain):
        return False
    written = {power.base for power in reaction.atoms(sp.Pow) if power.exp.is_negative and power.base.has(H)}
    kept = {factor for factor, _ in factors(reduced_bottom)}
    return all(base in kept or keeps_away_from_zero(base, domain) for base in written)


def _quotient(reaction: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    top, bottom = reduced(reaction)
    return top, 1 / bottom


def keeps_away_from_zero(denominator: sp.Expr, domain: Domain | None = None) -> bool:
    """Whether an expression has no real zero, proved; what operators and matrices make of the state counts as free."""
    atoms = sorted(denominator.atoms(Act, Mix), key=lambda a: -a.count_ops())
    plain = denominator.xreplace({atom: sp.Dummy(f"x{i}", real=True) for i, atom in enumerate(atoms)})
    return (domain or Domain()).proves(sp.Ne(plain, 0, evaluate=False)) is True


def _through_one_function(slope: sp.Expr, domain: Domain, local: bool) -> Slopes | None:
    """r' as polynomial in one function value y = f(c h): its range turns the question into one about polynomials."""
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
    found = interval_candidates(flat, y, values.span.lower, values.span.upper, within)
    return Slopes(tuple(found), values.exact, values.conditions, values.back)


@dataclass(frozen=True)
class _Reach:
    """The values of a function over the reals or over |h| <= R; ends that are put back afterwards stand as letters."""

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
    """A crude bound of |expression| over |h| <= R or over the reals, term by term."""
    if not expression.has(H):
        return sp.Abs(expression)
    if expression == H:
        return R if local else sp.oo
    if isinstance(expression, sp.Add):
        return sp.Add(*(sup_magnitude(a, local) for a in expression.args))
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
    """Whether a function with a kink at zero, such as abs, is taken of something that vanishes at all these states."""
    record = record_of(call)
    return record is not None and record.pieces is not None and sp.expand(call.args[0].xreplace(seen)) == 0
