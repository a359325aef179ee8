"""Pieces of C source: numbers, coefficients, powers and elementwise functions, in the type `real`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

import sympy as sp

from rdgraph.errors import InvalidArgument
from rdgraph.language.normal_form import TIME
from rdgraph.run.lowering.torch_source import coefficient_code
from rdgraph.vocabulary.functions import FUNCTIONS, record_of

# ---------------------------------------------------------------------- c expressions
#: Functions beyond the language that formulas of registered functions use, in <tgmath.h>.
_FURTHER = {sp.erf: "erf", sp.log: "log", sp.atan: "atan", sp.asinh: "asinh", sp.sinh: "sinh", sp.cosh: "cosh"}
#: Powers up to this one are written as products; others use `pow`.
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


def expression_text(expression: sp.Basic) -> str:
    """C text of an expression in symbols: a coefficient that varies with the time, or a formula.

    >>> x = sp.Symbol("x", real=True)
    >>> expression_text(x**2/2 + sp.erf(-x))
    '((real)0.5)*(x*x) - erf(x)'
    """
    match expression:
        case sp.Symbol():
            return str(expression.name)
        case sp.Add():
            return " + ".join(expression_text(a) for a in expression.as_ordered_terms()).replace("+ -", "- ")
        case _ if not expression.free_symbols:
            return number_text(expression)
        case sp.Mul():
            number, rest = expression.as_coeff_Mul()
            factors = "*".join(_bracketed(a) for a in rest.as_ordered_factors())
            lead = {sp.S.One: "", sp.S.NegativeOne: "-"}.get(number)
            return f"{number_text(number)}*{factors}" if lead is None else lead + factors
        case sp.Pow():
            return _power_text(expression)
    if expression.func in _FURTHER:
        return f"{_FURTHER[expression.func]}({expression_text(expression.args[0])})"
    record = record_of(expression)
    if record is None or record.c is None:
        raise InvalidArgument(
            f"expected an expression with C source, got {type(expression).__name__}; evaluate the field itself"
        )
    inner = expression_text(expression.args[0])
    return re.sub(r"\bx\b", lambda _: f"({inner})", f"({record.c})")


def _power_text(expression: sp.Pow) -> str:
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


# ---------------------------------------------------------------------- source names
# What the C source of a field depends on besides the equations, and the names of the arrays in it.


@dataclass(frozen=True)
class Layout:
    """The layout of generated source: types and shapes, never values.

    `operators` names the operators with the type of their indices, `axes` says for every coefficient whether it varies
    along the nodes and along the channels; with `has_degree`, L = D - A is a separate operator.
    `run_degrees` are the degrees of the runs formed by the rows of the only operator, None where there are none.
    """

    real: str
    channels: int
    operators: tuple[tuple[str, str], ...]
    has_degree: bool
    run_degrees: tuple[int, ...] | None
    axes: tuple[tuple[str, tuple[bool, bool]], ...]

    @property
    def laplacians(self) -> dict[str, str]:
        """The operators that are D - A in generated source, each with the name of its A."""
        return {"L": "A"} if self.has_degree else {}

    def axes_of(self, expression: sp.Expr) -> tuple[bool, bool]:
        """The axes along which an expression in the coefficients varies."""
        known = dict(self.axes)
        axes = [known[s.name] for s in expression.free_symbols - {TIME}]
        return any(a for a, _ in axes), any(b for _, b in axes)


@dataclass
class SourceNames:
    """The names that a source uses: coefficients c0, c1, ..., matrices w0, ..., states, starts and stored arrays."""

    layout: Layout
    fields: tuple[str, ...]
    starts: tuple[str, ...]
    stored: tuple[str, ...]
    coefficients: dict[sp.Expr, str] = field(default_factory=dict)
    timed: dict[sp.Expr, str] = field(default_factory=dict)
    matrices: dict[sp.Expr, str] = field(default_factory=dict)
    functions: dict[str, None] = field(default_factory=dict)

    def at(self, array: str, row: str, channel: str = "c") -> str:
        """An entry of a state, a start or a stored array."""
        for names, base in ((self.fields, "state"), (self.starts, "start")):
            if array in names:
                block = names.index(array)
                return f"p->{base}[{row} * WIDTH + {f'{block} * CHANNELS + ' if block else ''}{channel}]"
        return f"p->{array}[{row} * CHANNELS + {channel}]"

    def coefficient(self, expression: sp.Expr, loads: dict[str, str]) -> str:
        """The name of a coefficient in an entry, which loads it; numbers are literals."""
        if expression.is_number:
            return number_text(expression)
        if expression.has(TIME):
            return self._timed(expression, loads)
        name = self.coefficients.setdefault(expression, f"c{len(self.coefficients)}")
        along_nodes, along_channels = self.layout.axes_of(expression)
        index = {(True, True): "i * CHANNELS + c", (True, False): "i", (False, True): "c", (False, False): "0"}
        loads[name] = f"p->{name}[{index[along_nodes, along_channels]}]"
        return name

    def _timed(self, expression: sp.Expr, loads: dict[str, str]) -> str:
        """The name of a coefficient that varies with the time, computed from constant ones."""
        loads.setdefault("t", "(real)p->t")
        renamed = {s: sp.Symbol(self.coefficient(s, loads)) for s in expression.free_symbols - {TIME}}
        name = self.timed.setdefault(expression, f"k{len(self.timed)}")
        loads[name] = expression_text(expression.xreplace(renamed))
        return name

    def matrix(self, matrix: sp.Expr) -> str:
        """The name of a mixing matrix."""
        if matrix.has(TIME):
            raise InvalidArgument(
                f"expected mixing matrices that stay as they are, got {matrix}, which depends on the time; evaluate "
                "the field itself"
            )
        return self.matrices.setdefault(matrix, f"w{len(self.matrices)}")

    def handed(self) -> list[tuple[str, str]]:
        """Type and name of the array arguments, in order."""
        arrays = [("real", "start")]
        arrays += [("real", name) for name in (*self.coefficients.values(), *self.matrices.values())]
        for letter, index in self.layout.operators:
            arrays += [(kind, f"{letter}_{part}") for kind, part in self._operator_parts(index)]
        return arrays + [("real", f"{letter}_degree") for letter in self.layout.laplacians]

    def _operator_parts(self, index: str) -> list[tuple[str, str]]:
        if self.layout.run_degrees is None:
            return [(index, "rows"), (index, "columns"), ("real", "weights")]
        whole = [("int64_t", part) for part in ("count", "starts", "entries", "offsets")]
        return [*whole, ("int32_t", "degrees"), ("real", "weights")]
