"""GCN and GAT, of the layers that PyTorch Geometric maintains."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from gread.baselines.layered import Layered, LayeredSettings, dropped, pyg


@dataclass(frozen=True)
class GCNSettings(LayeredSettings):
    """Of a GCN: `layers` convolutions, the last of which gives the logits."""

    layers: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_whole("layers")


class GCN(Layered):
    """H' = relu(A H W + b), A = D^-1/2 (W + I) D^-1/2 with self-loops; no relu after the last layer, the logits.

    Kipf and Welling 2017. The normalisation is computed once and serves all layers.
    """

    def __init__(self, settings: GCNSettings, features: int, classes: int) -> None:
        super().__init__()
        self.settings = settings
        widths = [features, *(settings.layers - 1) * [settings.hidden], classes]
        layer = pyg("nn").GCNConv
        self.convolutions = nn.ModuleList(layer(a, b, normalize=False) for a, b in pairwise(widths))
        self._normalise = pyg("nn.conv.gcn_conv").gcn_norm

    def layers(self, x: Tensor, edge_index: Tensor) -> list[Tensor]:
        """The features and every layer's output: `layers` + 1 states."""
        loops = self._normalise(edge_index, None, x.shape[0], dtype=x.dtype)
        states, rate = [x], self.settings.input_dropout
        for k, convolution in enumerate(self.convolutions):
            h = convolution(dropped(states[-1], rate, self.training), *loops)
            states.append(h if k + 1 == self.settings.layers else torch.relu(h))
            rate = self.settings.dropout
        return states


@dataclass(frozen=True)
class GATSettings(GCNSettings):
    """Of a GAT: `hidden` channels in each of the `heads`, side by side; the last layer has one head."""

    hidden: int = 8
    dropout: float = 0.6
    input_dropout: float = 0.6
    heads: int = 8
    attention_dropout: float = 0.6

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_whole("heads")
        self.check_share("attention_dropout")


class GAT(Layered):
    """H' = elu(S(H) H W), S_ij = softmax_j leaky(a . W h_i + b . W h_j) on edges and self-loops, heads side by side.

    Velickovic et al. 2018. No elu after the last layer, the logits.
    """

    def __init__(self, settings: GATSettings, features: int, classes: int) -> None:
        super().__init__()
        self.settings = settings
        layer, inner = pyg("nn").GATConv, settings.heads * settings.hidden
        options = {"dropout": settings.attention_dropout, "add_self_loops": False}
        inputs = [features, *(settings.layers - 1) * [inner]]
        made = [layer(width, settings.hidden, heads=settings.heads, **options) for width in inputs[:-1]]
        self.convolutions = nn.ModuleList([*made, layer(inputs[-1], classes, heads=1, **options)])
        self._add_loops = pyg("utils").add_remaining_self_loops

    def layers(self, x: Tensor, edge_index: Tensor) -> list[Tensor]:
        """The features and every layer's output: `layers` + 1 states."""
        edges, _ = self._add_loops(edge_index, num_nodes=x.shape[0])
        states, rate = [x], self.settings.input_dropout
        for k, convolution in enumerate(self.convolutions):
            h = convolution(dropped(states[-1], rate, self.training), edges)
            states.append(h if k + 1 == self.settings.layers else functional.elu(h))
            rate = self.settings.dropout
        return states
