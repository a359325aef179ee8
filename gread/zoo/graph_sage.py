"""GraphSAGE: Hamilton et al., "Inductive Representation Learning on Large Graphs", NeurIPS 2017."""

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
class GraphSAGESettings(StackedSettings):
    """Settings of GraphSAGE with means over the neighbours."""

    model: ClassVar[str] = "graphsage"


class GraphSAGE(BatchedModel):
    """H' = relu(H V + P H W + b), P = D^-1 W the mean over the neighbours, without self-loops.

    The node and its neighbours keep matrices of their own. The authors sample neighbours and divide every state by its
    length; here all neighbours count and lengths are left alone, as in most comparisons.
    """

    settings: GraphSAGESettings

    def build(self) -> None:
        """V and W side by side in one matrix for every layer."""
        self.mean = self.place.operator("row")
        for k, (inputs, outputs) in enumerate(pairwise(self.settings.widths(self.features, self.classes))):
            self.add_parameter(f"layer_{k}_weight", self.uniform((inputs, 2 * outputs), inputs**-0.5))
            self.add_parameter(f"layer_{k}_bias", self.uniform((outputs,), inputs**-0.5))

    def gather(self, k: int, h: Tensor | Features) -> Tensor:
        """h V + P h W + b."""
        own, others = self.times(f"layer_{k}", h).chunk(2, -1)
        return own + self.mean @ others + self.shift(f"layer_{k}")

    def states(self, x: Features, drop: Dropper) -> list[Tensor]:
        """The output of every layer."""
        states = [self.gather(0, drop.features(x))]
        for k in range(1, self.settings.layers):
            states[-1] = torch.relu(states[-1])
            states.append(self.gather(k, drop(states[-1])))
        return states


RECORDS = (
    ModelRecord(
        "graphsage", "GraphSAGE", "classical", source="Hamilton et al., NeurIPS 2017",
        rule="H' = relu(H V + P H W + b)",
        settings=GraphSAGESettings, network=GraphSAGE, published="GraphSAGE",
    ),
)  # fmt: skip
