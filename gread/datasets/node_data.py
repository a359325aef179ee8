"""`NodeData`: a graph, features, labels and splits, checked once, with a record of how they came about."""

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

    What is legal but worth knowing is told by `warnings`. See `from_files`, `from_networkx`, `from_pyg`, `from_scipy`
    for your own graph.

    Args:
        graph: The graph of n nodes.
        x: Features (n, f), numpy or scipy sparse, finite; held as float32, read-only.
        y: Labels (n,), whole numbers from 0, or -1 for unknown; held as int64, read-only.
        masks: The splits; every node of one has a label.
        meta: Where the data come from and what was done to them.
        preparation: How the columns of a file became the features, see `from_files`.

    Raises:
        InvalidArgument: For shapes, features, labels or masks that do not fit.

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
        """A file of edges and one of nodes, or one GraphML or GEXF file with both.

        The edges are `source,target[,weight]` as csv, tsv, or with white space (txt, edges, edgelist), the nodes
        `id,label[,split or split_0, split_1, ...],feature,...` as csv or tsv, all of them also as .gz. Ids are texts.
        `label` names the column of the classes, an empty cell is an unknown label, None reads none; `features` names
        the feature columns, by default every other column. The words of a split column are train, val, test or nothing;
        `masks` replaces them. An error names the file, the line and the column.

        Edges go both ways unless the file says that they are directed, as GraphML and GEXF can, or `directed` does;
        then they go source -> target. `weight` names the column of the weights, used where there is one; None counts
        edges. An edge that is repeated, also the other way round where edges go both ways, must repeat its weight;
        `duplicates` "sum", "mean", "max" or "first" makes one weight of several, "error" refuses.

        A column without any number, or one of `categories`, becomes one feature per word. A missing value is an error,
        or with missing="mean" the mean of its column, and for words no category. `standardise` makes mean 0 and
        deviation 1 of every column of numbers, over all nodes. What was fitted is the `preparation` of the data, and
        given to another call it is applied to other files as it is; categories that it does not know are warned about.

        Large graphs come as arrays instead, npy, npz or parquet, whose ends of edges are rows of the nodes; see
        `gread.datasets.array_files`. Features of an npy file stay on the disk.
        """
        own = FeatureChoices(None if features is None else tuple(features), tuple(categories), missing, standardise)
        choices = own if preparation is None else preparation.choices
        how = interchange.Reading(label, choices, preparation, weight, directed, duplicates, masks)
        edge_file = Path(edges)
        if nodes is None:
            if not is_graph_file(edge_file):
                raise InvalidArgument(f"expected a file of nodes beside {edge_file.name}; pass nodes=FILE")
            pieces, made = node_tables.read_graph_file(edge_file, how)
        else:
            is_array = array_files.is_array_file(edges) or array_files.is_array_file(nodes)
            read = array_files.read_array_files if is_array else node_tables.read_files
            pieces, made = read(edge_file, Path(nodes), id, how)
        return cls(**pieces, preparation=made)._cautioned()

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
        """A networkx graph whose nodes carry attributes: features, the class `label`, and maybe splits.

        `features` names the attributes that are features, by default all others: numbers, words (one feature each),
        and vectors (one feature an entry, called name[0], name[1], ...). `meta.notes` says which attributes were not
        used. Without any every node carries its own unit vector. A node without the label's attribute, or with None,
        is unknown. Edges of a DiGraph go one way unless `directed` is False. All other arguments are those of
        `from_files`. Nodes keep the graph's own order, see `Graph.from_networkx`.

        >>> import networkx as nx, gread
        >>> g = nx.Graph([("a", "b")])
        >>> nx.set_node_attributes(g, {"a": {"label": 0, "staff": 3, "country": "it"}, "b": {"label": 1, "staff": 5}})
        >>> gread.NodeData.from_networkx(g, missing="mean").preparation.feature_names
        ('staff', 'country=it')
        """
        names = (features,) if isinstance(features, str) else None if features is None else tuple(features)
        own = FeatureChoices(names, tuple(categories), missing, standardise)
        choices = own if preparation is None else preparation.choices
        how = interchange.Reading(label, choices, preparation, weight, directed, duplicates, masks)
        pieces, made = interchange.attribute_pieces(graph, how)
        return cls(**pieces, preparation=made)._cautioned()

    @classmethod
    def from_pyg(cls, data: Any, *, masks: Masks | None = None, directed: bool | None = None) -> NodeData:
        """A PyTorch Geometric `Data`: edge_index, x, y, and train_mask, val_mask, test_mask of shape (n,) or (n, k).

        Edges are as edge_index has them; with directed=False each goes both ways, with the larger of two weights.
        """
        return cls(**interchange.pyg_pieces(data, masks=masks, directed=directed))

    @classmethod
    def from_scipy(cls, adjacency: Any, x: Any, y: Any, *, masks: Masks | None = None) -> NodeData:
        """A scipy sparse adjacency (n, n), entry [i, j] the edge j -> i, features (n, f) or None, labels (n,) or None.

        >>> from scipy.sparse import csr_array
        >>> import gread
        >>> data = gread.NodeData.from_scipy(csr_array([[0, 1], [1, 0]]), [[0.5], [1.5]], [0, 1])
        >>> data.graph.is_undirected, data.x.tolist(), data.num_splits
        (True, [[0.5], [1.5]], 0)
        """
        return cls(**interchange.scipy_pieces(adjacency, x, y, masks=masks))

    def _cautioned(self) -> NodeData:
        """The same, after Python's warnings about what the reading met."""
        for text in self.meta.cautions:
            warnings.warn(text, stacklevel=3)
        return self

    # ------------------------------------------------------------------ what it is
    @property
    def num_nodes(self) -> int:
        return self.graph.num_nodes

    @property
    def num_features(self) -> int:
        return int(self.x.shape[1])

    @property
    def num_classes(self) -> int:
        """Classes named in `meta.classes`, else the largest label + 1."""
        return len(self.meta.classes) or int(self.y.max()) + 1

    @property
    def num_splits(self) -> int:
        return self.masks.num_splits

    @property
    def is_sparse(self) -> bool:
        return bool(issparse(self.x))

    def warnings(self) -> tuple[str, ...]:
        """What is legal but may spoil an experiment, a sentence each; empty where nothing is found.

        >>> from scipy.sparse import csr_array
        >>> import gread
        >>> gread.NodeData.from_scipy(csr_array([[0, 1], [0, 0]]), [[0.0], [1.5]], [0, 1]).warnings()[0]
        'The graph is directed: 1 of 1 edges has no reverse of the same weight.'
        """
        counts = np.bincount(self.y[self.y >= 0], minlength=self.num_classes)
        zero = np.count_nonzero(abs(self.x).sum(axis=1) == 0)
        found: list[tuple[Any, str]] = [
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
            found.append((absent.size, f"Split {split} trains without class {names}."))
        return tuple(text for holds, text in found if holds)

    def unscaled(self) -> str:
        """The warning about feature columns of very different scales; "" where there is none."""
        made = self.preparation
        remedy = "standardised()" if made is None else "standardise=True"
        return unscaled_columns(self.x, remedy, None if made is None else made.feature_names)

    def _direction(self) -> str:
        """How many edges go one way alone."""
        adjacency = self.graph.adjacency
        alone = int((adjacency != adjacency.T).multiply(adjacency != 0).sum())
        verb = "has" if alone == 1 else "have"
        return f"The graph is directed: {alone} of {self.graph.num_edges} edges {verb} no reverse of the same weight."

    def class_title(self, number: int) -> str:
        """The number of a class, with its name where it has one."""
        return f"{number} ({self.meta.classes[number]})" if self.meta.classes else str(number)

    # ------------------------------------------------------------------ less of it, other splits
    def standardised(self) -> NodeData:
        """The same nodes with features of mean 0 and deviation 1 over all of them, as dense numbers."""
        x = np.asarray(self.x.toarray() if self.is_sparse else self.x)  # type: ignore[union-attr]
        columns = FeatureColumns.of_array(x)
        made = Preparation.fit(columns, FeatureChoices(standardise=True))
        notes = (*self.meta.notes, *made.sentences())
        return replace(self, x=made.apply(columns), meta=replace(self.meta, notes=notes), preparation=made)

    def split(self, which: int) -> NodeData:
        """The same nodes with one of the splits."""
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
        """Some of the nodes, by numbers or a mask, and the edges among them."""
        chosen = read_nodes(nodes, self.num_nodes)
        graph, masks = self.graph.subgraph(chosen), self.masks.take(chosen)
        return replace(self, graph=graph, x=self.x[chosen], y=self.y[chosen], masks=masks)

    def component(self) -> NodeData:
        """The largest connected component; a note says what was cut off."""
        kept = self.graph.largest_component()[1]
        if kept.size == self.num_nodes:
            return self
        note = f"Cut to the largest connected component: {kept.size} of {self.num_nodes} nodes."
        return replace(self.subset(kept), meta=replace(self.meta, notes=(*self.meta.notes, note)))


# ---------------------------------------------------------------------- given data
# What callers give as data sets and splits, read; anything else is refused with what was expected.


def read_data(data: Any) -> NodeData:
    """One data set."""
    if not isinstance(data, NodeData):
        raise InvalidArgument(
            f"expected a data set, gread.NodeData, got {type(data).__name__}; load_dataset gives one by its name"
        )
    return data


def read_data_sets(data: Any) -> list[NodeData]:
    """One data set or several, as a list."""
    several = isinstance(data, Iterable) and not isinstance(data, str | bytes)
    return [read_data(one) for one in data] if several else [read_data(data)]


def read_splits(splits: Any, data: NodeData) -> tuple[int, ...]:
    """Numbers of splits, each once; None is all of them.

    >>> from gread.datasets.embedded import karate
    >>> read_splits([2, 0, 2], karate())
    (2, 0)
    """
    if splits is None:
        return tuple(range(data.num_splits))
    if not isinstance(splits, Iterable) or isinstance(splits, str | bytes):
        raise InvalidArgument(f"expected a list of splits of {data.meta.name}, got {splits!r:.60}")
    return tuple(dict.fromkeys(read_whole(k, 0, "a split") for k in splits))
