"""`Records`: built-in and registered records of one kind by name, and `Names`, those with some property."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Generic, Protocol, TypeVar

from rdgraph.errors import InvalidArgument, UnknownName


class Named(Protocol):
    """Anything with a name."""

    @property
    def name(self) -> str: ...


R = TypeVar("R", bound=Named)


class Records(Mapping[str, R]):
    """Records of one kind by name, the built-in ones first; these are made on first use and cannot be removed.

    >>> from types import SimpleNamespace as Colour
    >>> colours = Records("colour", lambda: [Colour(name="red")])
    >>> _ = colours.add(Colour(name="dark-red"))
    >>> list(colours), colours.find("dark-red").name
    (['red', 'dark-red'], 'dark-red')
    >>> colours.remove("dark-red")
    >>> colours.find("rad")
    Traceback (most recent call last):
    ...
    rdgraph.errors.UnknownName: expected a colour, got 'rad'; did you mean 'red'? (known: red)
    """

    def __init__(
        self,
        kind: str,
        built_in: Callable[[], Iterable[R]],
        *,
        pattern: str = r"[A-Za-z][A-Za-z0-9_-]{0,39}",
        reserved: tuple[str, ...] = (),
    ) -> None:
        self.kind = kind
        self._make, self._pattern, self._reserved = built_in, re.compile(pattern), reserved
        self._first: dict[str, R] | None = None
        self._added: dict[str, R] = {}

    @property
    def added(self) -> Mapping[str, R]:
        """The registered records by name, without the built-in ones."""
        return MappingProxyType(self._added)

    @property
    def _built_in(self) -> dict[str, R]:
        if self._first is None:
            self._first = {record.name: record for record in self._make()}
        return self._first

    def __getitem__(self, name: str) -> R:
        return self._added[name] if name in self._added else self._built_in[name]

    def __iter__(self) -> Iterator[str]:
        yield from self._built_in
        yield from self._added

    def __len__(self) -> int:
        return len(self._built_in) + len(self._added)

    def find(self, name: str, known: Iterable[str] = ()) -> R:
        """The record of that name; the error for an unknown name offers the closest of `known`, or of all names."""
        if name not in self:
            raise UnknownName(self.kind, str(name), [*(known or self), *self._reserved])
        return self[name]

    def check_free(self, name: object) -> None:
        """Raise where a name is malformed or taken."""
        if not isinstance(name, str) or not self._pattern.fullmatch(name):
            raise InvalidArgument(
                f"{name!r} is not a name for a {self.kind}: use letters, digits, - and _, as in 'my-{self.kind}'"
            )
        if name in self or name in self._reserved:
            raise InvalidArgument(f"the name {name!r} is taken by another {self.kind}; choose a free name")

    def add(self, record: R) -> R:
        """Register a record under its name, which must be free."""
        self.check_free(record.name)
        self._added[record.name] = record
        return record

    def remove(self, name: str) -> None:
        """Remove a registered record; built-in ones cannot be removed."""
        if name not in self._added:
            raise UnknownName(f"registered {self.kind}", name, self._added)
        del self._added[name]

    def names(self, has_property: Callable[[R], bool]) -> Names[R]:
        """The names of the records with a property, as they are registered at the time of use."""
        return Names(self, has_property)


class Names(Collection[str], Generic[R]):
    """The names of the records with some property, as they are registered at the time of use.

    >>> from types import SimpleNamespace as Colour
    >>> colours = Records("colour", lambda: [Colour(name="red", is_warm=True), Colour(name="blue", is_warm=False)])
    >>> warm = colours.names(lambda colour: colour.is_warm)
    >>> _ = colours.add(Colour(name="orange", is_warm=True))
    >>> list(warm), "blue" in warm
    (['red', 'orange'], False)
    """

    def __init__(self, records: Records[R], has_property: Callable[[R], bool]) -> None:
        self._records, self._has_property = records, has_property

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._records and self._has_property(self._records[name])

    def __iter__(self) -> Iterator[str]:
        return (name for name, record in self._records.items() if self._has_property(record))

    def __len__(self) -> int:
        return sum(1 for _ in self)
