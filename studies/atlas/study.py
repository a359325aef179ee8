"""An atlas of the regimes of a system over two coefficients, predicted and measured, with a picture of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from string import ascii_uppercase
from typing import TYPE_CHECKING

import numpy as np
from scipy.ndimage import distance_transform_edt

import rdgraph as rd
from analysis.figure_files import plain
from studies.runs.cell_work import each_cell
from studies.runs.study_run import StudyRun
from studies.runs.tables import MutableRow, Row
from studies.runs.uncertainty import FAILS, HOLDS, UNDECIDED
from studies.runs.word_sheets import WordSheet
from studies.stability.deviations import LIMIT, noise, sizes_of, solve_members, start_states, step_of
from studies.stability.plane import PlaneCase, read_cases
from studies.stability.plane_rows import BLOW_UP, COLOURS, NO_STATE, PlanePrediction, mesh

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# ---------------------------------------------------------------------- regimes
# Regimes of a member: predicted by the linearisation, and measured at the end of its run.

SHEET = WordSheet("atlas")
#: Least relative difference that counts: between nodes, over time, and from the steady state.
SEEN = 0.01
#: Number of times at which a run is measured, and the least share of earlier motion that counts as lasting.
LOOKS, LASTING = 161, 0.8
#: A graph on which equal nodes stay exactly equal: the system without a graph.
MIXED = "ring:3"
#: Divisors of the RK4 step: limit cycles are faster than small deviations, and members that blew up are repeated with
#: a finer step to exclude the step as the cause.
COARSE, FINE = 1.5, 6.0

PREDICTED = ("stable", "Turing", "wave", "Hopf", "Turing-Hopf", "unstable at 0", NO_STATE)
MEASURED = (
    "uniform", "pattern", "oscillation", "oscillating pattern", "oscillation death", "moved away", BLOW_UP, NO_STATE,
)  # fmt: skip
#: Measured regimes that agree with each prediction.
EXPECTED = {
    "stable": ("uniform",),
    "Turing": ("pattern", "oscillating pattern"),
    "wave": ("pattern", "oscillating pattern"),
    "Hopf": ("oscillation", "oscillating pattern", "oscillation death"),
    "Turing-Hopf": ("oscillation", "oscillating pattern", "oscillation death"),
    "unstable at 0": ("pattern", "oscillation", "oscillating pattern", "oscillation death", "moved away", BLOW_UP),
}


def predicted_regimes(prediction: PlanePrediction) -> list[str]:
    """Regime of every member, from the leading eigenvalues at lam = 0 and at the graph's other eigenvalues."""
    zero, beyond = prediction.at_zero, prediction.beyond_zero
    real, oscillates = prediction.has_real_pattern, prediction.oscillates_at_zero
    words = []
    for k in range(len(zero)):
        if not (np.isfinite(zero[k]) and np.isfinite(beyond[k])):
            words.append(NO_STATE)
        elif zero[k] > 0:
            words.append(("Turing-Hopf" if real[k] else "Hopf") if oscillates[k] else "unstable at 0")
        else:
            words.append("stable" if beyond[k] <= 0 else "Turing" if real[k] else "wave")
    return words


@dataclass(frozen=True, eq=False)
class PlaneRun:
    """States (K, m, n, F) at times (K,) of the members with a steady state, and whether each blew up, (m,)."""

    case: PlaneCase
    members: np.ndarray
    times: np.ndarray
    states: np.ndarray
    blown_up: np.ndarray

    @classmethod
    def solved(cls, case: PlaneCase, members: np.ndarray, deviation: np.ndarray, time: float, share: float) -> PlaneRun:
        """Runs from a deviation of the steady state; members that blow up are repeated with a finer step."""
        times = np.linspace(0, time, LOOKS)
        states, blown_up = cls._states(case, members, deviation, times, share, COARSE)
        if blown_up.any():
            finer = cls._states(case, members[blown_up], deviation, times, share, FINE)
            states[:, blown_up] = finer[0]
            blown_up[blown_up] = finer[1]
        return cls(case, members, times, states, blown_up)

    @staticmethod
    def _states(
        case: PlaneCase, members: np.ndarray, deviation: np.ndarray, times: np.ndarray, share: float, finer: float
    ) -> tuple[np.ndarray, np.ndarray]:
        point = case.states[members]
        values = {name: value[members] for name, value in case.values.items()}
        start = start_states(case, point, deviation, share)
        step = step_of(case, point, values) / finer
        solution = solve_members(case, start, values, times, step, limit=LIMIT * float(sizes_of(point).max()))
        return solution.states.cpu().numpy(), solution.codes.cpu().numpy() != rd.run.RunStatus.OK.code

    def seen(self) -> dict[str, np.ndarray]:
        """Measurements at the end, (m,) each: differences between nodes and from the steady state, and lasting motion.

        Motion that decreases from the third to the last quarter belongs to a settling state and does not count.
        """
        quarter = len(self.times) // 4
        before, late = self.states[-2 * quarter : -quarter], self.states[-quarter:]
        point = self.case.states[self.members]
        size = np.maximum(np.sqrt(np.square(late).mean((0, 2, 3))), sizes_of(point) / 10)

        def part(away: np.ndarray) -> np.ndarray:
            return np.asarray(np.sqrt(np.square(away).mean((0, 2, 3))) / size)

        mean = late.mean(2, keepdims=True)
        motion, earlier = part(late - late.mean(0)), part(before - before.mean(0))
        lasting = np.where(motion > LASTING * earlier, motion, 0.0)
        return {"nodes": part(late - mean), "motion": lasting, "state": part(mean - point[:, None, :])}


def measured_regimes(run: PlaneRun, deviation: np.ndarray, share: float) -> list[str]:
    """Measured regime of every member at the end of its run.

    Oscillation death: the member oscillates without the graph (all nodes equal) and rests in a pattern with it.
    """
    seen = run.seen()
    patterned, moving = seen["nodes"] > SEEN, seen["motion"] > SEEN
    resting = np.flatnonzero(patterned & ~moving & ~run.blown_up)
    oscillates_alone = np.zeros(len(run.members), dtype=bool)
    if len(resting):
        mixed = replace(run.case, graph_text=MIXED)
        same = np.tile(deviation.mean(0) + 1.0, (3, 1))
        alone = PlaneRun.solved(mixed, run.members[resting], same, float(run.times[-1]), share)
        oscillates_alone[resting] = (alone.seen()["motion"] > SEEN) & ~alone.blown_up
    words = [NO_STATE] * len(run.case.states)
    for k, member in enumerate(run.members):
        if run.blown_up[k]:
            words[member] = BLOW_UP
        elif patterned[k]:
            at_rest = "oscillation death" if oscillates_alone[k] else "pattern"
            words[member] = "oscillating pattern" if moving[k] else at_rest
        elif moving[k]:
            words[member] = "oscillation"
        else:
            words[member] = "moved away" if seen["state"][k] > SEEN else "uniform"
    return words


# ---------------------------------------------------------------------- verdicts
# Verdicts: where linear theory predicts the end of a run, and where it only predicts that the state is left.

#: What each predicted regime implies for the end of a run.
STATEMENTS = {
    "stable": "where all modes decay, runs return to the constant state",
    "Turing": "where only modes with λ > 0 grow, runs end in states that differ between nodes",
    "Hopf": "where constant deviations oscillate and grow, and every growing pattern oscillates, runs do not come "
    "to rest in a constant state",
    "Turing-Hopf": "where constant deviations oscillate and grow, and patterns grow too, runs do not come to rest in a "
    "constant state",
    "wave": "where only oscillating modes with λ > 0 grow, runs end in states that differ between nodes",
    "unstable at 0": "where constant deviations grow without oscillating, runs leave the constant state",
}


def judge(run: StudyRun, case: PlaneCase, rows: Sequence[Row]) -> None:
    """Add a verdict for every predicted regime that occurs, and one on oscillation death."""
    for regime, statement in STATEMENTS.items():
        group = [row for row in rows if row["predicted"] == regime]
        if not group:
            continue
        away = [row for row in group if row["away"]]
        wrong = [row for row in away if not row["agrees"]]
        seen = Counter(str(row["measured"]) for row in away)
        run.verdict(*SHEET.verdict(
            "regime", UNDECIDED if not away else FAILS if wrong else HOLDS, case=case, regime=regime,
            statement=statement, away=len(away), group=len(group), border=run.settings["border"],
            seen=_counts(seen), wrong=len(wrong),
        ))  # fmt: skip
    death = [row for row in rows if row["measured"] == "oscillation death"]
    regimes = Counter(str(row["predicted"]) for row in death)
    run.verdict(*SHEET.verdict(
        "death", HOLDS if death else FAILS, case=case, death=len(death), rows=len(rows),
        predicted=f": predicted {_counts(regimes)}." if death else ".",
    ))  # fmt: skip


def _counts(words: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in words.most_common())


# ---------------------------------------------------------------------- figures
# A page of the atlas: the predicted and the measured plane, and below them a picture of every region.

#: Pictures in a line.
COLUMNS = 4
#: A member, times (K,) and values (K, n).
Course = tuple[int, np.ndarray, np.ndarray]


def read_courses(rows: Sequence[Row]) -> dict[str, Course]:
    """Courses of one field by letter, from their rows."""
    result: dict[str, Course] = {}
    for letter in dict.fromkeys(str(row["picture"]) for row in rows):
        group = [row for row in rows if row["picture"] == letter]
        times = np.array(list(dict.fromkeys(float(row["t"]) for row in group)))
        values = np.array([float(row["value"]) for row in group]).reshape(len(times), -1)
        result[letter] = (int(group[0]["member"]), times, values)
    return result


def page(case: PlaneCase, rows: Sequence[Row], courses: Mapping[str, Course]) -> Figure:
    """Figure with both planes above and a space-time picture of every region below."""
    from matplotlib.figure import Figure

    lines = -(-len(courses) // COLUMNS)
    figure = Figure(figsize=(12.0, 5.4 + 2.7 * lines), layout="constrained")
    above, below = figure.subfigures(2, 1, squeeze=False, height_ratios=[5.4, max(2.7 * lines, 0.1)])[:, 0]
    panels = above.subplots(1, 2)
    for panel, name, title in zip(
        panels, ("predicted", "measured"), ("predicted from P(λ)", "measured at the end of the run"), strict=True
    ):
        _plane(panel, case, [str(row[name]) for row in rows], title)
        for letter, (member, _, _) in courses.items():
            position = (float(rows[member][case.across.name]), float(rows[member][case.up.name]))
            mark = {"boxstyle": "circle,pad=0.15", "fc": "white", "lw": 0.6}
            panel.annotate(letter, position, ha="center", va="center", fontsize=9, bbox=mark)
    above.suptitle(plain(f"{case.label} on {case.graph_text} ({case.normalisation})"), fontsize=12)
    places = below.subplots(lines, COLUMNS, squeeze=False)
    for panel, (letter, (member, times, states)) in zip(places.flat, courses.items(), strict=False):
        _course(panel, rows[member], letter, times, states)
    for panel in places.flat[len(courses) :]:
        panel.set_visible(False)
    for panel in places[:, 0]:
        panel.set_ylabel("node", fontsize=9)
    return figure


def _plane(panel: Axes, case: PlaneCase, classes: Sequence[str], title: str) -> None:
    from matplotlib.patches import Patch

    mesh(panel, case, classes)
    panel.set_title(title, fontsize=11)
    shown = [name for name in COLOURS if name in classes]
    handles = [Patch(facecolor=COLOURS[name], edgecolor="0.4", lw=0.5, label=name) for name in shown]
    panel.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=4, frameon=False, fontsize=9)


def _course(panel: Axes, row: Row, letter: str, times: np.ndarray, states: np.ndarray) -> None:
    """Draw the first field over time (across) and nodes (up), with its own colour scale."""
    ends = (float(times[0]), float(times[-1]), -0.5, states.shape[1] - 0.5)
    low, high = float(states.min()), float(states.max())
    panel.imshow(states.T, aspect="auto", origin="lower", extent=ends, cmap="viridis", interpolation="nearest")
    panel.set_title(f"{letter}: {row['predicted']} → {row['measured']}", fontsize=9)
    panel.set_xlabel(f"t;  values {low:.3g} to {high:.3g}", fontsize=8)
    panel.tick_params(labelsize=8)


# ---------------------------------------------------------------------- rows
# Rows: the regimes of every member, the middle of every region, and the run drawn there.


def regime_rows(run: PlaneRun, measured: Sequence[str], border: float) -> list[MutableRow]:
    """A row for every member; `away` is 1 if both predicted rates times the time exceed `border`."""
    case, time = run.case, float(run.times[-1])
    prediction = PlanePrediction(case)
    predicted = predicted_regimes(prediction)
    away = (np.abs(prediction.at_zero) * time > border) & (np.abs(prediction.beyond_zero) * time > border)
    return [
        {
            **{axis.name: float(case.values[axis.name][k]) for axis in (case.across, case.up)},
            "predicted": predicted[k], "measured": measured[k], "away": int(away[k]),
            "agrees": int(measured[k] in EXPECTED.get(predicted[k], (predicted[k],))),
            "rate_at_0": float(prediction.at_zero[k]), "rate_beyond_0": float(prediction.beyond_zero[k]),
        }
        for k in range(len(predicted))
    ]  # fmt: skip


def middles(rows: Sequence[Row], shape: tuple[int, int]) -> dict[tuple[str, str], int]:
    """For every region (predicted and measured regime) the member farthest from other regions.

    >>> rows = [{"predicted": "stable", "measured": "uniform"}] * 9
    >>> middles(rows, (3, 3))
    {('stable', 'uniform'): 4}
    """
    pairs = [(str(row["predicted"]), str(row["measured"])) for row in rows]
    counts = {pair: pairs.count(pair) for pair in dict.fromkeys(pairs)}
    result = {}
    for pair in sorted(counts, key=lambda pair: -counts[pair]):
        inside = np.array([other == pair for other in pairs]).reshape(shape)
        depth = distance_transform_edt(np.pad(inside, 1))[1:-1, 1:-1]
        result[pair] = int(np.argmax(depth))
    return result


def course_rows(case: PlaneCase, rows: Sequence[Row], run: PlaneRun, count: int) -> list[MutableRow]:
    """Rows of the first field of the member in the middle of each of the largest regions, by time and node."""
    result: list[MutableRow] = []
    regions = [(pair, member) for pair, member in middles(rows, case.shape).items() if member in run.members]
    for letter, (_, member) in zip(ascii_uppercase, regions[:count], strict=False):
        course = run.states[:, int(np.flatnonzero(run.members == member)[0]), :, 0]
        result += [
            {"picture": letter, "member": member, "t": float(t), "node": i, "value": float(f"{value:.6g}")}
            for t, state in zip(run.times, course, strict=True)
            for i, value in enumerate(state)
        ]
    return result


# ---------------------------------------------------------------------- study
settings = SHEET.settings


def run(run: StudyRun) -> None:
    """Run the study: a page for every case, counts and verdicts."""
    chosen = run.settings
    for label, system in zip(chosen["labels"], chosen["systems"], strict=True):
        run.equation(system, label)
    run.say("What is drawn", SHEET.text("about", chosen=chosen))
    results: list[Row] = []
    members: list[Row] = []
    cases = read_cases(chosen, run.seed, run.device, ["times"])
    timed = list(zip(cases, map(float, chosen["times"]), strict=True))
    for (case, _), (rows, numbers) in each_cell(run, timed, _measured, "cases"):
        results += _page(run, case, rows, numbers)
        members += rows
    run.answer(_answer(results, members))
    run.table("regimes", results, SHEET.text("regimes"))
    run.results(results)


def _measured(run: StudyRun, cell: tuple[PlaneCase, float]) -> tuple[list[MutableRow], list[MutableRow]]:
    """Regimes of a plane, and the courses drawn."""
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
    run.figure(f"atlas-{case.key}", page(case, rows, courses), SHEET.text("page", case=case), rows)
    run.table(f"drawn-{case.key}", _places(rows, courses), "The members drawn below the planes.")
    run.table(f"otherwise-{case.key}", [r for r in rows if r["away"] and not r["agrees"]], SHEET.text("otherwise"))
    judge(run, case, rows)
    counts = Counter((str(row["predicted"]), str(row["measured"])) for row in rows)
    return [
        {"case": case.label, "graph": case.graph_text, "predicted": p, "measured": m, "members": count}
        for (p, m), count in counts.most_common()
    ]


def _places(rows: list[MutableRow], courses: Mapping[str, Course]) -> list[Row]:
    return [{"picture": letter, **rows[member]} for letter, (member, _, _) in courses.items()]


# ---------------------------------------------------------------------- words
def _answer(results: Sequence[Row], rows: Sequence[Row]) -> str:
    counts = Counter[tuple[str, str]]()
    for row in results:
        counts[str(row["predicted"]), str(row["measured"])] += int(row["members"])
    away = [row for row in rows if row["away"]]
    agreeing = sum(int(row["agrees"]) for row in away)
    pairs = ", ".join(f"{predicted} → {measured} {count}" for (predicted, measured), count in counts.most_common(4))
    return SHEET.text("answer", agreeing=agreeing, away=len(away), runs=counts.total(), pairs=pairs)
