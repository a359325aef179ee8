"""Values with branches: comparisons and definedness of Piecewise and Max, each branch under its own condition."""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp

from rdgraph.decisions.definedness import defining_conditions
from rdgraph.decisions.domain import Domain


def branches(value: sp.Expr) -> Iterator[tuple[sp.Expr, tuple[sp.Basic, ...]]]:
    """The branches of a Piecewise with all that holds on them; any other expression is one branch.

    >>> a = sp.Symbol("a", real=True)
    >>> list(branches(sp.Piecewise((0, a >= 1), (a, True))))
    [(0, (a >= 1,)), (a, (a < 1, True))]
    """
    folds = value.has(sp.Piecewise) and not isinstance(value, sp.Max | sp.Min)
    folded = sp.piecewise_fold(value) if folds else value
    if not isinstance(folded, sp.Piecewise):
        yield folded, ()
        return
    before: tuple[sp.Basic, ...] = ()
    for branch, condition in folded.args:
        yield sp.sympify(branch), (*before, condition)
        before += (sp.Not(condition),)


def is_at_least(larger: sp.Expr, smaller: sp.Expr, domain: Domain) -> bool | None:
    """Whether larger >= smaller on the whole domain; infinite values count.

    >>> a = sp.Symbol("a", real=True)
    >>> is_at_least(sp.Piecewise((a, a >= 1), (sp.oo, True)), sp.S.One, Domain())
    True
    """
    return _compared(sp.sympify(larger), sp.sympify(smaller), domain, strict=False)


def is_above(larger: sp.Expr, smaller: sp.Expr, domain: Domain) -> bool | None:
    """Whether larger > smaller on the whole domain."""
    return _compared(sp.sympify(larger), sp.sympify(smaller), domain, strict=True)


def _compared(larger: sp.Expr, smaller: sp.Expr, domain: Domain, *, strict: bool) -> bool | None:
    relation = sp.Gt if strict else sp.Ge
    answers: list[bool | None] = []
    for upper, above in branches(larger):
        for lower, below in branches(smaller):
            part = domain.where(*above, *below)
            if upper.is_infinite or lower.is_infinite:
                larger_one = lower == -sp.oo or (upper == sp.oo and not (strict and lower == sp.oo))
                answers.append(True if larger_one or part.is_empty() else None)
            else:
                answers.append(part.proves(relation(upper, lower, evaluate=False)))
    return None if None in answers and False not in answers else False not in answers


def is_defined(expression: sp.Expr, domain: Domain, *, smooth: bool = False) -> bool:
    """Proved: a real number everywhere on the domain (`defining_conditions`); if `smooth`, without a root of zero."""
    if isinstance(expression, sp.Max | sp.Min):
        return all(is_defined(part, domain, smooth=smooth) for part in expression.args)
    if isinstance(expression, sp.Piecewise):
        return all(is_defined(part, domain.where(*facts), smooth=smooth) for part, facts in branches(expression))
    if expression.has(sp.I, sp.zoo, sp.nan, sp.oo):
        return False
    return all(domain.proves(c) is True for c in defining_conditions(expression, smooth=smooth))
