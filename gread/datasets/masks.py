"""`Masks`: which nodes train, validate and test, for every split."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gread.datasets.checks import frozen, read_mask
from rdgraph.errors import InvalidArgument

#: The three parts of a split, as fields of `Masks` and in words.
PARTS = {"train": "training", "val": "validation", "test": "test"}


@dataclass(frozen=True, eq=False, repr=False)
class Masks:
    """Training, validation and test nodes of k splits, each bool (k, n); split k is `train[k]`, `val[k]`, `test[k]`.

    The parts of a split do not overlap, and together they may cover less than all nodes. Training nodes are needed;
    without validation nodes a training keeps its last epoch, and an accuracy on no node is nan. `Masks.none(n)` holds
    no split.

    Args:
        train: Booleans or zeros and ones (k, n), or (n,) for one split; read-only afterwards, as are the others.
        val: The nodes that choose the epoch, as `train`.
        test: The nodes that are held out, as `train`.

    Raises:
        InvalidArgument: For other values or shapes, a node in two parts, or a split without training nodes.

    >>> masks = Masks([1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1])
    >>> masks
    Masks(num_splits=1, num_nodes=4)
    >>> masks.train
    array([[ True,  True, False, False]])
    """

    train: np.ndarray
    val: np.ndarray
    test: np.ndarray

    def __post_init__(self) -> None:
        parts = [read_mask(getattr(self, name), name) for name in PARTS]
        if len({part.shape for part in parts}) > 1:
            got = ", ".join(str(part.shape) for part in parts)
            raise InvalidArgument(f"expected train, val and test of one shape (splits, nodes), got {got}")
        twice = np.sum(parts, axis=0) > 1
        if twice.any():
            split, node = np.argwhere(twice)[0]
            both = " and ".join(name for name, part in zip(PARTS, parts, strict=True) if part[split, node])
            raise InvalidArgument(
                f"expected every node in one part of a split at most, got split {split}: node {node} in {both}; "
                "leave it in one"
            )
        empty = ~parts[0].any(axis=1)
        if empty.any():
            raise InvalidArgument(
                f"expected training nodes in every split, got split {int(empty.argmax())} without; leave the split "
                "out, or pass Masks.none(n) for no splits"
            )
        for name, part in zip(PARTS, parts, strict=True):
            object.__setattr__(self, name, frozen(part))

    def __repr__(self) -> str:
        return f"Masks(num_splits={self.num_splits}, num_nodes={self.num_nodes})"

    @classmethod
    def none(cls, num_nodes: int) -> Masks:
        """No splits of a graph with that many nodes."""
        return cls(*np.zeros((3, 0, num_nodes), dtype=bool))

    @property
    def num_splits(self) -> int:
        return len(self.train)

    @property
    def num_nodes(self) -> int:
        return int(self.train.shape[1])

    @property
    def covered(self) -> np.ndarray:
        """Nodes in some part of a split (k, n)."""
        return self.train | self.val | self.test

    def __getitem__(self, which: Any) -> Masks:
        """Some of the splits; a number keeps the axis."""
        rows = np.arange(self.num_splits)[which].reshape(-1)
        return Masks(self.train[rows], self.val[rows], self.test[rows])

    def take(self, nodes: Any) -> Masks:
        """The same splits on some of the nodes."""
        return Masks(self.train[:, nodes], self.val[:, nodes], self.test[:, nodes])
