"""`NodeData`: a graph, features, labels and splits, checked once, with a record of how they came about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from gread.datasets import array_files, interchange, tables
from gread.datasets.checks import read_features, read_labels
from gread.datasets.masks import Masks
from gread.datasets.meta import Meta
from gread.datasets.preparation import FeatureChoices, FeatureColumns, Preparation
from rdgraph import Graph
from rdgraph.errors import InvalidArgument
from rdgraph.graphs.edges import read_nodes

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

    >>> from gread.datasets.embedded import karate
    >>> karate()
    NodeData('karate', num_nodes=34, num_edges=156, num_features=34, num_classes=2, num_splits=10)
    """

    graph: Graph
    x: np.ndarray | csr_array
    y: np.ndarray
    masks: Masks
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
            raise InvalidArgument(
                f"expected a label for every node of a split, got split {split}: node {node} has none (-1); "
                "take it out of the masks"
            )
        object.__setattr__(self, "x", x)
        object.__setattr__(self, "y", y)

    def __repr__(self) -> str:
        return (
            f"NodeData({self.meta.name!r}, num_nodes={self.num_nodes}, num_edges={self.graph.num_edges}, "
            f"num_features={self.num_features}, num_classes={self.num_classes}, num_splits={self.num_splits})"
        )

    # ------------------------------------------------------------------ your own graph
    @classmethod
    def from_files(
        cls,
        edges: str | Path,
        nodes: str | Path,
        *,
        label: str | None = "label",
        id: str = "id",  # noqa: A002  the name of the column
        features: Sequence[str] | None = None,
        categories: Sequence[str] = (),
        missing: str = "error",
        standardise: bool = False,
        preparation: Preparation | None = None,
        weight: str | None = "weight",
        directed: bool = False,
        masks: Masks | None = None,
    ) -> NodeData:
        """Two csv files, `source,target[,weight]` and `id,label[,split or split_0, split_1, ...],feature,...`.

        Ids are texts. `label` names the column of the classes, an empty cell is an unknown label, None reads none;
        `features` names the feature columns, by default every other column. The words of a split column are train,
        val, test or nothing; `masks` replaces them. Edges go both ways unless `directed`, then source -> target; a
        repeated edge counts once. `weight` names the column of the weights, used where there is one; None counts
        edges. An error names the file, the line and the column.

        A column without any number, or one of `categories`, becomes one feature per word. A missing value is an error,
        or with missing="mean" the mean of its column, and for words no category. `standardise` makes mean 0 and
        deviation 1 of every column of numbers, over all nodes. What was fitted is the `preparation` of the data, and
        given to another call it is applied to other files as it is.

        Large graphs come as arrays instead, npy, npz or parquet, whose ends of edges are rows of the nodes; see
        `gread.datasets.array_files`. Features of an npy file stay on the disk.
        """
        is_array = array_files.is_array_file(edges) or array_files.is_array_file(nodes)
        own = FeatureChoices(None if features is None else tuple(features), tuple(categories), missing, standardise)
        pieces, made = (array_files.read_array_files if is_array else tables.read_files)(
            edges, nodes, label=label, id=id, choices=own if preparation is None else preparation.choices,
            preparation=preparation, weight=weight, directed=directed, masks=masks,
        )  # fmt: skip
        return cls(*pieces, preparation=made)

    @classmethod
    def from_networkx(
        cls,
        graph: Any,
        *,
        features: str | Sequence[str] | None = None,
        label: str | None = "label",
        weight: str | None = "weight",
        masks: Masks | None = None,
    ) -> NodeData:
        """A networkx graph whose nodes carry attributes: `features`, numbers or vectors, and `label`, any name.

        Without `features` every node carries its own unit vector. A node without the label's attribute, or with None,
        is unknown. Nodes keep the graph's own order, see `Graph.from_networkx`.
        """
        return cls(*interchange.networkx_pieces(graph, features=features, label=label, weight=weight, masks=masks))

    @classmethod
    def from_pyg(cls, data: Any, *, masks: Masks | None = None) -> NodeData:
        """A PyTorch Geometric `Data`: edge_index, x, y, and train_mask, val_mask, test_mask of shape (n,) or (n, k)."""
        return cls(*interchange.pyg_pieces(data, masks=masks))

    @classmethod
    def from_scipy(cls, adjacency: Any, x: Any, y: Any, *, masks: Masks | None = None) -> NodeData:
        """A scipy sparse adjacency (n, n), entry [i, j] the edge j -> i, features (n, f) or None, labels (n,) or None.

        >>> data = NodeData.from_scipy(csr_array([[0, 1], [1, 0]]), [[0.5], [1.5]], [0, 1])
        >>> data.graph.is_undirected, data.x.tolist(), data.num_splits
        (True, [[0.5], [1.5]], 0)
        """
        return cls(*interchange.scipy_pieces(adjacency, x, y, masks=masks))

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

        >>> NodeData.from_scipy(csr_array([[0, 1], [0, 0]]), [[0.0], [1.5]], [0, 1]).warnings()
        ('The graph is directed.', '1 of 2 nodes have no feature other than zero.')
        """
        counts = np.bincount(self.y[self.y >= 0], minlength=self.num_classes)
        zero = np.count_nonzero(abs(self.x).sum(axis=1) == 0)
        found = [
            (not self.graph.is_undirected, "The graph is directed."),
            (self.graph.has_self_loops, "The graph has self-loops."),
            (self.graph.isolated.size, f"{self.graph.isolated.size} of {self.num_nodes} nodes have no neighbour."),
            (zero, f"{zero} of {self.num_nodes} nodes have no feature other than zero."),
            ((self.y < 0).any(), f"{np.count_nonzero(self.y < 0)} of {self.num_nodes} nodes have no label."),
            *((not count, f"No node is of class {self._class(k)}.") for k, count in enumerate(counts)),
        ]
        for split, train in enumerate(self.masks.train):
            seen = np.bincount(self.y[train], minlength=self.num_classes)
            absent = np.flatnonzero((seen == 0) & (counts > 0))
            names = ", ".join(self._class(int(k)) for k in absent)
            found.append((absent.size, f"Split {split} trains without class {names}."))
        return tuple(text for holds, text in found if holds)

    def _class(self, number: int) -> str:
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
