"""Rows of Table 8 that are not reproduced: which completion comes nearest, and does our code do what the authors' does?

A row is explained by a completion if it lies within two standard errors on at least seven of the nine sets.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gread.settings.presets import authors_cells, find_published
from studies.cells.agreement import EXPLAINED, NOISE, REPRODUCED, Estimate, Gap
from studies.cells.cell import Load, grouped_rows, load_set, train_cells, write_trials
from studies.cells.cell_limits import ANY_REACTIONS, ANY_SETS, cell_limits
from studies.cells.nine_sets import NOTHING_COMPARED, REACTIONS, SETS, departures
from studies.forensics.completions import (
    PRINTED,
    RULES,
    TRAINED,
    authors_name,
    authors_part,
    completion_cells,
    printed_cells,
    ruled_rows,
)
from studies.runs.chart import FieldMap
from studies.runs.setting_limits import Limit
from studies.runs.tables import MutableRow
from studies.runs.uncertainty import FAILS, HOLDS, UNDECIDED

if TYPE_CHECKING:
    from studies.runs.study_run import StudyRun

#: Of how many sets a completion has to reach how many, and of the cells of the authors' code.
NEEDED, OF_SETS = 7, 9
NEEDED_CELLS, OF_CELLS = 28, 31
WITHIN = (REPRODUCED, NOISE)
#: How the statement about a row goes on after its name.
STATED = " in Table 8 is reached with one completion of what the paper leaves open."
#: Gaps from Table 8 by completion, reaction and data set.
Gaps = dict[tuple[str, str, str], Gap]


def settings(small: bool) -> dict[str, Any]:
    """Sets, reactions, completions; 0 epochs or channels are the published ones."""
    if small:
        return {
            "sets": ["karate"], "reactions": ["BS", "FB"], "completions": ["sigmoid beta", "tanh", "released reaction"],
            "authors_sets": [], "splits": 2, "seeds": 1, "epochs": 3, "hidden": 8,
        }  # fmt: skip
    return {
        "sets": list(SETS), "reactions": list(REACTIONS), "completions": list(TRAINED), "authors_sets": list(SETS),
        "splits": 10, "seeds": 1, "epochs": 0, "hidden": 0,
    }  # fmt: skip


def limits(small: bool) -> dict[str, Limit]:
    """What the settings may be."""
    completions = Limit(known=TRAINED, what="completion", some=False)
    return cell_limits(sets=ANY_SETS, reactions=ANY_REACTIONS, completions=completions, authors_sets=ANY_SETS)


def run(run: StudyRun) -> None:
    """Train beside the authors' code, then the printed settings, then the completions of rows that are not reached."""
    s = run.settings
    beside, printed = authors_part(authors_cells(), s), printed_cells(s)
    theirs = train_cells(run, beside, some=not printed).rows
    rows = train_cells(run, printed, rows_of=ruled_rows, some=False).rows
    asked = [r for r in s["reactions"] if not is_reached(PRINTED, r, gaps_of(rows))]
    rows += train_cells(run, completion_cells(s, asked), rows_of=ruled_rows, some=False).rows
    write_trials(run, [*rows, *theirs])
    gaps = gaps_of(rows)
    found = [explained(r, gaps, (*RULES, *s["completions"])) for r in s["reactions"]]
    _draw(run, gaps, s)
    run.table("rows", [one.row() for one in found], ROWS)
    cells = cell_table(rows)
    run.table("completions", cells, f"Every completion: test accuracy in percent beside Table 8. {EXPLAINED}")
    agreed = authors_table(theirs)
    if agreed:
        run.table("authors", agreed, AUTHORS)
    for one in found:
        run.verdict(*one.verdict())
    if agreed:
        run.verdict(*authors_verdict(agreed))
    run.answer(answer(found, agreed), "distances")
    for reaction in s["reactions"]:
        run.equation(str(reaction), f"GREAD-{reaction}")
    run.say("What is run", about(s))
    run.results([*cells, *agreed_cells(agreed)])


# ---------------------------------------------------------------------- numbers
def gaps_of(rows: Sequence[MutableRow]) -> Gaps:
    """The difference from Table 8 of every completion, where a number is printed."""
    found = {}
    for key, own in grouped_rows(rows, "completion", "reaction", "dataset").items():
        completion, reaction, dataset = map(str, key)
        paper = find_published(f"GREAD-{reaction}", dataset)
        if paper is not None:
            found[completion, reaction, dataset] = Gap.between(Estimate.of(own), paper.mean, paper.std)
    return found


def row_gaps(completion: str, reaction: str, gaps: Gaps) -> dict[str, Gap]:
    """Those of a row by set; a completion that changes nothing on a set has the number of the printed settings."""
    sets = [d for c, r, d in gaps if (c, r) == (PRINTED, reaction)]
    return {d: gaps.get((completion, reaction, d), gaps[PRINTED, reaction, d]) for d in sets}


def is_reached(completion: str, reaction: str, gaps: Gaps) -> bool:
    """Whether a completion lies within two standard errors on at least seven of nine sets."""
    own = row_gaps(completion, reaction, gaps)
    return len(own) >= OF_SETS and sum(gap.word in WITHIN for gap in own.values()) >= NEEDED


@dataclass(frozen=True)
class Explanation:
    """A row of Table 8: what it is explained by, the completion that comes nearest, and how near that is."""

    reaction: str
    answer: str
    nearest: str
    within: int
    printed_within: int
    sets: int
    distance: float
    printed_distance: float

    def row(self) -> MutableRow:
        return {
            "reaction": self.reaction, "answer": self.answer, "nearest": self.nearest, "within": self.within,
            "as_printed": self.printed_within, "sets": self.sets, "distance": self.distance,
            "distance_as_printed": self.printed_distance,
        }  # fmt: skip

    def verdict(self) -> tuple[str, str, str]:
        """Whether the row is reached by the printed settings or one completion of them."""
        sure = UNDECIDED if self.sets < OF_SETS else FAILS if self.answer == "not explained" else HOLDS
        return (
            f"GREAD-{self.reaction}{STATED}",
            sure,
            f"{self.answer}; nearest is {self.nearest or 'none'}: within two standard errors on {self.within} of "
            f"{self.sets} sets ({self.printed_within} as printed), mean distance {self.distance:.2f} points "
            f"({self.printed_distance:.2f} as printed)",
        )


def explanations(kept: Mapping[str, Any]) -> dict[str, str]:
    """What a kept page of this study says of every row of Table 8 that it decides, by method.

    >>> found = [{"statement": f"GREAD-{name}{STATED}", "answer": answer, "evidence": "not explained; nearest is tanh"}
    ...          for name, answer in (("AC", FAILS), ("BS", UNDECIDED))]
    >>> explanations({"verdicts": found})
    {'GREAD-AC': 'not explained'}
    """
    return {
        verdict["statement"].removesuffix(STATED): verdict["evidence"].partition(";")[0]
        for verdict in kept["verdicts"]
        if verdict["statement"].endswith(STATED) and verdict["answer"] != UNDECIDED
    }


def explained(reaction: str, gaps: Gaps, completions: Sequence[str]) -> Explanation:
    """The completion within two standard errors on most sets, of these the one with the least mean distance.

    Of several completions the best is taken, so that chance helps: seven of nine sets is the bar that it has to pass.
    """
    known = [c for c in completions if any((name, r) == (c, reaction) for name, r, _ in gaps)]
    scored = {c: _score(c, reaction, gaps) for c in (PRINTED, *known)}
    printed = scored[PRINTED]
    sets = len(row_gaps(PRINTED, reaction, gaps))
    if not sets:
        return Explanation(reaction, "nothing to compare with", "", 0, 0, 0, math.nan, math.nan)
    best = min(scored, key=lambda c: (-scored[c][0], scored[c][1]))
    if is_reached(PRINTED, reaction, gaps):
        best, word = PRINTED, "reached as printed"
    else:
        word = f"explained by {best}" if is_reached(best, reaction, gaps) else "not explained"
        if sets < OF_SETS:  # too few to say, whatever they show
            word = f"open, with {sets} of {OF_SETS} sets"
    return Explanation(reaction, word, best, scored[best][0], printed[0], sets, scored[best][1], printed[1])


def _score(completion: str, reaction: str, gaps: Gaps) -> tuple[int, float]:
    own = list(row_gaps(completion, reaction, gaps).values())
    if not own:
        return 0, math.nan
    return sum(g.word in WITHIN for g in own), float(np.mean([abs(g.difference) for g in own]))


ROWS = (
    "Every reaction: what explains its row of Table 8. Nearest is the completion within two standard errors on most "
    "sets, then the one with the least mean distance; a completion that changes nothing on a set has the number of the "
    "printed settings there."
)


def cell_table(rows: Sequence[MutableRow]) -> list[MutableRow]:
    """A row for every completion of every cell."""
    gaps = gaps_of(rows)
    table: list[MutableRow] = []
    for key, own in grouped_rows(rows, "completion", "reaction", "dataset").items():
        completion, reaction, dataset = map(str, key)
        one, paper = Estimate.of(own), find_published(f"GREAD-{reaction}", dataset)
        gap = gaps.get((completion, reaction, dataset), Gap(math.nan, math.nan, math.nan))
        table.append({
            "completion": completion, "reaction": reaction, "dataset": dataset, "mean": round(one.mean, 4),
            "std": round(one.std, 4), "splits": one.count, "diverged": sum(row["status"] != "ok" for row in own),
            "other": paper.mean if paper else math.nan, "difference": round(gap.difference, 4), "error": gap.error,
            "verdict": gap.word,
        })  # fmt: skip
    return table


# ---------------------------------------------------------------------- the authors' code
AUTHORS = (
    "Our trainings beside those of the authors' code with the same settings on the same splits. A training that "
    "diverges in its first epoch has no prediction; it counts as predicting class 0, which is what an argmax of nan "
    "gives there: a convention, not a result. `at_once` counts these."
)


def authors_table(rows: Sequence[MutableRow], load: Load = load_set) -> list[MutableRow]:
    """A row for every cell of the authors' code that was trained."""
    known = {authors_name(cell): cell for cell in authors_cells()}
    table: list[MutableRow] = []
    for (name,), own in grouped_rows(rows, "completion").items():
        cell = known[str(name)]
        at_once = [row for row in own if row["status"] != "ok" and int(row["best_epoch"]) == 0]
        counted = [
            {**row, "test_accuracy": class_zero(cell.dataset, int(row["split"]), load)} if row in at_once else row
            for row in own
        ]
        one = Estimate.of(counted)
        gap = Gap.between(one, cell.mean, cell.std, len(cell.splits))
        table.append({
            "completion": str(name), "reaction": cell.reaction, "dataset": cell.dataset, "mean": round(one.mean, 4),
            "std": round(one.std, 4), "splits": one.count, "diverged": sum(row["status"] != "ok" for row in own),
            "at_once": len(at_once), "other": cell.mean, "other_std": cell.std, "other_diverged": cell.diverged,
            "difference": round(gap.difference, 4), "error": gap.error, "verdict": gap.word,
        })  # fmt: skip
    return table


def class_zero(dataset: str, split: int, load: Load = load_set) -> float:
    """The accuracy on the test nodes of a split if every node is said to be of class 0."""
    data = load(dataset)
    test = np.asarray(data.masks.test[split], dtype=bool)
    return float(np.mean(np.asarray(data.y)[test] == 0))


def agreed_cells(table: Sequence[MutableRow]) -> list[MutableRow]:
    """The cells of the authors' code with the columns that all results share."""
    shared = ("completion", "reaction", "dataset", "mean", "std", "splits", "diverged", "other", "difference", "error",
              "verdict")  # fmt: skip
    return [{name: row[name] for name in shared} for row in table]


def authors_verdict(table: Sequence[MutableRow]) -> tuple[str, str, str]:
    """Does our code give what the authors' code gives, in at least 28 of the 31 cells?"""
    far = [row for row in table if row["verdict"] not in WITHIN]
    told = ", ".join(f"{row['completion']} {row['difference']:+z.2f} ({row['error']:.2f})" for row in far)
    sure = UNDECIDED if len(table) < OF_CELLS else HOLDS if len(table) - len(far) >= NEEDED_CELLS else FAILS
    return (
        f"Our code agrees with the authors' code within two standard errors in at least {NEEDED_CELLS} of {OF_CELLS} "
        "cells.",
        sure,
        f"{len(table) - len(far)} of {len(table)} agree" + (f"; beyond: {told}" if far else ""),
    )


# ---------------------------------------------------------------------- figures and words
def _draw(run: StudyRun, gaps: Gaps, s: Mapping[str, Any]) -> None:
    """Mean distances from Table 8 by completion and reaction."""
    names = [c for c in (PRINTED, *RULES, *s["completions"]) if any(c == name for name, _, _ in gaps)]
    reactions = [str(r) for r in s["reactions"]]
    if not names:
        return
    there = {(c, r) for c, r, _ in gaps}
    values = np.array([[_score(c, r, gaps)[1] if (c, r) in there else math.nan for r in reactions] for c in names])
    sure = np.array([[(c, r) in there and is_reached(c, r, gaps) for r in reactions] for c in names])
    drawn: list[MutableRow] = [
        {"completion": c, "reaction": r, "distance": float(values[i, j]), "sets_within": _score(c, r, gaps)[0]}
        for i, c in enumerate(names)
        for j, r in enumerate(reactions)
        if (c, r) in there
    ]
    run.chart(
        "distances", FieldMap(names, reactions, values, sure, "mean distance from Table 8", signed=False),
        "Mean over the sets of the distance from Table 8, in points; bold where a completion lies within two standard "
        f"errors on at least {NEEDED} of {OF_SETS} sets. Empty: it changes nothing, or was not trained since the row "
        "is reached as printed.",
        drawn,
    )  # fmt: skip


def answer(found: Sequence[Explanation], agreed: Sequence[MutableRow]) -> str:
    """What explains the rows, and whether our code is the authors', in one sentence."""
    compared = [one for one in found if one.sets]
    if not compared:
        return NOTHING_COMPARED
    reached = [one.reaction for one in compared if one.answer == "reached as printed"]
    told = [f"{one.reaction} {one.answer}" for one in compared if one.answer.startswith("explained")]
    left = [one.reaction for one in compared if one.answer == "not explained"]
    parts = [f"{len(reached)} of {len(compared)} rows of Table 8 are reached as printed"]
    parts += [f"{len(told)} explained by a completion ({', '.join(told) or 'none'})"]
    parts += [f"{len(left)} not explained ({', '.join(left) or 'none'})"]
    if few := [one.reaction for one in compared if one.answer.startswith("open")]:
        parts.append(f"{len(few)} open, for lack of sets ({', '.join(few)})")
    if agreed:
        same = sum(row["verdict"] in WITHIN for row in agreed)
        parts.append(f"our code agrees with the authors' code in {same} of {len(agreed)} cells")
    return "; ".join(parts) + "."


def about(s: Mapping[str, Any]) -> str:
    """What was trained."""
    words = {**RULES, **{name: TRAINED[name] for name in s["completions"]}}
    changed = departures(s["sets"], s["epochs"], s["hidden"])
    changed, of = (f"{changed},", "the set that they are from") if changed else ("", "the same set")
    return (
        f"The paper's best settings of every reaction (Tables 13 to 19){changed} on the first {s['splits']} public "
        f"splits, with one thing changed at a time; what the paper leaves open is from the released settings of {of}. "
        "Rows that are reached as printed are not asked further.\n\n"
        + "\n\n".join(f"{name}: {text}." for name, text in words.items())
    )
