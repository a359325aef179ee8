"""The atlas as rows: regimes of every member, the middle of every region, and the run drawn there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.ndimage import distance_transform_edt

from studies.atlas.regimes import EXPECTED, measured_regimes, predicted_regimes
from studies.runs.tables import MutableRow, Row
from studies.stability.deviations import noise, solve_members, start_states, step_of
from studies.stability.plane import PlaneCase
from studies.stability.plane_rows import PlanePrediction


def regime_rows(
    case: PlaneCase, generator: np.random.Generator, time: float, share: float, border: float
) -> list[MutableRow]:
    """One row a member; `away` is 1 where both predicted rates times the time exceed `border`."""
    prediction = PlanePrediction(case)
    predicted = predicted_regimes(prediction)
    measured = measured_regimes(case, generator, time, share)
    away = (np.abs(prediction.at_zero) * time > border) & (np.abs(prediction.beyond_zero) * time > border)
    return [
        {
            case.across.name: float(case.values[case.across.name][k]), case.up.name: float(case.values[case.up.name][k]),
            "predicted": predicted[k], "measured": measured[k], "away": int(away[k]),
            "agrees": int(measured[k] in EXPECTED.get(predicted[k], (predicted[k],))),
            "rate_at_0": float(prediction.at_zero[k]), "rate_beyond_0": float(prediction.beyond_zero[k]),
        }
        for k in range(len(predicted))
    ]  # fmt: skip


def middles(rows: Sequence[Row], shape: tuple[int, int]) -> dict[tuple[str, str], int]:
    """The member of every region (predicted and measured regime) that is farthest from other regions.

    >>> rows = [{"predicted": "stable", "measured": "uniform"}] * 9
    >>> middles(rows, (3, 3))
    {('stable', 'uniform'): 4}
    """
    pairs = [(str(row["predicted"]), str(row["measured"])) for row in rows]
    counts = {pair: pairs.count(pair) for pair in dict.fromkeys(pairs)}
    found = {}
    for pair in sorted(counts, key=lambda pair: -counts[pair]):
        inside = np.array([other == pair for other in pairs]).reshape(shape)
        depth = distance_transform_edt(np.pad(inside, 1))[1:-1, 1:-1]
        found[pair] = int(np.argmax(depth))
    return found


def course(
    case: PlaneCase, member: int, time: float, looks: int, share: float, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Times (K,) and the first field (K, n) of one member, from the deviation that the plane started with."""
    point = case.states[[member]]
    values = {name: value[[member]] for name, value in case.values.items()}
    start = start_states(case, point, noise(case, generator), share)
    times = np.linspace(0, time, looks)
    solution = solve_members(case, start, values, times, step_of(case, point, values) / 3)
    return times, solution.states[:, 0, :, 0].cpu().numpy()


def course_rows(letter: str, times: np.ndarray, states: np.ndarray) -> list[MutableRow]:
    """The numbers of a picture, one row a time and node."""
    return [
        {"picture": letter, "t": float(t), "node": i, "value": float(f"{value:.6g}")}
        for t, state in zip(times, states, strict=True)
        for i, value in enumerate(state)
    ]
