"""Small graphs, states and float64 layers on them, for the tests of `GREADConv`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gread.layers.conv import GREADConv

#: A small directed graph with an edge given twice, a self-loop and a node without edges.
DIRECTED = torch.tensor([[0, 1, 2, 3, 0, 2, 1, 1], [1, 2, 0, 1, 1, 2, 3, 0]])
PATH = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
NODES, CHANNELS = 5, 3


def make_layer(reaction: str = "BS", **settings: Any) -> GREADConv:
    """A float64 layer whose parameters are all away from their special starting values."""
    layer = GREADConv(CHANNELS, reaction, heads=2, attention_dim=4, **settings).double()
    with torch.no_grad():
        for k, parameter in enumerate(layer.parameters()):
            parameter.copy_(0.7 * torch.sin(torch.arange(parameter.numel()) + k + 1.0).reshape(parameter.shape))
    return layer


def make_state(nodes: int = NODES) -> Tensor:
    return torch.cos(torch.arange(nodes * CHANNELS, dtype=torch.float64)).reshape(nodes, CHANNELS)
