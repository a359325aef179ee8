"""GAT: Velickovic et al., "Graph Attention Networks", ICLR 2018."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor
from torch.nn import functional

from gread.kernels.edge_attention import additive_scores, edge_softmax, weighted_sums
from gread.models.batched_model import BatchedModel
from gread.models.features import Features
from gread.models.randomness import Dropper
from gread.settings.model_records import ModelRecord, StackedSettings

#: The slope of the leaky relu below zero.
LEAK = 0.2


@dataclass(frozen=True, kw_only=True)
class GATSettings(StackedSettings):
    """Settings of a GAT: `hidden` channels in each of the `heads`, side by side; the last layer has one head."""

    model: ClassVar[str] = "gat"
    free: ClassVar[tuple[str, ...]] = (*StackedSettings.free, "attention_dropout")

    hidden: int = 8
    input_dropout: float = 0.6
    dropout: float = 0.6
    heads: int = 8
    attention_dropout: float = 0.6

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_at_least(1, "heads")
        self.check_share("attention_dropout")


class GAT(BatchedModel):
    """H' = elu(S(H) H W + b), S_ij = softmax_j leaky(a . W h_i + c . W h_j) on edges and self-loops.

    Heads lie side by side; no elu after the last layer, the logits. Only the data differ from the authors' code.
    """

    settings: GATSettings

    def build(self) -> None:
        """W, b and the two vectors of the scores for every layer."""
        s = self.settings
        self.edges = self.place.operator("row", self_loops=1.0)
        inner = s.heads * s.hidden
        for k in range(s.layers):
            is_last = k + 1 == s.layers
            heads, width = (1, self.classes) if is_last else (s.heads, s.hidden)
            self.add_linear(f"layer_{k}", self.features if k == 0 else inner, heads * width, start="glorot")
            for end in ("own", "neighbour"):
                self.add_parameter(f"layer_{k}_{end}", self.uniform((heads, width), (6 / (heads + width)) ** 0.5))

    def attend(self, k: int, h: Tensor | Features, drop: Dropper) -> Tensor:
        """S(h) h W + b."""
        values = self.times(f"layer_{k}", h)
        own, neighbour = (self.get_parameter(f"layer_{k}_{end}") for end in ("own", "neighbour"))
        raised = additive_scores(self.edges, values, own, neighbour, LEAK)
        weights = drop(edge_softmax(self.edges, raised), "attention_dropout")
        return weighted_sums(self.edges, weights, values) + self.shift(f"layer_{k}")

    def states(self, x: Features, drop: Dropper) -> list[Tensor]:
        """The output of every layer."""
        states = [self.attend(0, drop.features(x), drop)]
        for k in range(1, self.settings.layers):
            states[-1] = functional.elu(states[-1])
            states.append(self.attend(k, drop(states[-1]), drop))
        return states


RECORDS = (
    ModelRecord(
        "gat", "GAT", "classical", source="Velickovic et al., ICLR 2018",
        rule="H' = elu(S(H) H W + b), S attention over the edges",
        settings=GATSettings, network=GAT, published="GAT",
    ),
)  # fmt: skip
