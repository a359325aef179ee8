"""Inverses of functions that stand around everything: what an output says of the values inside."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Array = np.ndarray
#: nan where an output says nothing of the inside.
INVERSES: dict[str, Callable[[Array], Array]] = {
    "relu": lambda y: np.where(y > 0, y, np.nan),
    "tanh": lambda y: np.where(np.abs(y) < 0.999, np.arctanh(np.clip(y, -0.999, 0.999)), np.nan),
    "sigmoid": lambda y: np.where((y > 1e-3) & (y < 0.999), np.log(y / (1 - y)), np.nan),
    "softplus": lambda y: np.where(y > 1e-3, np.log(np.expm1(np.maximum(y, 1e-3))), np.nan),
    "exp": lambda y: np.where(y > 0, np.log(np.maximum(y, 1e-300)), np.nan),
}
