"""The data sets by name: public ones with their files, embedded ones, and registered ones."""

from __future__ import annotations

import csv
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cache, partial
from importlib import import_module, resources
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from gread.datasets.meta import ACCURACY
from rdgraph.errors import InvalidArgument, UnknownName

if TYPE_CHECKING:
    from gread.datasets.node_data import NodeData
    from gread.datasets.raw import RawData

NUM_SPLITS = 10
#: The origin of the splits of a registered set: its data, or `stratified_splits`.
OWN, DRAWN = "own", "stratified"
EMBEDDED, REGISTERED = "embedded", "registered"
_NAME = re.compile(r"[a-z0-9][a-z0-9_.+]*")


@dataclass(frozen=True)
class RemoteFile:
    """One file of a data set, downloaded when it is needed and stored below repository/path.

    Args:
        repository: The folder of the local copy, and for the built-in sets the public repository of that name.
        path: The path in it.
        bytes: Its size, if known.
        sha256: The hash of its content; a file without one is trusted on first use.
        urls: Its addresses, in the order to try; those of the repository if empty.

    >>> import gread
    >>> gread.datasets.RemoteFile("my-data", "edges.txt", sha256="0" * 64, urls=("https://example.org/edges.txt",)).key
    'my-data/edges.txt'
    """

    repository: str
    path: str
    bytes: int | None = None
    sha256: str | None = None
    _: KW_ONLY
    urls: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The path below the root of a local copy: repository, then the path in it."""
        return f"{self.repository}/{self.path}"

    @property
    def addresses(self) -> tuple[str, ...]:
        """The addresses of the file, in the order to try."""
        return self.urls or tuple(base + self.path for base in _raw()["repositories"][self.repository]["addresses"])


@dataclass(frozen=True)
class Dataset:
    """One data set: its name, title and citation, its files with their reader or a loader, and its splits.

    A reader receives the paths of `files` and returns `RawData`; a loader needs no file and returns `NodeData`. The
    counts are those of the whole undirected graph without loops, None if unknown. `split` names the splits, `metric` is
    used to select and report networks; `library` contains the data of a set without files.
    """

    name: str
    title: str = ""
    reader: str | Callable[[Sequence[Path]], RawData] | None = None
    files: tuple[RemoteFile, ...] = ()
    split_files: tuple[RemoteFile, ...] = ()
    nodes: int | None = None
    edges: int | None = None
    features: int | None = None
    classes: int | None = None
    counts: str = ""
    split: str = "geom-gcn"
    notes: tuple[str, ...] = ()
    loader: Callable[[], NodeData] | None = None
    citation: str = ""
    origin: str = ""
    metric: str = ACCURACY
    library: str = ""

    def __post_init__(self) -> None:
        if (self.loader is None) == (self.reader is None):
            raise InvalidArgument(f"expected either a loader, or files with their reader, for {self.name!r}")

    @property
    def all_files(self) -> tuple[RemoteFile, ...]:
        """The files of the data, then those of the splits."""
        return self.files + self.split_files


#: The sets added by `register_dataset`, by name.
_registered: dict[str, Dataset] = {}


def register_dataset(
    name: str,
    *,
    title: str = "",
    citation: str = "",
    loader: Callable[[], NodeData] | None = None,
    files: Sequence[RemoteFile] = (),
    reader: Callable[[Sequence[Path]], RawData] | None = None,
    splits: str = OWN,
    notes: Sequence[str] = (),
) -> Dataset:
    """Register a data set by name, for `load_dataset` and the commands of the same process.

    Args:
        name: Lower-case letters, digits, "_", "." and "+"; "-" counts as "_", and upper case as lower case.
        title: A description in one line.
        citation: The work to cite, added to `Meta.sources`.
        loader: A function that returns the `NodeData`, called by every `load_dataset`. Or:
        files: The files to download and check, every `RemoteFile` with its sha256.
        reader: A function that returns `gread.datasets.raw.RawData` from the paths of the files, in their order.
        splits: "own" for those in the data, "stratified" for ten random ones.
        notes: Sentences for the user.

    Returns:
        The new record.

    Raises:
        InvalidArgument: For an invalid or existing name, for neither or both of loader and reader, or a file without
            sha256.

    >>> import gread
    >>> from gread.datasets.sources import unregister_dataset
    >>> _ = gread.register_dataset("club-of-1977", title="The club", loader=gread.karate, citation="Zachary 1977")
    >>> gread.load_dataset("club_of_1977")
    NodeData('club_of_1977', num_nodes=34, num_edges=156, num_features=34, num_classes=2, num_splits=10)
    >>> unregister_dataset("club_of_1977")
    """
    key = _plain(name)
    if not _NAME.fullmatch(key):
        raise InvalidArgument(f"expected a name of letters, digits, '_', '.' and '+', got {name!r}")
    if key in datasets() or key in _raw()["aliases"]:
        raise InvalidArgument(f"expected a name that is not taken, got {name!r}; choose another")
    if splits not in (OWN, DRAWN):
        raise UnknownName("kind of splits", str(splits), (OWN, DRAWN))
    if bool(files) != (reader is not None):
        raise InvalidArgument(f"expected both files and their reader, or neither, for {name!r}")
    for file in files:
        if file.sha256 is None or not file.urls:
            raise InvalidArgument(
                f"expected urls and a sha256 for {file.key}, got none; files are checked by their hash"
            )
    record = Dataset(
        key, title or key, reader, tuple(files), split=splits, notes=tuple(notes), loader=loader, citation=citation,
        origin=REGISTERED,
    )  # fmt: skip
    _registered[key] = record
    return record


def unregister_dataset(name: str) -> None:
    """Remove a registered set; built-in sets cannot be removed."""
    key = canonical(name)
    if key not in _registered:
        raise InvalidArgument(f"expected a registered set, got {name!r}, which is built in")
    del _registered[key]


def entry(name: str) -> Dataset:
    """The record of a set by its name or alias, ignoring case, with "-" equal to "_".

    >>> entry("Actor").name, entry("film").classes, entry("karate").origin
    ('film', 5, 'embedded')
    """
    return datasets()[canonical(name)]


def canonical(name: str) -> str:
    """The name of a set as in the catalogue.

    >>> canonical("Roman-Empire")
    'roman_empire'
    """
    plain = _plain(name)
    plain = _raw()["aliases"].get(plain, plain)
    if plain not in datasets():
        raise UnknownName("data set", str(name), datasets())
    return plain


def datasets() -> Mapping[str, Dataset]:
    """All sets by name: public ones in the order of the catalogue, embedded and registered ones.

    >>> list(datasets())[0], datasets()["karate"].title
    ('texas', 'Karate: members of a karate club, linked by friendship')
    """
    return MappingProxyType({**_built_in(), **_registered})


def entries() -> Mapping[str, Dataset]:
    """The sets with files, by name."""
    return MappingProxyType({name: record for name, record in datasets().items() if record.loader is None})


def embedded() -> Mapping[str, str]:
    """The titles of the sets without files, by name."""
    return MappingProxyType({name: record.title for name, record in datasets().items() if record.loader is not None})


@cache
def _built_in() -> Mapping[str, Dataset]:
    public = {name: _read_entry(name, raw) for name, raw in _raw()["sets"].items()}
    inner = {
        name: Dataset(name, loader=partial(_embedded, name), split=OWN, origin=EMBEDDED, **known)
        for name, known in _raw()["embedded"].items()
    }
    return MappingProxyType(public | inner)


def _embedded(name: str) -> NodeData:
    """Load a set without files; its module is imported only now, so that listing the sets does not need numpy."""
    data: NodeData = getattr(import_module("gread.datasets.embedded"), name)()
    return data


def _plain(name: Any) -> str:
    return str(name).strip().casefold().replace("-", "_")


@cache
def registry() -> Mapping[str, RemoteFile]:
    """All known files by their keys.

    >>> registry()["planetoid/data/ind.cora.graph"].bytes
    59847
    """
    text = resources.files("gread").joinpath("data/registry.csv").read_text(encoding="utf-8")
    files = (
        RemoteFile(row["repository"], row["path"], int(row["bytes"]) if row["bytes"] else None, row["sha256"] or None)
        for row in csv.DictReader(text.splitlines())
    )
    return MappingProxyType({file.key: file for file in files})


@cache
def _raw() -> dict[str, Any]:
    return tomllib.loads(resources.files("gread").joinpath("data/datasets.toml").read_text(encoding="utf-8"))


def _read_entry(name: str, raw: Mapping[str, Any]) -> Dataset:
    reader = _raw()["readers"][raw["reader"]]
    stem = raw["stem"]
    files = [f"{reader['repository']}/{path.format(stem=stem)}" for path in reader["files"]]
    splits = [
        f"{reader['splits_repository']}/{reader['splits'].format(stem=stem, k=k)}"
        for k in range(NUM_SPLITS if "splits" in reader else 0)
    ]
    return Dataset(
        name,
        files=tuple(registry()[key] for key in files),
        split_files=tuple(registry()[key] for key in splits),
        notes=tuple(raw.get("notes", ())),
        citation=_raw()["repositories"][reader["repository"]]["title"],
        origin=reader["repository"],
        **{key: value for key, value in raw.items() if key not in ("stem", "notes")},
    )
