"""What is known of single functions beyond their records: how they are undone, and in what guise layers have them.

The numbers of a layer are undone here, with borders within which rounding does no harm; a function that is not named
here is probed as any other, and only not looked for around everything.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

Array = np.ndarray
#: Around everything: what an output says of the values inside, nan where it says nothing.
INVERSES: dict[str, Callable[[Array], Array]] = {
    "relu": lambda y: np.where(y > 0, y, np.nan),
    "tanh": lambda y: np.where(np.abs(y) < 0.999, np.arctanh(np.clip(y, -0.999, 0.999)), np.nan),
    "sigmoid": lambda y: np.where((y > 1e-3) & (y < 0.999), np.log(y / (1 - y)), np.nan),
    "softplus": lambda y: np.where(y > 1e-3, np.log(np.expm1(np.maximum(y, 1e-3))), np.nan),
    "exp": lambda y: np.where(y > 0, np.log(np.maximum(y, 1e-300)), np.nan),
}
#: Functions by which parameters become coefficients, and their inverses.
OF_PARAMETERS: dict[str, tuple[Callable[[float], float], Callable[[float], float]]] = {
    "sigmoid": (lambda x: 1 / (1 + math.exp(-x)), lambda y: math.log(y / (1 - y))),
    "tanh": (math.tanh, math.atanh),
    "exp": (math.exp, math.log),
    "softplus": (lambda x: math.log1p(math.exp(x)), lambda y: math.log(math.expm1(y))),
    "sqrt": (math.sqrt, lambda y: y * y),
    "log": (math.log, math.exp),
}
#: The function that leaky and gated activations are made of.
KINK, GATE = "relu", "sigmoid"
#: Functions of single entries that a line may have beside words, and those around an affine map beside the state.
OF_ENTRIES = ("tanh", "relu", "sigmoid", "sin", "cos", "exp", "softplus", "abs")
BESIDE_THE_STATE = ("tanh", "sigmoid", "softplus", "sin")


def is_in_range(name: str, outputs: Array) -> bool:
    """Whether outputs may come from a function around everything; a kink is not excluded by them.

    >>> is_in_range("tanh", np.array([0.5, 2.0])), is_in_range("exp", np.array([0.5, 2.0]))
    (False, True)
    """
    if name == KINK:
        return True
    low, high = {"tanh": (-1, 1), "sigmoid": (0, 1)}.get(name, (0, np.inf))
    return bool(((outputs >= low) & (outputs <= high)).all())
