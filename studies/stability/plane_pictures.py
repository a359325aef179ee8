"""Colours of classes, and a plane of them as a coloured mesh."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from analysis.figures import PALETTE, plain
from studies.stability.plane import PlaneCase

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
