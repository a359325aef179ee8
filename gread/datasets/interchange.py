"""Data sets from objects of other libraries: PyTorch Geometric, networkx, scipy."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array, eye_array

from gread.datasets.meta import Meta
from gread.datasets.preparation import ERROR, FeatureChoices, FeatureColumns, Preparation, is_missing
from gread.datasets.splits import PARTS, Masks, read_split_words, split_names
from rdgraph import Graph
from rdgraph.errors import InvalidArgument, RdgraphError
from rdgraph.files import Place
from rdgraph.graphs.edges import as_array

# ---------------------------------------------------------------------- feature cells
# The cells of feature columns, row by row: numbers, words, missing values; errors name the position of a cell.

#: The largest feature float32 can hold.
LARGEST = float(np.finfo(np.float32).max)


#: A cell: a text, or a number that is one already.
Cell = str | float


class FeatureCells:
    """Collects the feature columns of a table, given by name with their positions in a row.

    Cells that are not finite numbers are collected until all rows are read: a column without any number is categorical,
    otherwise they are refused. `place` returns the position of a row and a column, for errors.
    """

    def __init__(
        self, place: Callable[[int, str], Place], positions: Mapping[str, int], choices: FeatureChoices
    ) -> None:
        self.place, self.choices = place, choices
        self.names = tuple(positions)
        self._numeric = {name: k for name, k in positions.items() if name not in choices.categories}
        self._positions = list(self._numeric.values())
        self._words = {name: positions[name] for name in choices.categories if name in positions}
        self._texts: dict[str, list[str]] = {name: [] for name in self._words}
        self._odd: dict[str, list[tuple[int, str]]] = {}
        self._rows: list[np.ndarray] = []
        self._keys: list[int] = []

    def add(self, key: int, cells: Sequence[Cell]) -> None:
        """Add the next row; `place` locates it by its key."""
        self._keys.append(key)
        for name, position in self._words.items():
            self._texts[name].append(_text(cells[position]))
        try:
            row = np.array([float(cells[k]) for k in self._positions])
        except ValueError:
            row = np.array([np.nan])
        if not (np.abs(row) <= LARGEST).all():
            row = np.array([_cell_number(cells[k]) for k in self._positions])
            for (name, position), value in zip(self._numeric.items(), row, strict=True):
                if np.isnan(value):
                    self._odd.setdefault(name, []).append((key, _text(cells[position])))
        self._rows.append(row.astype(np.float32))

    def columns(self) -> FeatureColumns:
        """The checked feature columns, numbers and words."""
        words = {name: self._read_words(name, self._texts[name], self._keys) for name in self._words}
        for name, odd in self._odd.items():
            if self._is_category(odd):
                words[name] = self._read_words(name, [text for _, text in odd], self._keys)
            else:
                self._check_numbers(name, odd)
        numbers = np.stack(self._rows) if self._rows else np.empty((0, len(self._positions)), dtype=np.float32)
        numeric = [k for k, name in enumerate(self._numeric) if name not in words]
        return FeatureColumns(
            self.names, numbers if len(numeric) == len(self._positions) else numbers[:, numeric], words
        )

    def _is_category(self, odd: Sequence[tuple[int, str]]) -> bool:
        """Whether every cell of a column is a word or missing, with at least one word."""
        if not self.choices.finds_categories or len(odd) < len(self._keys):
            return False
        texts = [text for _, text in odd if not is_missing(text)]
        return bool(texts) and all(_number(text) is None for text in texts)

    def _check_numbers(self, name: str, odd: Sequence[tuple[int, str]]) -> None:
        wrong = [(key, text) for key, text in odd if not is_missing(text)]
        remedy = "write one"
        if wrong:
            if self.choices.finds_categories:
                remedy += ", name the features without it (features=), or name it among the categories (categories=)"
            raise self._error("a finite number", name, *wrong[0], remedy)
        if self.choices.missing == ERROR:
            raise self._error("a finite number", name, *odd[0], self._fill_remedy("use the mean of the column"))

    def _read_words(self, name: str, texts: Sequence[str], keys: Sequence[int]) -> list[str | None]:
        if self.choices.missing == ERROR:
            for key, text in zip(keys, texts, strict=True):
                if is_missing(text):
                    raise self._error("a category", name, key, text, self._fill_remedy("treat it as no category"))
        return [None if is_missing(text) else text for text in texts]

    def _fill_remedy(self, way: str) -> str:
        """The remedy for a missing value; features prepared from another table need a value."""
        if not self.choices.finds_categories:
            return "write one: the features were prepared from a table without missing values"
        return f"write one, or {way} (missing='mean')"

    def _error(self, expected: str, name: str, key: int, text: str, remedy: str) -> RdgraphError:
        return self.place(key, name).error(expected, repr(text) if text else "an empty cell", remedy)


def _text(cell: Cell) -> str:
    """A cell as text; whole numbers without a decimal point."""
    return cell if isinstance(cell, str) else f"{cell:.17g}"


def _number(value: Any) -> float | None:
    """A number, possibly infinite or nan, from a text or an object; None for anything else."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _cell_number(text: Cell) -> float:
    """A number in the range of float32, nan for anything else."""
    value = _number(text)
    return value if value is not None and abs(value) <= LARGEST else math.nan


# ---------------------------------------------------------------------- interchange
#: The parts of `NodeData`: graph, features, labels, masks, meta.
Pieces = dict[str, Any]
#: The note of a set without features.
WITHOUT_FEATURES = "No features were given: every node carries its own unit vector."


def pyg_pieces(data: Any, *, masks: Masks | None = None, directed: bool | None = None) -> Pieces:
    """The parts from a `torch_geometric.data.Data` or similar object; masks (n,) or (n, k), where (n,) holds for all k.

    >>> from types import SimpleNamespace
    >>> pyg_pieces(SimpleNamespace(edge_index=[[0, 1], [1, 0]], num_nodes=2, x=[[1.0], [2.0]], y=[0, 1]))["y"].tolist()
    [0, 1]
    """
    graph = Graph.from_pyg(data).undirected() if directed is False else Graph.from_pyg(data)
    labels = getattr(data, "y", None)
    if labels is not None:
        labels = as_array(labels, "y")
        labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    given = _pyg_masks(data, graph.num_nodes) if masks is None else masks
    split = "masks of the PyTorch Geometric data" if given is not None and masks is None else ""
    return assemble(graph, _strided(getattr(data, "x", None)), labels, given, Meta("data", split=split))


@dataclass(frozen=True, eq=False)
class Reading:
    """How a graph with its nodes is read; see `NodeData.from_files` and `NodeData.from_networkx`."""

    label: str | None
    choices: FeatureChoices
    preparation: Preparation | None
    weight: str | None
    directed: bool | None
    duplicates: str
    masks: Masks | None


def attribute_pieces(graph: Any, how: Reading) -> tuple[Pieces, Preparation]:
    """The parts from a networkx graph with features, labels and optional splits as node attributes.

    >>> import networkx as nx
    >>> g = nx.Graph([("a", "b")])
    >>> nx.set_node_attributes(g, {"a": "red", "b": "blue"}, "colour")
    >>> how = Reading("colour", FeatureChoices(), None, "weight", None, "sum", None)
    >>> pieces, _ = attribute_pieces(g, how)
    >>> pieces["y"].tolist(), pieces["meta"].classes, pieces["graph"].names
    ([1, 0], ('blue', 'red'), ('a', 'b'))
    """
    result = Graph.from_networkx(graph, weight=how.weight, directed=how.directed, duplicates=how.duplicates)
    nodes = list(graph.nodes(data=True))
    known = list(dict.fromkeys(str(name) for _, values in nodes for name in values))
    if how.label is not None and how.label not in known:
        raise InvalidArgument(
            f"expected nodes with the attribute {how.label!r}, got {', '.join(known) or 'none'}; name it with "
            "label=NAME"
        )
    y, classes = encode_labels([None if how.label is None else values.get(how.label) for _, values in nodes])
    columns = AttributeColumns(nodes, how.label, how.choices)
    features = columns.features()
    preparation = how.preparation or Preparation.fit(features, how.choices)
    masks = columns.masks() if how.masks is None else how.masks
    meta = Meta(
        "data", classes=classes, variant=(("undirected", str(result.is_undirected).lower()),),
        split="attributes of the nodes" if how.masks is None and masks is not None else "",
        notes=(*columns.unused(known), *preparation.sentences()), cautions=preparation.unseen(features),
    )  # fmt: skip
    return assemble(result, preparation.apply(features), y, masks, meta), preparation


def assemble(graph: Graph, x: Any, y: Any, masks: Masks | None, meta: Meta) -> Pieces:
    """The parts of `NodeData`: unit vectors for x None, unknown labels for y None, no splits for masks None."""
    n = graph.num_nodes
    if x is None:
        x = eye_array(n, dtype=np.float32, format="csr")
        meta = replace(meta, notes=(*meta.notes, WITHOUT_FEATURES))
    labels, splits = np.full(n, -1) if y is None else y, Masks.none(n) if masks is None else masks
    return {"graph": graph, "x": x, "y": labels, "masks": splits, "meta": meta}


def encode_labels(values: Sequence[Any]) -> tuple[np.ndarray, tuple[str, ...]]:
    """Labels 0, 1, ... (n,) and the names of the classes, sorted, numbers as numbers; None, "" and nan are unknown.

    >>> encode_labels(["10", "9", "", "9.0"])
    (array([ 1,  0, -1,  0]), ('9', '10'))
    """
    known = [value for value in dict.fromkeys(values) if value is not None and value != "" and value == value]
    numbers = [x if (x := _number(value)) is not None and math.isfinite(x) else None for value in known]
    if -1.0 in numbers:
        raise InvalidArgument(
            "expected labels other than -1, which means unknown elsewhere; leave the label out or give the class a name"
        )
    keys: list[Any] = [str(value) for value in known] if None in numbers else numbers
    names: dict[Any, str] = {}
    for key, value in zip(keys, known, strict=True):
        names.setdefault(key, str(value))
    order = {key: k for k, key in enumerate(sorted(names))}
    number = {value: order[key] for key, value in zip(keys, known, strict=True)}
    return np.array([number.get(value, -1) for value in values], dtype=np.int64), tuple(names[key] for key in order)


class AttributeColumns:
    """Node attributes as columns: numbers, words, and vectors, with one column per entry."""

    def __init__(self, nodes: Sequence[tuple[Hashable, dict[Any, Any]]], label: str | None, choices: FeatureChoices):
        self.nodes, self.choices = nodes, choices
        given = list(dict.fromkeys(name for _, values in nodes for name in values if isinstance(name, str)))
        self.splits = split_names(given)
        self.columns: dict[str, list[Cell]] = {}
        self.used: set[str | None] = {label, *self.splits} - set(choices.features or ())
        is_named = choices.features is not None
        for column in given if choices.features is None else choices.features:
            name = column if column in given else column.partition("[")[0]  # an entry of a vector
            if name not in given:
                raise InvalidArgument(f"expected nodes with the attribute {name!r}, got {', '.join(given) or 'none'}")
            if name not in self.used:
                self._add(name, is_named)

    def place(self, node: int, name: str) -> Place:
        return Place(f"node {self.nodes[node][0]!r}", name, "attribute", InvalidArgument)

    def _add(self, name: str, is_named: bool) -> None:
        """Add the columns of one attribute; an unnamed attribute that is not a feature is skipped."""
        cells = [_cells(values.get(name)) for _, values in self.nodes]
        if not is_named and any(cell is None for cell in cells):
            return
        width = max(len(cell) if isinstance(cell, tuple) else 1 for cell in cells)
        is_vector = any(isinstance(cell, tuple) for cell in cells)
        for node, cell in enumerate(cells):
            is_odd = cell != "" and not (isinstance(cell, tuple) and len(cell) == width)
            if cell is None or (is_vector and is_odd):
                expected = f"{width} numbers, as other nodes have" if is_vector else "a number, a vector or a word"
                got = f"{self.nodes[node][1][name]!r:.60}"
                raise self.place(node, name).error(expected, got, "leave the attribute out (features=)")
        self.used.add(name)
        if not is_vector:
            self.columns[name] = cells  # type: ignore[assignment]
            return
        for k in range(width):
            self.columns[f"{name}[{k}]"] = [cell[k] if isinstance(cell, tuple) else "" for cell in cells]

    def features(self) -> FeatureColumns:
        names = list(self.columns)
        cells_of = FeatureCells(self.place, {name: k for k, name in enumerate(names)}, self.choices)
        for node, cells in enumerate(zip(*self.columns.values(), strict=True)):
            cells_of.add(node, cells)
        return cells_of.columns() if names else FeatureColumns((), np.empty((len(self.nodes), 0)))

    def masks(self) -> Masks | None:
        """The splits from the attributes split, split_0, ...; None without any."""
        if not self.splits:
            return None
        words = [[str(values.get(name) or "") for name in self.splits] for _, values in self.nodes]
        return read_split_words(words, lambda node, k: self.place(node, self.splits[k]))

    def unused(self, known: Sequence[str]) -> tuple[str, ...]:
        """A note about unused attributes."""
        rest = [name for name in known if name not in self.used]
        return (f"Attributes of the nodes that were not used: {', '.join(rest)}.",) if rest else ()


def _cells(value: Any) -> Cell | tuple[float, ...] | None:
    """An attribute as a number, a word, or the numbers of a vector; "" if missing, None for other types."""
    if value is None or isinstance(value, str):
        return "" if value is None else value.strip()
    try:
        row = as_array(value, "an attribute")
    except InvalidArgument:
        return None
    if row.dtype.kind in "US" and row.ndim == 0:
        return str(row)
    if row.dtype.kind not in "biuf" or not row.size:
        return None
    numbers = tuple("" if math.isnan(number) else number for number in row.astype(float).reshape(-1).tolist())
    return numbers if row.ndim else numbers[0]  # type: ignore[return-value]


def _pyg_masks(data: Any, num_nodes: int) -> Masks | None:
    given = {name: getattr(data, f"{name}_mask", None) for name in PARTS}
    missing = [f"{name}_mask" for name, mask in given.items() if mask is None]
    if len(missing) == len(PARTS):
        return None
    if missing:
        raise InvalidArgument(
            f"expected train_mask, val_mask and test_mask, or none of them, got no {' and no '.join(missing)}; "
            "pass masks="
        )
    arrays = {name: as_array(mask, f"{name}_mask") for name, mask in given.items()}
    for name, array in arrays.items():
        if array.ndim not in (1, 2) or array.shape[0] != num_nodes:
            raise InvalidArgument(
                f"expected a {name}_mask of shape ({num_nodes},) or ({num_nodes}, splits), got {array.shape}"
            )
    splits = max(1 if array.ndim == 1 else array.shape[1] for array in arrays.values())
    return Masks(*(np.repeat(a[None], splits, axis=0) if a.ndim == 1 else a.T for a in arrays.values()))


def _strided(x: Any) -> Any:
    """Sparse torch tensors as scipy matrices; anything else unchanged."""
    if not hasattr(x, "layout") or str(x.layout) == "torch.strided":
        return x
    entries = x.detach().cpu().to_sparse_coo().coalesce()
    return csr_array((entries.values().numpy(), entries.indices().numpy()), shape=tuple(x.shape))
