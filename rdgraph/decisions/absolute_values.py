"""Absolute values in place of the cases that they stand for: bounds as a person would write them."""

from __future__ import annotations

from collections.abc import Iterable

import sympy as sp


def with_moduli(expression: sp.Expr) -> sp.Expr:
    """The same real number, with |x| for max(x, -x) and for x by the cases of its sign.

    >>> a, b = sp.symbols("a b", real=True)
    >>> with_moduli(sp.Piecewise((-a, a <= 0), (a, True)) + sp.Max(a + 2 * b, a - 2 * b, 2 * b - a, -a - 2 * b))
    2*Abs(a) + 2*Abs(b)
    """
    return expression.replace(
        lambda part: isinstance(part, (sp.Piecewise, sp.Max)),
        lambda part: _of_cases(part) if isinstance(part, sp.Piecewise) else _largest(part.args),
    )


def _of_cases(cases: sp.Piecewise) -> sp.Expr:
    """|x| where one case is x, the other -x, and each is taken where it is not negative."""
    if len(cases.args) != 2 or cases.args[1].cond != sp.true:
        return cases
    (first, condition), (second, _) = cases.args
    if sp.expand(first + second) != 0:
        return cases
    sides = {sp.Ge: 1, sp.Gt: 1, sp.Le: -1, sp.Lt: -1}
    if type(condition) not in sides:
        return cases
    share = sp.cancel(sides[type(condition)] * first / (condition.lhs - condition.rhs))
    return sp.Abs(first) if share.is_positive else cases


def _largest(values: Iterable[sp.Expr]) -> sp.Expr:
    """The largest of several values; max(r + t, r - t) is r + |t|, whatever r is."""
    left, moduli = [sp.expand(value) for value in values], []
    if any(value != 0 and -value in left for value in left):  # one of x and -x is at least 0
        left = [value for value in left if value != 0]
    while (found := _both_signs(left)) is not None:
        term, left = found
        moduli.append(sp.Abs(term))
    return sp.Add(_undominated(left), *moduli)


def _both_signs(values: list[sp.Expr]) -> tuple[sp.Expr, list[sp.Expr]] | None:
    """A term that every value has, and has with the other sign beside the same rest; and these rests."""
    everything = set(values)
    for term in sp.Add.make_args(values[0]):
        rests: dict[sp.Expr, None] = {}
        for value in values:
            terms = sp.Add.make_args(value)
            own = term if term in terms else -term
            if own not in terms or value - 2 * own not in everything:
                break
            rests[value - own] = None
        else:
            return (term, list(rests)) if term != 0 else None
    return None


def _undominated(values: list[sp.Expr]) -> sp.Expr:
    """The largest, where x and -x are both there |x|, and of multiples of the same modulus only the largest."""
    moduli: dict[sp.Expr, sp.Expr] = {}
    kept = []
    for value in values:
        if -value not in values:
            kept.append(value)
            continue
        number, rest = sp.Abs(value).as_coeff_Mul()
        moduli[rest] = sp.Max(number, moduli.get(rest, sp.S.Zero))
    return sp.Max(*kept, *(number * rest for rest, number in moduli.items()))
