"""Every package with a door: the packages themselves, and the folders in them that offer names of their own."""

import importlib
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
