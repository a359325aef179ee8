"""Numbers, formulas and conditions as a person would write them: the one place where answers become words.

`str` of a sympy expression stays what programs read; everything a person reads comes from here.
"""

from __future__ import annotations

import math
from typing import Any

import sympy as sp
from sympy.printing.str import StrPrinter

from rdgraph.vocabulary.functions import at_zero

#: Functions of numbers that are shown exactly; all others are shown as decimals.
_CLOSED = (sp.exp, sp.log, sp.sin, sp.cos)
#: A number in closed form that is longer than this is shown as a decimal.
LONG = 30
#: Significant digits of a decimal in a value, and in a condition, which people put numbers into.
DIGITS, CONDITION_DIGITS = 4, 6
#: Relations after both sides have been exchanged.
_MIRRORED: dict[Any, Any] = {sp.Le: sp.Ge, sp.Ge: sp.Le, sp.Lt: sp.Gt, sp.Gt: sp.Lt, sp.Eq: sp.Eq, sp.Ne: sp.Ne}
_SIGNS: dict[Any, str] = {sp.Le: "<=", sp.Ge: ">=", sp.Lt: "<", sp.Gt: ">", sp.Eq: "=", sp.Ne: "!="}


def number_in_words(number: Any, digits: int = DIGITS) -> str:
    """Text of a number: exact where that is short, otherwise with some significant digits.

    >>> number_in_words(2.785293563), number_in_words(sp.Rational(1, 3)), number_in_words(sp.Rational(12345, 678911))
    ('2.785', '1/3', '0.01818')
    """
    if isinstance(number, sp.Rational) and len(str(number)) < 12:
        return str(number)
    return f"{float(number):.{digits}g}"


def in_words(expression: sp.Basic | None, rounding: int = 0) -> str:
    """Text of a formula, its cases spelled out; a condition omits what the cases before it have excluded.

    Args:
        expression: the formula; None is shown as "-".
        rounding: -1 rounds decimals so that the value falls, as limits need it; 1 so that it grows; 0 to the nearest.

    >>> a, b = sp.symbols("a b")
    >>> in_words(sp.Piecewise((0, a >= b), (b - a, True)))
    '0 if a >= b, otherwise b - a'
    >>> in_words(sp.Piecewise((-1 / a, a < 0), (sp.oo, a <= 0), (2 / a, True)))
    '-1/a if a < 0, no limit if a = 0, otherwise 2/a'
    >>> in_words(2 / sp.Max(a, sp.Piecewise((b, a >= 1), (a, True))))
    '2/m, m = the largest of a and b (where a >= 1)'
    >>> in_words(sp.Float("2.78529356340528") / (2 * a + 2 * b), -1), in_words(sp.Max(a, sp.Abs(b - a)))
    ('2.785/(2*(a + b))', 'max(a, |a - b|)')
    """
    if expression is None:
        return "-"
    if isinstance(expression, sp.Piecewise):
        conditions = [condition for _, condition in expression.args]
        cases = []
        for k, (value, condition) in enumerate(expression.args):
            words = in_words(value, rounding)
            is_rest = condition == sp.true
            remaining = "" if is_rest else condition_in_words(_remaining(condition, conditions[:k]))
            cases.append(f"otherwise {words}" if is_rest else f"{words} if {remaining}")
        return ", ".join(cases)
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
    """A formula without cases: functions of numbers are evaluated, decimals are rounded.

    >>> _formula(2 * sp.exp(2)), _formula(sp.Float("2.78529356340528"), -1), _formula(sp.Float("2.78529356340528"), 1)
    ('2*exp(2) (about 14.78)', '2.785', '2.786')
    """
    calls = {call: at_zero(call) for call in expression.atoms(sp.Function) if call.is_number}
    exact = expression.xreplace(
        {
            call: n if all(isinstance(f, _CLOSED) for f in n.atoms(sp.Function)) else n.evalf()
            for call, n in calls.items()
        }
    )
    short = _rounded(exact, rounding)
    text = _printed(short)
    if not short.is_number or short.is_Rational or short.is_Float or not short.is_real:
        return text
    about = f"about {number_in_words(float(short))}"
    return about if short.has(sp.Float) or len(text) > LONG else f"{text} ({about})"


def _rounded(expression: Any, rounding: int, digits: int = DIGITS) -> Any:
    """The formula with short decimals: sums and positive multiples are rounded one way, denominators the other.

    Coefficients count as positive, as in every bound; inside functions decimals are rounded to the nearest.
    """
    match expression:
        case sp.Float():
            return _rounded_number(expression, rounding, digits)
        case sp.Add() | sp.Max() | sp.Min():
            return expression.func(*(_rounded(part, rounding, digits) for part in expression.args))
        case sp.Mul():
            factor, rest = expression.as_coeff_Mul()
            inner = -rounding if factor.is_negative else rounding
            parts = [_rounded(part, inner, digits) for part in sp.Mul.make_args(rest)]
            return _rounded(factor, rounding, digits) * sp.Mul(*parts)
        case sp.Pow(exp=exponent):
            inner = 0 if not exponent.is_Rational else rounding if exponent > 0 else -rounding
            return sp.Pow(_rounded(expression.base, inner, digits), _rounded(exponent, 0, digits))
    if not expression.args or not expression.has(sp.Float):
        return expression
    return expression.func(*(_rounded(part, 0, digits) for part in expression.args))


def _rounded_number(number: sp.Float, rounding: int, digits: int) -> sp.Float:
    """The number with some significant digits, down, up or to the nearest; one with few decimals stays as it is."""
    exact = sp.Rational(str(number))
    if exact == 0 or not number.is_finite or (exact * 10**8 % 1 == 0 and abs(exact) < 10**6):
        return number
    scale = sp.Integer(10) ** (digits - 1 - math.floor(math.log10(abs(number))))
    nearest = {-1: sp.floor, 0: lambda x: sp.floor(x + sp.Rational(1, 2)), 1: sp.ceiling}[rounding]
    return sp.Float(nearest(exact * scale) / scale, 15)


class _Printer(StrPrinter):
    """sympy's text with positive terms first, common numbers in front, and |x| for Abs."""

    def _print_Add(self, expr: sp.Add, order: str | None = None) -> str:
        number, rest = expr.primitive()
        if all(map(_is_negative, rest.args)):
            number, rest = -number, -rest
        if number.is_Integer and abs(number) != 1 and isinstance(rest, sp.Add):
            return str(self._print(sp.Mul(number, rest, evaluate=False)))
        terms = sorted(self._as_ordered_terms(expr, order=order), key=_is_negative)
        texts = [self.parenthesize(term, 40) if term.is_Relational else self._print(term) for term in terms]
        text = " + ".join(texts)
        return str(text).replace(" + -", " - ")

    def _print_Mul(self, expr: sp.Mul) -> str:
        factor, rest = expr.as_coeff_Mul()
        parts = list(sp.Mul.make_args(rest))
        for k, part in enumerate(parts):
            if not isinstance(part, sp.Add):
                continue
            number, inside = part.primitive()
            if number.is_Integer and factor.is_Rational:
                factor, parts[k] = factor * number, inside
            if factor.is_negative and any(map(_is_negative, inside.args)) and not all(map(_is_negative, inside.args)):
                factor, parts[k] = -factor, -parts[k]
        if factor == 1 and len(parts) == 1:
            return self.parenthesize(parts[0], 50)
        rebuilt = sp.Mul(*([] if factor == 1 else [factor]), *parts, evaluate=False)
        return str(super()._print_Mul(rebuilt if isinstance(rebuilt, sp.Mul) else expr))

    def _print_Abs(self, expr: sp.Abs) -> str:
        return f"|{self._print(expr.args[0])}|"

    def _print_Max(self, expr: sp.Max) -> str:
        return f"max({', '.join(sorted(map(self._print, expr.args)))})"

    def _print_Min(self, expr: sp.Min) -> str:
        return f"min({', '.join(sorted(map(self._print, expr.args)))})"

    def _print_Float(self, expr: sp.Float) -> str:
        return f"{float(expr):.15g}"

    def _print_Infinity(self, expr: sp.Expr) -> str:
        return "infinity"


def _is_negative(term: sp.Basic) -> bool:
    return bool(term.as_coeff_Mul()[0].is_negative) if isinstance(term, sp.Expr) else False


def _printed(expression: sp.Basic) -> str:
    return str(_Printer({"full_prec": False}).doprint(expression))


def _alternatives(extreme: sp.Expr) -> str:
    """The arguments of a maximum or minimum; a case whose other case is among them counts where its condition holds."""
    plain = [part for part in extreme.args if not part.has(sp.Piecewise)]
    words = [in_words(part) for part in sorted(plain, key=str)]
    for part in sorted(set(extreme.args) - set(plain), key=str):
        first, *others = part.args
        is_extra = isinstance(part, sp.Piecewise) and len(others) == 1 and others[0][0] in plain
        words.append(
            f"{in_words(first[0])} (where {condition_in_words(first[1])})" if is_extra else f"({in_words(part)})"
        )
    return f"{', '.join(words[:-1])} and {words[-1]}"


def _remaining(condition: sp.Basic, earlier: list[sp.Basic]) -> sp.Basic:
    """What remains of x <= y where x < y came before: x = y."""
    if isinstance(condition, (sp.LessThan, sp.GreaterThan)):
        smaller, larger = condition.lts, condition.gts
        if any(isinstance(c, (sp.Lt, sp.Gt)) and (c.lts, c.gts) == (smaller, larger) for c in earlier):
            return sp.Eq(condition.lhs, condition.rhs)
    return condition


def condition_in_words(condition: sp.Basic) -> str:
    """Text of a condition: "and", "or", and relations without minus signs where both sides can do without.

    >>> a, b = sp.symbols("a b")
    >>> condition_in_words(sp.And(a > 0, b >= a)), condition_in_words(-a + b <= 0)
    ('a > 0 and b >= a', 'b <= a')
    >>> condition_in_words(sp.Abs(sp.Symbol("a", real=True)) > 0)
    'a != 0'
    """
    match condition:
        case sp.And():
            return " and ".join(
                sorted(f"({condition_in_words(c)})" if isinstance(c, sp.Or) else condition_in_words(c)
                       for c in condition.args)
            )  # fmt: skip
        case sp.Or():
            return " or ".join(sorted(map(condition_in_words, condition.args)))
        case sp.Not():
            return f"not ({condition_in_words(condition.args[0])})"
        case sp.StrictGreaterThan(lhs=sp.Abs(args=(inside,)), rhs=sp.S.Zero):
            return f"{in_words(inside)} != 0"
        case sp.Rel() if type(condition) in _SIGNS:
            left, right, kind = _balanced(condition)
            return f"{_side(left)} {_SIGNS[kind]} {_side(right)}"
    return _printed(condition)


def _side(side: sp.Basic) -> str:
    """One side of a relation: an exact number stays what it is."""
    if side.has(sp.Piecewise):
        return f"({in_words(side)})"
    return str(side) if isinstance(side, sp.Rational) else _printed(_rounded(side, 0, CONDITION_DIGITS))


def _balanced(relation: Any) -> tuple[sp.Expr, sp.Expr, Any]:
    """Both sides and the kind of a relation, negative terms on the other side, a number alone on the right.

    >>> a, b = sp.symbols("a b")
    >>> _balanced(a - b - 1 >= 0)[:2], _balanced(-a < 0)[:2]
    ((a, b + 1), (a, 0))
    """
    left, right, kind = relation.lhs, relation.rhs, type(relation)
    terms = [*sp.Add.make_args(left), *(-term for term in sp.Add.make_args(right))]
    is_moved = any(_is_negative(side) and not side.is_number for s in (left, right) for side in sp.Add.make_args(s))
    if is_moved and (kind not in (sp.Eq, sp.Ne) or right == 0):
        left = sp.Add(*(term for term in terms if not _is_negative(term)))
        right = -sp.Add(*(term for term in terms if _is_negative(term)))
    if left.is_number and not right.is_number:
        left, right, kind = right, left, _MIRRORED[kind]
    return left, right, kind


def factored(expression: sp.Expr) -> sp.Expr:
    """The factored form of a rational function; others unchanged: factoring constants like exp(0.389) never ends.

    Symbols are sorted by name: sympy takes h and h0 as equal, and hashes would then choose the signs of factors.

    >>> h, h0, b = sp.symbols("h h0 beta")
    >>> factored(b * h**2 - b * h * h0)
    beta*h*(h - h0)
    """
    if not expression.is_rational_function():
        return expression
    return sp.factor(expression, wrt=sorted(map(str, expression.free_symbols)))
