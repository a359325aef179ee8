"""The pieces of a large data set from files of arrays: npy and npz of numpy, and parquet; nothing goes text by text.

Edges: an npy file (2, E), sources then targets; an npz file with edge_index (2, E) and maybe weight (E,); or a parquet
file with the columns source, target and maybe weight. Nodes: an npz file with y (n,) and maybe x (n, f) and masks
train, val, test, (n,) or (splits, n); an npy file with x alone, which stays on the disk; or a parquet file with a
column of labels, maybe split columns, and features. Ends of edges are rows of the nodes, or ids of a parquet's column.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gread.datasets.interchange import Pieces, assemble, encode_labels
from gread.datasets.masks import PARTS, Masks
from gread.datasets.meta import Meta
from gread.datasets.preparation import ERROR, FeatureChoices, FeatureColumns, Preparation, is_missing
from gread.datasets.tables import split_names
from rdgraph import Graph
from rdgraph.errors import FileError, InvalidArgument, MissingDependency, RdgraphError
from rdgraph.files import reason_of

#: Rows of a parquet file that are looked at together.
BATCH = 1 << 16
#: What helps where numbers are missing among the features.
FILL = "leave it out, fill it, or take the mean of the column (missing='mean', --missing mean)"
NPY, NPZ, PARQUET = SUFFIXES = (".npy", ".npz", ".parquet")


def is_array_file(path: str | Path) -> bool:
    """Whether a file is one of arrays, by its name.

    >>> is_array_file("edges.parquet"), is_array_file("edges.csv")
    (True, False)
    """
    return Path(path).suffix.lower() in SUFFIXES


def read_array_files(
    edges: str | Path,
    nodes: str | Path,
    *,
    label: str | None = "label",
    id: str = "id",  # noqa: A002  the name of the column
    choices: FeatureChoices,
    preparation: Preparation | None,
    weight: str | None = "weight",
    directed: bool = False,
    masks: Masks | None = None,
) -> tuple[Pieces, Preparation]:
    """See `NodeData.from_files`; the names of columns are those of parquet files."""
    edge_file, node_file = Path(edges), Path(nodes)
    for path in (edge_file, node_file):
        if not is_array_file(path):
            raise FileError(
                f"expected two files among {', '.join(SUFFIXES)}, or two csv files, got {path.name}; convert it"
            )
    is_table = node_file.suffix.lower() == PARQUET
    found = _parquet_nodes(node_file, label, id, choices) if is_table else _array_nodes(node_file)
    # Features are read last, so that they do not lie beside what sorting the edges takes.
    graph = _graph(edge_file, weight, found.ids, len(found.y), directed)
    given = found.masks if masks is None else masks
    columns = found.features() or FeatureColumns((), np.empty((len(found.y), 0)))
    try:
        made = preparation or Preparation.fit(columns, choices)
        x = made.apply(columns)
    except InvalidArgument as problem:
        raise FileError(f"{node_file}: {problem}") from None
    meta = Meta(
        node_file.stem, variant=(("undirected", str(not directed).lower()),), classes=found.classes,
        split=f"masks of {node_file.name}" if masks is None and given is not None else "", notes=made.sentences(),
    )  # fmt: skip
    return assemble(_named(graph, found.ids), x, found.y, given, meta), made


def _named(graph: Graph, ids: Any) -> Graph:
    """The graph with the ids of its nodes, unless they are their numbers."""
    if ids is None:
        return graph
    names = tuple(map(str, ids.to_pylist()))
    if names == tuple(map(str, range(graph.num_nodes))):
        return graph
    return Graph(graph.edge_index, graph.weight, graph.num_nodes, names)


@dataclass(frozen=True, eq=False)
class _Nodes:
    """What is read of the nodes at once, and how their features are read; `ids` is an arrow array, or None."""

    y: np.ndarray
    features: Callable[[], FeatureColumns | None]
    masks: Masks | None = None
    classes: tuple[str, ...] = ()
    ids: Any = None


def _graph(path: Path, weight: str | None, ids: Any, count: int, directed: bool) -> Graph:
    """Edges once each, and both ways unless directed; a repeated edge must repeat its weight."""
    pairs, weights = _edges(path, weight, ids)
    try:
        if directed or weights is None:
            return Graph.from_edges(pairs, count, weights, duplicates="once", undirected=not directed)
        graph = Graph.from_edges(pairs, count, weights, duplicates="once")
        made = graph.undirected()
    except RdgraphError as problem:
        raise FileError(f"{path}: {problem}") from None
    if not _agrees(graph, made):
        raise FileError(
            f"{path}: expected one weight for both directions of an edge, got two; keep one of them, or pass "
            "directed=True if direction matters"
        )
    return made


def _agrees(graph: Graph, both: Graph) -> bool:
    """Whether every edge kept its weight when the other direction was added."""
    key = both.edge_index[1] * both.num_nodes + both.edge_index[0]
    places = np.searchsorted(key, graph.edge_index[1] * graph.num_nodes + graph.edge_index[0])
    return bool(np.array_equal(both.weight[places], graph.weight))


# ---------------------------------------------------------------------- numpy
def _edges(path: Path, weight: str | None, ids: Any) -> tuple[np.ndarray, np.ndarray | None]:
    suffix = path.suffix.lower()
    if suffix == PARQUET:
        return _parquet_edges(path, weight, ids)
    if ids is not None:
        raise FileError(f"expected edges in a parquet file beside nodes with ids, got {path.name}; leave the ids out")
    if suffix == NPY:
        found, weights = _load(path), None
    else:
        arrays = _archive(path, ("edge_index",), ("weight",))
        found, weights = arrays["edge_index"], arrays.get("weight") if weight is not None else None
    if found.ndim != 2 or found.shape[0] != 2 or found.dtype.kind not in "iu":
        raise FileError(
            f"expected whole numbers (2, E), sources then targets, in {path}, got {found.dtype} {found.shape}"
        )
    return found, weights


def _array_nodes(path: Path) -> _Nodes:
    if path.suffix.lower() == NPY:
        x = _load(path)
        if x.ndim != 2 or x.dtype.kind not in "biuf":
            raise FileError(f"expected features (n, f) in {path}, got {x.dtype} {x.shape}")
        return _Nodes(np.full(len(x), -1), lambda: FeatureColumns.of_array(x))
    arrays = _archive(path, ("y",), tuple(PARTS))
    parts = [arrays.get(name) for name in PARTS]
    if any(part is None for part in parts) and any(part is not None for part in parts):
        raise FileError(f"expected the masks {', '.join(PARTS)} in {path}, or none of them, got some; add the others")

    def features() -> FeatureColumns | None:
        x = _archive(path, (), ("x",)).get("x")
        if x is not None and (x.ndim != 2 or len(x) != len(arrays["y"])):
            raise FileError(
                f"expected features ({len(arrays['y'])}, f) beside the labels in {path}, got shape {x.shape}"
            )
        return None if x is None else FeatureColumns.of_array(x)

    try:
        whole = [part for part in parts if part is not None]
        return _Nodes(arrays["y"], features, Masks(*whole) if whole else None)
    except InvalidArgument as problem:
        raise FileError(f"{path}: {problem}") from None


def _load(path: Path) -> np.ndarray:
    """An npy file as it lies on the disk; Python objects are refused."""
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as reason:
        raise FileError(f"expected an array of numbers in {path}, got {reason}; save it with numpy.save") from None
    except OSError as problem:
        raise FileError(f"expected a file that can be read, got {path}: {reason_of(problem)}; check its name") from None


def _archive(path: Path, needed: Sequence[str], known: Sequence[str]) -> dict[str, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            names = list(archive.files)
            found = {name: archive[name] for name in (*needed, *known) if name in names}
    except (ValueError, EOFError, zipfile.BadZipFile) as reason:
        raise FileError(f"expected an npz file of plain arrays in {path}, got {reason}; save it again") from None
    except OSError as problem:
        raise FileError(f"expected a file that can be read, got {path}: {reason_of(problem)}; check its name") from None
    for name in needed:
        if name not in found:
            raise FileError(
                f"expected an array {name} in {path}, got {', '.join(names) or 'none'}; save it with numpy.savez"
            )
    return found


# ---------------------------------------------------------------------- parquet
class _Table:
    """A parquet file whose columns are read one by one."""

    def __init__(self, path: Path, needed: Sequence[str]) -> None:
        try:
            from pyarrow import ArrowException, parquet
        except ImportError:
            raise MissingDependency(
                "expected the package pyarrow for parquet files, got none; pip install 'rdgraph[gread]'"
            ) from None
        self.path = path
        try:
            self.file = parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20)
        except OSError as problem:
            raise FileError(f"expected a file that can be read, got {path}: {problem}; check its name") from None
        except ArrowException as problem:
            raise FileError(f"expected a parquet file in {path}, got {problem}; save it again") from None
        self.names: list[str] = self.file.schema_arrow.names
        self.rows = int(self.file.metadata.num_rows)
        for name in needed:
            if name not in self.names:
                raise FileError(f"expected a column {name!r} in {path}, got {', '.join(self.names)}")

    def column(self, name: str) -> Any:
        return self.file.read(columns=[name], use_threads=False)[name]

    def is_category(self, name: str, choices: FeatureChoices) -> bool:
        """Whether a column is one of words."""
        kind = str(self.file.schema_arrow.field(name).type)
        is_text = kind in ("string", "large_string", "string_view") or kind.startswith("dictionary<values=string")
        return name in choices.categories or (is_text and choices.finds_categories)

    def words(self, name: str, choices: FeatureChoices) -> list[str | None]:
        """A column of categories, None where one is missing."""
        found = self.column(name).to_pylist()
        read = [None if value is None or is_missing(str(value)) else str(value) for value in found]
        if choices.missing == ERROR and None in read:
            raise FileError(
                f"expected a category in row {read.index(None)}, column {name!r} of {self.path}, got an empty cell; "
                "leave the column out, fill it, or let it be none of them (missing='mean', --missing mean)"
            )
        return read

    def numbers(self, name: str, may_miss: bool = False, remedy: str = FILL) -> np.ndarray:
        """A column of numbers, none of them missing, or nan where they may."""
        from pyarrow import default_memory_pool

        kind = self.file.schema_arrow.field(name).type
        found, done = None, 0
        for batch in self.file.iter_batches(BATCH, columns=[name], use_threads=False):
            part = batch.column(0)
            is_whole = may_miss or not part.null_count
            values = np.asarray(part.to_numpy(zero_copy_only=False)) if is_whole else np.array([None])
            if values.dtype.kind not in "biuf":
                got = "empty cells" if part.null_count else str(kind)
                raise FileError(f"expected numbers in column {name!r} of {self.path}, got {got}; {remedy}")
            if found is None or (found.dtype.kind != "f" and values.dtype.kind == "f"):
                wider = np.empty(self.rows, dtype=values.dtype)
                wider[:done] = 0 if found is None else found[:done]
                found = wider
            found[done : done + len(values)] = values
            done += len(values)
        default_memory_pool().release_unused()  # what the batches took is not kept for later ones
        return np.empty(0) if found is None else found


def _parquet_edges(path: Path, weight: str | None, ids: Any) -> tuple[np.ndarray, np.ndarray | None]:
    table = _Table(path, ["source", "target", *([weight] if weight not in (None, "weight") else [])])
    pairs = np.stack([_narrow(_ends(table, name, ids)) for name in ("source", "target")])
    return pairs, table.numbers(weight) if weight is not None and weight in table.names else None


def _narrow(numbers: np.ndarray) -> np.ndarray:
    """Whole numbers in half the memory, where they fit."""
    limits = np.iinfo(np.int32)
    fits = not numbers.size or (numbers.min() >= limits.min and numbers.max() <= limits.max)
    return numbers.astype(np.int32) if fits else numbers


def _ends(table: _Table, name: str, ids: Any) -> np.ndarray:
    """The rows of the nodes that a column names."""
    path = table.path
    if ids is None:
        found = table.numbers(name, remedy="write the row of a node in every cell, or give nodes an id")
        if found.dtype.kind not in "iu":
            raise FileError(f"expected rows of nodes in column {name!r} of {path}, got {found.dtype}; give nodes an id")
        return found
    import pyarrow as pa
    from pyarrow import compute

    column = table.column(name)
    try:
        places = compute.index_in(column, value_set=ids)
    except pa.ArrowException as problem:
        raise FileError(f"expected ids like those of the nodes in column {name!r} of {path}, got {problem}") from None
    if places.null_count:
        row = int(compute.index(compute.is_null(places), True).as_py())
        raise FileError(
            f"{path}, row {row}, column {name!r}: expected the id of a node, got {column[row].as_py()!r}; add the node "
            "to the other file or leave the edge out"
        )
    return np.asarray(places.to_numpy())


def _parquet_nodes(path: Path, label: str | None, key: str, choices: FeatureChoices) -> _Nodes:
    chosen = choices.features
    named = [*(chosen or ()), *choices.categories, *([key] if key != "id" else [])]
    table = _Table(path, [*([label] if label not in (None, "label") else []), *named])
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
    ids = table.column(key).combine_chunks() if key in table.names else None
    if ids is not None and len(ids.unique()) != len(ids):
        raise FileError(f"expected an id of its own for every node in column {key!r} of {path}, got some twice")
    return _Nodes(y, features, _parquet_masks(table, splits), classes, ids)


def _labels(column: Any) -> tuple[np.ndarray, tuple[str, ...]]:
    """Whole numbers from 0 as they are; anything else is numbered."""
    if str(column.type).startswith(("int", "uint")) and not column.null_count:
        found = np.asarray(column.to_numpy()).astype(np.int64)
        if found.size and found.min() >= -1:
            return found, ()
    return encode_labels(column.to_pylist())


def _parquet_masks(table: _Table, splits: list[str]) -> Masks | None:
    if not splits:
        return None
    parts = np.zeros((3, len(splits), table.rows), dtype=bool)
    for k, name in enumerate(splits):
        words = np.array([(word or "").lower() for word in table.column(name).to_pylist()])
        for part, known in enumerate(PARTS):
            parts[part, k] = words == known
        odd = ~parts[:, k].any(0) & (words != "")
        if odd.any():
            raise FileError(
                f"{table.path}, row {int(odd.argmax())}, column {name!r}: expected train, val, test or nothing, got "
                f"{str(words[odd.argmax()])!r}; write one of them"
            )
    return Masks(*parts)
