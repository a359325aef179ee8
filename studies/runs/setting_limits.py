"""What the settings of a study may be: numbers in a range, words that are known, lists that name each entry once."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from rdgraph.errors import InvalidArgument, UnknownName


@dataclass(frozen=True)
class Limit:
    """What a setting may be, or every entry of one that is a list.

    Args:
        least: the least number, none where any will do.
        most: the largest one.
        above: a number that it has to exceed.
        known: the words, none where any will do.
        what: what the words are.
        some: whether a list needs an entry.
        needed: entries that a list has to have.
    """

    least: float = -math.inf
    most: float = math.inf
    above: float = -math.inf
    known: Collection[str] = ()
    what: str = "word"
    some: bool = True
    needed: tuple[float, ...] = ()

    def check(self, name: str, value: Any) -> None:
        """Refuse a value beyond the limit.

        >>> Limit(least=1).check("splits", 10)
        >>> Limit(least=1).check("splits", 0)
        Traceback (most recent call last):
        ...
        rdgraph.errors.InvalidArgument: expected splits >= 1, got 0
        """
        if not isinstance(value, list | tuple):
            self._check_one(name, value)
            return
        if self.some and not value:
            raise InvalidArgument(f"expected at least one entry in {name}, got none; leave it as it is, or name one")
        for place, entry in enumerate(value):
            self._check_one(name, entry)
            if entry in value[:place]:
                raise InvalidArgument(f"expected every entry of {name} once, got {entry!r} twice")
        for entry in self.needed:
            if entry not in value:
                raise InvalidArgument(f"expected {entry:g} among {name}, got {list(value)}; the study compares with it")

    def _check_one(self, name: str, value: Any) -> None:
        if self.known and value not in self.known:
            raise UnknownName(f"{self.what} for {name}", str(value), self.known)
        if not isinstance(value, str) and not (
            math.isfinite(value) and self.least <= value <= self.most and value > self.above
        ):
            raise InvalidArgument(f"expected {self._range(name)}, got {value!r}")

    def _range(self, name: str) -> str:
        """The numbers that are allowed, in signs."""
        if self.above > -math.inf:
            return f"{name} > {self.above:g}"
        if self.most < math.inf:
            return f"{self.least:g} <= {name} <= {self.most:g}"
        return f"{name} >= {self.least:g}" if self.least > -math.inf else f"a finite {name}"


#: The limits of a study's settings by name, in its small mode (True) or its full one (False).
Limits = Callable[[bool], Mapping[str, Limit]]


def no_limits(small: bool) -> dict[str, Limit]:
    """The limits of a study that has none."""
    return {}


def check_settings(settings: Mapping[str, Any], limits: Mapping[str, Limit]) -> None:
    """Refuse the first setting beyond its limit; settings without one may be anything."""
    for name, limit in limits.items():
        if name in settings:
            limit.check(name, settings[name])
