"""`Sample`: the rows that a classifier learns from, divided into training and validation rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from gread.classifier.inputs import read_labels, read_sample_weight
from gread.datasets.meta import Meta
from gread.datasets.node_data import NodeData
from gread.datasets.splits import Masks, stream
from gread.models.problem import SMALL_CLASS
from rdgraph import Graph
from rdgraph.errors import InvalidArgument
from rdgraph.graphs.edges import as_array, read_nodes


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
        raise InvalidArgument(f"expected classes among {names[:8]} in class_weight, got {unknown[0]!r}")
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
