"""What callers give as data sets and splits, read; anything else is refused with what was expected."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gread.datasets.node_data import NodeData
from rdgraph.errors import InvalidArgument
from rdgraph.graphs.edges import read_whole


def read_data(data: Any) -> NodeData:
    """One data set."""
    if not isinstance(data, NodeData):
        raise InvalidArgument(
            f"expected a data set, gread.NodeData, got {type(data).__name__}; load_dataset gives one by its name"
        )
    return data


def read_data_sets(data: Any) -> list[NodeData]:
    """One data set or several, as a list."""
    several = isinstance(data, Iterable) and not isinstance(data, str | bytes)
    return [read_data(one) for one in data] if several else [read_data(data)]


def read_splits(splits: Any, data: NodeData) -> tuple[int, ...]:
    """Numbers of splits, each once; None is all of them.

    >>> from gread.datasets.embedded import karate
    >>> read_splits([2, 0, 2], karate())
    (2, 0)
    """
    if splits is None:
        return tuple(range(data.num_splits))
    if not isinstance(splits, Iterable) or isinstance(splits, str | bytes):
        raise InvalidArgument(f"expected a list of splits of {data.meta.name}, got {splits!r:.60}")
    return tuple(dict.fromkeys(read_whole(k, 0, "a split") for k in splits))
