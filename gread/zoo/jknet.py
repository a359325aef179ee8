"""JKNet: Xu et al., "Representation Learning on Graphs with Jumping Knowledge Networks", ICML 2018."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from gread.models.batched_model import BatchedModel
from gread.models.features import Features
from gread.models.randomness import Dropper
from gread.settings.model_records import ModelRecord, StackedSettings
from rdgraph.errors import UnknownName

# ---------------------------------------------------------------------- jumping knowledge
# Jumping knowledge: one state from those of all layers; Xu et al., ICML 2018.

#: Side by side; entry by entry the largest; weights per node and layer from a two-way LSTM.
MODES = ("cat", "max", "lstm")


class JumpingKnowledge:
    """Joins states (M, n, d) of `layers` layers into one; a part of a network, made in its `build`.

    With lstm, scores of the layers come from an LSTM that reads the states of a node forwards and backwards, with
    layers*d/2 channels each way, and the result is their mean with the softmax of the scores. The network is not held.
    """

    def __init__(self, model: BatchedModel, name: str, mode: str, width: int, layers: int) -> None:
        if mode not in MODES:
            raise UnknownName("jumping knowledge", mode, MODES)
        self.name, self.mode = name, mode
        self.columns = width * layers if mode == "cat" else width
        if mode == "lstm":
            self.inner = max(1, layers * width // 2)
            for way in ("forward", "backward"):
                bound = self.inner**-0.5
                model.add_parameter(f"{name}_{way}_in", model.uniform((width, 4 * self.inner), bound))
                model.add_parameter(f"{name}_{way}_own", model.uniform((self.inner, 4 * self.inner), bound))
                model.add_parameter(f"{name}_{way}_bias", model.uniform((4 * self.inner,), bound))
            model.add_linear(f"{name}_score", 2 * self.inner, 1)

    def __call__(self, model: BatchedModel, states: list[Tensor]) -> Tensor:
        """(M, n, columns) from the states of all layers."""
        if self.mode == "cat":
            return torch.cat(states, -1)
        if self.mode == "max":
            return torch.stack(states).amax(0)
        both = torch.cat(
            [self._read(model, "forward", states), self._read(model, "backward", states[::-1]).flip(0)], -1
        )
        scores = torch.stack([model.linear(f"{self.name}_score", h) for h in both])
        return (torch.softmax(scores, 0) * torch.stack(states)).sum(0)

    def _read(self, model: BatchedModel, way: str, states: list[Tensor]) -> Tensor:
        """The hidden states (layers, M, n, inner) of an LSTM that reads in this order; gates as torch orders them."""
        part = f"{self.name}_{way}"
        inputs, own = (model.get_parameter(f"{part}_{end}") for end in ("in", "own"))
        bias = model.get_parameter(f"{part}_bias")[:, None]
        hidden = cell = states[0].new_zeros((*states[0].shape[:2], self.inner))
        found = []
        for state in states:
            gates = state @ inputs + hidden @ own + bias
            enter, forget, new, leave = gates.chunk(4, -1)
            cell = torch.sigmoid(forget) * cell + torch.sigmoid(enter) * torch.tanh(new)
            hidden = torch.sigmoid(leave) * torch.tanh(cell)
            found.append(hidden)
        return torch.stack(found)


# ---------------------------------------------------------------------- jknet
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
        "jknet", "JKNet", "oversmoothing", source="Xu et al., ICML 2018",
        rule="H' = relu(A H W + b), all layers read out together",
        settings=JKNetSettings, network=JKNet, published="JKNet",
    ),
)  # fmt: skip
