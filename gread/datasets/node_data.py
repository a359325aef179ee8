"""`NodeData`: a graph, features, labels and splits, checked once, with a record of their origin."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from gread.datasets import array_files, interchange, node_tables
from gread.datasets.checks import read_features, read_labels, unscaled_columns
from gread.datasets.meta import Meta
from gread.datasets.preparation import FeatureChoices, FeatureColumns, Preparation
from gread.datasets.splits import Masks
from rdgraph import Graph
from rdgraph.errors import InvalidArgument
from rdgraph.graphs.edges import read_nodes, read_whole
from rdgraph.graphs.graph_files import is_graph_file

# ---------------------------------------------------------------------- node data
__all__ = ["Masks", "Meta", "NodeData"]


@dataclass(frozen=True, eq=False, repr=False)
class NodeData:
    """Features x (n, f), labels y (n,) and the splits of one graph, checked once.

    `warnings` reports what is valid but may cause problems. For your own graph see `from_files`, `from_networkx`,
    `from_pyg`, `from_scipy`.

    Args:
        graph: The graph of n nodes.
        x: Features (n, f), numpy or scipy sparse, finite; stored as float32, read-only.
        y: Labels (n,), whole numbers from 0, or -1 for unknown; stored as int64, read-only.
        masks: The splits; every node in one has a label.
        meta: The origin and preparation of the data.
        preparation: How the columns of a file became the features, see `from_files`.

    Raises:
        InvalidArgument: For shapes, features, labels or masks that do not match.

    >>> import gread
    >>> gread.karate()
    NodeData('karate', num_nodes=34, num_edges=156, num_features=34, num_classes=2, num_splits=10)
    """

    graph: Graph
    x: np.ndarray | csr_array
    y: np.ndarray
    masks: Masks
    _: KW_ONLY
    meta: Meta = field(default_factory=lambda: Meta("data"))
    preparation: Preparation | None = None

    def __post_init__(self) -> None:
        n = self.graph.num_nodes
        x, y = read_features(self.x), read_labels(self.y)
        if x.shape[0] != n or y.shape != (n,):
            raise InvalidArgument(
                f"expected features ({n}, f) and labels ({n},), one row per node of the graph, "
                f"got {x.shape} and {y.shape}"
            )
        if self.masks.num_nodes != n:
            raise InvalidArgument(f"expected masks (splits, {n}), one column per node, got {self.masks.train.shape}")
        if self.meta.classes and y.max() >= len(self.meta.classes):
            raise InvalidArgument(
                f"expected labels 0..{len(self.meta.classes) - 1} for {len(self.meta.classes)} named classes, "
                f"got node {int(y.argmax())}: {y.max()}; name every class or none"
            )
        unlabelled = self.masks.covered & (y < 0)
        if unlabelled.any():
            split, node = np.argwhere(unlabelled)[0]
            name = node if self.graph.names is None else repr(self.graph.names[node])
            raise InvalidArgument(
                f"expected a label for every node of a split, got split {split}: node {name} has none; "
                "label it, or take it out of the split"
            )
        object.__setattr__(self, "x", x)
        object.__setattr__(self, "y", y)

    def __repr__(self) -> str:
        return (
            f"NodeData({self.meta.name!r}, num_nodes={self.num_nodes}, num_edges={self.graph.num_edges}, "
            f"num_features={self.num_features}, num_classes={self.num_classes}, num_splits={self.num_splits}"
            f"{'' if self.graph.is_undirected else ', directed=True'})"
        )

    # ------------------------------------------------------------------ your own graph
    @classmethod
    def from_files(
        cls,
        edges: str | Path,
        nodes: str | Path | None = None,
        *,
        label: str | None = "label",
        id: str = "id",  # noqa: A002  the name of the column
        features: Sequence[str] | None = None,
        categories: Sequence[str] = (),
        missing: str = "error",
        standardise: bool = False,
        preparation: Preparation | None = None,
        weight: str | None = "weight",
        directed: bool | None = None,
        duplicates: str = "once",
        masks: Masks | None = None,
    ) -> NodeData:
        """Read a file of edges and one of nodes, or one GraphML or GEXF file with both.

        The edges are `source,target[,weight]` as csv, tsv, or separated by white space (txt, edges, edgelist), the
        nodes `id,label[,split or split_0, split_1, ...],feature,...` as csv or tsv, all also as .gz. Ids are text.
        `label` names the class column, in which an empty cell is an unknown label; None reads no labels. `features`
        names the feature columns, by default all others. A split column contains train, val, test or nothing; `masks`
        replaces it. An error names the file, the line and the column.

        Edges are undirected unless the file declares them directed, as GraphML and GEXF can, or `directed` is True;
        then they go source -> target. `weight` names the weight column, used if it exists; None ignores weights. A
        repeated edge, in either direction if undirected, must have the same weight; `duplicates` "sum", "mean", "max"
        or "first" combines several weights, "error" refuses them.

        A column without any number, or one of `categories`, becomes one feature per word. A missing value is an error,
        or with missing="mean" the mean of its column, and for words no category. `standardise` scales every numeric
        column to mean 0 and standard deviation 1 over all nodes. The fit is the `preparation` of the data; passed to
        another call it is applied to other files unchanged, with a warning about unknown categories.

        Large graphs are read from arrays, npy, npz or parquet, whose edges refer to the rows of the nodes; see
        `gread.datasets.array_files`. Features of an npy file stay on disk.
        """
        names = None if features is None else tuple(features)
        how = _reading(names, label, categories, missing, standardise, preparation, weight, directed, duplicates, masks)
        edge_file = Path(edges)
        if nodes is None:
            if not is_graph_file(edge_file):
                raise InvalidArgument(f"expected a file of nodes for {edge_file.name}; pass nodes=FILE")
            pieces, fitted = node_tables.read_graph_file(edge_file, how)
        else:
            is_array = array_files.is_array_file(edges) or array_files.is_array_file(nodes)
            read = array_files.read_array_files if is_array else node_tables.read_files
            pieces, fitted = read(edge_file, Path(nodes), id, how)
        return cls(**pieces, preparation=fitted)._with_warnings()

    @classmethod
    def from_networkx(
        cls,
        graph: Any,
        *,
        features: str | Sequence[str] | None = None,
        label: str | None = "label",
        categories: Sequence[str] = (),
        missing: str = "error",
        standardise: bool = False,
        preparation: Preparation | None = None,
        weight: str | None = "weight",
        directed: bool | None = None,
        duplicates: str = "once",
        masks: Masks | None = None,
    ) -> NodeData:
        """Read a networkx graph with node attributes: features, the class `label`, and optional splits.

        `features` names the attributes that are features, by default all others: numbers, words (one feature each),
        and vectors (one feature per entry, called name[0], name[1], ...). `meta.notes` lists unused attributes. Without
        features every node gets its unit vector. A node without the label attribute, or with None, is unlabelled. Edges
        of a DiGraph are directed unless `directed` is False. All other arguments are those of `from_files`. Nodes keep
        the order of the graph, see `Graph.from_networkx`.

        >>> import networkx as nx, gread
        >>> g = nx.Graph([("a", "b")])
        >>> nx.set_node_attributes(g, {"a": {"label": 0, "staff": 3, "country": "it"}, "b": {"label": 1, "staff": 5}})
        >>> gread.NodeData.from_networkx(g, missing="mean").preparation.feature_names
        ('staff', 'country=it')
        """
        names = (features,) if isinstance(features, str) else None if features is None else tuple(features)
        how = _reading(names, label, categories, missing, standardise, preparation, weight, directed, duplicates, masks)
        pieces, fitted = interchange.attribute_pieces(graph, how)
        return cls(**pieces, preparation=fitted)._with_warnings()

    @classmethod
    def from_pyg(cls, data: Any, *, masks: Masks | None = None, directed: bool | None = None) -> NodeData:
        """Read a PyTorch Geometric `Data`: edge_index, x, y, and train_mask, val_mask, test_mask, (n,) or (n, k).

        Edges are directed as in edge_index; directed=False makes them undirected, with the larger of two weights.
        """
        return cls(**interchange.pyg_pieces(data, masks=masks, directed=directed))

    @classmethod
    def from_scipy(cls, adjacency: Any, x: Any, y: Any, *, masks: Masks | None = None) -> NodeData:
        """Read a scipy sparse adjacency (n, n), entry [i, j] the edge j -> i, features (n, f) and labels (n,), or None.

        >>> from scipy.sparse import csr_array
        >>> import gread
        >>> data = gread.NodeData.from_scipy(csr_array([[0, 1], [1, 0]]), [[0.5], [1.5]], [0, 1])
        >>> data.graph.is_undirected, data.x.tolist(), data.num_splits
        (True, [[0.5], [1.5]], 0)
        """
        return cls(**interchange.assemble(Graph.from_scipy(adjacency), x, y, masks, Meta("data")))

    def _with_warnings(self) -> NodeData:
        """The same, after issuing the warnings of its reading."""
        for text in self.meta.cautions:
            warnings.warn(text, stacklevel=3)
        return self

    # ------------------------------------------------------------------ properties
    @property
    def num_nodes(self) -> int:
        return self.graph.num_nodes

    @property
    def num_features(self) -> int:
        return int(self.x.shape[1])

    @property
    def num_classes(self) -> int:
        """The number of classes in `meta.classes`, else the largest label + 1."""
        return len(self.meta.classes) or int(self.y.max()) + 1

    @property
    def num_splits(self) -> int:
        return self.masks.num_splits

    @property
    def is_sparse(self) -> bool:
        return bool(issparse(self.x))

    def warnings(self) -> tuple[str, ...]:
        """Warnings about what is valid but may spoil an experiment, a sentence each.

        >>> from scipy.sparse import csr_array
        >>> import gread
        >>> gread.NodeData.from_scipy(csr_array([[0, 1], [0, 0]]), [[0.0], [1.5]], [0, 1]).warnings()[0]
        'The graph is directed: 1 of 1 edges has no reverse of the same weight.'
        """
        counts = np.bincount(self.y[self.y >= 0], minlength=self.num_classes)
        zero = np.count_nonzero(abs(self.x).sum(axis=1) == 0)
        findings: list[tuple[Any, str]] = [
            *((True, text) for text in self.meta.cautions),
            (not self.graph.is_undirected, self._direction()),
            (self.graph.has_self_loops, "The graph has self-loops."),
            (self.graph.isolated.size, f"{self.graph.isolated.size} of {self.num_nodes} nodes have no neighbour."),
            (zero, f"{zero} of {self.num_nodes} nodes have no feature other than zero."),
            ((self.y < 0).any(), f"{np.count_nonzero(self.y < 0)} of {self.num_nodes} nodes have no label."),
            ((scales := self.unscaled()), scales),
            *((not count, f"No node is of class {self.class_title(k)}.") for k, count in enumerate(counts)),
        ]
        for split, train in enumerate(self.masks.train):
            seen = np.bincount(self.y[train], minlength=self.num_classes)
            absent = np.flatnonzero((seen == 0) & (counts > 0))
            names = ", ".join(self.class_title(int(k)) for k in absent)
            findings.append((absent.size, f"Split {split} trains without class {names}."))
        return tuple(text for holds, text in findings if holds)

    def unscaled(self) -> str:
        """The warning about feature columns of very different scales; "" if there is none."""
        fitted = self.preparation
        remedy = "standardised()" if fitted is None else "standardise=True"
        return unscaled_columns(self.x, remedy, None if fitted is None else fitted.feature_names)

    def _direction(self) -> str:
        """The warning about edges without a reverse."""
        adjacency = self.graph.adjacency
        count = int((adjacency != adjacency.T).multiply(adjacency != 0).sum())
        verb = "has" if count == 1 else "have"
        return f"The graph is directed: {count} of {self.graph.num_edges} edges {verb} no reverse of the same weight."

    def class_title(self, number: int) -> str:
        """The number of a class, with its name if it has one."""
        return f"{number} ({self.meta.classes[number]})" if self.meta.classes else str(number)

    # ------------------------------------------------------------------ derived data sets
    def standardised(self) -> NodeData:
        """The same nodes with features scaled to mean 0 and standard deviation 1 over all nodes, as dense numbers."""
        x = np.asarray(self.x.toarray() if self.is_sparse else self.x)  # type: ignore[union-attr]
        columns = FeatureColumns.of_array(x)
        fitted = Preparation.fit(columns, FeatureChoices(standardise=True))
        notes = (*self.meta.notes, *fitted.sentences())
        return replace(self, x=fitted.apply(columns), meta=replace(self.meta, notes=notes), preparation=fitted)

    def split(self, which: int) -> NodeData:
        """The same nodes with only one of the splits."""
        if not self.num_splits:
            raise InvalidArgument(f"{self.meta.name} has no splits; draw some with stratified()")
        if not 0 <= which < self.num_splits:
            raise InvalidArgument(f"expected a split in 0..{self.num_splits - 1}, got {which}; this set has no other")
        words = f"{self.meta.split}, split {which}" if self.num_splits > 1 else self.meta.split
        return replace(self, masks=self.masks[which], meta=replace(self.meta, split=words))

    def stratified(self, k: int = 10, *, train: float = 0.48, val: float = 0.32, seed: int = 0) -> NodeData:
        """The same nodes with new random splits that keep the share of every class; see `stratified_splits`."""
        from gread.datasets.splits import describe_split, stratified_splits

        words = describe_split(train, val, seed)
        masks = stratified_splits(self.y, k, train=train, val=val, seed=seed)
        return replace(self, masks=masks, meta=replace(self.meta, split=words))

    def subset(self, nodes: Any) -> NodeData:
        """Some of the nodes, by numbers or a mask, with the edges between them."""
        chosen = read_nodes(nodes, self.num_nodes)
        graph, masks = self.graph.subgraph(chosen), self.masks.take(chosen)
        return replace(self, graph=graph, x=self.x[chosen], y=self.y[chosen], masks=masks)

    def component(self) -> NodeData:
        """The largest connected component, with a note on its size."""
        nodes = self.graph.largest_component()[1]
        if nodes.size == self.num_nodes:
            return self
        note = f"Cut to the largest connected component: {nodes.size} of {self.num_nodes} nodes."
        return replace(self.subset(nodes), meta=replace(self.meta, notes=(*self.meta.notes, note)))


# ---------------------------------------------------------------------- given data
# Data sets and splits given by callers, checked.


def _reading(
    features: tuple[str, ...] | None, label: str | None, categories: Sequence[str], missing: str, standardise: bool,
    preparation: Preparation | None, weight: str | None, directed: bool | None, duplicates: str, masks: Masks | None,
) -> interchange.Reading:  # fmt: skip
    """How to read nodes and edges; a preparation replaces the choices of features."""
    choices = FeatureChoices(features, tuple(categories), missing, standardise)
    choices = choices if preparation is None else preparation.choices
    return interchange.Reading(label, choices, preparation, weight, directed, duplicates, masks)


def read_data(data: Any) -> NodeData:
    """A data set, checked."""
    if not isinstance(data, NodeData):
        raise InvalidArgument(
            f"expected a data set, gread.NodeData, got {type(data).__name__}; load_dataset loads one by name"
        )
    return data


def read_data_sets(data: Any) -> list[NodeData]:
    """One data set or several, as a list."""
    several = isinstance(data, Iterable) and not isinstance(data, str | bytes)
    return [read_data(one) for one in data] if several else [read_data(data)]


def read_splits(splits: Any, data: NodeData) -> tuple[int, ...]:
    """Numbers of splits without duplicates; None for all splits.

    >>> from gread.datasets.embedded import karate
    >>> read_splits([2, 0, 2], karate())
    (2, 0)
    """
    if splits is None:
        return tuple(range(data.num_splits))
    if not isinstance(splits, Iterable) or isinstance(splits, str | bytes):
        raise InvalidArgument(f"expected a list of splits of {data.meta.name}, got {splits!r:.60}")
    return tuple(dict.fromkeys(read_whole(k, 0, "a split") for k in splits))
