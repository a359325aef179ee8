"""GDE: Poli et al., "Graph Neural Ordinary Differential Equations", AAAI workshop 2020."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from gread.models.batched_model import BatchedModel
from gread.models.features import Features
from gread.models.randomness import Dropper
from gread.settings.model_records import ModelRecord, ModelSettings
from rdgraph.run.solvers.steppers import combine
from rdgraph.vocabulary.methods import FIXED, find_method


@dataclass(frozen=True, kw_only=True)
class GdeSettings(ModelSettings):
    """Settings of GDE: `steps` steps of a Runge-Kutta `method` from 0 to 1; `dropout` within the slope."""

    model: ClassVar[str] = "gde"

    input_dropout: float = 0.4
    dropout: float = 0.9
    method: str = "rk4"
    steps: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_at_least(1, "steps")
        self.check_one_of("method", tuple(name for name in FIXED if find_method(name).is_runge_kutta))


class GDE(BatchedModel):
    """H(0) = relu(A X U + u), dH/dt = A softplus(A H W + b) V + c on [0, 1], logits = A H(1) Q + q; A with self-loops.

    Entries before both convolutions of the slope are dropped anew at every evaluation, so that what is integrated is no
    system while it is trained; without dropout it is the line GDE of the catalogue. Nothing differs from the authors'
    code but the data and the number of epochs.
    """

    settings: GdeSettings

    def build(self) -> None:
        """Four convolutions."""
        hidden = self.settings.hidden
        self.adjacency = self.place.operator("symmetric", self_loops=1.0)
        for name, inputs, outputs in (
            ("encoder", self.features, hidden), ("inner", hidden, hidden), ("outer", hidden, hidden),
            ("decoder", hidden, self.classes),
        ):  # fmt: skip
            self.add_linear(name, inputs, outputs, start="fan_out")

    def convolve(self, name: str, h: Tensor | Features) -> Tensor:
        """A h W + b."""
        return self.adjacency @ self.times(name, h) + self.shift(name)

    def slope(self, h: Tensor, drop: Dropper) -> Tensor:
        """The slope dH/dt of the network's equation, with newly drawn dropout."""
        return self.convolve("outer", drop(functional.softplus(self.convolve("inner", drop(h)))))

    def states(self, x: Features, drop: Dropper) -> list[Tensor]:
        """H at the start and after every step."""
        tableau = find_method(self.settings.method).tableau
        assert tableau is not None
        rows = [[float(a) for a in row] for row in tableau.stages]
        weights = [float(weight) for weight in tableau.weights]
        states = [torch.relu(self.convolve("encoder", drop.features(x)))]
        length = torch.full_like(states[0][:1, :1, :1], 1 / self.settings.steps)
        for _ in range(self.settings.steps):
            slopes: list[Tensor] = []
            for row in rows:
                slopes.append(self.slope(combine(states[-1], length, row, slopes), drop))
            states.append(combine(states[-1], length, weights, slopes))
        return states

    def read(self, states: list[Tensor], drop: Dropper) -> Tensor:
        """Logits of H(1)."""
        return self.convolve("decoder", states[-1])


RECORDS = (
    ModelRecord(
        "gde", "GDE", "continuous", source="Poli et al., AAAI workshop 2020",
        rule="dH/dt = A softplus(A H W + b) V + c",
        settings=GdeSettings, network=GDE, published="GDE",
    ),
)  # fmt: skip
