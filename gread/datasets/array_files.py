"""The pieces of a large data set from files of arrays: npy and npz of numpy, and parquet; nothing goes text by text.

Edges: an npy file (2, E), sources then targets; an npz file with edge_index (2, E) and maybe weight (E,); or a parquet
file with the columns source, target and maybe weight. Nodes: an npz file with y (n,) and maybe x (n, f) and masks
train, val, test, (n,) or (splits, n); an npy file with x alone, which stays on the disk; or a parquet file with a
column of labels, maybe split columns, and features. Ends of edges are rows of the nodes, or ids of a parquet's column.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gread.datasets.edge_files import PARQUET, read_graph
from gread.datasets.interchange import Pieces, assemble, encode_labels
from gread.datasets.masks import PARTS, Masks
from gread.datasets.meta import Meta
from gread.datasets.numpy_files import NPY, NPZ, archive, is_npy, load
from gread.datasets.parquet_table import IdTexts, ParquetTable
from gread.datasets.preparation import ERROR, FeatureChoices, FeatureColumns, Preparation
from gread.datasets.tables import split_names
from rdgraph import Graph
from rdgraph.errors import FileError, InvalidArgument

SUFFIXES = (NPY, NPZ, PARQUET)


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
    if not len(found.y):
        raise FileError(f"expected a row for every node in {node_file}, got none; write the nodes")
    # Features are read last, so that they do not lie beside what sorting the edges takes.
    graph = read_graph(edge_file, weight, found.ids, len(found.y), directed)
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
    if ids is None or all(name == str(k) for k, name in enumerate(IdTexts(ids))):
        return graph
    return Graph(graph.edge_index, graph.weight, graph.num_nodes, IdTexts(ids))


@dataclass(frozen=True, eq=False)
class _Nodes:
    """What is read of the nodes at once, and how their features are read; `ids` is an arrow array, or None."""

    y: np.ndarray
    features: Callable[[], FeatureColumns | None]
    masks: Masks | None = None
    classes: tuple[str, ...] = ()
    ids: Any = None


def _array_nodes(path: Path) -> _Nodes:
    if is_npy(path):
        x = load(path)
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
                f"expected features ({len(arrays['y'])}, f), numbers beside the labels, in {path}, got {x.dtype} of "
                f"shape {x.shape}"
            )
        return None if x is None else FeatureColumns.of_array(x)

    try:
        whole = [part for part in parts if part is not None]
        return _Nodes(arrays["y"], features, Masks(*whole) if whole else None)
    except InvalidArgument as problem:
        raise FileError(f"{path}: {problem}") from None


def _parquet_nodes(path: Path, label: str | None, key: str, choices: FeatureChoices) -> _Nodes:
    chosen = choices.features
    named = [*(chosen or ()), *choices.categories, *([key] if key != "id" else [])]
    table = ParquetTable(path, [*([label] if label not in (None, "label") else []), *named])
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
    ids = table.undivided(key) if key in table.names else None
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
