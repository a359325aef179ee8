"""`Powers`: b_k(A) X of the features of a graph in a folder, a memory-mapped file for every k, read by rows."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from rdgraph.errors import FileError, InvalidArgument
from rdgraph.files import read_text, write_text

FORMAT, WHAT = "rdgraph powers 2", "powers of an operator on features"
MANIFEST = "powers.json"
#: Precisions that files may have.
PRECISIONS = ("float32", "float16")
#: Bytes that are moved between the disk and the memory at a time, about.
BLOCK = 1 << 26


@dataclass(frozen=True)
class PowersRecord:
    """What a folder holds: whose powers, of which kind, and how far every group of columns is."""

    nodes: int
    features: int
    kind: str
    normalisation: str
    self_loops: float
    precision: str
    #: Digests of the operator and of the features.
    operator: str
    x: str
    #: First column, end, and the last power that is written, -1 for none.
    groups: tuple[tuple[int, int, int], ...]
    #: Checksums of what was written of every group, power by power.
    sums: tuple[tuple[int, ...], ...] = ()

    def written(self, number: int, k: int, checksum: int) -> PowersRecord:
        """The same after a group of columns has got its power k."""
        groups, sums = list(self.groups), list(self.sums or ((),) * len(self.groups))
        groups[number] = (*groups[number][:2], k)
        sums[number] = (*sums[number], checksum)
        return replace(self, groups=tuple(groups), sums=tuple(sums))

    @property
    def degree(self) -> int:
        """The last power that all columns have."""
        return min(done for _, _, done in self.groups)

    def write(self, folder: Path) -> None:
        """Write it down, whole or not at all."""
        write_text(folder / MANIFEST, json.dumps({"format": FORMAT, **asdict(self)}, indent=1) + "\n", durable=True)

    @classmethod
    def read(cls, folder: Path) -> PowersRecord | None:
        """What a folder says of itself; None where it says nothing."""
        path = folder / MANIFEST
        if not path.exists():
            return None
        try:
            words: dict[str, Any] = json.loads(read_text(path, WHAT))
            if words.pop("format") != FORMAT:
                raise ValueError("another format")
            words["groups"] = tuple((int(a), int(b), int(k)) for a, b, k in words["groups"])
            words["sums"] = tuple(tuple(map(int, group)) for group in words["sums"])
            record = cls(**{f.name: words[f.name] for f in fields(cls)})
            if record.precision not in PRECISIONS or not record.groups:
                raise ValueError("other words")
            if [len(group) for group in record.sums] != [done + 1 for _, _, done in record.groups]:
                raise ValueError("other checksums")
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as problem:
            raise FileError(
                f"expected {WHAT} in {path}, got something else ({problem}); choose another folder"
            ) from None
        return record


class Powers:
    """b_0(A) X, ..., b_K(A) X of features X (n, f) and, as a last column, of the ones; files that are read by rows.

    b_k is T_k, Chebyshev's polynomial, where A is symmetric (`kind` "chebyshev"), and the power A^k elsewhere
    ("taylor"). Made by `rdgraph.propagate`, and opened again by `Powers(folder)`, which reads the files once through to
    see that they are those that were written.

    >>> import rdgraph as rd, tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> made = rd.propagate(rd.generators.path(3), [[1.0], [0.0], [0.0]], degree=2, out=folder, normalisation="row")
    >>> Powers(folder).rows([0, 2])[:, :, 0]
    array([[1. , 0. ],
           [0. , 0. ],
           [0.5, 0.5]], dtype=float32)
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        record = PowersRecord.read(self.folder)
        if record is None or record.degree < 0:
            raise FileError(f"expected {WHAT} in {self.folder}, got none; make them with rdgraph.propagate")
        check_powers(self.folder, record)
        self._open(record)

    @classmethod
    def of(cls, folder: Path, record: PowersRecord) -> Powers:
        """Powers that were written or checked just now."""
        made = cls.__new__(cls)
        made.folder = folder
        made._open(record)
        return made

    def _open(self, record: PowersRecord) -> None:
        self.record = record
        self._files = [open_power(self.folder, k, record) for k in range(record.degree + 1)]

    def __repr__(self) -> str:
        return f"Powers({self.kind}: {self.nodes} nodes, {self.features} features, degree {self.degree})"

    @property
    def nodes(self) -> int:
        return self.record.nodes

    @property
    def features(self) -> int:
        return self.record.features

    @property
    def degree(self) -> int:
        """The last power."""
        return self.record.degree

    @property
    def kind(self) -> str:
        """chebyshev or taylor."""
        return self.record.kind

    def power(self, k: int) -> np.ndarray:
        """b_k(A) (X, 1) as it lies on the disk, (n, f + 1), read-only."""
        return self._files[k]

    def rows(self, nodes: Any, degree: int | None = None) -> np.ndarray:
        """The powers up to a degree at some nodes, (m,) or a mask (n,), float32: (degree + 1, m, f + 1)."""
        last = self.degree if degree is None else degree
        if not 0 <= last <= self.degree:
            raise InvalidArgument(f"expected a degree in 0..{self.degree}, got {last}; propagate further")
        chosen = np.asarray(nodes)
        chosen = np.flatnonzero(chosen) if chosen.dtype == bool and chosen.shape == (self.nodes,) else chosen
        chosen = chosen if chosen.size else np.zeros(0, dtype=np.int64)
        is_sound = chosen.dtype.kind in "iu" and chosen.ndim == 1
        if not is_sound or np.any((chosen < 0) | (chosen >= self.nodes)):
            raise InvalidArgument(f"expected numbers of nodes in 0..{self.nodes - 1}, got {nodes!r:.60}")
        found = np.empty((last + 1, len(chosen), self.features + 1), dtype=np.float32)
        order = np.argsort(chosen, kind="stable")  # the disk is read forwards
        for k in range(last + 1):
            found[k, order] = self._files[k][chosen[order]]
        return found


def power_path(folder: Path, k: int) -> Path:
    """The file of one power."""
    return folder / f"power_{k:03d}.npy"


def make_power(folder: Path, k: int, record: PowersRecord) -> np.ndarray:
    """A new file of one power, (n, f + 1), for which the disk has room: a full one would end the program later on."""
    path, shape = power_path(folder, k), (record.nodes, record.features + 1)
    try:
        made = np.lib.format.open_memmap(path, mode="w+", dtype=np.dtype(record.precision), shape=shape)
        if hasattr(os, "posix_fallocate"):
            with path.open("r+b") as file:
                os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
    except OSError:
        with suppress(OSError):
            path.unlink(missing_ok=True)
        raise
    return made


def open_power(folder: Path, k: int, record: PowersRecord, mode: str = "r") -> np.ndarray:
    """The file of one power as it is, (n, f + 1); the mode r+ is for writing."""
    path, shape = power_path(folder, k), (record.nodes, record.features + 1)
    remedy = f"remove {folder} and propagate again"
    try:
        found = np.load(path, mmap_mode="r+" if mode == "r+" else "r")
    except (OSError, ValueError, EOFError) as problem:
        got = problem.strerror if isinstance(problem, OSError) else None
        raise FileError(f"expected {WHAT} in {path}, got {got or problem}; {remedy}") from None
    if found.shape != shape or found.dtype != np.dtype(record.precision):
        raise FileError(f"expected {record.precision} {shape} in {path}, got {found.dtype} {found.shape}; {remedy}")
    return found


def check_powers(folder: Path, record: PowersRecord) -> None:
    """Raise unless the files hold what was written: they are read once through."""
    for k in range(max(done for _, _, done in record.groups) + 1):
        file = open_power(folder, k, record)
        for (first, end, _), sums in zip(record.groups, record.sums, strict=True):
            if k < len(sums) and sum_of(file[a:b, first:end] for a, b in row_blocks(file)) != sums[k]:
                raise FileError(
                    f"expected power {k} as it was written in {power_path(folder, k)}, got other numbers; remove "
                    f"{folder} and propagate again"
                )


def sum_of(parts: Iterator[np.ndarray]) -> int:
    """The checksum of rows that come in parts."""
    found = 0
    for part in parts:
        found = zlib.crc32(np.ascontiguousarray(part).data.cast("B") if part.size else b"", found)
    return found


def row_blocks(file: np.ndarray) -> list[tuple[int, int]]:
    """Spans of rows of about BLOCK bytes.

    >>> row_blocks(np.zeros((3, 2)))
    [(0, 3)]
    """
    size = max(1, BLOCK // max(file.shape[1] * file.itemsize, 1))
    return [(a, min(a + size, len(file))) for a in range(0, len(file), size)]
