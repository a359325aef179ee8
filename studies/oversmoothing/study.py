"""What the paper shows about oversmoothing, as flows: energies over time on random graphs, and what holds of it."""

from __future__ import annotations

import math
import tomllib
from functools import cache, partial
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.measures.registry import MEASURES
from studies.oversmoothing.coupled_part import coupled_part
from studies.oversmoothing.curves import draw_all, indexed
from studies.oversmoothing.flows import (
    BASELINES,
    BOXED,
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
from studies.oversmoothing.rows import column, curve_rows, end_rows, spectrum_rows
from studies.oversmoothing.verdicts import verdicts
from studies.runs.cell_work import each_cell
from studies.runs.tables import MutableRow

if TYPE_CHECKING:
    from studies.runs.study_run import StudyRun

#: Kinds of coefficients, scalars and one for every channel; the second where a reaction has one.
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
    for _, (found, reached) in each_cell(run, cells, partial(_solved, ensemble=ensemble), "flows"):
        curves += found
        ends += reached
    _say_settings(run, graphs)
    draw_all(run, indexed(curves))
    answers = [*verdicts(ends, graphs, run.settings), *coupled_part(run, ensemble), *networks_part(run, ensemble)]
    run.table("ends", _end_table(ends), END_CAPTION)
    for answer in answers:
        run.verdict(answer.statement, answer.answer, answer.evidence)
    first, *further = [answer.summary for answer in answers if answer.summary]
    run.answer(first)
    run.say("What was found", " ".join(further))
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

    found = run.part(f"curves-{name}", lambda: curve_rows(flow, scheme, batch, solved()))
    return found, run.part(f"ends-{name}", lambda: end_rows(flow, scheme, batch, solved()))


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
        f"Their L = I - A_sym has λ₂ between {lam2.min():.3f} and {lam2.max():.3f}, all other non-zero eigenvalues "
        f"between {lam3.min():.2f} and {top.max():.2f}. The state has {s['channels']} channels and starts at the "
        "features, or in the box: F and Z at their logistic function, AC at their sign times their size cut to "
        f"[1/2, 1]. Euler takes {s['time'] / s['step']:g} steps of {s['step']:g}, like so many layers. The flow beside "
        "it is exact where the equation is linear; elsewhere diffusion and exact reaction alternate (Strang) with step "
        f"{s['splitting_step']:g}. All coefficients and graphs of an equation run as one batch; a member that leaves "
        "1e100 or blows up is frozen and counted. No network is trained: coefficients are swept, and drawn as the "
        "authors' code initialises them.\n\n"
        "Of the flows, GCN stands for its linear part, H <- A H with self-loops; GRAND for diffusion by D^-1 W, which "
        "its attention equals before training. Networks by name are run with the weights they start with.",
    )
