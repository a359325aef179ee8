"""PairNorm: Zhao and Akoglu, "PairNorm: Tackling Oversmoothing in GNNs", ICLR 2020; between the layers of a GCN."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor

from gread.models.batched_model import BatchedModel
from gread.models.features import Features
from gread.models.norms import pair_norm
from gread.models.randomness import Dropper
from gread.settings.model_records import ModelRecord, StackedSettings


@dataclass(frozen=True, kw_only=True)
class PairNormSettings(StackedSettings):
    """Settings of a GCN with pair norms of that `scale`, of all nodes together or `individually`.

    `normalisation` is that of A: symmetric, or row, which the authors recommend.
    """

    model: ClassVar[str] = "pairnorm"

    scale: float = 1.0
    individually: bool = False
    normalisation: str = "row"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_at_least(0, "scale")
        self.check_one_of("normalisation", ("symmetric", "row"))


class PairNormGCN(BatchedModel):
    """H' = relu(norm(A H W + b)), norm(H) = scale C/sqrt(mean_i |c_i|^2), C the rows of H minus their mean.

    A has self-loops. Individually every row is divided by its own length. No norm and no relu after the last layer, the
    logits. Nothing differs from the authors' code but the constant under the root, 1e-5 here.
    """

    settings: PairNormSettings

    def build(self) -> None:
        """A convolution between each two widths."""
        self.adjacency = self.place.operator(self.settings.normalisation, self_loops=1.0)
        for k, (inputs, outputs) in enumerate(pairwise(self.settings.widths(self.features, self.classes))):
            self.add_linear(f"layer_{k}", inputs, outputs, start="fan_out")

    def convolve(self, k: int, h: Tensor | Features) -> Tensor:
        """A h W + b."""
        return self.adjacency @ self.times(f"layer_{k}", h) + self.shift(f"layer_{k}")

    def states(self, x: Features, drop: Dropper) -> list[Tensor]:
        """The output of every layer, after norm and relu."""
        s = self.settings
        states = [self.convolve(0, drop.features(x))]
        for k in range(1, s.layers):
            states[-1] = torch.relu(pair_norm(states[-1], s.scale, individually=s.individually))
            states.append(self.convolve(k, drop(states[-1])))
        return states


RECORDS = (
    ModelRecord(
        "pairnorm", "PairNorm", "oversmoothing", source="Zhao and Akoglu, ICLR 2020", rule="H' = relu(norm(A H W + b))",
        settings=PairNormSettings, network=PairNormGCN, published="PairNorm",
    ),
)  # fmt: skip
