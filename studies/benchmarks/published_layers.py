"""Layers of torch-geometric and of our own, each with its published formula in the language."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

Array = np.ndarray


@dataclass(frozen=True)
class PublishedLayer:
    """A layer, the formula that its documentation prints, and the same in the language.

    `options` are what `rd.conform` is told beside; a function of the layer where they need its weights.
    """

    name: str
    make: Callable[[], Any]
    formula: str
    equation: str
    options: Mapping[str, Any] | Callable[[Any], Mapping[str, Any]] = field(default_factory=dict)
    note: str = ""

    def settings(self, layer: Any) -> dict[str, Any]:
        return dict(self.options(layer) if callable(self.options) else self.options)


def drawn(layer: nn.Module) -> nn.Module:
    """The layer with all parameters drawn anew, so that biases, which begin at zero, count too."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(0.7 * torch.randn(parameter.shape, generator=generator))
    return layer.eval()


def scaled_laplacian(adjacency: Array) -> Array:
    """2 L/lam_max - I with the largest eigenvalue itself."""
    degree = adjacency.sum(axis=1)
    inverse = np.where(degree > 0, 1 / np.sqrt(np.where(degree > 0, degree, 1.0)), 0.0)
    laplacian = np.eye(len(degree)) - inverse[:, None] * adjacency * inverse[None, :]
    return 2 * laplacian / max(1e-12, np.linalg.eigvals(laplacian).real.max()) - np.eye(len(degree))


def diagonal_part(adjacency: Array) -> Array:
    """diag(D^-1 A)."""
    degree = adjacency.sum(axis=1)
    return np.diag(adjacency.diagonal() / np.where(degree > 0, degree, 1.0))


def degree_matrix(adjacency: Array) -> Array:
    return np.diag(adjacency.sum(axis=1))


def of_degree(count: int) -> Callable[[Array], Array]:
    """1 on the diagonal at nodes with so many incoming edges."""
    return lambda adjacency: np.diag(((adjacency != 0).sum(axis=1) == count).astype(float))


def signed_attention(layer: Any) -> Callable[[Array, Array], Array]:
    """tanh(a^T [x_i, x_j])/sqrt(d_i d_j) on the edges j -> i, with the weights of an FAConv."""
    left, right = (linear.weight.detach().double().numpy().ravel() for linear in (layer.att_l, layer.att_r))

    def operator(adjacency: Array, state: Array) -> Array:
        degree = adjacency.sum(axis=1)
        inverse = np.where(degree > 0, 1 / np.sqrt(np.where(degree > 0, degree, 1.0)), 0.0)
        weights = np.tanh((state @ right)[:, None] + (state @ left)[None, :])
        return weights * inverse[:, None] * adjacency * inverse[None, :]

    return operator


def with_unit_feature(layer: Any, x: torch.Tensor, start: torch.Tensor, graph: Any) -> torch.Tensor:
    """A layer that wants edge features, called with 1 for each."""
    edges = torch.tensor(graph.edge_index)
    answer: torch.Tensor = layer(x, edges, torch.ones((edges.shape[1], 1), dtype=x.dtype))
    return answer


def antisymmetric(layer: Any) -> dict[str, Any]:
    """The part of an AntiSymmetricConv that is given: x (W - W^T)^T."""
    weight = layer.W.detach().double().numpy()
    kinds = {"V": "matrix", "b": "channel"}
    return {"values": {"V": weight.T - weight}, "coefficients": kinds, **_LITERAL, "assume": "gamma real"}


#: A + I, as the formulas print it.
_LITERAL: dict[str, Any] = {"normalisation": "symmetric", "self_loops": "added"}
_PLAIN: dict[str, Any] = {"normalisation": "symmetric", "self_loops": "none"}
_BIAS = {"coefficients": {"b": "channel"}}


def _matrices(*names: str, **more: str) -> dict[str, Any]:
    return {"coefficients": {**dict.fromkeys(names, "matrix"), **more}}


def torch_geometric_layers() -> tuple[PublishedLayer, ...]:
    """Sixteen layers of torch-geometric, with what its documentation prints."""
    from torch_geometric import nn as pyg

    degrees = [f"P{k}" for k in range(5)]
    by_degree = " + ".join([*(f"P{k}@H@U{k}" for k in range(5)), *(f"P{k}@A@H@V{k}" for k in range(1, 5))])
    mlp = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 2))
    return (
        PublishedLayer("GCNConv", lambda: pyg.GCNConv(3, 2), "D^-1/2 (A+I) D^-1/2 X W", "A@H@W + b",
                       {**_LITERAL, **_BIAS}),
        PublishedLayer("SGConv", lambda: pyg.SGConv(3, 2, K=3), "(D^-1/2 (A+I) D^-1/2)^K X W", "A@A@A@H@W + b",
                       {**_LITERAL, **_BIAS}),
        PublishedLayer("SSGConv", lambda: pyg.SSGConv(3, 2, alpha=0.3, K=2), "1/K sum_k ((1-alpha) A^k X + alpha X) W",
                       "(alpha*H + (1 - alpha)/2*(A@H + A@A@H))@W + b", {**_LITERAL, **_BIAS}),
        PublishedLayer("APPNP", lambda: pyg.APPNP(3, 0.1), "X_k = (1-alpha) A X_(k-1) + alpha X_0, k = 1..K",
                       "(1 - alpha)*A@H + alpha*H0", {**_LITERAL, "compared": "map", "count": 3}),
        PublishedLayer("TAGConv", lambda: pyg.TAGConv(2, 3, K=2), "sum_k (D^-1/2 A D^-1/2)^k X W_k",
                       "H@W0 + A@H@W1 + A@A@H@W2 + b", {**_PLAIN, **_matrices("W0", "W1", "W2", b="channel")}),
        PublishedLayer("ChebConv", lambda: pyg.ChebConv(2, 3, K=3), "sum_k Z_k W_k, Z_k Chebyshev in 2L/lam_max - I",
                       "H@W0 + B@H@W1 + (2*B@B@H - H)@W2 + b",
                       {**_PLAIN, **_matrices("W0", "W1", "W2", b="channel"), "operators": {"B": scaled_laplacian}},
                       "lam_max as printed"),
        PublishedLayer("ChebConv", lambda: pyg.ChebConv(2, 3, K=3), "the same with lam_max = 2",
                       "H@W0 - A@H@W1 + (2*A@A@H - H)@W2 + b", {**_PLAIN, **_matrices("W0", "W1", "W2", b="channel")},
                       "lam_max = 2"),
        PublishedLayer("GCN2Conv", lambda: pyg.GCN2Conv(2, 0.1, theta=0.5, layer=1),
                       "((1-alpha) P X + alpha X_0) ((1-beta) I + beta W)",
                       "(1 - beta)*((1 - alpha)*A@H + alpha*H0) + beta*((1 - alpha)*A@H + alpha*H0)@W", _LITERAL),
        PublishedLayer("FAConv", lambda: pyg.FAConv(2), "eps x_0 + sum_N(i) tanh(a^T[x_i,x_j])/sqrt(d_i d_j) x_j",
                       "epsilon*H0 + S@H", lambda layer: {**_PLAIN, "operators": {"S": signed_attention(layer)}}),
        PublishedLayer("ARMAConv", lambda: pyg.ARMAConv(2, 3), "relu(D^-1/2 A D^-1/2 X W + X_0 V)",
                       "relu(A@H@W + H@V + b)", {**_PLAIN, **_matrices("V", b="channel")}),
        PublishedLayer("ClusterGCNConv", lambda: pyg.ClusterGCNConv(2, 3, diag_lambda=0.5),
                       "(B + lambda diag(B)) X W_1 + X W_2, B = (D+I)^-1 (A+I)",
                       "(A + mu*B)@H@W1 + H@W2 + b",
                       {"normalisation": "row", "self_loops": "added", **_matrices("W1", "W2", b="channel"),
                        "operators": {"B": diagonal_part}}),
        PublishedLayer("LEConv", lambda: pyg.LEConv(2, 2), "x_i W_1 + sum_j e_ji (W_2 x_i - W_3 x_j)",
                       "H@W1 + D@H@W2 - A@H@W3 + b",
                       {"normalisation": "none", "self_loops": "none", **_matrices("W1", "W2", "W3", b="channel"),
                        "operators": {"D": degree_matrix}}, "with biases"),
        PublishedLayer("LEConv", lambda: pyg.LEConv(2, 2, bias=False), "the same", "H@W1 + D@H@W2 - A@H@W3",
                       {"normalisation": "none", "self_loops": "none", **_matrices("W1", "W2", "W3"),
                        "operators": {"D": degree_matrix}}, "bias=False"),
        PublishedLayer("GraphConv", lambda: pyg.GraphConv(2, 3), "W_1 x_i + W_2 sum_j e_ji x_j", "H@W1 + A@H@W2 + b",
                       {"normalisation": "none", "self_loops": "none", **_matrices("W1", "W2", b="channel")}),
        PublishedLayer("MFConv", lambda: pyg.MFConv(2, 2, max_degree=4, bias=False),
                       "W_1^(deg i) x_i + W_2^(deg i) sum_j x_j", by_degree,
                       {"normalisation": "none", "self_loops": "none",
                        **_matrices(*(f"U{k}" for k in range(5)), *(f"V{k}" for k in range(1, 5))),
                        "operators": {name: of_degree(k) for k, name in enumerate(degrees)}}, "bias=False"),
        PublishedLayer("GINConv", lambda: pyg.GINConv(mlp, eps=0.2), "h((1 + eps) x_i + sum_j x_j), h a network",
                       "relu((1 + epsilon)*H@W1 + A@H@W1 + b1)@W2 + b2",
                       {"normalisation": "none", "self_loops": "none", "shapes": {"W1": (2, 4)},
                        **_matrices("W1", "W2", b1="channel", b2="channel")}),
        PublishedLayer("AntiSymmetricConv", lambda: pyg.AntiSymmetricConv(2),
                       "x_i + eps tanh((W - W^T - gamma I) x_i + Phi(X)_i + b)",
                       "H + epsilon*tanh(H@V - gamma*H + A@H@W + b)", antisymmetric),
        PublishedLayer("PDNConv", lambda: pyg.PDNConv(2, 3, 1, 4), "sum_(N(i), i) f(e_ji) W x_j", "A@H@W + b",
                       {"normalisation": "none", "self_loops": "added", **_BIAS}, "without edge features, f = 1"),
        PublishedLayer("PDNConv", lambda: pyg.PDNConv(2, 3, 1, 4, normalize=False), "the same", "A@H@W + b",
                       {"normalisation": "none", "self_loops": "added", "call": with_unit_feature, **_BIAS},
                       "normalize=False, one edge feature that is 1"),
    )  # fmt: skip


def our_layers() -> tuple[PublishedLayer, ...]:
    """Layers and fields of our own, and the filter bank as its authors released it."""
    from gread import GREADConv
    from rdgraph.graphs import generators
    from rdgraph.lowering.vector_field import lower

    graph = generators.grid(2, 3)
    operator = graph.operator("symmetric", dtype=torch.float64)

    def lowered(name: str, **values: float) -> Callable[[], Any]:
        return lambda: lower(name, operator, values)

    held = {"graph": graph, "normalisation": "symmetric", "self_loops": False, "channels": 2}
    flow = {"normalisation": "symmetric", "self_loops": "added"}
    made: dict[str, Any] = {"adjacency": "original", "beta": "scalar"}
    half = {"values": {"alpha": 0.5, "beta": 0.25}}
    return (
        PublishedLayer("GREADConv, BS, exact", lambda: GREADConv(2, "BS", **made), "the flow of BS to T = 1",
                       "-alpha*L@H + beta*(A@H - A@A@H)",
                       {**flow, "compared": "flow", "T": 1.0, "assume": "beta real"}),
        PublishedLayer("GREADConv, FB, euler", lambda: GREADConv(2, "FB", method="euler", step=0.5, **made),
                       "two steps of FB", "-alpha*L@H + beta*L@H",
                       {**flow, "compared": "step", "step": 0.5, "count": 2, "assume": "beta real"}),
        PublishedLayer("lowered BS", lowered("BS", alpha=0.5, beta=0.25), "Eq. of BS",
                       "-alpha*L@H + beta*(A@H - A@A@H)", {**held, **half}),
        PublishedLayer("lowered Fisher", lowered("-alpha*L@H + beta*H*(1 - H)", alpha=0.5, beta=0.25),
                       "Fisher's equation", "-alpha*L@H + beta*H*(1 - H)", {**held, **half}),
        PublishedLayer("filter bank as released", lowered("FB-released", alpha=0.5, beta=0.25), "Eq. 10, FB",
                       "-alpha*L@H + beta*L@H", {**held, **half}, "the authors' released reaction"),
    )  # fmt: skip
