"""Settings of a network that trains in a blink and arrays with a value changed, for the tests of the classifier."""

from __future__ import annotations

from typing import Any

import numpy as np

#: A network that trains in a blink.
SMALL: dict[str, Any] = {
    "hidden": 8, "epochs": 25, "adjacency": "original", "method": "euler", "step": 1.0, "learning_rate": 0.05,
    "device": "cpu",
}  # fmt: skip


def swapped(values: np.ndarray, place: Any, value: Any) -> np.ndarray:
    changed = np.array(values)
    changed[place] = value
    return changed
