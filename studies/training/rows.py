"""The numbers of a training as rows: results per trial, metrics per trial and epoch."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gread.training.ensemble import METRICS
from gread.training.trainer import Trained
from rdgraph.errors import FileError
from rdgraph.files import replacing
from studies.runs.tables import Row, read_rows
from studies.training.plan import TrainingPlan

RESULT_COLUMNS = ("split", "seed", "best_epoch", "val_accuracy", "test_accuracy", "status")


def result_rows(done: Trained) -> list[Row]:
    """The rows of results.csv, one a trial."""
    return [{name: row[name] for name in RESULT_COLUMNS} for row in done.rows()]  # type: ignore[misc]


def read_results(folder: Path, plan: TrainingPlan) -> list[Row]:
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


def first_sound(done: Trained) -> int | None:
    """The number of the first trial that did not diverge, None if all did."""
    return next(iter(sound_trials(done)), None)


def sound_trials(done: Trained) -> list[int]:
    """The numbers of the trials that did not diverge."""
    return [k for k, status in enumerate(done.status) if status == "ok"]


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
