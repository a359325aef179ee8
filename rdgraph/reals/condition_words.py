"""Formulas in words: piecewise answers as a person would say them."""

from __future__ import annotations

import math

import sympy as sp

from rdgraph.vocabulary.functions import at_zero

#: Functions of numbers that are shown as they are; all others are shown as decimals.
_CLOSED = (sp.exp, sp.log, sp.sin, sp.cos)
#: A number in closed form that is longer than this is shown as a decimal.
LONG = 30


def in_words(expression: sp.Basic | None, rounding: int = 0) -> str:
    """Text of an answer, branches spelled out; a condition says what is left of it by those before.

    Args:
        expression: the answer; None is shown as "-".
        rounding: -1 rounds a decimal factor down to five digits, as limits need it; 1 rounds it up; 0 keeps all digits.

    >>> a, b = sp.symbols("a b")
    >>> in_words(sp.Piecewise((0, a >= b), (b - a, True)))
    '0 if a >= b, otherwise -a + b'
    >>> in_words(sp.Piecewise((-1 / a, a < 0), (sp.oo, a <= 0), (2 / a, True)))
    '-1/a if a < 0, no limit if a = 0, otherwise 2/a'
    >>> in_words(2 / sp.Max(a, sp.Piecewise((b, a >= 1), (a, True))))
    '2/m, m = the largest of a and b (where a >= 1)'
    """
    if expression is None:
        return "-"
    if isinstance(expression, sp.Piecewise):
        conditions = [condition for _, condition in expression.args]
        told = []
        for k, (value, condition) in enumerate(expression.args):
            is_rest = condition == sp.true
            told.append(
                f"otherwise {in_words(value, rounding)}" if is_rest
                else f"{in_words(value, rounding)} if {condition_in_words(_left_over(condition, conditions[:k]))}"
            )  # fmt: skip
        return ", ".join(told)
    if expression == sp.oo:
        return "no limit"
    if not expression.has(sp.Piecewise):
        return _formula(expression, rounding)
    if isinstance(expression, sp.Max | sp.Min):
        return f"the {'largest' if isinstance(expression, sp.Max) else 'smallest'} of {_alternatives(expression)}"
    parts = [part for part in sp.preorder_traversal(expression) if isinstance(part, sp.Max | sp.Min | sp.Piecewise)]
    part = next(p for p in parts if p.has(sp.Piecewise))
    taken = {x.name for x in expression.free_symbols}
    letter = sp.Symbol(next(name for name in "mnpqxyz" if name not in taken))
    return f"{in_words(expression.xreplace({part: letter}), rounding)}, {letter} = {in_words(part)}"


def _formula(expression: sp.Basic, rounding: int = 0) -> str:
    """A formula without branches: functions of numbers worked out, a decimal factor rounded.

    >>> _formula(2 * sp.exp(2)), _formula(sp.Float("2.78529356340528"), -1), _formula(sp.Float("2.78529356340528"), 1)
    ('2*exp(2) (about 14.78)', '2.7852', '2.7853')
    """
    calls = {call: at_zero(call) for call in expression.atoms(sp.Function) if call.is_number}
    exact = expression.xreplace(
        {
            call: n if all(isinstance(f, _CLOSED) for f in n.atoms(sp.Function)) else n.evalf()
            for call, n in calls.items()
        }
    )
    factor, rest = exact.as_coeff_Mul() if rounding and isinstance(exact, sp.Expr) else (sp.S.One, exact)
    short = _rounded(factor, rounding) * rest if factor.is_Float else exact
    text = sp.sstr(short, full_prec=False)
    if not short.is_number or short.is_Rational or short.is_Float or not short.is_real:
        return text
    return (
        f"about {float(short):.4g}" if short.has(sp.Float) or len(text) > LONG else f"{text} (about {float(short):.4g})"
    )


def _rounded(number: sp.Float, rounding: int) -> sp.Float:
    """Five digits of a positive number, down or up; what has few decimals already stays as it is."""
    exact = sp.Rational(str(number))
    if exact <= 0 or exact * 10**8 % 1 == 0:
        return number
    scale = sp.Integer(10) ** (4 - math.floor(math.log10(number)))
    whole = sp.floor(exact * scale) if rounding < 0 else sp.ceiling(exact * scale)
    return sp.Float(whole / scale, 15)


def _alternatives(extreme: sp.Expr) -> str:
    """What the largest or smallest is taken of; a case whose other case is among them counts where it holds."""
    plain = [part for part in extreme.args if not part.has(sp.Piecewise)]
    words = [in_words(part) for part in sorted(plain, key=str)]
    for part in sorted(set(extreme.args) - set(plain), key=str):
        first, *others = part.args
        is_extra = isinstance(part, sp.Piecewise) and len(others) == 1 and others[0][0] in plain
        words.append(
            f"{in_words(first[0])} (where {condition_in_words(first[1])})" if is_extra else f"({in_words(part)})"
        )
    return f"{', '.join(words[:-1])} and {words[-1]}"


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
