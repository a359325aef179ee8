"""The paper's statements about oversmoothing, tested with flows: energies over time on random graphs."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache, partial
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp
import torch

import rdgraph as rd
from analysis.measures.measure_records import MEASURES, make_measures
from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.language.tree import Kind
from rdgraph.run.lowering.coefficients import valued_letters
from studies.oversmoothing.coupled_part import coupled_part
from studies.oversmoothing.energy_figures import ENERGY, TITLES, Curve, curves_chart, draw_all, indexed
from studies.oversmoothing.flows import (
    BASELINES,
    BOXED,
    CLASSICAL,
    LEVEL,
    LIMIT,
    PROFILE,
    REACTIONS,
    SCHEMES,
    Batch,
    EnsembleTrajectory,
    GraphEnsemble,
    GraphFlow,
    box,
    solve_flow,
)
from studies.oversmoothing.networks_part import networks_part
from studies.oversmoothing.rows import (
    CLOSE,
    GONE,
    SHEET,
    Answer,
    beta_over_alpha,
    by_graph,
    column,
    curve_rows,
    decades,
    end_rows,
    is_unfrozen,
    median,
    median_text,
    select,
    spectrum_rows,
)
from studies.runs.cell_work import each_cell
from studies.runs.tables import MutableRow
from studies.runs.uncertainty import FAILS, HOLDS, UNDECIDED, agreed, decide, interval

if TYPE_CHECKING:
    from studies.runs.study_run import StudyRun


# ---------------------------------------------------------------------- linear verdicts
# The paper's statements about oversmoothing, answered from measured ends and measured spectra.
#
# Every threshold is computed: growth rates from the equations' symbols at the eigenvalues of each graph, plateaus from
# its degrees, modes and signs. Nothing here stores an answer. What an equation does is the same on all graphs or
# undecided; what random coefficients do is counted, and undecided where the interval of the share contains one half.
#
# Statements about the linear reactions: growth rates and borders from symbols, plateaus of the source term.


def growth(name: str, alpha: float, beta: float, graphs: list[MutableRow]) -> np.ndarray:
    """max p(lam_k) over the modes outside the kernel, for every graph (S,).

    The spectrum is lam2, a gap, and a bulk from lam3 to lam_max; p is linear, or concave with its peak below lam3, so
    that the maximum is at one of these three.
    """
    symbol = rd.catalogue[name].symbol().subs({sp.Symbol("alpha"): alpha, sp.Symbol("beta"): beta})
    function = sp.lambdify(sp.Symbol("lam"), symbol, "numpy")
    lam = np.stack([column(graphs, key) for key in ("lam2", "lam3", "lam_max")])
    return np.asarray(np.broadcast_to(np.asarray(function(lam), dtype=float), lam.shape).max(0))


def border(name: str, graphs: list[MutableRow]) -> np.ndarray:
    """The smallest beta/alpha > 0 at which a mode outside the kernel stops decaying, for every graph (S,).

    The symbol is alpha p1(lam) + beta p2(lam), so that a mode with p2 > 0 is neutral at -p1/p2.
    """
    alpha, beta, lam = sp.symbols("alpha beta lam")
    symbol = rd.catalogue[name].symbol()
    parts = (sp.lambdify(lam, sp.diff(symbol, letter), "numpy") for letter in (alpha, beta))
    modes = np.stack([column(graphs, key) for key in ("lam2", "lam3", "lam_max")])
    first, second = (np.broadcast_to(np.asarray(part(modes), dtype=float), modes.shape) for part in parts)
    return np.asarray(np.where(second > 0, -first / np.where(second > 0, second, 1.0), np.inf).min(0))


def bounded(name: str, ends: list[MutableRow], graphs: list[MutableRow]) -> Answer:
    """A linear reaction with scalar coefficients: is the part outside the kernel bounded and away from zero?"""
    rows = select(ends, flow=name, scheme="flow", kind="SC")
    pairs = sorted({(float(r["alpha"]), float(r["beta"])) for r in rows})
    counts = dict.fromkeys(("decays", "grows", "stays"), 0)
    wrong, worst, smoother = 0, 0.0, 0
    for alpha, beta in pairs:
        group = select(rows, alpha=alpha, beta=beta)
        rate, expected = column(group, "rate"), 2 * growth(name, alpha, beta, graphs)
        known = ~np.isnan(rate)
        sign = np.where(np.abs(rate) < 1e-6, 0, np.sign(rate))
        for word, value in (("decays", -1), ("grows", 1), ("stays", 0)):
            counts[word] += int((sign[known] == value).sum())
        wrong += int((sign != np.where(np.abs(expected) < 1e-9, 0, np.sign(expected)))[known].sum())
        worst = max(worst, float(np.abs(rate - expected)[known].max(initial=0.0)))
        less = column(group, "normalised_T") < 0.5 * column(group, "normalised_0")
        smoother += int((less & (sign > 0)).sum())
    neutral = [pair for pair in pairs if np.allclose(growth(name, *pair, graphs), 0, atol=1e-9)]
    stays = list(dict.fromkeys(f"{beta / alpha:g}" for alpha, beta in neutral))
    answer = f"holds if beta/alpha = {' or '.join(stays)}" if stays and counts["stays"] else FAILS
    answer = UNDECIDED if wrong or worst > CLOSE else answer
    ratios = border(name, graphs)
    where = f"the border beta/alpha lies between {ratios.min():.3f} and {ratios.max():.3f}; "
    if smoother:
        where += f"{smoother} members grow while their normalised energy falls below half of its start; "
    return Answer.of(
        SHEET, "linear", answer, name=name, members=sum(counts.values()), counts=counts, where=where,
        predicted=sum(counts.values()) - wrong, worst=worst,
        ending=", except on the border between the two." if stays else ".",
    )  # fmt: skip


def source_plateau(ends: list[MutableRow], graphs: list[MutableRow], settings: Mapping[str, Any]) -> Answer:
    """ST: tr(H'LH) -> (beta/alpha)^2 sum_k c_k^2/lam_k."""
    alpha, beta = settings["alpha"], settings["beta"]
    rows = select(ends, flow="ST", scheme="flow", kind="SC", alpha=alpha, beta=beta)
    share = column(rows, "laplacian_T") / ((beta / alpha) ** 2 * column(graphs, "source"))
    close = bool((np.abs(share - 1) < CLOSE).all())
    return Answer.of(
        SHEET, "source plateau", HOLDS if close else UNDECIDED, alpha=alpha, beta=beta, least_share=share.min(),
        most_share=share.max(), graphs=len(rows),
    )  # fmt: skip


def source_normalised(ends: list[MutableRow], settings: Mapping[str, Any]) -> Answer:
    """ST: the kernel component grows like 1 + beta t, so E/|H|^2 falls."""
    rows = select(ends, flow="ST", scheme="flow", kind="SC", alpha=settings["alpha"], beta=settings["beta"])
    share = column(rows, "normalised_T") / column(rows, "normalised_0")
    return Answer.of(
        SHEET, "source size", agreed(share >= 0.5), median_share=median_text(share), least_share=share.min(),
        most_share=share.max(),
    )  # fmt: skip


# ---------------------------------------------------------------------- classical verdicts
# Statements about F, AC and Z: sign patterns, collapse, profiles, and reactions too weak to matter.

_H = sp.Symbol("h", real=True)


def sign_patterns(ends: list[MutableRow], graphs: list[MutableRow]) -> Answer:
    """AC with row-stochastic diffusion: signs that start at size >= `LEVEL` persist where the reaction is strong."""
    strong = persistence("AC", LEVEL)
    rows = select(ends, flow="AC", normalisation="row", start="box", scheme="flow")
    cut = column(graphs, "cut")
    stored: dict[float, float] = {}
    for ratio in sorted({beta_over_alpha(r) for r in rows}):
        group = [r for r in rows if beta_over_alpha(r) == ratio]
        floor = np.tile(cut, len(group) // len(cut))
        stored[ratio] = float((column(group, "energy_least") / floor).min())
    proven = [value for ratio, value in stored.items() if ratio >= strong]
    lost = [f"{ratio:g}" for ratio, value in stored.items() if value < 1]
    holds = bool(proven) and min(proven) >= 1
    answer = (f"holds if beta >= {strong:g} alpha" if lost else HOLDS) if holds else FAILS
    words = ", ".join(f"{value:.2g} at beta/alpha = {ratio:g}" for ratio, value in stored.items())
    return Answer.of(
        SHEET, "sign patterns", answer, level=LEVEL, words=words, strong=strong,
        ending=f"; it was lost at beta/alpha = {', '.join(lost)}." if lost else ".",
    )  # fmt: skip


def persistence(name: str, level: float) -> float:
    """The least beta/alpha for which no entry of size >= level changes sign, for any states of its neighbours.

    At h = level diffusion takes at most alpha (level - lower), lower the bottom of the invariant box, and the reaction
    gives beta r(level); sharp for Allen-Cahn.
    """
    return (level - box(name)[0]) / float(_reaction(name).subs(_H, level))


def collapse(name: str, ends: list[MutableRow]) -> Answer:
    """F and Z with row-stochastic diffusion from inside [0, 1]: all trajectories tend to a constant."""
    rows = select(ends, flow=name, normalisation="row", start="box", scheme="flow")
    share = column(rows, "energy_T") / column(rows, "energy_0")
    raw = select(ends, flow=name, start="features", scheme="flow", kind="SC")
    frozen = int((~np.isnan(column(raw, "failed_at"))).sum())
    return Answer.of(
        SHEET, "collapse", FAILS if (share < GONE).all() else UNDECIDED if (share < 0.5).any() else HOLDS, name=name,
        most_share=share.max(), median_share=median_text(share), members=len(rows), frozen=frozen, raw=len(raw),
        outside=" and blows up from outside." if frozen else ".",
    )  # fmt: skip


def profile(ends: list[MutableRow]) -> Answer:
    """F with A_sym from inside the box: energy is left, but both channels end in the same profile."""
    rows = select(ends, flow="F", normalisation="symmetric", start="box", scheme="flow")
    strong = [r for r in rows if beta_over_alpha(r) >= 1]
    energy, rank = column(strong, "energy_T"), column(strong, "rank_T")
    return Answer.of(
        SHEET, "profile", agreed(rank[energy > 0] - 1 >= GONE), least_energy=energy.min(), most_energy=energy.max(),
        rank=max(rank.max() - 1, 0),
    )  # fmt: skip


def small_reactions(ends: list[MutableRow], graphs: list[MutableRow], settings: Mapping[str, Any]) -> Answer:
    """E -> 0 where beta nu < alpha lam2, with nu = sup r' on the box: F 1, AC 1, Z 1/3."""
    lam2 = column(graphs, "lam2")
    checked = exceeded = 0
    span = settings["time"] / 2
    for name, slope in _slopes().items():
        for row in select(ends, flow=name, normalisation="row", start="box", scheme="flow"):
            bound = 2 * (float(row["beta"]) * slope - float(row["alpha"]) * lam2[int(row["graph"])])
            if bound < 0 and not np.isnan(float(row["energy_T"])):
                measured = decades(row["energy_T"], row["energy_half"]) * np.log(10) / span
                checked, exceeded = checked + 1, exceeded + int(measured > bound * (1 - 1e-2))
    return Answer.of(
        SHEET, "small reactions", UNDECIDED if not checked else HOLDS if not exceeded else FAILS, checked=checked,
        slower=checked - exceeded,
    )  # fmt: skip


def _slopes() -> dict[str, float]:
    """sup r' over the invariant box, from the reaction's own expression with beta = 1."""
    result = {}
    for flow in CLASSICAL:
        slope = sp.diff(_reaction(flow.system), _H)
        result[flow.name] = float(sp.maximum(slope, _H, sp.Interval(*map(int, box(flow.system)))))
    return result


def _reaction(name: str) -> sp.Expr:
    """r(h) with beta = 1: the equation on states that diffusion leaves alone."""
    reaction = rd.catalogue[name].structure.scalar_field(_H, _H)
    return reaction.xreplace(dict.fromkeys(reaction.free_symbols - {_H}, sp.S.One))


# ---------------------------------------------------------------------- verdicts
def verdicts(ends: list[MutableRow], graphs: list[MutableRow], settings: Mapping[str, Any]) -> list[Answer]:
    """Every statement with its answer, in the order of the paper."""
    return [
        gcn_decay(ends, graphs),
        constants(ends, graphs),
        grand_delay(ends, graphs),
        *(bounded(name, ends, graphs) for name in ("BS", "FB", "FB*")),
        source_plateau(ends, graphs, settings),
        source_normalised(ends, settings),
        sign_patterns(ends, graphs),
        *(collapse(name, ends) for name in ("F", "Z")),
        profile(ends),
        small_reactions(ends, graphs, settings),
        *(vectors(name, ends, settings) for name in ("F", "AC", "ST", "FB")),
        euler_is_flow(ends, graphs, settings),
    ]


# ---------------------------------------------------------------------- baselines
def gcn_decay(ends: list[MutableRow], graphs: list[MutableRow]) -> Answer:
    """GCN without weights: does the energy reach zero, or the plateau of sqrt(d)?"""
    rows = select(ends, flow="GCN", scheme="euler")
    first, fifth, last = (column(rows, f"energy_{k}") for k in ("0", "5", "T"))
    plateau = column(graphs, "plateau_loops")
    off = np.abs(last / plateau - 1).max()
    return Answer.of(
        SHEET, "gcn", agreed(last < 1e-08 * first), all_rows=len(rows), median_first=median_text(first),
        median_fifth=median_text(fifth), median_last=median_text(last), median_plateau=median_text(plateau), off=off,
        factor=median_text(first / last),
    )  # fmt: skip


def constants(ends: list[MutableRow], graphs: list[MutableRow]) -> Answer:
    """Diffusion: E -> 0 for which operator?"""
    rows = select(ends, flow="diffusion", scheme="flow", alpha=1.0)
    row = select(ends, flow="GRAND", scheme="flow", alpha=1.0)
    share = column(rows, "energy_T") / column(graphs, "plateau")
    expected = -2 * column(graphs, "lam2")
    off = np.abs(column(row, "rate") / expected - 1).max()
    end = column(row, "energy_T")
    stays = bool((share > 0.5).all())
    decays = bool(off < CLOSE)
    answer = "holds if A is row-stochastic" if stays and decays else HOLDS if decays else UNDECIDED
    return Answer.of(
        SHEET, "constants", answer, least_share=share.min(), most_share=share.max(), off=off,
        median_end=median_text(end),
    )  # fmt: skip


def grand_delay(ends: list[MutableRow], graphs: list[MutableRow]) -> Answer:
    """Diffusivity only rescales time."""
    slow, fast = (column(select(ends, flow="GRAND", scheme="flow", alpha=a), "rate") for a in (0.5, 1.0))
    ratio = slow / fast
    return Answer.of(
        SHEET, "grand", agreed((slow < 0) & (slow > fast)), median_fast=median_text(fast),
        median_slow=median_text(slow), least_ratio=ratio.min(), most_ratio=ratio.max(),
    )  # fmt: skip


# ---------------------------------------------------------------------- vectors and Euler
def vectors(name: str, ends: list[MutableRow], settings: Mapping[str, Any]) -> Answer:
    """beta as a vector, drawn, against the scalar: who has more energy at the end of Euler's steps?"""
    both = select(ends, flow=name, start="features", scheme="euler", alpha=settings["alpha"])
    scalar = {r["graph"]: r for r in select(both, kind="SC", beta=settings["beta"])}
    drawn = select(both, kind="VC")
    alive = [r for r in drawn if is_unfrozen(r) and is_unfrozen(scalar[r["graph"]])]
    more = np.array([float(r["energy_T"]) > float(scalar[r["graph"]]["energy_T"]) for r in alive], dtype=bool)
    lost = f"{sum(not is_unfrozen(r) for r in drawn)} of {len(drawn)} VC and "
    lost += f"{sum(not is_unfrozen(r) for r in scalar.values())} of {len(scalar)} SC"
    low, high = interval(int(more.sum()), len(more))
    return Answer.of(
        SHEET, "vectors", decide(more), name=name, more=int(more.sum()), all=len(more), low=low, high=high, lost=lost
    )


def euler_is_flow(ends: list[MutableRow], graphs: list[MutableRow], settings: Mapping[str, Any]) -> Answer:
    """How many members Euler loses that the flow keeps, and how far the energies are apart."""
    words, differ = [], 0
    for name in (flow.name for flow in REACTIONS):
        runs = [select(ends, flow=name, start="features", scheme=scheme, kind="SC") for scheme in SCHEMES]
        lost = [sum(not is_unfrozen(row) for row in rows) for rows in runs]
        both = ((euler, flow) for euler, flow in zip(*runs, strict=True) if is_unfrozen(euler) and is_unfrozen(flow))
        far = max((abs(decades(euler["energy_T"], flow["energy_T"])) for euler, flow in both), default=float("nan"))
        differ += lost[0] != lost[1] or far > 1
        factor = "" if np.isnan(far) else f", energies up to a factor {10**far:.2g} apart"
        words.append(f"{name}: frozen {lost[0]} by Euler, {lost[1]} by the flow{factor}")
    limit = np.sqrt(1 + 2 / (settings["step"] * settings["beta"]))
    return Answer.of(
        SHEET, "euler", FAILS if differ else HOLDS, words="; ".join(words), limit=limit, settings=settings,
        largest=column(graphs, "largest").min(), differ=differ,
    )  # fmt: skip


# ---------------------------------------------------------------------- own part
# An equation that the user gives, in the study of oversmoothing: its energy on the same graphs, Euler and flow.


def equation_part(run: StudyRun, ensemble: GraphEnsemble) -> list[Answer]:
    """The energies of the equation in the settings, drawn, and what becomes of them; nothing where there is none."""
    text = str(run.settings.get("equation", ""))
    if not text:
        return []
    rows = run.part("own-equation", partial(equation_rows, text, ensemble, run.settings))
    run.equation(str(rd.parse(text)), "the equation that was given")
    chosen = {scheme: select(rows, scheme=scheme) for scheme in SCHEMES}
    curves = [
        Curve.over(TITLES[scheme], ENERGY, np.unique(column(part, "t")), by_graph(part, "energy"), k)
        for k, (scheme, part) in enumerate(chosen.items())
    ]
    caption = SHEET.text("own equation", text=text)
    run.figure("own_equation", curves_chart(curves, y_label=ENERGY, columns=1), caption, rows)
    return [_answer(text, scheme, part) for scheme, part in chosen.items()]


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


def _answer(text: str, scheme: str, rows: list[MutableRow]) -> Answer:
    """Does the energy vanish?"""
    energy = by_graph(rows, "energy")
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
    for name in dict.fromkeys(flow.name for flow in REACTIONS):
        run.equation(name)
    answers = [*verdicts(ends, graphs, run.settings), *coupled_part(run, ensemble), *networks_part(run, ensemble)]
    answers += equation_part(run, ensemble)
    run.table("ends", _end_table(ends), SHEET.text("ends"))
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
    run.say("What is run", SHEET.text(
        "about", s=s, joined=joined, least_lam2=lam2.min(), most_lam2=lam2.max(), least_lam3=lam3.min(),
        most_top=top.max(), layers=s["time"] / s["step"],
    ))  # fmt: skip
