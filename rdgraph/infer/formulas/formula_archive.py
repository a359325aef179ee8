"""Formulas that were found: the best few of every size, and the front of error against size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from rdgraph.infer.formulas.prefix_terms import Word, size_of

Array = np.ndarray

#: The share by which the squares of two spellings of one formula may differ.
SAME = 1e-5


@dataclass(frozen=True, eq=False)
class Candidate:
    """A formula with its constants (sets, count) and the sum of squares over all sets."""

    word: Word
    constants: Array
    squares: float

    @property
    def size(self) -> int:
        return size_of(self.word)

    @property
    def parameters(self) -> int:
        """How many numbers were fitted, over all sets."""
        return int(self.constants.size)


@dataclass
class Archive:
    """The `keep` best formulas of every size up to `max_size`, one of each shape."""

    max_size: int
    keep: int = 4
    by_size: dict[int, list[Candidate]] = field(default_factory=dict)

    def takes(self, size: int, squares: float) -> bool:
        """Whether a formula of this size and error would be kept."""
        held = self.by_size.get(size, [])
        return size <= self.max_size and np.isfinite(squares) and (len(held) < self.keep or squares < held[-1].squares)

    def add(self, candidate: Candidate) -> bool:
        """Keep a formula where it is among the best of its size; says whether it is."""
        if not self.takes(candidate.size, candidate.squares):
            return False
        held = self.by_size.setdefault(candidate.size, [])
        same = next((c for c in held if c.word == candidate.word), None)
        if same is not None:
            if same.squares <= candidate.squares:
                return False
            held.remove(same)
        # Of two with the same squares, but for rounding, the one that was found first: the library has the usual
        # spelling.
        better = (k for k, other in enumerate(held) if candidate.squares < (1 - SAME) * other.squares)
        held.insert(next(better, len(held)), candidate)
        del held[self.keep :]
        return True

    def __iter__(self) -> Iterator[Candidate]:
        """All that are kept, from small to large."""
        for size in sorted(self.by_size):
            yield from self.by_size[size]

    def front(self, gain: float = 1e-3) -> list[Candidate]:
        """From small to large, each with squares that are smaller by the share `gain` than those of all before it."""
        found: list[Candidate] = []
        for size in sorted(self.by_size):
            best = self.by_size[size][0]
            if not found or best.squares < (1 - gain) * found[-1].squares:
                found.append(best)
        return found
