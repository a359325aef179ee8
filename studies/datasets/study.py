"""The data sets: what they are, where the paper's table differs, and how far looking up twins would go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from gread.datasets.comparison import UNEXPLAINED, Comparison, compare, printed_for
from gread.datasets.facts import COMPONENT, DIFFERS, Facts, alike_shares, degrees
from studies.datasets import figures as figures
from studies.datasets.local_sets import LocalSets, all_names
from studies.runs.study_run import StudyRun
from studies.runs.tables import Row

#: Sets that need no file.
SMALL = ("karate", "digits")
#: From this share of test nodes on, a set is one where looking up twins answers the test.
LEAK = 0.25
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
    for name in run.progress(names, "counting"):
        counted += run.part(f"facts-{name}", partial(_facts_rows, local, name))
        drawn += run.part(f"shape-{name}", partial(_shape_rows, local, name))
        twins += run.part(f"twins-{name}", partial(_twins_rows, local, name))
    compared = [c for name in names for c in compare(local.facts(name), local.facts_or_none)]

    run.say("Which sets", _about(names, missing))
    panels = figures.gallery(drawn, {row["set"]: row for row in counted})
    run.figure("gallery", panels, figures.gallery_caption(names), drawn)
    run.table("facts", counted, FACTS_CAPTION)
    if shown := [_paper_row(c) for c in compared if c.reason or not c.agrees]:
        run.say("The paper's table", _paper_text(compared))
        run.table("paper", shown, PAPER_CAPTION)
    run.say("Twins", _twins_text(twins))
    run.table("twins", twins, TWINS_CAPTION)
    _judge(run, [local.facts(name) for name in names], compared, twins)
    run.results(counted)


# ---------------------------------------------------------------------- rows
def _facts_rows(local: LocalSets, name: str) -> list[Row]:
    facts = local.facts(name)
    row: Row = {
        "set": facts.name,
        "nodes": facts.nodes,
        "edges": facts.edges,
        "loops": facts.loops,
        "features": facts.features,
        "classes": facts.classes,
        "edge_homophily": facts.edge_homophily,
        "node_homophily": facts.node_homophily,
        "adjusted_homophily": facts.adjusted_homophily,
        "splits": facts.split_shares,
        "masks_cover": facts.coverage,
        "components": facts.components,
        "largest_component": facts.component_nodes,
        "isolated": facts.isolated,
        "unlabelled": facts.unlabelled,
        "empty_rows": facts.empty_rows,
        "average_degree": facts.average_degree,
        "max_degree": facts.max_degree,
        "feature_density": facts.feature_density,
    }
    return [row]


def _shape_rows(local: LocalSets, name: str) -> list[Row]:
    data = local.read(name)
    return [*figures.degree_rows(name, degrees(data.graph)), *figures.alike_rows(name, alike_shares(data))]


def _twins_rows(local: LocalSets, name: str) -> list[Row]:
    twins = local.twins(name)
    shares = {
        "one_label": twins.one_label,
        "in_training": twins.in_training,
        "alike": twins.alike,
        "beyond_leaves": twins.beyond_leaves,
    }
    percent = {key: round(100 * share, 1) if share == share else -1.0 for key, share in shares.items()}
    return [{"set": twins.name, "nodes": twins.nodes, "twins": twins.twins, "groups": twins.groups, **percent}]


def _paper_row(found: Comparison) -> Row:
    answer = "agrees" if found.agrees else "differs"
    return {
        "set": found.name,
        "quantity": found.quantity,
        "paper": found.printed.value,
        "counted": round(found.ours, 4),
        "answer": answer,
        "why": found.reason,
    }


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


# ---------------------------------------------------------------------- verdicts
def _judge(
    run: StudyRun, facts: Sequence[Facts], compared: Sequence[Comparison], twins: Sequence[Mapping[str, Any]]
) -> None:
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
