"""Figures of a comparison: accuracies split by split, learning curves side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.figures import PALETTE, plain
from studies.contest.contestants import Contestant
from studies.runs.chart import Chart, Line, Panel
from studies.runs.pairing import split_means
from studies.runs.tables import MutableRow, Row
from studies.runs.uncertainty import standard_error
from studies.training.figures import empty_figure, whole_numbers

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Panels in a row, and the metrics drawn in each with their words.
COLUMNS, DRAWN = 4, {"train_accuracy": "training", "val_accuracy": "validation", "test_accuracy": "test"}


def accuracy_figure(
    contestants: Sequence[Contestant], results: Mapping[str, Sequence[Mapping[str, Any]]]
) -> tuple[Figure, list[MutableRow]]:
    """Every trial as a dot, contestants beside each other, the means with their standard errors."""
    figure = empty_figure(1.6 + 1.1 * len(contestants), 4.0)
    panel = figure.subplots()
    rows: list[MutableRow] = []
    splits = sorted({int(row["split"]) for own in results.values() for row in own})
    for k, one in enumerate(contestants):
        for row in results[one.name]:
            value = 100 * float(row["test_accuracy"])
            shift = 0.5 * (splits.index(int(row["split"])) + 0.5) / len(splits) - 0.25
            panel.plot(k + shift, value, "o", ms=3.5, color=PALETTE[int(row["split"]) % len(PALETTE)], alpha=0.7)
            rows.append(
                {"method": one.title, "split": int(row["split"]), "seed": int(row["seed"]), "test_accuracy": value}
            )
        means = np.array(list(split_means(results[one.name]).values()))
        error = standard_error(float(means.std()), len(means))
        spread = 0.0 if np.isnan(error) else error
        panel.errorbar(k, float(means.mean()), yerr=spread, fmt="_", ms=22, color="black", capsize=5, zorder=4)
    panel.set_xticks(range(len(contestants)), [plain(one.title) for one in contestants], rotation=20, fontsize=9)
    panel.set_ylabel("test accuracy, percent", fontsize=9)
    panel.grid(axis="y", color="0.92", lw=0.6)
    return figure, rows


def accuracy_chart(contestants: Sequence[Contestant], results: Mapping[str, Sequence[Mapping[str, Any]]]) -> Chart:
    """The same for the page: dots of every split, each a mean over its seeds, and the mean of all."""
    each = [split_means(results[one.name]) for one in contestants]
    splits = sorted({split for own in each for split in own})
    places = np.arange(float(len(contestants)))
    means = np.array([np.mean(list(own.values())) for own in each])
    errors = np.array([standard_error(float(np.std(list(own.values()))), len(own)) for own in each])
    lines = [Line("mean", places, means, errors, style="dots")]
    for k, split in enumerate(splits):
        shift = 0.5 * (k + 0.5) / len(splits) - 0.25
        values = np.array([own.get(split, np.nan) for own in each])
        lines.append(Line(f"split {split}", places + shift, values, style="dots"))
    return Chart([Panel("every split", lines, names=[one.title for one in contestants])], "network")


def curves_figures(
    contestants: Sequence[Contestant], curves: Mapping[str, Sequence[Row]], table: Sequence[Row]
) -> tuple[Figure, list[MutableRow]] | None:
    """A panel for every network with one scale for all, references as lines; None where nothing was trained."""
    networks = [one for one in contestants if curves[one.name]]
    if not networks:
        return None
    wide = min(COLUMNS, len(networks))
    tall = -(-len(networks) // wide)
    figure = empty_figure(3.3 * wide + 0.6, 2.7 * tall + 0.8)
    panels = figure.subplots(tall, wide, squeeze=False, sharey=True)
    rows: list[MutableRow] = []
    flat = {one.title: _mean_of(table, one.name) for one in contestants if not curves[one.name]}
    for panel, one in zip(panels.flat, networks, strict=False):
        for k, (metric, word) in enumerate(DRAWN.items()):
            own = [row for row in curves[one.name] if row["metric"] == metric]
            epochs, mean, low, high = (np.array([float(r[c]) for r in own]) for c in ("epoch", "mean", "low", "high"))
            panel.plot(epochs, mean, color=PALETTE[k], lw=1.6, label=word)
            if metric == "val_accuracy":
                panel.fill_between(epochs, low, high, color=PALETTE[k], alpha=0.15, lw=0)
            rows += [{"method": one.title, **row} for row in own]
        for k, (title, value) in enumerate(flat.items()):
            panel.axhline(value, color=PALETTE[(3 + k) % len(PALETTE)], ls=":", lw=1.4, label=plain(title))
        panel.set_title(plain(one.title), fontsize=10)
        panel.set_xlabel("epoch", fontsize=9)
        panel.xaxis.set_major_locator(whole_numbers())
        panel.grid(color="0.92", lw=0.6)
    for panel in panels.flat[len(networks) :]:
        panel.set_axis_off()
    for line in panels:
        line[0].set_ylabel("accuracy, percent", fontsize=9)
    handles, names = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), frameon=False, fontsize=9)
    return figure, rows


def curves_chart(contestants: Sequence[Contestant], curves: Mapping[str, Sequence[Row]], table: Sequence[Row]) -> Chart:
    """The same panels for the page, every network with its band."""
    flat = {one.title: _mean_of(table, one.name) for one in contestants if not curves[one.name]}
    panels = []
    for one in (one for one in contestants if curves[one.name]):
        lines = []
        for metric, word in DRAWN.items():
            own = [row for row in curves[one.name] if row["metric"] == metric]
            epochs, mean, low, high = (np.array([float(r[c]) for r in own]) for c in ("epoch", "mean", "low", "high"))
            lines.append(Line(word, epochs, mean, low=low, high=high))
        panels.append(Panel(one.title, lines, flat))
    return Chart(panels, "epoch", "accuracy, percent", is_shared=True)


def _mean_of(table: Sequence[Row], name: str) -> float:
    return next(float(row["mean"]) for row in table if row["name"] == name)
