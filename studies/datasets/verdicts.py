"""Verdicts on the data sets: the paper's table, the splits, and twins in the training set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gread.datasets.comparison import Comparison, printed_for
from gread.datasets.facts import COMPONENT, DIFFERS, Facts
from studies.runs.study_run import StudyRun

#: From this share of test nodes on, a set is one where looking up twins answers the test.
LEAK = 0.25


def judge(
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
