"""Equations read with `ast` and evaluated on numpy: values, and derivatives by forward accumulation.

Shapes: scalar (), channel (d,), node (n, 1), field (n, d), operator (n, n), mixing matrix (d, d).
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import mpmath
import numpy as np

Array = np.ndarray


def _sigmoid(x: Array) -> Array:
    return 0.5 * (1 + np.tanh(0.5 * x))


#: Every elementwise function of the language with its derivative (one-sided at a kink).
FUNCTIONS: dict[str, tuple[Callable[[Array], Array], Callable[[Array], Array]]] = {
    "tanh": (np.tanh, lambda x: 1 - np.tanh(x) ** 2),
    "relu": (lambda x: np.maximum(x, 0.0), lambda x: (x > 0).astype(float)),
    "sigmoid": (_sigmoid, lambda x: _sigmoid(x) * _sigmoid(-x)),
    "exp": (np.exp, np.exp),
    "sqrt": (np.sqrt, lambda x: 0.5 / np.sqrt(x)),
    "abs": (np.abs, np.sign),
    "softplus": (lambda x: np.logaddexp(0.0, x), _sigmoid),
    "sin": (np.sin, np.cos),
    "cos": (np.cos, lambda x: -np.sin(x)),
}


#: The same on numbers of mpmath, with as many digits as are in force.
PRECISE: dict[str, Callable[[Any], Any]] = {
    "tanh": mpmath.tanh, "relu": lambda x: max(x, mpmath.mpf(0)), "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "exp": mpmath.exp, "sqrt": mpmath.sqrt, "abs": abs, "softplus": lambda x: mpmath.log(1 + mpmath.exp(x)),
    "sin": mpmath.sin, "cos": mpmath.cos,
}  # fmt: skip


@dataclass(frozen=True)
class Dual:
    """A value of shape S with its derivatives of shape S + (directions,)."""

    value: Array
    tangent: Array

    __array_ufunc__ = None  # so that `array * dual` asks the dual

    def __neg__(self) -> Dual:
        return Dual(-self.value, -self.tangent)

    def __add__(self, other: Any) -> Dual:
        other = dual(other, self)
        shape = np.broadcast_shapes(self.value.shape, other.value.shape)
        size = self.tangent.shape[-1]
        tangent = np.broadcast_to(self.tangent, (*shape, size)) + other.tangent
        return Dual(self.value + other.value, tangent)

    def __sub__(self, other: Any) -> Dual:
        return self + -dual(other, self)

    def __rsub__(self, other: Any) -> Dual:
        return -self + other

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Operator):
            return NotImplemented
        other = dual(other, self)
        tangent = self.value[..., None] * other.tangent + other.value[..., None] * self.tangent
        return Dual(self.value * other.value, tangent)

    def __truediv__(self, other: Any) -> Dual:
        return self * dual(other, self) ** -1

    def __rtruediv__(self, other: Any) -> Dual:
        return self**-1 * other

    def __pow__(self, exponent: int) -> Dual:
        if exponent == 0:
            return Dual(np.ones_like(self.value), np.zeros_like(self.tangent))
        slope = exponent * self.value ** float(exponent - 1)
        return Dual(self.value ** float(exponent), slope[..., None] * self.tangent)

    def __matmul__(self, matrix: Array) -> Dual:
        return Dual(self.value @ matrix, np.einsum("ijk,jl->ilk", self.tangent, matrix))

    def __rmatmul__(self, matrix: Array) -> Dual:
        return Dual(matrix @ self.value, np.tensordot(matrix, self.tangent, axes=(1, 0)))

    __radd__, __rmul__ = __add__, __mul__


def dual(value: Any, like: Dual) -> Dual:
    """A constant among duals, or the dual itself."""
    if isinstance(value, Dual):
        return value
    array = np.asarray(value)
    return Dual(array, np.zeros((*array.shape, like.tangent.shape[-1])))


def seeded(value: Array, start: int, directions: int) -> Dual:
    """A variable whose entries are the directions `start`, `start + 1`, ..."""
    tangent = np.zeros((*value.shape, directions), dtype=value.dtype)
    tangent.reshape(-1, directions)[np.arange(value.size), start + np.arange(value.size)] = 1.0
    return Dual(value, tangent)


@dataclass(frozen=True)
class Operator:
    """A linear map on the nodes, as a function: channel coefficients may stand in front of it."""

    act: Callable[[Any], Any]

    __array_ufunc__ = None

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, Operator):
            return Operator(lambda x: self.act(other.act(x)))
        return self.act(other)

    def __add__(self, other: Operator) -> Operator:
        return Operator(lambda x: self.act(x) + other.act(x))

    def __sub__(self, other: Operator) -> Operator:
        return Operator(lambda x: self.act(x) - other.act(x))

    def __neg__(self) -> Operator:
        return Operator(lambda x: -self.act(x))

    def __mul__(self, factor: Any) -> Operator:
        return Operator(lambda x: factor * self.act(x))

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> Operator:
        return Operator(lambda x: self.act(x) / divisor)

    def __pow__(self, exponent: int) -> Operator:
        def repeated(x: Any) -> Any:
            for _ in range(exponent):
                x = self.act(x)
            return x

        return Operator(repeated)


_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.MatMult: operator.matmul,
}


@lru_cache(maxsize=4096)
def read(text: str) -> ast.expr:
    """The syntax tree of a right-hand side."""
    return ast.parse(text.strip(), mode="eval").body


def names(text: str) -> set[str]:
    """The letters of a text, functions left out."""
    return {n.id for n in ast.walk(read(text)) if isinstance(n, ast.Name)} - set(FUNCTIONS)


def evaluate(text: str, values: Mapping[str, Any]) -> Any:
    """The value of a text; `values` holds every letter, operators as `Operator`."""
    return _compiled(text)(values)


@lru_cache(maxsize=4096)
def _compiled(text: str) -> Callable[[Mapping[str, Any]], Any]:
    return _closure(read(text))


def _closure(tree: ast.expr) -> Callable[[Mapping[str, Any]], Any]:
    """A tree as nested functions: values -> value."""
    match tree:
        case ast.Constant():
            number = np.asarray(float(tree.value))  # type: ignore[arg-type]
            return lambda values: number
        case ast.Name():
            name = tree.id
            return lambda values: values[name]
        case ast.UnaryOp(op=ast.USub()):
            inner = _closure(tree.operand)
            return lambda values: -inner(values)
        case ast.BinOp(op=ast.Pow()):
            base, exponent = _closure(tree.left), int(_closure(tree.right)({}))
            return lambda values: _power(base(values), exponent)
        case ast.BinOp():
            combine, left, right = _BINARY[type(tree.op)], _closure(tree.left), _closure(tree.right)
            return lambda values: combine(left(values), right(values))
        case ast.Call(func=ast.Name(id=function)):
            argument = _closure(tree.args[0])
            return lambda values: call(function, argument(values))
    raise TypeError(f"expected an equation of the language, got {ast.dump(tree)}")


def _power(base: Any, exponent: int) -> Any:
    return base**exponent if isinstance(base, Dual | Operator) else base ** float(exponent)


def call(name: str, argument: Any) -> Any:
    """An elementwise function of an array or a dual, or of numbers of mpmath."""
    if isinstance(argument, mpmath.mpf) or (isinstance(argument, np.ndarray) and argument.dtype.kind == "O"):
        return np.frompyfunc(PRECISE[name], 1, 1)(argument)
    function, slope = FUNCTIONS[name]
    if isinstance(argument, Dual):
        return Dual(function(argument.value), slope(argument.value)[..., None] * argument.tangent)
    return function(argument)
