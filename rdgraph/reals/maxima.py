"""The largest of several candidate formulas, over all admissible coefficients."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import sympy as sp

from rdgraph.errors import Undecided, UnknownSign
from rdgraph.reals.budget import unmetered
from rdgraph.reals.domain import NEGATIVE, NONNEGATIVE, POSITIVE, ZERO, Domain
from rdgraph.reals.polynomials import REMEMBERED, Line, factors, isolated_roots, piecewise, reduced, sample_sign


# ---------------------------------------------------------------------- maxima
@dataclass(frozen=True)
class Candidate:
    """A value that is attained, at the place `at`, where all `valid` expressions are >= 0."""

    value: sp.Expr
    valid: tuple[sp.Expr, ...] = ()
    at: sp.Expr | None = None


def plus(left: sp.Expr, right: sp.Expr) -> sp.Expr:
    """The sum, infinite if one term is: sympy does not simplify x + oo for symbols that might be infinite."""
    infinite = [x for x in (left, right) if x in (sp.oo, -sp.oo)]
    return infinite[0] if len(infinite) == 1 else left + right


def maximum(candidates: Sequence[Candidate], domain: Domain, *, place: bool = False) -> sp.Expr:
    """The largest valid candidate, as one formula, a Piecewise over the coefficients, or a Max.

    With `place`, the point where it is attained instead of its value.
    """
    contenders = _possible(candidates, domain)
    if any(c.value == sp.oo and not c.valid for c in contenders):
        return sp.oo
    contenders = _undominated([c for c in contenders if c.value != -sp.oo], domain)
    if not contenders:
        raise Undecided("no candidate for the maximum is valid on the whole domain")
    if len(contenders) == 1:
        return _value(contenders[0], place)
    differences = [a.value - b.value for a, b in itertools.combinations(contenders, 2)]
    conditions = [v for c in contenders for v in c.valid]
    is_finite = not any(c.value.has(sp.oo, -sp.oo) for c in contenders)
    line = domain.line([c.value for c in contenders], conditions) if is_finite else None
    if line is not None:
        try:
            formula = _maximum_on_line(line, contenders, differences + conditions, place)
        except Undecided:  # borders that are not algebraic numbers; a Max still holds if one value is certain
            if place or all(c.valid for c in contenders):
                raise
        else:
            if place or _is_maximum(formula, contenders, domain):
                return formula
    if place:
        raise Undecided(f"which of {', '.join(str(c.value) for c in contenders)} is largest depends on several ratios")
    return _as_max(contenders, domain)


def _is_maximum(formula: sp.Expr, candidates: list[Candidate], domain: Domain) -> bool:
    """Proved: no valid candidate exceeds the formula, and everywhere one of them attains it."""
    apart = []
    for c in candidates:
        valid = [sp.Ge(v, 0, evaluate=False) for v in c.valid]
        if domain.where(*valid).proves(sp.Le(c.value, formula, evaluate=False)) is not True:
            return False
        negated = [sp.Lt(v, 0, evaluate=False) for v in c.valid]
        apart.append(sp.Or(*negated, sp.Ne(c.value, formula, evaluate=False)))
    return domain.where(*apart).is_empty()


def _possible(candidates: Sequence[Candidate], domain: Domain) -> list[Candidate]:
    """Drop candidates that are never valid, and conditions that always hold; each presumes the ones before it."""
    kept: dict[tuple[sp.Expr, tuple[sp.Expr, ...]], Candidate] = {}
    for candidate in candidates:
        valid: tuple[sp.Expr, ...] = ()
        for condition in candidate.valid:
            sign = (domain.given(*valid) if valid else domain).sign(condition)
            if sign == NEGATIVE:
                break
            if sign not in (POSITIVE, NONNEGATIVE, ZERO):
                valid += (condition,)
        else:
            _keep(candidate, valid, kept)
    return list(kept.values())


def _keep(
    candidate: Candidate, valid: tuple[sp.Expr, ...], kept: dict[tuple[sp.Expr, tuple[sp.Expr, ...]], Candidate]
) -> None:
    value = sp.sympify(candidate.value)
    value = value if value.has(sp.Piecewise) else tidy(value)
    if value.has(sp.I):  # sqrt(-a) with a >= 0 is valid at a = 0 alone: values are real wherever they are valid
        value = sp.re(value)
        if value.has(sp.re, sp.im, sp.I):
            raise Undecided(f"whether {candidate.value} is a real number is not known")
    kept.setdefault((value, valid), Candidate(value, valid, candidate.at))


def _undominated(candidates: list[Candidate], domain: Domain) -> list[Candidate]:
    kept = list(candidates)
    for weak in sorted(candidates, key=lambda c: -len(c.valid)):
        rivals = [c for c in kept if c is not weak and not c.valid]
        where = domain.given(*weak.valid) if weak.valid else domain
        if any(where.is_nonnegative(c.value - weak.value, thorough=False) for c in rivals):
            kept = [c for c in kept if c is not weak]
    return kept


def _as_max(candidates: list[Candidate], domain: Domain) -> sp.Expr:
    certain = [c.value for c in candidates if not c.valid]
    if not certain:
        raise Undecided("every candidate for the maximum depends on a condition")
    for value in certain:
        bottom = sp.denom(sp.together(value))
        if not domain.where(sp.Eq(bottom, 0, evaluate=False)).is_empty():
            raise Undecided(f"a candidate for the maximum is not defined where {bottom} = 0")
    conditional = []
    for c in candidates:
        if c.valid:
            bottom = sp.denom(sp.together(c.value))
            parts = [sp.Ne(bottom, 0)] if domain.sign(bottom) not in (POSITIVE, NEGATIVE) else []
            parts += [sp.Ge(domain.cleared(v), 0) for v in c.valid]
            conditional.append(sp.Piecewise((c.value, sp.And(*parts)), (certain[0], True)))
    return sp.Max(*certain, *conditional)


def _maximum_on_line(line: Line, candidates: list[Candidate], borders: list[sp.Expr], place: bool) -> sp.Expr:
    reduced = [Candidate(line.reduce(c.value), tuple(line.reduce(v) for v in c.valid)) for c in candidates]
    cells = line.cells([line.reduce(b) for b in borders])
    best = [_best_at(reduced, line.ratio, cell.sample) for cell in cells]
    return piecewise(line, cells, best, lambda i: _value(candidates[i], place))


def _value(candidate: Candidate, place: bool) -> sp.Expr:
    return candidate.at if place and candidate.at is not None else candidate.value


def _best_at(candidates: list[Candidate], r: sp.Symbol, point: sp.Expr) -> set[int]:
    """Indices of the valid candidates that are largest at a point."""
    values: dict[int, sp.Expr] = {}
    for i, candidate in enumerate(candidates):
        signs = [sample_sign(v.subs(r, point)) for v in candidate.valid]
        if all(sign is not None and sign >= 0 for sign in signs):
            values[i] = candidate.value.subs(r, point)
    best: set[int] = set()
    for i, value in values.items():
        sign = sample_sign(value - values[next(iter(best))]) if best else sample_sign(value) and 1
        if sign == 1:
            best = {i}
        elif sign == 0:
            best.add(i)
    if not best:
        raise Undecided("no candidate for the maximum is valid at a sample point")
    return best


#: Operations beyond which an expression is not expanded: that may take seconds.
LONG = 150


@lru_cache(REMEMBERED)
def tidy(expression: sp.Expr) -> sp.Expr:
    """A short form: factored where that is shorter. Long expressions with roots stay as they are."""
    if expression in (sp.oo, -sp.oo) or expression.is_number or expression.has(sp.CRootOf):
        return sp.sympify(expression)
    is_short = expression.count_ops() <= LONG
    if expression.is_rational_function():
        top, bottom = reduced(expression)
        forms = [sp.expand(expression)] if is_short else []
        forms += [top / bottom, _factored(top) / _factored(bottom)]
    elif is_short:
        forms = [expression, sp.expand(expression), sp.factor_terms(sp.expand(expression))]
    else:
        return expression
    return min(forms, key=lambda e: (e.count_ops(), str(e)))


def _factored(polynomial: sp.Expr) -> sp.Expr:
    product = sp.Mul(*(factor**times for factor, times in unmetered(factors, polynomial)))
    return sp.cancel(polynomial / product) * product


# ---------------------------------------------------------------------- interval extrema
# Where a function of one variable with symbolic coefficients can be extreme on an interval.


@dataclass(frozen=True)
class _Root:
    """A zero of a polynomial, real where all of `real_if` are >= 0.

    A zero -b/(2a) + half_root/a of a quadratic a x^2 + b x + c remembers it, half_root = ± sqrt(b^2 - 4ac)/2.
    """

    point: sp.Expr
    real_if: tuple[sp.Expr, ...] = ()
    quadratic: sp.Poly | None = None
    half_root: sp.Expr = sp.S.Zero

    def value_of(self, expression: sp.Expr, x: sp.Symbol) -> sp.Expr:
        """The value of an expression here; a polynomial is reduced modulo the quadratic, so the root occurs once."""
        if self.quadratic is None or not expression.is_polynomial(x) or _has_roots(expression, self.quadratic):
            return tidy(expression.subs(x, self.point))
        a, b, _ = self.quadratic.all_coeffs()
        field = _fractions(expression, self.quadratic)
        _, rest = sp.div(sp.Poly(expression, x), self.quadratic, domain=field)
        slope, level = rest.nth(1), rest.nth(0)
        return tidy(sp.cancel(level - slope * b / (2 * a))) + tidy(sp.cancel(slope / a)) * self.half_root


def interval_candidates(
    expression: sp.Expr, x: sp.Symbol, lower: sp.Expr, upper: sp.Expr, domain: Domain
) -> list[Candidate]:
    """Where a polynomial in x can be extreme on [lower, upper]: the ends and the critical points.

    An infinite end contributes oo or -oo once the leading coefficient has a sign.
    """
    expression = _without_zeros(sp.expand(expression), x, domain) if domain.conditions else sp.expand(expression)
    if not expression.has(x):
        return [Candidate(expression)]
    polynomial = sp.Poly(expression, x)
    found = [_end_value(polynomial, x, end, domain) for end in (lower, upper)]
    slope = polynomial.diff(x)
    return found + _critical(expression, slope, x, lower, upper, domain)


def _without_zeros(expression: sp.Expr, x: sp.Symbol, domain: Domain) -> sp.Expr:
    """A polynomial without the terms whose coefficients the domain's equations make zero."""
    if not any(isinstance(c, sp.Eq) for c in domain.conditions) or not expression.has(x):
        return expression
    terms = sp.Poly(expression, x).terms()
    return sp.Add(*(c * x ** m[0] for m, c in terms if domain.proves(sp.Eq(c, 0, evaluate=False)) is not True))


def rational_candidates(
    expression: sp.Expr, x: sp.Symbol, lower: sp.Expr, upper: sp.Expr, domain: Domain
) -> list[Candidate]:
    """Where a rational function without poles on [lower, upper] can be extreme: the ends and the critical points."""
    found = []
    for end in (lower, upper):
        finite = end not in (sp.oo, -sp.oo)
        value = expression.subs(x, end) if finite else sp.limit(expression, x, end)
        found.append(Candidate(sp.sympify(value), at=end))
    numerator, _ = reduced(sp.diff(expression, x))
    return found + _critical(expression, sp.Poly(numerator, x), x, lower, upper, domain)


def _critical(
    expression: sp.Expr, slope: sp.Poly, x: sp.Symbol, lower: sp.Expr, upper: sp.Expr, domain: Domain
) -> list[Candidate]:
    found = []
    for root in _real_roots(slope, domain, lower, upper):
        valid = [*root.real_if]
        if lower != -sp.oo:
            valid.append(sp.together(root.point - lower))
        if upper != sp.oo:
            valid.append(sp.together(upper - root.point))
        found.append(Candidate(root.value_of(expression, x), tuple(valid), root.point))
    return found


def _has_roots(*expressions: sp.Expr | sp.Poly) -> bool:
    """Whether the coefficients contain irrational numbers or roots of symbols."""
    powers = {power for e in expressions for power in e.as_expr().atoms(sp.Pow, sp.CRootOf)}
    return any(isinstance(power, sp.CRootOf) or not power.exp.is_Integer for power in powers)


def _fractions(expression: sp.Expr, piece: sp.Poly) -> sp.polys.domains.Domain:
    letters = sorted((expression.free_symbols | piece.as_expr().free_symbols) - {piece.gen}, key=str)
    return sp.QQ.frac_field(*letters) if letters else sp.QQ


def _end_value(polynomial: sp.Poly, x: sp.Symbol, end: sp.Expr, domain: Domain) -> Candidate:
    if end.is_finite is not False and end not in (sp.oo, -sp.oo):
        return Candidate(sp.expand(polynomial.as_expr().subs(x, end)), at=end)
    lead = polynomial.LC() * ((-1) ** polynomial.degree() if end == -sp.oo else 1)
    sign = domain.sign(lead)
    if sign == POSITIVE:
        return Candidate(sp.oo)
    if sign == NEGATIVE:
        return Candidate(-sp.oo)
    text = f"the sign of {lead} decides whether {polynomial.as_expr()} is bounded; assume a sign"
    raise UnknownSign(text, lead)


def _real_roots(polynomial: sp.Poly, domain: Domain, lower: sp.Expr, upper: sp.Expr) -> list[_Root]:
    """Every zero that can be real and lie in [lower, upper], factor by factor."""
    x = polynomial.gen
    if polynomial.is_zero or polynomial.degree() == 0:
        return []
    roots: list[_Root] = []
    for factor, _ in factors(polynomial.as_expr()):
        if not factor.has(x):
            continue
        piece = sp.Poly(factor, x)
        if piece.degree() == 1:
            a, b = piece.all_coeffs()
            roots.append(_Root(sp.cancel(-b / a)))
        elif not piece.free_symbols_in_domain:
            roots += [_Root(r) for r in isolated_roots(piece)]
        elif piece.degree() == 2:
            roots += _quadratic_roots(piece, domain)
        elif not _keeps_sign(piece, domain, lower, upper):
            raise Undecided(f"no closed form for the zeros of {piece.as_expr()}")
    return roots


def _quadratic_roots(piece: sp.Poly, domain: Domain) -> list[_Root]:
    a, b, c = piece.all_coeffs()
    inside = sp.expand(b**2 - 4 * a * c)
    if domain.sign(inside) is NEGATIVE:
        return []
    half_roots = (sp.sqrt(inside) / 2, -sp.sqrt(inside) / 2)
    roots = [_Root((2 * half_root - b) / (2 * a), (inside,), piece, half_root) for half_root in half_roots]
    if domain.sign(a) not in (POSITIVE, NEGATIVE) and b != 0:
        roots.append(_Root(sp.cancel(-c / b), (a, -a)))  # where the leading coefficient vanishes
    return roots


def _keeps_sign(piece: sp.Poly, domain: Domain, lower: sp.Expr, upper: sp.Expr) -> bool:
    """Whether a polynomial has no zero on [lower, upper] for all admissible coefficients."""
    ends = [sp.Ge(piece.gen, lower, evaluate=False)] if lower != -sp.oo else []
    ends += [sp.Le(piece.gen, upper, evaluate=False)] if upper != sp.oo else []
    return domain.where(*ends).proves(sp.Ne(piece.as_expr(), 0, evaluate=False)) is True
