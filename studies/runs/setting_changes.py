"""Settings of a study that a user changes: read from NAME=VALUE, and checked against the study's own."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

import tomli_w

from rdgraph.errors import InvalidArgument, UnknownName

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
