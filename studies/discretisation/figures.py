"""Figures of discretisation errors: a map of all settings, and the worst responses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.figures import PALETTE
from studies.discretisation.rows import CLASSICAL, LINEAR, forms, gains
from studies.runs.published_settings import PublishedSetting, best_settings
from studies.runs.tables import MutableRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Errors that the colours tell apart, as powers of ten.
COLOURS = (-7.0, 2.0)
WORST_DRAWN = 6
#: Gains that are labelled where they are in sight.
TICKS = (-100, -30, -10, -3, -1, -0.5, 0, 0.5, 1, 3, 10, 30, 100)


def map_rows(modes: Sequence[MutableRow]) -> list[MutableRow]:
    """One row per reaction and data set: the largest error over its forms."""
    found: dict[tuple[Any, Any], MutableRow] = {}
    for row in modes:
        key = row["reaction"], row["dataset"]
        names = ("reaction", "dataset", "solver", "steps", "error_typical", "error_worst")
        new = {name: row[name] for name in names}
        old = found.setdefault(key, new)
        for name in ("error_typical", "error_worst"):
            old[name] = max(float(old[name]), float(row[name]))
    return list(found.values())


def error_map(modes: Sequence[MutableRow]) -> Figure:
    """Reactions by data sets, coloured by error at typical and at the worst coefficients; E Euler, R RK4."""
    from matplotlib.figure import Figure

    rows = map_rows(modes)
    reactions = list(dict.fromkeys(str(r["reaction"]) for r in rows))
    datasets = list(dict.fromkeys(str(r["dataset"]) for r in rows))
    figure = Figure(figsize=(13.5, 4.2), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for panel, which in zip(panels, ("typical", "worst"), strict=True):
        grid = np.full((len(reactions), len(datasets)), np.nan)
        for row in rows:
            place = reactions.index(str(row["reaction"])), datasets.index(str(row["dataset"]))
            grid[place] = np.log10(max(float(row[f"error_{which}"]), 1e-16))
            _write_cell(panel, place, float(row[f"error_{which}"]), str(row["solver"]))
        image = panel.imshow(grid, cmap="cividis", vmin=COLOURS[0], vmax=COLOURS[1], aspect="auto")
        panel.set_xticks(range(len(datasets)), datasets, rotation=35, ha="right", fontsize=8)
        panel.set_yticks(range(len(reactions)), [f"{r} (linearised)" if r in CLASSICAL else r for r in reactions])
        panel.set_title(f"{which} coefficients", fontsize=10)
    bar = figure.colorbar(image, ax=panels, shrink=0.9, pad=0.01)
    bar.set_label("log10 of the error over the largest gain", fontsize=8)
    figure.suptitle("Error of the published solver over all modes (E: Euler, R: RK4)", fontsize=11)
    return figure


def _write_cell(panel: Axes, place: tuple[int, int], error: float, solver: str) -> None:
    share = (np.log10(max(error, 1e-16)) - COLOURS[0]) / (COLOURS[1] - COLOURS[0])
    text = f"{solver[0].upper()} {error:.0e}".replace("e-0", "e-").replace("e+0", "e+")
    colour = "black" if share > 0.55 else "white"
    panel.text(place[1], place[0], text, ha="center", va="center", fontsize=7, color=colour)


WORST_CAPTION = (
    "The linear settings with the largest errors, one per reaction first, at their worst coefficients (in the titles): "
    "exact gain (solid) and what the solver computes (dashed) over λ, on a scale that is linear between -1 and 1 and "
    "logarithmic beyond; below zero a mode changes its sign."
)


def worst_cases(modes: Sequence[MutableRow]) -> list[MutableRow]:
    """The worst linear setting of every reaction, then the next worst."""
    ordered = sorted((r for r in modes if r["reaction"] in LINEAR), key=lambda r: -float(r["error_worst"]))
    first = [next(r for r in ordered if r["reaction"] == name) for name in LINEAR]
    return (first + [r for r in ordered if r not in first])[:WORST_DRAWN]


def worst_figure(modes: Sequence[MutableRow], points: int) -> tuple[Figure, list[MutableRow]]:
    """Exact and computed responses of the worst cases, and the numbers drawn."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.5, 6.0), layout="constrained")
    panels = figure.subplots(2, 3, sharex=True)
    lam = np.linspace(0.0, 2.0, points)
    drawn: list[MutableRow] = []
    for panel, row in zip(panels.flat, worst_cases(modes), strict=True):
        setting = _setting(row)
        alpha, beta = float(row["alpha_worst"]), float(row["beta_worst"])
        exact, computed = (g(lam, alpha, beta) for g in gains(forms(setting.reaction)[0], setting))
        panel.axhline(0, color="0.85", linewidth=0.8, zorder=0)
        panel.plot(lam, exact, color=PALETTE[0], linewidth=2.2, label="exact")
        panel.plot(lam, computed, "--", color=PALETTE[1], linewidth=1.8, label="solver")
        panel.set_yscale("symlog", linthresh=1.0)
        panel.set_yticks(TICKS, [f"{x:g}" for x in TICKS], minor=False)
        panel.set_yticks([], minor=True)
        panel.set_ylim(*_limits(exact, computed))
        panel.set_title(
            f"{setting.reaction}, {setting.dataset}: {setting.solver}, step {setting.step:g}, T {setting.time:g}\n"
            f"α {alpha:g}, β {beta:g}, error {float(row['error_worst']):.2g}", fontsize=9,
        )  # fmt: skip
        panel.grid(alpha=0.25, linewidth=0.6)
        panel.tick_params(labelsize=8)
        drawn += [
            {"reaction": setting.reaction, "dataset": setting.dataset, "alpha": alpha, "beta": beta,
             "lam": float(f"{x:.6g}"), "exact": float(f"{e:.9g}"), "computed": float(f"{c:.9g}")}
            for x, e, c in zip(lam, exact, computed, strict=True)
        ]  # fmt: skip
    for panel in panels[-1]:
        panel.set_xlabel("λ, eigenvalue of L", fontsize=9)
    for panel in panels[:, 0]:
        panel.set_ylabel("gain", fontsize=9)
    handles, labels = panels.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    return figure, drawn


def _limits(*gains: np.ndarray) -> tuple[float, float]:
    """From the smallest to the largest gain and zero, with a little room."""
    low, high = min(0.0, *(g.min() for g in gains)), max(0.0, *(g.max() for g in gains))
    return 1.2 * low - 0.1, 1.2 * high + 0.1


def _setting(row: MutableRow) -> PublishedSetting:
    return next(s for s in best_settings() if (s.reaction, s.dataset) == (row["reaction"], row["dataset"]))
