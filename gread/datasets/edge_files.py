"""The graph of npy, npz and parquet files; edges are read block by block, so that they never lie beside the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gread.datasets.numpy_files import NPZ, Block, archive, edge_blocks, edge_count
from gread.datasets.parquet_table import LOOKED_UP, ParquetTable
from rdgraph import Graph
from rdgraph.errors import FileError, InvalidArgument
from rdgraph.graphs.edge_keys import EdgeKeys

PARQUET = ".parquet"
#: What helps where ends of edges are no rows.
ROWS = "write the row of a node in every cell, or give nodes an id"


@dataclass(frozen=True, eq=False)
class _EdgeFile:
    """So many edges, how their ends are read, and how their weights, None where there are none."""

    count: int
    blocks: Callable[[], Iterator[Block]]
    weights: Callable[[], np.ndarray] | None


def read_graph(path: Path, weight: str | None, ids: Any, nodes: int, directed: bool) -> Graph:
    """Edges once each, and both ways unless directed; a repeated edge must repeat its weight.

    `ids` is an arrow array of the names that ends of edges have, None where they are rows of so many nodes.
    """
    edges = _parquet_edges(path, weight, ids) if path.suffix.lower() == PARQUET else _numpy_edges(path, weight, ids)
    try:
        keys = EdgeKeys(edges.count, nodes, both_ways=not directed)
        for end, start, block in edges.blocks():
            keys.add(end, start, block)
        return Graph.from_keys(keys, edges.weights() if edges.weights else None, duplicates="once")
    except InvalidArgument as problem:
        remedy = ", or pass directed=True if direction matters" if "both directions" in str(problem) else ""
        raise FileError(f"{path}: {problem}{remedy}") from None


def _numpy_edges(path: Path, weight: str | None, ids: Any) -> _EdgeFile:
    if ids is not None:
        raise FileError(f"expected edges in a parquet file beside nodes with ids, got {path.name}; leave the ids out")
    count = edge_count(path)
    is_archive = path.suffix.lower() == NPZ
    found = archive(path, (), ("weight",)).get("weight") if is_archive and weight is not None else None
    return _EdgeFile(count, lambda: edge_blocks(path), None if found is None else lambda: found)


def _parquet_edges(path: Path, weight: str | None, ids: Any) -> _EdgeFile:
    table = ParquetTable(path, ["source", "target", *([weight] if weight not in (None, "weight") else [])])
    ends = _rows if ids is None else _looked_up
    has_weights = weight is not None and weight in table.names

    def blocks() -> Iterator[Block]:
        for end, name in enumerate(("source", "target")):
            start = 0
            for block in ends(table, name, ids):
                yield end, start, block
                start += len(block)

    return _EdgeFile(table.rows, blocks, (lambda: table.numbers(str(weight))) if has_weights else None)


def _rows(table: ParquetTable, name: str, ids: None) -> Iterator[np.ndarray]:
    """The rows of nodes that a column has, in blocks."""
    del ids
    for block in table.number_blocks(name, remedy=ROWS):
        if block.dtype.kind not in "iu":
            raise FileError(
                f"expected rows of nodes in column {name!r} of {table.path}, got {block.dtype}; give nodes an id"
            )
        yield block


def _looked_up(table: ParquetTable, name: str, ids: Any) -> Iterator[np.ndarray]:
    """The rows of the nodes whose ids a column has, in blocks."""
    import pyarrow as pa
    from pyarrow import compute

    done = 0
    for column in table.batches(name, LOOKED_UP):
        try:
            places = compute.index_in(column, value_set=ids)
        except pa.ArrowException as problem:
            raise FileError(
                f"expected ids like those of the nodes in column {name!r} of {table.path}, got {problem}"
            ) from None
        if places.null_count:
            row = int(compute.index(compute.is_null(places), True).as_py())
            raise FileError(
                f"{table.path}, row {done + row}, column {name!r}: expected the id of a node, got "
                f"{column[row].as_py()!r}; add the node to the other file or leave the edge out"
            )
        done += len(column)
        yield np.asarray(places.to_numpy())
