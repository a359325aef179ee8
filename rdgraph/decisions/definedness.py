"""Where a formula is a real number: conditions on what its roots, quotients, logarithms and inverse functions see."""

from __future__ import annotations

from collections.abc import Callable

import sympy as sp

from rdgraph.syntax.functions import record_of

#: Functions of formulas, beyond those of the language, that are real for every real argument.
_EVERYWHERE = (sp.atan, sp.asinh, sp.sinh, sp.cosh, sp.erf, sp.sign, sp.Heaviside, sp.floor, sp.ceiling, sp.Piecewise)


def defining_conditions(expression: sp.Expr, *, smooth: bool = False) -> tuple[sp.Basic, ...]:
    """What must hold for an expression to be a real number, the shortest conditions first; `smooth`: no root of zero.

    A function about which nothing is known has the condition False.

    >>> a = sp.Symbol("a", real=True)
    >>> defining_conditions(sp.acos(1 / a) + sp.log(a)), defining_conditions(1 / sp.sqrt(a - 2))
    ((Ne(a, 0), a > 0, a**(-2) <= 1), (a - 2 > 0,))
    """
    found: dict[sp.Basic, None] = {}
    for power in expression.atoms(sp.Pow):
        for condition in _of_power(power.base, power.exp, smooth):
            found[condition] = None
    for call in expression.atoms(sp.Function):
        for condition in _of_call(call):
            found[condition] = None
    return tuple(sorted((c for c in found if c != sp.true), key=lambda c: (c.count_ops(), str(c))))


def _of_power(base: sp.Expr, exponent: sp.Expr, smooth: bool) -> list[sp.Basic]:
    if exponent.is_Integer:
        return [sp.Ne(base, 0, evaluate=False)] if exponent.is_negative and not base.is_nonzero else []
    strict = smooth or not exponent.is_positive
    if base.is_positive or (base.is_nonnegative and not strict):
        return []
    return [(sp.Gt if strict else sp.Ge)(base, 0, evaluate=False)]


def _of_call(call: sp.Expr) -> list[sp.Basic]:
    record = record_of(call)
    if record is not None:
        return record.domain.relations(call.args[0])
    if isinstance(call, _EVERYWHERE):
        return []
    if isinstance(call, sp.LambertW):
        return _of_lambert(*call.args)
    known = _CONDITIONS.get(call.func)
    return [sp.false] if known is None else [known(call.args[0])]


def _of_lambert(x: sp.Expr, branch: sp.Expr = sp.S.Zero) -> list[sp.Basic]:
    """The two real branches: 0 from -1/e on, -1 between -1/e and 0."""
    if branch not in (0, -1):
        return [sp.false]
    above = sp.Ge(x, -sp.exp(-1), evaluate=False)
    return [above] if branch == 0 else [above, sp.Lt(x, 0, evaluate=False)]


_CONDITIONS: dict[type, Callable[[sp.Expr], sp.Basic]] = {
    sp.log: lambda x: sp.true if x.is_positive else sp.Gt(x, 0, evaluate=False),
    sp.acos: lambda x: sp.Le(x**2, 1, evaluate=False),
    sp.asin: lambda x: sp.Le(x**2, 1, evaluate=False),
    sp.atanh: lambda x: sp.Lt(x**2, 1, evaluate=False),
    sp.acosh: lambda x: sp.Ge(x, 1, evaluate=False),
    sp.tan: lambda x: sp.Ne(sp.cos(x), 0, evaluate=False),
}
