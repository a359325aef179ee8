"""Solutions followed to the end or beyond every bound; blow-up told from exponential growth.

Time is slowed down where the state changes fast: with w = 1 + |f| / (1 + |h|), dh/ds = f/w and dt/ds = 1/w. A state
then grows at most exponentially in s, and a blow-up is a limit of t.

Of one autonomous equation h' = r(h) the time is known without following it: the integral of dh/r(h) along its way.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from scipy.integrate import LSODA, quad
from scipy.optimize import minimize_scalar

Array = np.ndarray
MAX_STEPS = 1500
#: How many times its own size a solution grows before it counts as beyond every bound: 10 to this power.
DECADES = 14
#: So many places where a rate is least are sought between those it is sampled at.
BOTTLENECKS = 12


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
        return self.escaped and _hurries(np.diff(self.passages))


@dataclass(frozen=True)
class Journey:
    """What the quadrature of dh/r(h) says about the way from a start beyond every bound.

    `rest` is where h' is zero or points back, and nothing passes; else `time` is how long the way takes, and `gaps` are
    its parts from 10 to 100 times the size of the start, from 100 to 1000 times and so on.
    """

    rest: float | None
    time: float = np.inf
    gaps: Array = field(default_factory=lambda: np.array([]))

    @property
    def blows_up(self) -> bool:
        return _hurries(self.gaps)

    @property
    def is_exponential(self) -> bool:
        """The last factor of ten took as long as earlier ones."""
        return len(self.gaps) > 0 and bool(self.gaps[-1] > 0.8 * self.gaps[len(self.gaps) // 2])

    @property
    def is_followed(self) -> bool:
        """Whether a solver, whose times are as good as its tolerance, tells the last phase from no time at all."""
        return bool(self.gaps.max() > 1e-4 * self.time)


def _hurries(gaps: Array) -> bool:
    """Each further factor of ten took less and less time, and many were passed."""
    return len(gaps) >= 6 and bool(gaps[-1] < 0.25 * gaps[: len(gaps) // 2].max())


def journey(rates: Callable[[Array], Array], start: float, way: int) -> Journey | None:
    """The way of h' = rates(h) from `start` to infinity, or to minus infinity where `way` is -1.

    Places to look at are dense near zero, where equations have their structure. Between them the least rates are
    sought: there a solution rests, or spends its time. None where a rate is no number, or the integral does not
    converge.
    """
    size = max(1.0, abs(start))
    targets = [way * 10.0**k * size for k in range(1, DECADES + 1)]
    near = start + np.concatenate([[0.0], way * np.geomspace(1e-9, 1e-2, 30) * size])
    places = np.concatenate([near, np.sinh(np.linspace(*np.arcsinh([start, targets[-1]]), 3000)), [0.0], targets])
    places = np.unique(places[way * (places - start) >= 0])[::way]

    def speed(h: float) -> float:
        return way * float(rates(np.array([h]))[0])

    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        speeds = way * rates(places)
        if np.isnan(speeds).any():
            return None
        if (speeds <= 0).any():
            return Journey(float(places[np.argmax(speeds <= 0)]))
        lowest = [i for i in range(1, len(places) - 1) if speeds[i] <= min(speeds[i - 1], speeds[i + 1]) < np.inf]
        slow = [_slowest(speed, *sorted((places[i - 1], places[i + 1])))
                for i in sorted(lowest, key=lambda i: speeds[i])[:BOTTLENECKS]]  # fmt: skip
        if rests := [h for h in slow if speed(h) <= 0]:
            return Journey(min(rests, key=lambda h: way * h))
        corners = sorted({start, *targets, *slow}, key=lambda h: way * h)
        found = [quad(lambda h: 1 / speed(h), *sorted(pair), epsabs=0.0, epsrel=1e-6)
                 for pair in pairwise(corners)]  # fmt: skip
    parts, ends = [part for part, _ in found], [corners.index(h) for h in targets]
    if not sum(error for _, error in found) <= 0.01 * sum(parts):
        return None
    return Journey(None, sum(parts), np.array([sum(parts[a:b]) for a, b in pairwise(ends)]))


def _slowest(speed: Callable[[float], float], lower: float, upper: float) -> float:
    """Where a speed is least between two places."""
    return float(minimize_scalar(speed, bounds=(lower, upper), method="bounded",
                                 options={"xatol": 1e-12 * (upper - lower)}).x)  # fmt: skip


def follow(derivative: Callable[[Array], Array], start: Array, end: float, *, bound: float = 1e14) -> Path:
    """The solution of h' = derivative(h) up to `end`, or until its size exceeds `bound` times that of its start."""
    size = max(1.0, float(np.abs(start).max()))

    def rate(_: float, flat: Array) -> Array:
        speed = derivative(flat[:-1].reshape(start.shape)).ravel()
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
