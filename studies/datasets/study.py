"""Statistics of the data sets, differences from the paper's table, and test nodes with twins in the training set."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from gread.datasets.facts import COMPONENT, DIFFERS, Facts, alike_shares, degrees
from gread.datasets.published_comparison import UNEXPLAINED, Comparison, compare, printed_for
from rdgraph.wording import counted
from studies.datasets.local_sets import LocalSets, all_names
from studies.runs.cell_work import each_cell
from studies.runs.chart import Chart, Line, Panel
from studies.runs.study_run import StudyRun
from studies.runs.tables import Row
from studies.runs.word_sheets import WordSheet

# ---------------------------------------------------------------------- figures
# The gallery of data sets: distributions of degrees and of the share of neighbours with a node's own class.

SHEET = WordSheet("datasets")
#: Bins of the histograms.
BINS = 20
DEGREE, ALIKE = "degree", "alike"


def degree_rows(name: str, degrees: np.ndarray) -> list[dict[str, Any]]:
    """For every degree from 1 on the share of nodes with at least that degree.

    >>> [(row["value"], row["share"]) for row in degree_rows("path", np.array([1, 2, 2, 1, 0]))]
    [(1.0, 0.8), (2.0, 0.4)]
    """
    values, counts = np.unique(degrees, return_counts=True)
    at_least = np.cumsum(counts[::-1])[::-1] / degrees.size
    return [_row(name, DEGREE, v, s) for v, s in zip(values, at_least, strict=True) if v >= 1]


def alike_rows(name: str, shares: np.ndarray) -> list[dict[str, Any]]:
    """Histogram over [0, 1] in equal bins, by their left ends; nodes without neighbours are left out.

    >>> [row["share"] for row in alike_rows("pair", np.array([0.0, 1.0, np.nan]))][::BINS - 1]
    [0.5, 0.5]
    """
    known = shares[~np.isnan(shares)]
    counts, ends = np.histogram(known, bins=BINS, range=(0.0, 1.0))
    return [_row(name, ALIKE, v, n / max(1, known.size)) for v, n in zip(ends[:-1], counts, strict=True)]


def _row(name: str, measure: str, value: float, share: float) -> dict[str, Any]:
    return {"set": name, "measure": measure, "value": round(float(value), 9), "share": float(share)}


def gallery(rows: Sequence[Row], facts: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[Chart, str]]:
    """Charts with a panel for every set: degrees on logarithmic axes, and shares of neighbours of the same class."""
    panels: dict[str, list[Panel]] = {DEGREE: [], ALIKE: []}
    for name, row in facts.items():
        means = {DEGREE: f"mean degree {row['average_degree']:.1f}", ALIKE: f"mean {row['node_homophily']:.2f}"}
        for measure, mean in means.items():
            points = [point for point in rows if (point["set"], point["measure"]) == (name, measure)]
            panels[measure].append(Panel(f"{name}, {mean}", [Line.of("share of nodes", points, "value", "share")]))
    which = f"{len(facts)} data sets, each as an undirected graph without self-loops"
    degree = Chart(panels[DEGREE], "degree", "share of nodes with at least it", x_scale="log", y_scale="log")
    alike = Chart(panels[ALIKE], "share of neighbours of the same class", "share of nodes")
    return {
        "degrees": (degree, f"{which}: the share of nodes with at least a given degree, both axes logarithmic; a node "
                            "without edges counts below every degree."),
        "alike": (alike, f"{which}: how the share of neighbours that have a node's own class is spread over the nodes, "
                         f"in {BINS} bins by their left ends; its mean is the node homophily."),
    }  # fmt: skip


# ---------------------------------------------------------------------- verdicts
# Verdicts on the data sets: the paper's table, the splits, and twins in the training set.

#: Share of test nodes with a twin in the training set from which on twins leak test labels.
LEAK = 0.25


def judge(
    run: StudyRun, facts: Sequence[Facts], compared: Sequence[Comparison], twins: Sequence[Mapping[str, Any]]
) -> None:
    """The verdicts on the paper's table, on the splits, and on twins in the training set."""
    _judge_table(run, compared)
    _judge_splits(run, [f for f in facts if printed_for(f.name)])
    known = [row for row in twins if not math.isnan(float(row["beyond_leaves"]))]
    ordered = sorted(known, key=lambda row: -float(row["beyond_leaves"]))
    leaking = [row for row in ordered if row["beyond_leaves"] >= 100 * LEAK]
    listed = ", ".join(f"{row['set']} {row['beyond_leaves']:g} %" for row in leaking or ordered[:1])
    run.verdict(
        *SHEET.verdict(
            "leak", "fails" if leaking else "holds", leak=LEAK, bound="" if leaking else "at most ", listed=listed
        )
    )


def _judge_table(run: StudyRun, compared: Sequence[Comparison]) -> None:
    wrong = [c for c in compared if not c.agrees]
    if not compared:
        return
    run.verdict(
        "The paper's table gives the nodes, edges, features, classes and homophily of the graphs it trains on.",
        "fails" if wrong else "holds",
        "; ".join(f"{c.name} {c.quantity} {c.printed}: {c.reason}" for c in wrong) or "All numbers agree.",
    )


def _judge_splits(run: StudyRun, facts: Sequence[Facts]) -> None:
    """The public splits of the paper's sets."""
    if not facts:
        return
    shares: dict[str, list[str]] = {}
    for f in facts:
        shares.setdefault(f.split_shares, []).append(f.name)
    run.verdict(
        "The splits have 60, 20 and 20 percent of the nodes, as the names of the public files say.",
        "holds" if set(shares) == {"60/20/20"} else "fails",
        "; ".join(f"{share}: {', '.join(names)}" for share, names in shares.items()) + ".",
    )
    moved = [f"{f.name} ({f.coverage}, {f.component_nodes:,} of {f.nodes:,})" for f in facts
             if f.coverage in (COMPONENT, DIFFERS)]  # fmt: skip
    run.verdict(
        "Every split of a set covers all of its labelled nodes.",
        "fails" if moved else "holds",
        f"Exceptions: {', '.join(moved)}." if moved else "There are no exceptions.",
    )


# ---------------------------------------------------------------------- rows
# Rows: facts, distributions, twins, and the paper's table.


#: Statistics of a data set, and their names in `gread.datasets.facts` where they differ.
FACTS = (
    "set", "nodes", "edges", "loops", "features", "classes", "edge_homophily", "node_homophily", "adjusted_homophily",
    "splits", "masks_cover", "components", "largest_component", "isolated", "unlabelled", "empty_rows",
    "average_degree", "max_degree", "feature_density",
)  # fmt: skip
CALLED = {"set": "name", "splits": "split_shares", "masks_cover": "coverage", "largest_component": "component_nodes"}


def facts_rows(local: LocalSets, name: str) -> list[Row]:
    """Statistics of a data set, as one row."""
    facts = local.facts(name)
    return [{column: getattr(facts, CALLED.get(column, column)) for column in FACTS}]


def shape_rows(local: LocalSets, name: str) -> list[Row]:
    """Distributions of degrees and of neighbours of the same class."""
    data = local.read(name)
    return [*degree_rows(name, degrees(data.graph)), *alike_rows(name, alike_shares(data))]


def twins_rows(local: LocalSets, name: str) -> list[Row]:
    """Number of twins of a data set, and shares of test nodes with twins, in percent; nan for undefined shares."""
    twins = local.twins(name)
    shares = {
        "one_label": twins.one_label,
        "in_training": twins.in_training,
        "alike": twins.alike,
        "beyond_leaves": twins.beyond_leaves,
    }
    percent = {key: round(100 * share, 1) for key, share in shares.items()}
    return [{"set": twins.name, "nodes": twins.nodes, "twins": twins.twins, "groups": twins.groups, **percent}]


def paper_row(compared: Comparison) -> Row:
    """A number of the paper's table, ours, and the reason if they differ."""
    return {
        "set": compared.name,
        "quantity": compared.quantity,
        "paper": compared.printed.value,
        "here": round(compared.ours, 4),
        "answer": "agrees" if compared.agrees else "differs",
        "reason": compared.reason,
    }


# ---------------------------------------------------------------------- study
#: Data sets without files.
SMALL = ("karate", "digits")


def settings(small: bool) -> dict[str, Any]:
    """The data sets of a mode."""
    return {"sets": list(SMALL if small else all_names())}


def run(run: StudyRun) -> None:
    """Run the study: facts, gallery, the paper's table, twins and verdicts; missing data sets are listed."""
    local = LocalSets()
    names = [name for name in run.settings["sets"] if local.is_available(name)]
    missing = [name for name in run.settings["sets"] if name not in names]
    drawn: list[dict[str, Any]] = []
    statistics: list[dict[str, Any]] = []
    twins: list[dict[str, Any]] = []
    for _, (facts, shape, same) in each_cell(run, names, partial(_statistics, local=local), "computing statistics"):
        statistics += facts
        drawn += shape
        twins += same
    compared = [c for name in names for c in compare(local.facts(name), local.facts_or_none)]

    run.answer(_answer(compared, twins), "alike")
    run.say("Which sets", _about(names, missing))
    for name, (chart, caption) in gallery(drawn, {row["set"]: row for row in statistics}).items():
        run.figure(name, chart, caption)
    run.table("facts", statistics, SHEET.text("facts"))
    if shown := [paper_row(c) for c in compared if c.reason or not c.agrees]:
        run.table("paper", shown, SHEET.text("paper"))
    run.say("Twins", _twins_text(twins))
    run.table("twins", twins, SHEET.text("twins"))
    judge(run, [local.facts(name) for name in names], compared, twins)
    run.results(statistics)


def _statistics(run: StudyRun, name: str, *, local: LocalSets) -> tuple[list[dict[str, Any]], ...]:
    """Facts, distributions and twins of one data set."""
    kinds = (("facts", facts_rows), ("shape", shape_rows), ("twins", twins_rows))
    return tuple(run.part(f"{kind}-{name}", partial(rows, local, name)) for kind, rows in kinds)


# ---------------------------------------------------------------------- words
def _about(names: Sequence[str], missing: Sequence[str]) -> str:
    rest = f"\n\n    Not available: {', '.join(missing)}. `rdgraph data fetch NAME` downloads them." if missing else ""
    return f"{counted(len(names), 'set')}: {', '.join(names)}.{rest}"


def _answer(compared: Sequence[Comparison], twins: Sequence[Mapping[str, Any]]) -> str:
    """How much of the paper's table agrees, and which data set has most twins, in two sentences."""
    wrong = [c for c in compared if not c.agrees]
    unexplained = sum(c.reason == UNEXPLAINED for c in wrong)
    reasons = f"{unexplained} without an explanation" if unexplained else "all explained"
    text = "None of these data sets is in the paper's table."
    if compared:
        text = SHEET.text(
            "table", agreeing=len(compared) - len(wrong), all=len(compared), wrong=len(wrong), reasons=reasons
        )
    most = _with_most_twins(twins)
    if most is None:
        return f"{text} No test node has a twin in the training set."
    return SHEET.text("most", text=text, most=most)


def _with_most_twins(twins: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    known = [row for row in twins if float(row["beyond_leaves"]) > 0]
    return max(known, key=lambda row: float(row["beyond_leaves"]), default=None)


def _twins_text(twins: Sequence[Mapping[str, Any]]) -> str:
    text = SHEET.text("about twins")
    if (most := _with_most_twins(twins)) is None:
        return text
    return SHEET.text("most twins", text=text, most=most)
