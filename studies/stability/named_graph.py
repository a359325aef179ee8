"""Graphs by a word, the same for all commands and studies: karate, ring:60, grid:12:12, edges.csv, club.graphml."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import rdgraph as rd
from rdgraph.errors import InvalidArgument
from rdgraph.graphs.graph_files import GRAPHS, SEPARATORS, ending

#: Kinds of graphs, with what follows the colon.
FORMS = {
    "karate": "",
    "ring": "NODES",
    "path": "NODES",
    "complete": "NODES",
    "star": "NODES",
    "grid": "ROWS:COLUMNS",
    "torus": "ROWS:COLUMNS",
    "barabasi-albert": "NODES:LINKS",
    "watts-strogatz": "NODES:NEIGHBOURS:SHARE",
    "csbm": "",
}
#: What is meant where nothing follows.
USUAL = {"ring": "24", "grid": "6:6"}
#: The most edges of such a graph, about; networkx takes some gigabytes for them.
MOST_EDGES = 10_000_000
#: The words in one line, for the help of options and for errors.
WORDS = ", ".join(f"{kind}:{form}" if form else kind for kind, form in FORMS.items()) + ", or a file of edges"


def named_graph(text: str, seed: int) -> rd.Graph:
    """The graph that a word names; the seed is that of random ones.

    >>> named_graph("torus:3:4", 0).num_nodes, named_graph("karate", 0).num_nodes
    (12, 34)

    Raises:
        InvalidArgument: for another word.
        FileError: for a file that holds no graph.
    """
    kind, _, rest = text.partition(":")
    if kind == "file" or (kind not in FORMS and ending(text) in (*SEPARATORS, *GRAPHS)):
        return rd.Graph.from_file(rest if kind == "file" else text)
    rest = rest or USUAL.get(kind, "")
    try:
        numbers = [float(part) if "." in part else int(part) for part in rest.split(":") if rest]
    except ValueError:
        numbers = [0.0] * 9
    form = FORMS.get(kind)
    if form is None or len(numbers) != (form.count(":") + 1 if form else 0):
        raise InvalidArgument(f"expected a graph among {WORDS} ({', '.join((*GRAPHS, *SEPARATORS))}), got {text!r}")
    if math.prod(max(1.0, n) for n in numbers) ** (2 if kind == "complete" else 1) > MOST_EDGES:
        raise InvalidArgument(f"{text} has more than {MOST_EDGES:,} edges; choose fewer nodes, or read a file of edges")
    import networkx as nx

    makers: dict[str, Callable[..., Any]] = {
        "karate": lambda: rd.Graph.from_networkx(nx.karate_club_graph(), weight=None),
        "grid": rd.generators.grid,
        "torus": lambda r, c: rd.generators.grid(r, c, periodic=True),
        "barabasi-albert": lambda n, m: rd.generators.barabasi_albert(n, m, seed),
        "watts-strogatz": lambda n, k, p: rd.generators.watts_strogatz(n, k, p, seed),
        "csbm": lambda: rd.generators.csbm(seed).graph,
    }
    make = makers.get(kind) or getattr(rd.generators, kind)
    built: rd.Graph = make(*numbers)
    return built


def lattice_shape(text: str) -> tuple[int, int] | None:
    """Rows and columns of a grid or torus, None of other graphs.

    >>> lattice_shape("torus:3:4"), lattice_shape("grid"), lattice_shape("ring:9")
    ((3, 4), (6, 6), None)
    """
    kind, _, rest = text.partition(":")
    if kind not in ("grid", "torus"):
        return None
    rows, columns = (rest or USUAL["grid"]).split(":")
    return int(rows), int(columns)
