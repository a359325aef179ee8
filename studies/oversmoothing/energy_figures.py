"""Figures of measures over time: any list of named curves, one panel a group, mean line and band.

Nothing here knows where a curve comes from: a trained network's energies per layer are drawn as a flow's are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.figure_files import PALETTE
from analysis.measures.measure_records import MEASURES, Measure
from studies.oversmoothing.flows import BASELINES, BOXED, CLASSICAL, LINEAR, REACTIONS, SCHEMES, GraphFlow
from studies.oversmoothing.rows import BAND, SHEET, column, select
from studies.runs.chart import Chart, Line, Panel
from studies.runs.tables import MutableRow, Value

if TYPE_CHECKING:
    from studies.runs.study_run import StudyRun


# ---------------------------------------------------------------------- figures
#: Logarithmic axes show no more than this range; what leaves it is as good as zero, or as good as lost.
SHOWN = (1e-12, 1e20)
#: What the Dirichlet energy is called on the axis of a page.
ENERGY = "Dirichlet energy"


@dataclass(frozen=True, eq=False)
class Curve:
    """A measure over time: mean, low and high (K,) over the members not frozen, of which `alive` (K,) are left.

    Curves of one `group` share a panel. `colour` and `dash` count through the palette and the line styles.

    >>> Curve.over("GCN", "baselines", np.arange(2.0), np.array([[1.0, 3.0], [2.0, np.nan]])).alive
    array([2, 1])
    """

    name: str
    group: str
    times: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    alive: np.ndarray
    members: int
    colour: int = 0
    dash: int = 0

    @classmethod
    def over(
        cls, name: str, group: str, times: np.ndarray, values: np.ndarray, colour: int = 0, dash: int = 0,
        alive: np.ndarray | None = None,
    ) -> Curve:  # fmt: skip
        """Median and band of values (K, members) over the members that have a number there."""
        summary = np.full((3, len(values)), np.nan)
        for k, row in enumerate(values):
            if (there := row[np.isfinite(row)]).size:
                summary[:, k] = np.quantile(there, (0.5, *BAND))
        counts = np.isfinite(values).sum(1) if alive is None else alive
        median, low, high = summary
        return cls(name, group, times, median, low, high, counts, values.shape[1], colour, dash)


def make_curve(rows: list[MutableRow], name: str, group: str, colour: int = 0, dash: int = 0) -> Curve:
    """The rows of one measure of one flow, in order of time, as a curve."""
    times, mean, low, high = (column(rows, name) for name in ("t", "mean", "low", "high"))
    alive = np.array([row["alive"] for row in rows], dtype=int)
    return Curve(name, group, times, mean, low, high, alive, int(rows[0]["members"]), colour, dash)


def curves_chart(
    curves: Sequence[Curve],
    *,
    y_label: str,
    x_label: str = "time t (Euler: layers)",
    columns: int = 4,
    measures: Mapping[str, Measure] | None = None,
) -> Chart:
    """One panel a group, in the order in which the groups appear; with `measures`, each on the scale of its measure."""
    panels = []
    for group in dict.fromkeys(curve.group for curve in curves):
        ours = [curve for curve in curves if curve.group == group]
        measure = None if measures is None else measures[group]
        logarithmic = measure is None or measure.is_log
        lines = [
            Line(c.name, c.times, _within(c.mean, logarithmic), low=_within(c.low, logarithmic),
                 high=_within(c.high, logarithmic), count=None if (c.alive == c.members).all() else c.alive,
                 look=c.colour % len(PALETTE) + len(PALETTE) * c.dash)
            for c in ours
        ]  # fmt: skip
        title = group if measure is None else measure.label
        panels.append(Panel(title, lines, y_scale="log" if logarithmic else "linear"))
    return Chart(panels, x_label, y_label, columns=columns, is_shared=measures is None)


def _within(values: np.ndarray, is_log: bool) -> np.ndarray:
    """What a logarithmic axis shows; nan for what leaves its range."""
    if not is_log:
        return np.where(np.isfinite(values), values, np.nan)
    with np.errstate(invalid="ignore"):
        return np.where((values >= SHOWN[0]) & (values <= SHOWN[1]), values, np.nan)


# ---------------------------------------------------------------------- curves
# Which curves each figure of the flows shows, and the rows behind them.

#: Measures drawn in addition to the energy.
OTHERS = ("normalised_energy", "mad", "kernel_distance", "effective_rank")
TITLES = {"euler": "Euler", "flow": "flow"}


def draw_all(run: StudyRun, curves: Index) -> None:
    """The four figures, each with its numbers."""
    s = run.settings
    common = SHEET.text("drawn", nodes=sum(s["sizes"]), s=s)
    at = f"alpha = {s['alpha']:g}, beta = {s['beta']:g} (the authors' initial values), diffusion and GRAND alpha = 1"
    schemes = f"solid: Euler, step {s['step']:g}; dashed: the flow (exact, or Strang with step {s['splitting_step']:g})"
    for name, make, columns, title, caption in (
        ("energy", _energy_curves, 4, "Dirichlet energy at the initial coefficients", f"{at}; {schemes}."),
        ("sweep", _sweep_curves, 5, "Dirichlet energy over the coefficients", f"alpha = {s['alpha']:g}; {schemes}."),
    ):
        drawn, used = _drawn(make(run, curves))
        run.figure(name, curves_chart(drawn, y_label=ENERGY, columns=columns), f"{title}. {caption} {common}", used)
    drawn, used = _drawn(_measure_curves(run, curves))
    caption = f"Other measures of the flows. {at}; baselines dashed. Arithmetic mean for the rank. {common}"
    run.figure("measures", curves_chart(drawn, y_label="measure", measures=MEASURES), caption, used)
    drawn, used = _drawn(_beta_curves(run, curves))
    caption = SHEET.text("energy_beta", s=s, common=common)
    run.figure("energy_beta", curves_chart(drawn, y_label=ENERGY), caption, used)


#: The arguments of `make_curve`: the rows of a curve, its name, its panel, its colour and its dashes.
Wanted = tuple[list[MutableRow], str, str, int, int]
#: Rows of one measure of one flow, by flow, normalisation, start, scheme, kind and measure.
Index = Mapping[tuple[Value, ...], list[MutableRow]]


def _drawn(wanted: Iterable[Wanted]) -> tuple[list[Curve], list[MutableRow]]:
    """The curves of a figure, and all rows behind them."""
    each = list(wanted)
    return [make_curve(*one) for one in each], [row for rows, *_ in each for row in rows]


def indexed(curves: Sequence[MutableRow]) -> Index:
    """The rows of all curves, by what they are curves of."""
    index: dict[tuple[Value, ...], list[MutableRow]] = {}
    for row in curves:
        key = (row["flow"], row["normalisation"], row["start"], row["scheme"], row["kind"], row["measure"])
        index.setdefault(key, []).append(row)
    return index


def _chosen(
    curves: Index, flow: GraphFlow, scheme: str, measure: str, kind: str = "SC", **more: Any
) -> list[MutableRow]:
    return select(curves[flow.name, flow.normalisation, flow.start, scheme, kind, measure], **more)


def _initial(run: StudyRun, flow: GraphFlow) -> dict[str, Any]:
    """The authors' first coefficients; plain diffusion is run as a layer A H, with alpha = 1."""
    return {"alpha": run.settings["alpha"], "beta": run.settings["beta"]} if flow.has_reaction else {"alpha": 1.0}


def _energy_curves(run: StudyRun, curves: Index) -> Iterator[Wanted]:
    """Baselines, linear reactions, classical ones on A_sym, classical ones in their box on A_row."""
    groups = {
        "baselines": BASELINES, "linear reactions, symmetric A": LINEAR,
        "F, AC, Z, symmetric A, from features": CLASSICAL, "F, AC, Z, row-stochastic A, from the box": BOXED,
    }  # fmt: skip
    for group, flows in groups.items():
        for colour, flow in enumerate(flows):
            for dash, scheme in enumerate(SCHEMES):
                rows = _chosen(curves, flow, scheme, "dirichlet_energy", **_initial(run, flow))
                yield rows, f"{flow.name}, {TITLES[scheme]}", group, colour, dash


def _sweep_curves(run: StudyRun, curves: Index) -> Iterator[Wanted]:
    """One panel a reaction, one colour a ratio beta/alpha."""
    alpha = run.settings["alpha"]
    for flow in chain(REACTIONS, BOXED):
        position = "row, box" if flow.start == "box" else "symmetric, features"
        for colour, ratio in enumerate(run.settings["ratios"]):
            for dash, scheme in enumerate(SCHEMES):
                rows = _chosen(curves, flow, scheme, "dirichlet_energy", alpha=alpha, beta=alpha * ratio)
                yield rows, f"β/α {ratio:g}, {TITLES[scheme]}", f"{flow.name} ({position})", colour, dash


def _measure_curves(run: StudyRun, curves: Index) -> Iterator[Wanted]:
    """Flows (not Euler), one panel a measure."""
    for measure in OTHERS:
        for k, flow in enumerate((*BASELINES, *REACTIONS)):
            rows = _chosen(curves, flow, "flow", measure, **_initial(run, flow))
            yield rows, flow.name, measure, k, k // 7 * 2 + (k < 3)


def _beta_curves(run: StudyRun, curves: Index) -> Iterator[Wanted]:
    """One panel a reaction: the scalar and the vector, by Euler first."""
    for flow in REACTIONS:
        for dash, scheme in enumerate(SCHEMES):
            for colour, (kind, beta) in enumerate((("SC", run.settings["beta"]), ("VC", "drawn"))):
                more = {"alpha": run.settings["alpha"], "beta": beta}
                rows = _chosen(curves, flow, scheme, "dirichlet_energy", kind, **more)
                yield rows, f"{kind}, {TITLES[scheme]}", flow.name, colour, dash
