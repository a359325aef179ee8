"""`rd.plot`: pictures for notebooks by name, drawn by the installed packages that offer them.

A package offers a picture by an entry point of the group `rdgraph.plot`: its name, and the function that draws it and
returns matplotlib's object. Those that come with rdgraph are response, phase, energy, state and animate.

    import rdgraph as rd
    rd.plot.response("BS")
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from rdgraph.errors import MissingDependency, closest

GROUP = "rdgraph.plot"


@cache
def offered() -> dict[str, EntryPoint]:
    """The pictures of the installed packages by name; of two with one name the first.

    >>> import rdgraph as rd
    >>> {point.group for point in rd.plot.offered().values()}
    {'rdgraph.plot'}
    """
    points: dict[str, EntryPoint] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda p: p.name):
        points.setdefault(point.name, point)
    return points


def __getattr__(name: str) -> Callable[..., Any]:
    points = offered()
    if name not in points:
        near = closest(name, points)
        hint = f"did you mean {near}?" if near else "install the package that offers it"
        known = f"known: {', '.join(points) or 'none'}"
        raise AttributeError(f"expected a picture of {__name__}, got {name!r}; {hint} ({known})")
    try:
        drawn: Callable[..., Any] = points[name].load()
    except (ImportError, AttributeError) as problem:
        raise MissingDependency(f"expected the picture {name} at {points[name].value}, got: {problem}") from problem
    return drawn


def __dir__() -> list[str]:
    return sorted({*globals(), *offered()})
