"""Graphs by a word: grid:12:12, torus:16:16, ring:60, barabasi-albert:200:10, watts-strogatz:100:4:0.1, file:PATH."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

import rdgraph as rd
from rdgraph.errors import InvalidArgument
from rdgraph.files import read_text

#: Kinds of graphs, with what follows the colon.
FORMS = {
    "grid": "ROWS:COLUMNS",
    "torus": "ROWS:COLUMNS",
    "ring": "NODES",
    "path": "NODES",
    "complete": "NODES",
    "barabasi-albert": "NODES:LINKS",
    "watts-strogatz": "NODES:NEIGHBOURS:SHARE",
    "file": "PATH, a csv file source,target",
}


def named_graph(text: str, seed: int) -> rd.Graph:
    """The graph that a word names; the seed is that of random ones.

    >>> named_graph("torus:3:4", 0).num_nodes
    12
    """
    kind, _, rest = text.partition(":")
    if kind == "file":
        return edges_graph(Path(rest))
    parts = rest.split(":")
    try:
        numbers = [float(part) if "." in part else int(part) for part in parts]
    except ValueError:
        numbers = []
    if kind not in FORMS or len(numbers) != len(FORMS[kind].split(":")):
        forms = ", ".join(f"{name}:{form}" for name, form in FORMS.items())
        raise InvalidArgument(f"expected a graph among {forms}, got {text!r}; write ring:60")
    makers: dict[str, Callable[..., rd.Graph]] = {
        "grid": lambda r, c: rd.generators.grid(r, c),
        "torus": lambda r, c: rd.generators.grid(r, c, periodic=True),
        "ring": rd.generators.ring,
        "path": rd.generators.path,
        "complete": rd.generators.complete,
        "barabasi-albert": lambda n, m: rd.generators.barabasi_albert(n, m, seed),
        "watts-strogatz": lambda n, k, p: rd.generators.watts_strogatz(n, k, p, seed),
    }
    return makers[kind](*numbers)


def edges_graph(path: Path) -> rd.Graph:
    """An undirected graph from lines source,target of node numbers; a first line of words is passed over."""
    lines = [line.split(",") for line in read_text(path, "a csv file of edges").splitlines() if line.strip()]
    if lines and not lines[0][0].strip().lstrip("-").isdigit():
        lines = lines[1:]
    try:
        pairs = np.array([(int(line[0]), int(line[1])) for line in lines], dtype=int).reshape(-1, 2)
    except (ValueError, IndexError):
        raise InvalidArgument(f"expected lines source,target of whole numbers, got another line in {path}") from None
    if not len(pairs):
        raise InvalidArgument(f"expected edges, got none in {path}")
    return rd.Graph.from_edges(np.concatenate([pairs, pairs[:, ::-1]]).T, duplicates="once")


def lattice_shape(text: str) -> tuple[int, int] | None:
    """Rows and columns of a grid or torus, None of other graphs.

    >>> lattice_shape("torus:3:4"), lattice_shape("ring:9")
    ((3, 4), None)
    """
    kind, _, rest = text.partition(":")
    if kind not in ("grid", "torus"):
        return None
    rows, columns = rest.split(":")
    return int(rows), int(columns)
