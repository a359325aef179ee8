"""A multilayer perceptron: what the features alone tell, without the graph."""

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
class MLPSettings(StackedSettings):
    """Settings of an MLP of `layers` linear layers."""

    model: ClassVar[str] = "mlp"


class MLP(BatchedModel):
    """H' = relu(H W + b); no relu after the last layer, the logits. The graph is not looked at.

    As a system it is the one without dynamics: nothing happens between encoder and decoder.
    """

    settings: MLPSettings

    def build(self) -> None:
        """A linear layer between each two widths."""
        for k, (inputs, outputs) in enumerate(pairwise(self.settings.widths(self.features, self.classes))):
            self.add_linear(f"layer_{k}", inputs, outputs)

    def states(self, x: Features, drop: Dropper) -> list[Tensor]:
        """The output of every layer."""
        states = [self.linear("layer_0", drop.features(x))]
        for k in range(1, self.settings.layers):
            states[-1] = torch.relu(states[-1])
            states.append(self.linear(f"layer_{k}", drop(states[-1])))
        return states


RECORDS = (
    ModelRecord(
        "mlp", "MLP", "simple", source="textbook; no graph",
        rule="H' = relu(H W + b)", settings=MLPSettings, network=MLP, published="MLP",
    ),
)  # fmt: skip
