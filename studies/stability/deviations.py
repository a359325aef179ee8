"""All members of a plane run as one batch from a small deviation of their steady state, and the rates that show.

A deviation has a part in the kernel of L (the same in all nodes of a connected graph) and one outside of it, the
pattern. As long as both are small each mode of L moves on its own, so that the two grow at rates of their own, which
are measured there, before anything saturates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

import rdgraph as rd
from studies.stability.plane import PlaneCase

#: Deviations, as a share of the steady state, at the start; where the linear regime ends; below which is rounding.
START, LINEAR, FLOOR = 1e-7, 1e-3, 1e-12
#: The largest |step * eigenvalue|; RK4 is stable up to 2.78 on the negative axis.
RESOLVED = 2.2
#: Entries beyond this share of the steady state have blown up.
LIMIT = 1e6
#: A constant deviation is its own while it exceeds the square of the pattern this many times.
FORCING = 100.0
#: Times of a fit, at least.
LEAST_TIMES = 4


@dataclass(frozen=True, eq=False)
class Deviations:
    """Size of the two parts of a deviation, as a share of the steady state, at times (K,): (K, m) each.

    `blown_up` (m,) says who left the numbers; members without a steady state are NaN.
    """

    times: np.ndarray
    constant: np.ndarray
    pattern: np.ndarray
    blown_up: np.ndarray

    @property
    def is_linear(self) -> np.ndarray:
        """Whether a member has been in the linear regime up to a time, (K, m)."""
        small = (self.constant < LINEAR) & (self.pattern < LINEAR)
        return np.logical_and.accumulate(small, axis=0)

    def rates(self, part: str) -> tuple[np.ndarray, np.ndarray]:
        """Slope of the log of a part over the second half of its linear regime, and the time of that fit, (m,)."""
        sizes = {"constant": self.constant, "pattern": self.pattern}[part]
        # The square of a pattern has a constant part, which drives a constant deviation that is smaller than that.
        driven = FORCING * self.pattern**2 if part == "constant" else 0.0
        above = np.logical_and.accumulate(np.nan_to_num(sizes - driven, nan=-1.0) > FLOOR, axis=0)
        return fitted(self.times, sizes, self.is_linear & above)


def fitted(times: np.ndarray, sizes: np.ndarray, stored: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Slopes of log sizes (K, m) over the second half of the times that are kept (a beginning), and the spans of it.

    NaN and 0 where fewer than four times are left.

    >>> times = np.linspace(0, 7, 8)
    >>> slope, span = fitted(times, np.exp(0.5 * times)[:, None], np.ones((8, 1), dtype=bool))
    >>> slope.round(12).tolist(), span.tolist()
    ([0.5], [3.0])
    """
    count = stored.sum(0)
    position = np.arange(len(times))[:, None]
    used = stored & (position >= count // 2)
    number = used.sum(0)
    y = np.where(used, np.log(np.where(used, sizes, 1.0)), 0.0)
    t = np.where(used, times[:, None], 0.0)
    with np.errstate(all="ignore"):
        t_mean, y_mean = t.sum(0) / number, y.sum(0) / number
        away = np.where(used, times[:, None] - t_mean, 0.0)
        slope = (away * (y - y_mean)).sum(0) / np.square(away).sum(0)
        span = np.where(used, times[:, None], -np.inf).max(0) - np.where(used, times[:, None], np.inf).min(0)
    enough = number >= LEAST_TIMES
    return np.where(enough, slope, np.nan), np.where(enough, span, 0.0)


def sizes_of(point: np.ndarray) -> np.ndarray:
    """The size of steady states (m, F), one where they are zero."""
    size = np.sqrt(np.square(point).mean(-1))
    return np.where(size > 0, size, 1.0)


def noise(case: PlaneCase, generator: np.random.Generator) -> np.ndarray:
    """Independent normal numbers (n, F), the same for every member."""
    return generator.standard_normal((case.graph.num_nodes, len(case.system.fields)))


def step_of(case: PlaneCase, point: np.ndarray, values: Mapping[str, np.ndarray]) -> float:
    """A step of RK4 that resolves every mode of every member."""
    return RESOLVED / case.kinetics.stiffness(point, values, float(case.frequencies[-1]))


def start_states(case: PlaneCase, point: np.ndarray, deviation: np.ndarray, share: float) -> Tensor:
    """Steady states (m, F) plus a share of a deviation (n, F): (m, n, F), which is the layout of a solve."""
    moved = point[:, None, :] + share * sizes_of(point)[:, None, None] * deviation[None]
    return torch.as_tensor(moved, device=case.device)


def solve_members(
    case: PlaneCase, start: Tensor, values: Mapping[str, np.ndarray], times: np.ndarray, step: float, **options: object
) -> rd.run.Solution:
    """RK4 for all members at once; times (K,), or (K, m) for members with times of their own."""
    count = len(start)
    numbers = {
        name: torch.as_tensor(np.broadcast_to(value, count).copy(), device=case.device)
        for name, value in values.items()
    }
    field = rd.lower(case.system, case.operator, numbers, batch=(count,))
    grid = torch.as_tensor(times, device=case.device)
    return rd.solve(field, start, grid, "rk4", step=step, **options)  # type: ignore[arg-type]


def measure_deviations(case: PlaneCase, deviation: np.ndarray, time: float, saves: int) -> Deviations:
    """Every member that has a steady state, from the same small deviation, up to a time."""
    known = np.flatnonzero(np.isfinite(case.states).all(1))
    point = case.states[known]
    values = {name: value[known] for name, value in case.values.items()}
    scale = torch.as_tensor(sizes_of(point), device=case.device)
    rest = torch.as_tensor(point, device=case.device)[:, None, :]
    kernel = case.spectrum.kernel
    right = torch.as_tensor(case.spectrum.vectors[:, kernel], device=case.device)
    remaining = torch.as_tensor(case.spectrum.duals[:, kernel], device=case.device)

    def constant(state: Tensor) -> Tensor:
        return (right @ (remaining.mT @ (state - rest))).square().mean((-2, -1)).sqrt() / scale

    def pattern(state: Tensor) -> Tensor:
        away = state - rest
        return (away - right @ (remaining.mT @ away)).square().mean((-2, -1)).sqrt() / scale

    solution = solve_members(
        case,
        start_states(case, point, deviation, START),
        values,
        np.linspace(0, time, saves),
        step_of(case, point, values),
        measures={"constant": constant, "pattern": pattern},
        keep_states=False,
        limit=LIMIT * float(scale.max()),
    )
    count = len(case.states)
    result = {name: np.full((saves, count), np.nan) for name in ("constant", "pattern")}
    for name, filled in result.items():
        filled[:, known] = solution.measures[name].cpu().numpy()
    blown_up = np.zeros(count, dtype=bool)
    blown_up[known] = solution.codes.cpu().numpy() != rd.run.RunStatus.OK.code
    return Deviations(np.linspace(0, time, saves), result["constant"], result["pattern"], blown_up)
