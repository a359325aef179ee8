"""Expressions in one variable as prefix words: values, derivatives in their constants, size, and text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from rdgraph.infer.formulas.slopes_and_inverses import SLOPES, Array
from rdgraph.vocabulary.functions import FUNCTIONS

# ---------------------------------------------------------------------- prefix terms
#: Signs and names in prefix order: an operator, then its arguments. "x" is the variable, "c" a fitted constant, and
#: numbers are written as text.
Word = tuple[str, ...]

BINARY = ("+", "-", "*", "/")
POWERS = {"square": 2, "cube": 3}
#: Units of size of each sign, more for a fitted constant than for a number; all others have 1.
UNITS = {"c": 2, "/": 2, "square": 2, "cube": 2, **dict.fromkeys(SLOPES, 2)}


_Pair = tuple[Array, dict[int, Array]]


def arity(sign: str) -> int:
    """The number of arguments of a sign."""
    return 2 if sign in BINARY else 1 if sign in POWERS or sign in SLOPES else 0


def size_of(word: Word) -> int:
    """The sum of the units of its signs.

    >>> size_of(("*", "c", "x")), size_of(("tanh", "x"))
    (4, 3)
    """
    return sum(UNITS.get(sign, 1) for sign in word)


def end_of(word: Word, start: int) -> int:
    """The end of the expression that begins at `start`.

    >>> end_of(("*", "+", "x", "1", "x"), 1)
    4
    """
    open_ = 1
    for position in range(start, len(word)):
        open_ += arity(word[position]) - 1
        if not open_:
            return position + 1
    raise ValueError(f"expected a whole expression, got {word}")


def evaluate(word: Word, constants: Array, x: Array) -> Array:
    """The values (sets, points) for constants (sets, count) at points (sets, points) or (points,)."""
    stack: list[Array] = []
    number = constants.shape[1]
    with np.errstate(all="ignore"):
        for sign in reversed(word):
            if sign == "c":
                number -= 1
                stack.append(constants[:, number, None])
            elif sign == "x":
                stack.append(x)
            elif (count := arity(sign)) == 2:
                stack.append(_binary(sign, stack.pop(), stack.pop()))
            elif count == 1:
                stack.append(_unary(sign, stack.pop()))
            else:
                stack.append(np.array(float(Fraction(sign))))
        value = stack.pop()
        return value + np.zeros((len(constants), 1)) + np.zeros_like(x)


def with_slopes(word: Word, constants: Array, x: Array, *, along_letter: bool = False) -> tuple[Array, Array]:
    """The values (sets, points), and their derivatives in each constant (count, sets, points).

    With `along_letter`, the derivative in the variable comes last.
    """
    stack: list[_Pair] = []
    count = number = constants.shape[1]
    with np.errstate(all="ignore"):
        for sign in reversed(word):
            if sign == "c":
                number -= 1
                stack.append((constants[:, number, None], {number: np.ones((len(constants), 1))}))
            elif sign == "x":
                stack.append((x, {count: np.ones_like(x)} if along_letter else {}))
            elif (inner := arity(sign)) == 2:
                stack.append(_binary_slopes(sign, stack.pop(), stack.pop()))
            elif inner == 1:
                stack.append(_unary_slopes(sign, stack.pop()))
            else:
                stack.append((np.array(float(Fraction(sign))), {}))
        value, along = stack.pop()
        shape = (len(constants), x.shape[-1])
        slopes = np.zeros((count + along_letter, *shape))
        for k, v in along.items():
            slopes[k] = v
        return np.broadcast_to(value, shape), slopes


def _binary(sign: str, left: Array, right: Array) -> Array:
    if sign == "+":
        return left + right
    if sign == "-":
        return left - right
    return left * right if sign == "*" else left / right


def _unary(sign: str, inner: Array) -> Array:
    return inner ** POWERS[sign] if sign in POWERS else FUNCTIONS[sign].numpy(inner)


def _unary_slopes(sign: str, pair: _Pair) -> _Pair:
    inner, along = pair
    value = _unary(sign, inner)
    if not along:
        return value, {}
    factor = POWERS[sign] * inner ** (POWERS[sign] - 1) if sign in POWERS else SLOPES[sign](inner, value)
    return value, {k: factor * v for k, v in along.items()}


def _binary_slopes(sign: str, left: _Pair, right: _Pair) -> _Pair:
    (a, along_a), (b, along_b) = left, right
    value = _binary(sign, a, b)
    if sign in "+-":
        factor_a, factor_b = np.array(1.0), np.array(1.0 if sign == "+" else -1.0)
    elif sign == "*":
        factor_a, factor_b = b, a
    else:
        factor_a, factor_b = 1 / b, -value / b
    slopes = {k: factor_a * v for k, v in along_a.items()}
    for k, v in along_b.items():
        slopes[k] = slopes.get(k, 0.0) + factor_b * v
    return value, slopes


def weighted_sum(words: Sequence[Word]) -> Word:
    """c*w1 + c*w2 + ...; the term of the word "1" is the constant alone.

    >>> weighted_sum([("x",), ("1",)])
    ('+', '*', 'c', 'x', 'c')
    """
    terms = [("c",) if word == ("1",) else ("*", "c", *word) for word in words]
    total = terms[-1]
    for term in reversed(terms[:-1]):
        total = ("+", *term, *total)
    return total


def to_text(word: Word, constants: Sequence[str], letter: str = "H") -> str:
    """The expression in the language; a constant written with a minus is subtracted where possible.

    >>> to_text(("+", "*", "c", "x", "*", "c", "cube", "x"), ["beta", "-gamma"])
    'beta*H - gamma*H**3'
    >>> to_text(("*", "c", "*", "x", "-", "1", "x"), ["beta"], "u")
    'beta*u*(1 - u)'
    """
    text, _ = _written(iter(word), iter(constants), letter)
    return text


#: How tightly a text holds together: sums, products, powers and calls.
_SUM, _PRODUCT, _POWER, _ATOM = range(4)


def _written(word: Iterator[str], constants: Iterator[str], letter: str) -> tuple[str, int]:
    sign = next(word)
    if sign == "c":
        name = next(constants)
        return name, _SUM if name.startswith("-") else _PRODUCT if "*" in name else _ATOM
    if sign == "x":
        return letter, _ATOM
    if arity(sign) == 0:
        return sign, _SUM if sign.startswith("-") else _PRODUCT if "/" in sign else _ATOM
    first = _written(word, constants, letter)
    if sign in POWERS:
        base, _, exponent = first[0].rpartition("**") if first[1] == _POWER else (_held(first, _ATOM), "", "1")
        return f"{base}**{POWERS[sign] * int(exponent)}", _POWER
    if sign in SLOPES:
        return f"{sign}({first[0]})", _ATOM
    second = _written(word, constants, letter)
    if sign == "*":
        if first[0] in ("1", "-1"):
            return second if first[0] == "1" else (f"-{_held(second, _PRODUCT)}", _SUM)
        minus = first[0].startswith("-") and first[1] == _SUM and _is_negated(first[0])
        left = first[0] if minus else _held(first, _PRODUCT)
        return f"{left}*{_held(second, _PRODUCT)}", _SUM if minus else _PRODUCT
    if sign == "/":
        return f"{_held(first, _PRODUCT)}/{_held(second, _POWER)}", _PRODUCT
    if second[0].startswith("-") and (sign == "+" or _is_negated(second[0])):
        other = {"+": "-", "-": "+"}[sign]
        return f"{first[0]} {other} {second[0][1:]}", _SUM
    return f"{first[0]} {sign} {_held(second, _SUM if sign == '+' else _PRODUCT)}", _SUM


def _is_negated(text: str) -> bool:
    """Whether a text that begins with a minus is a single product, so that the minus can be moved."""
    depth = 0
    for position, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if depth == 0 and position and sign in "+-" and text[position - 1] != "e":
            return False
    return True


def _held(part: tuple[str, int], tight: int) -> str:
    text, tightness = part
    return text if tightness >= tight else f"({text})"
