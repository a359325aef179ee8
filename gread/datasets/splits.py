"""Random splits that keep the share of every class."""

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
# `Masks`: which nodes train, validate and test, for every split.

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
                f"expected every node in one part of a split at most, got split {split}: node {node} in {both}; "
                "leave it in one"
            )
        empty = ~parts[0].any(axis=1)
        if empty.any():
            raise InvalidArgument(
                f"expected training nodes in every split, got split {int(empty.argmax())} without; name some, or leave "
                "the split out"
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


def split_names(columns: Iterable[str]) -> list[str]:
    """The columns of splits among others, in their order.

    >>> split_names(["id", "split_10", "split_2", "splitting"])
    ['split_2', 'split_10']
    """
    return sorted((name for name in columns if re.fullmatch(r"split(_\d+)?", name)), key=_split_number)


def _split_number(name: str) -> int:
    return int(name.partition("_")[2] or -1)


def read_split_words(words: Sequence[Sequence[str]], place: Callable[[int, int], Place]) -> Masks:
    """The masks of words (nodes, splits): train, val, test or nothing; `place` is that of a node and a split."""
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

    Of the n labelled nodes train*n are for training, val*n for validation and the rest for the test, rounded by largest
    remainders; a class of m nodes has m*train, m*val and the rest of them, each up to one. Where a class of three nodes
    or more would miss a part it gets one node there, even if the sizes move by that. Nodes of label -1 are in no part.
    Split j has a random stream of its own: it depends on the labels, the shares and the seed, not on k.

    Args:
        y: Labels (n,), whole numbers from 0, or -1 for unknown.
        k: How many splits.
        train: The share of training nodes.
        val: The share of validation nodes; what is left is for the test.
        seed: Where the random numbers start.

    Returns:
        The splits.

    Raises:
        InvalidArgument: For fewer than three labels, or shares that leave nothing for the test.

    >>> import gread
    >>> masks = gread.datasets.stratified_splits([0] * 50 + [1] * 25 + [-1] * 5, k=3)
    >>> masks, [int(part.sum()) for part in (masks.train[0], masks.val[0], masks.test[0])]
    (Masks(num_splits=3, num_nodes=80), [36, 24, 15])
    """
    labels = read_labels(y)
    known = labels[labels >= 0] if labels.ndim == 1 else labels[:0]
    if known.size < 3:
        raise InvalidArgument(
            f"expected labels (n,) with three known ones at least, got shape {labels.shape} with {known.size}; "
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
    """How many nodes of every class go to every part (classes, 3), rows adding up to `sizes`.

    Each entry is the share rounded down, at least one in classes of three or more; what is left of a class goes to the
    parts that lack most of their overall size, which meets all sizes where that is possible at all (Gale and Ryser).
    Smallest classes come first, and a class of one or two trains before it is tested as long as training nodes lack.

    >>> part_sizes(np.array([17, 17, 1]), np.array([0.48, 0.32, 0.2]))
    array([[8, 6, 3],
           [8, 5, 4],
           [1, 0, 0]])
    """
    wanted = _overall(int(sizes.sum()), shares)
    # A share such as 0.48*25 may come out just below the whole number it is.
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
    """The sizes of the parts (3,): rounded down, the rest to the largest remainders, at least one each."""
    exact = total * shares
    wanted = np.floor(exact + 1e-9)
    order = np.argsort(np.round(wanted - exact, 9), kind="stable")
    wanted[order[: total - int(wanted.sum())]] += 1
    for part in np.flatnonzero(wanted < 1):
        wanted[part] += 1
        wanted[wanted.argmax()] -= 1
    return wanted


def describe_split(train: float, val: float, seed: int) -> str:
    """The splits in words, for `Meta.split`.

    >>> describe_split(0.48, 0.32, 0)
    'stratified 48/32/20, seed 0'
    """
    return f"stratified {100 * train:.4g}/{100 * val:.4g}/{100 * (1 - train - val):.4g}, seed {seed}"


def stream(seed: int, name: str, *numbers: int) -> np.random.Generator:
    """The random stream of that name; streams of other names or numbers are independent of it."""
    key = (zlib.crc32(name.encode()), *numbers)
    return np.random.default_rng(np.random.SeedSequence(read_whole(seed, 0, "a seed"), spawn_key=key))


def _read_shares(train: Any, val: Any) -> np.ndarray:
    if not (0 < train < 1 and 0 < val < 1 and train + val < 1 - 1e-9):
        raise InvalidArgument(
            f"expected shares train > 0, val > 0 and train + val < 1, got {train} and {val}; the rest is for the test"
        )
    return np.array([train, val, 1 - train - val])
