"""One random graph of seven nodes, for tests of identities in numbers."""

from __future__ import annotations

import networkx as nx

GRAPH = nx.to_numpy_array(nx.gnp_random_graph(7, 0.5, seed=3))
