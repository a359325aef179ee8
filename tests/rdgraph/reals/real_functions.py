"""Functions of one variable that the tests about the real line share, with their values by others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import sympy as sp

from rdgraph.vocabulary.functions import relu, sigmoid, softplus

x = sp.Symbol("x", real=True)

SMOOTH: tuple[sp.Expr, ...] = (
    sp.tanh(x) - x / 2, sp.exp(x) - x**3, sp.sqrt(1 + x**2) - x, x - x * sp.tanh(x), softplus(x) - 1,
    x * sp.exp(-(x**2)), 1 / (1 + x**2) - x, sp.tanh(sp.sin(x)) - x, x * sp.tanh(1 - x), sigmoid(x) - sp.S.Half,
    sp.tanh(x) * (1 - x**2), sp.cos(x) - x, sp.exp(x) - 2, sp.sin(x) ** 2 / 2 - x, x * sigmoid(x) - x**2,
    sp.exp(-x) - sp.exp(x), sp.tanh(x) - x, x / sp.sqrt(1 + x**2) - sp.Rational(1, 3), softplus(-2 * x) - 3,
    sp.exp(-x) * (x**2 - 3), x**3 - 3 * x + sp.sin(x), sp.tanh(3 * x) / 2 + 1 - x, (x - 1) ** 2 * sp.tanh(x + 2),
)  # fmt: skip
KINKED: tuple[sp.Expr, ...] = (
    relu(x) - x**3, sp.Abs(x) - x**2, x * (1 - sp.Abs(x)), 1 - sp.Abs(x - 2),
    relu(x - 1) - relu(-x) + sp.Rational(1, 4),
    sp.tanh(x) - sp.Abs(x) / 2,
)  # fmt: skip


NUMPY: dict[str, Any] = {
    "sigmoid": lambda y: 0.5 * (1 + np.tanh(y / 2)),
    "softplus": lambda y: np.logaddexp(0, y),
    "relu": lambda y: np.maximum(y, 0),
    "Heaviside": lambda y, at=0.5: np.heaviside(y, at),
}
MPMATH: dict[str, Any] = {
    "relu": lambda y: max(y, mpmath.mpf(0)),
    "sigmoid": lambda y: 1 / (1 + mpmath.exp(-y)),
    "softplus": lambda y: mpmath.log1p(mpmath.exp(y)),
}


def numeric(formula: sp.Expr) -> Callable[[Any], Any]:
    """The function on arrays of floats."""
    found = sp.lambdify(x, formula, [NUMPY, "numpy"])
    return lambda h: np.asarray(found(h) + 0 * np.asarray(h))


def digits(formula: sp.Expr, place: sp.Rational) -> str:
    """The value at a rational number with fifty digits, by mpmath: it shares nothing with enclosures."""
    with mpmath.workdps(80):
        number = sp.lambdify(x, formula, [MPMATH, "mpmath"])(mpmath.mpf(int(place.p)) / int(place.q))
        return str(mpmath.nstr(number, 50, strip_zeros=False))
