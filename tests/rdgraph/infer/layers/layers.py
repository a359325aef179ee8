"""Layers of torch for the tests, written with message passing and with dense matrices."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def neighbours(x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
    """sum_j w_ji x_j."""
    source, target = edge_index
    weight = x.new_ones(len(source)) if edge_weight is None else edge_weight
    return torch.zeros_like(x).index_add(0, target, weight[:, None] * x[source])


def mean(x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
    """The mean over the incoming edges, 0 where there is none."""
    total = neighbours(torch.ones_like(x), edge_index, edge_weight)
    return neighbours(x, edge_index, edge_weight) / torch.where(total > 0, total, 1.0)


def symmetric_mean(x: Tensor, edge_index: Tensor) -> Tensor:
    """D^-1/2 A D^-1/2 x by incoming degrees, of which none counts less than 1."""
    degree = neighbours(torch.ones_like(x), edge_index).clamp(min=1.0).rsqrt()
    return degree * neighbours(degree * x, edge_index)


def released_filter_bank(x: Tensor, edge_index: Tensor) -> Tensor:
    """The filter bank with (I + A)H where the paper prints L H; alpha = 0.5, beta = 0.25."""
    around = mean(x, edge_index)
    return -0.5 * (x - around) + 0.25 * (x + around)


class Mixed(nn.Module):
    """tanh(x V + A x W + b) with dropout."""

    def __init__(self, channels: int = 2, rate: float = 0.0) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(3)
        self.V, self.W = (nn.Parameter(torch.randn(channels, channels, generator=generator)) for _ in range(2))
        self.b = nn.Parameter(torch.randn(channels, generator=generator))
        self.rate = rate
        self.in_channels = channels

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        x = nn.functional.dropout(x, self.rate, self.training)
        return torch.tanh(x @ self.V + mean(x, edge_index, edge_weight) @ self.W + self.b)


class Gated(nn.Module):
    """sigmoid(gate) times the mean over the neighbours, remembered from the first call where asked."""

    def __init__(self, gate: float = 0.3, *, remembers: bool = False) -> None:
        super().__init__()
        self.gate = nn.Parameter(torch.tensor(gate))
        self.remembers, self.kept = remembers, None

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        if self.kept is None or not self.remembers:
            self.kept = mean(x, edge_index)
        return torch.sigmoid(self.gate) * self.kept
