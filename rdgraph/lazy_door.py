"""`lazy_door`: public names of a package that are imported on first use."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def lazy_door(package: str) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """`__all__`, `__getattr__` and `__dir__` for the `__init__` of a package, from its imports for type checkers.

    The `__init__` lists every name once, as an import `from MODULE import NAME as NAME` below `if TYPE_CHECKING:`.

    Args:
        package: the name of the package.

    Returns:
        `__all__`, `__getattr__` and `__dir__`, for assignment in the `__init__`.

    >>> names, find, _ = lazy_door("rdgraph")
    >>> "parse" in names, find("parse").__name__
    (True, 'parse')
    """
    spec: Any = sys.modules[package].__spec__
    places = typed_imports(spec.loader.get_data(spec.origin))

    def find(name: str) -> object:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(places[name])
        value = vars(module)[name] if name in vars(module) else import_module(f"{places[name]}.{name}")
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *places})

    return sorted(places), find, names


def typed_imports(source: str | bytes) -> dict[str, str]:
    """The names that a module imports below `if TYPE_CHECKING:`, each with its module.

    >>> typed_imports("if TYPE_CHECKING:\\n    from rdgraph.systems.parser import parse as parse")
    {'parse': 'rdgraph.systems.parser'}
    """
    return {
        alias.name: str(node.module)
        for block in ast.parse(source).body
        if isinstance(block, ast.If) and isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING"
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
