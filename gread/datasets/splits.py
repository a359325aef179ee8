"""Splits into training, validation and test nodes, and random splits stratified by class."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gread.datasets.checks import frozen, read_labels, read_mask
from rdgraph.errors import InvalidArgument
from rdgraph.files import Place
from rdgraph.graphs.edges import read_whole

# ---------------------------------------------------------------------- masks
# `Masks`: training, validation and test nodes of every split.

#: The three parts of a split, as fields of `Masks` and in words.
PARTS = {"train": "training", "val": "validation", "test": "test"}


@dataclass(frozen=True, eq=False, repr=False)
class Masks:
    """Training, validation and test nodes of k splits, each bool (k, n); split k is `train[k]`, `val[k]`, `test[k]`.

    The parts of a split do not overlap, and may cover only some of the nodes. Training nodes are required; without
    validation nodes a training keeps its last epoch, and an accuracy on no nodes is nan. `Masks.none(n)` has no splits.

    Args:
        train: Booleans or zeros and ones (k, n), or (n,) for one split; stored read-only.
        val: The nodes that choose the epoch, as `train`.
        test: The held-out nodes, as `train`.

    Raises:
        InvalidArgument: For other values or shapes, a node in two parts, or a split without training nodes.

    >>> import gread
    >>> masks = gread.Masks([1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1])
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
                f"expected every node in at most one part of a split, got split {split}: node {node} in {both}; "
                "remove it from one"
            )
        empty = ~parts[0].any(axis=1)
        if empty.any():
            raise InvalidArgument(
                f"expected training nodes in every split, got split {int(empty.argmax())} without; add some, or remove "
                "the split"
            )
        for name, part in zip(PARTS, parts, strict=True):
            object.__setattr__(self, name, frozen(part))

    def __repr__(self) -> str:
        return f"Masks(num_splits={self.num_splits}, num_nodes={self.num_nodes})"

    @classmethod
    def none(cls, num_nodes: int) -> Masks:
        """No splits, for a graph with this number of nodes."""
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
        """Some of the splits; a single number keeps the axis."""
        rows = np.arange(self.num_splits)[which].reshape(-1)
        return Masks(self.train[rows], self.val[rows], self.test[rows])

    def take(self, nodes: Any) -> Masks:
        """The same splits on some of the nodes."""
        return Masks(self.train[:, nodes], self.val[:, nodes], self.test[:, nodes])


def split_names(columns: Iterable[str]) -> list[str]:
    """The names of split columns, in order.

    >>> split_names(["id", "split_10", "split_2", "splitting"])
    ['split_2', 'split_10']
    """
    names = [name for name in columns if re.fullmatch(r"split(_\d+)?", name)]
    return sorted(names, key=lambda name: int(name.partition("_")[2] or -1))


def read_split_words(words: Sequence[Sequence[str]], place: Callable[[int, int], Place]) -> Masks:
    """The masks from words (nodes, splits): train, val, test or nothing; `place` locates them in errors."""
    known = {"": -1} | {name: k for k, name in enumerate(PARTS)}
    parts = np.zeros((3, len(words[0]), len(words)), dtype=bool)
    for node, row in enumerate(words):
        for split, word in enumerate(row):
            part = known.get(word.lower())
            if part is None:
                raise place(node, split).error("train, val, test or an empty cell", repr(word), "write one of them")
            if part >= 0:
                parts[part, split, node] = True
    if not (trains := parts[0].any(axis=1)).all():
        remedy = "write train for the nodes to train on, or remove the column"
        raise place(0, int(trains.argmin())).error("train in some row of the column", "none", remedy)
    return Masks(*parts)


# ---------------------------------------------------------------------- splits
def stratified_splits(y: Any, k: int = 10, *, train: float = 0.48, val: float = 0.32, seed: int = 0) -> Masks:
    """k random splits of the labelled nodes into training, validation and test nodes, class by class.

    Of the n labelled nodes train*n are for training, val*n for validation and the rest for testing, rounded by largest
    remainders; a class of m nodes has m*train, m*val and the remaining ones, each up to one. A class of at least three
    nodes gets at least one node in every part, even if this changes the sizes. Nodes with label -1 are in no part.
    Split j has a separate random stream: it depends on the labels, the shares and the seed, not on k.

    Args:
        y: Labels (n,), whole numbers from 0, or -1 for unknown.
        k: The number of splits.
        train: The share of training nodes.
        val: The share of validation nodes; the rest are test nodes.
        seed: The random seed.

    Returns:
        The splits.

    Raises:
        InvalidArgument: For fewer than three labels, or shares that leave no test nodes.

    >>> import gread
    >>> masks = gread.datasets.stratified_splits([0] * 50 + [1] * 25 + [-1] * 5, k=3)
    >>> masks, [int(part.sum()) for part in (masks.train[0], masks.val[0], masks.test[0])]
    (Masks(num_splits=3, num_nodes=80), [36, 24, 15])
    """
    labels = read_labels(y)
    known = labels[labels >= 0] if labels.ndim == 1 else labels[:0]
    if known.size < 3:
        raise InvalidArgument(
            f"expected labels (n,) with at least three known ones, got shape {labels.shape} with {known.size}; "
            "a split needs a training, a validation and a test node"
        )
    shares = _read_shares(train, val)
    splits = read_whole(k, 0, "splits")
    classes, sizes = np.unique(known, return_counts=True)
    counts = part_sizes(sizes, shares)
    parts = np.zeros((3, splits, labels.size), dtype=bool)
    for split in range(splits):
        draw = stream(seed, "splits", split)
        for label, count in zip(classes, counts, strict=True):
            nodes = draw.permutation(np.flatnonzero(labels == label))
            for part, chosen in enumerate(np.split(nodes, np.cumsum(count)[:-1])):
                parts[part, split, chosen] = True
    return Masks(*parts)


def part_sizes(sizes: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """The numbers of nodes of every class in every part (classes, 3), with row sums `sizes`.

    Each entry is the share rounded down, at least one in classes of three or more; the rest of a class goes to the
    parts that lack most of their total size, which reaches all sizes if that is possible (Gale and Ryser). Smallest
    classes come first, and a class of one or two is used for training first while training nodes are lacking.

    >>> part_sizes(np.array([17, 17, 1]), np.array([0.48, 0.32, 0.2]))
    array([[8, 6, 3],
           [8, 5, 4],
           [1, 0, 0]])
    """
    wanted = _overall(int(sizes.sum()), shares)
    # Rounding may put a share such as 0.48*25 just below a whole number.
    counts = np.floor(sizes[:, None] * shares + 1e-9).astype(np.int64)
    counts = np.maximum(counts, (sizes >= 3)[:, None])
    for row, size in zip(counts, sizes, strict=True):
        while row.sum() > size:
            row[row.argmax()] -= 1
    for k in np.argsort(sizes, kind="stable"):
        lack = wanted - counts.sum(axis=0)
        if sizes[k] < 3 and lack[0] > 0:
            lack[0] = np.inf
        counts[k, np.argsort(-lack, kind="stable")[: sizes[k] - counts[k].sum()]] += 1
    return counts


def _overall(total: int, shares: np.ndarray) -> np.ndarray:
    """The sizes of the parts (3,): rounded by largest remainders, at least one each."""
    exact = total * shares
    wanted = np.floor(exact + 1e-9)
    order = np.argsort(np.round(wanted - exact, 9), kind="stable")
    wanted[order[: total - int(wanted.sum())]] += 1
    for part in np.flatnonzero(wanted < 1):
        wanted[part] += 1
        wanted[wanted.argmax()] -= 1
    return wanted


def describe_split(train: float, val: float, seed: int) -> str:
    """The description of stratified splits for `Meta.split`.

    >>> describe_split(0.48, 0.32, 0)
    'stratified 48/32/20, seed 0'
    """
    return f"stratified {100 * train:.4g}/{100 * val:.4g}/{100 * (1 - train - val):.4g}, seed {seed}"


def stream(seed: int, name: str, *numbers: int) -> np.random.Generator:
    """The random stream with this name and numbers, independent of all others."""
    key = (zlib.crc32(name.encode()), *numbers)
    return np.random.default_rng(np.random.SeedSequence(read_whole(seed, 0, "a seed"), spawn_key=key))


def _read_shares(train: Any, val: Any) -> np.ndarray:
    if not (0 < train < 1 and 0 < val < 1 and train + val < 1 - 1e-9):
        raise InvalidArgument(
            f"expected shares train > 0, val > 0 and train + val < 1, got {train} and {val}; the rest are test nodes"
        )
    return np.array([train, val, 1 - train - val])
