"""`Records`: what is built in and what somebody registered, by name; every kind of record is kept in one of these."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Protocol, TypeVar

from rdgraph.errors import InvalidArgument, UnknownName


class Named(Protocol):
    """Anything that says what it is called."""

    @property
    def name(self) -> str: ...


R = TypeVar("R", bound=Named)


class Records(Mapping[str, R]):
    """Records of one kind by name, the built-in ones first; those are made when they are first asked for, and stay.

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
        """The registered records by name; the built-in ones are not made for this."""
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
        """The record of that name; an unknown one gets the closest of `known`, or of all names, offered."""
        if name not in self:
            raise UnknownName(self.kind, str(name), [*(known or self), *self._reserved])
        return self[name]

    def check_free(self, name: object) -> None:
        """Refuse what is not a name, or is taken."""
        if not isinstance(name, str) or not self._pattern.fullmatch(name):
            raise InvalidArgument(
                f"expected a name of letters, digits, - or _ for a {self.kind}, got {name!r}; as in 'my-{self.kind}'"
            )
        if name in self or name in self._reserved:
            raise InvalidArgument(
                f"expected a name that is free, got {name!r}, which is a {self.kind} already; choose another"
            )

    def add(self, record: R) -> R:
        """Take up a record under a name that is free."""
        self.check_free(record.name)
        self._added[record.name] = record
        return record

    def remove(self, name: str) -> None:
        """Take a registered record out again; those that are built in stay."""
        if name not in self._added:
            raise UnknownName(f"registered {self.kind}", name, self._added)
        del self._added[name]
