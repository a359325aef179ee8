"""Checks of the parts of `NodeData`: features, labels and masks as read-only arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from rdgraph.errors import InvalidArgument
from rdgraph.graphs.edges import as_array, whole_numbers
from rdgraph.graphs.matrix_formats import check_sparse

#: Columns whose scales differ by more than this factor cause a warning.
UNLIKE = 100.0


def frozen(array: np.ndarray) -> np.ndarray:
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def read_mask(values: Any, name: str) -> np.ndarray:
    mask = as_array(values, f"the mask {name}")
    if mask.dtype.kind not in "biuf" or not np.isin(mask, (0, 1)).all():
        raise InvalidArgument(
            f"expected True and False in the mask {name}, got {mask.dtype} values; node numbers are not a mask"
        )
    if mask.ndim not in (1, 2):
        raise InvalidArgument(f"expected a mask {name} of shape (splits, nodes) or (nodes,), got {mask.shape}")
    return np.atleast_2d(mask.astype(bool))


def read_labels(values: Any) -> np.ndarray:
    labels = whole_numbers(values, "labels", "node")
    if labels.size and labels.min() < -1:
        node = int((labels < -1).argmax())
        raise InvalidArgument(
            f"expected labels from 0, or -1 for unknown, got node {node}: {labels.flat[node]}; renumber"
        )
    return frozen(labels)


def read_features(values: Any) -> np.ndarray | csr_array:
    """Finite float32 (n, f), dense or csr; shares the given array if it already has this form."""
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


def unscaled_columns(x: np.ndarray | csr_array, remedy: str, names: Sequence[str] | np.ndarray | None = None) -> str:
    """A warning about columns of very different scales, by name if they have names; "" if there is none.

    The scale of a column is the root mean square of its nonzero entries, so that rare words cause no warning.

    >>> x = np.array([[1.0, 3e5], [-1.0, 3e5]])
    >>> unscaled_columns(x, "standardise=True", ["age", "income"]).partition(";")[0]
    'Feature columns differ in scale by a factor of 3e+05 (income: 3e+05, age: 1)'
    """
    if issparse(x) or x.shape[1] < 2 or not x.shape[0]:
        return ""
    counts = np.count_nonzero(x, axis=0)
    scales = np.sqrt(np.square(x, dtype=np.float64).sum(axis=0) / np.maximum(counts, 1))
    used = np.flatnonzero(counts)
    order = used[np.argsort(-scales[used])]
    if len(order) < 2 or scales[order[0]] < UNLIKE * scales[order[-1]]:
        return ""
    ratio = scales[order[0]] / scales[order[-1]]
    named = dict.fromkeys((*order[:2].tolist(), int(order[-1])))
    titles = names if names is not None and len(names) == x.shape[1] else [f"column {k}" for k in range(x.shape[1])]
    shown = ", ".join(f"{titles[k]}: {scales[k]:.3g}" for k in named)
    return (
        f"Feature columns differ in scale by a factor of {ratio:.2g} ({shown}); large ones dominate the others: "
        f"standardise them with {remedy}."
    )


def _csr(values: Any) -> csr_array:
    """A sparse matrix of any format as csr, with all indices checked."""
    if values.ndim != 2:
        raise InvalidArgument(f"expected features (n, f), got shape {values.shape}; one row per node, one column each")
    check_sparse(values, "the features")
    matrix = csr_array(values)
    check_sparse(matrix, "the features")
    count = int(matrix.indptr[-1])
    if count == matrix.indices.size:
        return matrix
    return csr_array((matrix.data[:count], matrix.indices[:count], matrix.indptr), shape=matrix.shape)


def _numbers(given: np.ndarray) -> np.ndarray:
    """Python numbers in an object array, as from a column of mixed types, as floats."""
    try:
        return given.astype(np.float64)
    except (TypeError, ValueError) as reason:
        raise InvalidArgument(
            f"expected numbers as features, got objects ({reason}); encode names as numbers"
        ) from None


def _entry(x: Any, position: int) -> tuple[int, int]:
    """Row and column of an entry, numbered row by row, among stored entries if sparse."""
    if issparse(x):
        return int(np.searchsorted(x.indptr, position, "right")) - 1, int(x.indices[position])
    row, column = divmod(position, x.shape[1])
    return row, column
