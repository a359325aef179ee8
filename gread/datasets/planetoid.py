"""The files of planetoid: Cora, Citeseer, PubMed as pickled matrices and a dictionary of neighbours.

allx, ally hold the nodes 0..m-1; row r of tx, ty is node test.index[r]. In Citeseer fifteen numbers between the
smallest and the largest test node are missing from test.index: nodes with edges, but with neither features nor a class.
They get a zero row and the label -1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

from gread.datasets.masks import Masks
from gread.datasets.npz import read_arrays
from gread.datasets.pickles import read_pickle
from gread.datasets.raw import RawData, compact
from rdgraph.errors import FileError


def read_planetoid(paths: Sequence[Path]) -> RawData:
    """Edges from every node to the neighbours listed under it, tf-idf or binary words, classes; no masks."""
    parts = {path.name.split(".", 2)[2]: path for path in paths}
    allx, tx, ally, ty = (read_pickle(parts[key]) for key in ("allx", "tx", "ally", "ty"))
    test = np.array(parts["test.index"].read_text(encoding="ascii").split(), dtype=np.int64)
    known, count = allx.shape[0], int(test.max()) + 1
    if not (tx.shape[0] == ty.shape[0] == np.unique(test).size == test.size and test.min() == known == len(ally)):
        raise FileError(
            f"expected the test nodes to follow the {known} other nodes, each once, got {test.size} numbers from "
            f"{test.min()} for {tx.shape[0]} rows; fetch the files again"
        )
    place = np.concatenate([np.arange(known), test])
    y = np.full(count, -1, dtype=np.int64)
    y[place] = _classes(np.concatenate([ally, ty]))
    edges = neighbour_edges(read_pickle(parts["graph"]))
    return RawData(edges, compact(_placed(vstack([allx, tx], format="csr"), place, count)), y)


def neighbour_edges(neighbours: Mapping[int, Sequence[int]]) -> np.ndarray:
    """Edges (2, E) node -> neighbour in the order of the file, repeats included.

    >>> neighbour_edges({0: [1, 1], 1: [0]})
    array([[0, 0, 1],
           [1, 1, 0]])
    """
    sizes = [len(others) for others in neighbours.values()]
    sources = np.repeat(np.fromiter(neighbours, dtype=np.int64, count=len(sizes)), sizes)
    targets = np.fromiter(chain.from_iterable(neighbours.values()), dtype=np.int64, count=sum(sizes))
    return np.stack([sources, targets])


def read_split_files(paths: Sequence[Path]) -> Masks:
    """One split per file of geom-gcn: train_mask, val_mask, test_mask, each (n,)."""
    splits = [read_arrays(path, ("train_mask", "val_mask", "test_mask")) for path in paths]
    train, val, test = (np.stack([split[key] for split in splits]).astype(bool) for key in splits[0])
    return Masks(train, val, test)


def _classes(one_hot: np.ndarray) -> np.ndarray:
    """The column of the one in each row; a row without one is unknown."""
    if not np.isin(one_hot.sum(axis=1), (0, 1)).all():
        raise FileError("expected one class per node, got a row with several; fetch the files again")
    return np.where(one_hot.any(axis=1), one_hot.argmax(axis=1), -1)


def _placed(rows: Any, place: np.ndarray, count: int) -> csr_array:
    """Row r goes to row place[r] of a matrix with `count` rows; the others stay empty."""
    source = np.full(count, -1)
    source[place] = np.arange(place.size)
    taken = np.flatnonzero(source >= 0)
    lengths = np.zeros(count, dtype=np.int64)
    sorted_rows = csr_array(rows)[source[taken]]
    lengths[taken] = np.diff(sorted_rows.indptr)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return csr_array((sorted_rows.data, sorted_rows.indices, starts), shape=(count, rows.shape[1]))
