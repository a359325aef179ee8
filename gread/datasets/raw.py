"""The result of a reader: the arrays of a data set as stored in its files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from gread.datasets.splits import Masks

#: Features with a smaller share of nonzero entries are kept sparse.
SPARSE_BELOW = 0.2


@dataclass(frozen=True, eq=False)
class RawData:
    """Stored edges (2, E), sources in row 0; features x (n, f); labels y (n,), -1 for unknown; optional masks."""

    edges: np.ndarray
    x: np.ndarray | csr_array
    y: np.ndarray
    masks: Masks | None = None


def compact(features: Any) -> np.ndarray | csr_array:
    """The features in float32, as csr_array if less than a fifth of the entries is nonzero, else dense.

    >>> compact(np.eye(6)).format, compact(np.eye(5)).dtype
    ('csr', dtype('float32'))
    """
    nonzero = features.count_nonzero() if issparse(features) else np.count_nonzero(features)
    if nonzero < SPARSE_BELOW * features.shape[0] * features.shape[1]:
        sparse = csr_array(features, dtype=np.float32)
        sparse.sum_duplicates()
        sparse.eliminate_zeros()
        return sparse
    dense = features.toarray() if issparse(features) else features
    return np.ascontiguousarray(dense, dtype=np.float32)
