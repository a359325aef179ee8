"""What a verdict needs to know of a concrete graph: spectrum, row sums, isolated nodes, directions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components

from rdgraph.errors import NotApplicable
from rdgraph.graphs.normalisation import dense_adjacency, dense_operator
from rdgraph.normalisations.registry import find_normalisation

#: Row sums that differ from 1 by less are 1.
ROW_SUM_TOLERANCE = 1e-12


@dataclass(frozen=True)
class GraphFacts:
    """Size, components, nodes that no edge enters, eigenvalues of L = I - A, largest and smallest row sum of A.

    The spectrum of an undirected graph is real and exact at zero; that of a directed one is complex, measured, and says
    nothing about how far a non-normal A lets norms grow before they fall. `operator` is A itself (n, n).
    """

    nodes: int
    edges: int
    components: int
    isolated: int
    directed: bool
    spectrum: tuple[complex, ...]
    row_sum: float
    least_row_sum: float
    operator: np.ndarray = field(compare=False, repr=False)

    @classmethod
    def of(cls, graph: Any, normalisation: str) -> GraphFacts:
        """From a Graph, networkx graph, scipy sparse matrix or dense adjacency with weights >= 0."""
        weights = dense_adjacency(graph)
        directed = not np.allclose(weights, weights.T)
        record = find_normalisation(normalisation)
        if directed and record.is_symmetric:
            raise NotApplicable(
                f"expected an undirected graph (symmetric adjacency) for the {normalisation} normalisation, got a "
                "directed one; symmetrise it: Graph.undirected(), or choose row or column"
            )
        weights = weights if directed else (weights + weights.T) / 2
        operator = dense_operator(weights, normalisation)
        components = int(connected_components(weights, connection="weak")[0])
        isolated = int((weights.sum(axis=1) == 0).sum())
        edges = int((weights > 0).sum()) if directed else int((np.triu(weights, 1) > 0).sum())
        if not directed and record.is_similar:
            spectrum = _real_spectrum(weights, components - isolated)
        elif record.is_symmetric:
            spectrum = 1 - np.linalg.eigvalsh(operator)[::-1]
        else:  # not known to be real
            spectrum, directed = 1 - np.linalg.eigvals(operator), True
        sums = operator.sum(axis=1)
        return cls(
            len(weights), edges, components, isolated, directed, tuple(spectrum.tolist()), float(sums.max()),
            float(sums.min()), operator,
        )  # fmt: skip

    @property
    def is_stochastic(self) -> bool:
        """Every row of A sums to 1."""
        return max(abs(self.row_sum - 1), abs(self.least_row_sum - 1)) < ROW_SUM_TOLERANCE

    def __str__(self) -> str:
        size = f"{self.nodes} nodes, {self.edges} edges, {self.components} components"
        values = np.array(self.spectrum)
        if self.directed:
            radius = float(np.abs(1 - values).max())
            return f"{size}, directed, |1 - lam| <= {radius:.4g} (measured), largest row sum {self.row_sum:.4g}"
        return f"{size}, lam in [{values.min():.4g}, {values.max():.4g}], largest row sum {self.row_sum:.4g}"


def _real_spectrum(weights: np.ndarray, kernel: int) -> np.ndarray:
    """Eigenvalues of L of an undirected graph from small to large; one is zero for every component with edges."""
    spectrum = 1 - np.linalg.eigvalsh(dense_operator(weights, "symmetric"))[::-1]
    spectrum[:kernel] = 0.0
    return spectrum
