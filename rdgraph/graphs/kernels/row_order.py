"""Compressed rows in the order of the kernels: heavy rows first, light rows in their order, long rows in pieces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

# ---------------------------------------------------------------------- row order
#: Rows with more edges than this, and than four times the mean, get a separate program, which takes several edges
#: at a time.
HEAVY = 16
#: Rows with more edges than this are cut into pieces of this length, so that no program works alone.
LONG = 2048
#: On graphs with fewer edges than SMALL one hub can take longer than all the rest; there, if a row is that much longer
#: than a piece, pieces are short.
SMALL, SHORT, MUCH = 1 << 20, 128, 4


@dataclass(frozen=True, eq=False)
class Rows:
    """indptr (n+1,) and indices (E,); after `arrange` also the order in which the kernels take the rows.

    The main order lists every row but the long ones, the heavy ones first; it is left out where it is 0, 1, 2, ...
    Long rows lie in pieces with their owners; those of long_rows[k] have the numbers pointer[k] to pointer[k+1].
    """

    indptr: Tensor
    indices: Tensor
    arrangement: tuple[Tensor, ...] = ()

    @classmethod
    def from_tensors(cls, tensors: Sequence[Tensor]) -> Rows:
        return cls(tensors[0], tensors[1], tuple(tensors[2:]))

    @property
    def tensors(self) -> list[Tensor]:
        return [self.indptr, self.indices, *self.arrangement]

    @property
    def count(self) -> int:
        return len(self.indptr) - 1

    @property
    def heavy(self) -> int:
        """How many of the targets are heavy."""
        return len(self.arrangement[3])

    @property
    def has_long(self) -> bool:
        return len(self.long_rows) > 0

    @property
    def main(self) -> tuple[Tensor, Tensor, Tensor | None]:
        """starts, ends, targets; no targets where all rows are in order."""
        if not self.heavy and not self.has_long:
            return self.indptr[:-1], self.indptr[1:], None
        return self.arrangement[0], self.arrangement[1], self.arrangement[2]

    @property
    def pieces(self) -> tuple[Tensor, Tensor, Tensor]:
        """The pieces of the long rows: starts, ends, and the row that owns each."""
        return self.arrangement[4], self.arrangement[5], self.arrangement[6]

    @property
    def sums(self) -> tuple[Tensor, Tensor, Tensor]:
        """First and last piece of every long row, and the row."""
        pointer = self.arrangement[7]
        return pointer[:-1], pointer[1:], self.long_rows

    @property
    def long_rows(self) -> Tensor:
        return self.arrangement[8]

    @cached_property
    def numbers(self) -> Tensor:
        """0, 1, 2, ...: the pieces as columns of the second pass."""
        return torch.arange(len(self.pieces[0]), device=self.indptr.device, dtype=torch.int32)

    def arrange(self, heavy: int | None = None, long: int | None = None) -> Rows:
        """The same rows with their order for the kernels; `heavy` defaults to `HEAVY` or four times the mean.

        `long` defaults to `LONG`, or to `SHORT` on small graphs with a hub.
        """
        degree = self.indptr.diff()
        if long is None:
            has_hub = len(self.indices) < SMALL and self.count > 0 and int(degree.max()) > MUCH * SHORT
            long = SHORT if has_hub else LONG
        heavy = max(HEAVY, 4 * len(self.indices) // max(self.count, 1)) if heavy is None else heavy
        long_rows = (degree > long).nonzero().ravel()
        heavy_rows = ((degree > heavy) & (degree <= long)).nonzero().ravel()
        heavy_rows = heavy_rows[degree[heavy_rows].argsort(descending=True, stable=True)]
        in_place = not len(long_rows) and not len(heavy_rows)
        light_rows = heavy_rows if in_place else (degree <= min(heavy, long)).nonzero().ravel()
        targets = torch.cat([heavy_rows, light_rows])
        main = self.indptr[targets], self.indptr[targets + 1], targets.to(self.indices.dtype)
        return Rows(
            self.indptr, self.indices, (*main, main[2][: len(heavy_rows)], *self._pieces(long_rows, long), long_rows)
        )

    def _pieces(self, long_rows: Tensor, length: int) -> tuple[Tensor, ...]:
        """starts, ends, owners of the pieces, and the pointer from long rows to pieces."""
        counts = (self.indptr[long_rows + 1] - self.indptr[long_rows] + length - 1) // length
        pointer = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        owners = torch.repeat_interleave(long_rows, counts)
        position = torch.arange(len(owners), device=owners.device) - torch.repeat_interleave(pointer[:-1], counts)
        starts = self.indptr[owners].long() + position * length
        return starts, torch.minimum(starts + length, self.indptr[owners + 1].long()), owners, pointer


# ---------------------------------------------------------------------- row runs
# Runs: consecutive rows with the same offsets and weights, as on a grid or a ring.
#
# Within a run a sparse product needs no column numbers: out[i] = sum over k of weight[k] x[i + offset[k]].

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
    # Entries of a row are compared with those of the row before it, if both have as many.
    row = np.repeat(np.arange(len(degrees)), degrees)
    before = np.arange(len(offsets)) - degrees[row]
    compared = goes_on[row]
    here, there = np.flatnonzero(compared), before[compared]
    differs = (offsets[here] != offsets[there]) | (weights[here] != weights[there])
    goes_on[row[here[differs]]] = False
    starts = np.flatnonzero(~goes_on)
    degree = degrees[starts]
    entries = np.append(0, degree.cumsum())[:-1]
    first = np.arange(int(degree.sum())) + np.repeat(indptr[starts] - entries, degree)
    ends = np.append(starts, len(degrees))
    return RowRuns(ends, entries, degree.astype(np.int32), offsets[first], weights[first])
