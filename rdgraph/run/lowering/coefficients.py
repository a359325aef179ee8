"""Coefficients as tensors: which shapes each kind may have, and how it broadcasts against (*batch, nodes, channels)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from rdgraph.errors import InvalidArgument, UnknownName
from rdgraph.graphs.operator import Operator
from rdgraph.language.reader import TIME_LETTER
from rdgraph.language.tree import COEFFICIENT_KINDS, Kind
from rdgraph.run.lowering.splines import LearnedShape, given_controls, learned_shapes, on_grid
from rdgraph.systems.system import System

#: Precisions for storage; the coefficients of such states are kept in float32.
_STORAGE_ONLY = (torch.bfloat16, torch.float16)

_AXES = {Kind.SCALAR: 0, Kind.CHANNEL: 1, Kind.NODE: 1, Kind.MATRIX: 2}


@dataclass(frozen=True)
class CoefficientShape:
    """The shapes one coefficient may have: its axes, with or without the batch in front; a number always fits.

    scalar (), channel (d,), node (n,), matrix (d, d).
    """

    name: str
    kind: Kind
    nodes: int
    batch: tuple[int, ...]

    def channels(self, tensor: Tensor) -> int | None:
        """The number of channels of a value; None if it fits any number."""
        return int(tensor.shape[-1]) if tensor.ndim and self.kind in (Kind.CHANNEL, Kind.MATRIX) else None

    def check(self, tensor: Tensor) -> None:
        """Raise unless a tensor has one of the shapes."""
        if tensor.ndim == 0 and self.kind is not Kind.MATRIX:
            return
        axes = _AXES[self.kind]
        lead, tail = tuple(tensor.shape[: tensor.ndim - axes]), tuple(tensor.shape[tensor.ndim - axes :])
        fits = {
            Kind.SCALAR: True,
            Kind.CHANNEL: True,
            Kind.NODE: tail == (self.nodes,),
            Kind.MATRIX: len(tail) == 2 and tail[0] == tail[1],
        }[self.kind]
        if tensor.ndim < axes or lead not in ((), self.batch) or not fits:
            raise InvalidArgument(
                f"expected {self.name}, a {self.kind} coefficient, of shape {self._words()}, got {tuple(tensor.shape)}"
                f"{self._remedy()}"
            )

    def view(self, tensor: Tensor) -> Tensor:
        """The tensor with the axes that let it broadcast."""
        if tensor.ndim == 0 or self.kind is Kind.MATRIX:
            return tensor
        match self.kind:
            case Kind.SCALAR:
                return tensor[..., None, None]
            case Kind.NODE:
                return tensor[..., :, None]
        return tensor[..., None, :] if tensor.ndim > 1 else tensor

    def member(self, tensor: Tensor, index: tuple[int, ...]) -> Tensor:
        """The value of one member of the batch."""
        has_batch = tensor.ndim > _AXES[self.kind] and bool(self.batch)
        return tensor[index] if has_batch else tensor

    def members(self, tensor: Tensor, index: Tensor) -> Tensor:
        """The values of some members, counted through the flattened batch: (m, *axes), or a shared value unchanged."""
        axes = _AXES[self.kind]
        if tensor.ndim <= axes or not self.batch:
            return tensor
        return tensor.reshape(-1, *tensor.shape[tensor.ndim - axes :]).index_select(0, index)

    def _words(self) -> str:
        names = {Kind.SCALAR: (), Kind.CHANNEL: ("channels",), Kind.NODE: (str(self.nodes),), Kind.MATRIX: ("d", "d")}
        axes = names[self.kind]
        shapes = [axes, (*map(str, self.batch), *axes)] if self.batch else [axes]
        return " or ".join(f"({', '.join(s)}{',' if len(s) == 1 else ''})" for s in shapes)

    def _remedy(self) -> str:
        if self.kind is not Kind.SCALAR:
            return ""
        batch = "" if self.batch else ", or pass batch=(...) if the axis counts members"
        return f'; a vector is declared, as in parse(text, {{"{self.name}": "channel"}}){batch}'


def coefficient_shapes(
    system: System, nodes: int, batch: tuple[int, ...]
) -> dict[str, CoefficientShape | LearnedShape]:
    """The coefficients and learned functions that a system needs, by name."""
    letters = {n: CoefficientShape(n, kind, nodes, batch) for n, kind in valued_letters(system).items()}
    return {**letters, **learned_shapes(system, batch)}


def valued_letters(system: System) -> dict[str, Kind]:
    """The coefficients that need a value before a system can run, W and M among them; not the time.

    >>> from rdgraph.systems.parser import parse
    >>> list(valued_letters(parse("-alpha*exp(-t)*L@H + M*H0")))
    ['M', 'alpha']
    """
    return {n: kind for n, kind in system.letters.items() if kind in COEFFICIENT_KINDS and n != TIME_LETTER}


def coefficient_dtype(dtype: torch.dtype) -> torch.dtype:
    """The precision of coefficients and times for states of a given precision."""
    return torch.float32 if dtype in _STORAGE_ONLY else dtype


def read_coefficients(
    given: Mapping[str, Any], shapes: Mapping[str, CoefficientShape | LearnedShape], system: System, operator: Operator
) -> dict[str, Tensor]:
    """The given values as tensors that fit an operator; raises if a coefficient is missing or unknown."""
    for name in given:
        if name not in shapes:
            raise UnknownName(f"coefficient of {system.text}", name, shapes)
    missing = [name for name in shapes if name not in given]
    if missing:
        raise InvalidArgument(f"expected a value for every coefficient, got none for {', '.join(missing)}; add it")
    coefficients = {}
    for name, shape in shapes.items():
        value = given_controls(shape.declaration, given[name]) if isinstance(shape, LearnedShape) else given[name]
        coefficients[name] = _tensor(name, value, operator)
        shape.check(coefficients[name])
        if isinstance(shape, LearnedShape) and coefficients[name] is not value:
            coefficients[name] = on_grid(shape.declaration, coefficients[name])
    return coefficients


def _tensor(name: str, value: Any, operator: Operator) -> Tensor:
    dtype = coefficient_dtype(operator.dtype)
    if isinstance(value, nn.Parameter) and (value.dtype != dtype or value.device != operator.device):
        raise InvalidArgument(
            f"expected the parameter {name} as {dtype} on {operator.device}, got {value.dtype} on {value.device}; "
            "make it there, or lower with dtype= and device="
        )
    try:
        return value if isinstance(value, nn.Parameter) else torch.as_tensor(value, dtype=dtype, device=operator.device)
    except (TypeError, ValueError, RuntimeError):
        raise InvalidArgument(
            f"expected a number or a tensor for {name}, got {type(value).__name__}; give 0.5 or a tensor"
        ) from None
