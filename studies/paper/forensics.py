"""Rows of Table 8 that are not reproduced: which completion comes nearest, and does our code do what the authors' does?

A row is explained by a completion if it lies within two standard errors on at least seven of the nine sets.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gread.comparison import AGREES, EXPLAINED, Estimate, Gap
from gread.settings.config import Config
from gread.settings.presets import AuthorsCell, authors_cells
from gread.training.ensemble import METRICS
from gread.training.trainer import Trained
from studies.cells.cell import (
    BOUNDED,
    NOTHING_COMPARED,
    Cell,
    Load,
    Origins,
    Variation,
    departures,
    file_name,
    grouped_rows,
    load_set,
    published_config,
    released_reaction,
    shrunk,
    sized_config,
    train_cells,
    training_rows,
    write_trials,
)
from studies.paper.drawing import row_map
from studies.paper.paired_rows import gap_to, picked, printed_accuracy, with_printed
from studies.paper.runner import Findings, Picture, Settings, Sheet, Table, Verdict, make_run
from studies.runs.tables import MutableRow
from studies.runs.uncertainty import FAILS, HOLDS, UNDECIDED

if TYPE_CHECKING:
    from studies.runs.study_run import StudyRun


# ---------------------------------------------------------------------- completions
# What the paper leaves open, and the ways to complete it: changes of the printed settings, and rules for the epoch.

SHEET = Sheet("forensics", lists={"completions": lambda: list(TRAINED)})
#: Rules that need no training of their own, and completions that are trained, with what each is.
RULES: dict[str, str] = SHEET.entries["rules"]
TRAINED: dict[str, str] = SHEET.entries["trained"]
#: The printed settings, with what they leave open from the released settings of the same set.
PRINTED = "as printed"
#: All reactions inside tanh, an option of the authors' code.
INSIDE_TANH: dict[str, str] = {**BOUNDED, **SHEET.entries["inside tanh"]}


def completed(config: Config, reaction: str, completion: str) -> Config:
    """The settings with one thing completed otherwise; the same ones where they have it already.

    >>> config = published_config("paper", "F", "texas")
    >>> completed(config, "F", "tanh").gread.reaction
    '-alpha*L@H + beta*tanh(H*(1 - H))'
    >>> completed(config, "F", "released reaction") == config
    True
    """
    is_scalar = config.gread.beta == "scalar"
    changes: Mapping[str, Mapping[str, Any]] = {
        **SHEET.entries["changes"],
        "sigmoid beta": {} if is_scalar else {"beta_link": "sigmoid"},
        "free beta": {"beta_link": "free"} if is_scalar else {},
        "tanh": {"reaction": INSIDE_TANH[reaction]},
        "released reaction": {"reaction": released_reaction(reaction, config.gread.beta)}
        if reaction.startswith("FB")
        else {},
    }
    return config.updated(changes[completion])


def printed_cells(s: Settings) -> list[Cell]:
    """The printed settings of every reaction on every set."""
    return [
        _cell(PRINTED, reaction, dataset, sized_config("paper", reaction, dataset, s), s)
        for reaction, dataset in _places(s)
    ]


def completion_cells(s: Settings, reactions: list[str]) -> list[Cell]:
    """Every completion of some reactions that changes something; the others have the numbers of the printed ones."""
    result = []
    for reaction, dataset in _places({**s, "reactions": reactions}):
        base = sized_config("paper", reaction, dataset, s)
        for completion in s["completions"]:
            config = completed(base, reaction, completion)
            if config != base:
                result.append(_cell(completion, reaction, dataset, config, s))
    return result


def _places(s: Settings) -> Iterator[tuple[str, str]]:
    return ((str(reaction), str(dataset)) for dataset in s["sets"] for reaction in s["reactions"])


def _cell(completion: str, reaction: str, dataset: str, config: Config, s: Settings) -> Cell:
    one = Variation({"completion": completion, "reaction": reaction}, config)
    name = file_name(completion.replace(" ", "_"), reaction, dataset)
    return Cell(name, (dataset,), (one,), s["splits"], s["seeds"])


def ruled_rows(origins: Origins, done: Trained) -> list[MutableRow]:
    """The rows of trainings; those of the printed settings again for every rule, from their learning curves."""
    rows = training_rows(origins, done)
    curves = done.history[:, :, METRICS.index("test_accuracy")]
    again: list[MutableRow] = []
    for row, curve in zip(rows, curves, strict=True):
        if row["completion"] == PRINTED:
            known = curve[np.isfinite(curve)]
            values = {"last epoch": known[-1:], "selection on test": known}
            again += [
                {**row, "completion": rule, "test_accuracy": float(result.max()) if result.size else 0.0}
                for rule, result in values.items()
            ]
    return [*rows, *again]


# ---------------------------------------------------------------------- the authors' code
def authors_config(cell: AuthorsCell) -> Config:
    """The settings of a run of the authors' code; FB in the form of that code.

    >>> from gread.settings.presets import authors_cells
    >>> found = authors_config(authors_cells()[1]).gread
    >>> found.beta_link, found.reaction
    ('free', '-alpha*L@H + beta*tanh(H*(1 - H**2))')
    """
    config = published_config("paper", cell.reaction, cell.dataset)
    if cell.reaction.startswith("FB"):
        config = completed(config, cell.reaction, "released reaction")
    if cell.tanh:
        config = completed(config, cell.reaction, "tanh")
    link = {} if config.gread.beta == "scalar" else {"beta_link": cell.beta}
    return config.updated({**link, "row_features": cell.row_features})


def authors_name(cell: AuthorsCell) -> str:
    """A name for the files of a cell."""
    words = [cell.beta, *(["row"] if cell.row_features else []), *(["tanh"] if cell.tanh else [])]
    return file_name("authors", cell.reaction, cell.dataset, *words)


def authors_part(cells: tuple[AuthorsCell, ...], s: Settings) -> list[Cell]:
    """The same trainings with our code: the same first splits, one seed."""
    return [
        Cell(
            authors_name(cell), (cell.dataset,),
            (Variation({"completion": authors_name(cell), "reaction": cell.reaction},
                       shrunk(authors_config(cell), s["epochs"], s["hidden"])),),
            len(cell.splits),
        )
        for cell in cells
        if cell.dataset in s["authors_sets"]
    ]  # fmt: skip


# ---------------------------------------------------------------------- forensics
#: Of how many sets a completion has to reach how many, and of the cells of the authors' code.
NEEDED, OF_SETS = 7, 9
NEEDED_CELLS, OF_CELLS = 28, 31
#: How the statement about a row goes on after its name.
STATED = " in Table 8 is reached with one completion of what the paper leaves open."
#: Gaps from Table 8 by completion, reaction and data set.
Gaps = dict[tuple[str, str, str], Gap]


@dataclass(frozen=True, eq=False)
class Measured:
    """Rows of our completions, and of our trainings of the authors' cells."""

    rows: list[MutableRow]
    authors: list[MutableRow]


def measure(run: StudyRun) -> Measured:
    """Train the cells of the authors' code, then the printed settings, then completions of rows not reproduced."""
    s = run.settings
    authors, printed = authors_part(authors_cells(), s), printed_cells(s)
    theirs = train_cells(run, authors, some=not printed).rows
    rows = train_cells(run, printed, rows_of=ruled_rows, some=False).rows
    asked = [r for r in s["reactions"] if not is_reached(PRINTED, r, gaps_of(rows))]
    rows += train_cells(run, completion_cells(s, asked), rows_of=ruled_rows, some=False).rows
    write_trials(run, [*rows, *theirs])
    return Measured(rows, theirs)


# ---------------------------------------------------------------------- numbers
def gaps_of(rows: Sequence[MutableRow]) -> Gaps:
    """The difference from Table 8 of every completion, where a number is printed."""
    groups = grouped_rows(rows, "completion", "reaction", "dataset")
    return {
        (str(completion), str(reaction), str(dataset)): gap_to(Estimate.of(group), paper)
        for (completion, reaction, dataset), group in groups.items()
        if (paper := printed_accuracy(f"GREAD-{reaction}", str(dataset)))
    }


def row_gaps(completion: str, reaction: str, gaps: Gaps) -> dict[str, Gap]:
    """Those of a row by set; a completion that changes nothing on a set has the number of the printed settings."""
    sets = [d for c, r, d in gaps if (c, r) == (PRINTED, reaction)]
    return {d: gaps.get((completion, reaction, d), gaps[PRINTED, reaction, d]) for d in sets}


def is_reached(completion: str, reaction: str, gaps: Gaps) -> bool:
    """Whether a completion lies within two standard errors on at least seven of nine sets."""
    group = row_gaps(completion, reaction, gaps)
    return len(group) >= OF_SETS and sum(gap.word in AGREES for gap in group.values()) >= NEEDED


def score(completion: str, reaction: str, gaps: Gaps) -> tuple[int, float]:
    """On how many sets a completion lies within two standard errors, and its mean distance."""
    group = list(row_gaps(completion, reaction, gaps).values())
    if not group:
        return 0, math.nan
    return sum(g.word in AGREES for g in group), float(np.mean([abs(g.difference) for g in group]))


def explained(reaction: str, gaps: Gaps, completions: Sequence[str]) -> MutableRow:
    """A row of Table 8: the completion within two standard errors on most sets, then with the least mean distance.

    Of several completions the best is taken, so that chance helps: seven of nine sets is the bar that it has to pass.
    """
    known = [c for c in completions if any((name, r) == (c, reaction) for name, r, _ in gaps)]
    scores = {c: score(c, reaction, gaps) for c in (PRINTED, *known)}
    sets = len(row_gaps(PRINTED, reaction, gaps))
    best = min(scores, key=lambda c: (-scores[c][0], scores[c][1]))
    if not sets:
        best, word = "", "nothing to compare with"
    elif is_reached(PRINTED, reaction, gaps):
        best, word = PRINTED, "reached as printed"
    elif sets < OF_SETS:  # too few sets
        word = f"open, with {sets} of {OF_SETS} sets"
    else:
        word = f"explained by {best}" if is_reached(best, reaction, gaps) else "not explained"
    (within, distance), printed = scores.get(best, (0, math.nan)), scores[PRINTED]
    return {
        "reaction": reaction, "answer": word, "nearest": best, "within": within, "as_printed": printed[0],
        "sets": sets, "distance": distance, "distance_as_printed": printed[1],
    }  # fmt: skip


def cell_table(rows: Sequence[MutableRow]) -> list[MutableRow]:
    """A row for every completion of every cell."""
    columns = "mean std splits diverged other=paper difference error verdict"
    return [
        {**picked(group[0], "completion reaction dataset"),
         **picked(with_printed(group, printed_accuracy(f"GREAD-{reaction}", str(dataset))), columns)}
        for (_, reaction, dataset), group in grouped_rows(rows, "completion", "reaction", "dataset").items()
    ]  # fmt: skip


def authors_table(rows: Sequence[MutableRow], load: Load = load_set) -> list[MutableRow]:
    """A row for every cell of the authors' code that was trained."""
    known = {authors_name(cell): cell for cell in authors_cells()}
    return [_authors_row(known[str(name)], group, load) for (name,), group in grouped_rows(rows, "completion").items()]


def _authors_row(cell: AuthorsCell, group: Sequence[MutableRow], load: Load) -> MutableRow:
    at_once = [row for row in group if row["status"] != "ok" and int(row["best_epoch"]) == 0]
    counted = [
        {**row, "test_accuracy": class_zero(cell.dataset, int(row["split"]), load)} if row in at_once else row
        for row in group
    ]
    one = Estimate.of(counted)
    gap = Gap.between(one, cell.mean, cell.std, len(cell.splits))
    return {
        "completion": authors_name(cell), "reaction": cell.reaction, "dataset": cell.dataset,
        "mean": round(one.mean, 4), "std": round(one.std, 4), "splits": one.count,
        "diverged": sum(row["status"] != "ok" for row in group), "at_once": len(at_once), "other": cell.mean,
        "other_std": cell.std, "other_diverged": cell.diverged, "difference": round(gap.difference, 4),
        "error": gap.error, "verdict": gap.word,
    }  # fmt: skip


def class_zero(dataset: str, split: int, load: Load = load_set) -> float:
    """Test accuracy of predicting class 0 for every node of a split."""
    data = load(dataset)
    test = np.asarray(data.masks.test[split], dtype=bool)
    return float(np.mean(np.asarray(data.y)[test] == 0))


# ---------------------------------------------------------------------- verdicts
def row_verdict(row: MutableRow) -> Verdict:
    """Whether a row is reached by the printed settings or one completion of them."""
    answer = UNDECIDED if int(row["sets"]) < OF_SETS else FAILS if row["answer"] == "not explained" else HOLDS
    evidence = SHEET.text("row", **{**row, "nearest": row["nearest"] or "none"})
    return f"GREAD-{row['reaction']}{STATED}", answer, evidence


def explanations(stored: Mapping[str, Any]) -> dict[str, str]:
    """What a kept page of this study says of every row of Table 8 that it decides, by method.

    >>> found = [{"statement": f"GREAD-{name}{STATED}", "answer": answer, "evidence": "not explained; nearest is tanh"}
    ...          for name, answer in (("AC", FAILS), ("BS", UNDECIDED))]
    >>> explanations({"verdicts": found})
    {'GREAD-AC': 'not explained'}
    """
    return {
        verdict["statement"].removesuffix(STATED): verdict["evidence"].partition(";")[0]
        for verdict in stored["verdicts"]
        if verdict["statement"].endswith(STATED) and verdict["answer"] != UNDECIDED
    }


def authors_verdict(table: Sequence[MutableRow]) -> Verdict:
    """Does our code give what the authors' code gives, in at least 28 of the 31 cells?"""
    far = [row for row in table if row["verdict"] not in AGREES]
    listed = ", ".join(f"{row['completion']} {row['difference']:+z.2f} ({row['error']:.2f})" for row in far)
    agreed = len(table) - len(far)
    return SHEET.verdict(
        "authors", UNDECIDED if len(table) < OF_CELLS else HOLDS if agreed >= NEEDED_CELLS else FAILS,
        needed=NEEDED_CELLS, all=OF_CELLS, agreed=agreed, cells=len(table), beyond=f"; beyond: {listed}" if far else "",
    )  # fmt: skip


# ---------------------------------------------------------------------- figures and words
def picture(gaps: Gaps, s: Settings) -> Picture | None:
    """Mean distances from Table 8 by completion and reaction."""
    there = {(c, r) for c, r, _ in gaps}
    rows: list[MutableRow] = [
        {"completion": c, "reaction": r, "distance": score(c, r, gaps)[1], "sets_within": score(c, r, gaps)[0]}
        for c in (PRINTED, *RULES, *s["completions"])
        for r in map(str, s["reactions"])
        if (c, r) in there
    ]
    if not rows:
        return None
    chart = row_map(
        rows, "completion", "reaction", lambda row: float(row["distance"]),
        lambda row: is_reached(str(row["completion"]), str(row["reaction"]), gaps), "mean distance from Table 8",
        signed=False,
    )  # fmt: skip
    return Picture("distances", chart, SHEET.text("distances", needed=NEEDED, of_sets=OF_SETS), rows)


def answer(table: Sequence[MutableRow], agreed: Sequence[MutableRow]) -> str:
    """What explains the rows, and whether our code is the authors', in one sentence."""
    compared = [(str(row["reaction"]), str(row["answer"])) for row in table if row["sets"]]
    if not compared:
        return NOTHING_COMPARED
    reached = [name for name, word in compared if word == "reached as printed"]
    listed = [f"{name} {word}" for name, word in compared if word.startswith("explained")]
    remaining = [name for name, word in compared if word == "not explained"]
    parts = [f"{len(reached)} of {len(compared)} rows of Table 8 are reached as printed."]
    few = [name for name, word in compared if word.startswith("open")]
    for names, word in ((listed, "explained"), (remaining, "not explained"), (few, "open, for lack of sets")):
        parts += [f"Rows {word}: {len(names)} ({', '.join(names).replace('explained ', '')})."] if names else []
    if agreed:
        same = sum(row["verdict"] in AGREES for row in agreed)
        parts.append(f"Our code agrees with the authors' code in {same} of {len(agreed)} cells.")
    return " ".join(parts)


def about(s: Settings) -> str:
    """What was trained."""
    words = {**RULES, **{name: TRAINED[name] for name in s["completions"]}}
    changed = departures(s["sets"], s["epochs"], s["hidden"])
    changed, of = (f"{changed},", "the set that they are from") if changed else ("", "the same set")
    listed = "\n\n".join(f"{name}: {text}." for name, text in words.items())
    return SHEET.text("about", changed=changed, splits=s["splits"], of=of, words=listed)


def findings(measured: Measured, s: Settings) -> Findings:
    """What explains every row, and how our code compares with the authors'."""
    gaps = gaps_of(measured.rows)
    rows = [explained(reaction, gaps, (*RULES, *s["completions"])) for reaction in s["reactions"]]
    cells, agreed = cell_table(measured.rows), authors_table(measured.authors)
    shared = "completion reaction dataset mean std splits diverged other difference error verdict"
    return Findings(
        results=[*cells, *(picked(row, shared) for row in agreed)],
        items=[
            picture(gaps, s),
            Table("rows", rows, SHEET.text("rows")),
            Table("completions", cells, SHEET.text("completions", explained=EXPLAINED)),
            Table("authors", agreed, SHEET.text("authors")) if agreed else None,
        ],
        verdicts=[*map(row_verdict, rows), *([authors_verdict(agreed)] if agreed else [])],
        answer=answer(rows, agreed),
        shows="distances",
        about=about(s),
    )


settings, limits = SHEET.settings, SHEET.limits
run = make_run(measure, findings)
