"""`FieldBlocks`: several states in one tensor, side by side along the channels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rdgraph.errors import InvalidArgument, UnknownName


@dataclass(frozen=True)
class FieldBlocks:
    """The order of the states of a system in a packed tensor (*batch, nodes, states*d).

    >>> blocks = FieldBlocks(("u", "v"))
    >>> packed = blocks.pack({"u": torch.zeros(3, 1), "v": torch.ones(3, 1)})
    >>> packed.shape, blocks.cut(packed)["v"].sum().item()
    (torch.Size([3, 2]), 3.0)
    """

    names: tuple[str, ...]

    def width(self, packed: Tensor) -> int:
        """d, the channels of one state."""
        channels, count = packed.shape[-1], len(self.names)
        if channels % count:
            raise InvalidArgument(
                f"expected a multiple of {count} channels, as many for each of {', '.join(self.names)}, got {channels};"
                " put the states side by side, or give them by name"
            )
        return channels // count

    def pack(self, states: Mapping[str, Any]) -> Tensor:
        """States by name as one tensor; a missing velocity is zero."""
        for name in states:
            if name not in self.names:
                raise UnknownName("field of this system", name, self.names)
        missing = [name for name in self.names if name not in states and not name.endswith("'")]
        if missing:
            raise InvalidArgument(f"expected a state for every field, got none for {', '.join(missing)}; add it")
        for name, value in states.items():
            if not isinstance(value, Tensor) or value.ndim < 2:
                got = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
                raise InvalidArgument(f"expected {name} as a tensor (..., nodes, channels), got {got}")
        shapes = {tuple(value.shape) for value in states.values()}
        if len(shapes) > 1:
            sizes = ", ".join(f"{name} {tuple(value.shape)}" for name, value in states.items())
            raise InvalidArgument(
                f"expected states of one shape, got {sizes}; every field has the same nodes and channels"
            )
        first = next(iter(states.values()))
        return torch.cat([states.get(name, torch.zeros_like(first)) for name in self.names], -1)

    def cut(self, packed: Tensor) -> dict[str, Tensor]:
        """The states by name, as views of a packed tensor."""
        self.width(packed)
        return dict(zip(self.names, packed.chunk(len(self.names), -1), strict=True))

    def block(self, packed: Tensor, name: str) -> Tensor:
        """One state, as a view."""
        if name not in self.names:
            raise UnknownName("field of this system", name, self.names)
        return self.cut(packed)[name]


def side_by_side(values: Sequence[Tensor], width: int) -> Tensor:
    """A coefficient for each state, () to (*batch, 1, d), as one for each channel of the packed tensor.

    >>> side_by_side([torch.tensor(2.0), torch.tensor([5.0, 6.0])], 2)
    tensor([[2., 2., 5., 6.]])
    """
    columns = [x.expand(*(x.shape[:-1] if x.ndim > 1 else (1,)), width) for x in values]
    lead = torch.broadcast_shapes(*(x.shape[:-1] for x in columns))
    return torch.cat([x.expand(*lead, width) for x in columns], -1)
