"""Large data sets from array files: npy, npz and parquet, read without parsing text.

Edges: an npy file (2, E), sources then targets; an npz file with edge_index (2, E) and optionally weight (E,); or a
parquet file with the columns source, target and optionally weight. Nodes: an npz file with y (n,) and optionally
x (n, f) and masks train, val, test, (n,) or (splits, n); an npy file with only x, which stays on disk; or a parquet
file with a column of labels, optional split columns, and features. Edges refer to nodes by row or by the ids of a
parquet column.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, overload

import numpy as np

from gread.datasets.interchange import Pieces, Reading, assemble, encode_labels
from gread.datasets.meta import Meta
from gread.datasets.preparation import ERROR, FeatureChoices, FeatureColumns, Preparation, is_missing
from gread.datasets.splits import PARTS, Masks, split_names
from rdgraph import Graph
from rdgraph.errors import FileError, MissingDependency
from rdgraph.files import naming, reason_of
from rdgraph.graphs.edges import BLOCK, EdgeKeys
from rdgraph.graphs.graph_files import column_hint, edge_columns

# ---------------------------------------------------------------------- numpy files
# Arrays of npy and npz files: whole, memory-mapped, or edges block by block; Python objects are refused.

NPY, NPZ = ".npy", ".npz"
#: The array of the edges in an npz file.
EDGES = "edge_index"
#: An end (0 for sources, 1 for targets), the number of the first edge, and the nodes of consecutive edges.
Block = tuple[int, int, np.ndarray]


def is_npy(path: Path) -> bool:
    """Whether a file holds a single array, by its name."""
    return path.suffix.lower() == NPY


def archive(path: Path, needed: Sequence[str], known: Sequence[str]) -> dict[str, np.ndarray]:
    """Arrays of an npz file: all `needed` ones, and the `known` ones that exist."""
    with _reading(path), path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        names = list(arrays.files)
        selected = {name: arrays[name] for name in (*needed, *known) if name in names}
    for name in needed:
        if name not in selected:
            raise _lacking(path, name, names)
    return selected


def read_header(member: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, Fortran order and dtype from the header of an array."""
    version = np.lib.format.read_magic(member)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise ValueError(f"version {version} of the npy format")
    return readers[version](member)


def edge_count(path: Path) -> int:
    """The number E of edges (2, E) in an npy file, or an npz file with edge_index."""
    with _reading(path), _opened(path) as (file, size):
        shape, _, kind = read_header(file)
        if len(shape) != 2 or shape[0] != 2 or kind.kind not in "iu":
            raise FileError(f"expected whole numbers (2, E), sources then targets, in {path}, got {kind} {shape}")
        if size < 2 * shape[1] * kind.itemsize:
            raise ValueError(f"{size} bytes for {2 * shape[1]} numbers")
    return int(shape[1])


def edge_blocks(path: Path) -> Iterator[Block]:
    """Yield the edges (2, E) of an npy file, or an npz file with edge_index, in blocks."""
    with _reading(path), _opened(path) as (file, _):
        (_, count), is_fortran, kind = read_header(file)
        ends = (None,) if is_fortran else (0, 1)
        for end in ends:
            for start in range(0, count, BLOCK):
                width = min(BLOCK, count - start)
                content = file.read((2 if is_fortran else 1) * width * kind.itemsize)
                block = np.frombuffer(content, dtype=kind).reshape(width, -1)
                if end is not None:
                    yield end, start, block[:, 0]
                else:
                    yield from ((k, start, block[:, k]) for k in (0, 1))


@contextmanager
def _opened(path: Path) -> Iterator[tuple[IO[bytes], int]]:
    """The array of the edges as a stream, and its size in bytes."""
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
    """Within the block, problems with a file raise a FileError with its name."""
    try:
        yield
    except FileError:  # which names the file already
        raise
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error) as problem:
        reason = "pickled objects, which are never loaded" if "pickle" in str(problem) else problem
        expected = "an array of numbers" if is_npy(path) else "an npz file of plain arrays"
        remedy = "save it with numpy.save" if is_npy(path) else "save it again"
        raise FileError(f"expected {expected} in {path}, got {reason}; {remedy}") from None
    except OSError as problem:
        raise FileError(f"expected a file that can be read, got {path}: {reason_of(problem)}; check its name") from None


def _lacking(path: Path, name: str, names: Sequence[str]) -> FileError:
    got = ", ".join(names) or "none"
    return FileError(f"expected an array {name} in {path}, got {got}; save it with numpy.savez")


# ---------------------------------------------------------------------- parquet table
# `ParquetTable`: a parquet file, read column by column and in blocks of rows.

#: Rows of a block; blocks are larger if ids are looked up, since each builds a table of all ids.
BATCH, LOOKED_UP = 1 << 16, 1 << 18
#: The remedy for missing numbers among the features.
FILL = "leave it out, fill it, or take the mean of the column (missing='mean')"


class IdTexts(Sequence[str]):
    """Ids as texts that are created on access; `ids` is an arrow array.

    >>> import pyarrow as pa
    >>> texts = IdTexts(pa.array([7, 30]))
    >>> list(texts), texts[-1], texts[:1]
    (['7', '30'], '30', ('7',))
    """

    def __init__(self, ids: Any) -> None:
        self._ids = ids

    def __len__(self) -> int:
        return len(self._ids)

    @overload
    def __getitem__(self, which: int) -> str: ...

    @overload
    def __getitem__(self, which: slice) -> Sequence[str]: ...

    def __getitem__(self, which: int | slice) -> str | Sequence[str]:
        ids = self._ids[which]
        return tuple(map(str, ids.to_pylist())) if isinstance(which, slice) else str(ids.as_py())

    def __iter__(self) -> Iterator[str]:
        return (text for start in range(0, len(self), BATCH) for text in self[start : start + BATCH])

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, Sequence) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))


class ParquetTable:
    """A parquet file whose columns are read one by one; `needed` as for `header_columns` of graph files."""

    def __init__(self, path: Path, needed: Mapping[str, str]) -> None:
        try:
            from pyarrow import ArrowException, parquet
        except ImportError:
            raise MissingDependency("parquet files need pyarrow: pip install 'rdgraph[gread]'") from None
        self.path = path
        try:
            self.file = parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20)
        except OSError as problem:
            raise FileError(f"expected a file that can be read, got {path}: {problem}; check its name") from None
        except ArrowException as problem:
            raise FileError(f"expected a parquet file in {path}, got {problem}; save it again") from None
        self.names: list[str] = self.file.schema_arrow.names
        self.rows = int(self.file.metadata.num_rows)
        for name, remedy in needed.items():
            if name not in self.names:
                hint = column_hint(name, self.names, remedy)
                raise FileError(f"expected a column {name!r} in {path}, got {', '.join(self.names)}; {hint}")

    def column(self, name: str) -> Any:
        return self.file.read(columns=[name], use_threads=False)[name]

    def is_category(self, name: str, choices: FeatureChoices) -> bool:
        """Whether a column is categorical."""
        kind = str(self.file.schema_arrow.field(name).type)
        is_text = kind in ("string", "large_string", "string_view") or kind.startswith("dictionary<values=string")
        return name in choices.categories or (is_text and choices.finds_categories)

    def words(self, name: str, choices: FeatureChoices) -> list[str | None]:
        """A categorical column, with None for missing values."""
        values = self.column(name).to_pylist()
        words = [None if value is None or is_missing(str(value)) else str(value) for value in values]
        if choices.missing == ERROR and None in words:
            raise FileError(
                f"expected a category in row {words.index(None)}, column {name!r} of {self.path}, got an empty cell; "
                "leave the column out, fill it, or treat it as no category (missing='mean')"
            )
        return words

    def batches(self, name: str, rows: int = BATCH) -> Iterator[Any]:
        """Yield a column as arrow arrays of `rows` rows; releases their memory at the end."""
        from pyarrow import default_memory_pool

        for batch in self.file.iter_batches(rows, columns=[name], use_threads=False):
            yield batch.column(0)
        default_memory_pool().release_unused()

    def number_blocks(self, name: str, may_miss: bool = False, remedy: str = FILL) -> Iterator[np.ndarray]:
        """A numeric column in blocks; missing numbers are an error, or nan with `may_miss`."""
        kind = self.file.schema_arrow.field(name).type
        for part in self.batches(name):
            is_whole = may_miss or not part.null_count
            values = np.asarray(part.to_numpy(zero_copy_only=False)) if is_whole else np.array([None])
            if values.dtype.kind not in "biuf":
                got = "empty cells" if part.null_count else str(kind)
                raise FileError(f"expected numbers in column {name!r} of {self.path}, got {got}; {remedy}")
            yield values

    def numbers(self, name: str, may_miss: bool = False) -> np.ndarray:
        """A numeric column as one array."""
        numbers, done = None, 0
        for values in self.number_blocks(name, may_miss):
            if numbers is None or (numbers.dtype.kind != "f" and values.dtype.kind == "f"):
                wider = np.empty(self.rows, dtype=values.dtype)
                wider[:done] = 0 if numbers is None else numbers[:done]
                numbers = wider
            numbers[done : done + len(values)] = values
            done += len(values)
        return np.empty(0) if numbers is None else numbers


# ---------------------------------------------------------------------- edge files
# The graph of npy, npz and parquet files; edges are read block by block, so that they are never in memory twice.

PARQUET = ".parquet"
#: The remedy for edges that do not refer to rows.
ROWS = "write the row of a node in every cell, or give nodes an id"


#: The number of edges, their ends in blocks, and a reader of their weights, None without weights.
Edges = tuple[int, Iterator[Block], Callable[[], np.ndarray] | None]


def read_graph(path: Path, weight: str | None, ids: Any, nodes: int, directed: bool, duplicates: str = "once") -> Graph:
    """Read a graph with each edge once, in both directions unless directed; `duplicates` as in `Graph.from_edges`.

    `ids` is an arrow array of the node ids in the edge file, None if edges refer to the rows of the nodes.
    """
    is_table = path.suffix.lower() == PARQUET
    count, blocks, weights = (_parquet_edges if is_table else _numpy_edges)(path, weight, ids)
    with naming(path):
        keys = EdgeKeys(count, nodes, both_ways=not directed)
        for end, start, block in blocks:
            keys.add(end, start, block)
        return Graph.from_keys(keys, weights() if weights else None, duplicates=duplicates)


def _numpy_edges(path: Path, weight: str | None, ids: Any) -> Edges:
    if ids is not None:
        raise FileError(f"expected edges in a parquet file for nodes with ids, got {path.name}; leave out the ids")
    count = edge_count(path)
    is_archive = path.suffix.lower() == NPZ
    weights = archive(path, (), ("weight",)).get("weight") if is_archive and weight is not None else None
    return count, edge_blocks(path), None if weights is None else lambda: weights


def _parquet_edges(path: Path, weight: str | None, ids: Any) -> Edges:
    table = ParquetTable(path, edge_columns(weight))
    has_weights = weight is not None and weight in table.names

    def blocks() -> Iterator[Block]:
        for end, name in enumerate(("source", "target")):
            start = 0
            for block in _rows(table, name) if ids is None else _looked_up(table, name, ids):
                yield end, start, block
                start += len(block)

    return table.rows, blocks(), (lambda: table.numbers(str(weight))) if has_weights else None


def _rows(table: ParquetTable, name: str) -> Iterator[np.ndarray]:
    """The node rows of a column, in blocks."""
    for block in table.number_blocks(name, remedy=ROWS):
        if block.dtype.kind not in "iu":
            raise FileError(
                f"expected rows of nodes in column {name!r} of {table.path}, got {block.dtype}; give nodes an id"
            )
        yield block


def _looked_up(table: ParquetTable, name: str, ids: Any) -> Iterator[np.ndarray]:
    """The node rows of the ids in a column, in blocks."""
    import pyarrow as pa
    from pyarrow import compute

    done = 0
    for column in table.batches(name, LOOKED_UP):
        try:
            found_rows = compute.index_in(column, value_set=ids)
        except pa.ArrowException as problem:
            raise FileError(
                f"expected ids like those of the nodes in column {name!r} of {table.path}, got {problem}"
            ) from None
        if found_rows.null_count:
            row = int(compute.index(compute.is_null(found_rows), True).as_py())
            raise FileError(
                f"{table.path}, row {done + row}, column {name!r}: expected the id of a node, got "
                f"{column[row].as_py()!r}; add the node to the other file or leave the edge out"
            )
        done += len(column)
        yield np.asarray(found_rows.to_numpy())


# ---------------------------------------------------------------------- array files
SUFFIXES = (NPY, NPZ, PARQUET)


def is_array_file(path: str | Path) -> bool:
    """Whether a file is an array file, by its name.

    >>> is_array_file("edges.parquet"), is_array_file("edges.csv")
    (True, False)
    """
    return Path(path).suffix.lower() in SUFFIXES


def read_array_files(edge_file: Path, node_file: Path, id_column: str, how: Reading) -> tuple[Pieces, Preparation]:
    """Read a data set from array files, see `NodeData.from_files`; column names are those of parquet files."""
    for path in (edge_file, node_file):
        if not is_array_file(path):
            raise FileError(
                f"expected two files of arrays, {', '.join(SUFFIXES)}, or none, got {path.name} with one; convert it"
            )
    is_table = node_file.suffix.lower() == PARQUET
    nodes = _parquet_nodes(node_file, how.label, id_column, how.choices) if is_table else _array_nodes(node_file)
    if not len(nodes.y):
        raise FileError(f"expected a row for every node in {node_file}, got none; write the nodes")
    # Features are read last, so that they are not in memory while the edges are sorted.
    graph = read_graph(edge_file, how.weight, nodes.ids, len(nodes.y), bool(how.directed), how.duplicates)
    given = nodes.masks if how.masks is None else how.masks
    columns = nodes.features() or FeatureColumns((), np.empty((len(nodes.y), 0)))
    with naming(node_file):
        preparation = how.preparation or Preparation.fit(columns, how.choices)
        x = preparation.apply(columns)
    meta = Meta(
        node_file.stem, variant=(("undirected", str(not how.directed).lower()),), classes=nodes.classes,
        split=f"masks of {node_file.name}" if how.masks is None and given is not None else "",
        notes=preparation.sentences(), cautions=preparation.unseen(columns),
    )  # fmt: skip
    return assemble(_named(graph, nodes.ids), x, nodes.y, given, meta), preparation


def _named(graph: Graph, ids: Any) -> Graph:
    """The graph with node ids, unless they equal the node numbers."""
    if ids is None or all(name == str(k) for k, name in enumerate(IdTexts(ids))):
        return graph
    return Graph(graph.edge_index, graph.weight, graph.num_nodes, IdTexts(ids))


@dataclass(frozen=True, eq=False)
class _Nodes:
    """The node data, and a reader of the features; `ids` is an arrow array, or None."""

    y: np.ndarray
    features: Callable[[], FeatureColumns | None]
    masks: Masks | None = None
    classes: tuple[str, ...] = ()
    ids: Any = None


def _array_nodes(path: Path) -> _Nodes:
    if is_npy(path):
        with _reading(path):
            x = np.load(path, mmap_mode="r", allow_pickle=False)
        if x.ndim != 2 or x.dtype.kind not in "biuf":
            raise FileError(f"expected features (n, f) in {path}, got {x.dtype} {x.shape}")
        return _Nodes(np.full(len(x), -1), lambda: FeatureColumns.of_array(x))
    arrays = archive(path, ("y",), tuple(PARTS))
    if arrays["y"].ndim != 1:
        raise FileError(f"expected labels (n,), one per node, in {path}, got shape {arrays['y'].shape}")
    parts = [arrays.get(name) for name in PARTS]
    if any(part is None for part in parts) and any(part is not None for part in parts):
        raise FileError(f"expected the masks {', '.join(PARTS)} in {path}, or none of them, got some; add the others")

    def features() -> FeatureColumns | None:
        x = archive(path, (), ("x",)).get("x")
        if x is not None and (x.ndim != 2 or len(x) != len(arrays["y"]) or x.dtype.kind not in "biuf"):
            raise FileError(
                f"expected numeric features ({len(arrays['y'])}, f), one row per label, in {path}, got {x.dtype} of "
                f"shape {x.shape}"
            )
        return None if x is None else FeatureColumns.of_array(x)

    with naming(path):
        whole = [part for part in parts if part is not None]
        return _Nodes(arrays["y"], features, Masks(*whole) if whole else None)


def _parquet_nodes(path: Path, label: str | None, key: str, choices: FeatureChoices) -> _Nodes:
    chosen = choices.features
    named = {name: argument for name, argument in ((key, "id"), (label, "label")) if name not in (None, argument)}
    table = ParquetTable(path, choices.needed | {str(k): f"name the column with {v}=NAME" for k, v in named.items()})
    splits = split_names(table.names)
    special = {key, label, *splits}
    wanted = [name for name in table.names if name not in special] if chosen is None else list(chosen)

    def features() -> FeatureColumns:
        words = {name: table.words(name, choices) for name in wanted if table.is_category(name, choices)}
        plain = [name for name in wanted if name not in words]
        x = np.empty((table.rows, len(plain)), dtype=np.float32)
        for k, name in enumerate(plain):
            x[:, k] = table.numbers(name, may_miss=choices.missing != ERROR)
        return FeatureColumns(tuple(wanted), x, words)

    classes: tuple[str, ...] = ()
    y = np.full(table.rows, -1)
    if label is not None and label in table.names:
        y, classes = _labels(table.column(label))
    ids: Any = table.column(key).combine_chunks() if key in table.names else None
    if hasattr(ids, "dictionary_decode"):
        ids = ids.dictionary_decode()
    if ids is not None and len(ids.unique()) != len(ids):
        raise FileError(f"expected a unique id for every node in column {key!r} of {path}, got duplicates")
    return _Nodes(y, features, _parquet_masks(table, splits), classes, ids)


def _labels(column: Any) -> tuple[np.ndarray, tuple[str, ...]]:
    """Labels: whole numbers from 0 unchanged, anything else numbered."""
    if str(column.type).startswith(("int", "uint")) and not column.null_count:
        labels = np.asarray(column.to_numpy()).astype(np.int64)
        if labels.size and labels.min() >= -1:
            return labels, ()
    return encode_labels(column.to_pylist())


def _parquet_masks(table: ParquetTable, splits: list[str]) -> Masks | None:
    if not splits:
        return None
    parts = np.zeros((3, len(splits), table.rows), dtype=bool)
    for k, name in enumerate(splits):
        words = np.array(["" if word is None else str(word).lower() for word in table.column(name).to_pylist()])
        for part, known in enumerate(PARTS):
            parts[part, k] = words == known
        odd = ~parts[:, k].any(0) & (words != "")
        if odd.any():
            raise FileError(
                f"{table.path}, row {int(odd.argmax())}, column {name!r}: expected train, val, test or nothing, got "
                f"{str(words[odd.argmax()])!r}; write one of them"
            )
    return Masks(*parts)
