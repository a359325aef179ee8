"""Figures of a search over equations: accuracy against size, and which terms help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from analysis.figures import PALETTE, plain
from studies.runs.tables import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FRONT_CAPTION = (
    "Accuracy against size. Every ring is an equation that was trained to its end: its mean validation accuracy over "
    "the splits. The line is the front: the best equation of each size by validation, with its test accuracy and the "
    "95 % interval of that by the bootstrap over the splits, if there are several."
)
EFFECTS_CAPTION = (
    "Which terms help: how many points of validation accuracy a term adds, other terms held, after the first rung, "
    "with 95 % intervals (least squares over all equations that were trained, dropped ones included). Intervals are "
    "not corrected for the number of terms."
)
#: Terms that are drawn, from both ends of the list.
DRAWN = 24


def front_figure(cloud: Sequence[Row], front: Sequence[Row]) -> Figure:
    """Rings for all equations, a line for the best of each size."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(6.4, 3.8), layout="constrained")
    axes = figure.subplots()
    sizes, values = ([float(row[name]) for row in cloud] for name in ("size", "validation"))
    axes.scatter(sizes, values, s=16, facecolors="none", edgecolors=PALETTE[5], label="validation, each equation")
    at = [float(row["size"]) for row in front]
    best, test = ([float(row[name]) for row in front] for name in ("validation", "test"))
    axes.plot(at, best, color=PALETTE[0], marker="o", label="validation, best of its size")
    errors = None
    if all(row["low"] != "" for row in front):
        errors = [[abs(float(row["test"]) - float(row[end])) for row in front] for end in ("low", "high")]
    axes.errorbar(
        at, test, yerr=errors, color=PALETTE[1], marker="s", linestyle="--", capsize=3, label="test, the same"
    )
    axes.set_xlabel("terms")
    axes.set_ylabel("accuracy, percent")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend()
    return figure


def effects_figure(rows: Sequence[Row]) -> Figure:
    """A bar with its interval for each term, the most helpful on top."""
    from matplotlib.figure import Figure

    drawn = list(rows) if len(rows) <= DRAWN else [*rows[: DRAWN // 2], *rows[-DRAWN // 2 :]]
    figure = Figure(figsize=(6.4, 0.9 + 0.24 * len(drawn)), layout="constrained")
    axes = figure.subplots()
    places = range(len(drawn), 0, -1)
    effects, low, high = ([float(row[name]) for row in drawn] for name in ("effect", "low", "high"))
    errors = [[e - a for e, a in zip(effects, low, strict=True)], [b - e for e, b in zip(effects, high, strict=True)]]
    axes.errorbar(effects, list(places), xerr=errors, fmt="o", color=PALETTE[0], capsize=2)
    axes.axvline(0.0, color=PALETTE[6], linewidth=0.8)
    axes.set_yticks(list(places), [plain(str(row["term"])) for row in drawn])
    axes.set_xlabel("points of validation accuracy")
    return figure
