"""GGCN: Yan et al., "Two Sides of the Same Coin: Heterophily and Oversmoothing in Graph Convolutional Neural Networks",
ICDM 2022."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from gread.kernels.edge_attention import edge_products, weighted_sums
from gread.models.batched_model import BatchedModel
from gread.models.features import Features
from gread.models.randomness import Dropper
from gread.settings.model_records import ModelRecord, StackedSettings
from rdgraph.graphs.operator import Operator

#: Rows shorter than this have no direction.
SHORT = 1e-9


@dataclass(frozen=True, kw_only=True)
class GGCNSettings(StackedSettings):
    """Settings of GGCN: layer k from the third on enters with the factor log(decay/k^exponent + 1)."""

    model: ClassVar[str] = "ggcn"

    decay: float = 1.0
    exponent: float = 3.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_at_least(2, "layers")
        self.check_at_least(0, "decay", "exponent")

    def share(self, k: int) -> float:
        """The factor of the output of layer k, counted from 1, in the sum that the next one takes.

        >>> GGCNSettings(decay=1.0).share(1), round(GGCNSettings(decay=1.0).share(2), 6)
        (1.0, 0.036368)
        """
        return 1.0 if k == 1 else math.log(self.decay / (k + 1) ** self.exponent + 1)


class GGCN(BatchedModel):
    """A convolution of U = H W + b is s (q_1 S+ U + q_2 S- U + q_3 U), with signed weights on the edges.

    S_ij = cos(u_i, u_j) A_ij softplus(a (A_ii/A_ij - 1) + c) for i != j, S+ and S- its positive and negative entries; A
    is symmetric with self-loops; q = softmax(r), and s = softplus(t). The a, c, r, t are learned in every layer, and
    start at 1/2, 0, 0, 2. P_1 = elu(X V + d) + z_1, P_k = P_(k-1) + share(k) z_k, where z_k is the elu of layer k with
    entries dropped; layer k + 1 acts on P_k, and the last one gives the logits.

    S+ U and S- U come from one sparse product, as q_1 max(S, 0) + q_2 min(S, 0) weighs the edges. The authors' code
    has matrices of all pairs of nodes, and the directed edges of the raw files, where the graphs here are undirected.
    """

    settings: GGCNSettings

    def build(self) -> None:
        """Make the skip map V, and for every layer W with its degree, mixture and scale coefficients."""
        s = self.settings
        self.adjacency, self.ratios = self.place.once("ggcn", self.edges)
        self.add_linear("skip", self.features, s.hidden)
        for k in range(s.layers):
            outputs = self.classes if k + 1 == s.layers else s.hidden
            self.add_linear(f"layer_{k}", self.features if k == 0 else s.hidden, outputs)
            self.add_parameter(f"degree_{k}", self.place.tensor([0.5, 0.0]).repeat(self.members, 1))
            self.add_parameter(f"mixture_{k}", self.full((3,), 0.0))
            self.add_parameter(f"scale_{k}", self.full((1,), 2.0))

    def edges(self) -> tuple[Operator, Tensor]:
        """A with zeros on its diagonal, and A_ii/A_ij - 1 on the edges; both zero where there is none."""
        looped = self.place.operator("symmetric", self_loops=1.0)
        rows, weights = looped.pattern.rows, looped.weights
        is_loop = rows == looped.pattern.indices
        diagonal = weights[..., is_loop]  # every node has its loop, in the order of the rows
        is_edge = ~is_loop & (weights != 0)
        ratios = diagonal[..., rows] / torch.where(is_edge, weights, 1.0) - 1
        zero = weights.new_zeros(())
        edges = looped.with_weights(torch.where(is_edge, weights, zero)).prepare()
        return edges, torch.where(is_edge, ratios, zero)

    def convolve(self, k: int, h: Tensor | Features) -> Tensor:
        """s (q_1 S+ u + q_2 S- u + q_3 u) for u = h W + b."""
        u = self.linear(f"layer_{k}", h)
        slope, shift = self.get_parameter(f"degree_{k}").split(1, -1)
        mixture = torch.softmax(self.get_parameter(f"mixture_{k}"), -1) * functional.softplus(
            self.get_parameter(f"scale_{k}")
        )
        attract, repel, own = mixture.split(1, -1)
        direction = functional.normalize(u, dim=-1, eps=SHORT)
        cosines = edge_products(self.adjacency.pattern, direction, direction)
        signed = cosines * self.adjacency.weights * functional.softplus(slope * self.ratios + shift)
        weights = attract * signed.clamp(min=0) + repel * signed.clamp(max=0)
        return weighted_sums(self.adjacency, weights[:, None], u) + own[..., None] * u

    def states(self, x: Features, drop: Dropper) -> list[Tensor]:
        """The sums P_k that the layers act on, from the skip of the features alone, then the logits."""
        seen = drop.features(x)
        states, last = [functional.elu(self.linear("skip", seen))], self.convolve(0, seen)
        for k in range(1, self.settings.layers):
            states.append(states[-1] + self.settings.share(k) * drop(functional.elu(last)))
            last = self.convolve(k, states[-1])
        return [*states, last]


RECORDS = (
    ModelRecord(
        "ggcn", "GGCN", "heterophily", source="Yan et al., ICDM 2022",
        rule="H' = s (q_1 S+ U + q_2 S- U + q_3 U), U = H W + b",
        settings=GGCNSettings, network=GGCN, published="GGCN",
    ),
)  # fmt: skip
