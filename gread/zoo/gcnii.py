"""GCNII: Chen et al., "Simple and Deep Graph Convolutional Networks", ICML 2020."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import ClassVar

import torch
from torch import Tensor

from gread.models.batched_model import BatchedModel
from gread.models.features import Features
from gread.models.randomness import Dropper
from gread.settings.model_records import ModelRecord, StackedSettings


@dataclass(frozen=True, kw_only=True)
class GCNIISettings(StackedSettings):
    """Settings of GCNII.

    Args:
        alpha: The share of H_0 in every layer.
        decay: lam of the matrices' weight log(lam/k + 1) in layer k, from 1.
        variant: Whether the two terms have matrices of their own, the authors' GCNII*.
    """

    model: ClassVar[str] = "gcnii"

    layers: int = 8
    alpha: float = 0.1
    decay: float = 0.5
    variant: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_at_least(0, "alpha", "decay")


class GCNII(BatchedModel):
    """H' = relu(((1 - a) A H + a H_0)((1 - b_k) I + b_k W_k)), b_k = log(lam/k + 1), H_0 = relu(X V + c).

    A symmetric with self-loops; dropout before every layer. The authors' A of the heterophilic graphs is directed; here
    graphs are undirected. At W = I it is one Euler step of -(1 - a) L H + a (H_0 - H).
    """

    settings: GCNIISettings

    def build(self) -> None:
        """Encoder, a matrix for every layer (two in the variant), classifier."""
        s = self.settings
        self.adjacency = self.place.operator("symmetric", self_loops=1.0)
        self.add_linear("encoder", self.features, s.hidden)
        for k in range(s.layers):
            self.add_linear(f"layer_{k}", s.hidden, s.hidden, bias=False, start="fan_out")
            if s.variant:
                self.add_linear(f"start_{k}", s.hidden, s.hidden, bias=False, start="fan_out")
        self.add_linear("classifier", s.hidden, self.classes)

    def states(self, x: Features, drop: Dropper) -> list[Tensor]:
        """H_0 and the output of every layer."""
        s = self.settings
        first = torch.relu(self.linear("encoder", drop.features(x)))
        states = [first]
        for k in range(s.layers):
            weight = log(s.decay / (k + 1) + 1)
            near, start = (1 - s.alpha) * (self.adjacency @ drop(states[-1])), s.alpha * first
            if s.variant:
                mixed = self.times(f"layer_{k}", near) + self.times(f"start_{k}", start)
            else:
                mixed = self.times(f"layer_{k}", near + start)
            states.append(torch.relu((1 - weight) * (near + start) + weight * mixed))
        return states

    def read(self, states: list[Tensor], drop: Dropper) -> Tensor:
        """Logits of the last state."""
        return self.linear("classifier", drop(states[-1]))


RECORDS = (
    ModelRecord(
        "gcnii", "GCNII", "oversmoothing", source="Chen et al., ICML 2020",
        rule="H' = relu(((1 - a) A H + a H_0)((1 - b_k) I + b_k W_k))",
        settings=GCNIISettings, network=GCNII, published="GCNII",
        line="-(1 - alpha)*L@H + alpha*(H0 - H)",
    ),
)  # fmt: skip
