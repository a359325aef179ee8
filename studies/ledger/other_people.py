"""Measurements of other people: with the authors' code, and from files that a user adds; each with its hash."""

from __future__ import annotations

import csv
import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from gread.comparison import SPLITS
from gread.settings.presets import authors_cells, authors_runs, find_published
from rdgraph.errors import FileError, UnknownName
from rdgraph.files import read_bytes
from studies.ledger.entry import Measurement
from studies.ledger.printed_numbers import cell_name, printed_numbers, table_of

#: The columns that a file has to have, and those that it may have.
NEEDED, OPTIONAL = ("cell", "value", "who", "command"), ("std", "splits", "reading")
AUTHORS = "the authors' code"


def authors_measurements() -> list[Measurement]:
    """What the authors' code gave: for BS with its released settings, for other cells with the printed ones."""
    result = []
    names = ("authors_runs.csv", "authors_cells.csv")
    runs, cells = ((files("gread") / "data" / name).read_bytes() for name in names)
    for row in authors_runs().values():
        method = "GREAD-BS"
        if row.mean is not None:
            result.append(_of_authors(method, row.dataset, row.mean, row.std, 10, "released settings", row.source,
                                     names[0], runs))  # fmt: skip
    for cell in authors_cells():
        features = "row-normalised" if cell.row_features else "raw"
        reading = f"printed settings, {cell.beta} vector beta, {features} features" + (", tanh" if cell.tanh else "")
        reading += f", {cell.diverged} of {len(cell.splits)} trainings diverged" if cell.diverged else ""
        result.append(_of_authors(f"GREAD-{cell.reaction}", cell.dataset, cell.mean, cell.std, len(cell.splits),
                                 reading, cell.source, names[1], cells))  # fmt: skip
    return result


def _of_authors(
    method: str, dataset: str, mean: float, std: float | None, count: int, reading: str, source: str, name: str,
    content: bytes,
) -> Measurement:  # fmt: skip
    printed = find_published(method, dataset)
    table = table_of(printed.source) if printed else "Table 8"
    return Measurement(
        cell_name(table, method, dataset), mean, std, count, reading, is_main=False, who=AUTHORS, command=source,
        file=f"gread/data/{name}", sha256=hashlib.sha256(content).hexdigest(),
    )  # fmt: skip


def read_added(path: Path) -> list[Measurement]:
    """Measurements of a csv or json file with rows of cell, value, who, command, and where known std, splits, reading.

    Raises:
        FileError: for a file that cannot be read, or rows that lack a column or a number.
        UnknownName: for an unknown cell.
    """
    content = read_bytes(path, "measured numbers")
    digest = hashlib.sha256(content).hexdigest()
    result = []
    for number, row in enumerate(_rows(path, content), start=1):
        try:
            result.append(_added(row, path, digest))
        except ValueError as problem:
            raise _wrong(path, f"{problem} in row {number}") from None
    if not result:
        raise FileError(f"expected at least one row in {path}, got none")
    return result


def _rows(path: Path, content: bytes) -> list[Any]:
    """The rows of a file; a mark of the byte order, as spreadsheets write it, does not count."""
    try:
        text = content.decode("utf-8-sig")
        if path.suffix != ".json":
            return list(csv.DictReader(text.splitlines()))
        rows = json.loads(text)
    except (ValueError, csv.Error, RecursionError) as problem:
        raise _wrong(path, f"a file that cannot be read ({problem})") from None
    rows = rows.get("rows") if isinstance(rows, dict) else rows
    if not isinstance(rows, list):
        raise _wrong(path, f"{type(rows).__name__} in place of a list of rows")
    return rows


def _wrong(path: Path, what: str) -> FileError:
    columns = ", ".join((*NEEDED, *(f"[{name}]" for name in OPTIONAL)))
    return FileError(f"expected rows with {columns} in {path}, got {what}; value and std are numbers in percent")


def _added(row: Any, path: Path, digest: str) -> Measurement:
    """A row as a measurement.

    Raises:
        ValueError: in words, what is wrong with it.
    """
    if not isinstance(row, Mapping):
        raise ValueError(f"{row!r} in place of columns")
    if empty := [name for name in NEEDED if row.get(name) in (None, "")]:
        raise ValueError(f"no {' and no '.join(empty)}")
    has_std = row.get("std") not in (None, "")
    return Measurement(
        find_cell(str(row["cell"]), (p.cell for p in printed_numbers())), _number(row, "value"),
        _number(row, "std", 0.0) if has_std else None, _splits(row), str(row.get("reading") or ""),
        is_main=False, who=str(row["who"]), command=str(row["command"]), file=path.name, sha256=digest,
    )  # fmt: skip


def _number(row: Mapping[str, Any], name: str, least: float = -math.inf) -> float:
    try:
        value = float(row[name])
    except (TypeError, ValueError):
        value = math.nan
    if not (math.isfinite(value) and value >= least):
        raise ValueError(f"{row[name]!r} for {name}")
    return value


def _splits(row: Mapping[str, Any]) -> int:
    """How many splits a mean is over, ten where the row does not say."""
    if row.get("splits") in (None, ""):
        return SPLITS
    value = _number(row, "splits", 1.0)
    if not value.is_integer():
        raise ValueError(f"{row['splits']!r} for splits")
    return int(value)


def find_cell(name: str, known: Iterable[str]) -> str:
    """The cell of that name, ignoring case and with spaces for slashes; the table may be omitted if the rest is unique.

    >>> find_cell("gread-bs CORA", ["T8/GREAD-BS/cora", "T8/GREAD-F/cora"])
    'T8/GREAD-BS/cora'
    """
    cells = list(known)
    wanted = "/".join(name.casefold().replace("/", " ").split())
    exact = [cell for cell in cells if cell.casefold() == wanted]
    ends = exact or [cell for cell in cells if cell.casefold().partition("/")[2] == wanted]
    if len(ends) != 1:
        raise UnknownName("cell of the ledger", name, ends or cells)
    return ends[0]
