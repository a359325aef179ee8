"""What `NodeData` is made of, checked: features, labels and masks as read-only arrays, whole numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from rdgraph.errors import InvalidArgument
from rdgraph.graphs.edges import as_array, whole_numbers
from rdgraph.graphs.matrix_formats import check_sparse


def frozen(array: np.ndarray) -> np.ndarray:
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def read_mask(values: Any, name: str) -> np.ndarray:
    mask = as_array(values, f"the mask {name}")
    if mask.dtype.kind not in "biuf" or not np.isin(mask, (0, 1)).all():
        raise InvalidArgument(
            f"expected True and False in the mask {name}, got {mask.dtype} values; node numbers are none"
        )
    if mask.ndim not in (1, 2):
        raise InvalidArgument(f"expected a mask {name} of shape (splits, nodes) or (nodes,), got {mask.shape}")
    return np.atleast_2d(mask.astype(bool))


def read_labels(values: Any) -> np.ndarray:
    labels = whole_numbers(values, "labels", "node")
    if labels.size and labels.min() < -1:
        node = int((labels < -1).argmax())
        raise InvalidArgument(f"expected labels from 0, or -1 for unknown, got node {node}: {labels.flat[node]}")
    return frozen(labels)


def read_features(values: Any) -> np.ndarray | csr_array:
    """Finite float32 (n, f), dense or csr; the caller's array is shared where it already is that."""
    given: Any = _csr(values) if issparse(values) else as_array(values, "the features")
    given = _numbers(given) if given.dtype.kind == "O" else given
    if given.dtype.kind == "c":
        raise InvalidArgument(f"Complex data not supported: expected real features, got {given.dtype}; take real parts")
    if given.dtype.kind not in "biuf":
        raise InvalidArgument(f"expected numbers as features, got dtype {given.dtype}; encode names as numbers")
    if given.ndim != 2:
        raise InvalidArgument(
            f"expected features (n, f), got shape {given.shape}; Reshape your data: one row per node, one column each"
        )
    with np.errstate(over="ignore"):
        x = given.astype(np.float32, copy=False)
    wrong = ~np.isfinite(x.data if issparse(x) else x)
    if wrong.any():
        node, column = _entry(x, int(wrong.argmax()))
        raise InvalidArgument(
            f"expected finite features, no NaN or inf, in the range of float32, got node {node}, column {column}: "
            f"{given[node, column]}; replace or leave out the value"
        )
    if not issparse(x):
        return frozen(x)
    if not x.has_canonical_format:
        x = x.copy()
        x.sum_duplicates()
    return csr_array((frozen(x.data), frozen(x.indices), frozen(x.indptr)), shape=x.shape)


def _csr(values: Any) -> csr_array:
    """A sparse matrix of any format as csr, all its indices checked."""
    if values.ndim != 2:
        raise InvalidArgument(f"expected features (n, f), got shape {values.shape}; one row per node, one column each")
    check_sparse(values, "the features")
    made = csr_array(values)
    check_sparse(made, "the features")
    count = int(made.indptr[-1])
    if count == made.indices.size:
        return made
    return csr_array((made.data[:count], made.indices[:count], made.indptr), shape=made.shape)


def _numbers(given: np.ndarray) -> np.ndarray:
    """Python's numbers in an array of objects, as a column of mixed kinds brings them, as floats."""
    try:
        return given.astype(np.float64)
    except (TypeError, ValueError) as reason:
        raise InvalidArgument(
            f"expected numbers as features, got objects ({reason}); encode names as numbers"
        ) from None


def _entry(x: Any, position: int) -> tuple[int, int]:
    """Row and column of an entry, numbered row by row, stored ones only where sparse."""
    if issparse(x):
        return int(np.searchsorted(x.indptr, position, "right")) - 1, int(x.indices[position])
    row, column = divmod(position, x.shape[1])
    return row, column
