"""GPR-GNN: Chien et al., "Adaptive Universal Generalized PageRank Graph Neural Network", ICLR 2021."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from gread.models.batched_model import BatchedModel
from gread.models.features import Features
from gread.models.randomness import Dropper
from gread.settings.model_records import ModelRecord, ModelSettings


@dataclass(frozen=True, kw_only=True)
class GPRGNNSettings(ModelSettings):
    """Settings of GPR-GNN: powers of A up to `steps`, whose weights start as those of PageRank that returns at `alpha`.

    `propagation_dropout` is the share of H_0 that is dropped before the powers.
    """

    model: ClassVar[str] = "gprgnn"
    free: ClassVar[tuple[str, ...]] = (*ModelSettings.free, "propagation_dropout")

    steps: int = 10
    alpha: float = 0.1
    propagation_dropout: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_at_least(1, "steps")
        self.check_share("propagation_dropout")
        self.check_between(0, 1, "alpha")


class GPRGNN(BatchedModel):
    """H_0 = relu(X V + b) U + c with a column per class, logits = sum_k g_k A^k H_0, A symmetric with self-loops.

    The g_k are learned, of either sign and without weight decay; they start at alpha (1 - alpha)^k, the last at
    (1 - alpha)^K, so that alpha 1 starts as an MLP and alpha 0 as A^K. Nothing differs from the authors' code but the
    data: their figures are of random splits, and of other edges of chameleon and squirrel.
    """

    settings: GPRGNNSettings

    def build(self) -> None:
        """V, U and the weights of the powers."""
        s = self.settings
        self.adjacency = self.place.operator("symmetric", self_loops=1.0)
        self.add_linear("first", self.features, s.hidden)
        self.add_linear("second", s.hidden, self.classes)
        start = [s.alpha * (1 - s.alpha) ** k for k in range(s.steps)] + [(1 - s.alpha) ** s.steps]
        self.add_parameter("gamma", self.full((1,), 1.0) * self.place.tensor(start), is_decayed=False)

    def states(self, x: Features, drop: Dropper) -> list[Tensor]:
        """A^k H_0 for k from 0 to K."""
        hidden = drop(self.linear("first", drop.features(x)), relu=True)
        states = [drop(self.linear("second", hidden), "propagation_dropout")]
        for _ in range(self.settings.steps):
            states.append(self.adjacency @ states[-1])
        return states

    def read(self, states: list[Tensor], drop: Dropper) -> Tensor:
        """The weighted sum of all powers."""
        return torch.einsum("mk,mknc->mnc", self.get_parameter("gamma"), torch.stack(states, 1))


RECORDS = (
    ModelRecord(
        "gprgnn", "GPR-GNN", "heterophily", source="Chien et al., ICLR 2021", rule="Z = sum_k g_k A^k H_0, g learned",
        settings=GPRGNNSettings, network=GPRGNN, published="GPR-GNN",
    ),
)  # fmt: skip
