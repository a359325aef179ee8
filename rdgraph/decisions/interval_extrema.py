"""Where a function of one variable can be extreme on an interval, its coefficients being letters."""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from rdgraph.decisions.domain import NEGATIVE, POSITIVE, Domain
from rdgraph.decisions.maxima import Candidate, tidy
from rdgraph.decisions.polynomials import factors, reduced
from rdgraph.decisions.ratio_cells import isolated_roots
from rdgraph.errors import Undecided, UnknownSign


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
    for root in _real_roots(slope, domain, lower, upper):
        valid = [*root.real_if]
        if lower != -sp.oo:
            valid.append(sp.together(root.point - lower))
        if upper != sp.oo:
            valid.append(sp.together(upper - root.point))
        found.append(Candidate(root.value_of(expression, x), tuple(valid), root.point))
    return found


def _has_roots(*expressions: sp.Expr | sp.Poly) -> bool:
    """Whether irrational numbers or roots of letters stand among the coefficients."""
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
    """Whether a polynomial has no zero on [lower, upper], whatever the coefficients."""
    ends = [sp.Ge(piece.gen, lower, evaluate=False)] if lower != -sp.oo else []
    ends += [sp.Le(piece.gen, upper, evaluate=False)] if upper != sp.oo else []
    return domain.where(*ends).proves(sp.Ne(piece.as_expr(), 0, evaluate=False)) is True
