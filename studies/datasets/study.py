"""The data sets: what they are, where the paper's table differs, and how far looking up twins would go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from gread.datasets.facts import COMPONENT, DIFFERS, Facts, alike_shares, degrees
from gread.datasets.published_comparison import UNEXPLAINED, Comparison, compare, printed_for
from studies.datasets.local_sets import LocalSets, all_names
from studies.runs.cell_work import each_cell
from studies.runs.chart import Chart, Line, Panel
from studies.runs.study_run import StudyRun
from studies.runs.tables import Row

# ---------------------------------------------------------------------- figures
# The gallery of data sets: how degrees are spread, and how many neighbours are of a node's own class.

#: Bins of the histograms.
BINS = 20
DEGREE, ALIKE = "degree", "alike"


def degree_rows(name: str, degrees: np.ndarray) -> list[dict[str, Any]]:
    """The share of nodes with at least each degree that occurs, from 1 on.

    >>> [(row["value"], row["share"]) for row in degree_rows("path", np.array([1, 2, 2, 1, 0]))]
    [(1.0, 0.8), (2.0, 0.4)]
    """
    values, counts = np.unique(degrees, return_counts=True)
    at_least = np.cumsum(counts[::-1])[::-1] / degrees.size
    return [_row(name, DEGREE, v, s) for v, s in zip(values, at_least, strict=True) if v >= 1]


def alike_rows(name: str, shares: np.ndarray) -> list[dict[str, Any]]:
    """A histogram over [0, 1] in equal bins; the value is a bin's left end, nodes without a share are left out.

    >>> [row["share"] for row in alike_rows("pair", np.array([0.0, 1.0, np.nan]))][::BINS - 1]
    [0.5, 0.5]
    """
    known = shares[~np.isnan(shares)]
    counts, ends = np.histogram(known, bins=BINS, range=(0.0, 1.0))
    return [_row(name, ALIKE, v, n / max(1, known.size)) for v, n in zip(ends[:-1], counts, strict=True)]


def _row(name: str, measure: str, value: float, share: float) -> dict[str, Any]:
    return {"set": name, "measure": measure, "value": round(float(value), 9), "share": float(share)}


def gallery(rows: Sequence[Row], facts: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[Chart, str]]:
    """Degrees on logarithmic axes, and the share of neighbours of the same class: charts with a panel a set."""
    panels: dict[str, list[Panel]] = {DEGREE: [], ALIKE: []}
    for name, own in facts.items():
        means = {DEGREE: f"mean degree {own['average_degree']:.1f}", ALIKE: f"mean {own['node_homophily']:.2f}"}
        for measure, mean in means.items():
            mine = [row for row in rows if (row["set"], row["measure"]) == (name, measure)]
            panels[measure].append(Panel(f"{name}, {mean}", [Line.of("share of nodes", mine, "value", "share")]))
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

#: From this share of test nodes on, a set is one where looking up twins answers the test.
LEAK = 0.25


def judge(
    run: StudyRun, facts: Sequence[Facts], compared: Sequence[Comparison], twins: Sequence[Mapping[str, Any]]
) -> None:
    """The verdicts on the paper's table, on the splits, and on twins in the training set."""
    _judge_table(run, compared)
    _judge_splits(run, [f for f in facts if printed_for(f.name)])
    ordered = sorted(twins, key=lambda row: -float(row["beyond_leaves"]))
    leaking = [row for row in ordered if row["beyond_leaves"] >= 100 * LEAK]
    told = ", ".join(f"{row['set']} {row['beyond_leaves']:g} %" for row in leaking or ordered[:1])
    run.verdict(
        f"On no set do {LEAK:.0%} of the test nodes have a twin in the training set, leaves not counted.",
        "fails" if leaking else "holds",
        f"Test nodes with a twin in training that is no leaf: {'' if leaking else 'at most '}{told}.",
    )


def _judge_table(run: StudyRun, compared: Sequence[Comparison]) -> None:
    wrong = [c for c in compared if not c.agrees]
    if not compared:
        return
    run.verdict(
        "The paper's table gives the nodes, edges, features, classes and homophily of the graphs it trains on.",
        "fails" if wrong else "holds",
        "; ".join(f"{c.name} {c.quantity} {c.printed}: {c.reason}" for c in wrong) or "All figures agree.",
    )


def _judge_splits(run: StudyRun, facts: Sequence[Facts]) -> None:
    """The public splits of the paper's sets."""
    if not facts:
        return
    shares: dict[str, list[str]] = {}
    for f in facts:
        shares.setdefault(f.split_shares, []).append(f.name)
    run.verdict(
        "The splits hold 60, 20 and 20 percent of the nodes, as the names of the public files say.",
        "holds" if set(shares) == {"60/20/20"} else "fails",
        "; ".join(f"{share}: {', '.join(names)}" for share, names in shares.items()) + ".",
    )
    moved = [f"{f.name} ({f.coverage}, {f.component_nodes:,} of {f.nodes:,})" for f in facts
             if f.coverage in (COMPONENT, DIFFERS)]  # fmt: skip
    run.verdict(
        "Every split of a set covers all of its labelled nodes.",
        "fails" if moved else "holds",
        f"Exceptions: {', '.join(moved)}." if moved else "No exception among these sets.",
    )


# ---------------------------------------------------------------------- rows
# The data sets as rows: facts, shapes, twins, and the paper's table.


#: What is counted of a set, and what `gread.datasets.facts` calls it where that has another name.
FACTS = (
    "set", "nodes", "edges", "loops", "features", "classes", "edge_homophily", "node_homophily", "adjusted_homophily",
    "splits", "masks_cover", "components", "largest_component", "isolated", "unlabelled", "empty_rows",
    "average_degree", "max_degree", "feature_density",
)  # fmt: skip
CALLED = {"set": "name", "splits": "split_shares", "masks_cover": "coverage", "largest_component": "component_nodes"}


def facts_rows(local: LocalSets, name: str) -> list[Row]:
    """What is counted of a set, as one row."""
    facts = local.facts(name)
    return [{column: getattr(facts, CALLED.get(column, column)) for column in FACTS}]


def shape_rows(local: LocalSets, name: str) -> list[Row]:
    """How degrees and like neighbours are spread, as the gallery draws it."""
    data = local.read(name)
    return [*degree_rows(name, degrees(data.graph)), *alike_rows(name, alike_shares(data))]


def twins_rows(local: LocalSets, name: str) -> list[Row]:
    """How many twins a set has, and how far looking them up would go; shares in percent."""
    twins = local.twins(name)
    shares = {
        "one_label": twins.one_label,
        "in_training": twins.in_training,
        "alike": twins.alike,
        "beyond_leaves": twins.beyond_leaves,
    }
    percent = {key: round(100 * share, 1) if share == share else -1.0 for key, share in shares.items()}
    return [{"set": twins.name, "nodes": twins.nodes, "twins": twins.twins, "groups": twins.groups, **percent}]


def paper_row(found: Comparison) -> Row:
    """A figure of the paper's table beside what is counted, and the reason where they differ."""
    answer = "agrees" if found.agrees else "differs"
    return {
        "set": found.name,
        "quantity": found.quantity,
        "paper": found.printed.value,
        "counted": round(found.ours, 4),
        "answer": answer,
        "why": found.reason,
    }


# ---------------------------------------------------------------------- study
#: Sets that need no file.
SMALL = ("karate", "digits")
FACTS_CAPTION = (
    "Counted on the whole graph, made undirected; self-loops are counted apart. Homophily: edge, node (the paper's "
    "formula) and adjusted for the sizes of the classes, all without self-loops. Splits: training, validation and test "
    "in percent of the nodes they cover. Empty rows: nodes without any feature."
)
PAPER_CAPTION = (
    "Every figure of the paper's table that differs from what is counted here, or needs a remark, with the first "
    "reason that reproduces it. Nodes and edges are those of the graph that is trained on, homophily is that of the "
    "paper's formula."
)
TWINS_CAPTION = (
    "Twins are nodes with exactly the same neighbours. One label: groups of twins whose labels agree. In training: "
    "test nodes with a twin among the training nodes, mean over the splits; alike: with a twin of their own class; "
    "beyond leaves: with a twin and more than one neighbour. In percent; -1 where there is nothing to take a share of."
)


def settings(small: bool) -> dict[str, Any]:
    """The sets that are looked for."""
    return {"sets": list(SMALL if small else all_names())}


def run(run: StudyRun) -> None:
    """Facts, gallery, the paper's table, twins, verdicts; sets that are not available are named and left out."""
    local = LocalSets()
    names = [name for name in run.settings["sets"] if local.is_available(name)]
    missing = [name for name in run.settings["sets"] if name not in names]
    drawn: list[dict[str, Any]] = []
    counted: list[dict[str, Any]] = []
    twins: list[dict[str, Any]] = []
    for _, (facts, shape, same) in each_cell(run, names, partial(_counted, local=local), "counting"):
        counted += facts
        drawn += shape
        twins += same
    compared = [c for name in names for c in compare(local.facts(name), local.facts_or_none)]

    if compared:
        run.answer(_paper_text(compared))
    run.say("Which sets", _about(names, missing))
    for name, (chart, caption) in gallery(drawn, {row["set"]: row for row in counted}).items():
        run.figure(name, chart, caption)
    run.table("facts", counted, FACTS_CAPTION)
    if shown := [paper_row(c) for c in compared if c.reason or not c.agrees]:
        run.table("paper", shown, PAPER_CAPTION)
    run.say("Twins", _twins_text(twins))
    run.table("twins", twins, TWINS_CAPTION)
    judge(run, [local.facts(name) for name in names], compared, twins)
    run.results(counted)


def _counted(run: StudyRun, name: str, *, local: LocalSets) -> tuple[list[dict[str, Any]], ...]:
    """Facts, shape and twins of one set."""
    kinds = (("facts", facts_rows), ("shape", shape_rows), ("twins", twins_rows))
    return tuple(run.part(f"{kind}-{name}", partial(rows, local, name)) for kind, rows in kinds)


# ---------------------------------------------------------------------- words
def _about(names: Sequence[str], missing: Sequence[str]) -> str:
    left_out = (
        f"\n\n    Left out, since their files are not available: {', '.join(missing)}. rdgraph data fetch brings them."
        if missing
        else ""
    )
    return f"{len(names)} sets: {', '.join(names)}.{left_out}"


def _paper_text(compared: Sequence[Comparison]) -> str:
    wrong = [c for c in compared if not c.agrees]
    open_cases = [c for c in wrong if c.reason == UNEXPLAINED]
    rest = f"{len(open_cases)} of these differences have no reason here" if open_cases else "every one has a reason"
    return (
        f"Of {len(compared)} printed figures {len(compared) - len(wrong)} agree with what is counted, {len(wrong)} "
        f"differ, and {rest}. A reason is a computation that arrives at the printed figure."
    )


def _twins_text(twins: Sequence[Mapping[str, Any]]) -> str:
    most = max(twins, key=lambda row: float(row["beyond_leaves"]))
    return (
        "A test node whose neighbours are exactly those of a training node can be answered by looking that node up. "
        "Leaves that hang on one common neighbour are twins too, and no copies of each other, so they are told apart. "
        f"The set with most others is {most['set']}: {most['in_training']:g} % of its test nodes have a twin in "
        f"training, {most['alike']:g} % one of their own class, {most['beyond_leaves']:g} % one that is no leaf."
    )
