"""`Normalisation`: what one makes of the weights of a graph, and the facts that follow for every graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

#: (w, d_i, d_j, c_j) -> entry [i, j]: a weight j -> i, the sums of |w| over the rows of i and j and the column of j.
Entry = Callable[[Any, Any, Any, Any], Any]

NORMS = ("2", "inf", "1")


@dataclass(frozen=True)
class Normalisation:
    """The operator A = identity*I + entry(w, d_i, d_j, c_j) of a graph with weights w.

    `entry` is plain arithmetic, so that it serves dense and sparse matrices and tensors alike; sums that are zero reach
    it as 1. The facts hold for every graph with weights >= 0:

    `has_degrees`: L is D - A; otherwise it is I - A.
    `is_symmetric`: A equals its transpose; asks for an undirected graph.
    `norm`: |A| <= 1 in the 2-, inf- or 1-norm, None where nothing bounds A.
    `spectrum`: an interval that holds the eigenvalues of L of undirected graphs.
    `row_stochastic`, `column_stochastic`: sums of 1, or of 0 at a node without edges.
    `averages`: what boxes may take A@h for: "stochastic" (an average over neighbours, 0 at a node without edges),
    "stretched" (a sum with weights that add up to at most s), "" for nothing.
    `is_similar`: A of an undirected graph has the eigenvalues of the symmetric normalisation.
    `conserved`: left eigenvector w A = w in terms of the degree d, and what it assumes of the graph.
    `is_sharp`: bounds over all graphs are attained. `transposed`: the normalisation of the transpose.
    """

    name: str
    formula: str
    entry: Entry | None
    identity: float = 0.0
    has_degrees: bool = False
    is_symmetric: bool = False
    norm: str | None = None
    spectrum: tuple[float, float] | None = None
    row_stochastic: bool = False
    column_stochastic: bool = False
    averages: str = ""
    is_similar: bool = False
    conserved: tuple[str, str] | None = None
    is_sharp: bool = False
    transposed: str = "free"

    @property
    def laplacian(self) -> str:
        """What L is."""
        return "D - A" if self.has_degrees else "I - A"

    @property
    def norm_name(self) -> str:
        """The norm in words, as in 2-norm."""
        return f"{self.norm}-norm"
