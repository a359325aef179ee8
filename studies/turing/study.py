"""Turing patterns on graphs: unstable modes predicted from the spectrum, and a simulated plane of coefficients."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from importlib import resources
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.optimize import brentq

import rdgraph as rd
from analysis.figure_files import PALETTE, plain
from rdgraph.theory.patterns.thresholds import Threshold
from studies.runs.cell_work import each_cell
from studies.runs.chart import Chart, Line, Panel
from studies.runs.chart_figures import write_frames
from studies.runs.study_run import StudyRun
from studies.runs.tables import MutableRow, Row
from studies.runs.uncertainty import FAILS, HOLDS, UNDECIDED
from studies.runs.word_sheets import WordSheet
from studies.stability.deviations import (
    LINEAR,
    START,
    fitted,
    measure_deviations,
    noise,
    solve_members,
    start_states,
    step_of,
)
from studies.stability.named_graph import lattice_shape
from studies.stability.plane import PlaneCase, read_cases, read_values
from studies.stability.plane_rows import (
    CLASSES,
    COLOURS,
    PlanePrediction,
    class_codes,
    disagreements,
    hatch_members,
    member_rows,
    mesh,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# ---------------------------------------------------------------------- figures
# Pictures of the study of Turing patterns: planes, dispersion, patterns on lattices and networks, an animation.


def plane_figure(case: PlaneCase, rows: Sequence[Row]) -> Figure:
    """Predicted classes, simulated ones with the members near a border hatched and disagreements marked, and rates."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    figure = Figure(figsize=(13.5, 4.9), layout="constrained")
    panels = figure.subplots(1, 3)
    for panel, name in zip(panels, ("predicted", "measured"), strict=False):
        mesh(panel, case, [str(row[name]) for row in rows])
        panel.set_title("predicted from P(λ) on the graph" if name == "predicted" else "simulated", fontsize=11)
    near = np.array([1.0 - float(row["away"]) for row in rows]).reshape(case.shape)
    hatch_members(panels[1], case, near > 0)
    wrong = [row for row in rows if row["away"] and not row["agrees"]]
    panels[1].plot(
        [float(row[case.across.name]) for row in wrong], [float(row[case.up.name]) for row in wrong], "kx", ms=5
    )
    _rates(panels[2], rows)
    shown = [name for name in COLOURS if any(name in (row["predicted"], row["measured"]) for row in rows)]
    handles: list[Patch | Line2D] = [Patch(color=COLOURS[name], label=name) for name in shown]
    handles.append(Patch(facecolor="none", edgecolor="black", hatch="////", label="near a border, left out"))
    handles.append(Line2D([], [], color="black", marker="x", ls="", label=f"disagrees ({len(wrong)})"))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False)
    figure.suptitle(plain(f"{case.label} on {case.graph_text}, L of normalisation {case.normalisation}"), fontsize=12)
    return figure


def _rates(panel: Axes, rows: Sequence[Row]) -> None:
    """Measured against predicted rates of the part that is not constant."""
    away = [row for row in rows if row["away"]]
    pairs = np.array([(float(r["rate_beyond_0"]), float(r["measured_beyond_0"])) for r in away]).reshape(-1, 2)
    panel.plot(pairs[:, 0], pairs[:, 1], ".", ms=3, color=PALETTE[0], rasterized=True)
    if len(pairs):
        ends = [float(np.nanmin(pairs)), float(np.nanmax(pairs))]
        panel.plot(ends, ends, "-", lw=0.8, color="black")
    panel.axhline(0, color="0.7", lw=0.8, zorder=0)
    panel.axvline(0, color="0.7", lw=0.8, zorder=0)
    panel.set_xlabel("predicted rate of the fastest mode, λ > 0")
    panel.set_ylabel("measured rate of the deviation outside the kernel")
    panel.set_title("growth while small, all modes together", fontsize=11)


def dispersion_chart(case: PlaneCase, rows: Sequence[Row]) -> Chart:
    """Growth over lam, one curve per value of the first axis, the eigenvalues of the graph marked on it."""
    name = case.across.name
    rates = [float(row["rate"]) for row in rows]
    floor = min(-1.5 * abs(max(rates)), 0.2 * float(np.median(rates)))
    lines: list[Line] = []
    for k, value in enumerate(dict.fromkeys(float(row[name]) for row in rows)):
        group = [row for row in rows if float(row[name]) == value]
        for flag, style, words in ((0, "line", ""), (1, "dots", ", on the graph")):
            chosen = [r for r in group if r["is_eigenvalue"] == flag and float(r["rate"]) >= floor]
            lines.append(Line.of(f"{name} = {value:.4g}{words}", chosen, "lam", "rate", style=style, look=k + 7 * flag))
    title = f"{case.label} on {case.graph_text}"
    return Chart(
        [Panel(title, lines, {"neither grows nor decays": 0.0})], "λ, eigenvalue of L", "growth rate", columns=1
    )


def pattern_figure(case: PlaneCase, rows: Sequence[Row]) -> Figure:
    """The final state: an image on a lattice; on a network the nodes in the order of their degrees, and a mode."""
    from matplotlib.figure import Figure

    shape, fields = lattice_shape(case.graph_text), case.system.fields
    if shape is not None:
        figure = Figure(figsize=(4.3 * len(fields), 4.0), layout="constrained")
        for panel, name in zip(figure.subplots(1, len(fields), squeeze=False)[0], fields, strict=True):
            values = np.reshape([float(row[name]) for row in rows], shape)
            image = panel.imshow(values, cmap="viridis", interpolation="nearest")
            panel.set(xticks=[], yticks=[])
            panel.set_title(plain(f"{name} at the end"), fontsize=11)
            figure.colorbar(image, ax=panel, shrink=0.85)
        return figure
    ordered = sorted(rows, key=lambda row: (-float(row["degree"]), int(row["node"])))
    figure = Figure(figsize=(11.5, 6.2), layout="constrained")
    panels = figure.subplots(2, 2, height_ratios=[1, 1])
    position = np.arange(len(ordered))
    columns = (
        ("degree", "degree"),
        ("mode", "fastest growing mode"),
        *((name, f"{name} at the end") for name in fields[:2]),
    )
    for k, (panel, (name, title)) in enumerate(zip(panels.flat, columns, strict=False)):
        panel.plot(position, [float(row[name]) for row in ordered], ".", ms=3, color=PALETTE[k])
        panel.set_title(plain(title), fontsize=11)
        panel.set_xlabel("node, in falling order of its degree")
    if len(columns) < panels.size:
        panels.flat[-1].set_visible(False)
    panels.flat[0].set_yscale("log")
    return figure


def write_pattern_animation(path: Path, case: PlaneCase, times: Iterable[float], states: np.ndarray) -> None:
    """A gif of the first field: the lattice, or the nodes in the order of their degrees; one scale for all frames."""
    from matplotlib.figure import Figure

    shape, first = lattice_shape(case.graph_text), states[:, :, 0]
    low, high = float(first.min()), float(first.max())
    order = np.argsort(-case.graph.degree, kind="stable")
    figure = Figure(figsize=(4.6, 4.2) if shape else (6.4, 3.6), dpi=90)
    panel = figure.subplots()

    def show(t: float, state: np.ndarray) -> None:
        panel.clear()
        if shape:
            panel.imshow(state.reshape(shape), cmap="viridis", vmin=low, vmax=high, interpolation="nearest")
            panel.set(xticks=[], yticks=[])
        else:
            panel.plot(state[order], ".", ms=3, color=PALETTE[0])
            panel.set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))
            panel.set_xlabel("node, in falling order of its degree")
        panel.set_title(plain(f"{case.label}: {case.system.fields[0]} at t = {t:.3g}"), fontsize=11)

    write_frames(path, figure, starmap(show, zip(times, first, strict=True)))


# ---------------------------------------------------------------------- verdicts
# What the study of Turing patterns answers, from its rows.

SHEET = WordSheet("turing")
#: Largest relative difference of a measured and a predicted growth rate.
CLOSE = 0.01
#: A pattern differs between nodes by more than this share of the field, and moves by less than that.
PATTERNED, STILL = 0.05, 0.01


def judge_plane(run: StudyRun, case: PlaneCase, rows: Sequence[Row]) -> None:
    """Do the predicted unstable modes decide what a simulation does, away from the border?"""
    away = [row for row in rows if row["away"]]
    wrong = disagreements(list(rows))
    counts = Counter(str(row["predicted"]) for row in away)
    answer = UNDECIDED if not away else FAILS if wrong else HOLDS
    run.verdict(*SHEET.verdict(
        "plane", answer, case=case, away=len(away), rows=len(rows), wrong=len(wrong), border=run.settings["border"],
        share=1 - len(wrong) / len(away) if away else float("nan"),
        everywhere=sum(int(row["agrees"]) for row in rows) / len(rows),
        counts=", ".join(f"{counts[name]} {name}" for name in dict.fromkeys(str(row["predicted"]) for row in rows)),
    ))  # fmt: skip


def judge_growth(run: StudyRun, case: PlaneCase, rows: Sequence[Row]) -> None:
    """Are growth rates of single modes as predicted?"""
    differences = np.array([float(row["difference"]) for row in rows])
    answer = UNDECIDED if not len(rows) else HOLDS if (differences < CLOSE).all() else FAILS
    run.verdict(*SHEET.verdict(
        "growth", answer, case=case, rows=len(rows), close=CLOSE, within=sum(differences < CLOSE),
        largest=f"{differences.max():.2e}" if len(rows) else "nan",
    ))  # fmt: skip


def judge_pattern(run: StudyRun, case: PlaneCase, rows: Sequence[Row], growth: float, at_zero: float) -> None:
    """Does the reference member end in a pattern that stays?"""
    first = case.system.fields[0]
    values = np.array([float(row[first]) for row in rows])
    moved = max(float(row[f"{first}_moved"]) for row in rows)
    spread, size = float(values.max() - values.min()), float(np.abs(values).mean())
    patterned, still = spread > PATTERNED * size, moved < STILL * size
    expected = growth > 0 > at_zero
    answer = UNDECIDED if not (expected and still) else HOLDS if patterned else FAILS
    run.verdict(*SHEET.verdict(
        "pattern", answer, case=case, numbers=_numbers(case), growth=growth, at_zero=at_zero, first=first,
        low=values.min(), high=values.max(), moved=moved,
    ))  # fmt: skip


def judge_threshold(run: StudyRun, entry: dict[str, object], rows: Sequence[Row]) -> None:
    """Is a published threshold the one that follows from the equations?"""
    printed, digits = float(str(entry["printed"])), int(str(entry["digits"]))
    exact = float(rows[0]["threshold"])
    networks = np.array([float(row["threshold"]) for row in rows[1:]])
    drawn = ""
    if len(networks):
        drawn = SHEET.text("drawn", network=rows[-1]["network"], low=networks.min(), high=networks.max(),
                           count=len(networks))  # fmt: skip
    run.verdict(*SHEET.verdict(
        "threshold", HOLDS if round(exact, digits) == printed else FAILS, entry=entry, printed=printed, exact=exact,
        formula=rows[0]["formula"], off=abs(exact / printed - 1), drawn=drawn,
    ))  # fmt: skip


# ---------------------------------------------------------------------- rows
# What the study of Turing patterns computes, as rows: growth of single modes, patterns, dispersion, thresholds.

#: Times at which a mode is projected, and modes of a member that are followed.
MODE_SAVES, MODES = 41, 3
#: From this part of the time on a pattern is asked whether it still moves.
LATE = 0.9
#: Modes that grow less than this share of the fastest one are left to the plane.
SHARE = 0.5


def chosen_members(prediction: PlanePrediction, count: int) -> np.ndarray:
    """Turing-unstable members, evenly spread over the order of their growth rates, the slower half left out."""
    turing = class_codes(prediction.at_zero, prediction.beyond_zero) == CLASSES.index("Turing")
    members = np.flatnonzero(turing)
    ordered = members[np.argsort(prediction.beyond_zero[members])]
    places = np.linspace(0.6, 1, count) * (len(ordered) - 1)
    return ordered[np.unique(places.round().astype(int))] if len(ordered) else ordered


def growth_rows(prediction: PlanePrediction, members: np.ndarray, generator: np.random.Generator) -> list[MutableRow]:
    """Rows of the growth rates of single modes: measured (slope of the log of the projected state) and predicted.

    Every member is watched for the time in which its fastest mode is predicted to grow from the start to the end of
    the linear regime; the fit takes the second half of it.
    """
    case = prediction.case
    if not len(members):
        return []
    point = case.states[members]
    values = {name: value[members] for name, value in case.values.items()}
    ends = np.log(LINEAR / START / 10) / prediction.beyond_zero[members]
    times = np.linspace(0, 1, MODE_SAVES)[:, None] * ends
    start = start_states(case, point, noise(case, generator), START)
    solution = solve_members(case, start, values, times, step_of(case, point, values))
    away = solution.states - torch.as_tensor(point, device=case.device)[:, None, :]
    sizes = case.spectrum.transform(away).square().sum(-1).cpu().numpy()
    rows: list[MutableRow] = []
    for i, member in enumerate(members):
        leading = prediction.leading[member, 1:]
        for k in np.argsort(-leading.real)[:MODES]:
            if leading[k].real < SHARE * leading.real.max():
                continue
            lam = case.frequencies[k]
            group = np.abs(case.spectrum.values - lam) <= 1e-8 * case.spectrum.bound
            size = np.sqrt(sizes[:, i, group].sum(-1))
            slope, _ = fitted(times[:, i], size[:, None], np.ones((MODE_SAVES, 1), dtype=bool))
            rows.append({
                case.across.name: float(values[case.across.name][i]), case.up.name: float(values[case.up.name][i]),
                "lam": float(lam), "predicted": float(leading[k].real), "measured": float(slope[0]),
                "difference": float(abs(slope[0] / leading[k].real - 1)),
            })  # fmt: skip
    return rows


def reference_member(
    case: PlaneCase, changed: str = "", number: float = 0.0
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The steady state (1, F) and the coefficients (1,) of the reference, one of them `changed` to another number."""
    values = {name: np.array([number if name == changed else value]) for name, value in case.reference.items()}
    return case.kinetics.follow(case.reference, values), values


def pattern_states(
    case: PlaneCase, time: float, frames: int, share: float, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The reference member from a deviation that is a share of the steady state: times (K,) and states (K, n, F)."""
    point, values = reference_member(case)
    start = start_states(case, point, noise(case, generator), share)
    times = np.unique(np.append(np.linspace(0, time, frames), LATE * time).round(9))
    solution = solve_members(case, start, values, times, step_of(case, point, values))
    return times, solution.states[:, 0].cpu().numpy()


def pattern_rows(case: PlaneCase, times: np.ndarray, states: np.ndarray) -> list[MutableRow]:
    """The state of every node at the end and the fastest mode of its linearisation, with the node's degree.

    `moved` is how far a field still moved in the last tenth of the time.
    """
    point, values = reference_member(case)
    leading = case.kinetics.leading(point, values, case.frequencies)[0]
    fastest = case.frequencies[int(np.argmax(leading.real))]
    mode = case.spectrum.vectors[:, int(np.argmin(np.abs(case.spectrum.values - fastest)))]
    late = int(np.argmin(np.abs(times - LATE * times[-1])))
    moved = np.abs(states[-1] - states[late])
    return [
        {
            "node": i, "degree": float(case.graph.degree[i]), "mode": float(mode[i]),
            **{name: float(states[-1, i, f]) for f, name in enumerate(case.system.fields)},
            **{f"{name}_moved": float(moved[i, f]) for f, name in enumerate(case.system.fields)},
        }
        for i in range(case.graph.num_nodes)
    ]  # fmt: skip


def threshold_on_graph(case: PlaneCase, name: str, low: float, high: float) -> float:
    """The value of a coefficient between two at which the fastest mode with lam > 0 begins to grow; NaN without one."""

    def growth(size: float) -> float:
        return float(case.kinetics.leading(*reference_member(case, name, size), case.frequencies).real.max())

    return float(brentq(growth, low, high, xtol=1e-10)) if growth(low) < 0 < growth(high) else float("nan")


def dispersion_rows(case: PlaneCase, points: int) -> list[MutableRow]:
    """Growth rates over lam and at the graph's eigenvalues: below the threshold of the first axis, at it, and drawn."""
    drawn = case.reference[case.across.name]
    border = threshold_on_graph(case, case.across.name, case.across.low, drawn)
    places = (0.9 * border, border, drawn) if np.isfinite(border) else (0.8 * drawn, drawn, 1.2 * drawn)
    rows: list[MutableRow] = []
    top = float(case.frequencies[-1])
    curve = np.linspace(0, 1.05 * top, points)
    marks = np.concatenate([[0.0], case.frequencies])
    for value in map(float, places):
        point, values = reference_member(case, case.across.name, value)
        for is_eigenvalue, lams in ((0, curve), (1, marks)):
            rates = case.kinetics.leading(point, values, lams)[0].real
            rows += [
                {case.across.name: value, "is_eigenvalue": is_eigenvalue, "lam": float(lam), "rate": float(rate)}
                for lam, rate in zip(lams, rates, strict=True)
            ]
    return rows


# ---------------------------------------------------------------------- published thresholds
def published() -> list[dict[str, Any]]:
    """The printed thresholds, with their sources."""
    text = resources.files("studies").joinpath("data/turing.toml").read_text(encoding="utf-8")
    return list(tomllib.loads(text)["published"])


def threshold_rows(entry: dict[str, Any], network: str, seeds: Sequence[int]) -> list[Row]:
    """The threshold over all lam > 0, and over the eigenvalues of networks like the published one."""
    values, name = read_values(entry["values"]), entry["threshold"]
    closed = exact_threshold(entry)
    exact = float(closed)
    common = {"source": entry["name"], "coefficient": name, "printed": float(entry["printed"])}
    everywhere: MutableRow = {"network": "every λ > 0", "seed": -1, "threshold": exact, "lam": closed.lam}
    rows: list[Row] = [{**common, **everywhere, "formula": str(closed.value)}]
    for seed in seeds:
        case = PlaneCase.single(entry["system"], network, {**values, name: exact}, seed)
        result = threshold_on_graph(case, name, 0.5 * exact, 4 * exact)
        rates = case.kinetics.leading(*reference_member(case, name, result), case.frequencies)[0].real
        mode = float(case.frequencies[int(np.argmax(rates))])
        rows.append({**common, "network": network, "seed": seed, "threshold": result, "lam": mode, "formula": ""})
    return rows


def exact_threshold(entry: dict[str, Any]) -> Threshold:
    """The least value at which patterns begin, over all lam > 0 that a graph could have."""
    system, values = rd.parse(entry["system"]), read_values(entry["values"])
    at_printed = rd.steady_states(system, {**values, entry["threshold"]: entry["printed"]})
    wanted = read_values(entry["state"])
    number = next(k for k, state in enumerate(at_printed) if state.numbers() == wanted)
    result = rd.turing_threshold(system, entry["threshold"], values, state=number, to=float("inf"))
    return next(threshold for threshold in result if threshold.above in ("turing", "turing-wave"))


# ---------------------------------------------------------------------- study
settings = SHEET.settings


def run(run: StudyRun) -> None:
    """Every case: plane, growth of modes, dispersion, pattern, animation; then the published thresholds."""
    chosen = run.settings
    cases = read_cases(chosen, run.seed, run.device, ("times", "pattern_times"))
    for label, system in zip(chosen["labels"], chosen["systems"], strict=True):
        run.equation(system, label)
    run.say("What is compared", SHEET.text("about", cases=_cases(chosen), border=chosen["border"]))
    results: list[Row] = []
    times = [map(float, chosen[name]) for name in ("times", "pattern_times")]
    for (case, _, end), parts in each_cell(run, zip(cases, *times, strict=True), _measured, "cases"):
        results += _plane(run, case, parts)
        _pattern(run, case, end, parts["pattern"])
    run.answer(_answer(results))
    thresholds: list[Row] = []
    for (_, entry), result in each_cell(run, enumerate(published()), _threshold, "thresholds"):
        judge_threshold(run, entry, result)
        thresholds += result
    run.table("thresholds", thresholds, SHEET.text("thresholds"))
    run.results(results)


def _threshold(run: StudyRun, cell: tuple[int, dict[str, Any]]) -> list[MutableRow]:
    """Rows of a published threshold and ours."""
    (k, entry), chosen = cell, run.settings
    return run.part(f"threshold-{k}", partial(threshold_rows, entry, chosen["network"], range(chosen["networks"])))


def _measured(run: StudyRun, cell: tuple[PlaneCase, float, float]) -> dict[str, list[MutableRow]]:
    """What is computed of a case: its plane, the growth of single modes, the dispersion, the pattern."""
    case, time, end = cell
    chosen, prediction = run.settings, PlanePrediction(case)

    def members() -> Sequence[Row]:
        result = measure_deviations(case, noise(case, run.generator(f"start {case.key}")), time, chosen["saves"])
        return member_rows(prediction, result, chosen["border"])

    def growth() -> Sequence[Row]:
        members = chosen_members(prediction, chosen["modes_checked"])
        return growth_rows(prediction, members, run.generator(f"modes {case.key}"))

    return {
        "plane": run.part(f"plane-{case.key}", members),
        "growth": run.part(f"growth-{case.key}", growth),
        "dispersion": run.part(f"dispersion-{case.key}", lambda: dispersion_rows(case, 400)),
        "pattern": run.part(f"pattern-{case.key}", lambda: pattern_rows(case, *_states(run, case, end))),
    }


def _states(run: StudyRun, case: PlaneCase, time: float) -> tuple[np.ndarray, np.ndarray]:
    """The times and states of the reference member until its pattern stays."""
    chosen, generator = run.settings, run.generator(f"pattern {case.key}")
    return pattern_states(case, time, chosen["frames"], chosen["pattern_start"], generator)


def _plane(run: StudyRun, case: PlaneCase, parts: Mapping[str, list[MutableRow]]) -> list[Row]:
    """The plane of a case, its figure and verdicts; returns a summary, one row a class."""
    rows, modes, curves = parts["plane"], parts["growth"], parts["dispersion"]
    run.figure(f"plane-{case.key}", plane_figure(case, rows), SHEET.text("plane", case=case, members=len(rows)), rows)
    run.table(f"disagreements-{case.key}", disagreements(rows), SHEET.text("disagreements"))
    run.table(f"growth-{case.key}", modes, SHEET.text("growth"))
    run.figure(f"dispersion-{case.key}", dispersion_chart(case, curves), SHEET.text("dispersion", case=case), curves)
    judge_plane(run, case, rows)
    judge_growth(run, case, modes)
    kinds = dict.fromkeys(str(row["predicted"]) for row in rows)
    return [_summary(case, kind, [row for row in rows if row["predicted"] == kind]) for kind in kinds]


def _summary(case: PlaneCase, kind: str, rows: Sequence[Row]) -> Row:
    away = [int(row["agrees"]) for row in rows if row["away"]]
    named = {"case": case.label, "graph": case.graph_text, "predicted": kind}
    return {**named, "members": len(rows), "away": len(away), "agreeing": sum(away)}


def _pattern(run: StudyRun, case: PlaneCase, time: float, rows: list[MutableRow]) -> None:
    """The reference member run until its pattern stays: figure, animation, verdict."""
    chosen = run.settings
    caption = SHEET.text("pattern", case=case, time=time, share=chosen["pattern_start"], numbers=_numbers(case))
    run.figure(f"pattern-{case.key}", pattern_figure(case, rows), caption, rows)

    def animate(path: Any) -> None:
        times, result = _states(run, case, time)
        write_pattern_animation(path, case, run.progress(times.tolist(), "drawing frames"), result)

    run.animation(f"growth-{case.key}", animate, SHEET.text("animation", case=case))
    point, values = reference_member(case)
    leading = case.kinetics.leading(point, values, np.concatenate([[0.0], case.frequencies]))[0].real
    judge_pattern(run, case, rows, float(leading[1:].max()), float(leading[0]))


# ---------------------------------------------------------------------- words
def _numbers(case: PlaneCase) -> str:
    return ", ".join(f"{name} = {value:g}" for name, value in case.reference.items())


def _answer(results: Sequence[Row]) -> str:
    away, agreeing, members = (sum(int(row[name]) for row in results) for name in ("away", "agreeing", "members"))
    return SHEET.text("answer", away=away, agreeing=agreeing, near=members - away)


def _cases(chosen: Any) -> str:
    columns = (chosen[name] for name in ("labels", "systems", "graphs", "normalisations"))
    return "; ".join(starmap("{}: {} on {} ({})".format, zip(*columns, strict=True)))
