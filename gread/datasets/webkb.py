"""The text files of geom-gcn: Texas, Wisconsin and the old Cornell."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gread.datasets.raw import RawData, compact
from rdgraph.errors import FileError


def read_webkb(paths: Sequence[Path]) -> RawData:
    """Hyperlinks page -> page with loops, which words occur (0 or 1), classes; no masks."""
    edge_path, node_path = paths
    nodes = [line.split("\t") for line in _lines(node_path, "node_id\tfeature\tlabel")]
    if any(len(row) != 3 for row in nodes):
        raise FileError(f"expected node, features and label in every line of {node_path.name}; fetch the file again")
    order = np.array([row[0] for row in nodes], dtype=np.int64)
    if not np.array_equal(np.sort(order), np.arange(order.size)):
        raise FileError(f"expected every node 0..{order.size - 1} once in {node_path.name}; fetch the file again")
    x = np.empty((order.size, nodes[0][1].count(",") + 1), dtype=np.float32)
    y = np.empty(order.size, dtype=np.int64)
    for node, words, label in nodes:
        x[int(node)] = np.array(words.split(","), dtype=np.float32)
        y[int(node)] = int(label)
    pairs = [line.split("\t") for line in _lines(edge_path, "node_id\tnode_id")]
    return RawData(np.ascontiguousarray(np.array(pairs, dtype=np.int64).reshape(-1, 2).T), compact(x), y)


def _lines(path: Path, heading: str) -> list[str]:
    """The lines below the heading."""
    first, *rest = path.read_text(encoding="ascii").splitlines()
    if first != heading:
        raise FileError(f"expected the heading {heading!r} in {path.name}, got {first[:40]!r}; fetch the file again")
    return rest
