"""Candidates for the real zeros of a function, in closed form where its factors have one; each is to be proved."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import sympy as sp

from rdgraph.decisions import polynomials
from rdgraph.decisions.domain import Domain
from rdgraph.decisions.regions import reduced, strict_sign
from rdgraph.syntax.functions import record_of

#: More calls of abs and relu than this are not taken apart.
MAX_CALLS = 4


@dataclass(frozen=True)
class Zero:
    """A candidate that is real where all `needs` are >= 0."""

    value: sp.Expr
    needs: tuple[sp.Expr, ...] = ()


def candidates(rate: sp.Expr, x: sp.Symbol, domain: Domain) -> list[Zero]:
    """Closed candidates for the zeros of a rate; raises `Split` where their form depends on the coefficients.

    abs and relu are replaced by what they are on either side of their kink; zero itself is always tried.

    >>> x, a = sp.Symbol("x", real=True), sp.Symbol("a", positive=True)
    >>> [z.value for z in candidates(x**3 - a * x, x, Domain())]
    [0, sqrt(a), -sqrt(a)]
    """
    found: dict[Zero, None] = {Zero(sp.S.Zero): None}
    for smooth in _branches(rate, x):
        if smooth.is_rational_function(x):
            found |= dict.fromkeys(_of_rational(smooth, x, domain))
    return list(found)


def _branches(rate: sp.Expr, x: sp.Symbol) -> Iterator[sp.Expr]:
    records = {c: record_of(c) for c in rate.atoms(sp.Function) if c.has(x)}
    pieces = {c: record.pieces for c, record in records.items() if record is not None and record.pieces is not None}
    calls = sorted(pieces, key=str)
    if len(calls) > MAX_CALLS:
        return
    for sides in itertools.product(*(reversed(pieces[call]) for call in calls)):
        values = {call: call.args[0] * side for call, side in zip(calls, sides, strict=True)}
        yield rate.xreplace(values)


def _of_rational(rate: sp.Expr, x: sp.Symbol, domain: Domain) -> list[Zero]:
    top = reduced(domain, polynomials.reduced(rate)[0])
    factors = [factor for factor, _ in polynomials.factors(top) if factor.has(x)]
    ordered = sorted(factors, key=lambda factor: (sp.degree(factor, x), str(factor)))
    return [zero for factor in ordered for zero in _of_polynomial(sp.Poly(factor, x), domain)]


def _of_polynomial(polynomial: sp.Poly, domain: Domain) -> list[Zero]:
    """Zeros of degree one and two, of polynomials of these in a power of x, and of numeric polynomials."""
    if polynomial.is_zero or polynomial.degree() == 0:
        return []
    if strict_sign(domain, polynomial.LC()) == 0:
        lower = {m: c for m, c in polynomial.terms() if m[0] < polynomial.degree()}
        return _of_polynomial(sp.Poly(lower or {(0,): 0}, polynomial.gen), domain)
    if polynomial.degree() == 1:
        return [Zero(sp.cancel(-polynomial.nth(0) / polynomial.LC()))]
    if not polynomial.free_symbols_in_domain and polynomial.domain.is_QQ | polynomial.domain.is_ZZ:
        return [Zero(root) for root in sp.real_roots(polynomial)]
    step = sp.igcd(*(m[0] for m in polynomial.monoms()))
    if step > 1:
        y = sp.Dummy("y", real=True)
        inner = sp.Poly({(m[0] // step,): c for m, c in polynomial.terms()}, y)
        return [r for zero in _of_polynomial(inner, domain) for r in _roots(zero, int(step), domain)]
    if polynomial.degree() == 2:
        a, b, c = (polynomial.nth(k) for k in (2, 1, 0))
        discriminant = sp.expand(b**2 - 4 * a * c)
        return [Zero((-b + sign * sp.sqrt(discriminant)) / (2 * a), (discriminant,)) for sign in (1, -1)]
    return []


def _roots(zero: Zero, power: int, domain: Domain) -> list[Zero]:
    """Real solutions of x^power = zero."""
    exponent = sp.Rational(1, power)
    if power % 2 == 0:
        root = zero.value**exponent
        return [Zero(sign * root, (*zero.needs, zero.value)) for sign in (1, -1)]
    inside = domain.given(*zero.needs)
    if inside.is_empty():
        return []
    sign = strict_sign(inside, zero.value)
    return [Zero(sign * (sign * zero.value) ** exponent if sign else sp.S.Zero, zero.needs)]
