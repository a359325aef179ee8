"""BLEND: Chamberlain et al., "Beltrami Flow and Neural Diffusion on Graphs", NeurIPS 2021."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from scipy.sparse import csr_array, eye_array
from scipy.sparse.linalg import eigsh
from torch import Tensor

from gread.models.features import Features
from gread.models.randomness import Dropper
from gread.settings.line_settings import LineSettings
from gread.settings.model_records import ModelRecord
from gread.zoo.line_model import LineModel
from rdgraph import Graph
from rdgraph.errors import InvalidArgument

# ---------------------------------------------------------------------- graph positions
# Positions of nodes in a graph, computed from it: rows of personalised PageRank, eigenvectors of the Laplacian.

#: Values that differ by less count as equal when the largest are kept.
TIE = 1e-9
#: Up to so many nodes eigenvectors come from the dense matrix.
DENSE = 600


def pagerank_rows(graph: Graph, teleport: float, largest: int, device: Any = "cpu") -> csr_array:
    """Row i of a (I - (1 - a) T)^-1, T = D^-1/2 (W + I) D^-1/2, cut to its `largest` entries, and divided by its sum.

    Graph diffusion convolution of Gasteiger et al. (NeurIPS 2019) with the transition matrix and the cut of BLEND's
    encodings. Entries that equal the last one kept are kept too, so that the numbering of the nodes does not matter.
    The inverse is that of a dense matrix, on the device.

    >>> from rdgraph.graphs.generators import path
    >>> pagerank_rows(path(3), 0.5, 3).toarray().round(3)
    array([[0.75 , 0.197, 0.054],
           [0.176, 0.648, 0.176],
           [0.054, 0.197, 0.75 ]])
    """
    if not 0 < teleport < 1 or largest < 1:
        raise InvalidArgument(f"expected 0 < teleport < 1 and one entry or more, got {teleport!r} and {largest!r}")
    if not graph.edge_index.shape[1]:
        return csr_array(eye_array(graph.num_nodes))
    transition = torch.as_tensor(_transition(graph).toarray(), device=device)
    kept = torch.eye(graph.num_nodes, dtype=transition.dtype, device=device) - (1 - teleport) * transition
    rows = teleport * torch.cholesky_inverse(torch.linalg.cholesky(kept))
    last = rows.topk(min(largest, len(rows)), sorted=True).values[:, -1:]
    chosen = torch.where((rows >= last - TIE) & (rows > TIE), rows, 0.0)
    return csr_array((chosen / chosen.sum(1, keepdim=True)).cpu().numpy())


def laplacian_vectors(graph: Graph, count: int) -> np.ndarray:
    """The eigenvectors (n, count) of I - T to its smallest eigenvalues, the first one left out.

    Every vector has the sign that makes the sum of its third powers positive; where an eigenvalue is multiple, the
    basis of its space is any. A graph with too few nodes has zeros for the rest.

    >>> from rdgraph.graphs.generators import path
    >>> abs(laplacian_vectors(path(3), 2)).round(3)
    array([[0.707, 0.463],
           [0.   , 0.756],
           [0.707, 0.463]])
    """
    n = graph.num_nodes
    transition = _transition(graph)
    found = min(count + 1, n)
    if n <= DENSE or found >= n - 1:
        _, vectors = np.linalg.eigh(-transition.toarray())
        vectors = vectors[:, :found]
    else:
        values, vectors = eigsh(transition, found, which="LA", v0=np.ones(n), tol=1e-8)
        vectors = vectors[:, np.argsort(-values)]
    vectors = vectors[:, 1:] * np.where((vectors[:, 1:] ** 3).sum(0) < 0, -1.0, 1.0)
    return np.pad(vectors, [(0, 0), (0, count - vectors.shape[1])])


def _transition(graph: Graph) -> csr_array:
    """D^-1/2 (W + I) D^-1/2 of the graph taken as undirected."""
    sources, targets = graph.edge_index
    n = graph.num_nodes
    weights = csr_array((np.ones(len(sources)), (targets, sources)), shape=(n, n))
    both = csr_array((weights + weights.T > 0).astype(np.float64))
    both.setdiag(0)
    looped = csr_array(both + eye_array(n))
    scale = csr_array((looped.sum(1) ** -0.5, (np.arange(n), np.arange(n))), shape=(n, n))
    return csr_array(scale @ looped @ scale)


# ---------------------------------------------------------------------- blend
POSITIONS = ("pagerank", "laplacian")


@dataclass(frozen=True, kw_only=True)
class BlendSettings(LineSettings):
    """Settings of BLEND: u' = -L u, v' = -L v, with L = I - S(u, v), u from the features and v from positions.

    Attention is computed from features and positions together, and carries both; the decoder reads both. `positions`
    pagerank are rows of personalised PageRank, cut to the `largest` entries, which the encoder of positions takes as n
    numbers (the authors' GDC); laplacian are `largest` eigenvectors. The authors' other encodings, DeepWalk and
    hyperbolic, are downloads. `adjacency` soft is attention from the start that stays, live follows the states.

    Features and positions have the same number of channels here, where the authors' have 64 and 16; their rewiring of
    the graph and the kernel of products are left out.
    """

    model: ClassVar[str] = "blend"

    reaction: str = "BLEND"
    adjacency: str = "soft"
    positions: str = "pagerank"
    teleport: float = 0.05
    largest: int = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_one_of("positions", POSITIONS)
        self.check_at_least(1, "largest")
        self.check_share("teleport")


class Blend(LineModel):
    """H(0) = [X W + b, P V + c] for the two fields u and v, P the positions; then as every line."""

    config: BlendSettings

    @staticmethod
    def nodes_of(config: Any, parameters: Mapping[str, Tensor]) -> int:
        """The number of nodes that trained parameters fit: the length of PageRank's rows; 1 for any number."""
        return int(parameters["positions_weight"].shape[1]) if config.positions == "pagerank" else 1

    def add_encoder(self, columns: int) -> None:
        """One encoder for the features and one for the positions."""
        self.positions = self.place.once(
            ("positions", self.config.positions, self.config.largest, self.config.teleport), self._positions
        )
        super().add_encoder(columns // 2)
        self.add_linear("positions", self.positions.shape[1], columns // 2)

    def _positions(self) -> Features:
        """P of the graph, or of the graph of every member."""
        c = self.config
        if c.positions == "laplacian":
            each = [laplacian_vectors(graph, c.largest) for graph in self.place.graphs]
            return Features.make(each[0] if len(each) == 1 else np.stack(each), self.place.device, self.place.dtype)
        rows = [pagerank_rows(graph, c.teleport, c.largest, self.place.device) for graph in self.place.graphs]
        if len(rows) == 1:
            return Features.make(rows[0], self.place.device, self.place.dtype, self.members)
        return Features.make(np.stack([part.toarray() for part in rows]), self.place.device, self.place.dtype)

    def first(self, x: Features, drop: Dropper) -> Tensor:
        """What the linear encoders give, side by side."""
        return torch.cat([super().first(x, drop), self.linear("positions", drop.features(self.positions))], -1)


RECORDS = (
    ModelRecord(
        "blend", "BLEND", "continuous", source="Chamberlain et al., NeurIPS 2021",
        rule="dZ/dt = (S(Z) - I) Z, Z = [X W, P V]",
        settings=BlendSettings, network=Blend, published="BLEND",
    ),
)  # fmt: skip
