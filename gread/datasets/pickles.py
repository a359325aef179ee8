"""Pickled arrays from outside, read without running anything that the file chooses.

The files of planetoid are pickles of numpy arrays, scipy csr matrices and a dictionary of lists, written by Python 2.
A pickle names the functions to call while it is read. Here a name reaches only the short list below, and what stands
behind the names of numpy and scipy are stand-ins that keep plain numbers: the real constructors never see the state
that the file brings. Every other name is refused before it is looked up.
"""

from __future__ import annotations

import io
import pickle
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from rdgraph.errors import FileError
from rdgraph.graphs.matrix_formats import make_csr

#: Kinds of numbers that an array may hold; above all not "O", Python objects.
NUMBERS = frozenset({"b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"})


def read_pickle(path: Path) -> Any:
    """The array, csr_array or dictionary of lists in the file; any other content is refused."""
    return loads(path.read_bytes(), path.name)


def loads(content: bytes, name: str = "pickle") -> Any:
    """The same for bytes in memory; `name` is for the error.

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
    except Exception as reason:  # a damaged pickle fails in every way there is
        raise FileError(
            f"expected a pickle of arrays in {name}, got one that cannot be read ({type(reason).__name__}: {reason}); "
            "fetch the file again"
        ) from None


class _Refused(Exception):
    """Something that is not admitted; the text names it."""


class _Number:
    """Stands for numpy.dtype: the kind of number and its byte order."""

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
    """Stands for numpy.ndarray: shape, kind of number and the bytes themselves."""

    value: np.ndarray

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, number, is_fortran, content = state
        if type(number) is not _Number or type(content) is not str:
            raise _Refused("an array that is not made of bytes")
        flat = np.frombuffer(content.encode("latin1"), dtype=number.dtype)
        self.value = flat.reshape(shape, order="F" if is_fortran else "C")


class _Rows:
    """Stands for scipy's csr_matrix: its three arrays and its shape."""

    value: csr_array

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        parts = [state[key] for key in ("data", "indices", "indptr")]
        if not all(type(part) is _Array for part in parts):
            raise _Refused("a sparse matrix that is not made of arrays")
        data, indices, indptr = (part.value for part in parts)
        self.value = make_csr(data, indices, indptr, tuple(state["_shape"]), "the pickled matrix")


def _empty_array(kind: type, *_: object) -> _Array:
    """Stands for numpy's _reconstruct, which opens every pickled array."""
    if kind is not _Array:
        raise _Refused("an array of another class than ndarray")
    return _Array()


#: What the planetoid files name, under the names of the libraries of their time.
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


def _finished(found: Any) -> Any:
    """The values behind the stand-ins; a dictionary must map whole numbers to lists of whole numbers."""
    if isinstance(found, (_Array, _Rows)):
        return found.value
    if isinstance(found, dict) and all(
        type(node) is int and type(others) is list and all(type(k) is int for k in others)
        for node, others in found.items()
    ):
        return dict(found)
    raise _Refused(type(found).__name__.lstrip("_"))
