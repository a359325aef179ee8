"""Where a function of one variable can be extreme on an interval, its coefficients being letters."""

from __future__ import annotations

import sympy as sp

from rdgraph.cells import isolated_roots
from rdgraph.decide import NEGATIVE, POSITIVE, Domain
from rdgraph.decisions.polynomials import factors, reduced
from rdgraph.errors import Undecided
from rdgraph.maxima import Candidate, tidy


def interval_candidates(
    expression: sp.Expr, x: sp.Symbol, lower: sp.Expr, upper: sp.Expr, domain: Domain
) -> list[Candidate]:
    """Where a polynomial in x can be extreme on [lower, upper]: the ends and the critical points.

    An infinite end contributes oo or -oo once the leading coefficient has a sign.
    """
    expression = sp.expand(expression)
    if not expression.has(x):
        return [Candidate(expression)]
    polynomial = sp.Poly(expression, x)
    found = [_end_value(polynomial, x, end, domain) for end in (lower, upper)]
    slope = polynomial.diff(x)
    return found + _critical(expression, slope, x, lower, upper, domain)


def rational_candidates(
    expression: sp.Expr, x: sp.Symbol, lower: sp.Expr, upper: sp.Expr, domain: Domain
) -> list[Candidate]:
    """The same for a rational function without poles on the interval."""
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
    for point, conditions in _real_roots(slope, domain, lower, upper):
        valid = [*conditions]
        if lower != -sp.oo:
            valid.append(sp.together(point - lower))
        if upper != sp.oo:
            valid.append(sp.together(upper - point))
        found.append(Candidate(tidy(expression.subs(x, point)), tuple(valid), point))
    return found


def _end_value(polynomial: sp.Poly, x: sp.Symbol, end: sp.Expr, domain: Domain) -> Candidate:
    if end.is_finite is not False and end not in (sp.oo, -sp.oo):
        return Candidate(sp.expand(polynomial.as_expr().subs(x, end)), at=end)
    lead = polynomial.LC() * ((-1) ** polynomial.degree() if end == -sp.oo else 1)
    sign = domain.sign(lead)
    if sign == POSITIVE:
        return Candidate(sp.oo)
    if sign == NEGATIVE:
        return Candidate(-sp.oo)
    raise Undecided(f"the sign of {lead} decides whether {polynomial.as_expr()} is bounded; assume a sign")


def _real_roots(
    polynomial: sp.Poly, domain: Domain, lower: sp.Expr, upper: sp.Expr
) -> list[tuple[sp.Expr, tuple[sp.Expr, ...]]]:
    """Real roots with the conditions under which they are real."""
    x = polynomial.gen
    if polynomial.is_zero or polynomial.degree() == 0:
        return []
    roots: list[tuple[sp.Expr, tuple[sp.Expr, ...]]] = []
    for factor, _ in factors(polynomial.as_expr()):
        if not factor.has(x):
            continue
        piece = sp.Poly(factor, x)
        coefficients = piece.all_coeffs()
        if piece.degree() == 1:
            roots.append((sp.cancel(-coefficients[1] / coefficients[0]), ()))
        elif not piece.free_symbols_in_domain:
            roots += [(r, ()) for r in isolated_roots(piece)]
        elif piece.degree() == 2:
            a, b, c = coefficients
            inside = sp.expand(b**2 - 4 * a * c)
            if domain.sign(inside) == NEGATIVE:
                continue
            roots += [((-b + sign * sp.sqrt(inside)) / (2 * a), (inside,)) for sign in (1, -1)]
            if domain.sign(a) not in (POSITIVE, NEGATIVE) and b != 0:
                roots.append((sp.cancel(-c / b), (a, -a)))  # where the leading coefficient vanishes
        elif _keeps_sign(piece, domain, lower, upper):
            continue
        else:
            raise Undecided(f"no closed form for the zeros of {piece.as_expr()}")
    return roots


def _keeps_sign(piece: sp.Poly, domain: Domain, lower: sp.Expr, upper: sp.Expr) -> bool:
    """Whether a polynomial has no zero on [lower, upper], whatever the coefficients."""
    ends = [sp.Ge(piece.gen, lower, evaluate=False)] if lower != -sp.oo else []
    ends += [sp.Le(piece.gen, upper, evaluate=False)] if upper != sp.oo else []
    return domain.where(*ends).proves(sp.Ne(piece.as_expr(), 0, evaluate=False)) is True
