"""`Cell`: configurations on some graphs, with every split and seed; trained in batches and stored as one part."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gread.datasets.loading import load_dataset
from gread.datasets.node_data import NodeData
from gread.settings.config import Config
from gread.settings.model_records import find_model
from gread.settings.presets import find_preset
from gread.settings.trials import Trial, make_trials
from gread.training.trainer import Results, Trained, train
from rdgraph.errors import InvalidArgument, RdgraphError
from rdgraph.files import write_text
from studies.runs.tables import MutableRow, Value, write_parquet
from studies.runs.uncertainty import FAILS

if TYPE_CHECKING:
    from studies.runs.study_run import StudyRun


# ---------------------------------------------------------------------- nine sets
# The nine data sets of the paper, and which of their settings other data sets borrow.

SETS = ("texas", "wisconsin", "cornell_old", "film", "squirrel", "chameleon", "cora", "citeseer", "pubmed")
REACTIONS = ("BS", "F", "AC", "Z", "ST", "FB", "FB*")
#: Data sets without published settings, and the data sets they borrow from.
BORROWS = {
    "cornell": "cornell_old",
    "chameleon_filtered": "chameleon",
    "squirrel_filtered": "squirrel",
    "karate": "texas",
    "digits": "cora",
}
#: The answer of a report without data sets of the paper.
NOTHING_COMPARED = "No graph of this run is in the paper's table, so nothing is compared."
#: Reactions with a linear flow, which can be computed exactly.
LINEAR = ("BS", "ST", "FB", "FB*", "diffusion")
#: The reactions inside tanh, an option of the authors' code.
BOUNDED = {
    "F": "-alpha*L@H + beta*tanh(H*(1 - H))",
    "AC": "-alpha*L@H + beta*tanh(H*(1 - H**2))",
    "Z": "-alpha*L@H + beta*tanh(H*(H - H**2))",
}


def settings_set(dataset: str) -> str:
    """Data set whose published settings are used.

    >>> settings_set("karate"), settings_set("cora")
    ('texas', 'cora')
    """
    return BORROWS.get(dataset, dataset)


def published_config(kind: str, reaction: str, dataset: str) -> Config:
    """The paper's or the authors' settings of a reaction on a data set, or on the one it borrows from.

    >>> published_config("paper", "BS", "karate").model.time
    1.46
    """
    return find_preset(kind, reaction, settings_set(dataset)).config


def sized_config(kind: str, reaction: str, dataset: str, s: Mapping[str, Any]) -> Config:
    """`published_config` with the epochs and channels of a study's settings, unless these are 0."""
    return shrunk(published_config(kind, reaction, dataset), s["epochs"], s["hidden"])


def config_like(name: str, config: Config, keep: Collection[str] = (), **changes: Any) -> Config:
    """A network with the settings that it shares with another one, except for those it keeps, and with some changed.

    >>> config = published_config("paper", "BS", "cora")
    >>> config_like("gcn", config, dropout=0.5).model.hidden == config.model.hidden
    True
    """
    built = find_model(name).settings()
    known = {f.name for f in fields(built)}.difference(keep)
    shared = {f.name: getattr(config.model, f.name) for f in fields(config.model)} | changes
    return Config(replace(built, **{k: value for k, value in shared.items() if k in known}), config.training)


def train_first_splits(kind: str, reaction: str, dataset: str, s: Mapping[str, Any], device: str, seed: int) -> Trained:
    """Networks with published settings, trained on the first splits of a data set."""
    data = load_set(dataset)
    splits = range(min(s["splits"], data.num_splits))
    return train(data, make_trials(sized_config(kind, reaction, dataset, s), splits, (seed,)), device=device)


def departures(sets: Iterable[str], epochs: int, hidden: int, word: str = "for") -> str:
    """How the settings of a run differ from "the published settings", for a sentence.

    Args:
        sets: the data sets of the run.
        epochs: replace the published epochs; 0 for none.
        hidden: replaces the published channels; 0 for none.
        word: the preposition before the lender.

    Returns:
        Words that begin with a space or a comma; "" if every data set has its own settings, unchanged.

    Example:
        >>> departures(["cora", "film"], 0, 0)
        ''
        >>> departures(["karate"], 15, 8)
        ' for texas, since karate has none, but 15 epochs and 8 channels'
        >>> departures(["cora", "karate"], 0, 8)
        ', on karate, which has none, those for texas, but 8 channels'
    """
    asked = dict.fromkeys(sets)
    lenders = {name: settings_set(name) for name in asked if name in BORROWS}
    if len(lenders) < len(asked):
        words = [f", on {name}, which has none, those {word} {lender}" for name, lender in lenders.items()]
    else:
        words = [f"{word} {lender}, since {name} has none" for name, lender in lenders.items()]
        words = [f" {' and '.join(words)}"] if words else []
    sizes = size_words(epochs, hidden)
    return "".join(words) + (f", but {sizes}" if sizes else "")


def size_words(epochs: int, hidden: int) -> str:
    """Epochs and channels that replace the published ones, unless 0, in words.

    >>> size_words(15, 8), size_words(0, 8), size_words(0, 0)
    ('15 epochs and 8 channels', '8 channels', '')
    """
    return " and ".join(f"{count} {what}" for count, what in ((epochs, "epochs"), (hidden, "channels")) if count)


def cited(tables: str, *sets: str) -> str:
    """The tables or figures of a statement in brackets; "" if a data set is not in the paper.

    >>> cited("Table 24", "cora"), cited("Table 24", "karate")
    (' (Table 24)', '')
    """
    return f" ({tables})" if set(sets) <= set(SETS) else ""


def uncompared(sets: Iterable[str]) -> str:
    """A last sentence for a run without data sets of the paper; else "".

    >>> uncompared(["karate", "cora"]), uncompared(["karate"]).startswith(" No graph")
    ('', True)
    """
    return "" if set(sets) & set(SETS) else f" {NOTHING_COMPARED}"


def released_reaction(reaction: str, beta: str) -> str:
    """Name of FB or FB* as the authors' code computes them; with a vector beta both are the same function.

    >>> released_reaction("FB*", "scalar"), released_reaction("FB*", "channel"), released_reaction("FB", "scalar")
    ('FB*-released', 'FB-released', 'FB-released')
    """
    return "FB*-released" if reaction == "FB*" and beta == "scalar" else "FB-released"


# ---------------------------------------------------------------------- cell
CHECKPOINTS = "checkpoints"
#: Most trainings in one batch; their checkpoints stay on disk until all are done.
TOGETHER = 700
#: A verdict that is only reported if it fails.
ALL_TRAINED = "Every cell of this study could be trained."
#: The columns of a training after the data set and the labels.
COLUMNS = ("split", "seed", "best_epoch", "val_accuracy", "test_accuracy", "status")
Load = Callable[[str], NodeData]


@dataclass(frozen=True)
class Variation:
    """A configuration, and the columns that identify it in a study."""

    labels: Mapping[str, Value]
    config: Config


@dataclass(frozen=True)
class Cell:
    """Trainings that belong together: every variation on every graph, on its first `splits` splits, with every seed.

    Args:
        name: for files.
        graphs: names that the study's `load` knows.
        variations: at least one; all with the same labels.
        splits: number of splits; all splits of a graph that has fewer.
        seeds: number of seeds, from 0.
    """

    name: str
    graphs: tuple[str, ...]
    variations: tuple[Variation, ...]
    splits: int = 10
    seeds: int = 1

    def __post_init__(self) -> None:
        if not (self.graphs and self.variations and self.splits > 0 and self.seeds > 0):
            raise InvalidArgument(f"expected graphs, variations, splits and seeds in the cell {self.name}, got none")

    @property
    def trainings(self) -> int:
        """Number of trainings if every graph has enough splits."""
        return len(self.graphs) * len(self.variations) * self.splits * self.seeds


#: Data set and variation of every training, and functions from these and the results to rows.
Origins = Sequence[tuple[str, Variation]]
RowsOf = Callable[[Origins, Trained], list[MutableRow]]


@dataclass(frozen=True, eq=False)
class CellRows:
    """A row for every training, and by cell the reasons for missing rows."""

    rows: list[MutableRow]
    failed: dict[str, str] = field(default_factory=dict)


@lru_cache(maxsize=2)
def load_set(name: str) -> NodeData:
    """A data set by name, cached for the next cells."""
    return load_dataset(name)


def file_name(*words: object) -> str:
    """Words joined to a file name.

    >>> file_name("FB*", "cora", 0.5)
    'FBstar-cora-0.5'
    """
    return "-".join(str(word).replace("*", "star").replace("±", "free") for word in words)


def train_cells(
    run: StudyRun, cells: Sequence[Cell], load: Load = load_set, rows_of: RowsOf | None = None, *, some: bool = True,
    keep_best: bool = False,
) -> CellRows:  # fmt: skip
    """Rows of all cells; each is a part of the run, trained if missing, and resumed from its checkpoint.

    On a GPU, many cells are trained in one batch, and each is stored as soon as it is done. A cell that cannot be
    trained, because of its equation or for lack of memory, is reported and tried again by the next run. `rows_of` makes
    the rows of a cell, by default one per training; with `keep_best` it can use the networks of the best epochs. With
    `some`, an empty list of cells is an error.
    """
    if some and not cells:
        empty = ", ".join(name for name, value in run.settings.items() if value == [])
        raise InvalidArgument(f"there is nothing to train because these settings are empty: {empty}")
    result: dict[str, list[MutableRow]] = {}
    failed: dict[str, str] = {}
    tried: set[Path] = set()

    def keep(cell: Cell, rows: Callable[[], list[MutableRow]]) -> None:
        if cell.name not in result:
            result[cell.name] = run.part(cell.name, rows)

    groups = groups_of(cells, TOGETHER if is_side_by_side(run.device) else 0)
    group_of = {cell.name: group for group in groups for cell in group}
    for cell in run.progress(cells, "cells of trainings"):
        private, shared = (
            run.folder / CHECKPOINTS / name for name in (cell.name, f"from-{group_of[cell.name][0].name}")
        )
        arguments = (load, run.device, run.seed)
        missing = [one for one in group_of[cell.name] if not run.has_part(one.name)]
        if cell in missing and shared not in tried and (len(missing) > 1 or shared.exists()):
            tried.add(shared)
            with suppress(RdgraphError, RuntimeError):  # then each cell is tried alone and reports its own error
                train_group(
                    begun_with(shared, group_of[cell.name], missing), *arguments, shared, rows_of, keep, keep_best
                )
            shutil.rmtree(shared, ignore_errors=True)
        try:
            keep(cell, partial(train_cell, cell, *arguments, private, rows_of, keep_best))
        except (RdgraphError, RuntimeError) as problem:
            failed[cell.name] = str(problem).partition("\n")[0]
            run.give_up(cell.name, failed[cell.name])
        shutil.rmtree(private, ignore_errors=True)
    rows = [row for cell in cells for row in result.get(cell.name, [])]
    shutil.rmtree(run.folder / CHECKPOINTS, ignore_errors=True)
    if failed:
        reasons = "; ".join(f"{name}: {why}" for name, why in failed.items())
        run.verdict(ALL_TRAINED, FAILS, f"{len(failed)} of {len(cells)} cells could not be trained. {reasons}")
    return CellRows(rows, failed)


def is_side_by_side(device: str) -> bool:
    """Whether a device trains several cells in the time of one."""
    return device.startswith("cuda")


def groups_of(cells: Sequence[Cell], most: int) -> list[list[Cell]]:
    """Cells in groups of at most `most` trainings, or of one cell.

    >>> from gread.settings.config import Config
    >>> cells = [Cell(name, ("cora",), (Variation({}, Config()),)) for name in "abc"]
    >>> [[cell.name for cell in group] for group in groups_of(cells, 20)]
    [['a', 'b'], ['c']]
    """
    groups: list[list[Cell]] = []
    room = 0
    for cell in cells:
        room -= cell.trainings
        if room < 0:
            groups.append([])
            room = most - cell.trainings
        groups[-1].append(cell)
    return groups


def begun_with(folder: Path, group: Sequence[Cell], missing: Sequence[Cell]) -> list[Cell]:
    """The cells of the interrupted training in this folder, to resume it; else the missing cells."""
    path = folder / "cells.json"
    try:
        names = json.loads(path.read_text(encoding="utf-8"))
        return [cell for cell in group if cell.name in names]
    except (OSError, ValueError, TypeError):
        write_text(path, json.dumps([cell.name for cell in missing]))
        return list(missing)


def train_cell(
    cell: Cell,
    load: Load,
    device: str,
    first_seed: int = 0,
    checkpoint: Path | None = None,
    rows_of: RowsOf | None = None,
    keep_best: bool = False,
) -> list[MutableRow]:
    """Rows of a cell: data set, labels, split, seed, best epoch, accuracies as fractions, status."""
    result: list[MutableRow] = []
    train_group([cell], load, device, first_seed, checkpoint, rows_of, lambda _, rows: result.extend(rows()), keep_best)
    return result


def train_group(
    cells: Sequence[Cell],
    load: Load,
    device: str,
    first_seed: int,
    checkpoint: Path | None,
    rows_of: RowsOf | None,
    keep: Callable[[Cell, Callable[[], list[MutableRow]]], None],
    keep_best: bool = False,
) -> None:
    """Train cells in one batch; `keep` is called with each finished cell and a function that makes its rows."""
    graphs = {name: load(name) for name in dict.fromkeys(name for cell in cells for name in cell.graphs)}
    trials: list[Trial] = []
    origins: list[tuple[str, Variation]] = []
    owners: list[int] = []
    for number, cell in enumerate(cells):
        for variation in cell.variations:
            for name in cell.graphs:
                for seed in range(first_seed, first_seed + cell.seeds):
                    for split in range(min(cell.splits, graphs[name].num_splits)):
                        trials.append(Trial(variation.config, split, seed))
                        origins.append((name, variation))
                        owners.append(number)
    numbers = [[k for k, owner in enumerate(owners) if owner == number] for number in range(len(cells))]
    remaining = [set(private) for private in numbers]

    def rows(number: int, results: Results) -> list[MutableRow]:
        return (rows_of or training_rows)([origins[k] for k in numbers[number]], results(numbers[number]))

    def finished(done: Sequence[int], results: Results) -> None:
        for number in sorted({owners[k] for k in done}):
            remaining[number] -= set(done)
            if not remaining[number]:
                keep(cells[number], partial(rows, number, results))

    each = next(iter(graphs.values())) if len(graphs) == 1 else [graphs[name] for name, _ in origins]
    train(
        each, trials, device=device, checkpoint=checkpoint, keep_best=keep_best, finished=finished, tell=lambda _: None
    )


def training_rows(origins: Origins, done: Trained) -> list[MutableRow]:
    """A row for every training."""
    return [
        {"dataset": name, **variation.labels, **{column: _value(row[column]) for column in COLUMNS}}
        for (name, variation), row in zip(origins, done.rows(), strict=True)
    ]


def _value(value: object) -> Value:
    if not isinstance(value, float | int | str):
        raise InvalidArgument(f"a row holds numbers and texts, got {value!r}")
    return value


def write_trials(run: StudyRun, rows: Sequence[MutableRow], name: str = "trials") -> None:
    """Write every training to NAME.parquet if pyarrow is installed; the parts have the same rows as csv."""
    if write_parquet(run.folder / f"{name}.parquet", rows):
        run.describe(f"{name}.parquet", "a row per training; parts/ has the same as csv")


def shrunk(config: Config, epochs: int, hidden: int) -> Config:
    """A configuration with other epochs and channels, unless these are 0."""
    changes = {name: value for name, value in (("epochs", epochs), ("hidden", hidden)) if value}
    return config.updated(changes)


def grouped_rows(rows: Iterable[MutableRow], *columns: str) -> dict[tuple[Value, ...], list[MutableRow]]:
    """Rows grouped by the values of some columns, in the order of first appearance.

    >>> list(grouped_rows([{"a": 1, "b": 2}, {"a": 1, "b": 3}], "a"))
    [(1,)]
    """
    result: dict[tuple[Value, ...], list[MutableRow]] = {}
    for row in rows:
        result.setdefault(tuple(row[c] for c in columns), []).append(row)
    return result
