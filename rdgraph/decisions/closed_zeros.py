"""Zeros of a function of one variable in closed form, and where they are real."""

from __future__ import annotations

import sympy as sp

from rdgraph.decisions.domain import NEGATIVE, Domain
from rdgraph.decisions.enclosure import sign_of
from rdgraph.errors import Undecided
from rdgraph.syntax.functions import Span, record_of


def zeros(expression: sp.Expr, x: sp.Symbol) -> list[sp.Expr]:
    """Closed forms of zeros, as far as they are found; square roots of letters need not be real everywhere.

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
        return _of_polynomial(sp.fraction(sp.together(expression))[0], x)[0]
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
        found, complete = _of_polynomial(expression, x)
    else:
        found = zeros(expression, x)
        apart = [sp.Ne(x, z) for z in found]
        complete = domain.where(*apart).proves(sp.Ne(expression, 0, evaluate=False)) is True
    if not complete:
        known = f"; known are {', '.join(map(str, found))}" if found else ""
        raise Undecided(f"it is not proved which are all zeros of {expression}{known}")
    return [(z, conditions) for z in found if (conditions := _real_where(z, domain)) is not None]


def _of_polynomial(expression: sp.Expr, x: sp.Symbol) -> tuple[list[sp.Expr], bool]:
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
    shortest = {min(sp.expand(z), sp.simplify(z), key=sp.count_ops): None for z in found if z.is_real is not False}
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
