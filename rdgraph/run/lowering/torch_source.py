"""Pieces of torch source: coefficients, functions, mixing matrices, and the module that combines them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import sympy as sp
import torch
from torch import Tensor

from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.run.lowering.packed_form import PerField
from rdgraph.run.lowering.splines import SOURCE as SPLINE
from rdgraph.theory.equality.function_registration import POINTS
from rdgraph.vocabulary.functions import BUILT_IN, FUNCTIONS, ElementwiseFunction, record_of

#: Names used by the generated source.
_TAKEN = {
    "torch", "field", "forcing", "noise", "remainder", "coefficients", "plain", "matrix", "x", "scale", "terms", "out",
    "one", "state", "start", "d", "per_field", "spline",
}  # fmt: skip


#: Functions beyond the language that formulas of registered functions use.
_FURTHER = {
    sp.erf: "torch.erf", sp.log: "torch.log", sp.atan: "torch.atan", sp.asinh: "torch.asinh", sp.sinh: "torch.sinh",
    sp.cosh: "torch.cosh",
}  # fmt: skip


def safe_name(name: str) -> str:
    """The name of a coefficient or field in the source: with an underscore if the source already uses it.

    A name in square brackets belongs to the source.

    >>> safe_name("alpha"), safe_name("x1"), safe_name("H'"), safe_name("[state]")
    ('alpha', 'x1_', 'H_prime', 'state')
    """
    if name.startswith("["):
        return name[1:-1]
    generated = name[:1] in "cx" and name[1:].isdigit()
    return f"{name}_" if name in _TAKEN or generated else name.replace("'", "_prime")


def function_code(function: str, argument: str) -> str:
    """A named function of the language applied to source text."""
    return _template(FUNCTIONS[function]).format(argument)


@lru_cache(maxsize=256)
def _template(record: ElementwiseFunction) -> str:
    """Source of a function, from its formula if it has one; compared with numpy unless built in."""
    if record in BUILT_IN and record.torch is not None:
        return record.torch
    template = record.torch
    if template is None:
        if record.formula is None:
            raise InvalidArgument(f"expected a function with source for torch, got {record.name}; write it out first")
        template = f"(lambda y: {coefficient_code(record.formula(sp.Symbol('y', real=True)))})({{0}})"
    points = np.array([float(x) for x in POINTS])
    expected = torch.as_tensor(record.numpy(points))
    got = eval(template.format("x"), {"torch": torch, "x": torch.as_tensor(points)})
    if not torch.allclose(got, expected, rtol=1e-6, atol=1e-9, equal_nan=True):
        at = int(torch.argmax((got - expected).abs()))
        raise InvalidArgument(
            f"expected torch= of {record.name} to agree with its definition, got {float(got[at]):g} for "
            f"{float(expected[at]):g} at x = {POINTS[at]}"
        )
    return template


# ---------------------------------------------------------------------- functions
@dataclass(frozen=True)
class GeneratedFunction:
    """The body of one generated function with its arguments in order and coefficients by generated name."""

    name: str
    arguments: tuple[str, ...]
    coefficients: tuple[sp.Expr, ...]
    lines: tuple[str, ...]
    steps: tuple[str, ...]
    products: int
    mixes: int

    @property
    def coefficient_names(self) -> tuple[str, ...]:
        return tuple(f"c{i}" for i in range(len(self.coefficients)))

    @property
    def coefficient_function(self) -> str:
        """The name of the generated function that computes the coefficients."""
        return "coefficients" if self.name == "field" else f"{self.name}_coefficients"


# ---------------------------------------------------------------------- coefficients
def coefficient_code(expression: sp.Basic) -> str:
    """Torch text of a scalar or channel expression in the coefficients.

    >>> coefficient_code(sp.Symbol("alpha") / 2 + sp.tanh(sp.Symbol("beta")))
    '0.5*alpha + torch.tanh(beta)'
    """
    match expression:
        case sp.Symbol():
            return safe_name(expression.name)
        case PerField():
            return f"per_field(one, d, {', '.join(map(coefficient_code, expression.args))})"
        case sp.Integer() if abs(expression) < 2**53:
            return str(expression)
        case sp.Add():
            return " + ".join(coefficient_code(a) for a in expression.args).replace("+ -", "- ")
        case _ if not expression.free_symbols:
            return _number_code(expression)
        case sp.Mul():
            number, rest = expression.as_coeff_Mul()
            factors = [_bracketed(a) for a in rest.as_ordered_factors()]
            lead = {sp.S.One: "", sp.S.NegativeOne: "-"}.get(number, f"{coefficient_code(number)}*")
            return lead + "*".join(factors)
        case sp.Pow(base=base, exp=sp.S.Half):
            return f"torch.sqrt({coefficient_code(base)})"
        case sp.Pow(base=base, exp=exponent):
            if exponent == -sp.S.Half:
                return f"torch.rsqrt({coefficient_code(base)})"
            return f"(1/{_bracketed(base)})" if exponent == -1 else f"{_bracketed(base)}**{_bracketed(exponent)}"
    record = record_of(expression)
    if record is None and expression.func in _FURTHER:
        return f"{_FURTHER[expression.func]}({coefficient_code(expression.args[0])})"
    if record is None:
        raise InvalidArgument(
            f"expected a coefficient built from the language, got {type(expression).__name__}; see rdgraph.parse"
        )
    return function_code(record.name, coefficient_code(expression.args[0]))


def _number_code(expression: sp.Expr) -> str:
    """A constant in double precision; raises if it overflows."""
    try:
        value = float(expression)
    except (TypeError, OverflowError):
        value = math.nan
    if not math.isfinite(value):
        raise NotApplicable(
            "expected constants within double precision, up to 1.8e308, got a larger one; name the constant, or scale "
            "the equation"
        )
    return repr(value)


def _bracketed(expression: sp.Expr) -> str:
    text = coefficient_code(expression)
    plain = isinstance(expression, sp.Symbol | sp.Function) or (expression.is_number and expression >= 0)
    return text if plain or isinstance(expression, sp.Pow) else f"({text})"


def evaluated(code: str, values: Mapping[str, Tensor]) -> Any:
    """The value of torch text of a coefficient or a matrix, from the coefficients by name; a number if it is constant.

    >>> evaluated(coefficient_code(sp.Symbol("alpha") / 2), {"alpha": torch.tensor(3.0)})
    tensor(1.5000)
    """
    names = {safe_name(name): value for name, value in values.items()}
    return eval(compile(code, "<coefficient>", "eval"), {"torch": torch, **names})


# ---------------------------------------------------------------------- mixing matrices
def matrix_code(matrix: sp.Expr) -> str:
    """Torch text of a channel-mixing matrix (..., d, d): an expression in non-commutative symbols.

    >>> W, Q = sp.symbols("W Q", commutative=False)
    >>> matrix_code(2*W*(W + Q) - Q**2)
    '-Q @ Q + 2*W @ (Q + W)'
    """
    match matrix:
        case sp.Symbol():
            return safe_name(matrix.name)
        case sp.Add():
            return " + ".join(matrix_code(a) for a in matrix.args).replace("+ -", "- ")
        case sp.Pow():
            return " @ ".join([_matrix_factor(matrix.base)] * int(matrix.exp))
        case sp.Mul():
            scalars, matrices = matrix.args_cnc()
            factor = coefficient_code(sp.Mul(*scalars))
            lead = {"1": "", "-1": "-"}.get(factor, f"{_closed(factor)}*")
            return lead + " @ ".join(map(_matrix_factor, matrices))
    raise InvalidArgument(
        f"expected a mixing matrix built from names, sums and products, got {type(matrix).__name__}; see rdgraph.parse"
    )


def _matrix_factor(matrix: sp.Expr) -> str:
    return f"({matrix_code(matrix)})" if isinstance(matrix, sp.Add) else matrix_code(matrix)


def _closed(factor: str) -> str:
    return factor if factor.replace(".", "").isalnum() else f"({factor})"


# ---------------------------------------------------------------------- the module
_PLAIN = '''def plain(matrix):
    """An operator for `field`: A(x, scale, (factor, value), ...) = scale*(matrix @ x) + sum of factor*value."""

    def A(x, scale=None, *terms):
        out = matrix @ x if scale is None else scale * (matrix @ x)
        for factor, value in terms:
            out = out + factor * value
        return out

    return A
'''


_PER_FIELD = '''def per_field(one, d, *values):
    """One coefficient for each field as one for each channel, d of them to a field; `one` is 1 as a tensor."""
    columns = [value * one for value in values]
    columns = [x.expand(1, d) if x.ndim == 0 else x.expand(*x.shape[:-1], d) for x in columns]
    lead = torch.broadcast_shapes(*(x.shape[:-1] for x in columns))
    return torch.cat([x.expand(*lead, d) for x in columns], -1)
'''


def module_source(
    equation: str, note: str, names: list[str], functions: list[GeneratedFunction], is_packed: bool = False
) -> str:
    """The generated module: imports only torch, so it runs anywhere with `plain(matrix)` as operator."""
    lead = "" if "=" in equation else "dH/dt = "
    pieces = [f'"""{lead}{equation}\n\n{note}\n"""\n\nimport torch\n', _PLAIN, *([_PER_FIELD] if is_packed else [])]
    pieces += [SPLINE] if any("spline(" in line for function in functions for line in function.lines) else []
    names = [*(["one", "d"] if is_packed else []), *map(safe_name, names)]
    for function in functions:
        pieces.append(_coefficient_source(function, names))
        arguments = [*(safe_name(a) for a in function.arguments), *function.coefficient_names]
        lead = "" if "t" in arguments or function.name != "field" else "t, "
        body = "".join(f"    {line}\n" for line in function.lines)
        pieces.append(f"def {function.name}({lead}{', '.join(arguments)}):\n{body}")
    return "\n\n".join(pieces)


def _coefficient_source(function: GeneratedFunction, names: list[str]) -> str:
    """coefficients(alpha, beta, ...) of one function: computed once, before any evaluation."""
    lines = [
        f"    {c} = {coefficient_code(e)}\n"
        for c, e in zip(function.coefficient_names, function.coefficients, strict=True)
    ]
    returned = ", ".join(function.coefficient_names) + ("," if len(function.coefficients) == 1 else "")
    return f"def {function.coefficient_function}({', '.join(names)}):\n{''.join(lines)}    return ({returned})\n"
