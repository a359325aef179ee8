"""MixHop: Abu-El-Haija et al., "MixHop: Higher-Order Graph Convolutional Architectures via Sparsified Neighborhood
Mixing", ICML 2019."""

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

#: Added to the variance of a channel, and the least squared length of features.
SPREAD, SHORT = 1e-3, 1e-12


@dataclass(frozen=True, kw_only=True)
class MixHopSettings(StackedSettings):
    """Settings of MixHop: `hidden` channels for every power of A up to `hops`, side by side."""

    model: ClassVar[str] = "mixhop"

    hops: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_at_least(1, "hops")


class MixHop(BatchedModel):
    """H' = relu(norm([H W_0, A H W_1, A^2 H W_2, ...])), A symmetric with self-loops.

    In the last layer every power has a column per class, and the logits are their mean with learned shares, a softmax.
    The norm centres and scales every channel over the nodes at hand, in prediction too, with a learned shift, as the
    authors' code does; features have length 1 after dropout. There the powers have widths of their own, found by a
    search, and plain descent with a falling rate trains them. The shift and the shares are not decayed.
    """

    settings: MixHopSettings

    def build(self) -> None:
        """The weights of all powers side by side for every layer, and the shares."""
        s = self.settings
        self.adjacency = self.place.operator("symmetric", self_loops=1.0)
        self.ones = self.full((self.features, 1), 1.0)
        self.powers = s.hops + 1
        self.widths = s.widths(self.features, self.classes)
        for k, (inputs, outputs) in enumerate(pairwise(self.widths)):
            wide = inputs if k == 0 else self.powers * inputs
            bound = (6 / (wide + outputs)) ** 0.5
            self.add_parameter(f"layer_{k}_weight", self.uniform((wide, self.powers * outputs), bound))
            if k + 1 < s.layers:
                self.add_parameter(f"layer_{k}_shift", self.full((self.powers * outputs,), 0.0), is_decayed=False)
        self.add_parameter("shares", self.full((self.powers,), 0.0), is_decayed=False)

    def mixed(self, values: Tensor) -> Tensor:
        """[U_0, A U_1, A^2 U_2, ...] of values [U_0, U_1, U_2, ...]; one product for every power."""
        width = values.shape[-1] // self.powers
        near, rest = values.split([width, values.shape[-1] - width], -1)
        parts = [near]
        for _ in range(self.settings.hops):
            rest = self.adjacency @ rest
            near, rest = rest.split([width, rest.shape[-1] - width], -1)
            parts.append(near)
        return torch.cat(parts, -1)

    def normed(self, k: int, h: Tensor) -> Tensor:
        """Every channel centred and scaled over the nodes, and shifted."""
        centred = h - h.mean(1, keepdim=True)
        scale = torch.rsqrt(centred.square().mean(1, keepdim=True) + SPREAD)
        return centred * scale + self.get_parameter(f"layer_{k}_shift")[:, None]

    def states(self, x: Features, drop: Dropper) -> list[Tensor]:
        """The output of every layer, the powers side by side."""
        seen = drop.features(x)
        squares = Features(seen.values.square(), seen.shape, seen.pattern) @ self.ones
        states = [self.mixed(self.times("layer_0", seen) * torch.rsqrt(squares.clamp(min=SHORT)))]
        for k in range(1, self.settings.layers):
            states[-1] = torch.relu(self.normed(k - 1, states[-1]))
            states.append(self.mixed(self.times(f"layer_{k}", drop(states[-1]))))
        return states

    def read(self, states: list[Tensor], drop: Dropper) -> Tensor:
        """The mean over the powers with the learned shares."""
        shares = torch.softmax(self.get_parameter("shares"), -1)
        split = states[-1].view(self.members, self.place.nodes, self.powers, self.classes)
        return torch.einsum("mp,mnpc->mnc", shares, split)


RECORDS = (
    ModelRecord(
        "mixhop", "MixHop", "heterophily", source="Abu-El-Haija et al., ICML 2019",
        rule="H' = relu([H W_0, A H W_1, A^2 H W_2])",
        settings=MixHopSettings, network=MixHop, published="MixHop",
    ),
)  # fmt: skip
