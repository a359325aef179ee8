"""The catalogue: named systems with their sources, kept as data in `data/catalogue.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import resources

from rdgraph.errors import UnknownName
from rdgraph.systems.equation_text import read_system
from rdgraph.systems.system import System


@dataclass(frozen=True)
class CatalogueEntry:
    """One catalogued equation: its names, text, and where it comes from."""

    name: str
    title: str
    equation: str
    source: str
    note: str = ""
    aliases: tuple[str, ...] = ()

    @cached_property
    def system(self) -> System:
        return replace(read_system(self.equation, {}, []), name=self.name)


class Catalogue(Mapping[str, System]):
    """Named systems; names and aliases are looked up without regard to case.

    >>> from rdgraph.systems.catalogue import catalogue
    >>> print(catalogue["allen-cahn"])
    -alpha*L@H + beta*H*(1 - H**2)
    """

    @cached_property
    def entries(self) -> dict[str, CatalogueEntry]:
        """All entries by name, in the order of the file."""
        raw = tomllib.loads(resources.files("rdgraph").joinpath("data/catalogue.toml").read_text(encoding="utf-8"))
        found = {}
        for item in raw["system"]:
            entry = CatalogueEntry(**{**item, "aliases": tuple(item.get("aliases", ()))})
            found[entry.name] = entry
        return found

    @cached_property
    def _index(self) -> dict[str, str]:
        index = {}
        for entry in self.entries.values():
            for name in (entry.name, *entry.aliases):
                index[name.casefold()] = entry.name
        return index

    def entry(self, name: str) -> CatalogueEntry:
        """The entry behind a name or alias."""
        key = self._index.get(name.strip().casefold())
        if key is None:
            raise UnknownName("catalogue name", name, self.entries)
        return self.entries[key]

    def __getitem__(self, name: str) -> System:
        return self.entry(name).system

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.strip().casefold() in self._index

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)


catalogue = Catalogue()
