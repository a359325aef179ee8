"""Figures of a search: the selection gap as it grows with the number of trials, and which settings mattered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from analysis.figures import DASHES, PALETTE
from gread.tuning.selection import GapPoint
from studies.runs.bars import Bar, Bars
from studies.runs.chart import Chart, Line, Panel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GAP_CAPTION = (
    "The selection gap: expected test accuracy (percent) of the best of n trials, chosen by mean validation accuracy, "
    "and chosen by a look at the test labels, which no result here was. Exact means over all ways to take n of the "
    "trials that were trained to their ends. The distance of the two lines is what a report of the best by test would "
    "have added."
)
IMPORTANCE_CAPTION = (
    "How much each setting matters for being among the best tenth of the trials by validation (PED-ANOVA, Watanabe, "
    "Bansal, Hutter, IJCAI 2023); the bars add up to 1. Settings that count only under a condition are left out."
)


def gap_rows(points: Sequence[GapPoint]) -> list[dict[str, float | int]]:
    """The numbers of the gap, in percent."""
    return [
        {
            "trials": p.trials,
            "by_validation": 100 * p.by_validation,
            "by_test": 100 * p.by_test,
            "gap": 100 * p.gap,
        }
        for p in points
    ]


def gap_figure(rows: Sequence[Mapping[str, float | int]]) -> Figure:
    """Two lines over the number of trials."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    trials = [row["trials"] for row in rows]
    for k, (name, label) in enumerate((("by_test", "best by test"), ("by_validation", "chosen by validation"))):
        values = [row[name] for row in rows]
        axes.plot(
            trials, values, color=PALETTE[k], linestyle=DASHES[1 - k], marker="." if len(rows) < 30 else "", label=label
        )
    axes.fill_between(
        trials, [row["by_validation"] for row in rows], [row["by_test"] for row in rows], color=PALETTE[0], alpha=0.12
    )
    axes.set_xlabel("trials")
    axes.set_ylabel("test accuracy, percent")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend()
    return figure


def gap_chart(rows: Sequence[Mapping[str, float | int]]) -> Chart:
    """The same lines for the page."""
    trials = np.array([float(row["trials"]) for row in rows])
    lines = [
        Line(label, trials, np.array([float(row[name]) for row in rows]))
        for name, label in (("by_test", "best by test"), ("by_validation", "chosen by validation"))
    ]
    return Chart([Panel("selection gap", lines)], "trials")


def importance_bars(importance: Mapping[str, float]) -> Bars:
    """A bar for every setting, the largest on top."""
    names = sorted(importance, key=lambda name: -importance[name])
    return Bars([Bar(name.replace("_", " "), max(importance[name], 0.0)) for name in names], "importance")
