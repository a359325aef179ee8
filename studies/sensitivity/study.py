"""Figures 3, 4, 7 and 8 of the paper: accuracy against the end time T and the step, the exact flow as the limit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gread.settings.config import Config
from studies.cells.agreement import LEVEL, Estimate, holm
from studies.cells.cell import Cell, Variation, file_name, grouped_rows, load_set, shrunk, train_cells, write_trials
from studies.cells.cell_figures import curve_panels
from studies.cells.cell_limits import cell_limits
from studies.cells.corrected_test import CorrectedTest, all_pairs, none_beyond, share_ratio
from studies.cells.nine_sets import LINEAR, REACTIONS, SETS, departures, published_config
from studies.runs.chart import Line
from studies.runs.pairing import split_means
from studies.runs.setting_limits import Limit
from studies.runs.tables import MutableRow
from studies.runs.uncertainty import FAILS, HOLDS, ROUNDING, UNDECIDED, at_most, reach, standard_error

if TYPE_CHECKING:
    from studies.runs.study_run import StudyRun

TIME, STEP, EXACT = "T", "step", "exact"
#: The method of the figures of the step, as the paper says.
STEPPED = "rk4"
#: What a table says of a smallest step that is neither nearer to the exact flow than the largest nor farther.
AS_NEAR = "as near"
#: A mean that moves by less than this over all steps is called stable, in points.
STABLE = 2.0


def settings(small: bool) -> dict[str, Any]:
    """Times, steps, sets and reactions; 0 epochs or channels are the published ones."""
    if small:
        return {
            "sets": ["karate"], "reactions": ["BS", "AC"], "times": [0.5, 2.0], "steps": [0.5, 1.0], "splits": 2,
            "seeds": 1, "epochs": 15, "hidden": 8,
        }  # fmt: skip
    return {
        "sets": list(SETS), "reactions": list(REACTIONS), "times": [0.1, 0.5, 1.0, 1.9, 3.0, 4.5, 6.0],
        "steps": [0.1, 0.25, 0.5, 1.0, 1.5], "splits": 5, "seeds": 1, "epochs": 0, "hidden": 0,
    }  # fmt: skip


def limits(small: bool) -> dict[str, Limit]:
    """What the settings may be."""
    return cell_limits(times=Limit(least=0, some=False), steps=Limit(above=0, some=False))


def run(run: StudyRun) -> None:
    """Train every point of every curve, draw the curves, and answer the paper's sentences about them."""
    rows = train_cells(run, make_cells(run.settings)).rows
    write_trials(run, rows)
    table = point_table(rows)
    _draw(run, table, TIME, "end time T", "The published method and step, end time T")
    _draw(run, table, STEP, "step", "RK4 with this step at the published T; dotted, the exact flow at the same T")
    run.table("points", table, "Every point: test accuracy in percent over the splits; exact has the step 0.")
    tests = exact_tests(rows)
    if tests:
        run.table("limits", tests, LIMITS)
    for verdict in verdicts(rows, tests):
        run.verdict(*verdict)
    run.answer(answer(table, tests), TIME)
    for reaction in run.settings["reactions"]:
        run.equation(str(reaction), f"GREAD-{reaction}")
    run.say("What is run", about(run.settings))
    run.results(table)


# ---------------------------------------------------------------------- what is trained
def make_cells(s: Mapping[str, Any]) -> list[Cell]:
    """Two cells for every reaction on every set: one curve over T, one over the step with its limit."""
    found = []
    for dataset in s["sets"]:
        for reaction in s["reactions"]:
            config = shrunk(published_config("paper", reaction, dataset), s["epochs"], s["hidden"])
            for kind, made in (
                (TIME, _over_times(config, s["times"])),
                (STEP, _over_steps(config, reaction, s["steps"])),
            ):
                variations = tuple(Variation({"curve": kind, "reaction": reaction, "x": x}, c) for x, c in made)
                if variations:
                    name = file_name(kind, reaction, dataset)
                    found.append(Cell(name, (dataset,), variations, s["splits"], s["seeds"]))
    return found


def _over_times(config: Config, times: Sequence[float]) -> list[tuple[float, Config]]:
    return [(time, config.updated({"time": time})) for time in times]


def _over_steps(config: Config, reaction: str, steps: Sequence[float]) -> list[tuple[float, Config]]:
    """RK4 with every step, and the exact flow, whose step is 0, where the reaction is linear."""
    stepped = [(step, config.updated({"method": STEPPED, "step": step})) for step in steps]
    limit = [(0.0, config.updated({"method": EXACT, "step": None}))] if reaction in LINEAR else []
    return [*stepped, *limit]


# ---------------------------------------------------------------------- numbers
def point_table(rows: Sequence[MutableRow]) -> list[MutableRow]:
    """A row for every point of every curve."""
    table: list[MutableRow] = []
    for key, own in grouped_rows(rows, "curve", "reaction", "dataset", "x").items():
        one = Estimate.of(own)
        table.append({
            "curve": str(key[0]), "reaction": str(key[1]), "dataset": str(key[2]), "x": float(key[3]),
            "mean": round(one.mean, 4), "std": round(one.std, 4), "error": standard_error(one.std, one.count),
            "splits": one.count, "diverged": sum(row["status"] != "ok" for row in own),
        })  # fmt: skip
    return table


LIMITS = (
    "The smallest step against the exact flow on the same splits: the difference of accuracies, its corrected standard "
    "error (Nadeau and Bengio) and p, corrected by Holm; nearer: whether the smallest step is nearer to the exact flow "
    "than the largest, or as near."
)


def exact_tests(rows: Sequence[MutableRow]) -> list[MutableRow]:
    """How far the smallest step is from the exact flow, for every reaction and set that has both."""
    table: list[MutableRow] = []
    stepped = [row for row in rows if row["curve"] == STEP]
    for (reaction, dataset), own in grouped_rows(stepped, "reaction", "dataset").items():
        points = {float(x): split_means(part) for (x,), part in grouped_rows(own, "x").items()}
        steps = sorted(x for x in points if x > 0)
        if 0.0 not in points or not steps:
            continue
        ratio = share_ratio(load_set(str(dataset)))
        near, far = (CorrectedTest.of(points[x], points[0.0], ratio) for x in (steps[0], steps[-1]))
        table.append({
            "reaction": str(reaction), "dataset": str(dataset), "smallest_step": steps[0],
            "difference": round(near.difference, 4), "error": near.error, "splits": near.splits, "p": near.p,
            "largest_step": steps[-1],
            "largest_difference": round(far.difference, 4),
            "nearer": _nearer(near.difference, far.difference),
        })  # fmt: skip
    corrected = holm([float(row["p"]) for row in table])
    return [{**row, "p_holm": p} for row, p in zip(table, corrected, strict=True)]


def _nearer(near: float, far: float) -> str:
    """Whether the first difference is the smaller one; means of the same counts differ by rounding alone.

    >>> _nearer(0.1, -0.2), _nearer(0.3, 0.1 + 0.2), _nearer(-0.2, 0.1)
    ('yes', 'as near', 'no')
    """
    if math.isclose(abs(near), abs(far), rel_tol=0, abs_tol=ROUNDING):
        return AS_NEAR
    return "yes" if abs(near) < abs(far) else "no"


# ---------------------------------------------------------------------- verdicts
def verdicts(rows: Sequence[MutableRow], tests: Sequence[MutableRow]) -> list[tuple[str, str, str]]:
    """The paper's sentences about the figures, and that small steps reach the exact flow."""
    made = [*_best_time(rows), *_low_reaction(rows), *_stable_steps(rows), *_larger_steps(rows)]
    if tests:
        apart = [row for row in tests if float(row["p_holm"]) < LEVEL]
        known = [row for row in tests if not math.isnan(float(row["p"]))]
        nearer, tied = (sum(row["nearer"] == word for row in tests) for word in ("yes", AS_NEAR))
        made.append((
            "The smallest step of RK4 gives the accuracy of the exact flow.",
            FAILS if apart else HOLDS if known and _all_close(known) else UNDECIDED,
            f"{len(apart)} of {len(tests)} cells differ for sure after Holm's correction; the largest difference is "
            f"{max(abs(float(r['difference'])) for r in tests):.2f} points; nearer than the largest step in {nearer}"
            + (f", as near in {tied}" if tied else ""),
        ))  # fmt: skip
    return made


def _all_close(tests: Sequence[MutableRow]) -> bool:
    """Whether every difference is below what counts as stable for sure."""
    known = [(abs(float(row["difference"])), reach(float(row["error"]), int(row["splits"]))) for row in tests]
    return all(at_most(difference, far, STABLE) == HOLDS for difference, far in known)


def _points(rows: Sequence[MutableRow], curve: str, reaction: str, dataset: str) -> dict[float, dict[int, float]]:
    own = [r for r in rows if (r["curve"], r["reaction"], r["dataset"]) == (curve, reaction, dataset)]
    return {float(x): split_means(part) for (x,), part in grouped_rows(own, "x").items()}


def _best_time(rows: Sequence[MutableRow]) -> list[tuple[str, str, str]]:
    points = _points(rows, TIME, "BS", "chameleon")
    if 1.9 not in points or len(points) < 2:
        return []
    ratio = share_ratio(load_set("chameleon"))
    tests = {t: CorrectedTest.of(points[1.9], points[t], ratio) for t in points if t != 1.9}
    corrected = dict(zip(tests, holm([test.p for test in tests.values()]), strict=True))
    sure = {t: tests[t].difference for t, p in corrected.items() if p < LEVEL}
    below = [t for t, difference in sure.items() if difference < 0]
    answer = FAILS if below else HOLDS if len(sure) == len(tests) else UNDECIDED
    told = ", ".join(f"T = {t:g} {test.difference:+z.2f} (p {corrected[t]:.2g})" for t, test in tests.items())
    return [("On Chameleon GREAD-BS has the highest mean accuracy at T = 1.9 (Figure 3).", answer,
             f"1.9 minus the others, paired and corrected: {told}")]  # fmt: skip


def _low_reaction(rows: Sequence[MutableRow]) -> list[tuple[str, str, str]]:
    """At the largest T, is Z below BS, and has BS lost nothing since its best smaller T?"""
    made, sets = [], list(dict.fromkeys(str(row["dataset"]) for row in rows))
    for dataset in (s for s in ("texas", "cornell_old", "film") if s in sets):
        bs, z = (_points(rows, TIME, reaction, dataset) for reaction in ("BS", "Z"))
        if not bs or not z:
            continue
        last = max(set(bs) & set(z))
        test = CorrectedTest.of(bs[last], z[last], share_ratio(load_set(dataset)))
        sure = test.p < LEVEL
        made.append((
            f"GREAD-Z is below GREAD-BS at large T on {dataset} (Figure 7).",
            (HOLDS if test.difference > 0 else FAILS) if sure else UNDECIDED,
            f"BS minus Z at T = {last:g}: {test.difference:+z.2f} (error {test.error:.2f}, p {test.p:.2g})",
        ))  # fmt: skip
    return made


def _stable_steps(rows: Sequence[MutableRow]) -> list[tuple[str, str, str]]:
    """Every step against every other: is each difference within what counts as stable?"""
    points = {x: found for x, found in _points(rows, STEP, "BS", "chameleon").items() if x > 0}
    if len(points) < 2:
        return []
    means = {x: float(np.mean(list(found.values()))) for x, found in points.items()}
    high, low = max(means, key=lambda x: means[x]), min(means, key=lambda x: means[x])
    ratio = share_ratio(load_set("chameleon"))
    test = CorrectedTest.of(points[high], points[low], ratio)
    return [("On Chameleon GREAD-BS has stable accuracy at all step sizes (Figure 4).",
             none_beyond(all_pairs(points, ratio), STABLE),
             f"the best step, {high:g}, has {means[high]:.2f} and the worst, {low:g}, {means[low]:.2f}: a difference "
             f"of {test.difference:.2f} (error {test.error:.2f}) where {STABLE:g} points count as stable")]  # fmt: skip


def _larger_steps(rows: Sequence[MutableRow]) -> list[tuple[str, str, str]]:
    """The rank correlation of accuracy and step on every split, since the steps share them."""
    points = {x: found for x, found in _points(rows, STEP, "BS", "cora").items() if x > 0}
    if len(points) < 4:
        return []
    from scipy.stats import spearmanr

    splits = sorted(set.intersection(*(set(found) for found in points.values())))
    each = {k: [points[x][k] for x in sorted(points)] for k in splits}
    ranks = {k: float(spearmanr(sorted(points), v).statistic) if len(set(v)) > 1 else 0.0 for k, v in each.items()}
    test = CorrectedTest.of(ranks, dict.fromkeys(ranks, 0.0), share_ratio(load_set("cora")))
    return [("On Cora GREAD-BS tends to higher accuracy with larger steps (Figure 4).", test.answer,
             f"Spearman's rank correlation over {len(points)} steps is {test.difference:+z.2f} in the mean over "
             f"{test.splits} splits (error {test.error:.2f}, p {test.p:.2g})")]  # fmt: skip


# ---------------------------------------------------------------------- figures and words
def _draw(run: StudyRun, table: Sequence[MutableRow], curve: str, label: str, caption: str) -> None:
    panels: dict[str, list[Line]] = {}
    limits: dict[str, dict[str, float]] = {}
    for (reaction, dataset), own in grouped_rows(
        [r for r in table if r["curve"] == curve], "reaction", "dataset"
    ).items():
        points = sorted((r for r in own if float(r["x"]) > 0), key=lambda r: float(r["x"]))
        columns = (np.array([float(r[c]) for r in points]) for c in ("x", "mean", "error"))
        panels.setdefault(str(dataset), []).append(Line(str(reaction), *columns))
        for row in (r for r in own if r["x"] == 0):
            limits.setdefault(str(dataset), {})[str(reaction)] = float(row["mean"])
    if panels:
        chart = curve_panels(panels, label, limits=limits)
        run.chart(curve, chart, f"{caption}; means over the splits with their standard errors.")


def answer(table: Sequence[MutableRow], tests: Sequence[MutableRow]) -> str:
    """How far T and the step move the accuracy of BS, and how near small steps come to the exact flow."""
    spans = {}
    for curve in (TIME, STEP):
        own = [r for r in table if (r["curve"], r["reaction"]) == (curve, "BS") and float(r["x"]) > 0]
        spread = [
            max(float(r["mean"]) for r in part) - min(float(r["mean"]) for r in part)
            for part in grouped_rows(own, "dataset").values()
        ]
        spans[curve] = f"{np.median(spread):.2f}" if spread else "no"
    gap = f"{max(abs(float(r['difference'])) for r in tests):.2f}" if tests else "an unknown number of"
    return (
        f"Over all T the accuracy of GREAD-BS moves by {spans[TIME]} points in the median set, over all steps of RK4 "
        f"by {spans[STEP]}; the smallest step is at most {gap} points from the exact flow."
    )


def about(s: Mapping[str, Any]) -> str:
    """What the curves change, and what they keep."""
    changed = departures(s["sets"], s["epochs"], s["hidden"])
    return (
        f"Curves over T keep the method and the step of the paper's best settings{changed}{',' if changed else ''} and "
        "change T alone; curves over the step take RK4, as the paper says of its figures, at the published T. The "
        "exact flow needs no step and is the limit of small ones; it exists for the linear reactions (BS, ST, FB, "
        "FB*). The paper prints no numbers for these figures, only sentences, and does not say which other settings "
        "they were drawn with."
    )
