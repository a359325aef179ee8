"""`MovingDots`: maps of nodes at several times, which a page moves from one to the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rdgraph.errors import InvalidArgument
from studies.runs.chart import inlined
from studies.runs.tables import MutableRow

#: Places are whole numbers up to this on a page, finer than its pixels.
STEPS = 999


@dataclass(frozen=True, eq=False)
class DotPanel:
    """The dots of one graph.

    Args:
        title: what stands above.
        times: in rising order.
        places: of shape (times, nodes, 2).
        labels: the class of every node, negative for none.
        nodes: what a reader is told who points at a dot.
    """

    title: str
    times: Sequence[float]
    places: np.ndarray
    labels: np.ndarray
    nodes: Sequence[int]

    def __post_init__(self) -> None:
        shape = (len(self.times), len(self.nodes), 2)
        if np.shape(self.places) != shape or len(self.labels) != len(self.nodes) or not np.isfinite(self.places).all():
            raise InvalidArgument(f"expected finite places of shape {shape}, got {np.shape(self.places)}")

    def spec(self) -> dict[str, Any]:
        """The panel as json: one scale for all times, so that frames can be compared."""
        low, high = self.places.min(axis=(0, 1)), self.places.max(axis=(0, 1))
        span = float(max((high - low).max(), 1e-12))
        corner = (low + high - span) / 2
        whole = np.rint((self.places - corner) / span * STEPS).astype(int)
        return {
            "title": self.title, "times": [float(f"{t:.4g}") for t in self.times],
            "places": whole.reshape(len(self.times), -1).tolist(), "labels": [int(c) for c in self.labels],
            "nodes": [int(n) for n in self.nodes],
        }  # fmt: skip


@dataclass(frozen=True, eq=False)
class MovingDots:
    """Panels whose dots move together, from the first time of each to its last; `word` stands before the time."""

    panels: Sequence[DotPanel]
    columns: int = 3
    word: str = "t"

    def json(self) -> str:
        """The dots as the page's script reads them, safe inside an element of html."""
        panels = [panel.spec() for panel in self.panels]
        return inlined({"panels": panels, "columns": self.columns, "steps": STEPS, "word": self.word})

    def numbers(self) -> list[MutableRow]:
        """A row for every dot at every time."""
        return [
            {"panel": p.title, "time": float(t), "node": int(n), "label": int(c), "x": float(xy[0]), "y": float(xy[1])}
            for p in self.panels
            for t, frame in zip(p.times, p.places, strict=True)
            for n, c, xy in zip(p.nodes, p.labels, frame, strict=True)
        ]
