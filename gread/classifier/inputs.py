"""What a user hands to a classifier, read: a graph of any library, labels of any kind, rows to train and choose by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse, vstack

from gread.datasets.masks import Masks
from gread.datasets.meta import Meta
from gread.datasets.node_data import NodeData
from gread.datasets.splits import stream
from gread.models.problem import SMALL_CLASS
from rdgraph import Graph
from rdgraph.errors import NotApplicable
from rdgraph.graphs.edges import as_array, read_nodes, whole_numbers


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
    """The classes, sorted, and each row's place among them (n,), -1 where the label is -1, None, nan, NA or "".

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
    """What stands for no label; nan differs from itself, and pandas.NA will not say whether it does."""
    if isinstance(value, bool):
        return False
    is_itself = value == value
    if value is None or not isinstance(is_itself, bool | np.bool_) or not is_itself:
        return True
    return bool(value == "" or value == -1)


def check_alike(classes: np.ndarray, other: np.ndarray) -> None:
    """Raise where labels are names beside numbers, of which none is ever equal to another."""
    words = ["names" if labels.dtype.kind == "U" else "numbers" for labels in (classes, other)]
    if other.size and words[0] != words[1]:
        raise NotApplicable(
            f"expected {words[0]} as labels, as in fit, got {words[1]}: {other[:3].tolist()}; write them alike"
        )


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
            f"expected whole labels from 0, or -1 for unknown, got continuous or negative ones, row {rows[k]}: "
            f"{labels[k]}; write names as text"
        )
    return labels.astype(np.int64)


# ---------------------------------------------------------------------- masks
@dataclass(frozen=True, eq=False)
class Parts:
    """Which rows train, choose the epoch, and are only looked at: bool (rows,) each, without common rows."""

    train: np.ndarray
    val: np.ndarray
    rest: np.ndarray


def read_parts(codes: np.ndarray, mask: Any, val_mask: Any, share: Any, seed: int, names: Sequence[Any]) -> Parts:
    """Training and validation rows: as given, else all labelled ones, of which a `share` validates.

    Rows of a class that no training and no validation row has are left out.
    """
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
    counts, trained = (np.bincount(codes[rows], minlength=len(names)) for rows in (train | val, train))
    if (missing := np.flatnonzero((trained == 0) & (counts >= SMALL_CLASS))).size:
        raise NotApplicable(
            f"expected every class among the training rows, got none of class {names[missing[0]]!r}, which "
            f"{counts[missing[0]]} rows of val_mask have; add some to the mask, or mark their labels as unknown (-1 or "
            "None)"
        )
    is_known = np.isin(codes, codes[train | val])
    return Parts(train, val, labelled & is_known & ~train & ~val)


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


# ---------------------------------------------------------------------- rows, their weights and the names of columns
def read_rows(nodes: Any, count: int) -> np.ndarray:
    """Node numbers (k,) from (k,) or (k, 1); they may repeat, as those of a bootstrap do."""
    given = as_array(nodes, "X")
    if given.ndim == 2 and given.shape[1] == 1:
        given = given[:, 0]
    if given.ndim != 1 or given.dtype.kind == "b":
        raise NotApplicable(
            f"expected node numbers (k,) or (k, 1), since the features are an argument of the classifier, got "
            f"{given.dtype} {given.shape}"
        )
    read_nodes(np.unique(given), count)
    return whole_numbers(given, "X")


def read_sample_weight(values: Any, count: int) -> np.ndarray:
    """Weights >= 0 of so many rows, ones where none are given.

    >>> read_sample_weight([2, 0.5], 2)
    array([2. , 0.5])
    """
    if values is None:
        return np.ones(count)
    weights = as_array(values, "sample_weight")
    weights = np.full(count, weights) if weights.ndim == 0 else weights
    if weights.shape != (count,) or weights.dtype.kind not in "biuf":
        raise NotApplicable(
            f"expected sample_weight ({count},), one number per row, got {weights.dtype} {weights.shape}"
        )
    weights = weights.astype(float)
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise NotApplicable("expected a finite sample_weight >= 0, got others; a weight of 0 leaves a row out")
    if not weights.any():
        raise NotApplicable("expected a sample_weight > 0 somewhere, got weights that are all zero")
    return weights


def feature_names(X: Any) -> np.ndarray | None:
    """The names of the columns of a data frame, where all of them are text; else None."""
    columns = getattr(X, "columns", None)
    if columns is None:
        return None
    names = list(columns)
    texts = [isinstance(name, str) for name in names]
    if any(texts) and not all(texts):
        raise NotApplicable(f"expected column names that are all text, or none of them, got both: {names[:6]}")
    return np.array(names, dtype=object) if names and all(texts) else None


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows to learn from: their nodes, classes (codes, -1 for unknown) and weights, (k,) each, every node once.

    `place` (rows as given,) says which of them a given row has become.
    """

    nodes: np.ndarray
    codes: np.ndarray
    weights: np.ndarray
    place: np.ndarray

    @classmethod
    def make(cls, nodes: np.ndarray, codes: np.ndarray, weights: np.ndarray) -> Sample:
        """Put rows of the same node together, in the order in which the nodes come; their weights add up.

        A row of weight 0 is one without a label.

        >>> Sample.make(np.array([7, 2, 7]), np.array([0, 1, 0]), np.ones(3)).weights
        array([2., 1.])
        """
        codes = np.where(weights > 0, codes, -1)
        _, first, inverse = np.unique(nodes, return_index=True, return_inverse=True)
        order = np.argsort(first)
        place = np.argsort(order)[inverse]
        highest = np.full(len(order), -1)
        np.maximum.at(highest, place, codes)
        if (other := np.flatnonzero((codes >= 0) & (codes != highest[place]))).size:
            raise NotApplicable(
                f"expected one label per node, got two for node {nodes[other[0]]}; leave one of them out"
            )
        total = np.bincount(place, weights=weights * (codes >= 0), minlength=len(order))
        return cls(nodes[first[order]], highest, total, place)

    def merged(self, mask: Any, labelled: np.ndarray, name: str) -> np.ndarray | None:
        """A mask of the given rows as booleans of these, without those of weight 0; None stays None."""
        if mask is None:
            return None
        chosen = np.zeros(len(self.nodes), dtype=bool)
        chosen[self.place[_read_mask(mask, labelled, name)]] = True
        return chosen & (self.codes >= 0)


# ---------------------------------------------------------------------- the data set of a fit
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
