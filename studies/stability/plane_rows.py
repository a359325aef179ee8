"""The members of a plane as rows: predicted and measured growth, classes, and who is away from a border."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from analysis.figure_files import PALETTE, plain
from studies.runs.tables import MutableRow, Row
from studies.stability.deviations import Deviations
from studies.stability.plane import PlaneCase, is_real

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# ---------------------------------------------------------------------- plane rows
#: By whether a constant deviation grows, and whether one that is not constant does.
CLASSES = ("stable", "Turing", "unstable at 0", "both")
NO_STATE = "no steady state"
BLOW_UP = "blow-up"


@dataclass(frozen=True, eq=False)
class PlanePrediction:
    """Leading eigenvalues of P(lam) of every member, at lam = 0 and at the other eigenvalues of the graph."""

    case: PlaneCase

    @cached_property
    def leading(self) -> np.ndarray:
        """Complex (m, 1 + k)."""
        places = np.concatenate([[0.0], self.case.frequencies])
        return self.case.kinetics.leading(self.case.states, self.case.values, places)

    @property
    def at_zero(self) -> np.ndarray:
        """Growth rate of constant deviations, (m,)."""
        return self.leading[:, 0].real

    @property
    def fastest(self) -> np.ndarray:
        """Which frequency above zero grows fastest, (m,)."""
        return np.asarray(np.argmax(np.nan_to_num(self.leading[:, 1:].real, nan=-np.inf), axis=1))

    @property
    def beyond_zero(self) -> np.ndarray:
        """Growth rate of the fastest mode that is not constant, (m,)."""
        return self.leading[:, 1:].real[np.arange(len(self.leading)), self.fastest]

    @property
    def oscillates_at_zero(self) -> np.ndarray:
        return ~is_real(self.leading[:, 0])

    @property
    def has_real_pattern(self) -> np.ndarray:
        """Whether a mode that is not constant grows without oscillation, (m,)."""
        modes = self.leading[:, 1:]
        return np.asarray(((modes.real > 0) & is_real(modes)).any(1))


def class_codes(at_zero: np.ndarray, beyond_zero: np.ndarray) -> np.ndarray:
    """Positions in CLASSES from two growth rates, -1 where one is not known.

    >>> class_codes(np.array([-1.0, -1.0, 1.0, np.nan]), np.array([-1.0, 1.0, 1.0, 1.0])).tolist()
    [0, 1, 3, -1]
    """
    codes = (beyond_zero > 0).astype(int) + 2 * (at_zero > 0)
    return np.where(np.isfinite(at_zero) & np.isfinite(beyond_zero), codes, -1)


def member_rows(prediction: PlanePrediction, result: Deviations, border: float) -> list[MutableRow]:
    """One row a member; `away` is 1 where both predicted deviations change by more than exp(border) while watched."""
    case = prediction.case
    rates = {part: result.rates(part) for part in ("constant", "pattern")}
    predicted = {"constant": prediction.at_zero, "pattern": prediction.beyond_zero}
    codes = class_codes(predicted["constant"], predicted["pattern"])
    seen = class_codes(rates["constant"][0], rates["pattern"][0])
    away = np.all([np.abs(predicted[part]) * rates[part][1] > border for part in rates], axis=0)
    growing = (prediction.leading[:, 1:].real > 0).sum(1)
    return [
        {
            **{axis.name: float(case.values[axis.name][i]) for axis in (case.across, case.up)},
            "predicted": _class(codes[i]), "measured": _class(seen[i], "not measured"),
            "away": int(away[i]), "agrees": int(codes[i] == seen[i]),
            "rate_at_0": float(predicted["constant"][i]), "measured_at_0": float(rates["constant"][0][i]),
            "rate_beyond_0": float(predicted["pattern"][i]), "measured_beyond_0": float(rates["pattern"][0][i]),
            "fastest": float(case.frequencies[prediction.fastest[i]]), "growing": int(growing[i]),
            "blown_up": int(result.blown_up[i]),
        }
        for i in range(len(codes))
    ]  # fmt: skip


def _class(code: int, unknown: str = NO_STATE) -> str:
    return CLASSES[code] if code >= 0 else unknown


def disagreements(rows: list[Row] | list[MutableRow]) -> list[Row]:
    """The members away from the border whose classes differ."""
    return [row for row in rows if row["away"] and not row["agrees"]]


# ---------------------------------------------------------------------- plane pictures
# Colours of classes, and a plane of them as a coloured mesh.

#: Of every class that a plane may show, in the order of legends.
COLOURS = {
    "stable": "#D9D9D9",
    "Turing": PALETTE[0],
    "wave": PALETTE[3],
    "Hopf": PALETTE[4],
    "unstable at 0": PALETTE[4],
    "both": PALETTE[2],
    "Turing-Hopf": PALETTE[2],
    "uniform": "#D9D9D9",
    "pattern": PALETTE[0],
    "oscillation": PALETTE[4],
    "oscillation death": PALETTE[5],
    "oscillating pattern": PALETTE[2],
    "moved away": PALETTE[3],
    "blow-up": PALETTE[1],
    "not measured": "#FFFFFF",
    "no steady state": "#FFFFFF",
}


def mesh(panel: Axes, case: PlaneCase, classes: Sequence[str]) -> None:
    """Classes of all members by colour, over the two axes."""
    from matplotlib.colors import BoundaryNorm, ListedColormap

    names = list(COLOURS)
    codes = np.array([names.index(name) for name in classes]).reshape(case.shape)
    norm = BoundaryNorm(np.arange(len(names) + 1) - 0.5, len(names))
    panel.pcolormesh(
        case.across.values, case.up.values, codes, cmap=ListedColormap(list(COLOURS.values())), norm=norm,
        shading="nearest", rasterized=True,
    )  # fmt: skip
    panel.set(xlabel=plain(case.across.name), ylabel=plain(case.up.name))


def hatch_members(panel: Axes, case: PlaneCase, chosen: np.ndarray) -> None:
    """Hatch the cells of some members, chosen (up, across) of bool."""
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    x, y = case.across.values, case.up.values
    width, height = x[1] - x[0], y[1] - y[0]
    cells = [Rectangle((x[j] - width / 2, y[i] - height / 2), width, height) for i, j in np.argwhere(chosen)]
    panel.add_collection(
        PatchCollection(cells, facecolor="none", edgecolor="black", hatch="/////", linewidth=0.0, rasterized=True)
    )
