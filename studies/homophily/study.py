"""Figure 6 of the paper: accuracy on the synthetic Cora from heterophily (h = 0) to homophily (h = 1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from studies.cells.agreement import LEVEL, holm
from studies.cells.cell import grouped_rows, train_cells, write_trials
from studies.cells.cell_figures import curve_panels
from studies.cells.cell_limits import ANY_MODELS, ANY_REACTIONS, COUNT
from studies.cells.corrected_test import CorrectedTest, all_pairs, none_beyond
from studies.homophily.degrees import degree_rows
from studies.homophily.levels import (
    CORA,
    NORMALISATIONS,
    SAMPLE,
    level_graph,
    level_of,
    make_cells,
    settings_of_table,
)
from studies.homophily.words import GRAPHS, about
from studies.runs.chart import Line
from studies.runs.setting_limits import Limit
from studies.runs.tables import MutableRow
from studies.runs.uncertainty import FAILS, HOLDS, UNDECIDED, standard_error

if TYPE_CHECKING:
    from studies.runs.study_run import StudyRun

#: Points that a curve falls by from one level to the next to be called a sudden drop, or moves by in all to be called
#: steady.
SUDDEN, STEADY = 5.0, 5.0
#: Levels up to this one are low homophily.
LOW = 0.3
#: Accuracies in percent by method, level and graph.
Curves = dict[str, dict[float, dict[int, float]]]


def settings(small: bool) -> dict[str, Any]:
    """Table 11, thinned to a grid, and the sizes of the run."""
    return settings_of_table(small)


def limits(small: bool) -> dict[str, Limit]:
    """What the settings may be."""
    shares = dict.fromkeys(("levels", "dropout", "input_dropout"), Limit(least=0, most=1))
    counts = dict.fromkeys(("graphs", "splits", "epochs", "hidden"), COUNT)
    rates = {"learning_rates": Limit(above=0), "weight_decays": Limit(least=0), "times": Limit(above=0)}
    words = {"source": Limit(known=(CORA, SAMPLE), what="source of features"), "models": ANY_MODELS}
    words["adjacencies"] = Limit(known=NORMALISATIONS, what="adjacency")
    return {**counts, **rates, **words, **shares, "step": Limit(above=0), "reactions": ANY_REACTIONS}


def run(run: StudyRun) -> None:
    """Train every network with every choice on every graph, choose on the validation nodes, and answer."""
    rows = train_cells(run, make_cells(run.settings), level_graph).rows
    write_trials(run, rows)
    chosen = chosen_rows(rows)
    curves = make_curves(chosen)
    table = level_table(chosen)
    _draw(run, curves, str(run.settings["source"]))
    run.table("levels", table, CAPTION)
    if run.settings["source"] == CORA:
        run.table("degrees", degree_rows(run.settings), "Degrees of the graphs made here beside those of Table 9.")
    for verdict in verdicts(curves):
        run.verdict(*verdict)
    run.answer(answer(curves), "networks")
    for reaction in run.settings["reactions"]:
        run.equation(str(reaction), f"GREAD-{reaction}")
    run.say("What is run", about(run.settings))
    run.results(table)


# ---------------------------------------------------------------------- numbers
CAPTION = (
    "Test accuracy in percent at every level of homophily: mean over graphs and splits, and its standard error over "
    "the graphs; choice: the number of the settings with the best mean validation accuracy at that level."
)


def chosen_rows(rows: Sequence[MutableRow]) -> list[MutableRow]:
    """The trainings of the choice that is best on the validation nodes, for every network at every level."""
    found: list[MutableRow] = []
    levelled: list[MutableRow] = [{**row, "level": level_of(str(row["dataset"]))} for row in rows]
    for part in grouped_rows(levelled, "method", "level").values():
        choices = grouped_rows(part, "choice")
        best = max(choices, key=lambda k: float(np.mean([float(row["val_accuracy"]) for row in choices[k]])))
        found += choices[best]
    return found


def make_curves(rows: Sequence[MutableRow]) -> Curves:
    """Accuracies of every network by level and graph, means over the splits."""
    curves: Curves = {}
    for (method, level, dataset), part in grouped_rows(rows, "method", "level", "dataset").items():
        mean = 100 * float(np.mean([float(row["test_accuracy"]) for row in part]))
        curves.setdefault(str(method), {}).setdefault(float(level), {})[int(str(dataset).split(":")[2])] = mean
    return curves


def level_table(rows: Sequence[MutableRow]) -> list[MutableRow]:
    """A row for every network and level."""
    curves = make_curves(rows)
    table: list[MutableRow] = []
    for (method, level), part in grouped_rows(rows, "method", "level").items():
        means = np.array(list(curves[str(method)][float(level)].values()))
        table.append({
            "method": str(method), "homophily": float(level), "mean": round(float(means.mean()), 4),
            "error": standard_error(float(means.std()), means.size), "graphs": int(means.size), "trials": len(part),
            "choice": int(part[0]["choice"]), "diverged": sum(row["status"] != "ok" for row in part),
        })  # fmt: skip
    return table


# ---------------------------------------------------------------------- verdicts
def verdicts(curves: Curves) -> list[tuple[str, str, str]]:
    """The paper's sentences about its figure."""
    made = []
    if "MLP" in curves:
        made.append(_steady("MLP", curves["MLP"]))
        made += [_poor(name, curves) for name in ("GCN", "GAT", "GRAND") if name in curves]
    if "H2GCN" in curves:
        smooth, told = _largest_drop(curves["H2GCN"])
        answer = {HOLDS: FAILS, FAILS: HOLDS}.get(smooth, UNDECIDED)
        made.append((f"H2GCN suddenly decreases at some homophily (by {SUDDEN:g} points or more).", answer, told))
    for name in (m for m in curves if m.startswith("GREAD-")):
        answer, told = _largest_drop(curves[name])
        made.append((f"{name} has no sudden drop (of {SUDDEN:g} points or more).", answer, told))
    made += [_best_trend(name, curves) for name in curves if name.startswith("GREAD-")]
    return made


def _means(curve: Mapping[float, Mapping[int, float]]) -> dict[float, float]:
    return {level: float(np.mean(list(found.values()))) for level, found in sorted(curve.items())}


def _pairs(own: Curves, one: str, other: str, most: float = 1.0) -> CorrectedTest:
    """One network against another on the levels up to `most`.

    The unit is the graph: its levels have the same nodes, features and splits, and count with their mean.
    """
    levels = [level for level in own[one] if level <= most]
    return CorrectedTest.of(_graph_means(own[one], levels), _graph_means(own[other], levels), 0.0)


def _graph_means(curve: Mapping[float, Mapping[int, float]], levels: Sequence[float]) -> dict[int, float]:
    """The mean over some levels of every graph that has all of them."""
    graphs = set.intersection(*(set(curve[level]) for level in levels)) if levels else set()
    return {graph: float(np.mean([curve[level][graph] for level in levels])) for graph in sorted(graphs)}


def _steady(name: str, curve: Mapping[float, Mapping[int, float]]) -> tuple[str, str, str]:
    means, tests = _means(curve), all_pairs(curve, 0.0)
    spread = max(means.values()) - min(means.values())
    error = max((test.error for test in tests if not np.isnan(test.error)), default=float("nan"))
    return (f"{name} maintains its accuracy for all homophily rates (within {STEADY:g} points).",
            none_beyond(tests, STEADY),
            f"from {min(means.values()):.2f} to {max(means.values()):.2f}, a spread of {spread:.2f}; largest standard "
            f"error of a difference of two levels {error:.2f}, over {_graphs(curve)} graphs")  # fmt: skip


def _graphs(curve: Mapping[float, Mapping[int, float]]) -> int:
    return max((len(found) for found in curve.values()), default=0)


def _poor(name: str, curves: Curves) -> tuple[str, str, str]:
    test = _pairs(curves, name, "MLP", LOW)
    sure = test.p < LEVEL
    return (f"{name} performs poorly at low homophily: below the MLP for h up to {LOW:g}.",
            (HOLDS if test.difference < 0 else FAILS) if sure else UNDECIDED,
            f"{name} minus MLP {test.difference:+z.2f} (error {test.error:.2f}, p {test.p:.2g}), the levels of a "
            f"graph together, over {test.splits} graphs")  # fmt: skip


def _largest_drop(curve: Mapping[float, Mapping[int, float]]) -> tuple[str, str]:
    """Whether every fall from a level to the next is less than a sudden one, and the largest of them in words."""
    levels = sorted(curve)
    falls = {(a, b): CorrectedTest.of(dict(curve[a]), dict(curve[b]), 0.0) for a, b in pairwise(levels)}
    if not falls:
        return UNDECIDED, "one level alone"
    (a, b), test = max(falls.items(), key=lambda pair: pair[1].difference)
    moved = "the largest fall" if test.difference > 0 else "it never falls; the smallest rise"
    return none_beyond(list(falls.values()), SUDDEN), (
        f"{moved} is {abs(test.difference):.2f} points (error {test.error:.2f} over {test.splits} graphs), from h = "
        f"{a:g} to {b:g}; {len(falls)} falls are asked at once"
    )


def _best_trend(name: str, curves: Curves) -> tuple[str, str, str]:
    """Is a reaction better than every other network over all levels?"""
    others = [m for m in curves if not m.startswith("GREAD-")]
    tests = {other: _pairs(curves, name, other) for other in others}
    corrected = dict(zip(others, holm([t.p for t in tests.values()]), strict=True))
    lost = [o for o in others if tests[o].difference < 0 and corrected[o] < LEVEL]
    won = [o for o in others if tests[o].difference > 0 and corrected[o] < LEVEL]
    told = ", ".join(f"{o} {tests[o].difference:+z.2f} (p {corrected[o]:.2g})" for o in others)
    answer = FAILS if lost else HOLDS if others and len(won) == len(others) else UNDECIDED
    return (f"{name} has the best trend overall: better than each other network over all levels.", answer,
            f"mean difference over all levels, the graph as the unit, p after Holm's correction: {told}")  # fmt: skip


# ---------------------------------------------------------------------- figures and words
def _draw(run: StudyRun, curves: Curves, source: str) -> None:
    panels: dict[str, list[Line]] = {"GREAD-BS and other networks": [], "reactions": []}
    for name, curve in curves.items():
        levels = sorted(curve)
        errors = [standard_error(float(np.std(list(curve[k].values()))), len(curve[k])) for k in levels]
        means = _means(curve)
        line = Line(name, np.array(levels), np.array([means[k] for k in levels]), np.array(errors))
        if name.startswith("GREAD-"):
            panels["reactions"].append(line)
        if name == "GREAD-BS" or not name.startswith("GREAD-"):
            panels["GREAD-BS and other networks"].append(line)
    kept = {name: lines for name, lines in panels.items() if lines}
    if kept:
        run.chart(
            "networks", curve_panels(kept, "homophily h", columns=2),
            f"Test accuracy on {GRAPHS[source]}, means over graphs and splits, standard errors over graphs; settings "
            "chosen on the validation nodes at every level.",
        )  # fmt: skip


def answer(curves: Curves) -> str:
    """Who is best over all levels and at the two ends, in one sentence."""
    overall = {name: float(np.mean(list(_means(curve).values()))) for name, curve in curves.items()}
    if not overall:
        return "Nothing was trained."
    best = max(overall, key=lambda name: overall[name])
    ends = []
    for level in (min(curves[best]), max(curves[best])):
        first = max(curves, key=lambda name: _means(curves[name]).get(level, 0.0))
        ends.append(f"{first} at h = {level:g} ({_means(curves[first])[level]:.1f} %)")
    return (
        f"Over all levels {best} is the most accurate on average ({overall[best]:.1f} %); first are {ends[0]} and "
        f"{ends[1]}."
    )
