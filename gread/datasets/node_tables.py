"""Data sets from two text files; errors name the file, the column, and the line as in an editor."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from gread.datasets.interchange import FeatureCells, Pieces, Reading, assemble, attribute_pieces, encode_labels
from gread.datasets.meta import Meta
from gread.datasets.preparation import FeatureChoices, FeatureColumns, Preparation
from gread.datasets.splits import Masks, read_split_words, split_names
from rdgraph import Graph
from rdgraph.errors import FileError
from rdgraph.files import Place, naming
from rdgraph.graphs.edges import EdgeKeys
from rdgraph.graphs.graph_files import EdgeRows, header_columns, is_graph_file, read_edge_rows, read_networkx, text_rows


def read_files(edge_file: Path, node_file: Path, id_column: str, how: Reading) -> tuple[Pieces, Preparation]:
    """Read edges and nodes from two files; see `NodeData.from_files`."""
    if is_graph_file(node_file):
        raise FileError(f"{node_file} holds a graph with its nodes; pass it as edges= alone")
    table = _read_nodes(node_file, id_column, how.label, how.choices)
    with naming(node_file):
        preparation = how.preparation or Preparation.fit(table.features, how.choices)
        x = preparation.apply(table.features)
    rows = read_edge_rows(edge_file, how.weight)
    graph, directed = _graph(edge_file, rows, table.names, how)
    labels, classes = encode_labels(table.labels)
    given = table.masks if how.masks is None else how.masks
    meta = Meta(
        node_file.stem,
        sources=tuple((path.name, _digest(path)) for path in (edge_file, node_file)),
        variant=(("undirected", str(not directed).lower()),),
        split=f"columns of {node_file.name}" if how.masks is None and given is not None else "",
        classes=classes,
        notes=(*_unused(edge_file, rows.unused), *table.notes, *preparation.sentences()),
        cautions=preparation.unseen(table.features),
    )
    return assemble(graph, x, labels, given, meta), preparation


def read_graph_file(path: Path, how: Reading) -> tuple[Pieces, Preparation]:
    """Read a GraphML or GEXF file with node attributes; see `NodeData.from_files`."""
    with naming(path):
        pieces, preparation = attribute_pieces(read_networkx(path), how)
    meta = replace(pieces["meta"], name=path.name.partition(".")[0], sources=((path.name, _digest(path)),))
    return pieces | {"meta": meta}, preparation


def has_label(path: Path, name: str) -> bool:
    """Whether the nodes of a text or graph file have a column or an attribute of that name."""
    if is_graph_file(path):
        return any(name in values for _, values in read_networkx(path).nodes(data=True))
    _, header = next(text_rows(path), (1, []))
    return name in header


@dataclass(frozen=True, eq=False)
class _NodeTable:
    names: list[str]
    labels: list[str | None]
    masks: Masks | None
    features: FeatureColumns
    notes: tuple[str, ...]


def _read_nodes(path: Path, ids: str, label: str | None, choices: FeatureChoices) -> _NodeTable:
    rows = text_rows(path)
    needed = {ids: "name the column with id=NAME"}
    if label is not None:
        needed[label] = "name the column with label=NAME"
    columns = header_columns(path, rows, needed | choices.needed)
    splits = split_names(columns)
    special = {ids, label, *splits}
    chosen = [name for name in columns if name not in special] if choices.features is None else list(choices.features)
    cells_of = FeatureCells(partial(Place.line, path), {name: columns[name] for name in chosen}, choices)
    names: dict[str, int] = {}
    lines: list[int] = []
    labels: list[str | None] = []
    words: list[list[str]] = []
    for line, cells in rows:
        name = cells[columns[ids]]
        if not name or name in names:
            got = f"{name!r} again, first in line {lines[names[name]]}" if name else "an empty cell"
            raise Place.line(path, line, ids).error("a unique id for every node", got, "list every node once")
        names[name] = len(lines)
        lines.append(line)
        labels.append(None if label is None else cells[columns[label]])
        words.append([cells[columns[split]] for split in splits])
        cells_of.add(line, cells)
    if not lines:
        remedy = "write the nodes below the header"
        raise Place.line(path, 2).error("a row for every node", "the end of the file", remedy)
    masks = read_split_words(words, lambda node, k: Place.line(path, lines[node], splits[k])) if splits else None
    notes = _unused(path, [name for name in columns if name not in {*special, *chosen}])
    return _NodeTable(list(names), labels, masks, cells_of.columns(), notes)


def _graph(path: Path, rows: EdgeRows, names: list[str], how: Reading) -> tuple[Graph, bool]:
    """The graph of edges between named nodes, and whether they are directed."""
    number = {name: k for k, name in enumerate(names)}
    pairs = np.empty((len(rows.ends), 2), dtype=np.int64)
    for k, ends in enumerate(rows.ends):
        for end, name in enumerate(ends):
            if name not in number:
                position = Place.line(path, rows.lines[k], ("source", "target")[end])
                raise position.error(
                    "the id of a node", repr(name), "add the node to the other file or leave the edge out"
                )
            pairs[k, end] = number[name]
    directed = rows.is_directed if how.directed is None else how.directed
    if how.duplicates == "once" and rows.weights is not None:
        _check_weights(path, pairs.T, np.array(rows.weights), rows.lines, len(names), directed)
    keys = EdgeKeys.of(pairs.T, len(names), both_ways=not directed)
    with naming(path):
        plain = Graph.from_keys(keys, rows.weights, duplicates=how.duplicates)
    ids = None if names == [str(k) for k in range(len(names))] else tuple(names)
    return Graph(plain.edge_index, plain.weight, len(names), ids), directed


def _check_weights(
    path: Path, pairs: np.ndarray, weights: np.ndarray, lines: Sequence[int], nodes: int, directed: bool
) -> None:
    """Refuse a repeated edge with another weight, naming both lines."""
    low, high = pairs if directed else (pairs.min(axis=0), pairs.max(axis=0))
    _, first, edge = np.unique(low * nodes + high, return_index=True, return_inverse=True)
    differs = weights != weights[first][edge]
    if differs.any():
        k = int(differs.argmax())
        earlier = first[edge[k]]
        remedy = "keep one of them, or combine them (duplicates='sum'; also mean, max, first)"
        raise Place.line(path, lines[k]).error(
            f"the weight {weights[earlier]:g} of the same edge in line {lines[earlier]}", f"{weights[k]:g}",
            remedy if directed else f"{remedy}, or pass directed=True if direction matters",
        )  # fmt: skip


def _unused(path: Path, names: Sequence[str]) -> tuple[str, ...]:
    return (f"Columns of {path.name} that were not used: {', '.join(names)}.",) if names else ()


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
