"""The data sets: what they are, where the paper's table differs, and how far looking up twins would go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from gread.datasets.comparison import UNEXPLAINED, Comparison, compare
from studies.datasets import figures as figures
from studies.datasets.local_sets import LocalSets, all_names
from studies.datasets.rows import facts_rows, paper_row, shape_rows, twins_rows
from studies.datasets.verdicts import judge
from studies.runs.cell_work import each_cell
from studies.runs.study_run import StudyRun

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
    panels = figures.gallery(drawn, {row["set"]: row for row in counted})
    run.figure("gallery", panels, figures.gallery_caption(names), drawn)
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
