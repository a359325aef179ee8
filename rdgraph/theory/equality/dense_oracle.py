"""A dense numpy interpreter of the language, with which everything else is compared in tests.

It works on float arrays and, entry by entry, on object arrays of `fractions.Fraction` for exact counter-examples.
Shapes: scalar (), channel (d,), node (n, 1), field (n, d), operator (n, n), matrix (d, d).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import sympy as sp

from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.language.tree import Apply, Call, Kind, Minus, Name, Negative, Over, Plus, Power, Times, kind_of
from rdgraph.vocabulary.functions import FUNCTIONS
from rdgraph.vocabulary.learned_functions import LearnedFunction, LearnedValues, is_key

Array = Any
Values = Mapping[str, Array]

_COMBINE: dict[type, Callable[[Array, Array], Array]] = {
    Plus: operator.add,
    Minus: operator.sub,
    Times: operator.mul,
    Over: operator.truediv,
}


def evaluate(node: sp.Basic, values: Mapping[str, Array]) -> Array:
    """Value of an elementwise tree; `values` holds every letter (L defaults to I - A).

    >>> from rdgraph.language.reader import read_expression
    >>> a = np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> evaluate(read_expression("-L@H"), {"A": a, "H": np.array([[1.0], [3.0]])}).ravel()
    array([ 2., -2.])
    """
    return compiled(node)(values)


def compiled(node: sp.Basic) -> Callable[[Values], Array]:
    """An elementwise tree as a function of the values of its letters, for repeated evaluation."""
    return _field(node)


def act(op: sp.Basic, operand: Array, values: Mapping[str, Array]) -> Array:
    """An operator tree applied to an array."""
    return _operator(op)(operand, values)


@lru_cache(maxsize=4096)
def _field(node: sp.Basic) -> Callable[[Values], Array]:
    """A tree as nested closures: values -> array."""
    match node:
        case sp.Rational():
            exact, rounded = Fraction(int(node.p), int(node.q)), float(node)
            return lambda values: exact if _is_exact(values) else rounded
        case Name():
            name = node.name
            return lambda values: values[name]
        case Plus() | Minus() | Times() | Over():
            combine, left, right = _COMBINE[type(node)], _field(node.left), _field(node.right)
            return lambda values: combine(left(values), right(values))
        case Negative():
            inner = _field(node.inner)
            return lambda values: -inner(values)
        case Power():
            base, exponent = _field(node.base), node.exponent
            return lambda values: base(values) ** exponent
        case Call() if is_key(node.function):
            declared, argument = LearnedFunction.of_key(node.function), _field(node.argument)
            return lambda values: _learned(declared, values, np.asarray(argument(values), dtype=float))
        case Call():
            function, argument = FUNCTIONS[node.function].numpy, _field(node.argument)
            return lambda values: function(np.asarray(argument(values), dtype=float))
        case Apply() if kind_of(node.left) is Kind.OPERATOR:
            op, operand = _operator(node.left), _field(node.right)
            return lambda values: op(operand(values), values)
        case Apply():
            mixed, operand = _mixing(node.right), _field(node.left)
            return lambda values: mixed(operand(values), values)
    raise InvalidArgument(f"cannot evaluate {type(node).__name__}")


@lru_cache(maxsize=4096)
def _operator(op: sp.Basic) -> Callable[[Array, Values], Array]:
    match op:
        case Name(name="I"):
            return lambda x, values: x
        case Name(name="L"):
            return lambda x, values: values["L"] @ x if "L" in values else x - values["A"] @ x
        case Name():
            name = op.name
            return lambda x, values: values[name] @ x
        case Apply():
            outer, inner = _operator(op.left), _operator(op.right)
            return lambda x, values: outer(inner(x, values), values)
        case Power():
            return _repeated(_operator(op.base), op.exponent)
    return _linear(op, Kind.OPERATOR, _operator)


@lru_cache(maxsize=4096)
def _mixing(matrix: sp.Basic) -> Callable[[Array, Values], Array]:
    match matrix:
        case Name():
            name = matrix.name
            return lambda x, values: x @ values[name]
        case Apply():
            first, second = _mixing(matrix.left), _mixing(matrix.right)
            return lambda x, values: second(first(x, values), values)
    return _linear(matrix, Kind.MATRIX, _mixing)


def _linear(tree: sp.Basic, kind: Kind, part: Callable[[sp.Basic], Any]) -> Callable[[Array, Values], Array]:
    """Sums, signs and multiples of operators or of mixing matrices."""
    match tree:
        case Plus() | Minus():
            combine, left, right = _COMBINE[type(tree)], part(tree.left), part(tree.right)
            return lambda x, values: combine(left(x, values), right(x, values))
        case Negative():
            inner = part(tree.inner)
            return lambda x, values: -inner(x, values)
        case Over():
            inner, divisor = part(tree.left), _field(tree.right)
            return lambda x, values: inner(x, values) / divisor(values)
        case Times():
            first = kind_of(tree.left) is kind
            inner, factor = part(tree.left if first else tree.right), _field(tree.right if first else tree.left)
            return lambda x, values: factor(values) * inner(x, values)
    raise InvalidArgument(f"cannot apply {type(tree).__name__}")


def _repeated(once: Callable[[Array, Values], Array], count: int) -> Callable[[Array, Values], Array]:
    def many(x: Array, values: Values) -> Array:
        for _ in range(count):
            x = once(x, values)
        return x

    return many


def _learned(declared: LearnedFunction, values: Values, x: Array) -> Array:
    """A learned function at its control values (K,), or (d, K) per channel."""
    if declared.name not in values:
        raise NotApplicable(
            f"expected control values of {declared.name}, got none; add {declared.name!r} to the values"
        )
    if not declared.per_channel:
        return LearnedValues(declared, values[declared.name])(x)
    parts = zip(values[declared.name], x.T, strict=True)
    return np.stack([LearnedValues(declared, channel)(column) for channel, column in parts], -1)


def _is_exact(values: Values) -> bool:
    return any(getattr(value, "dtype", None) == np.dtype(object) for value in values.values())
