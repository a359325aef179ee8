"""Compressed rows as the kernels walk them: whole, and the long ones cut into pieces of equal length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

#: Rows with more edges than this are cut into pieces of this length on a GPU, so that no program works alone.
LONG = 4096


@dataclass(frozen=True, eq=False)
class Rows:
    """indptr (n+1,) and indices (E,), and for the long rows: pieces [starts, ends) with their owners.

    The pieces of the long row `long_rows[k]` are numbered pointer[k] to pointer[k+1].
    """

    indptr: Tensor
    indices: Tensor
    cuts: tuple[Tensor, ...] = ()

    @classmethod
    def from_tensors(cls, tensors: Sequence[Tensor]) -> Rows:
        return cls(tensors[0], tensors[1], tuple(tensors[2:]))

    @property
    def tensors(self) -> list[Tensor]:
        return [self.indptr, self.indices, *self.cuts]

    @property
    def count(self) -> int:
        return len(self.indptr) - 1

    @property
    def is_cut(self) -> bool:
        return bool(self.cuts) and len(self.starts) > 0

    @property
    def starts(self) -> Tensor:
        return self.cuts[0]

    @property
    def ends(self) -> Tensor:
        return self.cuts[1]

    @property
    def owners(self) -> Tensor:
        return self.cuts[2]

    @property
    def pointer(self) -> Tensor:
        return self.cuts[3]

    @property
    def long_rows(self) -> Tensor:
        return self.cuts[4]

    @cached_property
    def numbers(self) -> Tensor:
        """0, 1, 2, ...: the pieces as columns of the second pass."""
        return torch.arange(len(self.starts), device=self.starts.device, dtype=torch.int32)

    def cut(self, length: int = LONG) -> Rows:
        """The same rows with the pieces of every row longer than `length`."""
        degree = self.indptr.diff().long()
        long_rows = (degree > length).nonzero().ravel()
        counts = (degree[long_rows] + length - 1) // length
        pointer = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        owners = torch.repeat_interleave(long_rows, counts)
        first = torch.repeat_interleave(pointer[:-1], counts)
        place = torch.arange(len(owners), device=owners.device) - first
        starts = self.indptr[owners].long() + place * length
        ends = torch.minimum(starts + length, self.indptr[owners + 1].long())
        return Rows(self.indptr, self.indices, (starts, ends, owners, pointer, long_rows))
