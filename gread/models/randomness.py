"""Random numbers and rates of the members of a batch, and `Dropper`, which applies dropout in training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from gread.kernels import counters
from gread.kernels.training_operations import dropout, dropout_rows
from gread.models.features import Features
from gread.settings.model_records import ModelSettings

#: The settings in which members differ, by name, each (M,).
Rates = Mapping[str, Tensor]


def make_rates(settings: Sequence[ModelSettings], device: Any = None) -> Rates:
    """The free settings of the members, one number each; times in double precision.

    >>> make_rates([ModelSettings(dropout=0.25), ModelSettings(dropout=0.5)])["dropout"]
    tensor([0.2500, 0.5000])
    """
    return {
        name: torch.tensor(
            [getattr(s, name) for s in settings], device=device,
            dtype=torch.float64 if name == "time" else torch.float32,
        )
        for name in settings[0].free
    }  # fmt: skip


@dataclass(frozen=True)
class Randomness:
    """The state of the random numbers: seeds (M,) int64 and the epoch () int64, both on the device.

    `nodes` (m,) are the nodes of the rows of a state, if it does not have all of them.
    """

    seeds: Tensor
    step: Tensor
    nodes: Tensor | None = None


class Dropper:
    """Dropout with a separate random stream for every call in a pass; the identity without random numbers.

    Calls are counted, so a network must make them in the same order in every epoch.

    >>> Dropper()(torch.tensor([-1.0, 2.0]), relu=True)
    tensor([0., 2.])
    """

    def __init__(self, rates: Rates | None = None, random: Randomness | None = None, first: int = 0) -> None:
        self.rates, self.random, self.stream = rates, random, counters.DROPOUT + first

    @property
    def is_training(self) -> bool:
        """Whether entries are dropped."""
        return self.rates is not None and self.random is not None

    def features(self, x: Features, rate: str = "input_dropout") -> Features:
        """Features with entries dropped by the rate of that name."""
        if self.rates is None or self.random is None:
            return x
        self.stream += 1
        return x.dropped(self.random.seeds, self.random.step, self.rates[rate], self.stream)

    def __call__(self, x: Tensor, rate: str = "dropout", *, relu: bool = False) -> Tensor:
        """x (1 or M, ...) with entries dropped and the others scaled up; with `relu`, the same of max(x, 0)."""
        if self.rates is None or self.random is None:
            return functional.relu(x) if relu else x
        self.stream += 1
        seeds, step, nodes = self.random.seeds, self.random.step, self.random.nodes
        if nodes is not None:
            return dropout_rows(x, nodes, seeds, step, self.rates[rate], self.stream, relu=relu)
        return dropout(x, seeds, step, self.rates[rate], self.stream, relu=relu)
