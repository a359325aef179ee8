"""Random splits that keep the share of every class."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from gread.datasets.checks import read_labels
from gread.datasets.masks import Masks
from rdgraph.errors import InvalidArgument
from rdgraph.graphs.edges import read_whole


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

    >>> masks = stratified_splits([0] * 50 + [1] * 25 + [-1] * 5, k=3)
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
