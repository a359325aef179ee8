"""Answers of the symbolic core as JavaScript: what the page evaluates is what was proved, not a second copy of it."""

from __future__ import annotations

import re
from typing import Any

import sympy as sp
from sympy.printing.codeprinter import PrintMethodNotImplementedError
from sympy.printing.jscode import JavascriptCodePrinter
from sympy.printing.precedence import PRECEDENCE

from rdgraph.errors import NotApplicable
from rdgraph.vocabulary.functions import FUNCTIONS, record_of
from rdgraph.vocabulary.learned_functions import is_key

#: Powers up to this one are products; the others are left to `Math.pow`.
MOST_FACTORS = 4
#: What formulas have beyond the functions of the language; the page has the same names in `Math`.
_FURTHER = {
    sp.log: "log", sp.sinh: "sinh", sp.cosh: "cosh", sp.tan: "tan", sp.asinh: "asinh", sp.acos: "acos", sp.asin: "asin",
    sp.atan: "atan", sp.atanh: "atanh", sp.floor: "floor", sp.ceiling: "ceil", sp.sign: "sign",
}  # fmt: skip
_OF_C = {"fabs": "Math.abs", "exp": "Math.exp", "log1p": "Math.log1p"}


def letter(name: str) -> str:
    """The JavaScript name of a letter: `$` in front keeps it apart from words of JavaScript, and a prime is a `$` too.

    >>> letter("alpha"), letter("new"), letter("H'")
    ('$alpha', '$new', '$H$')
    """
    return "$" + name.replace("'", "$")


def javascript(expression: sp.Basic) -> str:
    """One JavaScript expression for a formula or a condition in plain symbols.

    >>> x, beta = sp.symbols("x beta")
    >>> javascript(sp.Piecewise((x**2 / 3, beta >= x), (sp.exp(-x), True)))
    '(($beta >= $x) ? (1/3)*($x*$x) : Math.exp(-$x))'

    Raises:
        NotApplicable: for a function that the page does not have.
    """
    try:
        return str(_Printer().doprint(expression))
    except PrintMethodNotImplementedError:
        raise NotApplicable(
            f"expected a formula that the page can evaluate, got {str(expression)[:60]}; see it in Python"
        ) from None


def function_body(name: str) -> str:
    """The value at x of an elementwise function of the language.

    >>> function_body("relu"), function_body("softplus")
    ('x < 0 ? 0 : x', '(x > 0 ? x : 0) + Math.log1p(Math.exp(-Math.abs(x)))')
    """
    record = FUNCTIONS[name]
    if record.c is None:
        if record.formula is None:
            raise NotApplicable(f"expected a function with a formula, got {name}, which the page cannot evaluate")
        return javascript(record.formula(sp.Symbol("x"))).replace(letter("x"), "x")
    return re.sub(r"[a-z]\w*(?=\()", lambda call: _OF_C.get(call[0], f"Math.{call[0]}"), record.c)


def function_slope(name: str) -> str:
    """The slope at x of an elementwise function, in x and the `f_NAME` of the page; the mean of both sides at a jump.

    >>> function_slope("sigmoid"), function_slope("relu")
    ('(1 - f_sigmoid(x))*f_sigmoid(x)', '(1/2)*Math.sign(x) + 1/2')
    """
    formula = FUNCTIONS[name].derivative(sp.Symbol("x"))
    formula = formula.replace(sp.Heaviside, lambda at, *_: (1 + sp.sign(at)) / 2)
    return javascript(formula).replace(letter("x"), "x")


class _Printer(JavascriptCodePrinter):
    """Printer of JavaScript: names that cannot clash, the functions of the language, small powers."""

    def doprint(self, expr: sp.Basic, assign_to: Any = None) -> str:
        return str(self._print(sp.sympify(expr)))

    def _print_Symbol(self, expr: sp.Symbol) -> str:
        return letter(expr.name)

    def _print_Float(self, expr: sp.Float) -> str:
        return repr(float(expr))

    def _print_Rational(self, expr: sp.Rational) -> str:
        return f"{expr.p}/{expr.q}"

    def _print_Infinity(self, expr: sp.Basic) -> str:
        return "Infinity"

    def _print_NegativeInfinity(self, expr: sp.Basic) -> str:
        return "(-Infinity)"

    def _print_Pow(self, expr: sp.Pow) -> str:
        base, exponent = expr.base, expr.exp
        inner = self.parenthesize(base, PRECEDENCE["Pow"])
        if exponent in (sp.S.Half, -sp.S.Half):
            root = f"Math.sqrt({self._print(base)})"
            return root if exponent > 0 else f"(1/{root})"
        if exponent.is_Integer and 1 < abs(exponent) <= MOST_FACTORS and base.is_Symbol:
            product = "*".join([inner] * abs(int(exponent)))
            return f"({product})" if exponent > 0 else f"(1/({product}))"
        if exponent == -1:
            return f"(1/{self.parenthesize(base, PRECEDENCE['Mul'] + 1)})"
        return f"Math.pow({self._print(base)}, {self._print(exponent)})"

    def _print_Piecewise(self, expr: sp.Piecewise) -> str:
        text = "NaN"
        for value, condition in reversed(expr.args):
            shown = self._print(value)
            text = shown if condition == sp.true else f"(({self._print(condition)}) ? {shown} : {text})"
        return text

    def _print_Max(self, expr: sp.Max) -> str:
        return f"Math.max({', '.join(map(self._print, expr.args))})"

    def _print_Min(self, expr: sp.Min) -> str:
        return f"Math.min({', '.join(map(self._print, expr.args))})"

    def _print_Heaviside(self, expr: sp.Basic) -> str:
        """A slope that jumps has no value where it does."""
        return f"({self._print(expr.args[0])} > 0 ? 1 : {self._print(expr.args[0])} < 0 ? 0 : NaN)"

    def _print_Equality(self, expr: sp.Basic) -> str:
        return f"({self._print(expr.lhs)} === {self._print(expr.rhs)})"

    def _print_Unequality(self, expr: sp.Basic) -> str:
        return f"({self._print(expr.lhs)} !== {self._print(expr.rhs)})"

    def _print_And(self, expr: sp.Basic) -> str:
        return "(" + " && ".join(f"({self._print(part)})" for part in expr.args) + ")"

    def _print_Or(self, expr: sp.Basic) -> str:
        return "(" + " || ".join(f"({self._print(part)})" for part in expr.args) + ")"

    def _print_Not(self, expr: sp.Basic) -> str:
        return f"!({self._print(expr.args[0])})"

    def _print_BooleanTrue(self, expr: sp.Basic) -> str:
        return "true"

    def _print_BooleanFalse(self, expr: sp.Basic) -> str:
        return "false"

    def _print_Function(self, expr: sp.Function) -> str:
        """A function of the language by its name, one of `Math`, or none."""
        argument = self._print(expr.args[0])
        record = record_of(expr)
        if record is not None and record.name in FUNCTIONS and not is_key(record.name):
            plain = re.fullmatch(r"(\w+)\(x\)", record.c or "")
            name = plain[1] if plain else ""
            return f"{_OF_C.get(name, f'Math.{name}')}({argument})" if plain else f"f_{record.name}({argument})"
        if expr.func in _FURTHER:
            return f"Math.{_FURTHER[expr.func]}({argument})"
        raise NotApplicable(f"expected a function that the page has, got {expr.func.__name__}; see it in Python")

    # sympy prints these before it asks for functions in general
    _print_Abs = _print_exp = _print_log = _print_sign = _print_floor = _print_ceiling = _print_Function
    _print_tanh = _print_sin = _print_cos = _print_sinh = _print_cosh = _print_Function

    def emptyPrinter(self, expr: Any) -> str:  # noqa: N802  the name that sympy's printers look up
        raise PrintMethodNotImplementedError(type(expr).__name__)
