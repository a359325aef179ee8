"""The catalogue: named systems with their sources, kept as data in `data/catalogue.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import resources

from rdgraph.errors import InvalidArgument, UnknownName, closest
from rdgraph.systems.equation_text import read_system
from rdgraph.systems.system import System

#: The form of a name; an equation has brackets, products or more than one word.
_WORD = re.compile(r"[A-Za-z][\w*+-]*")


@dataclass(frozen=True)
class CatalogueEntry:
    """One named system: its names, text and source; typical parameters with their source.

    >>> from rdgraph.systems.catalogue import catalogue
    >>> catalogue.entry("FHN").parameters
    {'a': 0.7, 'b': 0.8, 'c': 3, 'Du': 0.1}
    """

    name: str
    title: str
    equation: str
    source: str
    note: str = ""
    aliases: tuple[str, ...] = ()
    parameters: dict[str, float] = field(default_factory=dict, hash=False)
    parameters_source: str = ""

    def __post_init__(self) -> None:
        if bool(self.parameters) != bool(self.parameters_source):
            raise InvalidArgument(f"{self.name} needs both parameters and parameters_source, or neither")

    @cached_property
    def system(self) -> System:
        return replace(read_system(self.equation, {}, []), name=self.name)


class Catalogue(Mapping[str, System]):
    """Named systems, by name or alias, in upper or lower case.

    >>> from rdgraph.systems.catalogue import catalogue
    >>> print(catalogue["allen-cahn"])
    -alpha*L@H + beta*H*(1 - H**2)
    """

    @cached_property
    def entries(self) -> dict[str, CatalogueEntry]:
        """All entries by name, in the order of the file."""
        raw = tomllib.loads(resources.files("rdgraph").joinpath("data/catalogue.toml").read_text(encoding="utf-8"))
        entries = {}
        for item in raw["system"]:
            entry = CatalogueEntry(**{**item, "aliases": tuple(item.get("aliases", ()))})
            entries[entry.name] = entry
        return entries

    @cached_property
    def _index(self) -> dict[str, str]:
        index = {}
        for entry in self.entries.values():
            for name in (entry.name, *entry.aliases):
                index[name.casefold()] = entry.name
        return index

    @cached_property
    def single(self) -> dict[str, System]:
        """The systems of one autonomous equation of first order, by name."""
        return {name: entry.system for name, entry in self.entries.items() if entry.system.is_single}

    def entry(self, name: str) -> CatalogueEntry:
        """The entry of a name or alias."""
        key = self._index.get(name.strip().casefold())
        if key is None:
            raise UnknownName("catalogue name", name, self.entries)
        return self.entries[key]

    def near(self, text: str) -> str | None:
        """The name or alias closest to a word; None for text that is not a word, or close to none.

        >>> from rdgraph.systems.catalogue import catalogue
        >>> catalogue.near("gray-scot"), catalogue.near("-L@H")
        ('Gray-Scott', None)
        """
        if not _WORD.fullmatch(text.strip()):
            return None
        return closest(text.strip(), [name for e in self.entries.values() for name in (e.name, *e.aliases)])

    def __getitem__(self, name: str) -> System:
        return self.entry(name).system

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.strip().casefold() in self._index

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)


catalogue = Catalogue()
