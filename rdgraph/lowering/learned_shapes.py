"""Control values of learned functions as tensors: which shapes they may have, and what a user may give for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from rdgraph.errors import InvalidArgument
from rdgraph.lowering.spline_evaluation import spline_pieces
from rdgraph.syntax.learned_function import LearnedFunction
from rdgraph.syntax.learned_values import LearnedValues
from rdgraph.systems.system import System


@dataclass(frozen=True)
class LearnedShape:
    """The shapes of the control values of one learned function: (K,), or (channels, K), with or without the batch."""

    declaration: LearnedFunction
    batch: tuple[int, ...]

    @property
    def own_axes(self) -> int:
        return 2 if self.declaration.per_channel else 1

    def check(self, tensor: Tensor) -> None:
        """Raise unless a tensor has one of the shapes."""
        lead = tuple(tensor.shape[: tensor.ndim - self.own_axes])
        fits = tensor.ndim >= self.own_axes and tensor.shape[-1] == self.declaration.knots
        if not fits or lead not in ((), self.batch):
            own = ("channels",) * self.declaration.per_channel + (str(self.declaration.knots),)
            shapes = [own, (*map(str, self.batch), *own)] if self.batch else [own]
            words = " or ".join(f"({', '.join(s)}{',' if len(s) == 1 else ''})" for s in shapes)
            raise InvalidArgument(
                f"expected control values of {self.declaration.name} of shape {words}, got {tuple(tensor.shape)}; "
                "make them with LearnedValues"
            )

    def channels(self, tensor: Tensor) -> int | None:
        """How many channels the values are for; None for any number."""
        return int(tensor.shape[-2]) if self.declaration.per_channel else None

    def view(self, tensor: Tensor) -> Tensor:
        """The pieces that the control values make, as the spline takes them."""
        return spline_pieces(tensor, self.declaration.per_channel)

    def member(self, tensor: Tensor, place: tuple[int, ...]) -> Tensor:
        """The values of one member of the batch."""
        return tensor[place] if self.batch and tensor.ndim > self.own_axes else tensor

    def members(self, tensor: Tensor, index: Tensor) -> Tensor:
        """The values of some members, counted through the flattened batch; shared values as they are."""
        if not self.batch or tensor.ndim <= self.own_axes:
            return tensor
        return tensor.reshape(-1, *tensor.shape[tensor.ndim - self.own_axes :]).index_select(0, index)


def learned_shapes(system: System, batch: tuple[int, ...]) -> dict[str, LearnedShape]:
    """The learned functions that need control values, by name."""
    return {name: LearnedShape(declared, batch) for name, declared in system.learned.items()}


def given_controls(declaration: LearnedFunction, value: Any) -> Any:
    """What a user gave for a learned function as control values.

    Tensors are taken as they are, since those of a training come from parameters that cannot break a declaration;
    numbers and `LearnedValues` are compared with it.

    >>> given_controls(LearnedFunction("phi", knots=3, odd=True), [-1, 0, 1])
    array([-1.,  0.,  1.])
    """
    if isinstance(value, Tensor):
        return value
    if isinstance(value, LearnedValues):
        if value.declaration.key != declaration.key:
            raise InvalidArgument(
                f"expected values of {declaration}, got those of {value.declaration}; declare both alike"
            )
        return value.controls
    if callable(value):
        return LearnedValues.near(declaration, value).controls
    try:
        return LearnedValues(declaration, np.asarray(value, dtype=float)).controls
    except (TypeError, ValueError) as problem:
        if isinstance(problem, InvalidArgument):
            raise
        raise InvalidArgument(
            f"expected control values or a function for {declaration.name}, got {type(value).__name__}; "
            "give LearnedValues, numbers or a function of numpy"
        ) from None


def spline_call(declaration: LearnedFunction, argument: str, pieces: str) -> str:
    """The call of the spline in generated source.

    >>> spline_call(LearnedFunction("phi", knots=4), "H", "phi")
    'spline(H, phi, -3.0, 2.0)'
    """
    return f"spline({argument}, {pieces}, {float(declaration.range[0])!r}, {float(declaration.step)!r})"
