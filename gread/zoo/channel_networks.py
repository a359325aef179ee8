"""Networks for heterophily that weigh what a layer receives: GGCN, LINKX, GloGNN, ACM-GCN."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from gread.kernels.edge_attention import edge_products, weighted_sums
from gread.models.batched_model import BatchedModel
from gread.models.features import Features
from gread.models.norms import BatchNorm, LayerNorm
from gread.models.randomness import Dropper
from gread.settings.model_records import ModelSettings, StackedSettings, printed_records
from gread.zoo.classical_networks import LayerStack
from rdgraph.errors import InvalidArgument
from rdgraph.graphs.operator import Operator

# ---------------------------------------------------------------------- ggcn
# Yan et al., "Two Sides of the Same Coin: Heterophily and Oversmoothing in Graph Convolutional Neural Networks",
# ICDM 2022.
#: Rows shorter than this count as having no direction.
SHORT = 1e-9


@dataclass(frozen=True, kw_only=True)
class GGCNSettings(StackedSettings, model="ggcn"):
    """Settings of GGCN: layer k from the third on enters with the factor log(decay/k^exponent + 1)."""

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
    start at 1/2, 0, 0, 2. P_1 = elu(X V + d) + z_1, P_k = P_(k-1) + share(k) z_k, where z_k is the ELU of layer k after
    dropout; layer k + 1 acts on P_k, and the last one gives the logits.

    S+ U and S- U come from one sparse product with the edge weights q_1 max(S, 0) + q_2 min(S, 0). The authors' code
    has matrices of all pairs of nodes, and the directed edges of the raw files; the graphs here are undirected.
    """

    settings: GGCNSettings

    def build(self) -> None:
        """Add the skip map V, and for every layer W with its degree, mixture and scale coefficients."""
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
        attract, repel, itself = mixture.split(1, -1)
        direction = functional.normalize(u, dim=-1, eps=SHORT)
        cosines = edge_products(self.adjacency.pattern, direction, direction)
        signed = cosines * self.adjacency.weights * functional.softplus(slope * self.ratios + shift)
        weights = attract * signed.clamp(min=0) + repel * signed.clamp(max=0)
        return weighted_sums(self.adjacency, weights[:, None], u) + itself[..., None] * u

    def states(self, x: Features, drop: Dropper) -> list[Tensor]:
        """The sums P_k that the layers act on, starting with the skip of the features, then the logits."""
        dropped = drop.features(x)
        states, last = [functional.elu(self.linear("skip", dropped))], self.convolve(0, dropped)
        for k in range(1, self.settings.layers):
            states.append(states[-1] + self.settings.share(k) * drop(functional.elu(last)))
            last = self.convolve(k, states[-1])
        return [*states, last]


# ---------------------------------------------------------------------- linkx
# Lim et al., "Large Scale Learning on Non-Homophilous Graphs: New Benchmarks and Strong Simple Methods",
# NeurIPS 2021.


@dataclass(frozen=True, kw_only=True)
class LINKXSettings(ModelSettings, model="linkx", least={"layers": 1, "edge_layers": 1, "node_layers": 1}):
    """Settings of LINKX: numbers of linear layers of the perceptrons of edges, of features, and of both combined."""

    input_dropout: float = 0.0
    layers: int = 2
    edge_layers: int = 1
    node_layers: int = 1


class LINKX(BatchedModel):
    """E = mlp(A), F = mlp(X), logits = mlp(relu(E + F + E W + F V + b)): adjacency and features apart, then combined.

    A has the weights of the graph, and the first layer of mlp(A) has a row for every node: the network identifies nodes
    by their neighbours, and nodes with the same neighbours are the same to it. In all three perceptrons, layers but the
    last are followed by ReLU and batch norm, in the combined one also by dropout. [E, F] times one matrix is written as
    two products, as in torch-geometric; the authors' W, with a row for every entry of [E, F], starts smaller by
    sqrt(2). They do not drop features, which is a setting here.
    """

    settings: LINKXSettings

    def build(self) -> None:
        """Add the three perceptrons, and the layers that combine the first two."""
        s = self.settings
        self.adjacency = self.place.operator("none")
        self.norms: dict[str, BatchNorm] = {}
        self.add_perceptron("edges", [self.place.nodes, *s.edge_layers * [s.hidden]])
        self.add_perceptron("nodes", [self.features, *s.node_layers * [s.hidden]])
        self.add_linear("join_edges", s.hidden, s.hidden)
        self.add_linear("join_nodes", s.hidden, s.hidden)
        self.add_perceptron("both", [*s.layers * [s.hidden], self.classes])

    def add_perceptron(self, name: str, widths: list[int]) -> None:
        """Add linear layers between these widths, and a batch norm after all but the last."""
        for k, (inputs, outputs) in enumerate(pairwise(widths)):
            self.add_linear(f"{name}_{k}", inputs, outputs)
            if k + 2 < len(widths):
                self.norms[f"{name}_{k}"] = BatchNorm(self, f"{name}_{k}_norm", outputs)

    def go_on(self, name: str, first: Tensor, drop: Dropper, rate: str | None = None) -> Tensor:
        """The output of a perceptron, from that of its first linear layer."""
        h, k = first, 0
        while f"{name}_{k}" in self.norms:
            h = self.norms[f"{name}_{k}"](self, torch.relu(h), drop.is_training)
            h = drop(h, rate) if rate else h
            k += 1
            h = self.linear(f"{name}_{k}", h)
        return h

    def states(self, x: Features, drop: Dropper) -> list[Tensor]:
        """The outputs of the perceptrons of edges and of features, and their combination after the ReLU."""
        around = self.adjacency @ self.get_parameter("edges_0_weight") + self.shift("edges_0")
        edges = self.go_on("edges", around, drop)
        nodes = self.go_on("nodes", self.linear("nodes_0", drop.features(x)), drop)
        both = edges + nodes + self.linear("join_edges", edges) + self.linear("join_nodes", nodes)
        return [edges, nodes, torch.relu(both)]

    def read(self, states: list[Tensor], drop: Dropper) -> Tensor:
        """Logits of the combined state."""
        return self.go_on("both", self.linear("both_0", states[-1]), drop, "dropout")


# ---------------------------------------------------------------------- glognn
# Li et al., "Finding Global Homophily in Graph Neural Networks When Meeting Heterophily", ICML 2022.


@dataclass(frozen=True, kw_only=True)
class GloGNNSettings(ModelSettings, model="glognn", least={"layers": 1, "orders": 1, "alpha": 0, "beta": 0}):
    """Settings of GloGNN.

    Args:
        layers: How often the state is replaced by its best reconstruction from all nodes.
        orders: The highest power of A that the coefficients are regularised towards.
        alpha: The penalty on large coefficients.
        beta: The penalty on coefficients unlike the powers of A.
        gamma: The share of H_0 in every state.
        delta: The share of the features in H_0; the rest comes from the rows of A.

    Raises:
        InvalidArgument: For numbers out of range, and for alpha + beta = 0, which leaves the coefficients unbounded.
    """

    input_dropout: float = 0.0
    layers: int = 2
    orders: int = 2
    alpha: float = 0.0
    beta: float = 1.0
    gamma: float = 0.0
    delta: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_share("gamma")
        self.check_between(0, 1, "delta")
        if self.alpha + self.beta <= 0:
            raise InvalidArgument("expected alpha + beta > 0, got 0; otherwise the coefficients are unbounded")


class GloGNN(BatchedModel):
    """F = (1 - g) Z H + g H_0 follows H, where Z minimises |H - F|^2 + a |Z|^2 + b |Z - sum_k l_k A^k|^2.

    H_0 = relu(d (X V + b_V) + (1 - d)(A U + b_U)) W + b_W has a column per class; A = D^-1 (W + 1) with self-loops; the
    l_k, k from 1 to `orders`, are learned and start equal. Z has an entry for every pair of nodes, and is not formed:
    with R = ((a + b) 1 + (1 - g)^2 H'H)^-1, of a row and a column per class, and Q = (1 - g) H R, it is
    F = (H - g H_0)(1 - g)^2 (H'H) R + b sum_k l_k A^k Q + g H_0.

    The authors write Q as a difference, (1 - g)(H/(a + b) - H K^-1 H'H/(a + b)^2), which loses all digits of single
    precision when H'H is large compared with a + b; they compute in double precision. The form above is equal and needs
    no difference; H'H and R are always computed in double precision here. Their code applies dropout to the features
    but does not use the result, so `input_dropout` is 0 by default; and it tests the last weights, not the best.
    """

    settings: GloGNNSettings

    def build(self) -> None:
        """Add V and U where their share is not zero, W and the weights of the powers."""
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
            neighbours = self.adjacency @ self.get_parameter("neighbours_weight") + self.shift("neighbours")
            parts.append((1 - delta) * neighbours)
        return self.linear("second", drop(sum(parts[1:], parts[0]), relu=True))

    def rewritten(self, h: Tensor, start: Tensor) -> Tensor:
        """(1 - g) Z h + g H_0."""
        s = self.settings
        share = 1 - s.gamma
        doubled = h.double()
        gram = doubled.mT @ doubled
        price = (s.alpha + s.beta) * torch.eye(self.classes, dtype=gram.dtype, device=gram.device)
        inverse = definite_inverse(price + share**2 * gram)
        fitted = (share**2 * gram @ inverse).to(h.dtype)
        power = h @ (share * inverse).to(h.dtype)
        powers = torch.zeros_like(h)
        weights = self.get_parameter("order_weights")
        for k in range(s.orders):
            power = self.adjacency @ power
            powers = torch.addcmul(powers, weights[:, k, None, None], power)
        return (h - s.gamma * start) @ fitted + s.beta * powers + s.gamma * start

    def states(self, x: Features, drop: Dropper) -> list[Tensor]:
        """H_0 and the state after every reconstruction, the last of which is the logits."""
        states = [self.start(x, drop)]
        for _ in range(self.settings.layers):
            states.append(self.rewritten(states[-1], states[0]))
        return states


class _DefiniteInverse(torch.autograd.Function):
    """The inverse by an unchecked Cholesky factor, so that the host does not wait for the device."""

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
    """Differentiable inverse of symmetric positive definite matrices (..., c, c); nan where one is not definite.

    >>> definite_inverse(torch.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    inverse: Tensor = _DefiniteInverse.apply(matrix)  # type: ignore[no-untyped-call]
    return inverse


# ---------------------------------------------------------------------- acmgcn
# ACM-GCN and ACM-GCN+: Luan et al., "Revisiting Heterophily for Graph Neural Networks", NeurIPS 2022.


@dataclass(frozen=True, kw_only=True)
class ACMGCNSettings(StackedSettings, model="acmgcn"):
    """Settings of ACM-GCN; `structure` adds the fourth channel and the norms of ACM-GCN+."""

    structure: bool = False


class ACMGCN(LayerStack):
    """H' = 3 (a_L o L + a_H o U + a_I o I): a low-pass, a high-pass and an identity channel, mixed node by node.

    L = relu(A H W_L), U = relu((1 - A) H W_H), I = relu(H W_I), A = D^-1 (W + 1) with self-loops; the shares of a node
    are a = softmax([sigmoid(L v_L), sigmoid(U v_H), sigmoid(I v_I)] M / 3), and o multiplies rows. All layers have this
    form, including the last, the logits.

    With `structure` there is a fourth channel relu(W V), V with a row for every node; the shares are softmax(.../4) of
    four, the v act on states after layer norm, and H' is the plain sum, as in the authors' code, where a misspelt name
    skips the norms.

    The three products with H are one, and A acts on two channels at once; the authors' code has a dense matrix 1 - A.
    """

    settings: ACMGCNSettings

    def build(self) -> None:
        """Add the weights of all channels side by side, v and M for every layer."""
        s = self.settings
        self.adjacency = self.place.operator("row", self_loops=1.0)
        self.graph = self.place.operator("none") if s.structure else None
        self.channels = 4 if s.structure else 3
        self.norms: dict[tuple[int, int], LayerNorm] = {}
        super().build()

    def build_layer(self, k: int, inputs: int, outputs: int) -> None:
        """Add the weights of all channels side by side, v and M."""
        self.add_parameter(f"layer_{k}_weight", self.uniform((inputs, 3 * outputs), outputs**-0.5))
        self.add_parameter(f"layer_{k}_scores", self.uniform((self.channels, outputs), 1.0))
        self.add_parameter(f"layer_{k}_mixer", self.uniform((self.channels, self.channels), self.channels**-0.5))
        if self.settings.structure:
            self.add_parameter(f"layer_{k}_structure", self.uniform((self.place.nodes, outputs), outputs**-0.5))
            for c in range(self.channels):
                self.norms[k, c] = LayerNorm(self, f"layer_{k}_norm_{c}", outputs)

    def layer(self, k: int, h: Tensor | Features, drop: Dropper) -> Tensor:
        """The mixed channels of layer k."""
        low, high, itself = self.times(f"layer_{k}", h).chunk(3, -1)
        smooth, rough = (self.adjacency @ torch.cat([low, high], -1)).chunk(2, -1)
        parts = [smooth, high - rough, itself]
        if self.graph is not None:
            parts.append(self.graph @ self.get_parameter(f"layer_{k}_structure"))
        channels = torch.relu(torch.stack(parts, 2))  # (M, n, channels, outputs)
        shares = self.shares(k, channels)
        factor = 1.0 if self.graph is not None else 3.0
        return factor * torch.einsum("mnc,mnco->mno", shares, channels)

    def shares(self, k: int, channels: Tensor) -> Tensor:
        """The shares of the channels at every node (M, n, channels); they sum to 1."""
        states = channels
        if self.norms:
            states = torch.stack([self.norms[k, c](self, channels[:, :, c]) for c in range(self.channels)], 2)
        scores = torch.einsum("mnco,mco->mnc", states, self.get_parameter(f"layer_{k}_scores"))
        return torch.softmax(torch.sigmoid(scores) @ self.get_parameter(f"layer_{k}_mixer") / self.channels, -1)

    def between(self, h: Tensor) -> Tensor:
        """The output of a layer, already after its ReLU."""
        return h


RECORDS = printed_records(
    (GGCNSettings, GGCN), (LINKXSettings, LINKX), (GloGNNSettings, GloGNN), (ACMGCNSettings, ACMGCN),
)  # fmt: skip
