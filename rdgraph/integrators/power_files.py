"""`Powers`: b_k(A) X of the features of a graph in a folder, a memory-mapped file for every k, read by rows."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from rdgraph.errors import FileError, InvalidArgument
from rdgraph.files import read_text, write_text

FORMAT, WHAT = "rdgraph powers 1", "powers of an operator on features"
MANIFEST = "powers.json"
#: Precisions that files may have.
PRECISIONS = ("float32", "float16")


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
            record = cls(**{f.name: words[f.name] for f in fields(cls)})
            if record.precision not in PRECISIONS or not record.groups:
                raise ValueError("other words")
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as problem:
            raise FileError(
                f"expected {WHAT} in {path}, got something else ({problem}); choose another folder"
            ) from None
        return record


class Powers:
    """b_0(A) X, ..., b_K(A) X of features X (n, f) and, as a last column, of the ones; files that are read by rows.

    b_k is T_k, Chebyshev's polynomial, where A is symmetric (`kind` "chebyshev"), and the power A^k elsewhere
    ("taylor"). Made by `rdgraph.propagate`, and opened again by `Powers(folder)`.

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
        self.record = record
        self._files = [open_power(self.folder, k, record, "r") for k in range(record.degree + 1)]

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


def open_power(folder: Path, k: int, record: PowersRecord, mode: str) -> np.ndarray:
    """The file of one power, (n, f + 1); the mode w+ makes it anew."""
    path = folder / f"power_{k:03d}.npy"
    shape = (record.nodes, record.features + 1)
    try:
        if mode == "w+":
            return np.lib.format.open_memmap(path, mode=mode, dtype=np.dtype(record.precision), shape=shape)
        found = np.load(path, mmap_mode="r+" if mode == "r+" else "r")
    except (OSError, ValueError) as problem:
        raise FileError(f"expected {WHAT} in {path}, got {problem}; propagate again") from None
    if found.shape != shape or found.dtype != np.dtype(record.precision):
        raise FileError(
            f"expected {record.precision} {shape} in {path}, got {found.dtype} {found.shape}; propagate again"
        )
    return found
