"""The inputs of a classifier, and `Sample`: the rows it learns from, divided into training and validation rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from gread.datasets.checks import read_features
from gread.datasets.meta import Meta
from gread.datasets.node_data import NodeData
from gread.datasets.splits import Masks, stream
from gread.models.problem import SMALL_CLASS
from rdgraph import Graph
from rdgraph.errors import InvalidArgument
from rdgraph.graphs.edges import as_array, read_nodes, whole_numbers
from rdgraph.wording import listed

# ---------------------------------------------------------------------- inputs
# Graphs of any library, rows, labels, weights, named columns.


def as_data_set(X: Any) -> NodeData | None:
    """X as a data set, also from PyTorch Geometric; None for features and node numbers.

    >>> from types import SimpleNamespace
    >>> as_data_set(SimpleNamespace(edge_index=[[0, 1], [1, 0]], num_nodes=2, x=[[1.0], [2.0]], y=[0, 1]))
    NodeData('data', num_nodes=2, num_edges=2, num_features=1, num_classes=2, num_splits=0)
    >>> as_data_set(np.eye(2)) is None
    True
    """
    if isinstance(X, NodeData):
        return X
    return NodeData.from_pyg(X) if hasattr(X, "edge_index") else None


def named_labels(data: NodeData) -> np.ndarray:
    """The labels (n,) of a data set by class name, None for unknown; numbers if classes have no names."""
    names = np.array([*data.meta.classes, None], dtype=object)
    return np.asarray(names[data.y]) if data.meta.classes else data.y


def read_graph(graph: Any, num_nodes: int) -> Graph:
    """A `Graph`, networkx graph, scipy adjacency, PyTorch Geometric data or edge_index (2, E), as a `Graph`.

    >>> read_graph([[0, 1], [1, 0]], 3)
    Graph(num_nodes=3, num_edges=2, directed=False)
    """
    if isinstance(graph, Graph):
        result = graph
    elif issparse(graph):
        result = Graph.from_scipy(graph)
    elif hasattr(graph, "is_directed") and hasattr(graph, "nodes"):
        result = Graph.from_networkx(graph)
    elif hasattr(graph, "edge_index"):
        result = Graph.from_pyg(graph)
    elif isinstance(graph, str):
        raise InvalidArgument(
            "expected a Graph, networkx graph, scipy adjacency, PyTorch Geometric data or edge_index, got "
            f"{graph!r:.60}; Graph.from_file reads a file"
        )
    else:
        result = Graph.from_edges(graph, num_nodes)
    if result.num_nodes != num_nodes:
        raise InvalidArgument(
            f"expected a graph of {num_nodes} nodes, one per row of the features, got {result.num_nodes}"
        )
    return result


def read_rows_of(
    X: Any, features: Any, graph: Any, constructor_graph: Any
) -> tuple[np.ndarray | csr_array, Graph, np.ndarray]:
    """Features and graph of all nodes, and the node of every row of X; with `features`, X are node numbers.

    The graph is given to `fit` or to the constructor, not to both.
    """
    if graph is not None and constructor_graph is not None:
        raise InvalidArgument("expected one graph, got two; pass it to the constructor or to fit")
    chosen = constructor_graph if graph is None else graph
    if chosen is None:
        raise InvalidArgument("expected a graph, got none; pass graph= to fit or to the constructor")
    x = read_features(X if features is None else features)
    if not x.shape[1]:
        raise InvalidArgument(
            f"expected features (n, f), f >= 1, got 0 feature(s) (shape={x.shape}) while a minimum of 1 is required"
            "; np.ones((n, 1)) uses only the graph"
        )
    rows = np.arange(x.shape[0]) if features is None else read_rows(X, x.shape[0])
    return x, read_graph(chosen, x.shape[0]), rows


def read_rows(nodes: Any, count: int) -> np.ndarray:
    """Node numbers (k,) from (k,) or (k, 1); they may repeat, as in a bootstrap."""
    given = as_array(nodes, "X")
    if given.ndim == 2 and given.shape[1] == 1:
        given = given[:, 0]
    if given.ndim != 1 or given.dtype.kind == "b":
        raise InvalidArgument(
            f"expected node numbers (k,) or (k, 1), since the features are an argument of the classifier, got "
            f"{given.dtype} {given.shape}"
        )
    read_nodes(np.unique(given), count)
    return whole_numbers(given, "X")


def read_sample_weight(values: Any, count: int) -> np.ndarray:
    """Sample weights (count,) >= 0, one per row; ones if None.

    >>> read_sample_weight([2, 0.5], 2)
    array([2. , 0.5])
    """
    if values is None:
        return np.ones(count)
    weights = as_array(values, "sample_weight")
    weights = np.full(count, weights) if weights.ndim == 0 else weights
    if weights.shape != (count,) or weights.dtype.kind not in "biuf":
        raise InvalidArgument(
            f"expected sample_weight ({count},), one number per row, got {weights.dtype} {weights.shape}"
        )
    weights = weights.astype(float)
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise InvalidArgument("expected a finite sample_weight >= 0; a weight of 0 excludes a row")
    if not weights.any():
        raise InvalidArgument("expected some sample_weight > 0, got only zeros")
    return weights


def feature_names(X: Any) -> np.ndarray | None:
    """The column names of a data frame if all of them are text, else None."""
    columns = getattr(X, "columns", None)
    if columns is None:
        return None
    names = list(columns)
    texts = [isinstance(name, str) for name in names]
    if any(texts) and not all(texts):
        odd = [repr(name) for name, is_text in zip(names, texts, strict=True) if not is_text]
        raise InvalidArgument(f"expected column names that are all text, or none of them, got both: {listed(odd)}")
    return np.array(names, dtype=object) if names and all(texts) else None


# ---------------------------------------------------------------------- labels
# Labels of any kind: the classes and the index of each row's class.


def read_labels(y: Any) -> tuple[np.ndarray, np.ndarray]:
    """The sorted classes, and the index of each row's class (n,), -1 for the labels -1, None, nan, NA and "".

    >>> read_labels(["red", None, "blue"])
    (array(['blue', 'red'], dtype='<U4'), array([ 1, -1,  0]))
    >>> read_labels([5.0, float("nan"), -1.0, 3.0])
    (array([3, 5]), array([ 1, -1, -1,  0]))
    """
    given = np.array(y, dtype=object) if isinstance(y, list | tuple) else as_array(y, "the labels")
    if given.ndim != 1 or not given.size:
        raise InvalidArgument(f"expected labels (n,), one per row, got shape {given.shape}")
    known = np.array([not _is_unknown(value) for value in given.tolist()])
    labels = np.array(given[known].tolist()) if given.dtype.kind == "O" else given[known]
    if given.dtype.kind == "O" and len({isinstance(value, str) for value in given[known].tolist()}) > 1:
        raise InvalidArgument("expected labels that are all numbers or all names, got both; write the numbers as text")
    codes = np.full(given.size, -1)
    classes, codes[known] = np.unique(_whole(labels, np.flatnonzero(known)), return_inverse=True)
    return classes, codes


def _is_unknown(value: Any) -> bool:
    """Whether a value means no label; nan differs from itself, and comparing pandas.NA is neither true nor false."""
    if isinstance(value, bool):
        return False
    is_itself = value == value
    if value is None or not isinstance(is_itself, bool | np.bool_) or not is_itself:
        return True
    return bool(value == "" or value == -1)


def check_alike(classes: np.ndarray, other: np.ndarray) -> None:
    """Raise if one set of labels has names and the other numbers, so that none can be equal."""
    words = ["names" if labels.dtype.kind == "U" else "numbers" for labels in (classes, other)]
    if other.size and words[0] != words[1]:
        raise InvalidArgument(
            f"expected {words[0]} as labels, as in fit, got {words[1]}: {other[:3].tolist()}; use the same kind"
        )


def _whole(labels: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Labels that can be compared; numbers as whole numbers from 0."""
    if labels.dtype.kind in "Ub" or not labels.size:
        return labels
    if labels.dtype.kind not in "iuf" or labels.ndim != 1:
        raise InvalidArgument(f"expected numbers or names as labels, got {labels.dtype}")
    wrong = (labels < 0) | (labels != np.trunc(labels))
    if wrong.any():
        k = int(wrong.argmax())
        raise InvalidArgument(
            f"expected whole labels from 0, or -1 for unknown, got continuous or negative ones, row {rows[k]}: "
            f"{labels[k]}; write names as text"
        )
    return labels.astype(np.int64)


# ---------------------------------------------------------------------- sample
@dataclass(frozen=True, eq=False)
class Sample:
    """Rows to learn from: their nodes, classes (codes, -1 for unknown) and weights, (k,) each, every node once.

    `index` (given rows,) is the row of each given row.
    """

    nodes: np.ndarray
    codes: np.ndarray
    weights: np.ndarray
    index: np.ndarray

    @classmethod
    def make(cls, nodes: np.ndarray, codes: np.ndarray, weights: np.ndarray) -> Sample:
        """Combine rows of the same node, in order of first appearance; their weights add up.

        A row of weight 0 counts as unlabelled.

        >>> Sample.make(np.array([7, 2, 7]), np.array([0, 1, 0]), np.ones(3)).weights
        array([2., 1.])
        """
        codes = np.where(weights > 0, codes, -1)
        _, first, inverse = np.unique(nodes, return_index=True, return_inverse=True)
        order = np.argsort(first)
        index = np.argsort(order)[inverse]
        highest = np.full(len(order), -1)
        np.maximum.at(highest, index, codes)
        if (other := np.flatnonzero((codes >= 0) & (codes != highest[index]))).size:
            raise InvalidArgument(
                f"expected one label per node, got two for node {nodes[other[0]]}; leave one of them out"
            )
        total = np.bincount(index, weights=weights * (codes >= 0), minlength=len(order))
        return cls(nodes[first[order]], highest, total, index)

    def merged(self, mask: Any, labelled: np.ndarray, name: str) -> np.ndarray | None:
        """A mask of the given rows as booleans of the combined ones, without those of weight 0; None for None."""
        if mask is None:
            return None
        chosen = np.zeros(len(self.nodes), dtype=bool)
        chosen[self.index[_read_mask(mask, labelled, name)]] = True
        return chosen & (self.codes >= 0)


@dataclass(frozen=True, eq=False)
class Parts:
    """Disjoint masks (rows,) of training rows, validation rows, and other labelled rows."""

    train: np.ndarray
    val: np.ndarray
    rest: np.ndarray


def read_parts(codes: np.ndarray, mask: Any, val_mask: Any, share: Any, seed: int, names: Sequence[Any]) -> Parts:
    """Training and validation rows: as given, else all labelled ones, of which a `share` is held out.

    Rows of a class without training and validation rows are excluded.
    """
    labelled = codes >= 0
    if not labelled.any():
        raise InvalidArgument("all labels are unknown (-1, None or nan); give at least one")
    val = None if val_mask is None else _read_mask(val_mask, labelled, "val_mask")
    remaining = labelled if val is None else labelled & ~val
    train = remaining if mask is None else _read_mask(mask, labelled, "mask")
    if val is None:
        val = _held_out(codes, train, share, seed)
        train = train & ~val
    if (both := np.flatnonzero(train & val)).size:
        raise InvalidArgument(f"expected mask and val_mask without common rows, got row {both[0]} in both")
    counts, trained = (np.bincount(codes[rows], minlength=len(names)) for rows in (train | val, train))
    if (missing := np.flatnonzero((trained == 0) & (counts >= SMALL_CLASS))).size:
        raise InvalidArgument(
            f"expected every class among the training rows, got none of class {names[missing[0]]!r}, which "
            f"{counts[missing[0]]} rows of val_mask have; add some to the mask, or mark their labels as unknown (-1 or "
            "None)"
        )
    is_known = np.isin(codes, codes[train | val])
    return Parts(train, val, labelled & is_known & ~train & ~val)


def _read_mask(mask: Any, labelled: np.ndarray, name: str) -> np.ndarray:
    """Booleans (n,) from booleans or row numbers; an error for a row without a label."""
    given = as_array(mask, name)
    rows = np.flatnonzero(given) if given.dtype.kind == "b" and given.shape == labelled.shape else given
    if not rows.size:
        raise InvalidArgument(f"expected rows in {name}, got none; leave it out for the default")
    chosen = np.zeros(labelled.size, dtype=bool)
    chosen[read_nodes(rows, labelled.size)] = True
    if (unknown := np.flatnonzero(chosen & ~labelled)).size:
        raise InvalidArgument(f"expected labels for all rows of {name}, got row {unknown[0]} without; leave it out")
    return chosen


def _held_out(codes: np.ndarray, train: np.ndarray, share: Any, seed: int) -> np.ndarray:
    """A random share of the training rows, class by class, keeping one training row per class; none for 0."""
    if not (isinstance(share, int | float | np.number) and 0 <= share < 1):
        raise InvalidArgument(f"expected 0 <= validation < 1, got {share!r}")
    if share == 0:
        return np.zeros_like(train)
    draw = stream(seed, "validation")
    shuffled = draw.permutation(np.flatnonzero(train))
    by_class = [shuffled[codes[shuffled] == k] for k in np.unique(codes[train])]
    available = np.array([len(rows) - 1 for rows in by_class])
    wanted = np.array([share * len(rows) for rows in by_class])
    counts = np.minimum(np.floor(wanted + 1e-9).astype(int), available)
    total = min(max(1, round(share * shuffled.size)), int(available.sum()))
    for k in np.argsort(counts - wanted, kind="stable"):
        counts[k] += int(counts.sum() < total and counts[k] < available[k])
    if not counts.sum():
        raise InvalidArgument(
            f"expected a class with two training rows, one of them for validation, got {shuffled.size} rows of "
            f"{len(by_class)} classes; label more, pass val_mask, or use validation=0 to keep the last epoch"
        )
    val = np.zeros_like(train)
    val[np.concatenate([rows[:count] for rows, count in zip(by_class, counts, strict=True)])] = True
    return val


def read_class_weight(given: Any, classes: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The class weights (k,) from `counts` training rows per class: "balanced", or numbers >= 0 by label.

    >>> read_class_weight("balanced", np.array(["a", "b"]), np.array([1, 3]))
    array([2.        , 0.66666667])
    >>> read_class_weight({"b": 5}, np.array(["a", "b"]), np.array([1, 3]))
    array([1., 5.])
    """
    if isinstance(given, str) and given == "balanced":
        return np.asarray(counts.sum() / (np.count_nonzero(counts) * np.maximum(counts, 1)))
    if not isinstance(given, Mapping):
        raise InvalidArgument(f"expected class_weight None, 'balanced' or weights by class, got {given!r:.60}")
    names = classes.tolist()
    if unknown := [name for name in given if name not in names]:
        known = listed([*map(str, names)])
        raise InvalidArgument(f"expected classes among {known} in class_weight, got {unknown[0]!r}")
    weights = np.array([given.get(name, 1) for name in names], dtype=float)
    if not (np.isfinite(weights).all() and (weights >= 0).all() and (weights * counts).any()):
        raise InvalidArgument("expected finite class weights >= 0, some of them > 0")
    return weights


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """The data of a fit: a data set with one split, the classes it separates (k,), and weights of the nodes (n,)."""

    data: NodeData
    classes: np.ndarray
    weights: np.ndarray

    @classmethod
    def read(
        cls, x: np.ndarray | csr_array, graph: Graph, rows: np.ndarray, y: Any, sample_weight: Any,
        masks: tuple[Any, Any], validation: Any, seed: int, class_weight: Any = None,
    ) -> TrainingSet:  # fmt: skip
        """The training set of labelled, weighted rows of nodes; `masks` are those of training and validation rows."""
        classes, codes = read_labels(y)
        if codes.size != rows.size:
            raise InvalidArgument(f"expected {rows.size} labels, one per row of X, got {codes.size}")
        sample = Sample.make(rows, codes, read_sample_weight(sample_weight, rows.size))
        chosen, validating = (
            sample.merged(mask, codes >= 0, name) for mask, name in zip(masks, ("mask", "val_mask"), strict=True)
        )
        parts = read_parts(sample.codes, chosen, validating, validation, seed, classes.tolist())
        return cls.make(x, graph, sample, parts, classes, class_weight)

    @classmethod
    def make(
        cls, x: np.ndarray | csr_array, graph: Graph, sample: Sample, parts: Parts, classes: np.ndarray,
        class_weight: Any = None,
    ) -> TrainingSet:  # fmt: skip
        """The training set of a sample on its nodes; the classes are those of training and validation rows."""
        used = np.unique(sample.codes[parts.train | parts.val])
        names = classes[used]
        if len(names) < 2:
            got = f"got only {names.tolist()}"
            if len(classes) > 1:
                raise InvalidArgument(
                    f"expected rows of two classes or more in mask and val_mask, {got}; add some of "
                    f"{', '.join(str(name) for name in classes.tolist() if name not in names)}"
                )
            raise InvalidArgument(f"expected labels of two classes or more, {got}")
        y, masks = np.full(graph.num_nodes, -1), np.zeros((3, graph.num_nodes), dtype=bool)
        numbers = np.searchsorted(used, sample.codes)
        y[sample.nodes] = np.where(parts.train | parts.val | parts.rest, numbers, -1)
        for mask, part in zip(masks, (parts.train, parts.val, parts.rest), strict=True):
            mask[sample.nodes] = part
        weights = np.zeros(graph.num_nodes)
        weights[sample.nodes] = sample.weights
        if class_weight is not None:
            counts = np.bincount(y[masks[0]], minlength=len(names))
            weights *= np.append(read_class_weight(class_weight, names, counts), 0)[y]
        meta = Meta("data", classes=tuple(map(str, names.tolist())))
        return cls(NodeData(graph, x, y, Masks(*masks), meta=meta), names, weights)
