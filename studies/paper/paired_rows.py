"""Rows of tables: a mean with the printed one, and two networks on the same splits.

The statistics are those of `gread.comparison`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from gread.comparison import LEVEL, Comparison, Estimate, Gap, holm, share_ratio, split_means, standard_error
from gread.settings.presets import find_published
from studies.cells.cell import load_set
from studies.runs.tables import MutableRow, Value
from studies.runs.uncertainty import FAILS, HOLDS, UNDECIDED


class Printed(NamedTuple):
    """A published mean in percent, its standard deviation, and where it stands."""

    mean: float
    std: float | None
    source: str


def printed_accuracy(method: str, dataset: str) -> Printed | None:
    """What Table 8 prints for a method on a set."""
    paper = find_published(method, dataset)
    return Printed(paper.mean, paper.std, paper.source) if paper else None


def gap_to(group: Estimate, printed: Printed | None) -> Gap:
    """The difference from a printed mean; nan where none is printed.

    >>> gap_to(Estimate(80.0, 1.0, 10), None).word
    'undecided'
    """
    return Gap.between(group, printed.mean, printed.std) if printed else Gap(math.nan, math.nan, math.nan)


def with_printed(group: Sequence[MutableRow], printed: Printed | None) -> MutableRow:
    """The mean over the splits of some trainings, and what is printed for it: all columns that a table may pick."""
    one = Estimate.of(group)
    gap = gap_to(one, printed)
    return {
        "mean": round(one.mean, 4), "std": round(one.std, 4), "splits": one.count, "trials": len(group),
        "standard_error": standard_error(one.std, one.count), "diverged": sum(row["status"] != "ok" for row in group),
        "paper": printed.mean if printed else math.nan, "paper_std": (printed and printed.std) or math.nan,
        "difference": round(gap.difference, 4), "error": gap.error, "chance_errors": gap.chance, "p": gap.p,
        "verdict": gap.word, "source": printed.source if printed else "not in the paper",
    }  # fmt: skip


def picked(row: Mapping[str, Value], columns: str) -> MutableRow:
    """Some columns of a row in their order; a=b takes b under the name a.

    >>> picked({"mean": 1.0, "std": 0.1, "p": 0.5}, "std chance=p")
    {'std': 0.1, 'chance': 0.5}
    """
    pairs = [(name, source or name) for name, _, source in (word.partition("=") for word in columns.split())]
    return {name: row[source] for name, source in pairs}


def share_of(dataset: str) -> float:
    """n_test/n_train of a data set, which says how much its splits share."""
    return share_ratio(load_set(dataset))


def compared(group: Iterable[MutableRow], other: Iterable[MutableRow], dataset: str) -> Comparison:
    """Two networks on the splits that both were trained on; a split counts with the mean of its seeds."""
    return Comparison.of(split_means(group), split_means(other), share_of(dataset))


def with_holm(rows: Sequence[MutableRow], column: str = "p") -> list[MutableRow]:
    """The rows with p corrected by Holm over all of them.

    >>> with_holm([{"p": 0.01}, {"p": 0.04}])
    [{'p': 0.01, 'p_holm': 0.02}, {'p': 0.04, 'p_holm': 0.04}]
    """
    corrected = holm([float(row[column]) for row in rows])
    return [{**row, f"{column}_holm": p} for row, p in zip(rows, corrected, strict=True)]


def signed(difference: float, p: float) -> str:
    """Whether a difference is positive: holds or fails where it is significant, else undecided.

    >>> signed(1.0, 0.01), signed(-1.0, 0.01), signed(1.0, 0.2), signed(1.0, math.nan)
    ('holds', 'fails', 'undecided', 'undecided')
    """
    if not p < LEVEL:
        return UNDECIDED
    return HOLDS if difference > 0 else FAILS


def all_positive(rows: Iterable[MutableRow]) -> str:
    """Whether the differences of all rows are positive, with their p after Holm: one that is negative refutes it.

    >>> all_positive([{"difference": 1.0, "p_holm": 0.01}, {"difference": -2.0, "p_holm": 0.01}])
    'fails'
    >>> all_positive([{"difference": 2.0, "p_holm": 0.01}]), all_positive([{"difference": 1.0, "p_holm": 0.5}])
    ('holds', 'undecided')
    """
    answers = [signed(float(row["difference"]), float(row["p_holm"])) for row in rows]
    return FAILS if FAILS in answers else HOLDS if answers and set(answers) == {HOLDS} else UNDECIDED
