"""`Cell`: configurations on some graphs, on every split with every seed; trained in batches, kept as one part."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from gread.datasets.loading import load_dataset
from gread.datasets.node_data import NodeData
from gread.settings.config import Config
from gread.settings.trials import Trial
from gread.training.trainer import Trained, train
from rdgraph.errors import InvalidArgument, RdgraphError
from studies.runs.parquet_rows import write_parquet
from studies.runs.tables import MutableRow, Value
from studies.runs.uncertainty import FAILS

if TYPE_CHECKING:
    from studies.runs.study_run import StudyRun

CHECKPOINTS = "checkpoints"
#: Most cells that are trained beside each other; all of them are kept at once.
TOGETHER = 6
#: The verdict that a report has where it fails.
ALL_TRAINED = "Every cell of this study could be trained."
#: The columns of a training after the data set and the labels.
COLUMNS = ("split", "seed", "best_epoch", "val_accuracy", "test_accuracy", "status")
Load = Callable[[str], NodeData]


@dataclass(frozen=True)
class Variation:
    """A configuration, and the columns that tell it from the others of a study."""

    labels: Mapping[str, Value]
    config: Config


@dataclass(frozen=True)
class Cell:
    """What is trained together: every variation on every graph, on its first `splits` splits, with every seed.

    Args:
        name: a name for files.
        graphs: names that the study's `load` knows.
        variations: at least one; all with the same labels.
        splits: how many of the splits; all that a graph has where it has fewer.
        seeds: how many, from 0.
    """

    name: str
    graphs: tuple[str, ...]
    variations: tuple[Variation, ...]
    splits: int = 10
    seeds: int = 1

    def __post_init__(self) -> None:
        if not (self.graphs and self.variations and self.splits > 0 and self.seeds > 0):
            raise InvalidArgument(f"expected graphs, variations, splits and seeds in the cell {self.name}, got none")


#: Data set and variation of every training; and what makes rows of them and the trainings.
Origins = Sequence[tuple[str, Variation]]
RowsOf = Callable[[Origins, Trained], list[MutableRow]]


@dataclass(frozen=True, eq=False)
class CellRows:
    """One row per training of all cells, and why some cells have none, by their names."""

    rows: list[MutableRow]
    failed: dict[str, str] = field(default_factory=dict)


@lru_cache(maxsize=2)
def load_set(name: str) -> NodeData:
    """A data set by name, kept for the next cells of it."""
    return load_dataset(name)


def file_name(*words: object) -> str:
    """Words as one name for files.

    >>> file_name("FB*", "cora", 0.5)
    'FBstar-cora-0.5'
    """
    return "-".join(str(word).replace("*", "star").replace("±", "free") for word in words)


def train_cells(run: StudyRun, cells: Sequence[Cell], load: Load = load_set, rows_of: RowsOf | None = None) -> CellRows:
    """Train what is not trained yet, cell by cell; each is a part of the run, cut off ones go on from a checkpoint.

    On a card cells on the same graphs are trained beside each other. A cell that cannot be trained, for its equation or
    for lack of memory, is told of and tried again by the next run. `rows_of` makes the rows of a cell from its
    trainings; without it there is one row each.
    """
    found: dict[str, list[MutableRow]] = {}
    failed: dict[str, str] = {}
    for number, first in enumerate(run.progress(cells, "cells of trainings")):
        if first.name in found or first.name in failed:
            continue
        arguments = (load, run.device, run.seed, run.folder / CHECKPOINTS / first.name, rows_of)
        is_beside = is_side_by_side(run.device) and not run.has_part(first.name)
        group = neighbours(run, cells[number:]) if is_beside else [first]
        made = trained_together(group, *arguments) if len(group) > 1 else {}
        for cell in group:
            own = partial(made.__getitem__, cell.name) if cell.name in made else partial(train_cell, cell, *arguments)
            try:
                found[cell.name] = run.part(cell.name, own)
            except (RdgraphError, RuntimeError) as problem:
                failed[cell.name] = str(problem).partition("\n")[0]
            shutil.rmtree(arguments[3], ignore_errors=True)
    rows = [row for cell in cells for row in found.get(cell.name, [])]
    shutil.rmtree(run.folder / CHECKPOINTS, ignore_errors=True)
    if failed:
        told = "; ".join(f"{name}: {why}" for name, why in failed.items())
        run.verdict(ALL_TRAINED, FAILS, f"{len(failed)} of {len(cells)} cells could not be trained. {told}")
    return CellRows(rows, failed)


def is_side_by_side(device: str) -> bool:
    """Whether a device trains several cells in the time of one, which leaves most of it idle."""
    return device.startswith("cuda")


def neighbours(run: StudyRun, cells: Sequence[Cell]) -> list[Cell]:
    """The first cell, and those after it on the same graphs that are not trained yet: a card trains them at once."""
    same = (cell for cell in cells if cell.graphs == cells[0].graphs)
    return [cell for cell in same if not run.has_part(cell.name)][:TOGETHER]


def trained_together(
    cells: Sequence[Cell],
    load: Load,
    device: str,
    first_seed: int = 0,
    checkpoint: Path | None = None,
    rows_of: RowsOf | None = None,
) -> dict[str, list[MutableRow]]:
    """The rows of cells on the same graphs by their names, trained beside each other.

    None where one of them cannot be trained, or not beside the others; alone each says for itself.
    """
    try:
        return train_group(cells, load, device, first_seed, checkpoint, rows_of)
    except (RdgraphError, RuntimeError):
        if checkpoint is not None:
            shutil.rmtree(checkpoint, ignore_errors=True)
        return {}


def train_cell(
    cell: Cell,
    load: Load,
    device: str,
    first_seed: int = 0,
    checkpoint: Path | None = None,
    rows_of: RowsOf | None = None,
) -> list[MutableRow]:
    """The rows of a cell: data set, labels, split, seed, best epoch, accuracies as shares of 1, status."""
    return train_group([cell], load, device, first_seed, checkpoint, rows_of)[cell.name]


def train_group(
    cells: Sequence[Cell],
    load: Load,
    device: str,
    first_seed: int,
    checkpoint: Path | None,
    rows_of: RowsOf | None,
) -> dict[str, list[MutableRow]]:
    """The rows of cells on the same graphs by their names, from one training of all of them."""
    graphs = {name: load(name) for name in cells[0].graphs}
    trials: list[Trial] = []
    origins: list[tuple[str, Variation]] = []
    ends: list[int] = []
    for cell in cells:
        for variation in cell.variations:
            for name, data in graphs.items():
                for seed in range(first_seed, first_seed + cell.seeds):
                    for split in range(min(cell.splits, data.num_splits)):
                        trials.append(Trial(variation.config, split, seed))
                        origins.append((name, variation))
        ends.append(len(trials))
    each = next(iter(graphs.values())) if len(graphs) == 1 else [graphs[name] for name, _ in origins]
    done = train(each, trials, device=device, checkpoint=checkpoint, keep_best=False, tell=lambda _: None)
    make = rows_of or training_rows
    return {
        cell.name: make(origins[first:last], done.some(range(first, last)))
        for cell, first, last in zip(cells, [0, *ends], ends, strict=False)
    }


def training_rows(origins: Origins, done: Trained) -> list[MutableRow]:
    """One row for every training."""
    return [
        {"dataset": name, **variation.labels, **{column: _value(row[column]) for column in COLUMNS}}
        for (name, variation), row in zip(origins, done.rows(), strict=True)
    ]


def _value(value: object) -> Value:
    if not isinstance(value, float | int | str):
        raise InvalidArgument(f"expected a number or a text in a row, got {value!r}")
    return value


def write_trials(run: StudyRun, rows: Sequence[MutableRow], name: str = "trials") -> None:
    """Every training as NAME.parquet, where pyarrow is installed; the parts have the same rows as csv."""
    if write_parquet(run.folder / f"{name}.parquet", rows):
        run.describe(f"{name}.parquet", "a row per training; parts/ has the same as csv")


def shrunk(config: Config, epochs: int, hidden: int) -> Config:
    """A configuration with other epochs and channels, where these are not 0."""
    changes = {name: value for name, value in (("epochs", epochs), ("hidden", hidden)) if value}
    return config.updated(changes)


def grouped_rows(rows: Iterable[MutableRow], *columns: str) -> dict[tuple[Value, ...], list[MutableRow]]:
    """The rows by the values of some columns, in the order of first appearance.

    >>> list(grouped_rows([{"a": 1, "b": 2}, {"a": 1, "b": 3}], "a"))
    [(1,)]
    """
    found: dict[tuple[Value, ...], list[MutableRow]] = {}
    for row in rows:
        found.setdefault(tuple(row[c] for c in columns), []).append(row)
    return found
