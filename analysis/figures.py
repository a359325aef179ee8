"""Figures: colour-blind palette, data beside every picture (csv), png and pdf of each."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rdgraph.errors import NotApplicable, RdgraphError, Undecided
from rdgraph.files import replacing
from rdgraph.systems.system import System
from rdgraph.theory.filters import classify
from rdgraph.theory.run_gains import response_values

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Okabe and Ito's palette, safe for the common kinds of colour blindness.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", "--", "-.", ":")
#: Gains outside this range are as good as zero, or as good as lost.
GAIN_RANGE = (1e-4, 1e5)


def plain(text: str) -> str:
    r"""A text from outside as matplotlib draws it letter by letter: $ begins no formula, other marks are as they are.

    What cannot be printed, such as a line end, becomes a space.

    >>> plain("$x$, 5 %"), plain("two\nlines")
    ('\\$x\\$, 5 %', 'two lines')
    """
    return "".join(c if c.isprintable() else " " for c in text).replace("$", r"\$")


@dataclass(frozen=True)
class ResponseCurve:
    """Gain over frequency of one system under one method."""

    system: str
    method: str
    step: float | None
    lam: np.ndarray
    gain: np.ndarray


def response_curves(
    system: System,
    *,
    T: float,
    coefficients: Mapping[str, float],
    methods: Sequence[tuple[str, float | None]],
    points: int = 401,
) -> list[ResponseCurve]:
    """Exact and discretised responses of a linear system on lam in [0, 2], coefficients set to numbers."""
    grid = np.linspace(0.0, 2.0, points)
    name = system.name or str(system)
    return [
        ResponseCurve(
            name, method, step, grid, gain_at(system, grid, T=T, coefficients=coefficients, method=method, step=step)
        )
        for method, step in methods
    ]


def gain_at(
    system: System,
    lam: np.ndarray,
    *,
    T: float,
    coefficients: Mapping[str, float],
    method: str = "exact",
    step: float | None = None,
) -> np.ndarray:
    """The symbolic response at eigenvalues `lam` of L, coefficients set to numbers: an array of the shape of lam.

    >>> import rdgraph as rd
    >>> gain_at(rd.parse("-alpha*L@H"), np.array([0.0, 1.0]), T=2, coefficients={"alpha": 0.5}, method="euler", step=1)
    array([1.  , 0.25])
    """
    used = {k: v for k, v in coefficients.items() if k in system.coefficients}
    missing = set(system.coefficients) - set(used)
    if missing:
        raise RdgraphError(
            f"expected numbers for every coefficient, got none for {sorted(missing)}; pass --set NAME=VALUE"
        )
    return response_values(system.replace(**used), lam, T, method, step)


def response_figure(
    systems: Sequence[System],
    *,
    T: float,
    coefficients: Mapping[str, float],
    methods: Sequence[tuple[str, float | None]] = (("exact", None), ("euler", 1.0), ("rk4", 1.0)),
) -> tuple[Figure, list[ResponseCurve]]:
    """One panel a system: exact response and what the methods make of it."""
    from matplotlib.figure import Figure

    columns = min(5, len(systems))
    rows = -(-len(systems) // columns)
    figure = Figure(figsize=(2.6 * columns + 0.8, 2.5 * rows + 1.0), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    curves: list[ResponseCurve] = []
    for panel, system in zip(panels.flat, systems, strict=False):
        own = response_curves(system, T=T, coefficients=coefficients, methods=methods)
        curves += own
        for i, curve in enumerate(own):
            label = curve.method if curve.step is None else f"{curve.method}, step {curve.step:g}"
            gain = np.maximum(np.abs(curve.gain), np.finfo(float).tiny)
            panel.plot(curve.lam, gain, DASHES[i % 4], color=PALETTE[i % 7], label=label, lw=2.4 - 0.5 * i)
        panel.axhline(1, color="0.8", lw=0.8, zorder=0)
        panel.set_title(f"{plain(_short(own[0].system))}\n{_class_at(system, coefficients)}", fontsize=9)
        panel.set(yscale="log", ylim=GAIN_RANGE, xlim=(0, 2))
    for panel in panels.flat[len(systems) :]:
        panel.set_visible(False)
    for column in range(columns):
        last = max(r for r in range(rows) if r * columns + column < len(systems))
        panels[last, column].set_xlabel("lam, eigenvalue of L", fontsize=9)
        panels[last, column].tick_params(labelbottom=True)
    for row in range(rows):
        panels[row, 0].set_ylabel("|gain|", fontsize=9)
    handles, labels = panels.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    settings = ", ".join(f"{plain(k)} = {v:g}" for k, v in coefficients.items())
    figure.suptitle(f"Gain of frequency lam after T = {T:g} ({settings}); titles: class of the exact flow", fontsize=11)
    return figure, curves


def _short(text: str, width: int = 34) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def _class_at(system: System, coefficients: Mapping[str, float]) -> str:
    used = {k: v for k, v in coefficients.items() if k in system.coefficients}
    try:
        return classify(system.replace(**used))[0].kind
    except (NotApplicable, Undecided):
        return "undecided"


def curve_rows(curves: Sequence[ResponseCurve]) -> list[dict[str, float | str]]:
    """The numbers of response curves, one row a point."""
    return [
        {
            "system": c.system,
            "method": c.method,
            "step": "" if c.step is None else c.step,
            "lam": float(x),
            "gain": float(g),
        }
        for c in curves
        for x, g in zip(c.lam, c.gain, strict=True)
    ]


def save_figure(figure: Figure, folder: Path, name: str, rows: Sequence[Mapping[str, Any]]) -> list[Path]:
    """Write name.png, name.pdf and the numbers behind them, one mapping a row, as name.csv.

    Each file is written whole or not at all. Columns are the keys of the rows in order of appearance; floats have
    twelve digits.
    """
    paths = [folder / f"{name}.{ending}" for ending in ("png", "pdf", "csv")]
    with replacing(paths[0]) as file:
        figure.savefig(file, format="png", dpi=160)
    with replacing(paths[1]) as file:
        figure.savefig(file, format="pdf", metadata={"CreationDate": None})
    with replacing(paths[2]) as file:
        file.write_text(_csv(rows), encoding="utf-8", newline="")
    return paths


def _csv(rows: Sequence[Mapping[str, Any]]) -> str:
    columns = list(dict.fromkeys(key for row in rows for key in row))
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(columns)
    for row in rows:
        values = (row.get(key, "") for key in columns)
        writer.writerow([f"{v:.12g}" if isinstance(v, float | np.floating) else v for v in values])
    return text.getvalue()
