"""The small graph of the page: a named one or a file of edges, with places for its nodes."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

from rdgraph.errors import FileError, InvalidArgument
from rdgraph.files import read_text

#: More nodes than this are not seen on a page.
MOST_NODES = 400
NAMED = {
    "karate": (nx.karate_club_graph, "Zachary's karate club"),
    "ring": (lambda: nx.cycle_graph(24), "ring of 24"),
    "grid": (lambda: nx.convert_node_labels_to_integers(nx.grid_2d_graph(6, 6)), "grid of 6 × 6"),
}


def small_graph(name: str = "karate") -> dict[str, Any]:
    """Nodes, edges and places in the unit square of a graph: karate, ring, grid, or a file with two columns of names.

    >>> ring = small_graph("ring")
    >>> ring["nodes"], ring["edges"][:2], ring["name"]
    (24, [[0, 1], [0, 23]], 'ring of 24')

    Raises:
        FileError: a file that is no list of edges.
        InvalidArgument: too many nodes, or nodes without an edge.
    """
    if name in NAMED:
        make, title = NAMED[name]
        graph = make()
    else:
        graph, title = _read(Path(name)), Path(name).stem
    graph = nx.convert_node_labels_to_integers(graph)
    if not 2 <= len(graph) <= MOST_NODES:
        raise InvalidArgument(f"expected a graph of 2 to {MOST_NODES} nodes, got {len(graph)}; take a part of it")
    edges = sorted(sorted(edge) for edge in graph.edges())
    return {"name": title, "nodes": len(graph), "edges": edges, "layout": _layout(graph, name)}


def _read(path: Path) -> nx.Graph:
    """Undirected edges from lines of two names with a comma or spaces between them; source,target may stand above."""
    graph = nx.Graph()
    for number, row in enumerate(csv.reader(read_text(path, "a list of edges").splitlines()), start=1):
        ends = row if len(row) > 1 else " ".join(row).split()
        if (
            not ends
            or ends[0].startswith("#")
            or (number == 1 and [e.strip() for e in ends[:2]] == ["source", "target"])
        ):
            continue
        if len(ends) < 2:
            raise FileError(f"expected two names in line {number} of {path}, got {row}; write them as 0,1")
        one, other = (end.strip() for end in ends[:2])
        if one != other:
            graph.add_edge(one, other)
    if not graph:
        raise FileError(f"expected edges in {path}, got none; write one pair of names on every line")
    return graph


def _layout(graph: nx.Graph, name: str) -> list[list[float]]:
    """Places in the unit square: a circle for a ring, rows and columns for a grid, springs for all others."""
    if name == "ring":
        found = nx.circular_layout(graph)
    elif name == "grid":
        found = {i: np.array([i % 6, i // 6], dtype=float) for i in graph}
    else:
        found = nx.spring_layout(graph, seed=5, k=2.2 / np.sqrt(len(graph)), iterations=200)
    places = np.array([found[i] for i in sorted(graph)])
    low, high = places.min(axis=0), places.max(axis=0)
    unit = (places - low) / np.where(high > low, high - low, 1.0)
    return [[round(float(x), 4), round(float(y), 4)] for x, y in unit]
