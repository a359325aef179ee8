"""GCN: Kipf and Welling, "Semi-Supervised Classification with Graph Convolutional Networks", ICLR 2017."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor

from gread.models.batched_model import BatchedModel
from gread.models.features import Features
from gread.models.randomness import Dropper
from gread.settings.model_records import ModelRecord, StackedSettings


@dataclass(frozen=True, kw_only=True)
class GCNSettings(StackedSettings):
    """Settings of a GCN of `layers` convolutions."""

    model: ClassVar[str] = "gcn"


class GCN(BatchedModel):
    """H' = relu(A H W + b), A = D^-1/2 (W + I) D^-1/2 with self-loops; no relu after the last layer, the logits.

    Nothing differs from the authors' code but the data: they train on the three citation graphs with 20 labels a class.
    """

    settings: GCNSettings

    def build(self) -> None:
        """A convolution between each two widths, with W as Glorot and Bengio draw it."""
        self.adjacency = self.place.operator("symmetric", self_loops=1.0)
        for k, (inputs, outputs) in enumerate(pairwise(self.settings.widths(self.features, self.classes))):
            self.add_linear(f"layer_{k}", inputs, outputs, start="glorot")

    def convolve(self, k: int, h: Tensor | Features) -> Tensor:
        """A h W + b."""
        return self.adjacency @ self.times(f"layer_{k}", h) + self.shift(f"layer_{k}")

    def states(self, x: Features, drop: Dropper) -> list[Tensor]:
        """The output of every layer."""
        states = [self.convolve(0, drop.features(x))]
        for k in range(1, self.settings.layers):
            states[-1] = torch.relu(states[-1])
            states.append(self.convolve(k, drop(states[-1])))
        return states


RECORDS = (
    ModelRecord(
        "gcn", "GCN", "classical", source="Kipf and Welling, ICLR 2017",
        rule="H' = relu(A H W + b), A symmetric with self-loops",
        settings=GCNSettings, network=GCN, published="GCN",
    ),
)  # fmt: skip
