"""Proof obligations as SMT-LIB files that any solver can check again."""

from __future__ import annotations

import csv
import hashlib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from rdgraph.errors import FileError
from rdgraph.reals.judge import Obligation

INDEX = "index.csv"
COLUMNS = ("file", "expected", "statement")


def write_obligations(obligations: Iterable[Obligation], folder: Path) -> str:
    """Write a file for every distinct obligation, in order, and index.csv; returns a summary in words.

    Names end with a digest of the obligation. Files of an earlier run are replaced; a folder with other files is
    refused.
    """
    for path in obligation_files(folder):
        path.unlink()
    folder.mkdir(parents=True, exist_ok=True)
    distinct: dict[str, Obligation] = {}
    for obligation in obligations:
        distinct.setdefault(obligation.smt2, obligation)
    rows = []
    for number, obligation in enumerate(distinct.values(), start=1):
        name = f"{number:04d}-{hashlib.sha256(obligation.smt2.encode()).hexdigest()[:8]}.smt2"
        (folder / name).write_text(_header(obligation) + obligation.smt2, encoding="utf-8")
        rows.append((name, obligation.outcome.value, obligation.statement))
    with (folder / INDEX).open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *rows])
    return _summary(Counter(expected for _, expected, _ in rows), folder)


def _header(obligation: Obligation) -> str:
    """Comment lines with the obligation in words and the expected answer."""
    lines = ["Is there a real point with", *obligation.statement.splitlines()]
    return "".join(f"; {line}\n" for line in [*lines, f"expected: {obligation.outcome.value}"])


def _summary(counts: Counter[str], folder: Path) -> str:
    parts = [f"{counts[word]} {word}" for word in ("unsat", "sat", "unknown") if counts[word]]
    detail = f" ({', '.join(parts)})" if parts else ""
    return f"wrote {counts.total()} proof obligations{detail} to {folder}"


def obligation_files(folder: Path) -> list[Path]:
    """Files of an earlier run in a folder; raises FileError if it holds anything else."""
    if not folder.exists():
        return []
    if not folder.is_dir():
        raise FileError(f"{folder} is a file; name a folder for the proof obligations")
    listed = {INDEX}
    if (folder / INDEX).is_file():
        with (folder / INDEX).open(encoding="utf-8", newline="") as file:
            listed |= {str(row.get("file")) for row in csv.DictReader(file)}
    strangers = sorted(path.name for path in folder.iterdir() if path.name not in listed)
    if strangers:
        raise FileError(f"{folder} holds {strangers[0]}, which is no proof obligation; name a new folder")
    return list(folder.iterdir())
