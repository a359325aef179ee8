"""A page of the atlas: the predicted plane beside the measured one, and a picture of every region below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from analysis.figures import plain
from studies.runs.tables import Row
from studies.stability.plane import PlaneCase
from studies.stability.plane_pictures import COLOURS, mesh

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Pictures in a line.
COLUMNS = 4
#: A member, times (K,) and values (K, n).
Course = tuple[int, np.ndarray, np.ndarray]


def read_courses(rows: Sequence[Row]) -> dict[str, Course]:
    """The courses of one field by letter, from their rows."""
    found: dict[str, Course] = {}
    for letter in dict.fromkeys(str(row["picture"]) for row in rows):
        own = [row for row in rows if row["picture"] == letter]
        times = np.array(list(dict.fromkeys(float(row["t"]) for row in own)))
        values = np.array([float(row["value"]) for row in own]).reshape(len(times), -1)
        found[letter] = (int(own[0]["member"]), times, values)
    return found


def page(case: PlaneCase, rows: Sequence[Row], courses: Mapping[str, Course]) -> Figure:
    """Two planes above, one space-time picture a region below; courses by letter."""
    from matplotlib.figure import Figure

    lines = -(-len(courses) // COLUMNS)
    figure = Figure(figsize=(12.0, 5.4 + 2.7 * lines), layout="constrained")
    above, below = figure.subfigures(2, 1, squeeze=False, height_ratios=[5.4, max(2.7 * lines, 0.1)])[:, 0]
    panels = above.subplots(1, 2)
    for panel, name, title in zip(
        panels, ("predicted", "measured"), ("predicted from P(λ)", "measured at the end of the run"), strict=True
    ):
        _plane(panel, case, [str(row[name]) for row in rows], title)
        for letter, (member, _, _) in courses.items():
            place = (float(rows[member][case.across.name]), float(rows[member][case.up.name]))
            mark = {"boxstyle": "circle,pad=0.15", "fc": "white", "lw": 0.6}
            panel.annotate(letter, place, ha="center", va="center", fontsize=9, bbox=mark)
    above.suptitle(plain(f"{case.label} on {case.graph_text} ({case.normalisation})"), fontsize=12)
    places = below.subplots(lines, COLUMNS, squeeze=False)
    for panel, (letter, (member, times, states)) in zip(places.flat, courses.items(), strict=False):
        _course(panel, rows[member], letter, times, states)
    for panel in places.flat[len(courses) :]:
        panel.set_visible(False)
    for panel in places[:, 0]:
        panel.set_ylabel("node", fontsize=9)
    return figure


def _plane(panel: Axes, case: PlaneCase, classes: Sequence[str], title: str) -> None:
    from matplotlib.patches import Patch

    mesh(panel, case, classes)
    panel.set_title(title, fontsize=11)
    shown = [name for name in COLOURS if name in classes]
    handles = [Patch(facecolor=COLOURS[name], edgecolor="0.4", lw=0.5, label=name) for name in shown]
    panel.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=4, frameon=False, fontsize=9)


def _course(panel: Axes, row: Row, letter: str, times: np.ndarray, states: np.ndarray) -> None:
    """The first field over time (across) and nodes (up), on its own scale of colours."""
    ends = (float(times[0]), float(times[-1]), -0.5, states.shape[1] - 0.5)
    low, high = float(states.min()), float(states.max())
    panel.imshow(states.T, aspect="auto", origin="lower", extent=ends, cmap="viridis", interpolation="nearest")
    panel.set_title(f"{letter}: {row['predicted']} → {row['measured']}", fontsize=9)
    panel.set_xlabel(f"t;  values {low:.3g} to {high:.3g}", fontsize=8)
    panel.tick_params(labelsize=8)
