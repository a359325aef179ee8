"""The table of cases, and files of measured results: their provenance, rows added one by one, cells measured once.

Every file says which command wrote it, on which machine and with which code.
"""

from __future__ import annotations

import json
import platform
import sys
import time
import tomllib
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import torch

from gread.datasets.loading import load_dataset
from gread.datasets.node_data import NodeData
from gread.tuning.rounds import reason
from rdgraph.errors import InvalidArgument, RdgraphError, UnknownName
from rdgraph.files import read_text, write_text
from studies.results import results_folder
from studies.runs.run_config import fingerprint

#: Where results are kept.
RESULTS = results_folder()
#: What is measured, by topic.
CASES: dict[str, Any] = tomllib.loads((Path(__file__).parent / "cases.toml").read_text(encoding="utf-8"))
#: Who is measured, and the data set.
Cell = tuple[str, str]
#: A row of a file: numbers by their names.
ResultRow = dict[str, Any]
#: Measures a cell, and writes its row in a line.
Measure = Callable[[str, str, NodeData], ResultRow]
Line = Callable[[ResultRow], str]
#: Columns that name who is measured, in the files of cells.
KEYS = ("contestant", "model", "function")


# ---------------------------------------------------------------------- files
def environment(device: str) -> dict[str, str]:
    """Versions and the device that a measurement was taken with."""
    found = {"python": platform.python_version(), "torch": torch.__version__, "device": platform.processor() or "cpu"}
    if device == "cuda":
        import triton

        found |= {"device": torch.cuda.get_device_name(), "triton": triton.__version__}
    return found


def head(command: str, device: str) -> dict[str, Any]:
    """Where a result comes from: the command, the code and the machine."""
    return {"command": command, "code": fingerprint(), "environment": environment(device)}


def read_json(path: Path, otherwise: Any) -> Any:
    """The content of a results file, or something else where there is none yet."""
    return json.loads(read_text(path, "measured results")) if path.exists() else otherwise


def write_json(path: Path, found: Any) -> None:
    """Write a results file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(found, indent=1) + "\n")


def say(text: str) -> None:
    """Report progress on the error stream."""
    print(text, file=sys.stderr, flush=True)


def checked(names: Sequence[str], known: Sequence[str], kind: str) -> Sequence[str]:
    """The names that were asked for, or all of them; an unknown name is an error."""
    for name in names:
        if name not in known:
            raise UnknownName(kind, name, known)
    return names or known


# ---------------------------------------------------------------------- cells
def read_cells(path: Path) -> dict[str, Any]:
    """What a file of cells holds; no rows where there is no file."""
    found: dict[str, Any] = read_json(path, {"rows": []})
    return found


def missing_cells(found: Mapping[str, Any], key: str, names: Iterable[str], sets: Sequence[str]) -> list[Cell]:
    """The cells that there is no row of yet, one data set after the other; `key` is the column of the names.

    >>> missing_cells({"rows": [{"model": "gcn", "dataset": "cora"}]}, "model", ["gcn", "gat"], ["cora"])
    [('gat', 'cora')]
    """
    known = {(row[key], row["dataset"]) for row in found["rows"]}
    wanted = [(name, dataset) for dataset in sets for name in names]
    return [cell for cell in wanted if cell not in known]


def cells_of_set(found: Mapping[str, Any], dataset: str) -> dict[str, Any]:
    """What a file has of one data set.

    >>> cells_of_set({"rows": [{"dataset": "cora"}], "failed": {"BS/cora": "why", "BS/texas": "why"}}, "texas")
    {'rows': [], 'failed': {'BS/texas': 'why'}}
    """
    rows = [row for row in found["rows"] if row["dataset"] == dataset]
    failed = {cell: why for cell, why in found.get("failed", {}).items() if cell.rsplit("/", 1)[-1] == dataset}
    return {**found, "rows": rows, "failed": failed}


def open_cells(out: Path, command: str, device: str, again: Iterable[Cell] = ()) -> dict[str, Any]:
    """A file of cells to go on with, without those that are to be measured again."""
    found, dropped = read_cells(out), set(again)
    found["rows"] = [row for row in found["rows"] if (_name(row), row["dataset"]) not in dropped]
    return found | head(command, device)


def _name(row: Mapping[str, Any]) -> str:
    """Who was measured in a row of cells."""
    return next(str(row[key]) for key in KEYS if key in row)


def measure_table(
    program: str, key: str, names: Sequence[str], sets: Sequence[str], measure: Measure, line: Line, *, device: str,
    out: Path, again: bool, seconds: float, select: Callable[[list[Cell]], list[Cell]] = list,
    cells: Callable[..., list[Cell]] = missing_cells,
) -> None:  # fmt: skip
    """Measure the cells that the file of a program lacks, resumed where it stopped, all of them where `again`.

    `cells` lists what is missing, as `missing_cells` does, and `select` leaves out what is not measured by default.
    """
    dropped = product(names, sets) if again else ()
    found = open_cells(out, f"python -m studies.benchmarks {program} --device cuda", device, dropped)
    measure_cells(select(cells(found, key, names, sets)), measure, line, out, found, seconds)


def measure_cells(
    cells: Sequence[Cell], measure: Measure, line: Line, out: Path, found: dict[str, Any], budget: float
) -> None:
    """Measure cells, a row each, until the time is up; any failure is reported and recorded.

    Cells take minutes of a GPU, so an error in one must not lose the others. The file records what failed; the
    traceback of an error from outside the package is shown. After an error of the GPU itself the process stops.
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
                write_json(out, found)
                return
        else:
            say(f"{cell}: {line(row)}")
            found["rows"].append(row)
            found.get("failed", {}).pop(cell, None)
            if torch.cuda.is_available():
                torch.cuda.empty_cache()  # the planner asks the device what is free
        write_json(out, found)


def joined_cells(paths: Iterable[Path]) -> dict[str, Any]:
    """One file of several that were measured side by side; a cell of a later file takes the place of an earlier one."""
    rows, failed, found = {}, {}, dict[str, Any]()
    for path in paths:
        part = read_cells(path)
        rows.update({(_name(row), row["dataset"]): row for row in part["rows"]})
        failed.update(part.get("failed", {}))
        found.update(part)
    still = {cell: why for cell, why in failed.items() if tuple(cell.rsplit("/", 1)) not in rows}
    return {**found, "rows": [rows[cell] for cell in sorted(rows)], "failed": still}


def present(paths: Sequence[Path]) -> Sequence[Path]:
    """Files that are joined; one that does not exist is an error."""
    for path in paths:
        if not path.is_file():
            raise InvalidArgument(f"{path} does not exist; check the name")
    return paths


def join(*, files: Sequence[Path], out: Path) -> None:
    """Join files of cells that were measured side by side into one; cells of later files replace those of earlier."""
    write_json(out, joined_cells(present(files)))
