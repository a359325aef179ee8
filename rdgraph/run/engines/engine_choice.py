"""Engines by name, for the length of a block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rdgraph.errors import InvalidArgument, UnknownName
from rdgraph.run.engines.engine import Engine, LocalEngine
from rdgraph.run.engines.ray_engine import RayEngine

ENGINES = ("local", "ray")


def make_engine(name: str, address: str | None = None, **options: Any) -> Engine:
    """An engine by name; `address` is that of a cluster, and without one Ray starts on this machine.

    >>> make_engine("local").name
    'local'
    """
    if name not in ENGINES:
        raise UnknownName("name of an engine", name, ENGINES)
    if name == "ray":
        return RayEngine(address, **options)
    if address is not None:
        raise InvalidArgument(
            f"expected an address with the engine ray, got {address!r} with {name}; pass engine='ray'"
        )
    return LocalEngine()


@contextmanager
def opened(engine: str | Engine, address: str | None = None) -> Iterator[Engine]:
    """An engine for the length of a block: one by name is closed at its end, another stays the caller's."""
    if not isinstance(engine, str):
        if not callable(getattr(engine, "run", None)):
            raise InvalidArgument(f"expected an engine, or a name among {', '.join(ENGINES)}, got {engine!r:.60}")
        yield engine
        return
    opened_engine = make_engine(engine, address)
    try:
        yield opened_engine
    finally:
        opened_engine.close()
