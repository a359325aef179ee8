"""The pieces of a data set from two csv files; an error names file, column, and line as an editor counts it."""

from __future__ import annotations

import csv
import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gread.datasets.feature_cells import FeatureCells, Place
from gread.datasets.interchange import Pieces, assemble, encode_labels
from gread.datasets.masks import PARTS, Masks
from gread.datasets.meta import Meta
from gread.datasets.preparation import FeatureChoices, FeatureColumns, Preparation
from rdgraph import Graph
from rdgraph.errors import FileError, InvalidArgument, closest
from rdgraph.files import reason_of


def read_files(
    edges: str | Path,
    nodes: str | Path,
    *,
    label: str | None,
    id: str,  # noqa: A002  the name of the column
    choices: FeatureChoices,
    preparation: Preparation | None,
    weight: str | None,
    directed: bool,
    masks: Masks | None,
) -> tuple[Pieces, Preparation]:
    """See `NodeData.from_files`."""
    node_file, edge_file = Path(nodes), Path(edges)
    table = _read_nodes(node_file, id, label, choices)
    try:
        made = preparation or Preparation.fit(table.features, choices)
        x = made.apply(table.features)
    except InvalidArgument as problem:
        raise FileError(f"{node_file}: {problem}") from None
    graph, notes = _read_edges(edge_file, table.names, weight, directed)
    labels, classes = encode_labels(table.labels)
    given = table.masks if masks is None else masks
    meta = Meta(
        node_file.stem,
        sources=tuple((path.name, _digest(path)) for path in (edge_file, node_file)),
        variant=(("undirected", str(not directed).lower()),),
        split=f"columns of {node_file.name}" if masks is None and given is not None else "",
        classes=classes,
        notes=(*notes, *table.notes, *made.sentences()),
    )
    return assemble(graph, x, labels, given, meta), made


@dataclass(frozen=True, eq=False)
class _NodeTable:
    names: list[str]
    labels: list[str | None]
    masks: Masks | None
    features: FeatureColumns
    notes: tuple[str, ...]


def _read_nodes(path: Path, ids: str, label: str | None, choices: FeatureChoices) -> _NodeTable:
    rows = _rows(path)
    named = [*(choices.features or ()), *choices.categories]
    columns = _columns(path, rows, [ids, *([] if label is None else [label]), *named])
    splits = split_names(columns)
    special = {ids, label, *splits}
    chosen = [name for name in columns if name not in special] if choices.features is None else list(choices.features)
    cells_of = FeatureCells(path, {name: columns[name] for name in chosen}, choices)
    names: dict[str, int] = {}
    lines: list[int] = []
    labels: list[str | None] = []
    words: list[list[str]] = []
    for line, cells in rows:
        name = cells[columns[ids]]
        if not name or name in names:
            got = f"{name!r} again, first in line {lines[names[name]]}" if name else "an empty cell"
            raise Place(path, line, ids).error("an id of its own for every node", got, "name every node once")
        names[name] = len(lines)
        lines.append(line)
        labels.append(None if label is None else cells[columns[label]])
        words.append([cells[columns[split]] for split in splits])
        cells_of.add(line, cells)
    if not lines:
        raise Place(path, 2).error("a row for every node", "the end of the file", "write the nodes below the header")
    masks = _masks(path, splits, words, lines) if splits else None
    notes = _unused(path, columns, {*special, *chosen})
    return _NodeTable(list(names), labels, masks, cells_of.columns(), notes)


def has_column(path: str | Path, name: str) -> bool:
    """Whether a csv file has a column of that name."""
    _, header = next(_rows(Path(path)), (1, []))
    return name in header


def _read_edges(path: Path, names: list[str], weight: str | None, directed: bool) -> tuple[Graph, tuple[str, ...]]:
    rows = _rows(path)
    columns = _columns(path, rows, ["source", "target", *([weight] if weight not in (None, "weight") else [])])
    number = {name: k for k, name in enumerate(names)}
    ends = [columns["source"], columns["target"]]
    weighed = columns.get(weight) if weight is not None else None
    pairs: list[tuple[int, int]] = []
    weights: list[float] = []
    lines: list[int] = []
    for line, cells in rows:
        try:
            pairs.append((number[cells[ends[0]]], number[cells[ends[1]]]))
        except KeyError as unknown:
            column = "source" if cells[ends[0]] not in number else "target"
            hint = "add the node to the other file or leave the edge out"
            raise Place(path, line, column).error("the id of a node", repr(unknown.args[0]), hint) from None
        weights.append(1.0 if weighed is None else _weight(Place(path, line, str(weight)), cells[weighed]))
        lines.append(line)
    if not lines:
        raise Place(path, 2).error("a row for every edge", "the end of the file", "see from_scipy for no edges")
    notes = _unused(path, columns, {"source", "target", *([weight] if weighed is not None else [])})
    return _graph(path, np.array(pairs).T, np.array(weights), np.array(lines), names, directed), notes


def _graph(
    path: Path, pairs: np.ndarray, weights: np.ndarray, lines: np.ndarray, names: list[str], directed: bool
) -> Graph:
    """Edges once each, and both ways unless directed; a repeated edge must repeat its weight."""
    n = len(names)
    low, high = pairs if directed else (pairs.min(axis=0), pairs.max(axis=0))
    _, first, edge = np.unique(low * n + high, return_index=True, return_inverse=True)
    differs = weights != weights[first][edge]
    if differs.any():
        k = int(differs.argmax())
        earlier = first[edge[k]]
        raise Place(path, int(lines[k])).error(
            f"the weight {weights[earlier]:g} of the same edge in line {lines[earlier]}", f"{weights[k]:g}",
            "keep one of them" if directed else "keep one of them, or pass directed=True if direction matters",
        )  # fmt: skip
    low, high, weights = low[first], high[first], weights[first]
    if not directed:
        proper = low != high
        low, high = np.append(low, high[proper]), np.append(high, low[proper])
        weights = np.append(weights, weights[proper])
    plain = Graph.from_edges(np.stack([low, high]), n, weights, duplicates="error")
    own = None if names == [str(k) for k in range(n)] else tuple(names)
    return Graph(plain.edge_index, plain.weight, n, own)


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line number and stripped cells of every row that is not blank; all rows are as long as the first."""
    line = 1
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            width = 0
            for cells in reader:
                if any(cells):
                    width = width or len(cells)
                    if len(cells) != width:
                        cell = f"{len(cells)} cells"
                        raise Place(path, line).error(f"{width} cells, one per column", cell, "check the commas")
                    yield line, [cell.strip() for cell in cells]
                line = reader.line_num + 1
    except FileError:
        raise
    except (csv.Error, UnicodeDecodeError) as reason:
        raise Place(path, line).error("a csv file in UTF-8", str(reason), "save it as such") from None
    except OSError as problem:
        raise FileError(
            f"expected a csv file that can be read, got {path}: {reason_of(problem)}; check its name"
        ) from None


def _columns(path: Path, rows: Iterator[tuple[int, list[str]]], needed: Sequence[str]) -> dict[str, int]:
    """Where each column of the header stands."""
    line, header = next(rows, (1, []))
    if not header:
        raise Place(path, 1).error("a header", "an empty file", f"write the columns {', '.join(needed)}, ...")
    place = Place(path, line)
    if not all(header):
        raise place.error("a name for every column", f"none for column {header.index('') + 1}", "name it or remove it")
    twice = [name for k, name in enumerate(header) if name in header[:k]]
    if twice:
        raise place.error("every column once", f"{twice[0]!r} twice", "rename one of them")
    for name in needed:
        if name not in header:
            close = closest(name, header)
            hint = f"did you mean {close!r}?" if close else "cells are separated by commas"
            raise place.error(f"a column {name!r}", f"the columns {', '.join(header)}", hint)
    return {name: k for k, name in enumerate(header)}


def _masks(path: Path, splits: list[str], words: list[list[str]], lines: list[int]) -> Masks:
    known = {"": -1} | {name: k for k, name in enumerate(PARTS)}
    parts = np.zeros((3, len(splits), len(lines)), dtype=bool)
    for node, row in enumerate(words):
        for split, word in enumerate(row):
            part = known.get(word.lower())
            if part is None:
                place = Place(path, lines[node], splits[split])
                raise place.error("train, val, test or an empty cell", repr(word), "write one of them")
            if part >= 0:
                parts[part, split, node] = True
    return Masks(*parts)


def _unused(path: Path, columns: dict[str, int], used: set[str | None]) -> tuple[str, ...]:
    unused = [name for name in columns if name not in used]
    return (f"Columns of {path.name} that were not used: {', '.join(unused)}.",) if unused else ()


def split_names(columns: Iterable[str]) -> list[str]:
    """The columns of splits among others, in their order.

    >>> split_names(["id", "split_10", "split_2", "splitting"])
    ['split_2', 'split_10']
    """
    return sorted((name for name in columns if re.fullmatch(r"split(_\d+)?", name)), key=_split_number)


def _split_number(name: str) -> int:
    return int(name.partition("_")[2] or -1)


def _weight(place: Place, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not 0 <= value < float("inf"):
        raise place.error("a finite weight >= 0", repr(text) if text else "an empty cell", "write 1 for a plain edge")
    return value


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
