"""JKNet: Xu et al., "Representation Learning on Graphs with Jumping Knowledge Networks", ICML 2018."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from gread.models.batched_model import BatchedModel
from gread.models.features import Features
from gread.models.randomness import Dropper
from gread.settings.model_records import ModelRecord
from gread.substrate.jumping_knowledge import MODES, JumpingKnowledge
from gread.zoo.stacked_settings import StackedSettings


@dataclass(frozen=True, kw_only=True)
class JKNetSettings(StackedSettings):
    """Settings of JKNet: `layers` convolutions of width `hidden`, joined by `jump`: cat, max or lstm."""

    model: ClassVar[str] = "jknet"

    jump: str = "cat"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_one_of("jump", MODES)


class JKNet(BatchedModel):
    """H_k = relu(A H_(k-1) W + b), logits = join(H_1, ..., H_K) U + c; A symmetric with self-loops.

    As the authors have it; they also try means over neighbours instead of A.
    """

    settings: JKNetSettings

    def build(self) -> None:
        """Convolutions, the join and the classifier."""
        s = self.settings
        self.adjacency = self.place.operator("symmetric", self_loops=1.0)
        for k in range(s.layers):
            self.add_linear(f"layer_{k}", s.hidden if k else self.features, s.hidden, start="glorot")
        self.join = JumpingKnowledge(self, "join", s.jump, s.hidden, s.layers)
        self.add_linear("classifier", self.join.columns, self.classes)

    def states(self, x: Features, drop: Dropper) -> list[Tensor]:
        """The output of every layer."""
        h: Tensor | Features = drop.features(x)
        states: list[Tensor] = []
        for k in range(self.settings.layers):
            h = self.times(f"layer_{k}", drop(states[-1]) if states else h)
            states.append(torch.relu(self.adjacency @ h + self.shift(f"layer_{k}")))
        return states

    def read(self, states: list[Tensor], drop: Dropper) -> Tensor:
        """Logits from all layers."""
        return self.linear("classifier", drop(self.join(self, states)))


RECORDS = (
    ModelRecord(
        "jknet", "JKNet", "oversmoothing", "Xu et al., ICML 2018", "H' = relu(A H W + b), all layers read out together",
        JKNetSettings, JKNet, published="JKNet",
    ),
)  # fmt: skip
