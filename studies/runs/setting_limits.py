"""What the settings of a study may be: numbers in a range, words that are known, lists that name each entry once."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tomli_w

from rdgraph.errors import InvalidArgument, UnknownName


# ---------------------------------------------------------------------- setting limits
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


# ---------------------------------------------------------------------- setting changes
# Settings of a study that a user changes: read from NAME=VALUE, and checked against the study's own.

#: The entry of config.toml that lists the settings a user changed.
CHANGED = "changed"
#: The kinds of settings, in words.
KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", list: "a list"}


def read_changes(texts: Sequence[str]) -> dict[str, Any]:
    """Settings by name, from NAME=VALUE with a value in the notation of toml; anything else is a text.

    >>> read_changes(["points=20", 'graphs=["ring:30"]', "start=none"])
    {'points': 20, 'graphs': ['ring:30'], 'start': 'none'}
    """
    found = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not (sign and name.strip()):
            raise InvalidArgument(f"expected NAME=VALUE, got {text!r}; write --set points=20")
        try:
            found[name.strip()] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            found[name.strip()] = value.strip()
    return found


def changed_settings(settings: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a study with some changed; a change has the kind of what it replaces.

    >>> changed_settings({"points": 10, "time": 2.0}, {"time": 3})
    {'points': 10, 'time': 3.0}
    """
    found = dict(settings)
    for name, value in changes.items():
        if name not in settings:
            raise UnknownName("setting", name, settings)
        found[name] = _fitted(name, settings[name], value)
    return found


def _fitted(name: str, own: Any, value: Any) -> Any:
    if isinstance(own, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(own, list) and isinstance(value, list) and own:
        return [_fitted(name, own[0], entry) for entry in value]
    if type(own) is not type(value):
        raise InvalidArgument(
            f"expected {KINDS.get(type(own), type(own).__name__)} for {name}, such as {own!r}, got {value!r}"
        )
    return value


def setting_text(value: Any) -> str:
    """A value as `read_changes` reads it.

    >>> setting_text(["ring:30", "grid:3:3"]), setting_text(0.5)
    ('["ring:30","grid:3:3"]', '0.5')
    """
    if isinstance(value, list | tuple):
        return f"[{','.join(map(setting_text, value))}]"
    return tomli_w.dumps({"value": value}).partition("=")[2].strip()
