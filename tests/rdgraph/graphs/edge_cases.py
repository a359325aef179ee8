"""Edges for the tests of graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from rdgraph.graphs.graph import Graph


@st.composite
def matrices(draw: Any, signed: bool = False, undirected: bool = False, max_nodes: int = 6) -> np.ndarray:
    """Any adjacency (n, n): directed, with self-loops, weights multiples of 1/8."""
    n = draw(st.integers(1, max_nodes))
    eighths = st.sampled_from([0, 0, 1, 8, 20, *([-8, -3] if signed else [])])
    matrix = np.array(draw(st.lists(eighths, min_size=n * n, max_size=n * n)), dtype=float).reshape(n, n) / 8
    return np.tril(matrix) + np.tril(matrix, -1).T if undirected else matrix


def edges(*pairs: Any, **settings: Any) -> Any:
    return lambda: Graph.from_edges(*pairs, **settings)


TWO = [[0, 1], [1, 2]]
