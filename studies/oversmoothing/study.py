"""The paper's statements about oversmoothing, tested with flows: energies over time on random graphs."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache, partial
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

import rdgraph as rd
from analysis.measures.measure_records import MEASURES, make_measures
from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.language.tree import Kind
from rdgraph.run.lowering.coefficients import valued_letters
from studies.oversmoothing.coupled_part import coupled_part
from studies.oversmoothing.energy_figures import ENERGY, Curve, curves_chart, draw_all, indexed
from studies.oversmoothing.flows import (
    BASELINES,
    BOXED,
    LIMIT,
    PROFILE,
    REACTIONS,
    SCHEMES,
    Batch,
    EnsembleTrajectory,
    GraphEnsemble,
    GraphFlow,
    solve_flow,
)
from studies.oversmoothing.networks_part import networks_part
from studies.oversmoothing.rows import (
    GONE,
    Answer,
    column,
    curve_rows,
    end_rows,
    median,
    median_text,
    select,
    spectrum_rows,
)
from studies.oversmoothing.verdicts import verdicts
from studies.runs.cell_work import each_cell
from studies.runs.tables import MutableRow
from studies.runs.uncertainty import decide

if TYPE_CHECKING:
    from studies.runs.study_run import StudyRun


# ---------------------------------------------------------------------- own part
# An equation that the user gives, in the study of oversmoothing: its energy on the same graphs, Euler and flow.

TITLES = {"euler": "Euler", "flow": "flow"}


def equation_part(run: StudyRun, ensemble: GraphEnsemble) -> list[Answer]:
    """The energies of the equation in the settings, drawn, and what becomes of them; nothing where there is none."""
    text = str(run.settings.get("equation", ""))
    if not text:
        return []
    rows = run.part("own-equation", partial(equation_rows, text, ensemble, run.settings))
    run.equation(str(rd.parse(text)), "the equation that was given")
    curves = [_curve(k, select(rows, scheme=scheme), scheme) for k, scheme in enumerate(SCHEMES)]
    caption = f"{text} on the same graphs, from the features. Lines: medians over the graphs, bands: 10 to 90 %."
    run.figure("own_equation", curves_chart(curves, y_label=ENERGY, columns=1), caption, rows)
    return [_answer(text, scheme, select(rows, scheme=scheme)) for scheme in SCHEMES]


def equation_rows(text: str, ensemble: GraphEnsemble, settings: Mapping[str, Any]) -> list[MutableRow]:
    """The Dirichlet energy on every graph at every time; nan from where a state has left the finite numbers.

    alpha and beta have the values of the settings; other coefficients raise InvalidArgument.
    """
    system = rd.parse(text)
    if system.is_noisy or len(system.fields) > 1:
        raise NotApplicable(f"expected an equation of one field without noise, got {text}; give one such equation")
    known = {"alpha": float(settings["alpha"]), "beta": float(settings["beta"])}
    letters = valued_letters(system)
    if others := [n for n, kind in letters.items() if n not in known or kind is not Kind.SCALAR]:
        raise InvalidArgument(f"{', '.join(others)} has no value; write numbers into the equation")
    field = rd.lower(system, ensemble.operator("symmetric"), {n: known[n] for n in letters}, batch=(len(ensemble),))
    measure = make_measures(plain=ensemble.operator("none"), names=("dirichlet_energy",))["dirichlet_energy"]
    times = torch.tensor(settings["saves"], dtype=torch.float64)
    rows: list[MutableRow] = []
    for scheme, options in (("euler", {"method": "euler", "step": settings["step"]}), ("flow", {"method": "auto"})):
        done = rd.solve(field, ensemble.features, times, limit=LIMIT, **options)
        lost = times[:, None] > done.failed_at.cpu()[None]
        energy = torch.where(lost, torch.nan, measure(done.states).double().cpu())
        rows += [
            {"scheme": scheme, "graph": graph, "t": float(t), "energy": float(energy[k, graph])}
            for k, t in enumerate(times)
            for graph in range(len(ensemble))
        ]
    return rows


def _energies(rows: list[MutableRow]) -> np.ndarray:
    """(times, graphs)."""
    return column(rows, "energy").reshape(-1, 1 + max(int(row["graph"]) for row in rows))


def _curve(number: int, rows: list[MutableRow], scheme: str) -> Curve:
    return Curve.over(TITLES[scheme], "Dirichlet energy", np.unique(column(rows, "t")), _energies(rows), number)


def _answer(text: str, scheme: str, rows: list[MutableRow]) -> Answer:
    """Does the energy vanish?"""
    energy = _energies(rows)
    share = energy[-1] / energy[0]
    there = np.isfinite(share)
    statement = f"{text}, {TITLES[scheme]}: the Dirichlet energy vanishes"
    evidence = (
        f"at most {GONE:g} of the first energy remains on {int((share[there] <= GONE).sum())} of {len(share)} graphs "
        f"({int((~there).sum())} have left the finite numbers); median E_T/E_0 {median_text(share)}"
    )
    return Answer(statement, decide(share[there] <= GONE) if there.any() else "undecided", evidence)


# ---------------------------------------------------------------------- study
#: Outcomes of verdicts in the answer.
KINDS_OF = ("holds", "fails", "undecided")
#: Kinds of coefficients: scalars, and one per channel for reactions.
KINDS = ("SC", "VC")


def settings(small: bool) -> dict[str, Any]:
    """The published settings, the authors' initial coefficients, the size of the run, and what is measured."""
    text = resources.files("studies").joinpath("data/oversmoothing.toml").read_text(encoding="utf-8")
    raw = tomllib.loads(text)
    sizes = raw["small" if small else "full"]
    return {**raw["published"], **raw["initial"], **raw["networks"], **sizes, "measures": list(MEASURES)}


def run(run: StudyRun) -> None:
    """Solve every flow, draw the energies and the other measures, answer the paper's statements."""
    ensemble = GraphEnsemble.make(run.settings, run.seed, run.device)
    graphs = run.part("spectra", lambda: spectrum_rows(ensemble))
    curves: list[MutableRow] = []
    ends: list[MutableRow] = []
    jobs = [(flow, scheme) for flow in (*BASELINES, *REACTIONS, *BOXED) for scheme in SCHEMES] + [(PROFILE, "flow")]
    cells = [(flow, scheme, kind) for flow, scheme in jobs for kind in KINDS[: 1 + (flow in REACTIONS)]]
    for _, (result, reached) in each_cell(run, cells, partial(_solved, ensemble=ensemble), "flows"):
        curves += result
        ends += reached
    _say_settings(run, graphs)
    draw_all(run, indexed(curves))
    answers = [*verdicts(ends, graphs, run.settings), *coupled_part(run, ensemble), *networks_part(run, ensemble)]
    answers += equation_part(run, ensemble)
    run.table("ends", _end_table(ends), END_CAPTION)
    for answer in answers:
        run.verdict(answer.statement, answer.answer, answer.evidence)
    run.answer(answer_text(answers), "energy")
    run.say("What was found", " ".join(answer.summary for answer in answers if answer.summary))
    run.results(_end_table(ends))


def _solved(
    run: StudyRun, cell: tuple[GraphFlow, str, str], *, ensemble: GraphEnsemble
) -> tuple[list[MutableRow], list[MutableRow]]:
    """Curves and ends of one flow, solved once, and only where a part is missing."""
    flow, scheme, kind = cell
    name = f"{flow.key}-{scheme}-{kind}"
    if kind == "SC":
        batch = Batch.scalars(flow, run.settings)
    else:
        batch = Batch.channels(ensemble, run.settings, run.generator(f"beta of {flow.name}"))

    @cache
    def solved() -> EnsembleTrajectory:
        return solve_flow(flow, ensemble, scheme, batch, run.settings)

    result = run.part(f"curves-{name}", lambda: curve_rows(flow, scheme, batch, solved()))
    return result, run.part(f"ends-{name}", lambda: end_rows(flow, scheme, batch, solved()))


# ---------------------------------------------------------------------- text and table
def answer_text(answers: Sequence[Answer]) -> str:
    """For which reactions the energy stays bounded and away from zero, and how many reactions Euler distorts."""
    bounded = [answer for answer in answers if "can be bounded in time" in answer.statement]
    names = {kind: [a.statement.partition(":")[0] for a in bounded if a.answer.startswith(kind)] for kind in KINDS_OF}
    conditional = [f"{a.statement.partition(':')[0]} ({a.answer})" for a in bounded if a.answer.startswith("holds if")]
    always = [name for name in names["holds"] if not any(text.startswith(f"{name} (") for text in conditional)]
    parts = [f"under a condition for {', '.join(conditional)}"] if conditional else []
    parts += [f"for no coefficients with {', '.join(names['fails'])}"] if names["fails"] else []
    parts += [f"undecided for {', '.join(names['undecided'])}"] if names["undecided"] else []
    euler = answers[-1] if not answers else next((a for a in answers if a.statement.startswith("Euler's method")), None)
    first = f"The flow keeps the energy bounded and away from zero for {', '.join(always) or 'no reaction alone'}"
    return f"{'; '.join([first, *parts])}. {euler.summary if euler else ''}".strip()


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
        stored = [row for row in rows if math.isnan(float(row["failed_at"]))]
        medians: MutableRow = {label: median(column(stored, name)) for label, name in shown.items()}
        named: MutableRow = dict(zip(names, key, strict=True))
        table.append({**named, "members": len(rows), "frozen": len(rows) - len(stored), **medians})
    return table


def _say_settings(run: StudyRun, graphs: list[MutableRow]) -> None:
    s = run.settings
    lam2, lam3, top = (column(graphs, name) for name in ("lam2", "lam3", "lam_max"))
    joined = "all" if (column(graphs, "components") == 1).all() else "not all"
    run.say(
        "What is run",
        f"{s['graphs']} contextual stochastic block models as in the paper's appendix; {joined} of them are connected. "
        f"Their L = I - A_sym has λ₂ between {lam2.min():.3f} and {lam2.max():.3f}, all other non-zero eigenvalues "
        f"between {lam3.min():.2f} and {top.max():.2f}. The state has {s['channels']} channels and starts at the "
        "features, or in the box: F and Z at their logistic function, AC at their sign times their size cut to "
        f"[1/2, 1]. Euler takes {s['time'] / s['step']:g} steps of {s['step']:g}, one per layer. The flow is "
        "exact for linear equations; for others diffusion and exact reaction alternate (Strang) with step "
        f"{s['splitting_step']:g}. All coefficients and graphs of an equation run as one batch; a member that leaves "
        "1e100 or blows up is frozen and counted. No network is trained: coefficients are swept, and drawn as the "
        "authors' code initialises them.\n\n"
        "Of the flows, GCN stands for its linear part, H <- A H with self-loops; GRAND for diffusion by D^-1 W, which "
        "its attention equals before training. Networks by name are run with the weights they start with.",
    )
