"""GraphCON: Rusch et al., "Graph-Coupled Oscillator Networks", ICML 2022; with convolutions and with attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from gread.kernels.edge_attention import edge_softmax, edge_sums, weighted_sums
from gread.models.batched_model import BatchedModel
from gread.models.features import Features
from gread.models.randomness import Dropper
from gread.settings.line_settings import LineSettings
from gread.settings.model_records import ModelRecord, ModelSettings
from gread.zoo.gat import LEAK
from gread.zoo.line_model import LineModel

#: The two residuals of the authors' code of the heterophilic graphs, their res_version 1 and 2.
FIRST = "H'' = relu(A@H@W - H@W@V + c) - gamma*H - alpha*H' where V matrix, c channel"
SECOND = "H'' = relu(A@H@W - H@W + H@V + c) - gamma*H - alpha*H' where V matrix, c channel"


@dataclass(frozen=True, kw_only=True)
class GconGcnSettings(LineSettings):
    """Settings of GraphCON-GCN: H'' = relu(A H W + r(H)) - gamma H - alpha H', T steps of one, H'(0) = H(0).

    V' = V + dt (relu(...) - alpha V - gamma H), H' = H + dt V': semi-implicit Euler, one step a layer. All layers share
    the weights. `reaction` SECOND has r(H) = -H W + H V, FIRST has -H W V, with the biases as one c. alpha and gamma
    are numbers (`values`); the authors' tuned runs have zero for both. Entries of both states are dropped at
    the start and after every step. The authors' graphs are directed and have the data's self-loops; these are
    symmetric, as in all other runs. Their rate of dropout is 0.3 whatever was tuned, since the tuned one is not read.
    """

    model: ClassVar[str] = "gcon-gcn"
    usual_starts: ClassVar[dict[str, float]] = {"c": 0.0}

    reaction: str = SECOND
    values: str = "alpha=1, gamma=1"
    input_dropout: float = 0.3
    dropout: float = 0.3
    adjacency: str = "original"
    time: float = 2.0
    method: str = "semi-implicit-euler"
    step: float | None = 1.0
    velocity: str = "same"
    relu: bool = False
    encoder_relu: bool = True
    encoder_start: str = "fan_out"
    step_dropout: bool = True


@dataclass(frozen=True, kw_only=True)
class GconGatSettings(ModelSettings):
    """Settings of GraphCON-GAT: `layers` steps of length `step` with damping alpha and frequency gamma."""

    model: ClassVar[str] = "gcon-gat"

    input_dropout: float = 0.3
    dropout: float = 0.3
    layers: int = 2
    heads: int = 4
    step: float = 1.0
    alpha: float = 1.0
    gamma: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_at_least(1, "layers", "heads")
        self.check_at_least(0, "step", "alpha", "gamma")


class GraphConGat(BatchedModel):
    """V' = V + dt (F(H) - alpha V - gamma H), H' = H + dt V', F(H) = mean over heads of elu(S(H) H W + b + H R).

    S is GAT's attention on edges and self-loops. H(0) = V(0) = relu(X U + u); entries of both are dropped at the start
    and after every step; a linear layer reads H. All layers share the weights. In the authors' code the columns are
    regrouped before the mean, so that it runs over neighbouring channels of one head; here it runs over the heads. No
    line of the language: attention within a nonlinear function is no operator.
    """

    settings: GconGatSettings

    def build(self) -> None:
        """Encoder, the weights that all layers share, decoder."""
        s = self.settings
        self.edges = self.place.operator("row", self_loops=1.0)
        self.add_linear("encoder", self.features, s.hidden)
        self.add_linear("attention", s.hidden, s.heads * s.hidden, start="glorot")
        for end in ("own", "neighbour"):
            self.add_parameter(f"score_{end}", self.uniform((s.heads, s.hidden), (6 / (s.heads + s.hidden)) ** 0.5))
        self.add_linear("residual", s.hidden, s.heads * s.hidden)
        self.add_linear("decoder", s.hidden, self.classes)

    def force(self, h: Tensor) -> Tensor:
        """mean over heads of elu(S(h) h W + b + h R)."""
        s, members, nodes = self.settings, self.members, self.place.nodes
        values = self.times("attention", h)
        split = values.view(members, nodes, s.heads, s.hidden)
        ends = [self.get_parameter(f"score_{end}") for end in ("own", "neighbour")]
        scores = [torch.einsum("mnhd,mhd->mhn", split, end).reshape(-1, nodes) for end in ends]
        raised = functional.leaky_relu(edge_sums(self.edges.pattern, *scores), LEAK).view(members, s.heads, -1)
        seen = weighted_sums(self.edges, edge_softmax(self.edges, raised), values) + self.shift("attention")
        return functional.elu(seen + self.linear("residual", h)).view(members, nodes, s.heads, s.hidden).mean(2)

    def states(self, x: Features, drop: Dropper) -> list[Tensor]:
        """H(0) and H after every step, before what is dropped of the last."""
        s = self.settings
        start = torch.relu(self.linear("encoder", drop.features(x)))
        v, h, states = start, start, [start]
        for _ in range(s.layers):
            v, h = drop(v), drop(h)
            v = v + s.step * (self.force(h) - s.alpha * v - s.gamma * h)
            h = h + s.step * v
            states.append(h)
        return states

    def read(self, states: list[Tensor], drop: Dropper) -> Tensor:
        """Logits of the last H."""
        return self.linear("decoder", drop(states[-1]))


RECORDS = (
    ModelRecord(
        "gcon-gcn", "GCON-GCN", "oversmoothing", source="Rusch et al., ICML 2022",
        rule="H'' = relu(A H W + r(H)) - gamma H - alpha H'",
        settings=GconGcnSettings, network=LineModel, published="GCON-GCN",
    ),
    ModelRecord(
        "gcon-gat", "GCON-GAT", "oversmoothing", source="Rusch et al., ICML 2022",
        rule="H'' = mean elu(S(H) H W + H R) - gamma H - alpha H'",
        settings=GconGatSettings, network=GraphConGat, published="GCON-GAT",
    ),
)  # fmt: skip
