"""The ledger: printed numbers and measurements put together, each with a status and what is known of its cause."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

from gread.settings.model_records import models
from rdgraph.files import read_text
from studies.cells.agreement import AGREES
from studies.cells.nine_sets import SETS
from studies.forensics.study import explanations
from studies.ledger.averages import average_measurements
from studies.ledger.contradictions import Contradiction, contradictions, is_arithmetic
from studies.ledger.entry import (
    CONTRADICTED,
    NOT_MEASURED,
    UNDERSPECIFIED,
    LedgerEntry,
    Measurement,
    PrintedNumber,
)
from studies.ledger.kept_results import DOCS, kept_measurements
from studies.ledger.other_people import authors_measurements, find_cell
from studies.ledger.printed_numbers import printed_numbers

#: Two numbers of a row count as exchanged where each is so many points from ours as printed, beyond two standard
#: errors, and exchanging them leaves at most this share of either difference.
FAR, LEFT = 5.0, 0.2
#: Causes of single cells that were looked into by hand, beside the results files.
NOTES = "compared_notes.csv"
#: The kept page of the study that looks for causes of whole rows.
FORENSICS = "forensics.json"


def make_ledger(folder: Path = DOCS, added: Iterable[Measurement] = ()) -> list[LedgerEntry]:
    """Every printed number and claim, in the order of the tables.

    Args:
        folder: with the results files; what is not there is "not measured".
        added: what other people measured, beside what the authors' code gave.
    """
    printed = {p.cell: p for p in printed_numbers()}
    own = kept_measurements(folder)
    own += average_measurements(own)
    others = [*authors_measurements(), *added]
    for one in others:
        find_cell(one.cell, printed)
    ours, theirs = _by_cell(own), _by_cell(others)
    against = contradictions()
    entries = [_entry(p, ours.get(p.cell, []), theirs.get(p.cell, []), against.get(p.cell)) for p in printed.values()]
    notes = _notes(folder / NOTES) | _explanations(folder / FORENSICS)
    return [replace(entry, cause=_cause(entry, notes)) for entry in _exchanged(entries)]


def _by_cell(measured: Iterable[Measurement]) -> dict[str, list[Measurement]]:
    found: dict[str, list[Measurement]] = {}
    for one in measured:
        found.setdefault(one.cell, []).append(one)
    return found


def _entry(
    printed: PrintedNumber, ours: Sequence[Measurement], theirs: Sequence[Measurement], other: Contradiction | None
) -> LedgerEntry:
    """One row: the main reading decides; where the paper leaves several open that differ, it is underspecified."""
    mains = [one for one in ours if one.is_main and one.file == next(m.file for m in ours if m.is_main)]
    said = [one.status(printed) for one in mains]
    own = min(mains, key=lambda one: _distance(one, printed), default=None)
    status = NOT_MEASURED if own is None else own.status(printed)
    if len(set(said)) > 1 and any(word in AGREES for word in said) and not all(word in AGREES for word in said):
        status = UNDERSPECIFIED
    if other is not None and other.values and _is_answer(other, printed, own):
        status = CONTRADICTED
    rest = tuple(one for one in ours if one is not own)
    told = other.text if other else own.note if own is not None and own.word == CONTRADICTED else ""
    return LedgerEntry(printed, status, own, rest, tuple(theirs), told)


def _is_answer(other: Contradiction, printed: PrintedNumber, own: Measurement | None) -> bool:
    """Whether a contradiction is what there is to say: of a sum, of what is not measured, or of a number where ours
    agrees with another one that the paper prints for it."""
    if own is None or is_arithmetic(printed):
        return True
    elsewhere = [own.status(replace(printed, value=value, std=std)) for value, std in other.values]
    return own.status(printed) not in AGREES and any(word in AGREES for word in elsewhere)


def _distance(one: Measurement, printed: PrintedNumber) -> float:
    gap = abs(one.value - printed.value)
    return math.inf if math.isnan(gap) else gap


# ---------------------------------------------------------------------- exchanged numbers
def _exchanged(entries: Sequence[LedgerEntry]) -> list[LedgerEntry]:
    """Two numbers of a row that are both far from ours as printed, and near to ours when they are exchanged."""
    rows: dict[tuple[str, str], list[LedgerEntry]] = {}
    for entry in entries:
        is_far = entry.own is not None and _distance(entry.own, entry.printed) > FAR
        if is_far and entry.status not in AGREES and entry.printed.dataset and entry.printed.quantity == "accuracy":
            rows.setdefault((entry.printed.table, entry.printed.subject), []).append(entry)
    found: dict[str, str] = {}
    for row in rows.values():
        for one, other in combinations(row, 2):
            if _is_nearer(one, other) and _is_nearer(other, one):
                for here, there in ((one, other), (other, one)):
                    found[here.printed.cell] = (
                        f"this number and that of {there.printed.dataset} ({there.printed.value:.2f}) are exchanged: "
                        f"ours is {here.difference.difference:+z.2f} from the one printed here and "
                        f"{_crossed(here, there):+z.2f} from the other"
                    )
    return [
        replace(entry, status=CONTRADICTED, contradiction=found[entry.printed.cell])
        if entry.printed.cell in found
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
    """What was found out about single cells, by the row of the paper's table and the data set."""
    if not path.is_file():
        return {}
    found: dict[tuple[str, str], str] = {}
    for row in csv.DictReader(read_text(path, "notes on cells").splitlines()):
        for name in row["network"].split():
            method = models[name].published if name in models else name
            found |= {(method, dataset): f"{row['cause']}: {row['note']}" for dataset in row["sets"].split()}
    return found


def _explanations(path: Path) -> dict[tuple[str, str], str]:
    """What the study of causes says of a row of Table 8, for all its cells."""
    if not path.is_file():
        return {}
    said = explanations(json.loads(read_text(path, "the kept page of the study forensics")))
    return {(method, dataset): f"the row is {text}" for method, text in said.items() for dataset in SETS}


def _cause(entry: LedgerEntry, notes: Mapping[tuple[str, str], str]) -> str:
    """What is known of why a number differs: computed where it can be, else looked up."""
    printed, own = entry.printed, entry.own
    if own is None or entry.status in AGREES:
        return own.note if own is not None else ""
    found = [own.note] if own.note and own.note != entry.contradiction else []
    if (printed.subject, printed.dataset) in notes:
        found.append(notes[printed.subject, printed.dataset])
    near = [one for one in entry.readings if not one.word and one.status(printed) in AGREES]
    if near:
        words = (f"{one.reading.partition(':')[0]} {one.value:.2f}" for one in near)
        found.append(f"agrees in other readings ({', '.join(words)})")
    for one in entry.others:
        theirs = f"{one.who}: {one.value:.2f}" + (f" ({one.reading})" if one.reading else "")
        if one.status(printed) in AGREES:
            found.append(f"{theirs}, which agrees with the paper")
        elif not own.word and one.std is not None and own.std is not None:
            as_printed = replace(printed, value=one.value, std=one.std, count=one.count)
            if own.status(as_printed) in AGREES:
                found.append(f"{theirs}, which agrees with ours")
    if lost := int(own.detail.get("diverged") or 0):
        found.append(f"{lost} trainings diverged here")
    if own.is_open:
        found.append("settings were not published")
    return "; ".join(dict.fromkeys(found))
