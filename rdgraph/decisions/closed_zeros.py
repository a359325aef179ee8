"""Zeros of a function of one variable in closed form, and where they are real."""

from __future__ import annotations

import sympy as sp

from rdgraph.decisions.domain import NEGATIVE, Domain
from rdgraph.errors import Undecided


def zeros(expression: sp.Expr, x: sp.Symbol) -> list[sp.Expr]:
    """Closed forms of zeros, as far as they are found; square roots of letters need not be real everywhere.

    >>> a, x = sp.symbols("a x", real=True)
    >>> sorted(zeros(x**3 - a * x, x), key=str), zeros(sp.sin(x), x)
    ([-sqrt(a), 0, sqrt(a)], [0, pi])
    """
    if expression.is_polynomial(x):
        return _of_polynomial(expression, x)[0]
    calls = [f for f in expression.atoms(sp.Function) if f.has(x)]
    y = sp.Dummy("y", real=True)
    if len(calls) != 1 or expression.xreplace({calls[0]: y}).has(x):
        return []
    found = []
    for value in zeros(expression.xreplace({calls[0]: y}), y):
        try:
            solved = [z for z in sp.solve(calls[0] - value, x) if isinstance(z, sp.Expr)]
            found += [z for z in solved if z.is_real is not False and not z.has(sp.I)]
        except (NotImplementedError, TypeError, ValueError):
            continue
    return list(dict.fromkeys(found))


def all_zeros(expression: sp.Expr, x: sp.Symbol, domain: Domain) -> list[tuple[sp.Expr, tuple[sp.Expr, ...]]]:
    """Every real zero, with the expressions that must be >= 0 for it to be real; Undecided where some may be missing.

    >>> a = sp.Symbol("a", positive=True)
    >>> x = sp.Symbol("x", real=True)
    >>> all_zeros(x**2 - x + a, x, Domain())[0]
    (1/2 - sqrt(1 - 4*a)/2, (1 - 4*a,))
    """
    if expression.is_polynomial(x):
        found, complete = _of_polynomial(expression, x)
    else:
        found = zeros(expression, x)
        apart = [sp.Ne(x, z) for z in found]
        complete = domain.where(*apart).proves(sp.Ne(expression, 0, evaluate=False)) is True
    if not complete:
        raise Undecided(f"not all zeros of {expression} were found in closed form")
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
    conditions = []
    for power in sorted(value.atoms(sp.Pow), key=lambda p: p.count_ops()):
        if power.exp.is_Integer:
            continue
        sign = domain.sign(power.base)
        if sign is NEGATIVE:
            return None
        if not sign.is_nonnegative:
            conditions.append(power.base)
    return tuple(conditions)
