"""Formulas in words: piecewise answers as a person would say them."""

from __future__ import annotations

import sympy as sp


def in_words(expression: sp.Basic | None) -> str:
    """Text of an answer, branches spelled out; a condition says what is left of it by those before.

    >>> a, b = sp.symbols("a b")
    >>> in_words(sp.Piecewise((0, a >= b), (b - a, True)))
    '0 if a >= b, otherwise -a + b'
    >>> in_words(sp.Piecewise((-1 / a, a < 0), (sp.oo, a <= 0), (2 / a, True)))
    '-1/a if a < 0, no limit if a = 0, otherwise 2/a'
    """
    if expression is None:
        return "-"
    if isinstance(expression, sp.Piecewise):
        conditions = [condition for _, condition in expression.args]
        told = []
        for k, (value, condition) in enumerate(expression.args):
            is_rest = condition == sp.true
            told.append(
                f"otherwise {in_words(value)}" if is_rest
                else f"{in_words(value)} if {condition_in_words(_left_over(condition, conditions[:k]))}"
            )  # fmt: skip
        return ", ".join(told)
    if expression == sp.oo:
        return "no limit"
    return str(expression)


def _left_over(condition: sp.Basic, earlier: list[sp.Basic]) -> sp.Basic:
    """What is left of x <= y where x < y came before: x = y."""
    if isinstance(condition, (sp.LessThan, sp.GreaterThan)):
        smaller, larger = condition.lts, condition.gts
        if any(isinstance(c, (sp.Lt, sp.Gt)) and (c.lts, c.gts) == (smaller, larger) for c in earlier):
            return sp.Eq(condition.lhs, condition.rhs)
    return condition


def condition_in_words(condition: sp.Basic) -> str:
    """A condition as chained text.

    >>> a, b = sp.symbols("a b")
    >>> condition_in_words(sp.And(a > 0, b >= a))
    'a > 0 and b >= a'
    >>> condition_in_words(sp.Abs(sp.Symbol("a", real=True)) > 0)
    'a != 0'
    """
    match condition:
        case sp.And():
            return " and ".join(sorted(map(condition_in_words, condition.args)))
        case sp.Or():
            return " or ".join(sorted(map(condition_in_words, condition.args)))
        case sp.Eq():
            return f"{condition.lhs} = {condition.rhs}"
        case sp.Ne():
            return f"{condition.lhs} != {condition.rhs}"
        case sp.StrictGreaterThan(lhs=sp.Abs(args=(inside,)), rhs=sp.S.Zero):
            return f"{inside} != 0"
    return str(condition)


def factored(expression: sp.Expr) -> sp.Expr:
    """The factored form of a rational function; anything else as it is: constants like exp(0.389) factor for ever.

    Letters are in the order of their names: for sympy h and h0 are equal, and hashes would choose the signs of factors.

    >>> h, h0, b = sp.symbols("h h0 beta")
    >>> factored(b * h**2 - b * h * h0)
    beta*h*(h - h0)
    """
    if not expression.is_rational_function():
        return expression
    return sp.factor(expression, wrt=sorted(map(str, expression.free_symbols)))
