"""Norms of states (M, n, d): over channels, over nodes with running means, and of pairs of nodes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from gread.kernels.training_operations import layer_norm
from gread.models.batched_model import BatchedModel

EPS = 1e-5
#: The share of the current batch in running means.
MOMENTUM = 0.1


class LayerNorm:
    """(h - mean)/deviation over the channels of every node, times a weight, plus a shift; both learned.

    Created in the `build` of a network, with parameters under a name. It keeps no reference to the network: the cycle
    would keep its GPU memory until the next garbage collection.
    """

    def __init__(self, model: BatchedModel, name: str, width: int) -> None:
        self.name = name
        model.add_parameter(f"{name}_weight", model.full((width,), 1.0))
        model.add_parameter(f"{name}_bias", model.full((width,), 0.0))

    def __call__(self, model: BatchedModel, x: Tensor) -> Tensor:
        weight, bias = (model.get_parameter(f"{self.name}_{part}") for part in ("weight", "bias"))
        return layer_norm(x, weight, bias, EPS)


class BatchNorm:
    """(h - mean)/deviation over the nodes, for every channel, times a weight, plus a shift.

    As torch's BatchNorm1d: training uses the current nodes and updates running means, which prediction uses.
    """

    def __init__(self, model: BatchedModel, name: str, width: int) -> None:
        self.name = name
        model.add_parameter(f"{name}_weight", model.full((width,), 1.0))
        model.add_parameter(f"{name}_bias", model.full((width,), 0.0))
        model.add_buffer(f"{name}_mean", model.full((width,), 0.0))
        model.add_buffer(f"{name}_variance", model.full((width,), 1.0))

    def __call__(self, model: BatchedModel, x: Tensor, is_training: bool) -> Tensor:
        weight, bias = (model.get_parameter(f"{self.name}_{part}") for part in ("weight", "bias"))
        mean, variance = (model.get_buffer(f"{self.name}_{part}") for part in ("mean", "variance"))
        if not is_training:
            scale = weight * torch.rsqrt(variance + EPS)
            return torch.addcmul(bias[:, None], x - mean[:, None], scale[:, None])
        found: tuple[Tensor, Tensor, Tensor] = _OverNodes.apply(x, weight, bias)  # type: ignore[no-untyped-call]
        nodes = x.shape[1]
        mean.lerp_(found[1], MOMENTUM)
        variance.lerp_(found[2] * (nodes / max(1, nodes - 1)), MOMENTUM)
        return found[0]


class _OverNodes(torch.autograd.Function):
    """Norm, mean and variance over the nodes; the derivative by hand takes a quarter of the kernels of autograd."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        spread, mean = torch.var_mean(x, 1, correction=0)
        rate, centred = torch.rsqrt(spread + EPS), x - mean[:, None]
        ctx.save_for_backward(centred, weight, rate)
        ctx.mark_non_differentiable(mean, spread)
        return torch.addcmul(bias[:, None], centred, (weight * rate)[:, None]), mean, spread

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, g: Tensor, *_: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        centred, weight, rate = ctx.saved_tensors
        along, total, scale = (g * centred).sum(1) * rate, g.sum(1), weight * rate
        share = -scale / g.shape[1]
        rest = torch.addcmul((share * total)[:, None], centred, (share * along * rate)[:, None])
        return torch.addcmul(rest, g, scale[:, None]), along, total


def pair_norm(x: Tensor, scale: float = 1.0, *, individually: bool = False) -> Tensor:
    """Centred over the nodes, then scaled to the mean squared length scale^2, or every node to length `scale`.

    Zhao and Akoglu, ICLR 2020; `individually` is their PN-SI.

    >>> pair_norm(torch.tensor([[[1.0], [3.0]]]))
    tensor([[[-1.0000],
             [ 1.0000]]])
    """
    centred = x - x.mean(1, keepdim=True)
    if individually:
        return scale * centred / (EPS + torch.linalg.vector_norm(centred, dim=-1, keepdim=True))
    squared = centred.square().sum(-1, keepdim=True).mean(1, keepdim=True)
    return scale * centred * torch.rsqrt(squared + EPS)


def standardised(x: Tensor) -> Tensor:
    """(x - mean)/deviation over the nodes, for every channel.

    >>> standardised(torch.tensor([[[1.0], [3.0]]])).ravel()
    tensor([-1.0000,  1.0000])
    """
    centred = x - x.mean(-2, keepdim=True)
    return centred * torch.rsqrt(centred.square().mean(-2, keepdim=True) + EPS)
