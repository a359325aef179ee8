"""Table 7 from what was measured here: averages with their errors, ranks and medals where every method is measured."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from gread.settings.published_tables import published_ranking
from studies.cells.agreement import REPRODUCED
from studies.cells.nine_sets import SETS
from studies.classification.ranking import standings
from studies.ledger.entry import UNDECIDED, Measurement
from studies.ledger.printed_numbers import STANDINGS, cell_name, table_of
from studies.runs.uncertainty import standard_error


def average_measurements(measured: Iterable[Measurement]) -> list[Measurement]:
    """The average accuracy of every method that is measured on all nine sets; ranks and medals if all of them are.

    The error of an average is that of its nine means, which are over other graphs and so independent; the paper's is
    not printed, and ours stands for it.
    """
    cells: dict[tuple[str, str], Measurement] = {}
    for one in measured:
        table, *words = one.cell.split("/")
        if table == "T8" and one.is_main:
            cells.setdefault((words[0], words[1]), one)
    names = [row.method for row in published_ranking()]
    whole = [name for name in names if all((name, s) in cells for s in SETS)]
    found = []
    table = table_of(published_ranking()[0].source)
    for method in whole:
        own = [cells[method, s] for s in SETS]
        errors = [standard_error(math.nan if one.std is None else one.std, one.count) for one in own]
        error = math.hypot(*errors, *errors) / len(own)
        value = sum(one.value for one in own) / len(own)
        found.append(_made(cell_name(table, method, "accuracy"), value, own, error=error))
    if len(whole) == len(names):
        found += _standings(cells, whole, table)
    return found


def _standings(cells: dict[tuple[str, str], Measurement], methods: Sequence[str], table: str) -> list[Measurement]:
    """Ranks and medals; nothing tells how much they vary, so that one that differs is undecided."""
    means = {(m, s): cells[m, s].value for m in methods for s in SETS}
    printed = {row.method: row for row in published_ranking()}
    found = []
    for standing in standings(means, SETS):
        own = [cells[standing.method, s] for s in SETS]
        for quantity in STANDINGS:
            if quantity != "accuracy":
                value = float(getattr(standing, quantity))
                same = abs(value - float(getattr(printed[standing.method], quantity))) <= 0.005
                name = cell_name(table, standing.method, quantity)
                found.append(_made(name, value, own, word=REPRODUCED if same else UNDECIDED))
    return found


def _made(
    cell: str, value: float, parts: Sequence[Measurement], *, error: float = math.nan, word: str = ""
) -> Measurement:
    """A number made from measured ones: their commands, files and hashes."""
    return Measurement(
        cell, value, reading="from our means on the nine sets", error=error, word=word,
        test="equal in the digits printed" if word else "two standard errors of the difference of the averages",
        command="; ".join(dict.fromkeys(one.command for one in parts)),
        file=" ".join(dict.fromkeys(one.file for one in parts)),
        sha256=" ".join(dict.fromkeys(one.sha256 for one in parts)),
    )  # fmt: skip
