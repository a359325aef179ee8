"""Solutions followed to the end or beyond every bound; blow-up told from exponential growth.

Time is slowed down where the state changes fast: with w = 1 + |f| / (1 + |h|), dh/ds = f/w and dt/ds = 1/w. A state
then grows at most exponentially in s, and a blow-up is a limit of t.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.integrate import LSODA

Array = np.ndarray
MAX_STEPS = 1500


@dataclass(frozen=True)
class Path:
    """Where a solution went: its end time, its last state, and when its size passed 10, 100, ... times its start."""

    end: float
    state: Array
    passages: Array
    finished: bool
    escaped: bool

    @property
    def blew_up(self) -> bool:
        """Each further factor of ten took less and less time, and many were passed."""
        gaps = np.diff(self.passages)
        return self.escaped and len(gaps) >= 6 and bool(gaps[-1] < 0.25 * gaps[: len(gaps) // 2].max())


def follow(field: Callable[[Array], Array], start: Array, end: float, *, bound: float = 1e14) -> Path:
    """The solution of h' = field(h) from `start` up to `end`, or until its size exceeds `bound` times its start."""
    size = max(1.0, float(np.abs(start).max()))

    def rate(_: float, flat: Array) -> Array:
        speed = field(flat[:-1].reshape(start.shape)).ravel()
        slowed = 1 + np.abs(speed).max() / (1 + np.abs(flat[:-1]).max())
        return np.append(speed, 1.0) / slowed

    sizes, times = [size], [0.0]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solver = LSODA(rate, 0.0, np.append(start.ravel(), 0.0), np.inf, rtol=1e-7, atol=1e-9)
        while solver.status == "running" and times[-1] < end and sizes[-1] <= bound * size and len(sizes) < MAX_STEPS:
            solver.step()
            if not np.isfinite(solver.y).all():
                break
            sizes.append(float(np.abs(solver.y[:-1]).max()))
            times.append(float(solver.y[-1]))
    reached = np.array(sizes)
    passages = [times[np.argmax(reached >= level)] for level in size * 10.0 ** np.arange(1, 15) if max(sizes) >= level]
    return Path(times[-1], solver.y[:-1], np.array(passages), times[-1] >= end, sizes[-1] > bound * size)
