"""A dense numpy interpreter of the language: the oracle that everything else is tested against.

Works on float arrays and, entry by entry, on object arrays of `fractions.Fraction` for exact counter-examples.
Shapes: scalar (), channel (d,), node (n, 1), field (n, d), operator (n, n), matrix (d, d).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import sympy as sp

from rdgraph.nodes import Apply, Call, Kind, Minus, Name, Negative, Over, Plus, Power, Times, kind_of

Array = Any

FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": lambda x: 0.5 * (1 + np.tanh(0.5 * x)),
    "exp": np.exp,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "softplus": lambda x: np.logaddexp(0, x),
    "sin": np.sin,
    "cos": np.cos,
}


def evaluate(node: sp.Basic, values: Mapping[str, Array]) -> Array:
    """Value of an elementwise tree; `values` holds every letter (L defaults to I - A).

    >>> from rdgraph.language import read_expression
    >>> a = np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> evaluate(read_expression("-L@H"), {"A": a, "H": np.array([[1.0], [3.0]])}).ravel()
    array([ 2., -2.])
    """
    match node:
        case sp.Rational():
            return Fraction(int(node.p), int(node.q)) if _is_exact(values) else float(node)
        case Name():
            return values[node.name]
        case Plus():
            return evaluate(node.left, values) + evaluate(node.right, values)
        case Minus():
            return evaluate(node.left, values) - evaluate(node.right, values)
        case Negative():
            return -evaluate(node.inner, values)
        case Times():
            return evaluate(node.left, values) * evaluate(node.right, values)
        case Over():
            return evaluate(node.left, values) / evaluate(node.right, values)
        case Power():
            return evaluate(node.base, values) ** node.exponent
        case Call():
            return FUNCTIONS[node.function](np.asarray(evaluate(node.argument, values), dtype=float))
        case Apply():
            if kind_of(node.left) is Kind.OPERATOR:
                return act(node.left, evaluate(node.right, values), values)
            return mix(evaluate(node.left, values), node.right, values)
    raise TypeError(f"cannot evaluate {type(node).__name__}")


def act(op: sp.Basic, operand: Array, values: Mapping[str, Array]) -> Array:
    """An operator tree applied to an array."""
    match op:
        case Name(name="I"):
            return operand
        case Name(name="L") if "L" not in values:
            return operand - values["A"] @ operand
        case Name():
            return values[op.name] @ operand
        case Plus():
            return act(op.left, operand, values) + act(op.right, operand, values)
        case Minus():
            return act(op.left, operand, values) - act(op.right, operand, values)
        case Negative():
            return -act(op.inner, operand, values)
        case Apply():
            return act(op.left, act(op.right, operand, values), values)
        case Over():
            return act(op.left, operand, values) / evaluate(op.right, values)
        case Power():
            for _ in range(op.exponent):
                operand = act(op.base, operand, values)
            return operand
        case Times():
            inner, factor = (op.left, op.right) if kind_of(op.left) is Kind.OPERATOR else (op.right, op.left)
            return evaluate(factor, values) * act(inner, operand, values)
    raise TypeError(f"cannot apply {type(op).__name__}")


def mix(operand: Array, matrix: sp.Basic, values: Mapping[str, Array]) -> Array:
    """A field times a tree of channel-mixing matrices."""
    match matrix:
        case Name():
            return operand @ values[matrix.name]
        case Plus():
            return mix(operand, matrix.left, values) + mix(operand, matrix.right, values)
        case Minus():
            return mix(operand, matrix.left, values) - mix(operand, matrix.right, values)
        case Negative():
            return -mix(operand, matrix.inner, values)
        case Apply():
            return mix(mix(operand, matrix.left, values), matrix.right, values)
        case Over():
            return mix(operand, matrix.left, values) / evaluate(matrix.right, values)
        case Times():
            inner, factor = (
                (matrix.left, matrix.right) if kind_of(matrix.left) is Kind.MATRIX else (matrix.right, matrix.left)
            )
            return evaluate(factor, values) * mix(operand, inner, values)
    raise TypeError(f"cannot mix with {type(matrix).__name__}")


def _is_exact(values: Mapping[str, Array]) -> bool:
    return any(getattr(getattr(v, "dtype", None), "kind", "") == "O" for v in values.values())
