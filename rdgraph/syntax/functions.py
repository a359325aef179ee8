"""Elementwise functions of the language as sympy knows them."""

from __future__ import annotations

from typing import Any

import sympy as sp


class relu(sp.Function):
    """max(x, 0)"""

    is_real = True
    is_nonnegative = True

    @classmethod
    def eval(cls, x: sp.Expr) -> sp.Expr | None:
        if x.is_nonnegative:
            return x
        return sp.S.Zero if x.is_nonpositive else None

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        return sp.Heaviside(self.args[0])

    def _eval_evalf(self, precision: int) -> sp.Expr:
        return sp.Max(0, self.args[0])._eval_evalf(precision)


class sigmoid(sp.Function):
    """1/(1 + exp(-x))"""

    is_real = True
    is_positive = True

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        return self * (1 - self)

    def _eval_evalf(self, precision: int) -> sp.Expr:
        return (1 / (1 + sp.exp(-self.args[0])))._eval_evalf(precision)


class softplus(sp.Function):
    """log(1 + exp(x))"""

    is_real = True
    is_positive = True

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        return sigmoid(self.args[0])

    def _eval_evalf(self, precision: int) -> sp.Expr:
        return sp.log(1 + sp.exp(self.args[0]))._eval_evalf(precision)


SYMPY_FUNCTIONS: dict[str, Any] = {
    "tanh": sp.tanh, "relu": relu, "sigmoid": sigmoid, "exp": sp.exp, "sqrt": sp.sqrt, "abs": sp.Abs,
    "softplus": softplus, "sin": sp.sin, "cos": sp.cos,
}  # fmt: skip
