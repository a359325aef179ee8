"""Formulas in words: piecewise answers as a person would say them."""

from __future__ import annotations

import sympy as sp


def in_words(expression: sp.Basic | None) -> str:
    """Text of an answer, branches spelled out.

    >>> a, b = sp.symbols("a b")
    >>> in_words(sp.Piecewise((0, a >= b), (b - a, True)))
    '0 if a >= b, otherwise -a + b'
    """
    if expression is None:
        return "-"
    if isinstance(expression, sp.Piecewise):
        parts = [f"{in_words(value)} if {condition_in_words(condition)}" for value, condition in expression.args[:-1]]
        last, condition = expression.args[-1]
        tail = (
            f"otherwise {in_words(last)}"
            if condition == sp.true
            else f"{in_words(last)} if {condition_in_words(condition)}"
        )
        return ", ".join([*parts, tail])
    if expression == sp.oo:
        return "no limit"
    return str(expression)


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
