"""Charts of cells: curves by data set, and means beside published ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from studies.runs.chart import Chart, Line, Panel
from studies.runs.tables import MutableRow

#: A method with our mean and its error, and the paper's mean and its error.
Beside = tuple[str, float, float, float, float]


def curve_panels(
    panels: Mapping[str, Sequence[Line]],
    x_label: str,
    y_label: str = "test accuracy, percent",
    *,
    limits: Mapping[str, Mapping[str, float]] | None = None,
    x_scale: str = "linear",
    y_scale: str = "linear",
    columns: int = 3,
) -> Chart:
    """A panel for every key with its curves; `limits` are horizontal dotted lines by panel and label."""
    found = limits or {}
    made = [Panel(name, lines, found.get(name, {})) for name, lines in panels.items()]
    return Chart(made, x_label, y_label, x_scale, y_scale, columns)


def beside_chart(panels: Mapping[str, Sequence[Beside]]) -> tuple[Chart, list[MutableRow]]:
    """For every panel and method our mean beside the paper's, as dots with their standard errors; and the numbers."""
    made = []
    for name, points in panels.items():
        places = np.arange(len(points), dtype=float)
        lines = []
        for shift, word, value, error in ((-0.12, "the paper", 3, 4), (0.12, "here", 1, 2)):
            y, spread = (np.array([float(point[k]) for point in points]) for k in (value, error))
            if np.isfinite(y).any():
                lines.append(Line(word, places + shift, y, spread, style="dots"))
        made.append(Panel(name, lines, names=[point[0] for point in points]))
    rows: list[MutableRow] = [
        {"panel": name, "method": p[0], "mean": p[1], "error": p[2], "paper": p[3], "paper_error": p[4]}
        for name, points in panels.items()
        for p in points
    ]
    return Chart(made, "method"), rows
