"""What the paper shows about oversmoothing, as flows: energies over time on random graphs, and what holds of it."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.measures.state_measures import MEASURES
from studies.oversmoothing.figures import Curve, curves_figure, make_curve, measures_figure
from studies.oversmoothing.flows import (
    BASELINES,
    BOXED,
    CLASSICAL,
    LINEAR,
    PROFILE,
    REACTIONS,
    SCHEMES,
    Batch,
    EnsembleTrajectory,
    GraphEnsemble,
    GraphFlow,
    solve_flow,
)  # fmt: skip
from studies.oversmoothing.rows import column, curve_rows, end_rows, select, spectrum_rows
from studies.oversmoothing.verdicts import verdicts
from studies.runs.tables import MutableRow, Value

if TYPE_CHECKING:
    from studies.runs.study_run import StudyRun

#: Measures drawn beside the energy.
OTHERS = ("normalised_energy", "mad", "kernel_distance", "effective_rank")
TITLES = {"euler": "Euler", "flow": "flow"}


def settings(small: bool) -> dict[str, Any]:
    """The published settings, the authors' initial coefficients, and the size of the run."""
    text = resources.files("studies").joinpath("data/oversmoothing.toml").read_text(encoding="utf-8")
    raw = tomllib.loads(text)
    return {**raw["published"], **raw["initial"], **raw["small" if small else "full"]}


def run(run: StudyRun) -> None:
    """Solve every flow, draw the energies and the other measures, answer the paper's statements."""
    ensemble = GraphEnsemble.make(run.settings, run.seed, run.device)
    graphs = run.part("spectra", lambda: spectrum_rows(ensemble))
    curves: list[MutableRow] = []
    ends: list[MutableRow] = []
    jobs = [(flow, scheme) for flow in (*BASELINES, *REACTIONS, *BOXED) for scheme in SCHEMES] + [(PROFILE, "flow")]
    for flow, scheme in run.progress(jobs, "flows"):
        for kind in ("SC", "VC") if flow in REACTIONS else ("SC",):
            found, reached = _solved(run, ensemble, flow, scheme, kind)
            curves += found
            ends += reached
    _say_settings(run, graphs)
    _draw(run, _indexed(curves))
    answers = verdicts(ends, graphs, run.settings)
    run.table("ends", _end_table(ends), END_CAPTION)
    for answer in answers:
        run.verdict(answer.statement, answer.answer, answer.evidence)
    run.say("What was found", " ".join(answer.summary for answer in answers if answer.summary))
    run.results(_end_table(ends))


def _solved(
    run: StudyRun, ensemble: GraphEnsemble, flow: GraphFlow, scheme: str, kind: str
) -> tuple[list[MutableRow], list[MutableRow]]:
    """Curves and ends of one flow, solved once, and only where a part is missing."""
    name = f"{flow.key}-{scheme}-{kind}"
    if kind == "SC":
        batch = Batch.scalars(flow, run.settings)
    else:
        batch = Batch.channels(ensemble, run.settings, run.generator(f"beta of {flow.name}"))

    @cache
    def solved() -> EnsembleTrajectory:
        return solve_flow(flow, ensemble, scheme, batch, run.settings)

    found = run.part(f"curves-{name}", lambda: curve_rows(flow, scheme, batch, solved()))
    return found, run.part(f"ends-{name}", lambda: end_rows(flow, scheme, batch, solved()))


# ---------------------------------------------------------------------- figures
def _draw(run: StudyRun, curves: Index) -> None:
    """The four figures, each with its numbers."""
    s = run.settings
    common = (
        f"cSBM of the appendix ({sum(s['sizes'])} nodes, two classes, sigma = {s['sigma']:g}, p = {s['within']:g} and "
        f"{s['between']:g}), {s['graphs']} graphs, T = {s['time']:g}; lines: geometric mean of the members that are "
        "not frozen, bands: 10 to 90 %; pale: some members are frozen, cross: all are; ×k/n in a legend: k of n were "
        "frozen."
    )
    at = f"alpha = {s['alpha']:g}, beta = {s['beta']:g} (the authors' initial values), diffusion and GRAND alpha = 1"
    schemes = f"solid: Euler, step {s['step']:g}; dashed: the flow (exact, or Strang with step {s['splitting_step']:g})"
    for name, make, columns, title, caption in (
        ("energy", _energy_curves, 4, "Dirichlet energy at the initial coefficients", f"{at}; {schemes}."),
        ("sweep", _sweep_curves, 5, "Dirichlet energy over the coefficients", f"alpha = {s['alpha']:g}; {schemes}."),
    ):
        drawn, used = make(run, curves)
        run.figure(name, curves_figure(drawn, ylabel=MEASURES["dirichlet_energy"].latex, title=title, columns=columns),
                   f"{title}. {caption} {common}", used)  # fmt: skip
    drawn, used = _measure_curves(run, curves)
    title = "Other measures of the flows"
    caption = f"{title}. {at}; baselines dashed. Arithmetic mean for the rank. {common}"
    run.figure("measures", measures_figure(drawn, MEASURES, title=title), caption, used)
    drawn, used = _beta_curves(run, curves)
    shaded = curves_figure(
        drawn,
        ylabel=MEASURES["dirichlet_energy"].latex,
        title="A scalar beta (SC) against a vector (VC), Euler",
        shaded=True,
    )
    caption = (
        f"Scalar beta {s['beta']:g} against one per channel, drawn from U({s['beta_low']:g}, {s['beta_high']:g}); "
        f"alpha = {s['alpha']:g}, untrained; solid: Euler, step {s['step']:g}; dashed: the flow. Grey: between the two "
        f"Euler lines. {common}"
    )
    run.figure("energy_beta", shaded, caption, used)


Drawn = tuple[list[Curve], list[MutableRow]]
#: Rows of one measure of one flow, by flow, normalisation, start, scheme, kind and measure.
Index = Mapping[tuple[Value, ...], list[MutableRow]]


def _indexed(curves: Sequence[MutableRow]) -> Index:
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


def _energy_curves(run: StudyRun, curves: Index) -> Drawn:
    """Baselines, linear reactions, classical ones on A_sym, classical ones in their box on A_row."""
    groups = {
        "baselines": BASELINES, "linear reactions, symmetric A": LINEAR,
        "F, AC, Z, symmetric A, from features": CLASSICAL, "F, AC, Z, row-stochastic A, from the box": BOXED,
    }  # fmt: skip
    drawn: list[Curve] = []
    used: list[MutableRow] = []
    for group, flows in groups.items():
        for colour, flow in enumerate(flows):
            for dash, scheme in enumerate(SCHEMES):
                rows = _chosen(curves, flow, scheme, "dirichlet_energy", **_initial(run, flow))
                drawn.append(make_curve(rows, f"{flow.name}, {TITLES[scheme]}", group, colour, dash))
                used += rows
    return drawn, used


def _sweep_curves(run: StudyRun, curves: Index) -> Drawn:
    """One panel a reaction, one colour a ratio beta/alpha."""
    drawn: list[Curve] = []
    used: list[MutableRow] = []
    alpha = run.settings["alpha"]
    for flow in chain(REACTIONS, BOXED):
        place = "row, box" if flow.start == "box" else "symmetric, features"
        for colour, ratio in enumerate(run.settings["ratios"]):
            for dash, scheme in enumerate(SCHEMES):
                rows = _chosen(curves, flow, scheme, "dirichlet_energy", alpha=alpha, beta=alpha * ratio)
                label = f"β/α {ratio:g}, {TITLES[scheme]}"
                drawn.append(make_curve(rows, label, f"{flow.name} ({place})", colour, dash))
                used += rows
    return drawn, used


def _measure_curves(run: StudyRun, curves: Index) -> Drawn:
    """Flows (not Euler), one panel a measure."""
    drawn: list[Curve] = []
    used: list[MutableRow] = []
    for measure in OTHERS:
        for k, flow in enumerate((*BASELINES, *REACTIONS)):
            rows = _chosen(curves, flow, "flow", measure, **_initial(run, flow))
            drawn.append(make_curve(rows, flow.name, measure, k, k // 7 * 2 + (k < 3)))
            used += rows
    return drawn, used


def _beta_curves(run: StudyRun, curves: Index) -> Drawn:
    """One panel a reaction: the scalar and the vector, by Euler first."""
    drawn: list[Curve] = []
    used: list[MutableRow] = []
    for flow in REACTIONS:
        for dash, scheme in enumerate(SCHEMES):
            for colour, (kind, beta) in enumerate((("SC", run.settings["beta"]), ("VC", "drawn"))):
                more = {"alpha": run.settings["alpha"], "beta": beta}
                rows = _chosen(curves, flow, scheme, "dirichlet_energy", kind, **more)
                drawn.append(make_curve(rows, f"{kind}, {TITLES[scheme]}", flow.name, colour, dash))
                used += rows
    return drawn, used


# ---------------------------------------------------------------------- text and table
END_CAPTION = (
    "Where the members ended: medians over the graphs that were not frozen. E_0, E_5, E_T: Dirichlet energy at the "
    "start, after time 5 and at the end; rate: slope of log |H - PH|^2 over the second half; normalised: "
    "tr(H'(D-W)H)/|H|^2."
)


def _end_table(ends: list[MutableRow]) -> list[MutableRow]:
    """Medians over the members, one row per flow, scheme and coefficient."""
    names = ("flow", "normalisation", "start", "method", "kind", "alpha", "beta")
    shown = {
        "E_0": "energy_0", "E_5": "energy_5", "E_T": "energy_T", "rate": "rate", "normalised_0": "normalised_0",
        "normalised_T": "normalised_T", "effective_rank_T": "rank_T", "kernel_distance_T": "kernel_T",
    }  # fmt: skip
    groups: dict[tuple[Any, ...], list[MutableRow]] = {}
    for row in ends:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    table: list[MutableRow] = []
    for key, rows in groups.items():
        kept = [row for row in rows if math.isnan(float(row["failed_at"]))]
        medians: MutableRow = {label: _median(column(kept, name)) for label, name in shown.items()}
        named: MutableRow = dict(zip(names, key, strict=True))
        table.append({**named, "members": len(rows), "frozen": len(rows) - len(kept), **medians})
    return table


def _median(values: np.ndarray) -> float:
    """The median of the numbers that there are, to six digits; NaN without any."""
    there = values[~np.isnan(values)]
    return float(f"{np.median(there):.6g}") if there.size else math.nan


def _say_settings(run: StudyRun, graphs: list[MutableRow]) -> None:
    s = run.settings
    lam2, lam3, top = (column(graphs, name) for name in ("lam2", "lam3", "lam_max"))
    joined = "all" if (column(graphs, "components") == 1).all() else "not all"
    run.say(
        "What is run",
        f"{s['graphs']} contextual stochastic block models as in the paper's appendix; {joined} of them are connected. "
        f"Their L = I - A_sym has lam2 between {lam2.min():.3f} and {lam2.max():.3f}, all other non-zero eigenvalues "
        f"between {lam3.min():.2f} and {top.max():.2f}. The state has {s['channels']} channels and starts at the "
        "features, or in the box: F and Z at their logistic function, AC at their sign times their size cut to "
        f"[1/2, 1]. Euler takes {s['time'] / s['step']:g} steps of {s['step']:g}, like so many layers. The flow beside "
        "it is exact where the equation is linear; elsewhere diffusion and exact reaction alternate (Strang) with step "
        f"{s['splitting_step']:g}. All coefficients and graphs of an equation run as one batch; a member that leaves "
        "1e100 or blows up is frozen and counted. No network is trained: coefficients are swept, and drawn as the "
        "authors' code initialises them.\n\n"
        "GCN stands for its linear part, H <- A H with self-loops; GRAND for diffusion by D^-1 W, which its attention "
        "equals before training.",
    )
