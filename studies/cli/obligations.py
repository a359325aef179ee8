"""Proof obligations as files: what the judge was asked, as SMT-LIB that any solver can check again."""

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
    """One file per distinct question, numbered in the order of asking, and index.csv; returns a summary in words.

    A name ends with a digest of the question, so that the same question has the same digest in every run. Files that an
    earlier run has left in the folder are replaced; a folder with other files in it is refused.
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
    """Comment lines: the question in words, and what a solver should answer."""
    lines = ["Is there a real point with", *obligation.statement.splitlines()]
    return "".join(f"; {line}\n" for line in [*lines, f"expected: {obligation.outcome.value}"])


def _summary(counts: Counter[str], folder: Path) -> str:
    parts = [f"{counts[word]} {word}" for word in ("unsat", "sat", "unknown") if counts[word]]
    detail = f" ({', '.join(parts)})" if parts else ""
    return f"wrote {counts.total()} proof obligations{detail} to {folder}"


def obligation_files(folder: Path) -> list[Path]:
    """The files that an earlier run has left in a folder; raises FileError where anything else is there."""
    if not folder.exists():
        return []
    if not folder.is_dir():
        raise FileError(f"expected a folder for proof obligations, got the file {folder}; name a new folder")
    listed = {INDEX}
    if (folder / INDEX).is_file():
        with (folder / INDEX).open(encoding="utf-8", newline="") as file:
            listed |= {str(row.get("file")) for row in csv.DictReader(file)}
    strangers = sorted(path.name for path in folder.iterdir() if path.name not in listed)
    if strangers:
        raise FileError(
            f"expected an empty folder or one of proof obligations, got {folder} with {strangers[0]}; name a new folder"
        )
    return list(folder.iterdir())
