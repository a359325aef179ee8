"""What a user hands to a classifier, read: a graph of any library, labels of any kind, rows to train and choose by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse, vstack

from gread.datasets.nodes import Masks, Meta, NodeData
from gread.datasets.splits import stream
from gread.problem import SMALL_CLASS
from rdgraph import Graph
from rdgraph.errors import NotApplicable
from rdgraph.graphs.edges import as_array, read_nodes


def read_graph(graph: Any, num_nodes: int) -> Graph:
    """A `Graph`, networkx graph, scipy adjacency, PyTorch Geometric data or edge_index (2, E), as a `Graph`.

    >>> read_graph([[0, 1], [1, 0]], 3)
    Graph(num_nodes=3, num_edges=2, directed=False)
    """
    if isinstance(graph, Graph):
        made = graph
    elif issparse(graph):
        made = Graph.from_scipy(graph)
    elif hasattr(graph, "is_directed") and hasattr(graph, "nodes"):
        made = Graph.from_networkx(graph)
    elif hasattr(graph, "edge_index"):
        made = Graph.from_pyg(graph)
    else:
        made = Graph.from_edges(graph, num_nodes)
    if made.num_nodes != num_nodes:
        raise NotApplicable(
            f"expected a graph of {num_nodes} nodes, as many as the features have rows, got {made.num_nodes}"
        )
    return made


# ---------------------------------------------------------------------- labels
def read_labels(y: Any) -> tuple[np.ndarray, np.ndarray]:
    """The classes, sorted, and each row's place among them (n,), -1 where the label is -1, None, nan or "".

    >>> read_labels(["red", None, "blue"])
    (array(['blue', 'red'], dtype='<U4'), array([ 1, -1,  0]))
    >>> read_labels([5.0, float("nan"), -1.0, 3.0])
    (array([3, 5]), array([ 1, -1, -1,  0]))
    """
    given = np.array(y, dtype=object) if isinstance(y, list | tuple) else as_array(y, "the labels")
    if given.ndim != 1 or not given.size:
        raise NotApplicable(f"expected labels (n,), one per row, got shape {given.shape}")
    known = np.array([not _is_unknown(value) for value in given.tolist()])
    labels = np.array(given[known].tolist()) if given.dtype.kind == "O" else given[known]
    if given.dtype.kind == "O" and len({isinstance(value, str) for value in given[known].tolist()}) > 1:
        raise NotApplicable("expected labels that are all numbers or all names, got both; write the numbers as text")
    codes = np.full(given.size, -1)
    classes, codes[known] = np.unique(_whole(labels, np.flatnonzero(known)), return_inverse=True)
    return classes, codes


def _is_unknown(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    return value is None or value == "" or value == -1 or value != value


def _whole(labels: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Labels of a kind that can be compared; numbers as whole ones, from 0."""
    if labels.dtype.kind in "Ub" or not labels.size:
        return labels
    if labels.dtype.kind not in "iuf" or labels.ndim != 1:
        raise NotApplicable(f"expected numbers or names as labels, got {labels.dtype}")
    wrong = (labels < 0) | (labels != np.trunc(labels))
    if wrong.any():
        k = int(wrong.argmax())
        raise NotApplicable(
            f"expected whole labels from 0, or -1 for unknown, got row {rows[k]}: {labels[k]}; write names as text"
        )
    return labels.astype(np.int64)


# ---------------------------------------------------------------------- masks
@dataclass(frozen=True, eq=False)
class Parts:
    """Which rows train, choose the epoch, and are only looked at: bool (n,) each, without common rows."""

    train: np.ndarray
    val: np.ndarray
    rest: np.ndarray


def read_parts(codes: np.ndarray, mask: Any, val_mask: Any, share: Any, seed: int, names: Sequence[Any]) -> Parts:
    """Training and validation rows: as given, else all labelled ones, of which a `share` validates."""
    labelled = codes >= 0
    if not labelled.any():
        raise NotApplicable("expected some labels, got unknown ones (-1, None or nan) only")
    val = None if val_mask is None else _read_mask(val_mask, labelled, "val_mask")
    left = labelled if val is None else labelled & ~val
    train = left if mask is None else _read_mask(mask, labelled, "mask")
    if val is None:
        val = _set_aside(codes, train, share, seed)
        train = train & ~val
    if (both := np.flatnonzero(train & val)).size:
        raise NotApplicable(f"expected mask and val_mask without common rows, got row {both[0]} in both")
    counts, trained = (np.bincount(codes[rows], minlength=len(names)) for rows in (labelled, train))
    if (missing := np.flatnonzero((trained == 0) & (counts >= SMALL_CLASS))).size:
        raise NotApplicable(
            f"expected every class among the training rows, got none of class {names[missing[0]]!r}, which "
            f"{counts[missing[0]]} rows have; add some to the mask, or mark their labels as unknown (-1 or None)"
        )
    return Parts(train, val, labelled & ~train & ~val)


def _read_mask(mask: Any, labelled: np.ndarray, name: str) -> np.ndarray:
    """Booleans (n,) from booleans or row numbers; every row of it has a label."""
    given = as_array(mask, name)
    rows = np.flatnonzero(given) if given.dtype.kind == "b" and given.shape == labelled.shape else given
    if not rows.size:
        raise NotApplicable(f"expected rows in {name}, got none; leave it out for the default")
    chosen = np.zeros(labelled.size, dtype=bool)
    chosen[read_nodes(rows, labelled.size)] = True
    if (unknown := np.flatnonzero(chosen & ~labelled)).size:
        raise NotApplicable(f"expected labels for all rows of {name}, got row {unknown[0]} without; leave it out")
    return chosen


def _set_aside(codes: np.ndarray, train: np.ndarray, share: Any, seed: int) -> np.ndarray:
    """A share of the training rows, class by class, at random; every class keeps a row to train on."""
    if not (isinstance(share, int | float | np.number) and 0 < share < 1):
        raise NotApplicable(f"expected 0 < validation < 1, got {share!r}")
    draw = stream(seed, "validation")
    shuffled = draw.permutation(np.flatnonzero(train))
    by_class = [shuffled[codes[shuffled] == k] for k in np.unique(codes[train])]
    room = np.array([len(rows) - 1 for rows in by_class])
    wanted = np.array([share * len(rows) for rows in by_class])
    counts = np.minimum(np.floor(wanted + 1e-9).astype(int), room)
    total = min(max(1, round(share * shuffled.size)), int(room.sum()))
    for k in np.argsort(counts - wanted, kind="stable"):
        counts[k] += int(counts.sum() < total and counts[k] < room[k])
    if not counts.sum():
        raise NotApplicable(
            f"expected a class with two training rows, one of them to choose the epoch by, got {shuffled.size} rows "
            f"of {len(by_class)} classes; label more, or pass val_mask"
        )
    val = np.zeros_like(train)
    val[np.concatenate([rows[:count] for rows, count in zip(by_class, counts, strict=True)])] = True
    return val


# ---------------------------------------------------------------------- the data set of a fit
def read_rows(nodes: Any, count: int) -> np.ndarray:
    """Node numbers (k,) from (k,) or (k, 1)."""
    given = as_array(nodes, "X")
    if given.ndim == 2 and given.shape[1] == 1:
        given = given[:, 0]
    if given.ndim != 1 or given.dtype.kind == "b":
        raise NotApplicable(
            f"expected node numbers (k,) or (k, 1), since the features are an argument of the classifier, got "
            f"{given.dtype} {given.shape}"
        )
    return read_nodes(given, count)


def assemble(
    x: np.ndarray | csr_array, graph: Graph, classes: np.ndarray, codes: np.ndarray, parts: Parts, rows: np.ndarray
) -> NodeData:
    """Rows put on their nodes. Training asks for test nodes: where none is left over, a node without edges is added."""
    y, masks = np.full(graph.num_nodes, -1), np.zeros((3, graph.num_nodes), dtype=bool)
    y[rows] = codes
    for mask, part in zip(masks, (parts.train, parts.val, parts.rest), strict=True):
        mask[rows] = part
    if not parts.rest.any():
        graph = Graph(graph.edge_index, graph.weight, graph.num_nodes + 1)
        blank = np.zeros((1, x.shape[1]), dtype=x.dtype)
        x = csr_array(vstack([x, csr_array(blank)])) if issparse(x) else np.concatenate([x, blank])
        y, masks = np.append(y, 0), np.hstack([masks, [[False], [False], [True]]])
    return NodeData(graph, x, y, Masks(*masks), Meta("data", classes=tuple(map(str, classes.tolist()))))
