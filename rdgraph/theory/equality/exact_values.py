"""Values of trees without rounding errors: rational numbers exactly, all others enclosed in balls (arb).

Arrays have `flint.fmpq` or `flint.arb` entries; shapes are those of `rdgraph.theory.equality.dense_oracle`, which
shares no code with this module and can be used to check it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import sympy as sp
from flint import arb, ctx, fmpq

from rdgraph.language.linear_fold import LinearFold
from rdgraph.language.tree import Apply, Call, Fold, Kind, Minus, Name, Negative, Over, Plus, Power, Times, kind_of
from rdgraph.vocabulary.functions import FUNCTIONS, REALS, ElementwiseFunction

Array = Any
PRECISION = 256


class Undefined(Exception):
    """Raised for a value that does not exist, such as 1/0 or sqrt(-1), or that is not proved to exist."""


@contextmanager
def enough_precision() -> Iterator[None]:
    """A context in which enclosures have `PRECISION` bits."""
    before = ctx.prec
    ctx.prec = PRECISION
    try:
        yield
    finally:
        ctx.prec = before


def evaluate(tree: sp.Basic, values: Mapping[str, Array]) -> Array:
    """Value of a tree of any kind; the value of an operator is its matrix, so it must not have channel coefficients."""
    match kind_of(tree):
        case Kind.OPERATOR:
            return _Operators(values)(tree, identity(len(values["A"])))
        case Kind.MATRIX:
            return _Matrices(values)(tree, identity(values["H"].shape[1]))
    return _checked(_Values(values)(tree))


def identity(size: int) -> Array:
    return array([[int(i == j) for j in range(size)] for i in range(size)])


def array(entries: Any) -> Array:
    """Exact entries from integers, pairs (numerator, denominator) of a `Fraction` or a sympy rational."""
    return np.frompyfunc(_rational, 1, 1)(np.array(entries, dtype=object))


def _rational(number: Any) -> Any:
    if isinstance(number, sp.Rational):
        return fmpq(int(number.p), int(number.q))
    return fmpq(int(number.numerator), int(number.denominator))


def differ(left: Array, right: Array) -> bool:
    """Whether two values are proved to differ in some entry."""
    return any(sign_of(entry) in (1, -1) for entry in _entries(left - right))


def not_parallel(left: Array, right: Array) -> bool:
    """Whether two values are proved not to be positive multiples of each other."""
    one, other = np.broadcast_arrays(np.asarray(left, dtype=object), np.asarray(right, dtype=object))
    pairs = list(zip(one.ravel(), other.ravel(), strict=True))
    signs_of = [(sign_of(a), sign_of(b)) for a, b in pairs]
    if any(None not in pair and pair[0] != pair[1] for pair in signs_of):
        return True
    return any(sign_of(a * d - b * c) in (1, -1) for (a, b), (c, d) in itertools.combinations(pairs, 2))


def sign_of(entry: Any) -> int | None:
    """The sign 1, 0 or -1 of a value if it is proved, else None."""
    if entry > 0:
        return 1
    if entry < 0:
        return -1
    return 0 if entry == 0 else None


def signs(value: Array) -> set[int | None]:
    """The signs of all entries, with None for signs that are not proved."""
    return {sign_of(entry) for entry in _entries(value)}


def _entries(value: Array) -> list[Any]:
    return list(np.asarray(value, dtype=object).ravel())


def _checked(value: Array) -> Array:
    if any(isinstance(x, arb) and not x.is_finite() for x in _entries(value)):
        raise Undefined
    return value


class _Values(Fold[Array]):
    """The value of an elementwise tree."""

    def __init__(self, values: Mapping[str, Array]) -> None:
        self.values = values

    def number(self, node: sp.Rational) -> Array:
        return _rational(node)

    def name(self, node: Name) -> Array:
        return self.values[node.name]

    def plus(self, node: Plus) -> Array:
        return self(node.left) + self(node.right)

    def minus(self, node: Minus) -> Array:
        return self(node.left) - self(node.right)

    def times(self, node: Times) -> Array:
        return self(node.left) * self(node.right)

    def over(self, node: Over) -> Array:
        return self(node.left) * _each(_inverse, self(node.right))

    def negative(self, node: Negative) -> Array:
        return -self(node.inner)

    def power(self, node: Power) -> Array:
        exponent = node.exponent
        return _each(lambda x: (x if exponent >= 0 else _inverse(x)) ** abs(exponent), self(node.base))

    def call(self, node: Call) -> Array:
        return _each(partial(_value, FUNCTIONS[node.function]), self(node.argument))

    def apply(self, node: Apply) -> Array:
        if kind_of(node.left) is Kind.OPERATOR:
            return _Operators(self.values)(node.left, self(node.right))
        return _Matrices(self.values)(node.right, self(node.left))


class _Linear(LinearFold[Array]):
    """The evaluation of operators and matrices, whose coefficients are values."""

    def __init__(self, values: Mapping[str, Array]) -> None:
        self.values = values

    def scaled(self, value: Array, factor: sp.Basic) -> Array:
        return _Values(self.values)(factor) * value

    def divided(self, value: Array, divisor: sp.Basic, node: sp.Basic) -> Array:
        return value * _each(_inverse, _Values(self.values)(divisor))


class _Operators(_Linear):
    """An operator tree applied to a value."""

    def name(self, node: Name, operand: Array) -> Array:
        return operand if node.name == "I" else self.values[node.name] @ operand

    def apply(self, node: Apply, operand: Array) -> Array:
        return self(node.left, self(node.right, operand))

    def power(self, node: Power, operand: Array) -> Array:
        for _ in range(node.exponent):
            operand = self(node.base, operand)
        return operand


class _Matrices(_Linear):
    """A value times a matrix tree."""

    def number(self, node: sp.Rational, operand: Array) -> Array:
        return operand * _rational(node) if node == 0 else self.other(node, operand)

    def name(self, node: Name, operand: Array) -> Array:
        return operand @ self.values[node.name]

    def apply(self, node: Apply, operand: Array) -> Array:
        return self(node.right, self(node.left, operand))


def _each(function: Callable[[Any], Any], value: Array) -> Array:
    return np.frompyfunc(function, 1, 1)(value)


def _inverse(x: Any) -> Any:
    if sign_of(x) not in (1, -1):
        raise Undefined
    return 1 / x


def _value(function: ElementwiseFunction, x: Any) -> Any:
    """The value of a function at a rational or enclosed number, exact at zero if it is rational there."""
    if x == 0 and isinstance(function.at_zero, sp.Rational):
        return _rational(function.at_zero)
    if function.domain is not REALS and not all(_holds(r, x) for r in function.domain.relations(_ARGUMENT)):
        raise Undefined
    return function.ball(x)


_ARGUMENT = sp.Dummy("x", real=True)


def _holds(relation: sp.Basic, x: Any) -> bool:
    """Whether a relation between a number and a rational number is proved."""
    sign = sign_of(x - _rational(relation.args[1]))
    allowed = {sp.Ge: (0, 1), sp.Gt: (1,), sp.Le: (-1, 0), sp.Lt: (-1,)}[type(relation)]
    return sign in allowed
