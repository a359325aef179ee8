"""Allowed values of a study's settings: numbers in a range, known words, lists without repeated entries."""

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
    """Allowed values of a setting, or of every entry of a list.

    Args:
        least: the smallest number allowed.
        most: the largest number allowed.
        above: numbers must exceed this one.
        known: the words allowed; empty for any.
        what: what the words name, for errors.
        some: whether a list needs at least one entry.
        needed: entries that a list must contain.
    """

    least: float = -math.inf
    most: float = math.inf
    above: float = -math.inf
    known: Collection[str] = ()
    what: str = "word"
    some: bool = True
    needed: tuple[float, ...] = ()

    def check(self, name: str, value: Any) -> None:
        """Raise InvalidArgument for a value that is not allowed.

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
            raise InvalidArgument(f"{name} is empty; name at least one entry")
        for position, entry in enumerate(value):
            self._check_one(name, entry)
            if entry in value[:position]:
                raise InvalidArgument(f"{name} contains {entry!r} twice; remove one")
        for entry in self.needed:
            if entry not in value:
                raise InvalidArgument(
                    f"{name} must contain {entry:g}, which the study compares with, got {setting_text(value)}"
                )

    def _check_one(self, name: str, value: Any) -> None:
        if self.known and value not in self.known:
            raise UnknownName(f"{self.what} for {name}", str(value), self.known)
        if not isinstance(value, str) and not (
            math.isfinite(value) and self.least <= value <= self.most and value > self.above
        ):
            raise InvalidArgument(f"expected {self._range(name)}, got {value!r}")

    def _range(self, name: str) -> str:
        """The allowed numbers as an inequality."""
        if self.above > -math.inf:
            return f"{name} > {self.above:g}"
        if self.most < math.inf:
            return f"{self.least:g} <= {name} <= {self.most:g}"
        return f"{name} >= {self.least:g}" if self.least > -math.inf else f"a finite {name}"


#: From the mode (True: small) to the limits of a study's settings by name.
Limits = Callable[[bool], Mapping[str, Limit]]


def check_settings(settings: Mapping[str, Any], limits: Mapping[str, Limit]) -> None:
    """Raise InvalidArgument for the first setting that violates its limit."""
    for name, limit in limits.items():
        if name in settings:
            limit.check(name, settings[name])


# ---------------------------------------------------------------------- setting changes
# Settings that a user changes, given as NAME=VALUE and checked against the defaults of the study.

#: The entry of config.toml that lists the settings a user changed.
CHANGED = "changed"
#: Types of settings in words.
KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", list: "a list"}


def read_changes(texts: Sequence[str]) -> dict[str, Any]:
    """Settings by name, from NAME=VALUE with a TOML value; other values are read as text.

    >>> read_changes(["points=20", 'graphs=["ring:30"]', "start=none"])
    {'points': 20, 'graphs': ['ring:30'], 'start': 'none'}
    """
    changes: dict[str, Any] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not (sign and name.strip()):
            raise InvalidArgument(f"expected NAME=VALUE, got {text!r}; write --set points=20")
        try:
            changes[name.strip()] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            changes[name.strip()] = value.strip()
    return changes


def changed_settings(settings: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a study with some changed; a change must have the type of the default.

    >>> changed_settings({"points": 10, "time": 2.0}, {"time": 3})
    {'points': 10, 'time': 3.0}
    >>> changed_settings({"sets": ["karate"]}, {"sets": "cora,texas"})
    {'sets': ['cora', 'texas']}
    """
    changed = dict(settings)
    for name, value in changes.items():
        if name not in settings:
            raise UnknownName("setting", name, settings)
        changed[name] = _fitted(name, settings[name], value)
    return changed


def _fitted(name: str, default: Any, value: Any) -> Any:
    if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(default, list):
        entries = value if isinstance(value, list) else _entries(value)
        return [_fitted(name, default[0], entry) for entry in entries] if default else entries
    if type(default) is not type(value):
        kind = KINDS.get(type(default), type(default).__name__)
        raise InvalidArgument(f"{name} must be {kind}, such as {setting_text(default)}, got {setting_text(value)}")
    return value


def _entries(value: Any) -> list[Any]:
    """One value as a list, a text split at its commas."""
    parts = value.split(",") if isinstance(value, str) else [value]
    return [read_changes([f"entry={part}"])["entry"] if isinstance(part, str) else part for part in parts]


def setting_text(value: Any) -> str:
    """Text of a value that `read_changes` reads back.

    >>> setting_text(["ring:30", "grid:3:3"]), setting_text(0.5)
    ('["ring:30","grid:3:3"]', '0.5')
    """
    if isinstance(value, list | tuple):
        return f"[{','.join(map(setting_text, value))}]"
    return tomli_w.dumps({"value": value}).partition("=")[2].strip()
