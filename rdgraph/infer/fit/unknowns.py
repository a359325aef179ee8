"""The unknowns of a fit as rows of numbers: coefficients on a scale without borders, then the entries of the start."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rdgraph.errors import InvalidArgument
from rdgraph.infer.fit.observations import numbers_of
from rdgraph.language.tree import Kind
from rdgraph.systems.system import System

#: What lies this many times farther from zero than a value counts as no border of it.
_FARTHEST = 1000.0
#: Of a sign, the factor before the exponential of the number that is looked for; real ones are looked for themselves.
_FACTORS = {"positive": 1.0, "nonnegative": 1.0, "negative": -1.0, "nonpositive": -1.0}


@dataclass(frozen=True)
class Unknown:
    """One coefficient that is looked for: its shape for one member, and its sign (0 where it may have either)."""

    name: str
    shape: tuple[int, ...]
    factor: float

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def to_value(self, inner: Any) -> Any:
        """The coefficient for the number that is looked for; both tensors or both numbers."""
        if not self.factor:
            return inner
        return self.factor * (torch.exp(inner) if isinstance(inner, Tensor) else math.exp(inner))

    def to_inner(self, value: Tensor) -> Tensor:
        """The number that is looked for."""
        if not self.factor:
            return value
        if not bool((value * self.factor > 0).all()):
            side = "positive" if self.factor > 0 else "negative"
            raise InvalidArgument(
                f"expected {side} values to start {self.name} from, got {value.tolist()}; "
                f"say 'where {self.name} real' in the equation if it may have either sign"
            )
        return torch.log(value * self.factor)


@dataclass(frozen=True)
class Unknowns:
    """All coefficients that are looked for, side by side, and after them `extra` entries of the start."""

    coefficients: tuple[Unknown, ...]
    extra: int = 0

    @classmethod
    def of(cls, system: System, names: list[str], nodes: int, channels: int, extra: int) -> Unknowns:
        shapes = {
            Kind.SCALAR: (),
            Kind.CHANNEL: (channels,),
            Kind.NODE: (nodes,),
            Kind.MATRIX: (channels, channels),
        }
        made = []
        for name in names:
            kind = system.letters[name]
            factor = 0.0 if kind is Kind.MATRIX else _FACTORS.get(system.assumptions.sign(name), 0.0)
            made.append(Unknown(name, shapes[kind], factor))
        return cls(tuple(made), extra)

    @property
    def count(self) -> int:
        """How many numbers the coefficients are."""
        return sum(c.size for c in self.coefficients)

    @property
    def total(self) -> int:
        return self.count + self.extra

    def slices(self) -> dict[str, slice]:
        """Where each coefficient stands in a row."""
        found, start = {}, 0
        for c in self.coefficients:
            found[c.name] = slice(start, start + c.size)
            start += c.size
        return found

    def values(self, rows: Tensor) -> dict[str, Tensor]:
        """The coefficients of every row, (members, *shape)."""
        places = self.slices()
        return {c.name: c.to_value(rows[:, places[c.name]]).reshape(len(rows), *c.shape) for c in self.coefficients}

    def inner_slopes(self, rows: Tensor) -> Tensor:
        """How the coefficients follow the numbers that are looked for, (members, number of coefficients)."""
        found = torch.ones_like(rows[:, : self.count])
        for c, place in zip(self.coefficients, self.slices().values(), strict=True):
            if c.factor:
                found[:, place] = c.to_value(rows[:, place])
        return found

    def typical(self, rows: Tensor) -> Tensor:
        """The size of the coefficients of some rows, (number of coefficients,); of real ones 1 at least."""
        found = rows[:, : self.count].abs().mean(0).clamp_min(1.0)
        for c, place in zip(self.coefficients, self.slices().values(), strict=True):
            if c.factor:
                found[place] = torch.exp(rows[:, place].mean(0))
        return found

    def farthest(self, rows: Tensor) -> Tensor:
        """How far from the coefficients of every row a border is looked for, (members, number of coefficients).

        A factor of a thousand from positive ones, or to 1 where that is farther.

        >>> pair = Unknowns((Unknown("a", (), 1.0), Unknown("b", (), 0.0)))
        >>> pair.farthest(torch.tensor([[0.0, 20.0], [-9.0, 0.5]]))
        tensor([[6.9078e+00, 2.0000e+04],
                [9.0000e+00, 1.0000e+03]])
        """
        found = rows[:, : self.count].abs().clamp_min(math.log(_FARTHEST))
        for c, place in zip(self.coefficients, self.slices().values(), strict=True):
            if not c.factor:
                found[:, place] = _FARTHEST * rows[:, place].abs().clamp_min(1.0)
        return found

    def at(self, position: int) -> tuple[Unknown, int]:
        """The coefficient that a place in a row belongs to, and which of its entries it is."""
        for c, place in zip(self.coefficients, self.slices().values(), strict=True):
            if place.start <= position < place.stop:
                return c, position - place.start
        raise IndexError(position)

    def starts(self, given: Mapping[str, Any], count: int, spread: float, generator: torch.Generator) -> Tensor:
        """`count` rows to start from, (count, number of coefficients): what is given, else drawn about 1 (or 0)."""
        rows = torch.randn(count, self.count, dtype=torch.float64, generator=generator) * spread
        places = self.slices()
        for c in self.coefficients:
            if c.name in given:
                value = numbers_of(given[c.name], f"the start of {c.name}")
                try:
                    value = value.expand(c.shape)
                except RuntimeError:
                    raise InvalidArgument(
                        f"expected a start of {c.name} of shape {c.shape}, got {tuple(value.shape)}; one number does"
                    ) from None
                rows[:, places[c.name]] = c.to_inner(value).reshape(-1)
        return rows
