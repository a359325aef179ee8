"""An atlas: the regimes of a system over two coefficients, predicted and measured, with a picture of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from studies.atlas.figures import Course, page, read_courses
from studies.atlas.regimes import PlaneRun, measured_regimes
from studies.atlas.rows import course_rows, regime_rows
from studies.atlas.verdicts import judge
from studies.runs.cell_work import each_cell
from studies.runs.study_run import StudyRun
from studies.runs.tables import MutableRow, Row
from studies.stability.deviations import noise
from studies.stability.plane import PlaneCase, read_cases

BRUSSELATOR = "u' = a - (b + 1)*u + u**2*v - Du*L@u; v' = b*u - u**2*v - Dv*L@v"
SCHNAKENBERG = "u' = a - u + u**2*v - Du*L@u; v' = b - u**2*v - Dv*L@v"
REGIME_CAPTION = "How many members are predicted to be in a regime (rows of the same name) and were measured in one."
OTHERWISE_CAPTION = (
    "Every member away from the border that ended otherwise than the linearisation tells; no rows, no such member."
)


def settings(small: bool) -> dict[str, Any]:
    """Cases (lists with one entry a case), the size of the planes, and how long members are run."""
    return {
        "labels": ["Brusselator", "Schnakenberg"],
        "systems": [BRUSSELATOR, SCHNAKENBERG],
        "graphs": ["ring:12", "ring:12"] if small else ["ring:40", "ring:40"],
        "normalisations": ["none", "none"],
        "values": ["a=1.5, b=2, Du=0.5, Dv=4", "a=0.1, b=0.9, Du=0.2, Dv=4"],
        "across": ["a 1 2.6", "a 0.05 0.4"],
        "up": ["b 1 5", "b 0.5 1.8"],
        "points": 6 if small else 60,
        "times": [30.0, 40.0] if small else [200.0, 300.0],
        "start": 0.05,
        "border": 3.0 if small else 5.0,
        "pictures": 8,
    }


def run(run: StudyRun) -> None:
    """One page a case, the counts, verdicts."""
    chosen = run.settings
    for label, system in zip(chosen["labels"], chosen["systems"], strict=True):
        run.equation(system, label)
    run.say("What is drawn", _about(chosen))
    results: list[Row] = []
    cases = read_cases(chosen, run.seed, run.device, ["times"])
    timed = list(zip(cases, map(float, chosen["times"]), strict=True))
    for (case, _), (rows, numbers) in each_cell(run, timed, _measured, "cases"):
        results += _page(run, case, rows, numbers)
    run.answer(_answer(results))
    run.table("regimes", results, REGIME_CAPTION)
    run.results(results)


def _measured(run: StudyRun, cell: tuple[PlaneCase, float]) -> tuple[list[MutableRow], list[MutableRow]]:
    """The regimes of a plane, and the courses that are drawn."""
    (case, time), chosen = cell, run.settings
    deviation = noise(case, run.generator(f"start {case.key}"))

    @cache
    def solved() -> PlaneRun:
        members = np.flatnonzero(np.isfinite(case.states).all(1))
        return PlaneRun.solved(case, members, deviation, time, chosen["start"])

    def regimes() -> list[MutableRow]:
        return regime_rows(solved(), measured_regimes(solved(), deviation, chosen["start"]), chosen["border"])

    rows = run.part(f"regimes-{case.key}", regimes)
    return rows, run.part(f"courses-{case.key}", lambda: course_rows(case, rows, solved(), chosen["pictures"]))


def _page(run: StudyRun, case: PlaneCase, rows: list[MutableRow], numbers: list[MutableRow]) -> list[Row]:
    courses = read_courses(numbers)
    caption = (
        f"{case.label}, {case.text}, on {case.graph_text}. Left: predicted from the eigenvalues of P(λ) on the graph; "
        "right: measured over the last quarter of the run. Below: the first field of the member in the middle of each "
        "region (predicted → measured), nodes against time, on a scale of its own."
    )
    run.figure(f"atlas-{case.key}", page(case, rows, courses), caption, rows)
    run.table(f"drawn-{case.key}", _places(rows, courses), "The members that are drawn below the planes.")
    run.table(f"otherwise-{case.key}", [r for r in rows if r["away"] and not r["agrees"]], OTHERWISE_CAPTION)
    judge(run, case, rows)
    counts = Counter((str(row["predicted"]), str(row["measured"])) for row in rows)
    return [
        {"case": case.label, "graph": case.graph_text, "predicted": p, "measured": m, "members": count}
        for (p, m), count in counts.most_common()
    ]


def _places(rows: list[MutableRow], courses: Mapping[str, Course]) -> list[Row]:
    return [{"picture": letter, **rows[member]} for letter, (member, _, _) in courses.items()]


# ---------------------------------------------------------------------- words
def _answer(results: Sequence[Row]) -> str:
    counts = Counter[tuple[str, str]]()
    for row in results:
        counts[str(row["predicted"]), str(row["measured"])] += int(row["members"])
    told = ", ".join(f"{predicted} → {measured} {count}" for (predicted, measured), count in counts.most_common(4))
    return f"What linear theory predicts, and where {counts.total()} runs ended, the most frequent pairs: {told}."


def _about(chosen: Mapping[str, Any]) -> str:
    return f"""
    Predicted: at the constant steady state every deviation along an eigenvector of L evolves by a matrix P(λ). All
    modes decay: stable. Constant deviations decay and others grow: Turing (some without oscillation) or wave (all in
    oscillation). Constant deviations grow in oscillation: Hopf, or Turing-Hopf where some mode with λ > 0 grows without
    oscillation too. They grow without: unstable at 0.

    Measured: every member is run by RK4 from a deviation of {chosen["start"]:.0%} of its steady state, and looked at in
    the last quarter of the time: does it differ between nodes, does it move (and not less than in the quarter before,
    as a state that settles does), is it where it started, by more than 1 % of its size? A pattern at rest, of a member
    that oscillates where all nodes agree (run as well), is oscillation death. A member that blows up is run again with
    a quarter of the step before that counts. The linearisation tells where the constant state is left; what a run comes
    to is measured alone. Members whose predicted growth over the run is less than exp({chosen["border"]:g}) in size,
    either way, are near a border and not counted.
    """
