"""Pictures of dispersion relations: growth and frequency over lam, growing bands shaded, the modes of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import sympy as sp

from rdgraph.errors import InvalidArgument
from rdgraph.theory.patterns.bands import Band
from rdgraph.theory.patterns.linearisation import Linearisation
from rdgraph.theory.patterns.mode_spectra import Fastest, ModeSpectrum
from rdgraph.theory.patterns.states import SteadyState

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

POINTS = 401
#: Blue, vermilion, green and grey of Okabe and Ito's palette.
CURVE, BAND, MODE, OTHER = "#0072B2", "#D55E00", "#009E73", "0.6"
#: How far beyond the last band an endless range is drawn, and how far without any.
BEYOND, WITHOUT_BANDS = 1.5, 2.0
#: The margin around what is drawn, and the frequency that is rounding.
MARGIN, TOLERANCE = 0.02, 1e-9
#: The longest text of a steady state in a title.
WIDTH = 44


class Relation(Protocol):
    """What is drawn of a dispersion relation."""

    @property
    def fields(self) -> tuple[str, ...]: ...
    @property
    def linearisation(self) -> Linearisation: ...
    @property
    def state(self) -> SteadyState | None: ...
    @property
    def to(self) -> sp.Expr: ...
    @property
    def unstable(self) -> tuple[Band, ...]: ...
    @property
    def fastest(self) -> Fastest | None: ...
    @property
    def kind(self) -> str: ...
    @property
    def spectrum(self) -> ModeSpectrum | None: ...


def dispersion_figure(relations: Sequence[Relation]) -> Figure:
    """A column for each relation: the growth above, the frequency below; other eigenvalues of P(lam) are thin lines.

    Raises InvalidArgument where there is nothing to draw.
    """
    from matplotlib.figure import Figure

    if not relations:
        raise InvalidArgument("expected at least one dispersion relation to draw, got none")
    count = len(relations)
    figure = Figure(figsize=(4.2 * count + 0.8, 5.4), layout="constrained")
    panels = figure.subplots(2, count, squeeze=False, sharex="col", sharey="row", height_ratios=[3, 2])
    for (above, below), relation in zip(panels.T, relations, strict=True):
        _draw(above, below, relation)
    panels[0, 0].set_ylabel("growth rate")
    panels[1, 0].set_ylabel("frequency")
    panels[1, 0].set_ylim(*_frequency_range(relations))
    listed = [zip(*panel.get_legend_handles_labels(), strict=True) for panel in panels.flat]
    entries = {label: handle for pairs in listed for handle, label in pairs}
    figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=len(entries), frameon=False)
    names = dict.fromkeys(", ".join(relation.fields) for relation in relations)
    figure.suptitle(f"Dispersion relation of {' and of '.join(names)}", fontsize=11)
    return figure


def _draw(above: Axes, below: Axes, relation: Relation) -> None:
    end = drawn_end(relation)
    grid = np.linspace(0.0, end, POINTS)
    values = relation.linearisation.eigenvalues(grid)
    if values.shape[1] > 1:
        above.plot(grid, values[:, 1:].real, color=OTHER, lw=0.8, label="_others")
    above.plot(grid, values[:, 0].real, color=CURVE, lw=2, label="fastest growing eigenvalue of P(λ)")
    below.plot(grid, np.abs(values[:, 0].imag), color=CURVE, lw=2)
    above.axhline(0, color="0.3", lw=0.8)
    for band in relation.unstable:
        low, high = float(band.lower), end if band.upper == sp.oo else float(band.upper)
        for panel in (above, below):
            panel.axvspan(low, high, color=BAND, alpha=0.15, lw=0, label="growing λ" if panel is above else None)
    if relation.fastest is not None:
        above.plot([relation.fastest.lam], [relation.fastest.growth], "v", color=BAND, ms=7, label="fastest λ")
    if relation.spectrum is not None:
        places = relation.spectrum.eigenvalues
        modes = relation.linearisation.eigenvalues(places)[:, 0]
        told = "modes of the graph" if relation.spectrum.is_real else "modes of the graph, at the real part of λ"
        above.plot(places.real, modes.real, "o", color=MODE, ms=4, mfc="none", label=told)
        below.plot(places.real, np.abs(modes.imag), "o", color=MODE, ms=4, mfc="none")
    above.set_title(f"{_title(relation)}\n{relation.kind}", fontsize=9)
    below.set_xlabel("λ, eigenvalue of L")
    below.set_xlim(-MARGIN * end, (1 + MARGIN) * end)


def _frequency_range(relations: Sequence[Relation]) -> tuple[float, float]:
    """From a little below zero to a little above the largest frequency; to 1 where nothing oscillates."""
    largest = max(float(row["frequency"]) for row in dispersion_curves(relations))
    top = largest if largest > TOLERANCE else 1.0
    return -2 * MARGIN * top, (1 + 4 * MARGIN) * top


def drawn_end(relation: Relation) -> float:
    """The largest lam that is drawn: all modes of a graph, and the range, if it ends."""
    largest = 0.0 if relation.spectrum is None else relation.spectrum.largest
    if relation.to.is_finite:
        return max(float(relation.to), largest)
    ends = [float(x) for band in relation.unstable for x in (band.lower, band.upper) if x.is_finite]
    return max([largest, *(BEYOND * x for x in ends)]) or WITHOUT_BANDS


def _title(relation: Relation) -> str:
    if relation.state is None:
        return "any state: the system is linear"
    text = ", ".join(f"{name} = {float(value):.4g}" for name, value in relation.state.values.items())
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 3]}..."


def dispersion_curves(relations: Sequence[Relation]) -> list[dict[str, Any]]:
    """The numbers of the picture: one row for each lam of the curves, and for each mode of a graph."""
    rows = []
    for index, relation in enumerate(relations):
        curve = np.linspace(0.0, drawn_end(relation), POINTS)
        places = [("curve", curve)]
        if relation.spectrum is not None:
            places.append(("mode", relation.spectrum.eigenvalues))
        for part, lams in places:
            leading = relation.linearisation.eigenvalues(lams)[:, 0]
            rows += [
                {"state": index, "part": part, "lam": float(x.real), "lam_imaginary": float(np.imag(x)),
                 "growth": float(value.real), "frequency": float(abs(value.imag))}
                for x, value in zip(lams, leading, strict=True)
            ]  # fmt: skip
    return rows
