"""A file of measured cells, somebody on a data set each: written after every cell, gone on with where it was left."""

from __future__ import annotations

import json
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from gread.datasets.loading import load_dataset
from gread.datasets.node_data import NodeData
from gread.tuning.rounds import reason
from rdgraph.errors import InvalidArgument, RdgraphError, UnknownName

#: Who is measured, and the data set.
Cell = tuple[str, str]
#: As many missing cells are named on a page; of more, their number is told.
NAMED = 12


def checked(names: Sequence[str] | None, known: Sequence[str], kind: str) -> Sequence[str]:
    """The names that were asked for, or all of them; one that there is not is an error."""
    for name in names or ():
        if name not in known:
            raise UnknownName(kind, name, known)
    return names or known


def write_cells(path: Path, found: dict[str, Any]) -> None:
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def read_cells(path: Path) -> dict[str, Any]:
    """What a file holds; no rows where there is none."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"rows": []}
    return found


def present(paths: Sequence[Path]) -> Sequence[Path]:
    """Files that are put into one; one that there is not is an error."""
    for path in paths:
        if not path.is_file():
            raise InvalidArgument(f"expected files to put into one, got {path}, which is none; see the name")
    return paths


def missing_cells(found: Mapping[str, Any], key: str, names: Iterable[str], sets: Sequence[str]) -> list[Cell]:
    """The cells that there is no row of yet, one data set after the other; `key` is the column of the names.

    >>> missing_cells({"rows": [{"model": "gcn", "dataset": "cora"}]}, "model", ["gcn", "gat"], ["cora"])
    [('gat', 'cora')]
    """
    known = {(row[key], row["dataset"]) for row in found["rows"]}
    wanted = [(name, dataset) for dataset in sets for name in names]
    return [cell for cell in wanted if cell not in known]


def not_measured(found: Mapping[str, Any], missing: Sequence[Cell]) -> list[str]:
    """Lines of a page: which cells failed, with the reasons, and which were not tried yet.

    >>> not_measured({"failed": {"BS/cora": "no memory"}}, [("BS", "cora"), ("F", "cora")])
    ['', 'Not measured: BS/cora (no memory).', '', 'Not measured yet: F/cora.']
    """
    failed, lines = found.get("failed", {}), list[str]()
    if failed:
        lines += ["", "Not measured: " + "; ".join(f"{cell} ({why})" for cell, why in failed.items()) + "."]
    if waiting := [cell for cell in map("/".join, missing) if cell not in failed]:
        lines += ["", f"Not measured yet: {', '.join(waiting) if len(waiting) <= NAMED else f'{len(waiting)} cells'}."]
    return lines


def cells_of_set(found: dict[str, Any], dataset: str) -> dict[str, Any]:
    """What a file has of one data set.

    >>> cells_of_set({"rows": [{"dataset": "cora"}], "failed": {"BS/cora": "why", "BS/texas": "why"}}, "texas")
    {'rows': [], 'failed': {'BS/texas': 'why'}}
    """
    rows = [row for row in found["rows"] if row["dataset"] == dataset]
    failed = {cell: why for cell, why in found.get("failed", {}).items() if cell.rsplit("/", 1)[-1] == dataset}
    return {**found, "rows": rows, "failed": failed}


def say(text: str) -> None:
    """Tell what happens on the way."""
    print(text, file=sys.stderr, flush=True)


def measure_cells(
    cells: Sequence[Cell],
    measure: Callable[[str, str, NodeData], Any],
    tell: Callable[[Any], str],
    out: Path,
    found: dict[str, Any],
    budget: float,
) -> None:
    """Measure cells, a dataclass each, until the time is up; one that fails is told of and noted, whatever the reason.

    Cells take minutes of a card: an error in one of them is no reason to lose those behind it. The file says what
    failed, and the traceback of an error that is not the package's own is told. After an error of the card itself
    nothing more can be done in this process.
    """
    end, loaded = time.monotonic() + budget, dict[str, NodeData]()
    for name, dataset in cells:
        if time.monotonic() > end:
            return
        if dataset not in loaded:
            loaded = {dataset: load_dataset(dataset, offline=True)}
        cell = f"{name}/{dataset}"
        try:
            row = measure(name, dataset, loaded[dataset])
        except Exception as problem:
            if not isinstance(problem, RdgraphError | torch.OutOfMemoryError):
                say(traceback.format_exc())
            say(f"{cell}: {problem}")
            found["failed"] = {**found.get("failed", {}), cell: reason(problem)}
            if isinstance(problem, torch.AcceleratorError):
                write_cells(out, found)
                return
        else:
            say(f"{cell}: {tell(row)}")
            found["rows"].append(asdict(row))
            found.get("failed", {}).pop(cell, None)
        write_cells(out, found)


def joined_cells(paths: Iterable[Path], key: str) -> dict[str, Any]:
    """One file of several that were measured side by side; a cell of a later file takes the place of an earlier one."""
    rows, failed, found = {}, {}, dict[str, Any]()
    for path in paths:
        part = read_cells(path)
        rows.update({(row[key], row["dataset"]): row for row in part["rows"]})
        failed.update(part.get("failed", {}))
        found.update(part)
    left = {cell: why for cell, why in failed.items() if tuple(cell.rsplit("/", 1)) not in rows}
    return {**found, "rows": [rows[cell] for cell in sorted(rows)], "failed": left}
