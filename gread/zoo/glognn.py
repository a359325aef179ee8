"""GloGNN: Li et al., "Finding Global Homophily in Graph Neural Networks When Meeting Heterophily", ICML 2022."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from gread.models.batched_model import BatchedModel
from gread.models.features import Features
from gread.models.randomness import Dropper
from gread.settings.model_records import ModelRecord, ModelSettings
from rdgraph.errors import InvalidArgument


@dataclass(frozen=True, kw_only=True)
class GloGNNSettings(ModelSettings):
    """Settings of GloGNN.

    Args:
        layers: How often the state is rewritten by the coefficients that fit it.
        orders: The highest power of A that the coefficients are pulled to.
        alpha: The price of large coefficients.
        beta: The price of coefficients unlike the powers of A.
        gamma: The share of H_0 in every state.
        delta: The share of the features in H_0; the rest is that of the neighbours by name.

    Raises:
        InvalidArgument: For numbers out of range, and for alpha + beta = 0, where nothing bounds the coefficients.
    """

    model: ClassVar[str] = "glognn"

    input_dropout: float = 0.0
    layers: int = 2
    orders: int = 2
    alpha: float = 0.0
    beta: float = 1.0
    gamma: float = 0.0
    delta: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_at_least(1, "layers", "orders")
        self.check_at_least(0, "alpha", "beta")
        self.check_share("gamma")
        self.check_between(0, 1, "delta")
        if self.alpha + self.beta <= 0:
            raise InvalidArgument("expected alpha + beta > 0, got 0; the coefficients of all pairs need a price")


class GloGNN(BatchedModel):
    """F = (1 - g) Z H + g H_0 follows H, where Z minimises |H - F|^2 + a |Z|^2 + b |Z - sum_k l_k A^k|^2.

    H_0 = relu(d (X V + b_V) + (1 - d)(A U + b_U)) W + b_W has a column per class; A = D^-1 (W + 1) with self-loops; the
    l_k, k from 1 to `orders`, are learned and start equal. Z has an entry for every pair of nodes, and is not formed:
    with R = ((a + b) 1 + (1 - g)^2 H'H)^-1, of a row and a column per class, and Q = (1 - g) H R, it is
    F = (H - g H_0)(1 - g)^2 (H'H) R + b sum_k l_k A^k Q + g H_0.

    The authors write Q as a difference, (1 - g)(H/(a + b) - H K^-1 H'H/(a + b)^2), which loses all digits of single
    precision once H'H is large beside a + b; they compute in double. The form above is equal and has no difference,
    and H'H and R are computed in double precision here whatever the states are in. Their code drops entries of the
    features and then does not use them, so that dropout of the features is off by default; and it tests the last
    weights, not the best.
    """

    settings: GloGNNSettings

    def build(self) -> None:
        """V and U where their share is not zero, W and the weights of the powers."""
        s = self.settings
        self.adjacency = self.place.operator("row", self_loops=1.0)
        if s.delta > 0:
            self.add_linear("features", self.features, s.hidden)
        if s.delta < 1:
            self.add_linear("neighbours", self.place.nodes, s.hidden)
        self.add_linear("second", s.hidden, self.classes)
        self.add_parameter("order_weights", self.full((s.orders,), 1 / s.orders))

    def start(self, x: Features, drop: Dropper) -> Tensor:
        """H_0."""
        delta, parts = self.settings.delta, []
        if delta > 0:
            parts.append(delta * self.linear("features", drop.features(x)))
        if delta < 1:
            known = self.adjacency @ self.get_parameter("neighbours_weight") + self.shift("neighbours")
            parts.append((1 - delta) * known)
        return self.linear("second", drop(sum(parts[1:], parts[0]), relu=True))

    def rewritten(self, h: Tensor, start: Tensor) -> Tensor:
        """(1 - g) Z h + g H_0."""
        s = self.settings
        share = 1 - s.gamma
        wide = h.double()
        gram = wide.mT @ wide
        price = (s.alpha + s.beta) * torch.eye(self.classes, dtype=gram.dtype, device=gram.device)
        inverse = definite_inverse(price + share**2 * gram)
        fitted = (share**2 * gram @ inverse).to(h.dtype)
        power = h @ (share * inverse).to(h.dtype)
        near = torch.zeros_like(h)
        weights = self.get_parameter("order_weights")
        for k in range(s.orders):
            power = self.adjacency @ power
            near = torch.addcmul(near, weights[:, k, None, None], power)
        return (h - s.gamma * start) @ fitted + s.beta * near + s.gamma * start

    def states(self, x: Features, drop: Dropper) -> list[Tensor]:
        """H_0 and the state after every rewriting, the last of which is the logits."""
        states = [self.start(x, drop)]
        for _ in range(self.settings.layers):
            states.append(self.rewritten(states[-1], states[0]))
        return states


class _DefiniteInverse(torch.autograd.Function):
    """By a Cholesky factor that is not checked, so that nothing is asked of the device."""

    @staticmethod
    def forward(ctx: Any, matrix: Tensor) -> Tensor:
        factor = torch.linalg.cholesky_ex(matrix, check_errors=False).L
        one = torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device).expand_as(matrix)
        half = torch.linalg.solve_triangular(factor, one, upper=False)
        inverse = half.mT @ half
        ctx.save_for_backward(inverse)
        return inverse

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> Tensor:
        (inverse,) = ctx.saved_tensors
        return -inverse @ slope @ inverse


def definite_inverse(matrix: Tensor) -> Tensor:
    """The inverse of symmetric positive definite matrices (..., c, c), differentiable; not numbers where one is not.

    >>> definite_inverse(torch.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    found: Tensor = _DefiniteInverse.apply(matrix)  # type: ignore[no-untyped-call]
    return found


RECORDS = (
    ModelRecord(
        "glognn", "GloGNN", "heterophily", source="Li et al., ICML 2022",
        rule="H' = (1 - g) Z H + g H_0, Z the best coefficients of all pairs near sum_k l_k A^k",
        settings=GloGNNSettings, network=GloGNN, published="GloGNN",
    ),
)  # fmt: skip
