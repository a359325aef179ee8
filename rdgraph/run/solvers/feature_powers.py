"""`propagate`: powers of A applied to features, once, out of core; linear networks are trained on the result.

The flow of a linear equation is H(T) = sum_k c_k b_k(A) H0. With a linear encoder H0 = X W + 1 b, and coefficients c_k
that vary along channels but not along nodes, A is applied to X and the ones alone: b_k(A) H0 = (b_k(A) X) W + (b_k(A)
1) b. These products are written to disk, power by power. Encoder, coefficients and decoder are then trained on rows of
them, without the graph.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array, issparse
from torch import Tensor

from rdgraph.errors import FileError, InvalidArgument, NotApplicable, UnknownName
from rdgraph.files import read_text, unwritable, write_text
from rdgraph.graphs.edges import read_whole
from rdgraph.graphs.graph import Graph
from rdgraph.graphs.kernels.device_names import read_device
from rdgraph.graphs.kernels.devices import free_memory
from rdgraph.graphs.operator import Operator

# ---------------------------------------------------------------------- power files
# `Powers`: b_k(A) X of the features of a graph in a folder, a memory-mapped file for every k, read by rows.

FORMAT, WHAT = "rdgraph powers 2", "powers of an operator on features"
MANIFEST = "powers.json"
#: Precisions of the files.
PRECISIONS = ("float32", "float16")
#: Approximate number of bytes read or written at a time.
BLOCK = 1 << 26


@dataclass(frozen=True)
class PowersRecord:
    """The content of a folder: the powers' operator, features and kind, and the progress of every group of columns."""

    nodes: int
    features: int
    kind: str
    normalisation: str
    self_loops: float
    precision: str
    #: Digests of the operator and of the features.
    operator: str
    x: str
    #: First column, end, and the last written power, -1 for none.
    groups: tuple[tuple[int, int, int], ...]
    #: Checksums of every group, power by power.
    sums: tuple[tuple[int, ...], ...] = ()

    def written(self, number: int, k: int, checksum: int) -> PowersRecord:
        """The record with power k of a group of columns added, with its checksum."""
        groups, sums = list(self.groups), list(self.sums or ((),) * len(self.groups))
        groups[number] = (*groups[number][:2], k)
        sums[number] = (*sums[number], checksum)
        return replace(self, groups=tuple(groups), sums=tuple(sums))

    @property
    def degree(self) -> int:
        """The last power that all columns have."""
        return min(done for _, _, done in self.groups)

    def write(self, folder: Path) -> None:
        """Write the record atomically."""
        write_text(folder / MANIFEST, json.dumps({"format": FORMAT, **asdict(self)}, indent=1) + "\n", durable=True)

    @classmethod
    def read(cls, folder: Path) -> PowersRecord | None:
        """The record of a folder; None if it has none."""
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
    ("taylor"). Made by `rdgraph.run.propagate`, and opened again by `Powers(folder)`, which reads the files once
    through to see that they are those that were written.

    >>> from pathlib import Path
    >>> import rdgraph as rd, tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> made = rd.run.propagate(rd.generators.path(3), [[1.0], [0.0], [0.0]], degree=2, out=folder, normalisation="row")
    >>> rd.run.Powers(folder).rows([0, 2])[:, :, 0]
    array([[1. , 0. ],
           [0. , 0. ],
           [0.5, 0.5]], dtype=float32)
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        record = PowersRecord.read(self.folder)
        if record is None or record.degree < 0:
            raise FileError(f"expected {WHAT} in {self.folder}, got none; make them with rdgraph.run.propagate")
        check_powers(self.folder, record)
        self._open(record)

    @classmethod
    def of(cls, folder: Path, record: PowersRecord) -> Powers:
        """Powers of files that have just been written or checked."""
        powers = cls.__new__(cls)
        powers.folder = folder
        powers._open(record)
        return powers

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
        """b_k(A) (X, 1) as stored, (n, f + 1), read-only."""
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
        rows = np.empty((last + 1, len(chosen), self.features + 1), dtype=np.float32)
        order = np.argsort(chosen, kind="stable")  # the disk is read forwards
        for k in range(last + 1):
            rows[k, order] = self._files[k][chosen[order]]
        return rows


def power_path(folder: Path, k: int) -> Path:
    """The file of one power."""
    return folder / f"power_{k:03d}.npy"


def make_power(folder: Path, k: int, record: PowersRecord) -> np.ndarray:
    """A new file of one power, (n, f + 1), with its disk space allocated: a full disk would abort the run later."""
    path, shape = power_path(folder, k), (record.nodes, record.features + 1)
    try:
        power = np.lib.format.open_memmap(path, mode="w+", dtype=np.dtype(record.precision), shape=shape)
        if hasattr(os, "posix_fallocate"):
            with path.open("r+b") as file:
                os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
    except OSError:
        with suppress(OSError):
            path.unlink(missing_ok=True)
        raise
    return power


def open_power(folder: Path, k: int, record: PowersRecord, mode: str = "r") -> np.ndarray:
    """The existing file of one power, (n, f + 1); mode r+ allows writing."""
    path, shape = power_path(folder, k), (record.nodes, record.features + 1)
    remedy = f"remove {folder} and propagate again"
    try:
        power = np.load(path, mmap_mode="r+" if mode == "r+" else "r")
    except (OSError, ValueError, EOFError) as problem:
        got = problem.strerror if isinstance(problem, OSError) else None
        raise FileError(f"expected {WHAT} in {path}, got {got or problem}; {remedy}") from None
    if power.shape != shape or power.dtype != np.dtype(record.precision):
        raise FileError(f"expected {record.precision} {shape} in {path}, got {power.dtype} {power.shape}; {remedy}")
    return power


def check_powers(folder: Path, record: PowersRecord) -> None:
    """Raise unless the checksums of all files agree; reads them completely."""
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
    checksum = 0
    for part in parts:
        checksum = zlib.crc32(np.ascontiguousarray(part).data.cast("B") if part.size else b"", checksum)
    return checksum


def row_blocks(file: np.ndarray) -> list[tuple[int, int]]:
    """Spans of rows of about BLOCK bytes.

    >>> row_blocks(np.zeros((3, 2)))
    [(0, 3)]
    """
    size = max(1, BLOCK // max(file.shape[1] * file.itemsize, 1))
    return [(a, min(a + size, len(file))) for a in range(0, len(file), size)]


# ---------------------------------------------------------------------- feature powers
#: The share of free memory for the active columns, and the number of states held of them.
SHARE, HELD = 0.5, 5


def propagate(
    graph: Graph | Operator,
    features: Any,
    *,
    degree: int,
    out: str | Path,
    normalisation: str = "symmetric",
    self_loops: float = 0.0,
    precision: str = "float32",
    device: Any = "cpu",
    memory: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Powers:
    """Write the powers b_0(A) X, ..., b_K(A) X to a folder: every linear flow on this graph is a combination of them.

    Columns go through all products in groups that fit the memory; features are read, and powers are written, in blocks
    of nodes. An interrupted call continues where it stopped, and a higher degree continues from the last one.

    Args:
        graph: A graph, or an operator that is normalised.
        features: X (n, f): numpy, also memory-mapped, or scipy sparse.
        degree: The last power.
        out: The folder of the files, power_000.npy and so on, (n, f + 1) each; the last column is b_k(A) 1.
        normalisation: The normalisation of A; b_k is T_k where A is symmetric, else A^k.
        self_loops: The weight of self-loops that are added to a graph.
        precision: float32, or float16 for half the disk; products are computed in float32.
        device: Where products are taken.
        memory: Bytes for the active columns; half of what is free on the device by default.
        progress: Called with the number of finished products of groups, and their total.

    Returns:
        The powers; `Powers(out)` opens them again.

    Raises:
        NotApplicable: For an operator that is not normalised.
        InvalidArgument: For no graph, a negative degree, no memory, a device that torch cannot use, or features that
            are not numbers (n, f), not finite, or too large for the precision.
        FileError: For a folder that cannot be written, or that holds the powers of something else.

    >>> from pathlib import Path
    >>> import numpy as np, tempfile, rdgraph as rd
    >>> out = Path(tempfile.mkdtemp())
    >>> rd.run.propagate(rd.generators.ring(5), np.eye(5, 2), degree=3, out=out)
    Powers(chebyshev: 5 nodes, 2 features, degree 3)
    """
    degree, device = read_whole(degree, 0, "degree"), read_device(device)
    if precision not in PRECISIONS:
        raise UnknownName("precision", precision, PRECISIONS)
    operator = graph
    if isinstance(operator, Graph):
        operator = operator.operator(normalisation, self_loops=self_loops, dtype=torch.float32, device=device)
    if not isinstance(operator, Operator):
        raise InvalidArgument(f"expected a graph or an operator, got {graph!r:.60}")
    if not operator.is_normalised or operator.batch:
        raise NotApplicable(
            f"expected one normalised operator, got {operator}; take the normalisation symmetric, row or column"
        )
    operator = operator.to(device, torch.float32)
    x = _read_features(features, operator.num_nodes)
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise unwritable(folder, problem) from None
    record = _record(folder, operator, x, precision, memory)
    return Powers.of(folder, _Propagation(folder, operator, x, record, degree, progress).run())


def _read_features(features: Any, nodes: int) -> np.ndarray | csr_array:
    x = csr_array(features) if issparse(features) else np.asarray(features)
    if x.ndim != 2 or x.shape[0] != nodes or x.dtype.kind not in "biuf":
        raise InvalidArgument(f"expected features ({nodes}, f), one row of numbers per node, got {x.dtype} {x.shape}")
    return x


def _record(folder: Path, operator: Operator, x: Any, precision: str, memory: int | None) -> PowersRecord:
    """The record of these powers in the folder, or a new one."""
    pattern = operator.pattern
    kind = "chebyshev" if operator.is_symmetric else "taylor"
    whose = _digest(t.cpu().numpy() for t in (pattern.indptr, pattern.indices, operator.weights.detach()))
    parts = (x.indptr, x.indices, x.data) if issparse(x) else _blocks_of(x)
    n, f = x.shape
    room = int(SHARE * free_memory(operator.device)) if memory is None else read_whole(memory, 1, "memory")
    width = max(1, room // (4 * HELD * max(n, 1)))
    groups = tuple((a, min(a + width, f + 1), -1) for a in range(0, f + 1, width))
    fresh = PowersRecord(
        n, f, kind, operator.normalisation, operator.self_loops, precision, whose, _digest(parts), groups
    )
    known = PowersRecord.read(folder)
    if known is None:
        return fresh
    if replace(known, groups=(), sums=()) != replace(fresh, groups=(), sums=()):
        raise FileError(
            f"expected the powers of this graph and these features in {folder}, got those of others; choose another "
            "folder"
        )
    check_powers(folder, known)
    return known


def _digest(parts: Any) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        array = np.ascontiguousarray(part)
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(array.data if array.size else b"")
    return digest.hexdigest()


def _blocks_of(x: np.ndarray) -> Iterator[np.ndarray]:
    return (x[a:b] for a, b in _blocks(len(x), x.shape[1] * x.itemsize))


def _blocks(count: int, row_bytes: int) -> list[tuple[int, int]]:
    """Spans of rows of about BLOCK bytes."""
    size = max(1, BLOCK // max(row_bytes, 1))
    return [(a, min(a + size, count)) for a in range(0, count, size)]


class _Propagation:
    """The remaining products of a call."""

    def __init__(
        self, folder: Path, operator: Operator, x: Any, record: PowersRecord, degree: int,
        progress: Callable[[int, int], object] | None,
    ) -> None:  # fmt: skip
        self.folder, self.operator, self.x, self.record, self.degree = folder, operator, x, record, degree
        self.progress = progress or (lambda done, total: None)
        #: The largest number of the precision.
        self.largest = float(np.finfo(record.precision).max)

    def run(self) -> PowersRecord:
        """Compute all remaining powers; returns the final record."""
        for number in range(len(self.record.groups)):
            if self.record.groups[number][2] < self.degree:
                self._group(number)
        return self.record

    def _group(self, number: int) -> None:
        """All powers of some columns; float16 powers are recomputed from the features."""
        first, end, done = self.record.groups[number]
        wide = self.record.precision == "float32"
        start = done if wide and done >= 1 else 0
        if start:
            newest, older = self._stored(start, first, end), self._stored(start - 1, first, end)
        else:
            newest = older = self._start(first, end)
            self._check_smallness(newest, first)
            if done < 0:
                self._write(0, number, newest)
        two, minus = (newest.new_tensor(v) for v in (2.0, -1.0))
        for k in range(start + 1, self.degree + 1):
            is_recurrent = self.record.kind == "chebyshev" and k > 1
            terms = [(minus, older)] if is_recurrent else []
            older, newest = newest, self.operator.product(newest, two if is_recurrent else None, terms)
            if k > done:
                self._write(k, number, newest)

    def _start(self, first: int, end: int) -> Tensor:
        """Columns of (X, 1), float32 on the device."""
        n, f = self.x.shape
        last = min(end, f)
        start = torch.ones((n, end - first), dtype=torch.float32, device=self.operator.device)
        if last <= first:
            return start
        if issparse(self.x):
            columns = csr_array(self.x[:, first:last])
        for a, b in _blocks(n, 4 * (last - first)):
            block = columns[a:b].toarray() if issparse(self.x) else self.x[a:b, first:last]
            rows = torch.from_numpy(np.array(block, dtype=np.float32))
            if not bool(torch.isfinite(rows).all()):
                raise InvalidArgument(f"expected finite features, got others among the nodes {a}..{b - 1}")
            start[a:b, : last - first] = rows.to(start.device)
        return start

    def _stored(self, k: int, first: int, end: int) -> Tensor:
        """Columns of a stored power."""
        file = open_power(self.folder, k, self.record)
        columns = torch.empty((len(file), end - first), dtype=torch.float32, device=self.operator.device)
        for a, b in _blocks(len(file), 4 * (end - first)):
            columns[a:b] = torch.from_numpy(np.array(file[a:b, first:end], dtype=np.float32)).to(columns.device)
        return columns

    def _write(self, k: int, number: int, values: Tensor) -> None:
        """Write columns of a power to its file, then update the record."""
        if not bool((values.abs() <= self.largest).all()):
            raise InvalidArgument(
                f"expected numbers up to {self.largest:g}, which {self.record.precision} holds, got larger ones in "
                f"power {k}; scale the features, or take float32"
            )
        first, end, _ = self.record.groups[number]
        is_new = all(done < k for _, _, done in self.record.groups)
        try:
            power = make_power(self.folder, k, self.record) if is_new else open_power(self.folder, k, self.record, "r+")
            file: Any = power
            checksum = sum_of(self._put(file, values, first, end))
            file.flush()
        except FileError:
            raise
        except OSError as problem:
            raise unwritable(self.folder, problem) from None
        self.record = self.record.written(number, k, checksum)
        self.record.write(self.folder)
        groups = self.record.groups
        total = (self.degree + 1) * len(groups)
        self.progress(sum(min(done, self.degree) + 1 for _, _, done in groups), total)

    def _put(self, file: np.ndarray, values: Tensor, first: int, end: int) -> Iterator[np.ndarray]:
        """Write columns block by block; yields each block as stored."""
        for a, b in row_blocks(file):
            block = values[a:b].cpu().numpy().astype(file.dtype)
            file[a:b, first:end] = block
            yield block

    def _check_smallness(self, start: Tensor, first: int) -> None:
        """Raise if a column underflows in the precision of the files."""
        largest = start.abs().amax(0)
        lost = (largest > 0) & (largest < float(np.finfo(self.record.precision).tiny))
        if bool(lost.any()):
            column = int(lost.nonzero()[0, 0])
            raise InvalidArgument(
                f"expected features from {np.finfo(self.record.precision).tiny:.2g} on, which {self.record.precision} "
                f"holds, got at most {float(largest[column]):.2g} in column {first + column}; scale the features, or "
                "take float32"
            )
