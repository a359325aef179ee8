"""Charts of rows: curves with a panel for every set, maps of one column, and our means with the printed ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gread.comparison import Estimate, standard_error
from studies.cells.cell import grouped_rows
from studies.paper.paired_rows import Printed
from studies.runs.chart import Chart, FieldMap, Line, Panel
from studies.runs.tables import MutableRow

#: A method with our mean and its error, and the paper's mean and its error.
ComparedMeans = tuple[str, float, float, float, float]


def row_curves(
    rows: Sequence[MutableRow], panel: str, label: str, x: str, y: str, error: str = ""
) -> dict[str, list[Line]]:
    """A panel for every value of one column, and in it a curve for every value of another."""
    panels: dict[str, list[Line]] = {}
    for (title, name), group in grouped_rows(rows, panel, label).items():
        panels.setdefault(str(title), []).append(Line.of(str(name), group, x, y, error))
    return panels


def panels_chart(
    panels: Mapping[str, Sequence[Line]],
    x_label: str,
    y_label: str = "test accuracy, percent",
    *,
    levels: Mapping[str, Mapping[str, float]] | None = None,
    **more: Any,
) -> Chart:
    """A panel for every key with its curves; `levels` are horizontal dotted lines by panel and label."""
    known = levels or {}
    return Chart([Panel(name, lines, known.get(name, {})) for name, lines in panels.items()], x_label, y_label, **more)


def row_map(
    rows: Sequence[MutableRow],
    line: str,
    column: str,
    value: Callable[[MutableRow], float],
    sure: Callable[[MutableRow], bool],
    title: str,
    note: Callable[[MutableRow], str] | None = None,
    **more: Any,
) -> FieldMap:
    """A map with a line and a column for every value of two columns; empty where no row has both."""
    lines, columns = (list(dict.fromkeys(str(row[c]) for row in rows)) for c in (line, column))
    values, bold = np.full((len(lines), len(columns)), math.nan), np.zeros((len(lines), len(columns)), dtype=bool)
    notes = [["none"] * len(columns) for _ in lines] if note else []
    for row in rows:
        i, j = lines.index(str(row[line])), columns.index(str(row[column]))
        values[i, j], bold[i, j] = value(row), sure(row)
        if note:
            notes[i][j] = note(row)
    return FieldMap(lines, columns, values, bold, title, notes=notes, **more)


def compared_means(name: str, one: Estimate, paper: Printed | None, splits: int) -> ComparedMeans:
    """Our mean and the printed one of a method, with their errors; nan where none is printed."""
    mean, std, _ = paper or (math.nan, None, "")
    return name, one.mean, standard_error(one.std, one.count), mean, standard_error(std or math.nan, splits)


def comparison_chart(panels: Mapping[str, Sequence[ComparedMeans]]) -> tuple[Chart, list[MutableRow]]:
    """Chart of our means and the paper's with their standard errors, by panel and method; and the numbers."""
    built = []
    for name, points in panels.items():
        places = np.arange(len(points), dtype=float)
        lines = []
        for shift, word, value, error in ((-0.12, "the paper", 3, 4), (0.12, "here", 1, 2)):
            y, spread = (np.array([float(point[k]) for point in points]) for k in (value, error))
            if np.isfinite(y).any():
                lines.append(Line(word, places + shift, y, spread, style="dots"))
        built.append(Panel(name, lines, names=[point[0] for point in points]))
    columns = ("method", "mean", "error", "paper", "paper_error")
    rows: list[MutableRow] = [
        {"panel": name, **dict(zip(columns, point, strict=True))} for name, points in panels.items() for point in points
    ]
    return Chart(built, "method"), rows
