"""Every package with a door: the packages themselves, and the folders in them that offer names of their own."""

import importlib
import inspect
from collections.abc import Iterator
from functools import cache
from types import ModuleType

from tests.paths import ROOT

PACKAGES = ("rdgraph", "analysis", "gread", "studies")
DOORS = tuple(
    ".".join(path.parent.relative_to(ROOT).parts)
    for package in PACKAGES
    for path in sorted((ROOT / package).rglob("__init__.py"))
    if "lazy_door(__name__)" in path.read_text(encoding="utf-8")
)


def public_names(package: str) -> dict[str, object]:
    """What the doors of a package offer by name, without the doors behind them."""
    doors = [importlib.import_module(door) for door in DOORS if f"{door}.".startswith(f"{package}.")]
    named = {name: getattr(door, name) for door in doors for name in door.__all__}
    return {name: value for name, value in named.items() if not isinstance(value, ModuleType) and name != "__version__"}


def _members(value: object) -> Iterator[tuple[str, object]]:
    """A public value and, for a class, its public methods and properties, by the last part of the name."""
    yield "", value
    if inspect.isclass(value):
        for name, member in vars(value).items():
            if not name.startswith("_") and (callable(member) or isinstance(member, property | classmethod)):
                yield f".{name}", member


@cache
def public_examples() -> frozenset[str]:
    """Every public name whose docstring has an example, with its module."""
    return frozenset(
        f"{owner.__module__}.{owner.__qualname__}{suffix}"
        for package in PACKAGES
        for value in public_names(package).values()
        for owner in [value if inspect.isroutine(value) or inspect.isclass(value) else type(value)]
        for suffix, member in _members(owner)
        if ">>>" in (member.__doc__ or "")
    )
