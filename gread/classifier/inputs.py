"""The inputs of a classifier: graphs of any library, rows, labels, weights, named columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from gread.datasets.checks import read_features
from gread.datasets.node_data import NodeData
from rdgraph import Graph
from rdgraph.errors import InvalidArgument
from rdgraph.graphs.edges import as_array, read_nodes, whole_numbers
from rdgraph.wording import listed


# ---------------------------------------------------------------------- inputs
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
