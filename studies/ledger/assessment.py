"""The ledger: printed numbers with our measurements, a status and the known cause of a difference."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from pathlib import Path

from gread.comparison import AGREES, REPRODUCED, Estimate, Gap, standard_error
from gread.settings.model_records import models
from gread.settings.presets import find_preset, find_published, published_results
from gread.settings.published_tables import published_ablations, published_ranking, published_tests
from rdgraph.files import read_text
from studies.cells.cell import SETS
from studies.ledger.entry import (
    CONTRADICTED,
    NOT_MEASURED,
    UNDECIDED,
    UNDERSPECIFIED,
    LedgerEntry,
    Measurement,
    PrintedNumber,
)
from studies.ledger.kept_results import stored_measurements
from studies.ledger.other_people import authors_measurements, find_cell
from studies.ledger.printed_numbers import STANDINGS, cell_name, printed_numbers, table_of
from studies.paper.ablation import best_options
from studies.paper.families import standings
from studies.paper.forensics import explanations
from studies.paper.significance import PRINTED_RUNS, ROUNDED, recomputed
from studies.results import results_folder

# ---------------------------------------------------------------------- averages
# Table 7 from our measurements: averages with their errors; ranks and medals if every method is measured.


def average_measurements(measured: Iterable[Measurement]) -> list[Measurement]:
    """Average accuracies of methods measured on all nine sets; with ranks and medals if all methods are.

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
    result = []
    table = table_of(published_ranking()[0].source)
    for method in whole:
        group = [cells[method, s] for s in SETS]
        errors = [standard_error(math.nan if one.std is None else one.std, one.count) for one in group]
        error = math.hypot(*errors, *errors) / len(group)
        value = sum(one.value for one in group) / len(group)
        result.append(_made(cell_name(table, method, "accuracy"), value, group, error=error))
    if len(whole) == len(names):
        result += _standings(cells, whole, table)
    return result


def _standings(cells: dict[tuple[str, str], Measurement], methods: Sequence[str], table: str) -> list[Measurement]:
    """Ranks and medals; their variation is unknown, so a different one is undecided."""
    means = {(m, s): cells[m, s].value for m in methods for s in SETS}
    printed = {row.method: row for row in published_ranking()}
    result = []
    for standing in standings(means, SETS):
        group = [cells[standing.method, s] for s in SETS]
        for quantity in STANDINGS:
            if quantity != "accuracy":
                value = float(getattr(standing, quantity))
                same = abs(value - float(getattr(printed[standing.method], quantity))) <= 0.005
                name = cell_name(table, standing.method, quantity)
                result.append(_made(name, value, group, word=REPRODUCED if same else UNDECIDED))
    return result


def _made(
    cell: str, value: float, parts: Sequence[Measurement], *, error: float = math.nan, word: str = ""
) -> Measurement:
    """A measurement derived from others, with their commands, files and hashes."""
    return Measurement(
        cell, value, reading="from our means on the nine sets", error=error, word=word,
        test="equal in the digits printed" if word else "two standard errors of the difference of the averages",
        command="; ".join(dict.fromkeys(one.command for one in parts)),
        file=" ".join(dict.fromkeys(one.file for one in parts)),
        sha256=" ".join(dict.fromkeys(one.sha256 for one in parts)),
    )  # fmt: skip


# ---------------------------------------------------------------------- contradictions
# Contradictions within the paper, computed from its tables: different numbers for one quantity, wrong sums.

#: Half of the last digit that Table 7 prints, and a little for sums of binary numbers.
HALF_DIGIT = 0.005 + 1e-9


@dataclass(frozen=True)
class Contradiction:
    """A contradiction to a printed number.

    `values` are the other numbers with their deviations; empty if only the deviation differs.
    """

    text: str
    values: tuple[tuple[float, float | None], ...] = ()


@cache
def contradictions() -> Mapping[str, Contradiction]:
    """Contradictions to printed numbers, by cell.

    >>> contradictions()["T8/GREAD-BS/squirrel"].text
    "Table 13 has OA as the best setting, for which Table 20 prints 47.03, and Table 8's number for SA"
    """
    result: dict[str, list[Contradiction]] = {}
    for cell, one in (*_other_numbers(), *_wrong_tests(), *_wrong_standings()):
        result.setdefault(cell, []).append(one)
    return {
        cell: Contradiction(
            "; ".join(dict.fromkeys(one.text for one in all_)), tuple(v for o in all_ for v in o.values)
        )
        for cell, all_ in result.items()
    }


def is_arithmetic(printed: PrintedNumber) -> bool:
    """Whether a number is derived from printed ones, so that a contradiction decides it without a measurement."""
    return printed.quantity in ("t", *STANDINGS) and (printed.quantity != "accuracy" or printed.dataset == "")


def _other_numbers() -> Iterator[tuple[str, Contradiction]]:
    """An ablation has the printed settings for one of its options: its number there should be that of Table 8."""
    by_option = {(p.reaction, p.dataset, p.setting): p for p in published_ablations()}
    for (reaction, dataset, option), row in by_option.items():
        main = find_published(f"GREAD-{reaction}", dataset)
        preset = find_preset("paper", reaction, dataset)
        if main is None or option not in best_options(preset.config):
            continue
        group, there = (cell_name(table_of(main.source), main.method, dataset), table_of(main.source))
        cell = cell_name(table_of(row.source), main.method, dataset, option)
        settings, here = table_of(preset.source), table_of(row.source)
        if row.mean != main.mean:
            other = next(o for r, d, o in by_option if (r, d) == (reaction, dataset) and _pair(o, option))
            swapped = by_option[reaction, dataset, other].mean == main.mean
            more = f", and {there}'s number for {other}" if swapped else ""
            text = f"{settings} has {option} as the best setting, for which {here} prints {row.mean}{more}"
            yield group, Contradiction(text, ((row.mean, row.std),))
            text = f"{there} prints {main.mean} for the best setting, which has {option} by {settings}"
            text = f"{text}; here that is the number of {other}" if swapped else text
            yield cell, Contradiction(text, ((main.mean, main.std),))
        elif row.std is not None and main.std is not None and row.std != main.std:
            yield group, Contradiction(f"{here} prints the same mean ± {row.std}")
            yield cell, Contradiction(f"{there} prints the same mean ± {main.std}")


def _pair(one: str, other: str) -> bool:
    """Whether two options are the two of one ablation."""
    return one != other and {one, other} in ({"OA", "SA"}, {"SC", "VC"})


def _wrong_tests() -> Iterator[tuple[str, Contradiction]]:
    """Does t follow from its means and deviations, and do the means agree with Table 8 within two standard errors?"""
    for row in published_tests():
        table = table_of(row.source)
        t = recomputed(row, PRINTED_RUNS)
        if abs(t / row.t - 1) > ROUNDED:
            text = f"its means and deviations give {t:.2f}"
            yield cell_name(table, "t", row.dataset), Contradiction(text, ((t, None),))
        for method, mean, std in (("GRAND", row.other_mean, row.other_std), ("GREAD-BS", row.own_mean, row.own_std)):
            main = find_published(method, row.dataset)
            if main is not None and Gap.between(Estimate(mean, std, 10), main.mean, main.std).word not in AGREES:
                text = f"{table_of(main.source)} prints {main.mean} ± {main.std}, beyond two standard errors"
                yield cell_name(table, method, row.dataset), Contradiction(text, ((main.mean, main.std),))


def _wrong_standings() -> Iterator[tuple[str, Contradiction]]:
    """Do average ranks, accuracies and medals follow from Table 8, for the methods that Table 7 ranks?"""
    ranked = {row.method for row in published_ranking()}
    means = {(p.method, p.dataset): p.mean for p in published_results() if p.method in ranked}
    result = {standing.method: standing for standing in standings(means, SETS)}
    for row in published_ranking():
        recomputed_row = result.get(row.method)
        for quantity in STANDINGS if recomputed_row is not None else ():
            value = float(getattr(recomputed_row, quantity))
            if abs(value - float(getattr(row, quantity))) > HALF_DIGIT:
                shown = f"{value:.2f}" if quantity in ("rank", "accuracy") else f"{value:g}"
                cell = cell_name(table_of(row.source), row.method, quantity)
                yield cell, Contradiction(f"the numbers of Table 8 give {shown}", ((value, None),))


# ---------------------------------------------------------------------- assessment
#: Two numbers of a row count as swapped if each is more than `FAR` points and two standard errors from ours, and
#: swapping them leaves at most the share `LEFT` of both differences.
FAR, LEFT = 5.0, 0.2
#: Causes of single cells, found by hand.
NOTES = "compared_notes.csv"
#: The results of the study of causes of whole rows.
FORENSICS = "forensics.json"


def make_ledger(folder: Path | None = None, added: Iterable[Measurement] = ()) -> list[LedgerEntry]:
    """Every printed number and claim, in the order of the tables.

    Args:
        folder: with results files instead of those of the package; missing numbers are "not measured".
        added: measurements of other people, in addition to those with the authors' code.
    """
    printed = {p.cell: p for p in printed_numbers()}
    group = stored_measurements(folder)
    group += average_measurements(group)
    others = [*authors_measurements(), *added]
    for one in others:
        find_cell(one.cell, printed)
    ours, theirs = _by_cell(group), _by_cell(others)
    against = contradictions()
    entries = [_entry(p, ours.get(p.cell, []), theirs.get(p.cell, []), against.get(p.cell)) for p in printed.values()]
    where = folder or results_folder()
    notes: dict[tuple[str, str], str] = {}
    for name, read in ((NOTES, _notes), (FORENSICS, _explanations)):
        if folder is None or (where / name).is_file():
            notes |= read(where / name)
    return [replace(entry, cause=_cause(entry, notes)) for entry in _exchanged(entries)]


def _by_cell(measured: Iterable[Measurement]) -> dict[str, list[Measurement]]:
    result: dict[str, list[Measurement]] = {}
    for one in measured:
        result.setdefault(one.cell, []).append(one)
    return result


def _entry(
    printed: PrintedNumber, ours: Sequence[Measurement], theirs: Sequence[Measurement], other: Contradiction | None
) -> LedgerEntry:
    """A row: the main reading decides; it is underspecified if several open readings disagree."""
    mains = [one for one in ours if one.is_main and one.file == next(m.file for m in ours if m.is_main)]
    statuses = [one.status(printed) for one in mains]
    group = min(mains, key=lambda one: _distance(one, printed), default=None)
    status = NOT_MEASURED if group is None else group.status(printed)
    agreeing = [word in AGREES for word in statuses]
    if any(agreeing) and not all(agreeing):
        status = UNDERSPECIFIED
    if other is not None and other.values and _is_answer(other, printed, group):
        status = CONTRADICTED
    rest = tuple(one for one in ours if one is not group)
    contradiction = other.text if other else group.note if group is not None and group.word == CONTRADICTED else ""
    return LedgerEntry(printed, status, group, rest, tuple(theirs), contradiction)


def _is_answer(other: Contradiction, printed: PrintedNumber, group: Measurement | None) -> bool:
    """Whether a contradiction decides the status: for sums, for unmeasured numbers, and if ours agrees with another
    printed number."""
    if group is None or is_arithmetic(printed):
        return True
    elsewhere = [group.status(replace(printed, value=value, std=std)) for value, std in other.values]
    return group.status(printed) not in AGREES and any(word in AGREES for word in elsewhere)


def _distance(one: Measurement, printed: PrintedNumber) -> float:
    gap = abs(one.value - printed.value)
    return math.inf if math.isnan(gap) else gap


# ---------------------------------------------------------------------- exchanged numbers
def _exchanged(entries: Sequence[LedgerEntry]) -> list[LedgerEntry]:
    """The entries, with pairs of a row marked as swapped if both are far from ours but near when swapped."""
    rows: dict[tuple[str, str], list[LedgerEntry]] = {}
    for entry in entries:
        is_far = entry.own is not None and _distance(entry.own, entry.printed) > FAR
        if is_far and entry.status not in AGREES and entry.printed.dataset and entry.printed.quantity == "accuracy":
            rows.setdefault((entry.printed.table, entry.printed.subject), []).append(entry)
    result: dict[str, str] = {}
    for row in rows.values():
        for one, other in combinations(row, 2):
            if _is_nearer(one, other) and _is_nearer(other, one):
                for here, there in ((one, other), (other, one)):
                    result[here.printed.cell] = (
                        f"this number and that of {there.printed.dataset} ({there.printed.value:.2f}) are swapped: "
                        f"ours is {here.difference.difference:+z.2f} from the one printed here and "
                        f"{_crossed(here, there):+z.2f} from the other"
                    )
    return [
        replace(entry, status=CONTRADICTED, contradiction=result[entry.printed.cell])
        if entry.printed.cell in result
        else entry
        for entry in entries
    ]


def _crossed(entry: LedgerEntry, other: LedgerEntry) -> float:
    """Ours minus the number that is printed for another cell."""
    return math.nan if entry.own is None else entry.own.value - other.printed.value


def _is_nearer(entry: LedgerEntry, other: LedgerEntry) -> bool:
    return abs(_crossed(entry, other)) <= LEFT * abs(entry.difference.difference)


# ---------------------------------------------------------------------- causes
def _notes(path: Path) -> dict[tuple[str, str], str]:
    """Known causes of single cells, by method and data set."""
    result: dict[tuple[str, str], str] = {}
    for row in csv.DictReader(read_text(path, "notes on cells").splitlines()):
        for name in row["network"].split():
            method = models[name].published if name in models else name
            result |= {(method, dataset): f"{row['cause']}: {row['note']}" for dataset in row["sets"].split()}
    return result


def _explanations(path: Path) -> dict[tuple[str, str], str]:
    """Explanations of rows of Table 8 from the study of causes, for all their cells."""
    known = explanations(json.loads(read_text(path, "the kept page of the study forensics")))
    return {(method, dataset): f"the row is {text}" for method, text in known.items() for dataset in SETS}


def _cause(entry: LedgerEntry, notes: Mapping[tuple[str, str], str]) -> str:
    """The known cause of a difference, computed or looked up."""
    printed, group = entry.printed, entry.own
    if group is None or entry.status in AGREES:
        return group.note if group is not None else ""
    result = [group.note] if group.note and group.note != entry.contradiction else []
    if (printed.subject, printed.dataset) in notes:
        result.append(notes[printed.subject, printed.dataset])
    near = [one for one in entry.readings if not one.word and one.status(printed) in AGREES]
    if near:
        words = (f"{one.reading.partition(':')[0]} {one.value:.2f}" for one in near)
        result.append(f"agrees in other readings ({', '.join(words)})")
    for one in entry.others:
        theirs = f"{one.who}: {one.value:.2f}" + (f" ({one.reading})" if one.reading else "")
        if one.status(printed) in AGREES:
            result.append(f"{theirs}, which agrees with the paper")
        elif not group.word and one.std is not None and group.std is not None:
            as_printed = replace(printed, value=one.value, std=one.std, count=one.count)
            if group.status(as_printed) in AGREES:
                result.append(f"{theirs}, which agrees with ours")
    if lost := int(group.detail.get("diverged") or 0):
        result.append(f"{lost} trainings diverged here")
    if group.is_open:
        result.append("settings were not published")
    return "; ".join(dict.fromkeys(result))
