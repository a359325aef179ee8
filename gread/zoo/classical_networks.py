"""Classical baselines: MLP, GCN, ChebNet, GAT, GraphSAGE, SGC, and the first three tuned as reviewers ask for today."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from gread.kernels.edge_attention import additive_scores, edge_softmax, weighted_sums
from gread.models.batched_model import BatchedModel
from gread.models.features import Features
from gread.models.norms import BatchNorm, LayerNorm
from gread.models.randomness import Dropper
from gread.settings.gread_settings import NORMS
from gread.settings.model_records import ModelSettings, StackedSettings, printed_records
from rdgraph.graphs.operator import Operator

#: The slope of the leaky ReLU below zero.
LEAK = 0.2


# ---------------------------------------------------------------------- layers
class Layered(BatchedModel):
    """A network of `layers` layers; subclasses define the parameters of a layer and its output."""

    def build_layer(self, k: int, inputs: int, outputs: int) -> None:
        """Add the parameters of layer k."""
        raise NotImplementedError

    def layer(self, k: int, h: Tensor | Features, drop: Dropper) -> Tensor:
        """Output of layer k for the states h."""
        raise NotImplementedError


class LayerStack(Layered):
    """Layers with a ReLU between them and dropout before each; the last layer gives the logits."""

    settings: StackedSettings

    def build(self) -> None:
        """Add the layers, each between two consecutive widths."""
        for k, (inputs, outputs) in enumerate(pairwise(self.settings.widths(self.features, self.classes))):
            self.build_layer(k, inputs, outputs)

    def between(self, h: Tensor) -> Tensor:
        """The output of a layer as the next one receives it, before dropout."""
        return torch.relu(h)

    def states(self, x: Features, drop: Dropper) -> list[Tensor]:
        """The output of every layer."""
        states = [self.layer(0, drop.features(x), drop)]
        for k in range(1, self.settings.layers):
            states[-1] = self.between(states[-1])
            states.append(self.layer(k, drop(states[-1]), drop))
        return states


class GCNLayers(Layered):
    """Layers A H W + b, A symmetric with self-loops."""

    normalisation, start = "symmetric", "glorot"

    def build_layer(self, k: int, inputs: int, outputs: int) -> None:
        """Add W and b."""
        self.adjacency = self.place.operator(self.normalisation, self_loops=1.0)
        self.add_linear(f"layer_{k}", inputs, outputs, start=self.start)

    def layer(self, k: int, h: Tensor | Features, drop: Dropper) -> Tensor:
        """A h W + b."""
        return self.adjacency @ self.times(f"layer_{k}", h) + self.shift(f"layer_{k}")


class SAGELayers(Layered):
    """Layers H V + P H W + b, P = D^-1 W the mean over the neighbours, without self-loops."""

    def build_layer(self, k: int, inputs: int, outputs: int) -> None:
        """Add V and W side by side in one matrix, and b."""
        self.mean = self.place.operator("row")
        self.add_parameter(f"layer_{k}_weight", self.uniform((inputs, 2 * outputs), inputs**-0.5))
        self.add_parameter(f"layer_{k}_bias", self.uniform((outputs,), inputs**-0.5))

    def layer(self, k: int, h: Tensor | Features, drop: Dropper) -> Tensor:
        """h V + P h W + b."""
        itself, others = self.times(f"layer_{k}", h).chunk(2, -1)
        return itself + self.mean @ others + self.shift(f"layer_{k}")


class GATLayers(Layered):
    """Layers S(H) H W + b, S_ij = softmax_j leaky(a . W h_i + c . W h_j) on edges and self-loops."""

    def head_sizes(self, k: int, outputs: int) -> tuple[int, int]:
        """Number of heads of layer k and columns of each, for `outputs` columns in all."""
        raise NotImplementedError

    def build_layer(self, k: int, inputs: int, outputs: int) -> None:
        """Add W, b and the two vectors of the scores."""
        self.edges = self.place.operator("row", self_loops=1.0)
        heads, width = self.head_sizes(k, outputs)
        self.add_linear(f"layer_{k}", inputs, outputs, start="glorot")
        for end in ("own", "neighbour"):
            self.add_parameter(f"layer_{k}_{end}", self.uniform((heads, width), (6 / (heads + width)) ** 0.5))

    def layer(self, k: int, h: Tensor | Features, drop: Dropper) -> Tensor:
        """S(h) h W + b."""
        values = self.times(f"layer_{k}", h)
        at_node, at_neighbour = (self.get_parameter(f"layer_{k}_{end}") for end in ("own", "neighbour"))
        scores = additive_scores(self.edges, values, at_node, at_neighbour, LEAK)
        weights = self.dropped(edge_softmax(self.edges, scores), drop)
        return weighted_sums(self.edges, weights, values) + self.shift(f"layer_{k}")

    def dropped(self, weights: Tensor, drop: Dropper) -> Tensor:
        """Edge weights after dropout; unchanged unless a network drops edges."""
        return weights


# ---------------------------------------------------------------------- mlp


@dataclass(frozen=True, kw_only=True)
class MLPSettings(StackedSettings, model="mlp"):
    """Settings of an MLP of `layers` linear layers."""


class MLP(LayerStack):
    """H' = relu(H W + b); no ReLU after the last layer, the logits. The graph is ignored.

    As a system it has no dynamics: nothing happens between encoder and decoder.
    """

    def build_layer(self, k: int, inputs: int, outputs: int) -> None:
        """Add W and b."""
        self.add_linear(f"layer_{k}", inputs, outputs)

    def layer(self, k: int, h: Tensor | Features, drop: Dropper) -> Tensor:
        """h W + b."""
        return self.linear(f"layer_{k}", h)


# ---------------------------------------------------------------------- gcn


@dataclass(frozen=True, kw_only=True)
class GCNSettings(StackedSettings, model="gcn"):
    """Settings of a GCN of `layers` convolutions."""


class GCN(GCNLayers, LayerStack):
    """H' = relu(A H W + b), A = D^-1/2 (W + I) D^-1/2 with self-loops; no ReLU after the last layer, the logits.

    Kipf and Welling, "Semi-Supervised Classification with Graph Convolutional Networks", ICLR 2017. Nothing differs
    from the authors' code but the data: they train on the three citation graphs with 20 labels a class.
    """


# ---------------------------------------------------------------------- chebnet


@dataclass(frozen=True, kw_only=True)
class ChebNetSettings(StackedSettings, model="chebnet", least={"taps": 1}):
    """Settings of ChebNet: `taps` matrices a layer, so that a layer is a polynomial of degree taps - 1."""

    taps: int = 3


class ChebNet(LayerStack):
    """H' = relu(sum_k T_k(-A) H W_k + b), T_k Chebyshev's polynomials, A = D^-1/2 W D^-1/2 without self-loops.

    Defferrard et al., "CNNs on Graphs with Fast Localized Spectral Filtering", NeurIPS 2016. 2L/lam_max - I = -A with
    lam_max = 2, an upper bound for all symmetric normalisations; the authors compute lam_max of every graph.
    """

    settings: ChebNetSettings

    def build_layer(self, k: int, inputs: int, outputs: int) -> None:
        """Add the matrices of all taps side by side, and b."""
        self.adjacency = self.place.operator("symmetric")
        weight = self.uniform((inputs, self.settings.taps * outputs), (6 / (inputs + outputs)) ** 0.5)
        self.add_parameter(f"layer_{k}_weight", weight)
        self.add_parameter(f"layer_{k}_bias", self.full((outputs,), 0.0))

    def layer(self, k: int, h: Tensor | Features, drop: Dropper) -> Tensor:
        """sum_k T_k(-A) h W_k + b."""
        terms = self.times(f"layer_{k}", h).chunk(self.settings.taps, -1)
        return chebyshev_sum(self.adjacency, list(terms)) + self.shift(f"layer_{k}")


def chebyshev_sum(adjacency: Operator, terms: list[Tensor]) -> Tensor:
    """sum_k T_k(-A) terms[k] by Clenshaw's recurrence: one product fewer than there are terms.

    >>> import rdgraph as rd
    >>> A = rd.generators.path(2).operator("symmetric")
    >>> chebyshev_sum(A, [torch.zeros(1, 2, 1), torch.tensor([[[1.0], [2.0]]])]).ravel()
    tensor([-2., -1.])
    """
    after, later = torch.zeros_like(terms[0]), torch.zeros_like(terms[0])
    for term in reversed(terms[1:]):
        after, later = term - 2 * (adjacency @ after) - later, after
    return terms[0] - adjacency @ after - later if len(terms) > 1 else terms[0]


# ---------------------------------------------------------------------- gat


@dataclass(frozen=True, kw_only=True)
class GATSettings(StackedSettings, model="gat", least={"heads": 1}):
    """Settings of a GAT: `hidden` channels in each of the `heads`, side by side; the last layer has one head."""

    free: ClassVar[tuple[str, ...]] = (*StackedSettings.free, "attention_dropout")

    hidden: int = 8
    input_dropout: float = 0.6
    dropout: float = 0.6
    heads: int = 8
    attention_dropout: float = 0.6

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_share("attention_dropout")

    def widths(self, features: int, classes: int) -> list[int]:
        """Columns before and after every layer, all heads counted."""
        return [features, *(self.layers - 1) * [self.heads * self.hidden], classes]


class GAT(GATLayers, LayerStack):
    """H' = elu(S(H) H W + b), S_ij = softmax_j leaky(a . W h_i + c . W h_j) on edges and self-loops.

    Velickovic et al., "Graph Attention Networks", ICLR 2018. Heads lie side by side; no ELU after the last layer, the
    logits. Only the data differ from the authors' code.
    """

    settings: GATSettings

    def head_sizes(self, k: int, outputs: int) -> tuple[int, int]:
        """One head in the last layer, else `heads`."""
        heads = 1 if k + 1 == self.settings.layers else self.settings.heads
        return heads, outputs // heads

    def dropped(self, weights: Tensor, drop: Dropper) -> Tensor:
        """Edge weights after dropout by `attention_dropout`."""
        return drop(weights, "attention_dropout")

    def between(self, h: Tensor) -> Tensor:
        """The output of a layer as the next one receives it, before dropout."""
        return functional.elu(h)


# ---------------------------------------------------------------------- graph sage


@dataclass(frozen=True, kw_only=True)
class GraphSAGESettings(StackedSettings, model="graphsage"):
    """Settings of GraphSAGE with means over the neighbours."""


class GraphSAGE(SAGELayers, LayerStack):
    """H' = relu(H V + P H W + b), P = D^-1 W the mean over the neighbours, without self-loops.

    Hamilton et al., "Inductive Representation Learning on Large Graphs", NeurIPS 2017. The node and its neighbours have
    separate matrices. The authors sample neighbours and divide every state by its length; here all neighbours count and
    states are not rescaled, as in most comparisons.
    """


# ---------------------------------------------------------------------- linear classifiers on smoothed features


@dataclass(frozen=True, kw_only=True)
class SGCSettings(ModelSettings, model="sgc", least={"hops": 0}):
    """Settings of SGC: `hops` products with A. There is no hidden layer, so `hidden` and `dropout` have no effect."""

    hops: int = 2
    input_dropout: float = 0.0
    dropout: float = 0.0


class SGC(BatchedModel):
    """logits = A^K (X W) + b, A symmetric with self-loops: K steps of diffusion by Euler's method with step 1.

    Wu et al., "Simplifying Graph Convolutional Networks", ICML 2019. The authors train by L-BFGS on some sets; here
    Adam is used as for all networks. The products act on X W, which has fewer columns than X; the result is the same.
    """

    settings: SGCSettings

    def build(self) -> None:
        """Add W, b and A."""
        self.adjacency = self.place.operator("symmetric", self_loops=1.0)
        self.add_linear("classifier", self.features, self.classes)

    def states(self, x: Features, drop: Dropper) -> list[Tensor]:
        """A^k X W, step by step."""
        states = [self.times("classifier", drop.features(x))]
        for _ in range(self.settings.hops):
            states.append(self.adjacency @ states[-1])
        return states

    def read(self, states: list[Tensor], drop: Dropper) -> Tensor:
        """The last state plus the bias."""
        return states[-1] + self.shift("classifier")


@dataclass(frozen=True, kw_only=True)
class SmoothedSettings(SGCSettings, model="smoothed"):
    """Settings of logistic regression on features smoothed 0, 1, ..., `hops` times."""


class Smoothed(SGC):
    """logits = sum_k A^k X W_k + b: logistic regression on [X, A X, ..., A^K X], A symmetric with self-loops.

    Horner's rule takes K products: X W_0 + A (X W_1 + A (X W_2 + ...)).
    """

    settings: SmoothedSettings

    def build(self) -> None:
        """Add all W_k side by side, b and A."""
        self.adjacency = self.place.operator("symmetric", self_loops=1.0)
        columns = (self.settings.hops + 1) * self.classes
        self.add_parameter("classifier_weight", self.uniform((self.features, columns), self.features**-0.5))
        self.add_parameter("classifier_bias", self.full((self.classes,), 0.0))

    def states(self, x: Features, drop: Dropper) -> list[Tensor]:
        """The partial sums, the innermost first."""
        *terms, last = self.times("classifier", drop.features(x)).chunk(self.settings.hops + 1, -1)
        states = [last]
        for term in reversed(terms):
            states.append(term + self.adjacency @ states[-1])
        return states


# ---------------------------------------------------------------------- tuned
# Luo et al., "Classic GNNs are Strong Baselines", NeurIPS 2024 (data sets and benchmarks): the three classical layers
# match newer networks once depth, normalisation, residuals and dropout are tuned.


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


class TunedNetwork(Layered):
    """H' = drop(relu(norm(layer(H) + H V + c))), logits = H_K U + e.

    The layers are those of GCN, GraphSAGE or GAT. The authors drop after every layer but not on the features; here
    `input_dropout` is a separate setting.
    """

    settings: TunedSettings

    def build(self) -> None:
        """Add the layers with their residuals and norms, and the classifier."""
        s = self.settings
        self.norms: list[LayerNorm | BatchNorm] = []
        for k in range(s.layers):
            inputs = s.hidden if k else self.features
            self.build_layer(k, inputs, s.hidden)
            if s.residual:
                self.add_linear(f"residual_{k}", inputs, s.hidden)
            if s.norm != "none":
                self.norms.append((LayerNorm if s.norm == "layer" else BatchNorm)(self, f"norm_{k}", s.hidden))
        self.add_linear("classifier", s.hidden, self.classes)

    def states(self, x: Features, drop: Dropper) -> list[Tensor]:
        """The output of every layer."""
        s, states = self.settings, list[Tensor]()
        h: Tensor | Features = drop.features(x)
        for k in range(s.layers):
            y = self.layer(k, h, drop)
            if s.residual:
                y = y + self.linear(f"residual_{k}", h)
            if s.norm != "none":
                norm = self.norms[k]
                y = norm(self, y, drop.is_training) if isinstance(norm, BatchNorm) else norm(self, y)
            h = drop(y, relu=True)
            states.append(h)
        return states

    def read(self, states: list[Tensor], drop: Dropper) -> Tensor:
        """Logits of the last state, or of the sum of all."""
        return self.linear("classifier", torch.stack(states).sum(0) if self.settings.sum_layers else states[-1])


@dataclass(frozen=True, kw_only=True)
class TunedGCNSettings(TunedSettings, model="gcn-tuned"):
    """Settings of a tuned GCN."""


class TunedGCN(GCNLayers, TunedNetwork):
    """GCN with residuals, norms and dropout, see `TunedNetwork`."""


@dataclass(frozen=True, kw_only=True)
class TunedSAGESettings(TunedSettings, model="sage-tuned"):
    """Settings of a tuned GraphSAGE."""


class TunedSAGE(SAGELayers, TunedNetwork):
    """GraphSAGE with residuals, norms and dropout, see `TunedNetwork`."""


@dataclass(frozen=True, kw_only=True)
class TunedGATSettings(TunedSettings, model="gat-tuned"):
    """Settings of a tuned GAT, whose heads share the channels."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_divides("hidden", "heads")


class TunedGAT(GATLayers, TunedNetwork):
    """GAT with residuals, norms and dropout, see `TunedNetwork`; edges are not dropped."""

    def head_sizes(self, k: int, outputs: int) -> tuple[int, int]:
        """The heads share the channels."""
        return self.settings.heads, outputs // self.settings.heads


RECORDS = printed_records(
    (MLPSettings, MLP), (GCNSettings, GCN), (ChebNetSettings, ChebNet), (GATSettings, GAT),
    (GraphSAGESettings, GraphSAGE), (SGCSettings, SGC, "-L@H"), (SmoothedSettings, Smoothed),
    (TunedGCNSettings, TunedGCN), (TunedSAGESettings, TunedSAGE), (TunedGATSettings, TunedGAT),
)  # fmt: skip
