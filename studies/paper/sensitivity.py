"""Figures 3, 4, 7 and 8 of the paper: accuracy against the end time T and the step, the exact flow as the limit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np

from gread.comparison import LEVEL, ROUNDING, Comparison, all_pairs, at_most, none_beyond, reach, split_means
from studies.cells.cell import LINEAR, Cell, Variation, departures, file_name, grouped_rows, sized_config
from studies.paper.drawing import panels_chart, row_curves
from studies.paper.paired_rows import all_positive, compared, picked, share_of, signed, with_holm, with_printed
from studies.paper.runner import Findings, Picture, Settings, Sheet, Table, Verdict, make_run, trained
from studies.runs.tables import MutableRow
from studies.runs.uncertainty import FAILS, HOLDS, UNDECIDED

SHEET = Sheet("sensitivity")
TIME, STEP, EXACT = "T", "step", "exact"
#: The method of the figures of the step, as the paper says.
STEPPED = "rk4"
#: What a table says of a smallest step that is neither nearer to the exact flow than the largest nor farther.
AS_NEAR = "as near"
#: A mean that moves by less than this over all steps is called stable, in points.
STABLE = 2.0
#: The trainings of a curve by T or step.
Points = dict[float, list[MutableRow]]


def make_cells(s: Settings) -> list[Cell]:
    """Two cells for every reaction on every set: one curve over T, one over the step with its limit.

    The limit is the exact flow, whose step is 0, where the reaction is linear.
    """
    cells = []
    for dataset in s["sets"]:
        for reaction in s["reactions"]:
            config = sized_config("paper", reaction, dataset, s)
            times = [(time, config.updated({"time": time})) for time in s["times"]]
            steps = [(step, config.updated({"method": STEPPED, "step": step})) for step in s["steps"]]
            if reaction in LINEAR:
                steps.append((0.0, config.updated({"method": EXACT, "step": None})))
            for curve, points in ((TIME, times), (STEP, steps)):
                built = tuple(Variation({"curve": curve, "reaction": reaction, "x": x}, c) for x, c in points)
                if built:
                    name = file_name(curve, reaction, dataset)
                    cells.append(Cell(name, (dataset,), built, s["splits"], s["seeds"]))
    return cells


# ---------------------------------------------------------------------- numbers
def point_table(rows: Sequence[MutableRow]) -> list[MutableRow]:
    """A row for every point of every curve."""
    return [
        {**picked(group[0], "curve reaction dataset"), "x": float(group[0]["x"]),
         **picked(with_printed(group, None), "mean std error=standard_error splits diverged")}
        for group in grouped_rows(rows, "curve", "reaction", "dataset", "x").values()
    ]  # fmt: skip


def curve_points(rows: Sequence[MutableRow], curve: str, reaction: str, dataset: str) -> Points:
    """The trainings of one curve."""
    group = [r for r in rows if (r["curve"], r["reaction"], r["dataset"]) == (curve, reaction, dataset)]
    return {float(x): part for (x,), part in grouped_rows(group, "x").items()}


def exact_tests(rows: Sequence[MutableRow]) -> list[MutableRow]:
    """How far the smallest step is from the exact flow, for every reaction and set that has both."""
    table: list[MutableRow] = []
    for reaction, dataset in grouped_rows(rows, "reaction", "dataset"):
        points = curve_points(rows, STEP, str(reaction), str(dataset))
        steps = sorted(x for x in points if x > 0)
        if 0.0 not in points or not steps:
            continue
        near, far = (compared(points[x], points[0.0], str(dataset)) for x in (steps[0], steps[-1]))
        table.append({
            "reaction": reaction, "dataset": dataset, "smallest_step": steps[0],
            "difference": round(near.difference, 4), "error": near.error, "splits": near.splits, "p": near.p,
            "largest_step": steps[-1], "largest_difference": round(far.difference, 4),
            "nearer": _nearer(near.difference, far.difference),
        })  # fmt: skip
    return with_holm(table)


def _nearer(near: float, far: float) -> str:
    """Whether the first difference is the smaller one; means of the same counts differ by rounding alone.

    >>> _nearer(0.1, -0.2), _nearer(0.3, 0.1 + 0.2), _nearer(-0.2, 0.1)
    ('yes', 'as near', 'no')
    """
    if math.isclose(abs(near), abs(far), rel_tol=0, abs_tol=ROUNDING):
        return AS_NEAR
    return "yes" if abs(near) < abs(far) else "no"


# ---------------------------------------------------------------------- verdicts
def verdicts(rows: Sequence[MutableRow], tests: Sequence[MutableRow]) -> list[Verdict]:
    """The paper's sentences about the figures, and that small steps reach the exact flow."""
    return list(chain(_best_time(rows), _low_reaction(rows), _stable_steps(rows), _larger_steps(rows), _limit(tests)))


def _limit(tests: Sequence[MutableRow]) -> Iterator[Verdict]:
    """Fails where a cell is apart for sure, holds where every known difference is below what counts as stable."""
    if not tests:
        return
    apart = sum(float(row["p_holm"]) < LEVEL for row in tests)
    nearer, tied = (sum(row["nearer"] == word for row in tests) for word in ("yes", AS_NEAR))
    gaps = [abs(float(row["difference"])) for row in tests]
    close = [
        at_most(gap, reach(float(row["error"]), int(row["splits"])), STABLE) == HOLDS
        for gap, row in zip(gaps, tests, strict=True)
        if not math.isnan(float(row["p"]))
    ]
    yield SHEET.verdict(
        "limit", FAILS if apart else HOLDS if close and all(close) else UNDECIDED, apart=apart, cells=len(tests),
        largest=max(gaps), nearer=nearer, tied=f", as near in {tied}" if tied else "",
    )  # fmt: skip


def _best_time(rows: Sequence[MutableRow]) -> Iterator[Verdict]:
    points = curve_points(rows, TIME, "BS", "chameleon")
    if 1.9 not in points or len(points) < 2:
        return
    tests = {t: compared(points[1.9], points[t], "chameleon") for t in points if t != 1.9}
    table = with_holm([{"T": t, "difference": test.difference, "p": test.p} for t, test in tests.items()])
    listed = ", ".join(f"T = {r['T']:g} {r['difference']:+z.2f} (p {r['p_holm']:.2g})" for r in table)
    yield SHEET.verdict("best time", all_positive(table), listed=listed)


def _low_reaction(rows: Sequence[MutableRow]) -> Iterator[Verdict]:
    """At the largest T, is Z below BS?"""
    for dataset in ("texas", "cornell_old", "film"):
        bs, z = (curve_points(rows, TIME, reaction, dataset) for reaction in ("BS", "Z"))
        if bs and z:
            last = max(set(bs) & set(z))
            test = compared(bs[last], z[last], dataset)
            answer = signed(test.difference, test.p)
            yield SHEET.verdict("low reaction", answer, dataset=dataset, last=last, test=test)


def _steps_of(rows: Sequence[MutableRow], dataset: str) -> dict[float, dict[int, float]]:
    """Accuracies of BS by step and split, without the exact flow."""
    points = curve_points(rows, STEP, "BS", dataset)
    return {x: split_means(part) for x, part in sorted(points.items()) if x > 0}


def _stable_steps(rows: Sequence[MutableRow]) -> Iterator[Verdict]:
    """Every step against every other: is each difference within what counts as stable?"""
    points = _steps_of(rows, "chameleon")
    if len(points) < 2:
        return
    means = {x: float(np.mean(list(result.values()))) for x, result in points.items()}
    high, low = max(means, key=lambda x: means[x]), min(means, key=lambda x: means[x])
    ratio = share_of("chameleon")
    test = Comparison.of(points[high], points[low], ratio)
    yield SHEET.verdict(
        "stable steps", none_beyond(all_pairs(points, ratio), STABLE), high=high, best=means[high], low=low,
        worst=means[low], test=test, stable=STABLE,
    )  # fmt: skip


def _larger_steps(rows: Sequence[MutableRow]) -> Iterator[Verdict]:
    """The rank correlation of accuracy and step on every split, since the steps share them."""
    points = _steps_of(rows, "cora")
    if len(points) < 4:
        return
    from scipy.stats import spearmanr

    splits = sorted(set.intersection(*(set(result) for result in points.values())))
    each = {k: [result[k] for result in points.values()] for k in splits}
    ranks = {k: float(spearmanr(list(points), v).statistic) if len(set(v)) > 1 else 0.0 for k, v in each.items()}
    test = Comparison.of(ranks, dict.fromkeys(ranks, 0.0), share_of("cora"))
    yield SHEET.verdict("larger steps", test.answer, steps=len(points), test=test)


# ---------------------------------------------------------------------- figures and words
def picture(table: Sequence[MutableRow], curve: str, label: str) -> Picture | None:
    """Curves of all reactions, a panel for every set; the exact flow is a dotted level."""
    group = [row for row in table if row["curve"] == curve]
    panels = row_curves([row for row in group if float(row["x"]) > 0], "dataset", "reaction", "x", "mean", "error")
    levels: dict[str, dict[str, float]] = {}
    for row in group:
        if row["x"] == 0:
            levels.setdefault(str(row["dataset"]), {})[str(row["reaction"])] = float(row["mean"])
    return Picture(curve, panels_chart(panels, label, levels=levels), SHEET.text(curve)) if panels else None


def answer(table: Sequence[MutableRow], tests: Sequence[MutableRow]) -> str:
    """How far T and the step move the accuracy of BS, and how near small steps come to the exact flow."""
    spans = {}
    for curve in (TIME, STEP):
        group = [r for r in table if (r["curve"], r["reaction"]) == (curve, "BS") and float(r["x"]) > 0]
        spread = [float(np.ptp([float(r["mean"]) for r in part])) for part in grouped_rows(group, "dataset").values()]
        spans[curve] = f"{np.median(spread):.2f}" if spread else "no"
    gap = f"{max(abs(float(r['difference'])) for r in tests):.2f}" if tests else "an unknown number of"
    return SHEET.text("answer", **spans, gap=gap)


def about(s: Settings) -> str:
    """What the curves change, and what they keep."""
    changed = departures(s["sets"], s["epochs"], s["hidden"])
    return SHEET.text("about", changed=f"{changed}," if changed else "")


def findings(rows: Sequence[MutableRow], s: Settings) -> Findings:
    """The curves, and the paper's sentences about them."""
    table, tests = point_table(rows), exact_tests(rows)
    return Findings(
        results=table,
        items=[
            picture(table, TIME, "end time T"),
            picture(table, STEP, "step"),
            Table("points", table, SHEET.text("points")),
            Table("limits", tests, SHEET.text("limits")) if tests else None,
        ],
        verdicts=verdicts(rows, tests),
        answer=answer(table, tests),
        shows=TIME,
        about=about(s),
    )


settings, limits = SHEET.settings, SHEET.limits
run = make_run(trained(make_cells), findings)
