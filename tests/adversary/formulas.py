"""Answers are texts such as "Piecewise((a, a > b), (b, True))": read with `ast`, evaluated on numbers.

Square roots and fractional powers of negative numbers are complex; a condition on a value with an imaginary part is
false. Nothing else is known about the writer of the texts.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import lambertw

Value = complex | float | bool
Values = Mapping[str, Any]


class Unreadable(ValueError):
    """A text that is no formula; the adversary has to learn the word."""


def evaluate(text: str, values: Values) -> Any:
    """The number (or truth value) of a formula; a complex result without imaginary part is real.

    >>> evaluate("Max(a, 2*b)**2 + sqrt(4)", {"a": 1.0, "b": 1.5})
    11.0
    """
    return real(_compiled(text)(values))


def real(value: Any) -> Any:
    """The value as float where its imaginary part is rounding."""
    if isinstance(value, complex) and abs(value.imag) <= 1e-7 * (1 + abs(value.real)):  # the root of a rounding
        return float(value.real)
    return value


def holds(text: str, values: Values) -> bool:
    """The truth of a condition; one that divides by zero does not hold."""
    with np.errstate(divide="raise", invalid="raise"):
        try:
            return bool(evaluate(text, values))
        except (ZeroDivisionError, FloatingPointError):
            return False


def letters(text: str) -> set[str]:
    """The letters a formula depends on."""
    found = {n.id for n in ast.walk(_tree(text)) if isinstance(n, ast.Name)}
    return found - set(_CONSTANTS) - set(_FUNCTIONS) - {"Piecewise", "CRootOf", "rootof"}


@lru_cache(maxsize=4096)
def _tree(text: str) -> ast.expr:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError as problem:
        raise Unreadable(f"expected a formula, got {text!r}") from problem


def _power(base: Any, exponent: Any) -> Any:
    if isinstance(base, float | int) and base < 0 and float(np.real(exponent)) % 1:
        base = complex(base)
    if base == 0 and np.real(exponent) < 0:
        return np.inf
    try:
        return base**exponent
    except OverflowError:
        return np.inf


def _divide(top: Any, bottom: Any) -> Any:
    if bottom == 0:
        return np.nan if top == 0 else np.inf * np.sign(np.real(top))
    return top / bottom


def _sqrt(x: Any) -> Any:
    return _power(x, 0.5)


def _extreme(best: Callable[..., Any]) -> Callable[..., Any]:
    def chosen(*values: Any) -> Any:
        kept = [real(v) for v in values]
        return best(kept) if not any(isinstance(v, complex) for v in kept) else complex(np.nan, 1)

    return chosen


def _exp(x: Any) -> Any:
    with np.errstate(over="ignore"):
        return np.exp(x)


def _log(x: Any) -> Any:
    if x == 0:
        return -np.inf
    return np.log(complex(x)) if isinstance(x, complex) or x < 0 else np.log(x)


def _compare(test: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def compared(a: Any, b: Any) -> bool:
        a, b = real(a), real(b)
        return not isinstance(a, complex) and not isinstance(b, complex) and bool(test(a, b))

    return compared


def _equal(a: Any, b: Any) -> bool:
    return bool(abs(a - b) <= 1e-12 * (1 + abs(a)))


_CONSTANTS = {"oo": np.inf, "pi": np.pi, "E": np.e, "I": 1j, "zoo": np.inf, "nan": np.nan, "true": True, "false": False}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "Max": _extreme(max), "Min": _extreme(min), "Abs": abs, "sqrt": _sqrt, "exp": _exp, "log": _log,
    "tanh": np.tanh, "sin": np.sin, "cos": np.cos, "sinh": np.sinh, "cosh": np.cosh, "atan": np.arctan,
    "asin": np.emath.arcsin, "acos": np.emath.arccos, "atanh": np.emath.arctanh, "re": np.real, "im": np.imag,
    "sigmoid": lambda x: 0.5 * (1 + np.tanh(0.5 * x)), "relu": lambda x: max(x, 0.0), "sign": np.sign,
    "softplus": lambda x: np.logaddexp(0.0, x), "Heaviside": lambda x, at=0.5: np.heaviside(np.real(x), at),
    "LambertW": lambda x, branch=0: complex(lambertw(complex(x), int(np.real(branch)))),
    "Eq": _equal, "Ne": lambda a, b: not _equal(a, b), "Gt": _compare(operator.gt), "Lt": _compare(operator.lt),
    "Ge": _compare(operator.ge), "Le": _compare(operator.le), "And": lambda *x: all(x), "Or": lambda *x: any(x),
    "ITE": lambda test, a, b: a if test else b,
    "Not": operator.not_, "cbrt": np.cbrt, "coth": lambda x: 1 / np.tanh(x), "floor": np.floor, "ceiling": np.ceil,
}  # fmt: skip


def take_up(name: str, function: Callable[[Any], Any]) -> None:
    """Let formulas call a further function of one number."""
    _FUNCTIONS[name] = lambda x: float(function(np.real(x)))


_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: _divide, ast.Pow: _power,
    ast.BitAnd: lambda a, b: bool(a) and bool(b), ast.BitOr: lambda a, b: bool(a) or bool(b),
}  # fmt: skip
_COMPARE = {
    ast.Lt: _FUNCTIONS["Lt"], ast.LtE: _FUNCTIONS["Le"], ast.Gt: _FUNCTIONS["Gt"], ast.GtE: _FUNCTIONS["Ge"],
    ast.Eq: _equal, ast.NotEq: _FUNCTIONS["Ne"],
}  # fmt: skip


@lru_cache(maxsize=4096)
def _compiled(text: str) -> Callable[[Values], Any]:
    return _closure(_tree(text), text)


def _closure(node: ast.expr, text: str) -> Callable[[Values], Any]:
    match node:
        case ast.Constant():
            number = node.value if isinstance(node.value, bool) else float(node.value)  # type: ignore[arg-type]
            return lambda values: number
        case ast.Name(id=name) if name in _CONSTANTS:
            constant = _CONSTANTS[name]
            return lambda values: constant
        case ast.Name(id=name):
            return lambda values: values[name]
        case ast.UnaryOp(op=ast.USub()):
            inner = _closure(node.operand, text)
            return lambda values: -inner(values)
        case ast.UnaryOp(op=ast.Invert() | ast.Not()):
            inner = _closure(node.operand, text)
            return lambda values: not inner(values)
        case ast.BinOp() if type(node.op) in _BINARY:
            combine, left, right = _BINARY[type(node.op)], _closure(node.left, text), _closure(node.right, text)
            return lambda values: combine(left(values), right(values))
        case ast.Compare():
            return _comparison(node, text)
        case ast.Call(func=ast.Name(id="Piecewise")):
            return _piecewise(node, text)
        case ast.Call(func=ast.Name(id="CRootOf" | "rootof")):
            return _root(node, text)
        case ast.Call(func=ast.Name(id=name)) if name in _FUNCTIONS:
            function, arguments = _FUNCTIONS[name], [_closure(a, text) for a in node.args]
            return lambda values: function(*(a(values) for a in arguments))
    raise Unreadable(f"expected a formula, got {ast.unparse(node)!r} in {text!r}")


def _comparison(node: ast.Compare, text: str) -> Callable[[Values], Any]:
    parts = [_closure(n, text) for n in (node.left, *node.comparators)]
    tests = [_COMPARE[type(o)] for o in node.ops]

    def compared(values: Values) -> bool:
        numbers = [p(values) for p in parts]
        return all(test(a, b) for test, a, b in zip(tests, numbers, numbers[1:], strict=False))

    return compared


def _piecewise(node: ast.Call, text: str) -> Callable[[Values], Any]:
    branches = [(_closure(b.elts[0], text), _closure(b.elts[1], text)) for b in node.args if isinstance(b, ast.Tuple)]

    def chosen(values: Values) -> Any:
        for value, condition in branches:
            if condition(values):
                return value(values)
        return np.nan

    return chosen


def _root(node: ast.Call, text: str) -> Callable[[Values], Any]:
    """CRootOf(polynomial in x, k): real roots in ascending order first."""
    x = np.polynomial.Polynomial([0.0, 1.0])
    names = {n.id for n in ast.walk(node.args[0]) if isinstance(n, ast.Name)}
    polynomial = _polynomial(node.args[0], dict.fromkeys(names, x))
    roots = polynomial.roots()
    real_ones = sorted(r.real for r in roots if abs(r.imag) < 1e-9 * (1 + abs(r)))
    others = sorted((r for r in roots if abs(r.imag) >= 1e-9 * (1 + abs(r))), key=lambda r: (r.real, r.imag))
    root = [*real_ones, *others][int(ast.literal_eval(node.args[1]))]
    return lambda values: complex(root) if isinstance(root, complex) else float(root)


def _polynomial(node: ast.expr, values: Values) -> Any:
    match node:
        case ast.Constant():
            return float(node.value)  # type: ignore[arg-type]
        case ast.Name():
            return values[node.id]
        case ast.UnaryOp(op=ast.USub()):
            return -_polynomial(node.operand, values)
        case ast.BinOp(op=ast.Pow()):
            return _polynomial(node.left, values) ** int(ast.literal_eval(node.right))
        case ast.BinOp():
            combine = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}
            return combine[type(node.op)](_polynomial(node.left, values), _polynomial(node.right, values))
    raise Unreadable(f"expected a polynomial, got {ast.unparse(node)!r}")
