"""Turing patterns on graphs: unstable modes predicted from the spectrum, beside a simulated plane of coefficients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from studies.runs.cell_work import each_cell
from studies.runs.study_run import StudyRun
from studies.runs.tables import MutableRow, Row
from studies.stability.deviations import measure_deviations, noise
from studies.stability.plane import PlaneCase, read_cases
from studies.stability.plane_rows import PlanePrediction, disagreements, member_rows
from studies.turing import figures as pictures
from studies.turing.rows import (
    chosen_members,
    dispersion_rows,
    growth_rows,
    pattern_rows,
    pattern_states,
    published,
    reference_member,
    threshold_rows,
)
from studies.turing.verdicts import judge_growth, judge_pattern, judge_plane, judge_threshold

SCHNAKENBERG = "u' = a - u + u**2*v - Du*L@u; v' = b - u**2*v - sigma*Du*L@v"
MIMURA_MURRAY = "u' = ((a + b*u - u**2)/c - v)*u - epsilon*L@u; v' = (u - (1 + delta*v))*v - sigma*epsilon*L@v"
DISAGREEMENT_CAPTION = (
    "Every member away from the border that was simulated otherwise than predicted; no rows, no such member."
)
GROWTH_CAPTION = (
    "Growth rates of single modes: predicted, the largest real part of an eigenvalue of P(λ); measured, the slope of "
    "the log of the deviation projected on the mode, while it is small."
)
THRESHOLD_CAPTION = (
    "Published thresholds beside ours: over all λ > 0, and over the eigenvalues of networks drawn as described (the "
    "published network itself is not available)."
)


def settings(small: bool) -> dict[str, Any]:
    """Cases (lists with one entry a case), the size of the planes, and how long members are watched."""
    return {
        "labels": ["Schnakenberg", "Mimura-Murray"],
        "systems": [SCHNAKENBERG, MIMURA_MURRAY],
        "graphs": ["torus:6:6", "barabasi-albert:40:5"] if small else ["torus:16:16", "barabasi-albert:200:10"],
        "normalisations": ["none", "none"],
        "values": ["a=0.1, b=0.9, Du=0.15, sigma=20", "a=35, b=16, c=9, delta=0.4, epsilon=0.12, sigma=20"],
        "across": ["sigma 2 25", "sigma 5 22"],
        "up": ["b 0.3 2", "delta 0.3 0.5"],
        "points": 8 if small else 100,
        "times": [40.0, 20.0] if small else [80.0, 40.0],
        "saves": 61 if small else 161,
        "border": 1.0,
        "modes_checked": 4 if small else 12,
        "pattern_times": [200.0, 80.0] if small else [300.0, 120.0],
        "pattern_start": 0.05 if small else 0.01,
        "frames": 9 if small else 61,
        "network": "barabasi-albert:200:10" if small else "barabasi-albert:1000:10",
        "networks": 2 if small else 5,
    }


def run(run: StudyRun) -> None:
    """Every case: plane, growth of modes, dispersion, pattern, animation; then the published thresholds."""
    chosen = run.settings
    cases = read_cases(chosen, run.seed, run.device, ("times", "pattern_times"))
    for label, system in zip(chosen["labels"], chosen["systems"], strict=True):
        run.equation(system, label)
    run.say("What is compared", _about(chosen))
    results: list[Row] = []
    times = [map(float, chosen[name]) for name in ("times", "pattern_times")]
    for (case, _, end), parts in each_cell(run, zip(cases, *times, strict=True), _measured, "cases"):
        results += _plane(run, case, parts)
        _pattern(run, case, end, parts["pattern"])
    run.answer(_answer(results))
    thresholds: list[Row] = []
    for (_, entry), found in each_cell(run, enumerate(published()), _threshold, "thresholds"):
        judge_threshold(run, entry, found)
        thresholds += found
    run.table("thresholds", thresholds, THRESHOLD_CAPTION)
    run.results(results)


def _threshold(run: StudyRun, cell: tuple[int, dict[str, Any]]) -> list[MutableRow]:
    """A published threshold beside ours."""
    (k, entry), chosen = cell, run.settings
    return run.part(f"threshold-{k}", partial(threshold_rows, entry, chosen["network"], range(chosen["networks"])))


def _measured(run: StudyRun, cell: tuple[PlaneCase, float, float]) -> dict[str, list[MutableRow]]:
    """What is computed of a case: its plane, the growth of single modes, the dispersion, the pattern."""
    case, time, end = cell
    chosen, prediction = run.settings, PlanePrediction(case)

    def members() -> Sequence[Row]:
        found = measure_deviations(case, noise(case, run.generator(f"start {case.key}")), time, chosen["saves"])
        return member_rows(prediction, found, chosen["border"])

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
    caption = (
        f"{case.label}, {case.text}, on {case.graph_text}: {len(rows)} members as one batch. Left: predicted from the "
        "eigenvalues of P(λ); middle: simulated, from the rates at which a small deviation grows while it is small; "
        "right: these rates against the predicted ones, members away from the border."
    )
    run.figure(f"plane-{case.key}", pictures.plane_figure(case, rows), caption, rows)
    run.table(f"disagreements-{case.key}", disagreements(rows), DISAGREEMENT_CAPTION)
    run.table(f"growth-{case.key}", modes, GROWTH_CAPTION)
    caption = (
        f"Dispersion of {case.label}: below the threshold of {case.across.name} on this graph, at it, and at the value "
        "of the pattern below; circles: eigenvalues of the graph."
    )
    run.figure(f"dispersion-{case.key}", pictures.dispersion_figure(case, curves), caption, curves)
    judge_plane(run, case, rows)
    judge_growth(run, case, modes)
    kinds = dict.fromkeys(str(row["predicted"]) for row in rows)
    return [_summary(case, kind, [row for row in rows if row["predicted"] == kind]) for kind in kinds]


def _summary(case: PlaneCase, kind: str, rows: Sequence[Row]) -> Row:
    away = [row for row in rows if row["away"]]
    agreeing = sum(int(row["agrees"]) for row in away)
    return {
        "case": case.label, "graph": case.graph_text, "predicted": kind, "members": len(rows), "away": len(away),
        "agreeing": agreeing,
    }  # fmt: skip


def _pattern(run: StudyRun, case: PlaneCase, time: float, rows: list[MutableRow]) -> None:
    """The reference member run until its pattern stays: figure, animation, verdict."""
    chosen = run.settings
    place = ", ".join(f"{name} = {value:g}" for name, value in case.reference.items())
    share = f"{chosen['pattern_start']:.0%}"
    caption = (
        f"{case.label} on {case.graph_text} at t = {time:g}, from a deviation of {share} of the steady state; {place}."
    )
    run.figure(f"pattern-{case.key}", pictures.pattern_figure(case, rows), caption, rows)

    def animate(path: Any) -> None:
        times, found = _states(run, case, time)
        pictures.write_pattern_animation(path, case, run.progress(times.tolist(), "drawing frames"), found)

    run.animation(f"growth-{case.key}", animate, f"How the pattern of {case.label} grows; one scale for all frames.")
    point, values = reference_member(case)
    leading = case.kinetics.leading(point, values, np.concatenate([[0.0], case.frequencies]))[0].real
    judge_pattern(run, case, rows, float(leading[1:].max()), float(leading[0]))


# ---------------------------------------------------------------------- words
def _answer(results: Sequence[Row]) -> str:
    away, agreeing = (sum(int(row[name]) for row in results) for name in ("away", "agreeing"))
    return (
        f"{agreeing} of {away} members away from the border did what the eigenvalues of P(λ) on their graph predict, "
        f"and {sum(int(row['members']) for row in results) - away} lie near it."
    )


def _about(chosen: Any) -> str:
    cases = "; ".join(
        f"{label}: {text} on {graph} ({normalisation})"
        for label, text, graph, normalisation in zip(
            chosen["labels"], chosen["systems"], chosen["graphs"], chosen["normalisations"], strict=True
        )
    )
    return f"""
    {cases}.

    At a steady state that is the same in all nodes, a small deviation along an eigenvector of L with eigenvalue λ
    evolves by a small matrix P(λ). Turing-unstable means: constant deviations (λ = 0) decay, and one at some eigenvalue
    λ > 0 of the graph grows. Every member starts from the same deviation of 1e-7 of its steady state and is integrated
    by RK4 (the nonlinear equations, all members as one batch). Its two parts, in the kernel of L and outside of it, are
    measured while they are below 1e-3: the slope of their logarithms over the second half of that time decides whether
    they grow. A member is near the border where one of the two predicted deviations changes by less than
    exp({chosen["border"]:g}) in the time of the fit; such members are left out of the count of agreement, and drawn
    hatched.
    """
