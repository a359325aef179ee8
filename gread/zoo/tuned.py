"""GCN, GraphSAGE and GAT with residuals, norms and dropout, as a reviewer of today asks for them.

Luo et al., "Classic GNNs are Strong Baselines", NeurIPS 2024 (data sets and benchmarks): the three classical layers
reach what newer networks do once depth, normalisation, residuals and dropout are tuned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from gread.kernels.edge_attention import additive_scores, edge_softmax, weighted_sums
from gread.models.batched_model import BatchedModel
from gread.models.features import Features
from gread.models.norms import BatchNorm, LayerNorm
from gread.models.randomness import Dropper
from gread.settings.model_records import ModelRecord, StackedSettings
from gread.zoo.gat import LEAK

NORMS = ("none", "layer", "batch")


@dataclass(frozen=True, kw_only=True)
class TunedSettings(StackedSettings):
    """Settings of a tuned classical network.

    Args:
        residual: Whether H V + c is added to every layer.
        norm: What follows a layer: none, layer or batch.
        sum_layers: Whether the classifier reads the sum of all layers instead of the last.
        heads: Heads of the attention of the tuned GAT, which share the channels.
    """

    layers: int = 3
    residual: bool = True
    norm: str = "batch"
    sum_layers: bool = False
    heads: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_one_of("norm", NORMS)
        self.check_at_least(1, "heads")


class TunedNetwork(BatchedModel):
    """H' = drop(relu(norm(layer(H) + H V + c))), logits = H_K U + e.

    The layers are those of GCN, GraphSAGE or GAT. The authors put dropout after every layer but none on the features;
    here `input_dropout` is a setting of its own.
    """

    settings: TunedSettings

    def build(self) -> None:
        """Layers with their residuals and norms, and the classifier."""
        s = self.settings
        self.norms: list[LayerNorm | BatchNorm] = []
        for k in range(s.layers):
            inputs = s.hidden if k else self.features
            self.build_layer(k, inputs)
            if s.residual:
                self.add_linear(f"residual_{k}", inputs, s.hidden)
            if s.norm != "none":
                self.norms.append((LayerNorm if s.norm == "layer" else BatchNorm)(self, f"norm_{k}", s.hidden))
        self.add_linear("classifier", s.hidden, self.classes)

    def build_layer(self, k: int, inputs: int) -> None:
        """The parameters of layer k."""
        raise NotImplementedError

    def layer(self, k: int, h: Tensor | Features) -> Tensor:
        """What layer k makes of a state."""
        raise NotImplementedError

    def states(self, x: Features, drop: Dropper) -> list[Tensor]:
        """The output of every layer."""
        s, states = self.settings, list[Tensor]()
        h: Tensor | Features = drop.features(x)
        for k in range(s.layers):
            found = self.layer(k, h)
            if s.residual:
                found = found + self.linear(f"residual_{k}", h)
            if s.norm != "none":
                norm = self.norms[k]
                found = norm(self, found, drop.is_training) if isinstance(norm, BatchNorm) else norm(self, found)
            h = drop(found, relu=True)
            states.append(h)
        return states

    def read(self, states: list[Tensor], drop: Dropper) -> Tensor:
        """Logits of the last state, or of the sum of all."""
        return self.linear("classifier", torch.stack(states).sum(0) if self.settings.sum_layers else states[-1])


@dataclass(frozen=True, kw_only=True)
class TunedGCNSettings(TunedSettings):
    """Settings of a tuned GCN."""

    model: ClassVar[str] = "gcn-tuned"


class TunedGCN(TunedNetwork):
    """The layers A H W + b of GCN, A symmetric with self-loops, in the frame of `TunedNetwork`."""

    def build_layer(self, k: int, inputs: int) -> None:
        """W and b."""
        self.adjacency = self.place.operator("symmetric", self_loops=1.0)
        self.add_linear(f"layer_{k}", inputs, self.settings.hidden, start="glorot")

    def layer(self, k: int, h: Tensor | Features) -> Tensor:
        """A h W + b."""
        return self.adjacency @ self.times(f"layer_{k}", h) + self.shift(f"layer_{k}")


@dataclass(frozen=True, kw_only=True)
class TunedSAGESettings(TunedSettings):
    """Settings of a tuned GraphSAGE."""

    model: ClassVar[str] = "sage-tuned"


class TunedSAGE(TunedNetwork):
    """The layers H V + P H W + b of GraphSAGE, P the mean over the neighbours, in the frame of `TunedNetwork`."""

    def build_layer(self, k: int, inputs: int) -> None:
        """V and W side by side, and b."""
        self.mean, hidden = self.place.operator("row"), self.settings.hidden
        self.add_parameter(f"layer_{k}_weight", self.uniform((inputs, 2 * hidden), inputs**-0.5))
        self.add_parameter(f"layer_{k}_bias", self.uniform((hidden,), inputs**-0.5))

    def layer(self, k: int, h: Tensor | Features) -> Tensor:
        """h V + P h W + b."""
        own, others = self.times(f"layer_{k}", h).chunk(2, -1)
        return own + self.mean @ others + self.shift(f"layer_{k}")


@dataclass(frozen=True, kw_only=True)
class TunedGATSettings(TunedSettings):
    """Settings of a tuned GAT, whose heads share the channels."""

    model: ClassVar[str] = "gat-tuned"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_divides("hidden", "heads")


class TunedGAT(TunedNetwork):
    """The layers S(H) H W + b of GAT, heads side by side, in the frame of `TunedNetwork`; no dropout of edges."""

    def build_layer(self, k: int, inputs: int) -> None:
        """W, b and the two vectors of the scores."""
        self.edges, s = self.place.operator("row", self_loops=1.0), self.settings
        width = s.hidden // s.heads
        self.add_linear(f"layer_{k}", inputs, s.hidden, start="glorot")
        for end in ("own", "neighbour"):
            self.add_parameter(f"layer_{k}_{end}", self.uniform((s.heads, width), (6 / (s.heads + width)) ** 0.5))

    def layer(self, k: int, h: Tensor | Features) -> Tensor:
        """S(h) h W + b."""
        values = self.times(f"layer_{k}", h)
        own, neighbour = (self.get_parameter(f"layer_{k}_{end}") for end in ("own", "neighbour"))
        raised = additive_scores(self.edges, values, own, neighbour, LEAK)
        return weighted_sums(self.edges, edge_softmax(self.edges, raised), values) + self.shift(f"layer_{k}")


_SOURCE = "Luo et al., NeurIPS 2024, layers of {}"
RECORDS = (
    ModelRecord(
        "gcn-tuned", "tuned GCN", "tuned", source=_SOURCE.format("Kipf and Welling 2017"),
        rule="H' = relu(norm(A H W + H V + c))", settings=TunedGCNSettings, network=TunedGCN,
    ),
    ModelRecord(
        "sage-tuned", "tuned GraphSAGE", "tuned", source=_SOURCE.format("Hamilton et al. 2017"),
        rule="H' = relu(norm(H V + P H W + H U + c))", settings=TunedSAGESettings, network=TunedSAGE,
    ),
    ModelRecord(
        "gat-tuned", "tuned GAT", "tuned", source=_SOURCE.format("Velickovic et al. 2018"),
        rule="H' = relu(norm(S(H) H W + H V + c))", settings=TunedGATSettings, network=TunedGAT,
    ),
)  # fmt: skip
