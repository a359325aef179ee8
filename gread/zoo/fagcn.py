"""FA-GCN: Bo et al., "Beyond Low-Frequency Information in Graph Convolutional Networks", AAAI 2021."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from gread.kernels.edge_attention import edge_sums, weighted_sums
from gread.models.batched_model import BatchedModel
from gread.models.features import Features
from gread.models.randomness import Dropper
from gread.settings.model_records import ModelRecord, ModelSettings
from rdgraph import Graph

#: How much wider than Glorot and Bengio's the weights start.
GAIN = 1.414


@dataclass(frozen=True, kw_only=True)
class FAGCNSettings(ModelSettings):
    """Settings of FA-GCN: `layers` rounds of signed averaging, and the share `epsilon` of H_0 in every state."""

    model: ClassVar[str] = "fagcn"

    hidden: int = 32
    layers: int = 2
    epsilon: float = 0.3

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_at_least(1, "layers")
        self.check_at_least(0, "epsilon")


class FAGCN(BatchedModel):
    """H_0 = relu(X V + b), H' = epsilon H_0 + (T(H) o A) H, T_ij = tanh(g . h_i + f . h_j + c), logits = H U + d.

    A is the symmetrically normalised graph without self-loops, and o is entry by entry: an edge may attract or repel.
    H_0 and the weights on the edges are dropped at the same rate. Nothing differs from the authors' code but the data:
    they split the nodes of graphs with heterophily by the order in a file of their own.
    """

    settings: FAGCNSettings

    def build(self) -> None:
        """V, U, and the gate g, f, c of every round."""
        s = self.settings
        plain = self.place.derived(Graph.without_self_loops)
        self.adjacency = plain.with_weights(plain.weights).prepare()  # weights change, so that the transpose is needed
        self.add_wide("encoder", self.features, s.hidden)
        for k in range(s.layers):
            self.add_wide(f"gate_{k}", 2 * s.hidden, 1)
        self.add_wide("decoder", s.hidden, self.classes)

    def add_wide(self, name: str, inputs: int, outputs: int) -> None:
        """A linear layer with normal weights of standard deviation GAIN sqrt(2/(inputs + outputs))."""
        self.add_parameter(f"{name}_weight", self.normal((inputs, outputs), GAIN * (2 / (inputs + outputs)) ** 0.5))
        self.add_parameter(f"{name}_bias", self.uniform((outputs,), inputs**-0.5))

    def mixed(self, k: int, h: Tensor, drop: Dropper) -> Tensor:
        """(T(h) o A) h with the gate of round k."""
        gate, bias = self.get_parameter(f"gate_{k}_weight"), self.get_parameter(f"gate_{k}_bias")
        own, neighbour = (h @ half for half in gate.chunk(2, 1))
        signs = torch.tanh(edge_sums(self.adjacency.pattern, own[..., 0] + bias, neighbour[..., 0]))
        weights = drop(signs * self.adjacency.weights)
        return weighted_sums(self.adjacency, weights[:, None], h)

    def states(self, x: Features, drop: Dropper) -> list[Tensor]:
        """H_0 and the state after every round."""
        states = [drop(self.linear("encoder", drop.features(x)), relu=True)]
        for k in range(self.settings.layers):
            states.append(self.settings.epsilon * states[0] + self.mixed(k, states[-1], drop))
        return states

    def read(self, states: list[Tensor], drop: Dropper) -> Tensor:
        """Logits of the last state."""
        return self.linear("decoder", states[-1])


RECORDS = (
    ModelRecord(
        "fagcn", "FA-GCN", "heterophily", source="Bo et al., AAAI 2021",
        rule="H' = epsilon H_0 + (tanh(gate(H)) o A) H",
        settings=FAGCNSettings, network=FAGCN, published="FA-GCN",
    ),
)  # fmt: skip
