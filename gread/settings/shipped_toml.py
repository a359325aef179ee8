"""Descriptions in toml: a shipped one by name, or a user's file."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TypeVar

from rdgraph.errors import FileError, UnknownName
from rdgraph.files import read_text

T = TypeVar("T")


def read_toml(name: str | Path, read: Callable[[str, str], T], folder: str, shipped: Sequence[str], what: str) -> T:
    """The result of `read`, called with a toml text and its name.

    Args:
        name: One of the shipped names, or the path of a toml file.
        read: Returns the description.
        folder: The folder of the shipped ones in the data of the package.
        shipped: Their names.
        what: The kind of description, for errors.

    Raises:
        UnknownName: For a name that is neither shipped nor a file.
        FileError: For a file that cannot be read, or is not toml.

    >>> read_toml("small", lambda text, name: (name, "[" in text), "spaces", ("small",), "space")
    ('small', True)
    """
    if str(name) in shipped:
        return read((files("gread") / "data" / folder / f"{name}.toml").read_text(encoding="utf-8"), str(name))
    path = Path(name)
    if path.suffix != ".toml" and not path.exists():
        raise UnknownName(what, str(name), shipped)
    try:
        return read(read_text(path, f"a {what}"), path.name)
    except tomllib.TOMLDecodeError as problem:
        raise FileError(f"expected a {what} as toml in {path}, got a text that is not: {problem}; correct it") from None
