"""`ModelSettings`: what the settings of every network have in common; a network adds its own beside them."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import ClassVar

from rdgraph.errors import InvalidArgument, UnknownName


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """Settings of one kind of network, `model`; its members of one batch may differ in the settings `free` alone.

    Args:
        hidden: Channels of the hidden states.
        input_dropout: The share of the features that is dropped in training.
        dropout: The share of hidden entries that is dropped.
        row_features: Whether the features of every node are divided by their sum first.

    Raises:
        InvalidArgument: For sizes and shares out of range.

    >>> ModelSettings(hidden=16).dropout
    0.5
    """

    #: The name of the network that these settings are of.
    model: ClassVar[str] = ""
    #: Settings in which members of one batch may differ.
    free: ClassVar[tuple[str, ...]] = ("input_dropout", "dropout")

    hidden: int = 64
    input_dropout: float = 0.5
    dropout: float = 0.5
    row_features: bool = False

    def __post_init__(self) -> None:
        self.check_at_least(1, "hidden")
        self.check_share("input_dropout", "dropout")

    @property
    def shape(self) -> Hashable:
        """What has to agree for two networks to be trained in one batch."""
        return self.model, tuple((f.name, getattr(self, f.name)) for f in fields(self) if f.name not in self.free)

    @cached_property
    def effort(self) -> int:
        """Products with A that a pass takes, about: what members of one batch should have in common, as all of them
        take as many as the one with the most."""
        return 1

    @property
    def is_padded(self) -> bool:
        """Whether members with less effort pay for the one with the most."""
        return True

    # ------------------------------------------------------------------ checks, for the settings by name
    def check_at_least(self, least: float, *names: str) -> None:
        """Raise unless these settings are finite and not below that number."""
        for name in names:
            check_at_least(name, getattr(self, name), least)

    def check_share(self, *names: str) -> None:
        """Raise unless these settings are shares that may be dropped."""
        for name in names:
            if not 0 <= getattr(self, name) < 1:
                raise InvalidArgument(f"expected 0 <= {name} < 1, got {getattr(self, name)!r}")

    def check_divides(self, whole: str, part: str) -> None:
        """Raise unless one setting is a multiple of another."""
        if getattr(self, whole) % getattr(self, part):
            raise InvalidArgument(
                f"expected a {whole} that is a multiple of {part} = {getattr(self, part)}, got {getattr(self, whole)}"
            )

    def check_between(self, least: float, most: float, *names: str) -> None:
        """Raise unless these settings are in the interval, ends included."""
        for name in names:
            if not least <= getattr(self, name) <= most:
                raise InvalidArgument(f"expected {least:g} <= {name} <= {most:g}, got {getattr(self, name)!r}")

    def check_one_of(self, name: str, known: tuple[str, ...]) -> None:
        """Raise unless a setting is one of those words."""
        if getattr(self, name) not in known:
            raise UnknownName(name, str(getattr(self, name)), known)


def check_at_least(name: str, value: float, least: float) -> None:
    """Raise unless a number is finite and not below another."""
    if not (math.isfinite(value) and value >= least):
        raise InvalidArgument(f"expected {name} >= {least:g}, got {value!r}")
