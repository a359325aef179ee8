"""The files of planetoid: Cora, Citeseer, PubMed as pickled matrices and a dictionary of neighbours.

allx, ally contain the nodes 0..m-1; row r of tx, ty is node test.index[r]. In Citeseer fifteen numbers between the
smallest and the largest test node are missing from test.index: nodes with edges, but with neither features nor a class.
They get a zero row and the label -1.
"""

from __future__ import annotations

import io
import pickle
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

from gread.datasets.npz import read_arrays
from gread.datasets.raw import RawData, compact
from gread.datasets.splits import Masks
from rdgraph.errors import FileError
from rdgraph.graphs.matrix_formats import make_csr

# ---------------------------------------------------------------------- pickles
# Untrusted pickled arrays, read without executing anything from the file.
#
# The files of planetoid are pickles of numpy arrays, scipy csr matrices and a dictionary of lists, written by Python 2.
# A pickle names the functions to call while it is read. Here only the names in the short list below are allowed, and
# those of numpy and scipy refer to substitutes that store plain numbers: the real constructors never receive the
# content of the file. Every other name is refused before it is looked up.

#: The allowed types of numbers in an array; in particular not "O", Python objects.
NUMBERS = frozenset({"b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"})


def read_pickle(path: Path) -> Any:
    """The array, csr_array or dictionary of lists in the file; any other content is refused."""
    return loads(path.read_bytes(), path.name)


def loads(content: bytes, name: str = "pickle") -> Any:
    """Unpickle bytes that contain only numpy and scipy arrays; `name` is used in errors.

    >>> loads(pickle.dumps({0: [1, 2]}, protocol=2))
    {0: [1, 2]}
    >>> loads(pickle.dumps(print, protocol=2))
    Traceback (most recent call last):
    ...
    rdgraph.errors.FileError: expected numpy and scipy arrays in pickle, got __builtin__.print; do not use it
    """
    try:
        return _finished(_Unpickler(io.BytesIO(content), encoding="latin1").load())
    except _Refused as reason:
        raise FileError(f"expected numpy and scipy arrays in {name}, got {reason}; do not use it") from None
    except Exception as reason:  # a damaged pickle can raise anything
        raise FileError(
            f"expected a pickle of arrays in {name}, got one that cannot be read ({type(reason).__name__}: {reason}); "
            "fetch the file again"
        ) from None


class _Refused(Exception):
    """Refused content; the text names it."""


class _Number:
    """Substitute for numpy.dtype: the type of number and its byte order."""

    def __init__(self, code: str, *_: object) -> None:
        if code not in NUMBERS:
            raise _Refused(f"an array of kind {code!r}")
        self.dtype = np.dtype(code)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        order, inner = state[1], state[2:5]
        if order not in ("<", ">", "|", "=") or inner != (None, None, None):
            raise _Refused(f"numbers with the layout {state[1:5]!r}")
        self.dtype = self.dtype.newbyteorder(order)


class _Array:
    """Substitute for numpy.ndarray: shape, type of number and the bytes."""

    value: np.ndarray

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, number, is_fortran, content = state
        if type(number) is not _Number or type(content) is not str:
            raise _Refused("an array that is not made of bytes")
        flat = np.frombuffer(content.encode("latin1"), dtype=number.dtype)
        self.value = flat.reshape(shape, order="F" if is_fortran else "C")


class _Rows:
    """Substitute for scipy's csr_matrix: its three arrays and its shape."""

    value: csr_array

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        parts = [state[key] for key in ("data", "indices", "indptr")]
        if not all(type(part) is _Array for part in parts):
            raise _Refused("a sparse matrix that is not made of arrays")
        data, indices, indptr = (part.value for part in parts)
        self.value = make_csr(data, indices, indptr, tuple(state["_shape"]), "the pickled matrix")


def _empty_array(kind: type, *_: object) -> _Array:
    """Substitute for numpy's _reconstruct, which every pickled array calls first."""
    if kind is not _Array:
        raise _Refused("an array of another class than ndarray")
    return _Array()


#: The allowed names in the planetoid files, as in the libraries of their time.
_ADMITTED: Mapping[tuple[str, str], Callable[..., Any]] = {
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Number,
    ("numpy.core.multiarray", "_reconstruct"): _empty_array,
    ("scipy.sparse.csr", "csr_matrix"): _Rows,
    ("collections", "defaultdict"): defaultdict,
    ("__builtin__", "list"): list,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ADMITTED[module, name]
        except KeyError:
            raise _Refused(f"{module}.{name}") from None

    def persistent_load(self, pid: Any) -> Any:
        raise _Refused(f"a persistent object {pid!r}")


def _finished(content: Any) -> Any:
    """The values of the substitutes; a dictionary must map whole numbers to lists of whole numbers."""
    if isinstance(content, (_Array, _Rows)):
        return content.value
    if isinstance(content, dict) and all(
        type(node) is int and type(others) is list and all(type(k) is int for k in others)
        for node, others in content.items()
    ):
        return dict(content)
    raise _Refused(type(content).__name__.lstrip("_"))


# ---------------------------------------------------------------------- planetoid
def read_planetoid(paths: Sequence[Path]) -> RawData:
    """Read edges from every node to its listed neighbours, tf-idf or binary words and classes; no masks."""
    parts = {path.name.split(".", 2)[2]: path for path in paths}
    allx, tx, ally, ty = (read_pickle(parts[key]) for key in ("allx", "tx", "ally", "ty"))
    test = np.array(parts["test.index"].read_text(encoding="ascii").split(), dtype=np.int64)
    known, count = allx.shape[0], int(test.max()) + 1
    if not (tx.shape[0] == ty.shape[0] == np.unique(test).size == test.size and test.min() == known == len(ally)):
        raise FileError(
            f"expected the test nodes to follow the {known} other nodes, each once, got {test.size} numbers from "
            f"{test.min()} for {tx.shape[0]} rows; fetch the files again"
        )
    node_of_row = np.concatenate([np.arange(known), test])
    y = np.full(count, -1, dtype=np.int64)
    y[node_of_row] = _classes(np.concatenate([ally, ty]))
    edges = neighbour_edges(read_pickle(parts["graph"]))
    return RawData(edges, compact(_placed(vstack([allx, tx], format="csr"), node_of_row, count)), y)


def neighbour_edges(neighbours: Mapping[int, Sequence[int]]) -> np.ndarray:
    """Edges (2, E) node -> neighbour in the order of the file, including repetitions.

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
    """The column of the 1 in each row; a row of zeros is unknown."""
    if not np.isin(one_hot.sum(axis=1), (0, 1)).all():
        raise FileError("expected one class per node, got a row with several; fetch the files again")
    return np.where(one_hot.any(axis=1), one_hot.argmax(axis=1), -1)


def _placed(rows: Any, target: np.ndarray, count: int) -> csr_array:
    """Row r becomes row target[r] of a matrix with `count` rows; the others are empty."""
    source = np.full(count, -1)
    source[target] = np.arange(target.size)
    nonempty = np.flatnonzero(source >= 0)
    lengths = np.zeros(count, dtype=np.int64)
    sorted_rows = csr_array(rows)[source[nonempty]]
    lengths[nonempty] = np.diff(sorted_rows.indptr)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return csr_array((sorted_rows.data, sorted_rows.indices, starts), shape=(count, rows.shape[1]))
