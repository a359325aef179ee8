"""A training as a run folder: settings, environment, metrics, results, a network, figures and the report.

The folder is valid at any moment. While it trains it holds checkpoints; a training that was cut off goes on from them,
to the same results.
"""

from __future__ import annotations

import json
import shutil
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from gread.training.ensemble import METRICS
from gread.training.trainer import EVERY, Progress, Trained, train
from rdgraph.errors import FileError, RdgraphError
from rdgraph.files import read_text, replacing, unwritable, write_text
from rdgraph.interrupts import terminable
from studies.runs.config import environment
from studies.runs.run_folder import locked
from studies.runs.tables import Row, read_rows, write_rows
from studies.training import report as training_report
from studies.training.choices import folder_name
from studies.training.plan import Plan

RESULT_COLUMNS = ("split", "seed", "best_epoch", "val_accuracy", "test_accuracy", "status")
METRIC_COLUMNS = ("split", "seed", "epoch", *METRICS)
CHECKPOINTS = "checkpoints"


def execute(
    plan: Plan,
    folder: Path,
    *,
    resume: bool = False,
    progress: Callable[[Progress], None] | None = None,
    tell: Callable[[str], object] = warnings.warn,
    every: float = EVERY,
) -> list[Row]:
    """Train what the plan says in a folder, anew or from where it was left; returns the rows of results.csv.

    `progress` and `tell` are those of `gread.training.trainer.train`. Ctrl-C and SIGTERM leave a valid folder and end
    in a KeyboardInterrupt, the first after a checkpoint; `kill -9` leaves the last checkpoint.
    """
    if prepare(folder, plan, resume) == "done":
        return read_results(folder, plan)
    with locked(folder), terminable():
        try:
            write_text(folder / "config.toml", plan.toml())
            write_text(folder / "state", "running\n")
            rows = _fill(folder, plan, every, progress, tell)
            write_text(folder / "state", "done\n")
        except BaseException as error:
            with suppress(FileError):  # the first error counts; a full disk would hide it behind a second one
                write_text(folder / "state", "failed\n" if isinstance(error, Exception) else "interrupted\n")
            raise
    shutil.rmtree(folder / CHECKPOINTS, ignore_errors=True)
    return rows


def _fill(
    folder: Path,
    plan: Plan,
    every: float,
    progress: Callable[[Progress], None] | None,
    tell: Callable[[str], object],
) -> list[Row]:
    """Train, and write everything but the settings and the state."""
    started, surroundings = time.monotonic(), environment(plan.device)
    _write_environment(folder, surroundings)
    done = train(
        plan.data, plan.trials, device=plan.device, checkpoint=folder / CHECKPOINTS, every=every, progress=progress,
        tell=tell,
    )  # fmt: skip
    rows = write_numbers(folder, done)
    surroundings["seconds"] = round(time.monotonic() - started, 1)
    surroundings["training_seconds"] = round(done.seconds, 1)
    training_report.write(folder, plan, done, rows, surroundings)
    _write_environment(folder, surroundings)
    return rows


def read_results(folder: Path, plan: Plan) -> list[Row]:
    """The rows of a finished run's results.csv, which must be those of the plan's trials."""
    path = folder / "results.csv"
    rows = read_rows(path)
    trials = [(trial.split, trial.seed) for trial in plan.trials]
    fits = all(tuple(row) == RESULT_COLUMNS and _is_result(row) for row in rows)
    if not fits or [(row["split"], row["seed"]) for row in rows] != trials:
        raise FileError(
            f"expected a row for each of {len(trials)} trials in {path}, got a file that was changed; delete the "
            "folder and train again"
        )
    return list(rows)


def _is_result(row: Row) -> bool:
    """Whether a row holds a text as status and numbers elsewhere."""
    return all(isinstance(value, str) == (name == "status") for name, value in row.items())


def prepare(folder: Path, plan: Plan, resume: bool) -> str:
    """Make the folder and say its state, "" for a new one; one that holds something else is refused."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        entries = [p.name for p in folder.iterdir() if not p.name.startswith(".")]
    except OSError as problem:
        raise unwritable(folder, problem) from None
    config = folder / "config.toml"
    if not entries:
        return ""
    if not resume or not config.is_file():
        remedy = "add --resume, or choose another with --out" if config.is_file() else "choose another with --out"
        raise RdgraphError(f"expected an empty folder, got {folder} with {min(entries)} in it; {remedy}")
    different = plan.differences(read_text(config, "the settings of a training"))
    if different:
        raise RdgraphError(
            f"expected the folder of the same training, got {folder} with {'; '.join(different)}; "
            "resume with the same settings, or choose another folder with --out"
        )
    state = folder / "state"
    return read_text(state, "the state of a training").strip() if state.is_file() else ""


def default_folder(plan: Plan, *, resume: bool = False, base: Path = Path("runs/train")) -> Path:
    """base/DATASET-REACTION-N with the first free number, or the last one that is there where one is to resume."""
    stem = folder_name(plan.preset.dataset, plan.reaction)
    numbers = [int(rest) for path in base.glob(f"{stem}-*") if (rest := path.name.removeprefix(f"{stem}-")).isdecimal()]
    last = max(numbers, default=0)
    return base / f"{stem}-{max(1, last) if resume else last + 1}"


def write_numbers(folder: Path, done: Trained) -> list[Row]:
    """Write results.csv, metrics.parquet and network/; returns the rows of the results."""
    rows: list[Row] = [{name: row[name] for name in RESULT_COLUMNS} for row in done.rows()]  # type: ignore[misc]
    write_rows(folder / "results.csv", rows)
    write_metrics(folder / "metrics.parquet", done)
    kept = first_sound(done)
    if kept is not None:
        done.network(kept).save(folder / "network")
    return rows


def first_sound(done: Trained) -> int | None:
    """The number of the first trial that did not diverge, None if all did."""
    return next((k for k, status in enumerate(done.status) if status == "ok"), None)


def metric_columns(done: Trained) -> dict[str, np.ndarray]:
    """Every metric of every trial and epoch as columns of one length; epochs count from 1."""
    members, epochs, _ = done.history.shape
    columns = {
        "split": np.repeat(np.array([t.split for t in done.trials], dtype=np.int32), epochs),
        "seed": np.repeat(np.array([t.seed for t in done.trials], dtype=np.int32), epochs),
        "epoch": np.tile(np.arange(1, epochs + 1, dtype=np.int32), members),
    }
    return columns | {name: done.history[:, :, k].reshape(-1) for k, name in enumerate(METRICS)}


def write_metrics(path: Path, done: Trained) -> None:
    """Write metrics.parquet, one row per trial and epoch, compressed by zstd."""
    import pyarrow
    from pyarrow import parquet

    table = pyarrow.table(metric_columns(done))
    with replacing(path) as draft:
        parquet.write_table(table, draft, compression="zstd")


def _write_environment(folder: Path, surroundings: dict[str, Any]) -> None:
    write_text(folder / "environment.json", json.dumps(surroundings, indent=2) + "\n")
