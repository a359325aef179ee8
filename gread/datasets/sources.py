"""The catalogue of public data sets and the registry of their files: both are data, read once."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any

from rdgraph.errors import UnknownName

NUM_SPLITS = 10


@dataclass(frozen=True)
class RemoteFile:
    """One file of a public repository; without sha256 nothing is known of its content before it is seen."""

    repository: str
    path: str
    bytes: int | None = None
    sha256: str | None = None

    @property
    def key(self) -> str:
        """The path below the root of a local copy: repository, then the path in it."""
        return f"{self.repository}/{self.path}"

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where the file can be fetched, in the order to try."""
        return tuple(base + self.path for base in _raw()["repositories"][self.repository]["addresses"])


@dataclass(frozen=True)
class Entry:
    """One public data set: its files, its reader, and the counts of the whole graph without loops and directions."""

    name: str
    title: str
    reader: str
    files: tuple[RemoteFile, ...]
    split_files: tuple[RemoteFile, ...]
    nodes: int
    edges: int
    features: int
    classes: int
    counts: str
    split: str = "geom-gcn"
    notes: tuple[str, ...] = ()

    @property
    def all_files(self) -> tuple[RemoteFile, ...]:
        return self.files + self.split_files


def entry(name: str) -> Entry:
    """The entry of a public set by its name or alias; case does not matter, nor "-" for "_".

    >>> entry("Actor").name, entry("film").classes
    ('film', 5)
    """
    return entries()[canonical(name)]


def canonical(name: str) -> str:
    """The name of a public or embedded set as the catalogue writes it.

    >>> canonical("Roman-Empire")
    'roman_empire'
    """
    plain = str(name).strip().casefold().replace("-", "_")
    plain = _raw()["aliases"].get(plain, plain)
    if plain not in entries() and plain not in embedded():
        raise UnknownName("data set", str(name), (*entries(), *embedded()))
    return plain


@cache
def entries() -> Mapping[str, Entry]:
    """The public sets by name, in the order of the catalogue."""
    return MappingProxyType({name: _read_entry(name, raw) for name, raw in _raw()["sets"].items()})


def embedded() -> Mapping[str, str]:
    """The sets that need no file: name and title."""
    return MappingProxyType(_raw()["embedded"])


@cache
def registry() -> Mapping[str, RemoteFile]:
    """Every known file by its key.

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


def _read_entry(name: str, raw: Mapping[str, Any]) -> Entry:
    reader = _raw()["readers"][raw["reader"]]
    stem = raw["stem"]
    files = [f"{reader['repository']}/{path.format(stem=stem)}" for path in reader["files"]]
    splits = [
        f"{reader['splits_repository']}/{reader['splits'].format(stem=stem, k=k)}"
        for k in range(NUM_SPLITS if "splits" in reader else 0)
    ]
    return Entry(
        name=name,
        title=raw["title"],
        reader=raw["reader"],
        files=tuple(registry()[key] for key in files),
        split_files=tuple(registry()[key] for key in splits),
        nodes=raw["nodes"],
        edges=raw["edges"],
        features=raw["features"],
        classes=raw["classes"],
        counts=raw["counts"],
        split=raw.get("split", "geom-gcn"),
        notes=tuple(raw.get("notes", ())),
    )
