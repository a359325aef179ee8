"""Presets: published settings as data, each with its source, and the published accuracies.

paper     the best settings of the GREAD paper, seven reactions on nine data sets. The paper does not state self-loops,
          the hidden layers of encoder and decoder and the ReLU after the flow; these are those of the authors' released
          settings for the same data set.
authors   the settings released with the authors' code: BS on nine data sets.
modern    settings found here: every equation in the recipe around it, such as blocks with norms, that was best in the
          study `recipe`; the source of each says what it reaches.
published the settings published by the authors of the compared networks, or in the comparisons that quote them; a csv
          file for each network, with a source in every row.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar, get_args, get_type_hints

from rdgraph.errors import InvalidArgument, UnknownName

if TYPE_CHECKING:  # loads sympy, which the names of presets do not need
    from gread.settings.config import Config

#: The names here of printed data sets: papers up to GREAD mean the old version of cornell.
_NAMES = {"cornell": "cornell_old"}
_FILES = {"paper": "paper_settings.csv", "authors": "authors_settings.csv", "modern": "modern_settings.csv"}
#: The presets of the compared networks, and the folder with a file for each of them.
PUBLISHED, _FOLDER = "published", "models"
#: Columns with another name in a configuration.
_RENAMED = {"solver": "method"}
#: The settings that the paper does not state.
BORROWED = ("self_loops", "encoder_mlp", "decoder_mlp", "relu")


@dataclass(frozen=True)
class Preset:
    """Settings of one reaction, or of another network, on one data set, with their origin."""

    name: str
    reaction: str
    dataset: str
    config: Config
    source: str


@dataclass(frozen=True)
class Published:
    """A published accuracy in percent, mean and standard deviation over the splits."""

    method: str
    dataset: str
    mean: float
    std: float | None
    source: str


def data_name(printed: str, kind: str = "paper") -> str:
    """The name here of a data set in the paper; the presets `modern` already have it.

    >>> data_name("cornell"), data_name("cora"), data_name("cornell", "modern")
    ('cornell_old', 'cora', 'cornell')
    """
    return printed if kind == "modern" else _NAMES.get(printed, printed)


@cache
def presets() -> tuple[Preset, ...]:
    """All presets: 63 of the paper, nine of the authors, the modern ones, then those of the compared networks.

    >>> presets()[0].name, presets()[0].config.model.time, presets()[71].name
    ('paper/BS/texas', 1.46, 'authors/BS/pubmed')
    """
    return tuple(map(named_preset, _readers()))


@cache
def paper_presets() -> tuple[Preset, ...]:
    """The best settings of the paper, seven reactions on nine data sets, by the paper's names of these.

    >>> best = paper_presets()[0]
    >>> best.reaction, best.dataset, best.config.model.step, best.config.model.time, best.config.model.method
    ('BS', 'texas', 1.0, 1.46, 'euler')
    """
    known = {name: printed for printed, name in _NAMES.items()}
    of_paper = (preset for preset in presets() if preset.name.startswith("paper/"))
    return tuple(replace(preset, dataset=known.get(preset.dataset, preset.dataset)) for preset in of_paper)


def preset_names() -> tuple[str, ...]:
    """The names of all presets, without reading their settings.

    >>> preset_names()[0]
    'paper/BS/texas'
    """
    return tuple(_readers())


def named_preset(name: str) -> Preset:
    """The preset with that name, without reading the others.

    >>> named_preset("paper/BS/texas").config.model.time
    1.46
    """
    try:
        return _readers()[name]()
    except KeyError:
        raise UnknownName("preset", name, _readers()) from None


@cache
def _readers() -> dict[str, Callable[[], Preset]]:
    """A function that reads each preset, by name."""
    authors = {row["dataset"]: row for row in _rows("authors_settings.csv")}
    readers: dict[str, Callable[[], Preset]] = {}
    for kind, file in _FILES.items():
        for row in _rows(file):
            dataset = data_name(row["dataset"], kind)
            name = f"{kind}/{row['reaction']}/{dataset}"
            readers[name] = partial(_of_paper, name, dataset, row, authors[row["dataset"]] if kind == "paper" else None)
    for path in sorted((files("gread") / "data" / _FOLDER).iterdir(), key=lambda path: path.name):
        model, suffix = path.name.rsplit(".", 1)
        for row in _rows(f"{_FOLDER}/{path.name}") if suffix == "csv" else ():
            name = f"{PUBLISHED}/{model}/{data_name(row['dataset'])}"
            readers[name] = partial(_of_network, name, model, row)
    return readers


def _of_paper(name: str, dataset: str, row: Mapping[str, str], authors: Mapping[str, str] | None) -> Preset:
    """Settings of a reaction; those not stated in the paper are the authors' for the data set."""
    from gread.settings.config import Config

    values, source = {k: v for k, v in row.items() if k not in ("dataset", "source") and v != ""}, row["source"]
    if authors is not None:
        values |= {name: authors[name] for name in BORROWED}
        values["normalisation"] = "symmetric" if row["adjacency"] == "original" else "row"
        source += f"; {', '.join(BORROWED)} from {authors['source']}"
    config = Config().updated({_RENAMED.get(k, k): v for k, v in values.items()})
    return Preset(name, row["reaction"], dataset, config, source)


def _of_network(name: str, model: str, row: Mapping[str, str]) -> Preset:
    """Settings of a compared network: a setting per column, the default where it is empty."""
    from gread.settings.config import Config

    values = {k: v for k, v in row.items() if k not in ("dataset", "source") and v != ""}
    return Preset(name, "", data_name(row["dataset"]), Config.of(model, **values), row["source"])


def find_preset(name: str, subject: str, dataset: str) -> Preset:
    """The preset for a reaction or a network on a data set, or the settings of a toml file.

    Args:
        name: "paper", "authors", "modern" or "published", or the path of a toml file.
        subject: The reaction, such as "BS", or the network, such as "gcn".
        dataset: The data set.

    Returns:
        The settings with their source.

    Raises:
        InvalidArgument: If there is no such preset for that subject and data set.
        UnknownName: For a name that is neither a preset nor a file.
        FileError: For a file that cannot be read.

    >>> import gread
    >>> gread.find_preset("authors", "BS", "cora").config.model.hidden
    64
    """
    if name in (*_FILES, PUBLISHED):
        chosen = f"{name}/{subject}/{data_name(dataset, name)}"
        if chosen not in _readers():
            count = sum(known.startswith(f"{name}/") for known in _readers())
            raise InvalidArgument(
                f"expected one of the {count} {name} presets, got {subject} on {dataset}; "
                "`rdgraph presets` lists them, and a toml file can be used instead"
            )
        return named_preset(chosen)
    path = Path(name)
    if path.suffix != ".toml" and not path.exists():
        raise UnknownName("preset", name, (*_FILES, PUBLISHED))
    from gread.settings.config import Config

    return Preset(str(path), subject, dataset, Config.load(path), f"file {path.name}")


@cache
def published_results() -> tuple[Published, ...]:
    """Accuracies of the paper's large table: 29 compared methods and seven reactions on nine data sets."""
    return tuple(read_records("published_results.csv", Published, lambda row: bool(row["mean"])))


@dataclass(frozen=True)
class AuthorsRun:
    """A run of the authors' code with its released settings: time per epoch and split, accuracy in percent."""

    dataset: str
    ms_per_epoch: float
    mean: float | None
    std: float | None
    source: str


@cache
def authors_runs() -> dict[str, AuthorsRun]:
    """Runs of the authors' code by data set.

    >>> authors_runs()["cora"].ms_per_epoch
    62.0
    """
    runs = read_records("authors_runs.csv", AuthorsRun, columns={"mean": "accuracy"})
    return {run.dataset: run for run in runs}


@dataclass(frozen=True)
class AuthorsCell:
    """A run of the authors' code for a cell other than BS, with one choice of the settings not stated in the paper.

    `beta` is free or sigmoid; `tanh` says whether it wraps the reaction; diverged trainings predict class 0.
    """

    reaction: str
    dataset: str
    beta: str
    row_features: bool
    tanh: bool
    splits: tuple[int, ...]
    mean: float
    std: float
    diverged: int
    source: str


@cache
def authors_cells() -> tuple[AuthorsCell, ...]:
    """Runs of the authors' code for reactions other than BS.

    >>> len(authors_cells()), authors_cells()[0].dataset, authors_cells()[0].splits
    (31, 'chameleon', (0, 1, 2, 3, 4))
    """
    cells = []
    for row in _rows("authors_cells.csv"):
        first, _, last = row["splits"].partition("-")
        cells.append(AuthorsCell(
            row["reaction"], _NAMES.get(row["dataset"], row["dataset"]), row["beta"], row["row_features"] == "true",
            row["tanh"] == "true", tuple(range(int(first), int(last) + 1)), float(row["mean"]), float(row["std"]),
            int(row["diverged"]), row["source"],
        ))  # fmt: skip
    return tuple(cells)


def find_published(method: str, dataset: str) -> Published | None:
    """The published accuracy of a method on a data set, None without one.

    >>> find_published("GREAD-BS", "cora").mean
    88.57
    """
    return next((p for p in published_results() if (p.method, p.dataset) == (method, dataset)), None)


R = TypeVar("R")


def read_records(
    name: str,
    kind: type[R],
    is_used: Callable[[Mapping[str, str]], bool] = lambda row: True,
    columns: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[R]:
    """The rows of a data file as records of a dataclass; empty cells of optional numbers are None.

    `columns` maps fields to columns of another name.

    >>> next(read_records("published_results.csv", Published)).mean > 0
    True
    """
    hints = get_type_hints(kind)

    def value(field: str, cell: str) -> object:
        if field == "dataset":
            return data_name(cell)
        types = get_args(hints[field]) or (hints[field],)
        return None if not cell and type(None) in types else types[0](cell)

    return (
        kind(**{field: value(field, row[columns.get(field, field)]) for field in hints})
        for row in _rows(name)
        if is_used(row)
    )


def _rows(name: str) -> list[dict[str, str]]:
    text = (files("gread") / "data" / name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
