"""Deep networks against oversmoothing: PairNorm, JKNet, GCNII, GraphCON."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from gread.kernels.edge_attention import edge_softmax, edge_sums, weighted_sums
from gread.models.batched_model import BatchedModel
from gread.models.features import Features
from gread.models.norms import pair_norm
from gread.models.randomness import Dropper
from gread.settings.line_settings import LineSettings
from gread.settings.model_records import ModelSettings, StackedSettings, printed_records
from gread.zoo.classical_networks import LEAK, GCNLayers, LayerStack
from gread.zoo.equation_networks import LineModel
from rdgraph.errors import UnknownName

# ---------------------------------------------------------------------- pairnorm
# Zhao and Akoglu, "PairNorm: Tackling Oversmoothing in GNNs", ICLR 2020; between the layers of a GCN.


@dataclass(frozen=True, kw_only=True)
class PairNormSettings(StackedSettings, model="pairnorm", least={"scale": 0}):
    """Settings of a GCN with pair norms of length `scale`, over all nodes together or `individually`.

    `normalisation` is that of A: symmetric, or row, which the authors recommend.
    """

    scale: float = 1.0
    individually: bool = False
    normalisation: str = "row"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_one_of("normalisation", ("symmetric", "row"))


class PairNormGCN(GCNLayers, LayerStack):
    """H' = relu(norm(A H W + b)), norm(H) = scale C/sqrt(mean_i |c_i|^2), C the rows of H minus their mean.

    A has self-loops; `individually` divides every row by its own length. No norm and no ReLU after the last layer, the
    logits. Nothing differs from the authors' code but the constant under the root, 1e-5 here.
    """

    settings: PairNormSettings
    start = "fan_out"

    def build(self) -> None:
        """Add the convolutions, with the normalisation of the settings."""
        self.normalisation = self.settings.normalisation
        super().build()

    def between(self, h: Tensor) -> Tensor:
        """The output of a layer after norm and ReLU."""
        return torch.relu(pair_norm(h, self.settings.scale, individually=self.settings.individually))


# ---------------------------------------------------------------------- jumping knowledge
# Xu et al., "Representation Learning on Graphs with Jumping Knowledge Networks", ICML 2018: one state from all layers.

#: Concatenation, entrywise maximum, and weights per node and layer from a bidirectional LSTM.
MODES = ("cat", "max", "lstm")


class JumpingKnowledge:
    """Joins the states (M, n, d) of `layers` layers into one; created in the `build` of a network.

    With lstm, an LSTM that reads the states of a node forwards and backwards, with layers*d/2 channels each way, scores
    the layers; the result is the mean weighted by the softmax of the scores. It keeps no reference to the network.
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
        inputs, recurrent = (model.get_parameter(f"{part}_{end}") for end in ("in", "own"))
        bias = model.get_parameter(f"{part}_bias")[:, None]
        hidden = cell = states[0].new_zeros((*states[0].shape[:2], self.inner))
        hidden_states = []
        for state in states:
            gates = state @ inputs + hidden @ recurrent + bias
            enter, forget, new, leave = gates.chunk(4, -1)
            cell = torch.sigmoid(forget) * cell + torch.sigmoid(enter) * torch.tanh(new)
            hidden = torch.sigmoid(leave) * torch.tanh(cell)
            hidden_states.append(hidden)
        return torch.stack(hidden_states)


# ---------------------------------------------------------------------- jknet


@dataclass(frozen=True, kw_only=True)
class JKNetSettings(StackedSettings, model="jknet"):
    """Settings of JKNet: `layers` convolutions of width `hidden`, joined by `jump`: cat, max or lstm."""

    jump: str = "cat"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_one_of("jump", MODES)


class JKNet(GCNLayers):
    """H_k = relu(A H_(k-1) W + b), logits = join(H_1, ..., H_K) U + c; A symmetric with self-loops.

    As in the authors' code; they also try means over neighbours instead of A.
    """

    settings: JKNetSettings

    def build(self) -> None:
        """Add the convolutions, the join and the classifier."""
        s = self.settings
        for k in range(s.layers):
            self.build_layer(k, s.hidden if k else self.features, s.hidden)
        self.join = JumpingKnowledge(self, "join", s.jump, s.hidden, s.layers)
        self.add_linear("classifier", self.join.columns, self.classes)

    def states(self, x: Features, drop: Dropper) -> list[Tensor]:
        """The output of every layer."""
        states = [torch.relu(self.layer(0, drop.features(x), drop))]
        for k in range(1, self.settings.layers):
            states.append(torch.relu(self.layer(k, drop(states[-1]), drop)))
        return states

    def read(self, states: list[Tensor], drop: Dropper) -> Tensor:
        """Logits from all layers."""
        return self.linear("classifier", drop(self.join(self, states)))


# ---------------------------------------------------------------------- gcnii
# Chen et al., "Simple and Deep Graph Convolutional Networks", ICML 2020.


@dataclass(frozen=True, kw_only=True)
class GCNIISettings(StackedSettings, model="gcnii", least={"alpha": 0, "decay": 0}):
    """Settings of GCNII.

    Args:
        alpha: The share of H_0 in every layer.
        decay: lam in log(lam/k + 1), the weight of the matrices in layer k, counted from 1.
        variant: Whether the two terms have separate matrices, the authors' GCNII*.
    """

    layers: int = 8
    alpha: float = 0.1
    decay: float = 0.5
    variant: bool = False


class GCNII(BatchedModel):
    """H' = relu(((1 - a) A H + a H_0)((1 - b_k) I + b_k W_k)), b_k = log(lam/k + 1), H_0 = relu(X V + c).

    A symmetric with self-loops; dropout before every layer. The authors' A of the heterophilic graphs is directed; here
    graphs are undirected. At W = I it is one Euler step of -(1 - a) L H + a (H_0 - H).
    """

    settings: GCNIISettings

    def build(self) -> None:
        """Add the encoder, a matrix for every layer (two in the variant) and the classifier."""
        s = self.settings
        self.adjacency = self.place.operator("symmetric", self_loops=1.0)
        self.add_linear("encoder", self.features, s.hidden)
        for k in range(s.layers):
            self.add_linear(f"layer_{k}", s.hidden, s.hidden, bias=False, start="fan_out")
            if s.variant:
                self.add_linear(f"start_{k}", s.hidden, s.hidden, bias=False, start="fan_out")
        self.add_linear("classifier", s.hidden, self.classes)

    def states(self, x: Features, drop: Dropper) -> list[Tensor]:
        """H_0 and the output of every layer."""
        s = self.settings
        first = torch.relu(self.linear("encoder", drop.features(x)))
        states = [first]
        for k in range(s.layers):
            weight = log(s.decay / (k + 1) + 1)
            near, start = (1 - s.alpha) * (self.adjacency @ drop(states[-1])), s.alpha * first
            if s.variant:
                mixed = self.times(f"layer_{k}", near) + self.times(f"start_{k}", start)
            else:
                mixed = self.times(f"layer_{k}", near + start)
            states.append(torch.relu((1 - weight) * (near + start) + weight * mixed))
        return states

    def read(self, states: list[Tensor], drop: Dropper) -> Tensor:
        """Logits of the last state."""
        return self.linear("classifier", drop(states[-1]))


# ---------------------------------------------------------------------- graphcon
# Rusch et al., "Graph-Coupled Oscillator Networks", ICML 2022; with convolutions and with attention.
#: The two residuals of the authors' code for heterophilic graphs, their res_version 1 and 2.
FIRST = "H'' = relu(A@H@W - H@W@V + c) - gamma*H - alpha*H' where V matrix, c channel"
SECOND = "H'' = relu(A@H@W - H@W + H@V + c) - gamma*H - alpha*H' where V matrix, c channel"


@dataclass(frozen=True, kw_only=True)
class GconGcnSettings(LineSettings, model="gcon-gcn"):
    """Settings of GraphCON-GCN: H'' = relu(A H W + r(H)) - gamma H - alpha H', T steps of length 1, H'(0) = H(0).

    V' = V + dt (relu(...) - alpha V - gamma H), H' = H + dt V': semi-implicit Euler, one step a layer. All layers share
    the weights. `reaction` SECOND has r(H) = -H W + H V, FIRST has -H W V, with the biases combined into c. alpha and
    gamma are fixed numbers (`values`); the authors' tuned runs set both to zero. Entries of both states are dropped at
    the start and after every step. The authors' graphs are directed and keep the data's self-loops; here they are
    symmetric, as in all other runs. Their dropout rate is always 0.3, since their code does not read the tuned one.
    """

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
class GconGatSettings(
    ModelSettings, model="gcon-gat", least={"layers": 1, "heads": 1, "step": 0, "alpha": 0, "gamma": 0}
):
    """Settings of GraphCON-GAT: `layers` steps of length `step` with damping alpha and frequency gamma."""

    input_dropout: float = 0.3
    dropout: float = 0.3
    layers: int = 2
    heads: int = 4
    step: float = 1.0
    alpha: float = 1.0
    gamma: float = 1.0


class GraphConGat(BatchedModel):
    """V' = V + dt (F(H) - alpha V - gamma H), H' = H + dt V', F(H) = mean over heads of elu(S(H) H W + b + H R).

    S is GAT's attention on edges and self-loops. H(0) = V(0) = relu(X U + u); entries of both are dropped at the start
    and after every step; a linear layer reads H. All layers share the weights. In the authors' code the columns are
    regrouped before the mean, so that it runs over neighbouring channels of one head; here it runs over the heads. The
    language has no equation for it: attention within a nonlinear function is not an operator.
    """

    settings: GconGatSettings

    def build(self) -> None:
        """Add the encoder, the weights that all layers share and the decoder."""
        s = self.settings
        self.edges = self.place.operator("row", self_loops=1.0)
        self.add_linear("encoder", self.features, s.hidden)
        self.add_linear("attention", s.hidden, s.heads * s.hidden, start="glorot")
        for end in ("own", "neighbour"):
            self.add_parameter(f"score_{end}", self.uniform((s.heads, s.hidden), (6 / (s.heads + s.hidden)) ** 0.5))
        self.add_linear("residual", s.hidden, s.heads * s.hidden)
        self.add_linear("decoder", s.hidden, self.classes)

    def force(self, h: Tensor) -> Tensor:
        """Mean over the heads of elu(S(h) h W + b + h R)."""
        s, members, nodes = self.settings, self.members, self.place.nodes
        values = self.times("attention", h)
        split = values.view(members, nodes, s.heads, s.hidden)
        ends = [self.get_parameter(f"score_{end}") for end in ("own", "neighbour")]
        scores = [torch.einsum("mnhd,mhd->mhn", split, end).reshape(-1, nodes) for end in ends]
        attention = functional.leaky_relu(edge_sums(self.edges.pattern, *scores), LEAK).view(members, s.heads, -1)
        averaged = weighted_sums(self.edges, edge_softmax(self.edges, attention), values) + self.shift("attention")
        return functional.elu(averaged + self.linear("residual", h)).view(members, nodes, s.heads, s.hidden).mean(2)

    def states(self, x: Features, drop: Dropper) -> list[Tensor]:
        """H(0) and H after every step, the last one before dropout."""
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


RECORDS = printed_records(
    (PairNormSettings, PairNormGCN), (JKNetSettings, JKNet),
    (GCNIISettings, GCNII, "-(1 - alpha)*L@H + alpha*(H0 - H)"), (GconGcnSettings, LineModel),
    (GconGatSettings, GraphConGat),
)  # fmt: skip
