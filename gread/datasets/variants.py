"""`Variant`: the preparation of a graph before training, recorded in the data."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array, diags_array, issparse

from gread.datasets.node_data import NodeData
from rdgraph import Graph
from rdgraph.errors import InvalidArgument, UnknownName

#: The options of each choice; the first ones are the defaults, and the choices of GREAD's authors.
CHOICES = {
    "self_loops": ("remove", "keep", "add"),
    "features": ("raw", "row"),
    "component": ("covered", "largest", "all"),
}


@dataclass(frozen=True)
class Variant:
    """Four choices for the preparation of a graph; the defaults are those of GREAD's authors.

    Args:
        undirected: Whether edges are made undirected; else they are as stored.
        self_loops: "remove", "keep" the stored ones, or "add" one to every node without.
        features: "raw", or "row": x_i / sum_j |x_ij|, with zero rows unchanged.
        component: "covered" restricts to the largest connected component if every split lies inside it (Cora) and else
            keeps the whole graph, "largest" always restricts, "all" never.

    Raises:
        UnknownName: For an unknown choice.

    >>> import gread
    >>> dict(gread.datasets.Variant(features="row").items())
    {'undirected': 'true', 'self_loops': 'remove', 'features': 'row', 'component': 'covered'}
    """

    undirected: bool = True
    self_loops: str = "remove"
    features: str = "raw"
    component: str = "covered"

    def __post_init__(self) -> None:
        if not isinstance(self.undirected, bool):
            raise InvalidArgument(f"expected True or False for undirected, got {self.undirected!r}")
        for name, known in CHOICES.items():
            if getattr(self, name) not in known:
                raise UnknownName(f"choice of {name}", str(getattr(self, name)), known)

    def items(self) -> tuple[tuple[str, str], ...]:
        """The choices as text."""
        words = {True: "true", False: "false"}
        return tuple((part.name, words.get(value := getattr(self, part.name), value)) for part in fields(self))


def prepare(data: NodeData, variant: Variant | None = None) -> NodeData:
    """The data prepared by a variant; choices are recorded in `meta.variant`, their effects in `meta.notes`.

    >>> from gread.datasets.embedded import karate
    >>> prepare(karate(), Variant(self_loops="add")).graph.num_edges - karate().graph.num_edges
    34
    """
    variant = Variant() if variant is None else variant
    notes = []
    graph = data.graph
    if variant.undirected and not graph.is_undirected:
        graph = graph.undirected()
        notes.append(
            f"{_proper(data.graph)} stored edges join {_proper(graph) // 2} pairs of nodes, now in both directions."
        )
    loops = graph.num_edges - _proper(graph)
    if variant.self_loops == "remove" and loops:
        graph = graph.without_self_loops()
        notes.append(f"{loops} self-loops were removed.")
    elif variant.self_loops == "add":
        graph = _with_self_loops(graph)
        notes.append(f"{data.num_nodes - loops} self-loops were added.")
    x = row_normalised(data.x) if variant.features == "row" else data.x
    meta = replace(data.meta, variant=_recorded(data, variant), notes=(*data.meta.notes, *notes))
    whole = replace(data, graph=graph, x=x, meta=meta)
    return whole.component() if variant.component == "largest" or _is_cut(whole, variant) else whole


def row_normalised(x: Any) -> np.ndarray | csr_array:
    """x_ij / sum_j |x_ij| with zero rows unchanged; sparse matrices stay sparse.

    >>> row_normalised(np.array([[1.0, 3.0], [0.0, 0.0]]))
    array([[0.25, 0.75],
           [0.  , 0.  ]], dtype=float32)
    """
    sums = np.asarray(abs(x).sum(axis=x.ndim - 1, dtype=np.float64))
    scale = np.divide(1.0, sums, out=np.zeros_like(sums), where=sums > 0)
    if issparse(x):
        return csr_array((diags_array(scale) @ x).astype(np.float32))
    return np.asarray(x * scale[..., None], dtype=np.float32)


def _recorded(data: NodeData, variant: Variant) -> tuple[tuple[str, str], ...]:
    """The earlier record with the choices of this variant; unchanged features keep their description."""
    record = dict(data.meta.variant)
    described = {"features": record["features"]} if variant.features == "raw" and "features" in record else {}
    return tuple((record | dict(variant.items()) | described).items())


def _proper(graph: Graph) -> int:
    """The number of edges between different nodes, counting both directions."""
    return int(np.count_nonzero(graph.edge_index[0] != graph.edge_index[1]))


def _is_cut(data: NodeData, variant: Variant) -> bool:
    """Whether there are splits and all lie inside the largest component."""
    if variant.component != "covered" or not data.num_splits:
        return False
    component = data.graph.components()
    outside = component != np.bincount(component).argmax()
    return not data.masks.covered[:, outside].any()


def _with_self_loops(graph: Graph) -> Graph:
    """The graph with a self-loop of weight 1 at every node without."""
    source, target = graph.edge_index
    bare = np.setdiff1d(np.arange(graph.num_nodes), source[source == target])
    pairs = np.concatenate([graph.edge_index, np.stack([bare, bare])], axis=1)
    weight = np.concatenate([graph.weight, np.ones(bare.size)])
    looped = Graph.from_edges(pairs, graph.num_nodes, weight, signed=True)
    return Graph(looped.edge_index, looped.weight, looped.num_nodes, graph.names)
