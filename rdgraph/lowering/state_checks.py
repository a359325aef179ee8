"""What a field asks of the states and times that it is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from rdgraph.errors import InvalidArgument
from rdgraph.graphs.operator import Operator
from rdgraph.lowering.coefficients import CoefficientShape, coefficient_dtype
from rdgraph.lowering.learned_shapes import LearnedShape


def check_state(H: Any, operator: Operator, batch: tuple[int, ...]) -> None:
    """Whether a state lies on the nodes of an operator, beside its weights, with the batch of a field in front."""
    wanted = (*batch, operator.num_nodes)
    if not isinstance(H, Tensor) or H.ndim < 2 or (H.shape[:-1] if batch else H.shape[-2:-1]) != wanted:
        got = tuple(H.shape) if hasattr(H, "shape") else type(H).__name__
        lead = "" if batch else "..., "
        raise InvalidArgument(
            f"expected a state tensor of shape ({lead}{', '.join(map(str, wanted))}, channels), got "
            f"{type(H).__name__} {got}; a batch with weights or coefficients of its own is declared by "
            "lower(..., batch=(...))"
        )
    if H.dtype != operator.dtype or H.device != operator.device:
        raise InvalidArgument(
            f"expected a state of {operator.dtype} on {operator.device}, got {H.dtype} on {H.device}; "
            "convert it with .to(...), or lower with dtype= and device="
        )


def check_channels(
    channels: int, shapes: Mapping[str, CoefficientShape | LearnedShape], values: Mapping[str, Tensor]
) -> None:
    """Whether coefficients that have channels have as many as every field of a state."""
    for name, value in values.items():
        shape = shapes[name]
        width = shape.channels(value)
        if width not in (None, channels):
            what = f"{shape.kind} coefficient" if isinstance(shape, CoefficientShape) else "learned function"
            raise InvalidArgument(
                f"expected {width} channels, as many as the {what} {name} has, got {channels}; give every "
                f"field {width}, or lower with another {name}"
            )


def read_time(t: Any, H: Tensor, equation: str) -> Tensor:
    """The time as it broadcasts against a state: () or (*batch, 1, 1), in the precision of coefficients."""
    if t is None:
        raise InvalidArgument(f"expected a time, since {equation} depends on it, got None; call field(t, H)")
    time = torch.as_tensor(t, dtype=coefficient_dtype(H.dtype), device=H.device)
    if time.ndim not in (0, H.ndim - 2, H.ndim):
        raise InvalidArgument(
            f"expected a time () or {tuple(H.shape[:-2])}, got {tuple(time.shape)}; give one, or one for each member"
        )
    return time[..., None, None] if 0 < time.ndim < H.ndim else time
