"""Pieces of C source: numbers, coefficients, powers and elementwise functions, in the type `real`."""

from __future__ import annotations

import re
from functools import lru_cache, singledispatch

import sympy as sp

from rdgraph.errors import InvalidArgument
from rdgraph.lowering.torch_source import coefficient_code
from rdgraph.syntax.functions import FUNCTIONS, record_of

#: What formulas of registered functions use beyond the language, in <tgmath.h>.
_FURTHER = {sp.erf: "erf", sp.log: "log", sp.atan: "atan", sp.asinh: "asinh", sp.sinh: "sinh", sp.cosh: "cosh"}
#: Powers up to this one are products; the others are left to `pow`.
MOST_FACTORS = 8


def number_text(number: sp.Expr) -> str:
    """A constant as C text; brackets around one with a sign.

    >>> number_text(sp.Rational(1, 2)), number_text(sp.Integer(-3))
    ('((real)0.5)', '(-3)')
    """
    text = coefficient_code(number)
    if re.fullmatch(r"-?\d{1,9}", text):
        return f"({text})" if text.startswith("-") else text
    return f"((real){text})"


def power_text(base: str, exponent: int) -> str:
    """base**exponent for a name: small powers as products.

    >>> power_text("y1", 3), power_text("y1", -2), power_text("y1", 12)
    ('y1*y1*y1', '1/(y1*y1)', 'pow(y1, (real)12)')
    """
    if abs(exponent) > MOST_FACTORS:
        return f"pow({base}, (real){exponent})"
    product = "*".join([base] * abs(exponent))
    return product if exponent > 0 else f"1/({product})"


@lru_cache(maxsize=256)
def function_source(name: str) -> str:
    """The definition of one elementwise function of the language, called `f_name`.

    >>> function_source("relu")
    'static inline real f_relu(real x) { return x < 0 ? 0 : x; }'
    """
    record = FUNCTIONS[name]
    body = record.c
    if body is None:
        if record.formula is None:
            raise InvalidArgument(f"expected a function with a formula, got {name}; evaluate the field itself")
        x = sp.Symbol("x", real=True)
        body = expression_text(record.formula(x))
    return f"static inline real f_{name}(real x) {{ return {body}; }}"


@singledispatch
def expression_text(expression: sp.Basic) -> str:
    """C text of an expression in symbols: a coefficient that varies with the time, or a formula.

    >>> x = sp.Symbol("x", real=True)
    >>> expression_text(x**2/2 + sp.erf(-x))
    '((real)0.5)*(x*x) - erf(x)'
    """
    if not expression.free_symbols:
        return number_text(expression)
    if expression.func in _FURTHER:
        return f"{_FURTHER[expression.func]}({expression_text(expression.args[0])})"
    record = record_of(expression)
    if record is None or record.c is None:
        raise InvalidArgument(
            f"expected an expression with C source, got {type(expression).__name__}; evaluate the field itself"
        )
    inner = expression_text(expression.args[0])
    return re.sub(r"\bx\b", lambda _: f"({inner})", f"({record.c})")


@expression_text.register
def _(expression: sp.Symbol) -> str:
    return str(expression.name)


@expression_text.register
def _(expression: sp.Add) -> str:
    return " + ".join(expression_text(a) for a in expression.as_ordered_terms()).replace("+ -", "- ")


@expression_text.register
def _(expression: sp.Mul) -> str:
    number, rest = expression.as_coeff_Mul()
    if not rest.free_symbols:
        return number_text(expression)
    factors = "*".join(_bracketed(a) for a in rest.as_ordered_factors())
    lead = {sp.S.One: "", sp.S.NegativeOne: "-"}.get(number)
    return f"{number_text(number)}*{factors}" if lead is None else lead + factors


@expression_text.register
def _(expression: sp.Pow) -> str:
    if not expression.free_symbols:
        return number_text(expression)
    base = expression_text(expression.base)
    if expression.exp in (sp.S.Half, -sp.S.Half):
        root = f"sqrt({base})"
        return root if expression.exp > 0 else f"(1/{root})"
    if expression.exp.is_Integer:
        return f"({power_text(_bracketed(expression.base), int(expression.exp))})"
    return f"pow({base}, {expression_text(expression.exp)})"


def _bracketed(expression: sp.Expr) -> str:
    text = expression_text(expression)
    return text if isinstance(expression, sp.Symbol | sp.Function | sp.Pow) else f"({text})"
