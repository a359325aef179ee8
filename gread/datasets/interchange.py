"""The pieces of a data set from what other libraries hold: PyTorch Geometric, networkx, scipy."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array, eye_array

from gread.datasets.masks import PARTS, Masks
from gread.datasets.meta import Meta
from rdgraph import Graph
from rdgraph.errors import InvalidArgument
from rdgraph.graphs.edges import as_array

#: What `NodeData` is made of: graph, features, labels, masks, meta.
Pieces = tuple[Graph, Any, Any, Masks, Meta]
#: The note of a set whose nodes came without features.
WITHOUT_FEATURES = "No features were given: every node carries its own unit vector."


def scipy_pieces(adjacency: Any, x: Any, y: Any, *, masks: Masks | None = None) -> Pieces:
    """A sparse adjacency (n, n) whose entry [i, j] is the edge j -> i, features or None, labels or None."""
    return assemble(Graph.from_scipy(adjacency), x, y, masks, Meta("data"))


def pyg_pieces(data: Any, *, masks: Masks | None = None) -> Pieces:
    """A `torch_geometric.data.Data` or anything with its attributes; masks (n,) or (n, k), a mask (n,) serves all k.

    >>> from types import SimpleNamespace
    >>> pyg_pieces(SimpleNamespace(edge_index=[[0, 1], [1, 0]], num_nodes=2, x=[[1.0], [2.0]], y=[0, 1]))[2].tolist()
    [0, 1]
    """
    graph = Graph.from_pyg(data)
    labels = getattr(data, "y", None)
    if labels is not None:
        labels = as_array(labels, "y")
        labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    given = _pyg_masks(data, graph.num_nodes) if masks is None else masks
    split = "masks of the PyTorch Geometric data" if given is not None and masks is None else ""
    return assemble(graph, _strided(getattr(data, "x", None)), labels, given, Meta("data", split=split))


def networkx_pieces(
    graph: Any,
    *,
    features: str | Sequence[str] | None = None,
    label: str | None = "label",
    weight: str | None = "weight",
    masks: Masks | None = None,
) -> Pieces:
    """A networkx graph; `features` and `label` name attributes of its nodes.

    >>> import networkx as nx
    >>> g = nx.Graph([("a", "b")])
    >>> nx.set_node_attributes(g, {"a": "red", "b": "blue"}, "colour")
    >>> made, _, y, _, meta = networkx_pieces(g, label="colour")
    >>> y.tolist(), meta.classes, made.names
    ([1, 0], ('blue', 'red'), ('a', 'b'))
    """
    made = Graph.from_networkx(graph, weight=weight)
    nodes = list(graph.nodes(data=True))
    names = [features] if isinstance(features, str) else list(features or ())
    x = np.concatenate([_attribute(nodes, name) for name in names], axis=1) if names else None
    if label is not None and not any(label in values for _, values in nodes):
        raise InvalidArgument(f"expected nodes with the attribute {label!r}, got none; label=None reads no labels")
    y, classes = encode_labels([None if label is None else values.get(label) for _, values in nodes])
    return assemble(made, x, y, masks, Meta("data", classes=classes))


def assemble(graph: Graph, x: Any, y: Any, masks: Masks | None, meta: Meta) -> Pieces:
    """Unit vectors where x is None, unknown labels where y is None, no splits where masks is None."""
    n = graph.num_nodes
    if x is None:
        x = eye_array(n, dtype=np.float32, format="csr")
        meta = replace(meta, notes=(*meta.notes, WITHOUT_FEATURES))
    return graph, x, np.full(n, -1) if y is None else y, Masks.none(n) if masks is None else masks, meta


def encode_labels(values: Sequence[Any]) -> tuple[np.ndarray, tuple[str, ...]]:
    """Labels 0, 1, ... (n,) and the names of the classes, sorted, numbers as numbers; None, "" and nan are unknown.

    >>> encode_labels(["10", "9", "", "9.0"])
    (array([ 1,  0, -1,  0]), ('9', '10'))
    """
    known = [value for value in dict.fromkeys(values) if not _is_unknown(value)]
    numbers = [_number(value) for value in known]
    if -1.0 in numbers:
        raise InvalidArgument(
            "expected labels other than -1, which means unknown elsewhere; leave the label out or give the class a name"
        )
    keys: list[Any] = [str(value) for value in known] if None in numbers else numbers
    names: dict[Any, str] = {}
    for key, value in zip(keys, known, strict=True):
        names.setdefault(key, str(value))
    place = {key: k for k, key in enumerate(sorted(names))}
    number = {value: place[key] for key, value in zip(keys, known, strict=True)}
    return np.array([number.get(value, -1) for value in values], dtype=np.int64), tuple(names[key] for key in place)


def _is_unknown(value: Any) -> bool:
    return value is None or value == "" or value != value


def _number(value: Any) -> float | None:
    """The finite number that a label is or spells, None for other names."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _attribute(nodes: Sequence[tuple[Hashable, dict[str, Any]]], name: str) -> np.ndarray:
    """One attribute of every node as columns (n, width), width 1 for a number."""
    rows: list[np.ndarray] = []
    for node, values in nodes:
        if name not in values:
            raise InvalidArgument(f"expected every node to carry the feature {name!r}, got node {node!r} without it")
        row = as_array(values[name], f"the feature {name!r}").reshape(-1)
        if row.dtype.kind not in "biuf" or not row.size:
            raise InvalidArgument(
                f"expected a number or a vector as feature {name!r}, got node {node!r}: {values[name]!r}; "
                "encode names as numbers"
            )
        if rows and row.size != rows[0].size:
            raise InvalidArgument(
                f"expected {rows[0].size} numbers in the feature {name!r} of every node, got node {node!r}: {row.size}"
            )
        rows.append(row)
    return np.stack(rows)


def _pyg_masks(data: Any, num_nodes: int) -> Masks | None:
    given = {name: getattr(data, f"{name}_mask", None) for name in PARTS}
    missing = [f"{name}_mask" for name, mask in given.items() if mask is None]
    if len(missing) == len(PARTS):
        return None
    if missing:
        raise InvalidArgument(
            f"expected train_mask, val_mask and test_mask, or none of them, got no {' and no '.join(missing)}; "
            "pass masks="
        )
    arrays = {name: as_array(mask, f"{name}_mask") for name, mask in given.items()}
    for name, array in arrays.items():
        if array.ndim not in (1, 2) or array.shape[0] != num_nodes:
            raise InvalidArgument(
                f"expected a {name}_mask of shape ({num_nodes},) or ({num_nodes}, splits), got {array.shape}"
            )
    splits = max(_columns(array) for array in arrays.values())
    return Masks(*(np.repeat(a[None], splits, axis=0) if a.ndim == 1 else a.T for a in arrays.values()))


def _columns(array: np.ndarray) -> int:
    return array.shape[1] if array.ndim == 2 else 1


def _strided(x: Any) -> Any:
    """Torch's sparse tensors as scipy's; anything else as it is."""
    if not hasattr(x, "layout") or str(x.layout) == "torch.strided":
        return x
    entries = x.detach().cpu().to_sparse_coo().coalesce()
    return csr_array((entries.values().numpy(), entries.indices().numpy()), shape=tuple(x.shape))
