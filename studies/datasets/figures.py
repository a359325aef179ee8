"""The gallery of data sets: how degrees are spread, and how many neighbours are of a node's own class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.figures import PALETTE, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Sets side by side in the gallery, and bins of the histograms.
ACROSS = 3
BINS = 20
DEGREE, ALIKE = "degree", "alike"


def degree_rows(name: str, degrees: np.ndarray) -> list[dict[str, Any]]:
    """The share of nodes with at least each degree that occurs, from 1 on.

    >>> [(row["value"], row["share"]) for row in degree_rows("path", np.array([1, 2, 2, 1, 0]))]
    [(1.0, 0.8), (2.0, 0.4)]
    """
    values, counts = np.unique(degrees, return_counts=True)
    at_least = np.cumsum(counts[::-1])[::-1] / degrees.size
    return [_row(name, DEGREE, v, s) for v, s in zip(values, at_least, strict=True) if v >= 1]


def alike_rows(name: str, shares: np.ndarray) -> list[dict[str, Any]]:
    """A histogram over [0, 1] in equal bins; the value is a bin's left end, nodes without a share are left out.

    >>> [row["share"] for row in alike_rows("pair", np.array([0.0, 1.0, np.nan]))][::BINS - 1]
    [0.5, 0.5]
    """
    known = shares[~np.isnan(shares)]
    counts, ends = np.histogram(known, bins=BINS, range=(0.0, 1.0))
    return [_row(name, ALIKE, v, n / max(1, known.size)) for v, n in zip(ends[:-1], counts, strict=True)]


def _row(name: str, measure: str, value: float, share: float) -> dict[str, Any]:
    return {"set": name, "measure": measure, "value": round(float(value), 9), "share": float(share)}


def gallery(rows: Sequence[Mapping[str, Any]], facts: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Two panels a set: degrees on logarithmic axes, and the histogram of the share of neighbours of the same class."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    names = list(facts)
    across = min(ACROSS, len(names))
    down = -(-len(names) // across)
    layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.06)
    figure = Figure(figsize=(5.0 * across, 2.25 * down + 0.4), layout=layout)
    boxes = figure.subfigures(down, across, squeeze=False)
    for box, name in zip(boxes.flat, names, strict=False):
        own = facts[name]
        box.suptitle(f"{plain(name)}: {own['nodes']:,} nodes, {own['edges']:,} edges", fontsize=10, fontweight="bold")
        left, right = box.subplots(1, 2)
        mine = [row for row in rows if row["set"] == name]
        _draw_degrees(left, [row for row in mine if row["measure"] == DEGREE], own)
        _draw_alike(right, [row for row in mine if row["measure"] == ALIKE], own)
    return figure


def _draw_degrees(panel: Axes, rows: Sequence[Mapping[str, Any]], own: Mapping[str, Any]) -> None:
    values, shares = [row["value"] for row in rows], [row["share"] for row in rows]
    panel.step(values, shares, where="pre", color=PALETTE[0], lw=1.4)
    panel.plot(values, shares, ".", color=PALETTE[0], ms=3)
    panel.axvline(own["average_degree"], color=PALETTE[1], lw=1.2, ls="--")
    panel.set(xscale="log", yscale="log", ylim=(0.5 / own["nodes"], 1.6), xlim=(0.8, 1.6 * max(values, default=1.0)))
    panel.set_xlabel(f"degree, mean {own['average_degree']:.1f}", fontsize=8)
    panel.set_ylabel("share of nodes ≥ it", fontsize=8)
    panel.tick_params(labelsize=7)
    panel.minorticks_off()


def _draw_alike(panel: Axes, rows: Sequence[Mapping[str, Any]], own: Mapping[str, Any]) -> None:
    values, shares = [row["value"] for row in rows], [row["share"] for row in rows]
    panel.bar(values, shares, width=1 / BINS, align="edge", color=PALETTE[2], edgecolor="white", lw=0.3)
    panel.axvline(own["node_homophily"], color=PALETTE[1], lw=1.2, ls="--")
    panel.set(xlim=(0, 1), ylim=(0, 1.08 * max(shares, default=1.0)))
    panel.set_xlabel(f"same-class neighbours, mean {own['node_homophily']:.2f}", fontsize=8)
    panel.set_ylabel("share of nodes", fontsize=8)
    panel.tick_params(labelsize=7)


def gallery_caption(names: Sequence[str]) -> str:
    """What the panels show."""
    return (
        f"{len(names)} data sets, each as an undirected graph without self-loops. Left: the share of nodes with at "
        "least a given degree, both axes logarithmic; a node without edges counts below every degree. Right: how the "
        "share of neighbours that have a node's own class is spread over the nodes; its mean is the node homophily. "
        "Dashed: the means."
    )
