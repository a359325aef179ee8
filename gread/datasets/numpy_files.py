"""Arrays of npy and npz files: whole, as they lie on the disk, or edges block by block; Python objects are refused."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np

from rdgraph.errors import FileError
from rdgraph.files import reason_of
from rdgraph.graphs.edge_keys import BLOCK

NPY, NPZ = ".npy", ".npz"
#: The array of the edges in an npz file.
EDGES = "edge_index"
#: An end (0 for sources, 1 for targets), the number of an edge, and the nodes there and at the edges behind it.
Block = tuple[int, int, np.ndarray]


def is_npy(path: Path) -> bool:
    """Whether a file is one of a single array, by its name."""
    return path.suffix.lower() == NPY


def load(path: Path) -> np.ndarray:
    """An npy file as it lies on the disk."""
    with _reading(path):
        return np.load(path, mmap_mode="r", allow_pickle=False)


def archive(path: Path, needed: Sequence[str], known: Sequence[str]) -> dict[str, np.ndarray]:
    """Some arrays of an npz file: those that are needed, and those of the known ones that there are."""
    with _reading(path), path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        names = list(arrays.files)
        found = {name: arrays[name] for name in (*needed, *known) if name in names}
    for name in needed:
        if name not in found:
            raise _lacking(path, name, names)
    return found


def edge_count(path: Path) -> int:
    """The number E of edges (2, E) in an npy file, or an npz file with edge_index."""
    with _reading(path), _opened(path) as (file, size):
        shape, _, kind = _header(file)
        if len(shape) != 2 or shape[0] != 2 or kind.kind not in "iu":
            raise FileError(f"expected whole numbers (2, E), sources then targets, in {path}, got {kind} {shape}")
        if size < 2 * shape[1] * kind.itemsize:
            raise ValueError(f"{size} bytes for {2 * shape[1]} numbers")
    return int(shape[1])


def edge_blocks(path: Path) -> Iterator[Block]:
    """The edges of such a file, a block after the other."""
    with _reading(path), _opened(path) as (file, _):
        (_, count), is_fortran, kind = _header(file)
        ends = (None,) if is_fortran else (0, 1)
        for end in ends:
            for start in range(0, count, BLOCK):
                width = min(BLOCK, count - start)
                taken = file.read((2 if is_fortran else 1) * width * kind.itemsize)
                block = np.frombuffer(taken, dtype=kind).reshape(width, -1)
                if end is not None:
                    yield end, start, block[:, 0]
                else:
                    yield from ((k, start, block[:, k]) for k in (0, 1))


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, whether columns come first, and kind of an array whose numbers follow."""
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(file)
    return np.lib.format.read_array_header_2_0(file)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[IO[bytes], int]]:
    """The array of the edges as a stream, and its bytes."""
    if is_npy(path):
        with path.open("rb") as file:
            yield file, path.stat().st_size
        return
    with zipfile.ZipFile(path) as packed:
        names = [name.removesuffix(NPY) for name in packed.namelist()]
        if EDGES not in names:
            raise _lacking(path, EDGES, names)
        member = packed.infolist()[names.index(EDGES)]
        with packed.open(member) as file:
            yield file, member.file_size


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """What goes wrong with a file, in a line that names it."""
    try:
        yield
    except FileError:  # which is told already
        raise
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error) as reason:
        expected = "an array of numbers" if is_npy(path) else "an npz file of plain arrays"
        remedy = "save it with numpy.save" if is_npy(path) else "save it again"
        raise FileError(f"expected {expected} in {path}, got {reason}; {remedy}") from None
    except OSError as problem:
        raise FileError(f"expected a file that can be read, got {path}: {reason_of(problem)}; check its name") from None


def _lacking(path: Path, name: str, names: Sequence[str]) -> FileError:
    got = ", ".join(names) or "none"
    return FileError(f"expected an array {name} in {path}, got {got}; save it with numpy.savez")
