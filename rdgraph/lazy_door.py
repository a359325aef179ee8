"""The door of a package: names that are loaded when they are first asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_door(package: str, places: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` for the `__init__` of a package.

    Args:
        package: its name.
        places: the module that every name comes from; a name that is the last part of its module is that module.

    Returns:
        The two functions, as Python looks for them in a module.

    >>> find, _ = lazy_door("rdgraph", {"parse": "rdgraph.systems.parser"})
    >>> find("parse").__name__
    'parse'
    """

    def find(name: str) -> object:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(places[name])
        value = module if places[name].endswith(f".{name}") and not hasattr(module, name) else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *places})

    return find, names
