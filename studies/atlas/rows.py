"""The atlas as rows: regimes of every member, the middle of every region, and the run drawn there."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_uppercase

import numpy as np
from scipy.ndimage import distance_transform_edt

from studies.atlas.regimes import EXPECTED, PlaneRun, predicted_regimes
from studies.runs.tables import MutableRow, Row
from studies.stability.plane import PlaneCase
from studies.stability.plane_rows import PlanePrediction


def regime_rows(run: PlaneRun, measured: Sequence[str], border: float) -> list[MutableRow]:
    """One row a member; `away` is 1 where both predicted rates times the time exceed `border`."""
    case, time = run.case, float(run.times[-1])
    prediction = PlanePrediction(case)
    predicted = predicted_regimes(prediction)
    away = (np.abs(prediction.at_zero) * time > border) & (np.abs(prediction.beyond_zero) * time > border)
    return [
        {
            **{axis.name: float(case.values[axis.name][k]) for axis in (case.across, case.up)},
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


def course_rows(case: PlaneCase, rows: Sequence[Row], run: PlaneRun, count: int) -> list[MutableRow]:
    """The first field of the member in the middle of each of the largest regions: one row a time and node."""
    found: list[MutableRow] = []
    regions = [(pair, member) for pair, member in middles(rows, case.shape).items() if member in run.members]
    for letter, (_, member) in zip(ascii_uppercase, regions[:count], strict=False):
        course = run.states[:, int(np.flatnonzero(run.members == member)[0]), :, 0]
        found += [
            {"picture": letter, "member": member, "t": float(t), "node": i, "value": float(f"{value:.6g}")}
            for t, state in zip(run.times, course, strict=True)
            for i, value in enumerate(state)
        ]
    return found
