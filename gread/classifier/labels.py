"""Labels of any kind, read: the classes and each row's place among them."""

from __future__ import annotations

from typing import Any

import numpy as np

from rdgraph.errors import InvalidArgument
from rdgraph.graphs.edges import as_array


def read_labels(y: Any) -> tuple[np.ndarray, np.ndarray]:
    """The classes, sorted, and each row's place among them (n,), -1 where the label is -1, None, nan, NA or "".

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
        raise InvalidArgument(
            f"expected {words[0]} as labels, as in fit, got {words[1]}: {other[:3].tolist()}; write them alike"
        )


def _whole(labels: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Labels of a kind that can be compared; numbers as whole ones, from 0."""
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
