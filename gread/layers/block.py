"""`GREADBlock`: a block around a reaction-diffusion layer, as in a tuned network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn
from torch.nn import functional

from gread.layers.conv import GREADConv
from gread.models.gread_model import CURVES
from gread.settings.gread_settings import ACTIVATIONS, NORMS, RESIDUALS
from rdgraph.errors import InvalidArgument, UnknownName
from rdgraph.systems.system import System


class GREADBlock(nn.Module):
    """x -> dropout(activation(norm(flow(x W + b) + residual))) for node features x (n, channels).

    The flow is a `GREADConv`, which takes all further arguments and is the attribute `flow`; the block has its columns.

    Args:
        channels: Columns of x; for several fields, those of each.
        reaction: A name of the catalogue, an equation, or a `System`.
        mixing: Whether the flow starts at x W + b instead of x.
        residual: What is added to the result of the flow: none, identity (x), or linear (x V + c).
        norm: none, layer (over the channels of a node) or batch (over the nodes, `torch.nn.BatchNorm1d`).
        activation: relu, gelu, tanh or none.
        dropout: The share of entries that is dropped in training.
        settings: Arguments of the `GREADConv`, such as adjacency="original" or time=2.0.

    Raises:
        InvalidArgument: For a readout of other columns than x has, and a dropout outside [0, 1).
        UnknownName: For an unknown residual, norm or activation.

    >>> import torch
    >>> from gread.layers import GREADBlock
    >>> block = GREADBlock(8, "BS", norm="layer", adjacency="original")
    >>> block(torch.eye(4, 8), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).shape
    torch.Size([4, 8])
    """

    def __init__(
        self, channels: int, reaction: str | System = "BS", *, mixing: bool = True, residual: str = "linear",
        norm: str = "batch", activation: str = "relu", dropout: float = 0.0, **settings: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        given = (("residual", residual, RESIDUALS), ("norm", norm, NORMS), ("activation", activation, ACTIVATIONS))
        for name, value, known in given:
            if value not in known:
                raise UnknownName(name, str(value), known)
        if not 0 <= dropout < 1:
            raise InvalidArgument(f"expected 0 <= dropout < 1, got {dropout!r}")
        self.flow = GREADConv(channels, reaction, **settings)
        width = self.flow.in_channels
        if self.flow.out_channels != width:
            raise InvalidArgument(
                f"expected a block that returns as many columns as it takes, got {width} and {self.flow.out_channels}; "
                "leave out readout"
            )
        self.mixing = nn.Linear(width, width) if mixing else None
        self.identity, self.activation, self.dropout = residual == "identity", activation, dropout
        self.residual = nn.Linear(width, width) if residual == "linear" else None
        kinds: dict[str, Callable[[int], nn.Module]] = {"layer": nn.LayerNorm, "batch": nn.BatchNorm1d}
        self.norm = kinds[norm](width) if norm in kinds else None

    def reset_parameters(self) -> None:
        """Redraw all parameters, from torch's own generator."""
        for part in (self.flow, self.mixing, self.residual, self.norm):
            if part is not None:
                part.reset_parameters()  # type: ignore[operator]

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """The output (n, channels) for features x (n, channels) on the edges (2, E)."""
        h = self.flow(x if self.mixing is None else self.mixing(x), edge_index, edge_weight)
        if self.identity:
            h = h + x
        elif self.residual is not None:
            h = h + self.residual(x)
        h = h if self.norm is None else self.norm(h)
        return functional.dropout(CURVES[self.activation](h), self.dropout, self.training)

    def extra_repr(self) -> str:
        residual = ", identity residual" if self.identity else ""
        return f"{self.activation}, dropout {self.dropout:g}{residual}"
