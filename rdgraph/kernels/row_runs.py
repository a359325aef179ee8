"""Runs: rows one after another whose entries lie at the same distances and weigh the same, as on a grid or a ring.

Within a run a sparse product needs no column numbers: out[i] = sum over k of weight[k] x[i + offset[k]].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: Runs pay where they are this long on average.
LEAST_MEAN = 8.0


@dataclass(frozen=True, eq=False)
class RowRuns:
    """Run r has the rows starts[r]:starts[r + 1]; its offsets and weights are those from entries[r] on."""

    starts: np.ndarray
    entries: np.ndarray
    degrees: np.ndarray
    offsets: np.ndarray
    weights: np.ndarray

    @property
    def count(self) -> int:
        return len(self.degrees)

    @property
    def mean_length(self) -> float:
        return float(self.starts[-1]) / max(1, self.count)

    @property
    def pays(self) -> bool:
        return self.mean_length >= LEAST_MEAN


def row_runs(indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray) -> RowRuns:
    """The runs of compressed rows with weights (E,).

    >>> ring = row_runs(np.arange(0, 9, 2), np.array([1, 3, 0, 2, 1, 3, 0, 2]), np.ones(8))
    >>> ring.starts, ring.degrees
    (array([0, 1, 3, 4]), array([2, 2, 2], dtype=int32))
    """
    indptr = indptr.astype(np.int64)
    degrees = np.diff(indptr)
    offsets = indices.astype(np.int64) - np.repeat(np.arange(len(degrees)), degrees)
    goes_on = np.zeros(len(degrees), dtype=bool)
    goes_on[1:] = degrees[1:] == degrees[:-1]
    # Entries of a row stand opposite to those of the row before it, where both have as many.
    row = np.repeat(np.arange(len(degrees)), degrees)
    before = np.arange(len(offsets)) - degrees[row]
    compared = goes_on[row]
    here, there = np.flatnonzero(compared), before[compared]
    differs = (offsets[here] != offsets[there]) | (weights[here] != weights[there])
    goes_on[row[here[differs]]] = False
    starts = np.flatnonzero(~goes_on)
    own = degrees[starts]
    entries = np.append(0, own.cumsum())[:-1]
    first = np.arange(int(own.sum())) + np.repeat(indptr[starts] - entries, own)
    ends = np.append(starts, len(degrees))
    return RowRuns(ends, entries, own.astype(np.int32), offsets[first], weights[first])
