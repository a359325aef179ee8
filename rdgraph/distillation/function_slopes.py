"""Functions of the language that formulas are made of, with their slopes as numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import sympy as sp

from rdgraph.syntax.functions import FUNCTIONS

Array = np.ndarray
#: From x and y = f(x) to f'(x).
SLOPES: dict[str, Callable[[Array, Array], Array]] = {
    "tanh": lambda x, y: 1 - y**2,
    "sigmoid": lambda x, y: y * (1 - y),
    "exp": lambda x, y: y,
    "sin": lambda x, y: np.cos(x),
    "cos": lambda x, y: -np.sin(x),
    "relu": lambda x, y: (x > 0).astype(float),
    "abs": lambda x, y: np.sign(x),
    "softplus": lambda x, y: np.exp(-np.logaddexp(0, -x)),
}
#: Those that are looked for unless others are named.
FUNCTIONS_USED = ("tanh", "sigmoid", "exp", "sin", "cos", "relu", "abs")


def reflected(sign: int) -> tuple[str, ...]:
    """Those with f(-x) = sign*f(x), by their records.

    >>> reflected(-1), reflected(1)
    (('tanh', 'sin'), ('cos', 'abs'))
    """
    x, y = sp.symbols("x y", real=True)
    records = [(name, FUNCTIONS[name].reflection) for name in SLOPES]
    return tuple(name for name, reflection in records if reflection is not None and reflection(x, y) == sign * y)
