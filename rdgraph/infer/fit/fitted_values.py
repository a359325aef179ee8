"""`Fit`: fitted coefficients with intervals and identifiability."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from rdgraph.answers import Answer, Status
from rdgraph.infer.fit.least_squares import Unknown, Unknowns
from rdgraph.systems.system import System
from rdgraph.theory.identifiability.examination import Identifiability
from rdgraph.wording import counted, html_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Entries = dict[str, Any]


@dataclass(frozen=True, repr=False)
class Fit(Answer):
    """Coefficients fitted to observed states.

    `values` are numbers, or arrays for coefficients of channels, nodes and matrices; `intervals` are pairs, or arrays
    with the pair last, an end being infinite (or 0) where the data give no bound; None where none were requested.
    A coefficient without effect on runs from this start has the value NaN; `reasons` says for each coefficient that is
    not identifiable why. `identifiability` is what the equation determines on the graph, `identifiable` whether these
    data bound a coefficient; `undetermined` are those that can change without changing an observed value.
    `sigma` is the noise, `states` the fitted states (K, n, d) at `times`. `effort` counts the evaluations of the
    field; a fit that was `stopped` by its limit may not have converged, and intervals that were not computed are NaN.
    """

    system: System
    values: Entries
    intervals: Entries | None
    level: float | None
    sigma: float
    observations: int
    states: np.ndarray = field(repr=False)
    times: np.ndarray = field(repr=False)
    observed: np.ndarray = field(repr=False)
    identifiability: Identifiability
    agreeing: int
    starts: int
    settled: bool
    directions_lost: int
    undetermined: tuple[str, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)
    effort: float = 0.0
    stopped: bool = False

    @property
    def value(self) -> Entries:
        """The values by coefficient."""
        return self.values

    @property
    def status(self) -> Status:
        """measured: the values are estimates."""
        return Status.MEASURED

    @property
    def reason(self) -> str:
        """The number of observations behind the values, and the notes."""
        return "; ".join([f"least squares over {self.observations} observations", *self.notes])

    @property
    def initial(self) -> np.ndarray:
        """The start (n, d), given or estimated."""
        return self.states[0]

    @property
    def identifiable(self) -> dict[str, bool]:
        """Whether the data determine each coefficient, and bound it on both sides where there are intervals."""
        free = self.undetermined
        if self.intervals is None:
            return {name: name not in free for name in self.values}
        unfinished = self.unfinished
        return {
            name: name not in free and (name in unfinished or _is_bounded(ends))
            for name, ends in self.intervals.items()
        }

    @property
    def unfinished(self) -> tuple[str, ...]:
        """The coefficients whose interval was not computed before the effort was spent."""
        ends = (self.intervals or {}).items() if self.stopped else ()
        return tuple(name for name, pairs in ends if name not in self.reasons and np.isnan(np.asarray(pairs)).any())

    @property
    def notes(self) -> tuple[str, ...]:
        """Caveats for the use of the values."""
        notes = []
        if self.stopped:
            notes.append(f"stopped after {self.effort:.0f} evaluations of the field; effort= allows more")
        if self.unfinished:
            notes.append(f"intervals not computed: {', '.join(self.unfinished)}")
        if not self.settled:
            notes.append("the fit had not converged after its last step")
        if self.agreeing < self.starts:
            notes.append(f"{self.agreeing} of the {self.starts} best starts ended in this minimum")
        if self.directions_lost and not self.reasons:
            lost, verb = (
                counted(self.directions_lost, "direction"),
                "changes" if self.directions_lost == 1 else "change",
            )
            notes.append(f"{lost} of the unknowns (coefficients and start) {verb} no observed value")
        if self.identifiability.status == Status.UNDECIDED:
            notes.append(
                "whether the equation determines its coefficients is undecided: " + self.identifiability.reason
            )
        if self.identifiability.local:
            names = ", ".join(self.identifiability.local)
            notes.append(f"{names}: another value far away may give the same flow")
        notes += [f"{name} is not identifiable: {reason}" for name, reason in self.reasons.items()]
        sides = {name: side for name, side in self._open_sides().items() if name not in self.reasons}
        for side in dict.fromkeys(sides.values()):
            names = ", ".join(name for name, other in sides.items() if other == side)
            notes += [f"the data do not bound {names}{side}"]
        return tuple(notes)

    def _open_sides(self) -> dict[str, str]:
        """The coefficients that the data do not bound, with the side if it is only one."""
        sides = {}
        for name, ends in (self.intervals or {}).items():
            if not self.identifiable[name]:
                pairs = np.asarray(ends, dtype=float)
                is_open = ~np.isfinite(pairs) | (pairs == 0)
                below, above = bool(is_open[..., 0].any()), bool(is_open[..., 1].any())
                sides[name] = "" if below == above else " from below" if below else " from above"
        return sides

    def __str__(self) -> str:
        rows = [f"{name} = {value}" for name, value in self._rows()]
        return "\n".join([*rows, f"noise {self.sigma:.3g}, {self.observations} observations", *self.notes])

    def _rows(self) -> list[tuple[str, str]]:
        rows = []
        for name, value in self.values.items():
            if isinstance(value, float) and math.isnan(value):
                rows.append((name, "not identifiable"))
                continue
            text = f"{value:.4g}" if isinstance(value, float) else np.array2string(value, precision=4, threshold=8)
            if self.intervals is not None and isinstance(value, float) and name not in self.unfinished:
                low, high = self.intervals[name]
                text += f"  [{low:.4g}, {high:.4g}] at {100 * float(self.level or 0):g} %"
            rows.append((name, text))
        return rows

    def _repr_html_(self) -> str:
        return html_table("Fit", [*self._rows(), ("noise", f"{self.sigma:.3g}"), *(("note", n) for n in self.notes)])

    def plot(self, nodes: int = 6) -> Figure:
        """Observed and fitted values of the first channel over time, at the nodes that move most."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6.4, 4), layout="constrained")
        axes = figure.subplots()
        seen = np.isfinite(self.observed[..., 0])
        moved = np.where(seen.any(0), np.ptp(self.states[..., 0], axis=0), -1.0)
        for number, node in enumerate(np.argsort(-moved)[:nodes]):
            axes.plot(self.times, self.states[:, node, 0], color=f"C{number}", label=f"node {node}")
            axes.plot(self.times, self.observed[:, node, 0], "o", color=f"C{number}", markersize=3)
        axes.set(xlabel="time", ylabel="state, fitted (lines) and observed (dots)")
        axes.legend(fontsize="small")
        return figure


def _is_bounded(ends: Any) -> bool:
    pairs = np.asarray(ends, dtype=float)
    return bool(np.isfinite(pairs).all() and (pairs != 0).all())


def entries_of(unknowns: Unknowns, inner: Tensor) -> Entries:
    """The rows of a fit by name: numbers (count,) or ends (count, 2), on the scale of the coefficients."""
    entries: Entries = {}
    for unknown, span in zip(unknowns.coefficients, unknowns.slices().values(), strict=True):
        part = inner[span].detach()
        entries[unknown.name] = _value(unknown, part) if part.ndim == 1 else _ends(unknown, part)
    return entries


def _value(unknown: Unknown, inner: Tensor) -> Any:
    value = unknown.to_value(inner)
    return float(value[0]) if not unknown.shape else value.reshape(unknown.shape).numpy()


def _ends(unknown: Unknown, inner: Tensor) -> Any:
    ends = torch.sort(unknown.to_value(inner), -1).values
    missing = torch.isnan(inner).any(-1, keepdim=True)
    ends = torch.where(missing, torch.nan, ends)
    if not unknown.shape:
        low, high = ends[0].tolist()
        return (low, high if math.isfinite(high) or bool(missing) else math.inf)
    return ends.reshape(*unknown.shape, 2).numpy()
