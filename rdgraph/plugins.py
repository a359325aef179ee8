"""Plugins: user modules that the command line imports at start, to register functions and the like.

They are named by the entry points of the group `rdgraph.plugins` of installed packages, and by the variable
RDGRAPH_PLUGINS, which holds names of modules with colons between them. Equations never import anything.
"""

from __future__ import annotations

import os
from importlib import import_module
from importlib.metadata import entry_points

from rdgraph.errors import InvalidArgument, MissingDependency

GROUP = "rdgraph.plugins"
VARIABLE = "RDGRAPH_PLUGINS"


def load_plugins() -> tuple[str, ...]:
    """Import every plugin; an entry point that is a function is called.

    Returns:
        The names of the plugins, in the order in which they were loaded.

    Raises:
        MissingDependency: a plugin cannot be imported.
        InvalidArgument: a name is not that of a module.

    >>> all(isinstance(name, str) for name in load_plugins())
    True
    """
    loaded = []
    for point in sorted(entry_points(group=GROUP), key=lambda p: p.name):
        try:
            plugin = point.load()
        except (ImportError, AttributeError) as problem:
            raise MissingDependency(f"cannot import the plugin {point.name} from {point.value}: {problem}") from problem
        if callable(plugin):
            plugin()
        loaded.append(point.name)
    for name in filter(None, os.environ.get(VARIABLE, "").split(":")):
        if not all(part.isidentifier() for part in name.split(".")):
            raise InvalidArgument(f"expected names of modules in {VARIABLE}, got {name!r}; write it as package.module")
        try:
            import_module(name)
        except ImportError as problem:
            raise MissingDependency(
                f"cannot import the plugin {name} of {VARIABLE}: {problem}; check PYTHONPATH"
            ) from problem
        loaded.append(name)
    return tuple(loaded)
