"""`GREAD`: encoder, reaction-diffusion layer, decoder, for all members of an ensemble at once.

H(0) = e(X), dH/dt = f(t, H) of any rdgraph system up to T, logits = o(H(T)). Every parameter has the members as its
first axis; members never touch each other. The states of several fields lie side by side in H (M, n, states*d), and
share one adjacency.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from gread.kernels import counters
from gread.kernels.linear_layers import linear
from gread.kernels.operations import dropout
from gread.models.features import Features
from gread.models.flow import Flow
from gread.models.resolution import FREE, TRUSTED, link_of, linked, resolve_method
from gread.models.soft_adjacency import soft_weights
from gread.models.state_layout import StateLayout
from gread.settings.config import Model
from rdgraph import VectorField, lower
from rdgraph.errors import InvalidArgument
from rdgraph.graphs.operator import Operator
from rdgraph.graphs.twin_quotient import Quotient
from rdgraph.lowering.coefficients import valued_letters
from rdgraph.syntax.tree import Kind

#: Where the queries and keys of the soft adjacency start: so small that the first adjacency is nearly uniform.
ATTENTION_START = 1e-5


@dataclass(frozen=True)
class Randomness:
    """Whose numbers are drawn: seeds (M,) int64, and the epoch () int64, both on the device."""

    seeds: Tensor
    step: Tensor


@dataclass(frozen=True)
class Rates:
    """Numbers that members may differ in: dropouts and times, each (M,)."""

    input_dropout: Tensor
    dropout: Tensor
    time: Tensor

    @classmethod
    def of(cls, models: Sequence[Model], device: Any = None) -> Rates:
        def column(name: str, dtype: torch.dtype = torch.float32) -> Tensor:
            return torch.tensor([getattr(m, name) for m in models], dtype=dtype, device=device)

        return cls(column("input_dropout"), column("dropout"), column("time", torch.float64))


class GREAD(nn.Module):
    """A batch of networks of one shape: encoder, reaction-diffusion, decoder; `forward` gives logits (M, n, classes).

    H(0) = e(X), dH/dt = f(t, H), logits = o(H(T)). Weights and biases of linear layers start as torch's own do.
    `config.method` is the method that is used, and `reason` says why where it was chosen ("auto"). `layout` says which
    of several states are encoded and read.

    Args:
        config: The network; one `gread.settings.config.Model` for all members.
        operator: A of the graph, with weights (E,) or (M, E); for the soft adjacency its pattern alone counts.
        features: Columns of the features.
        classes: Columns of the logits.
        seeds: One per member (M,); they decide the initial parameters.

    Raises:
        UnknownName: For a method, a reaction or a readout that is not known.
        LanguageError: For an equation that cannot be read.
        NotApplicable: For white noise and operators beside A.

    >>> import numpy as np, rdgraph as rd
    >>> op = rd.generators.path(4).operator("row", self_loops=1.0)
    >>> model = GREAD(Model(hidden=8, method="euler", step=1.0), op, features=3, classes=2, seeds=[0, 1])
    >>> model(Features.make(np.eye(4, 3))).shape
    torch.Size([2, 4, 2])
    """

    def __init__(self, config: Model, operator: Operator, *, features: int, classes: int, seeds: Sequence[int]) -> None:
        super().__init__()
        self.config, self.reason = resolve_method(config)
        self.operator, self.system = operator.prepare(), self.config.system
        self.members, self.classes = len(seeds), classes
        self.seeds = torch.tensor(list(seeds), dtype=torch.int64, device=operator.device)
        self.trusted: Tensor | None = None
        self._streams = 0
        self.layout = StateLayout.of(self.config)
        encoded, read = self.layout.encoded_width, self.layout.read_width
        self._linear("encoder", features, encoded)
        if config.encoder_mlp:
            self._linear("encoder_first", encoded, encoded)
            self._linear("encoder_second", encoded, encoded)
        if config.adjacency != "original":
            for name in ("query", "key"):
                self._linear(name, encoded, config.attention_dim, constant=ATTENTION_START)
        for name, kind in self.letters.items():
            self._coefficient(name, kind)
        if config.decoder_mlp:
            self._linear("decoder_hidden", read, read)
        self._linear("decoder", read, classes)

    # ------------------------------------------------------------------ parameters
    @property
    def letters(self) -> dict[str, Kind]:
        """The letters of the equation that need values, with their kinds: coefficients, trusted nodes, matrices."""
        return valued_letters(self.system)

    def _uniform(self, shape: tuple[int, ...], bound: float) -> Tensor:
        """U(-bound, bound), every member from its own stream."""
        self._streams += 1
        count = int(torch.tensor(shape).prod()) if shape else 1
        drawn = counters.uniform(self.seeds, counters.INITIAL + self._streams, count)
        return ((2 * drawn - 1) * bound).to(self.operator.dtype).reshape(self.members, *shape)

    def _linear(self, name: str, inputs: int, outputs: int, constant: float | None = None) -> None:
        """Parameters of X W + b, W (M, inputs, outputs), b (M, outputs), U(-1, 1)/sqrt(inputs) as in nn.Linear."""
        bound = inputs**-0.5
        weight = self._uniform((inputs, outputs), bound)
        weight = weight if constant is None else torch.full_like(weight, constant)
        self.register_parameter(f"{name}_weight", nn.Parameter(weight))
        self.register_parameter(f"{name}_bias", nn.Parameter(self._uniform((outputs,), bound)))

    def _coefficient(self, name: str, kind: Kind) -> None:
        if name == TRUSTED and kind is Kind.NODE:
            return
        d, n = self.config.hidden, self.operator.num_nodes
        shape = {Kind.SCALAR: (), Kind.CHANNEL: (d,), Kind.NODE: (n,), Kind.MATRIX: (d, d)}[kind]
        if kind is Kind.MATRIX:
            value = self._uniform(shape, d**-0.5)
        elif self.link(name, kind) == FREE:
            value = self._uniform(shape, 1.0)
        else:
            value = torch.zeros((self.members, *shape), dtype=self.operator.dtype, device=self.operator.device)
        self.register_parameter(f"coefficient_{name}", nn.Parameter(value))

    def link(self, name: str, kind: Kind) -> str:
        """sigmoid, negated sigmoid or free: how a parameter becomes a coefficient."""
        return link_of(self.config, name, kind)

    def coefficients(self) -> dict[str, Tensor]:
        """The coefficients of the equation, (M,), (M, d), (M, n) or (M, d, d)."""
        found = {}
        for name, kind in self.letters.items():
            if name == TRUSTED and kind is Kind.NODE:
                if self.trusted is None:
                    raise InvalidArgument(
                        f"expected trusted nodes for {self.system}, got none; set model.trusted (M, n)"
                    )
                found[name] = self.trusted
                continue
            found[name] = linked(self.get_parameter(f"coefficient_{name}"), self.link(name, kind))
        return found

    def _apply_linear(self, name: str, x: Tensor) -> Tensor:
        weight, bias = self.get_parameter(f"{name}_weight"), self.get_parameter(f"{name}_bias")
        return linear(x, weight, bias)

    # ------------------------------------------------------------------ the parts
    def encode(self, x: Features, rates: Rates | None = None, random: Randomness | None = None) -> Tensor:
        """H(0), (M, n, states*d); with rates and random numbers, entries are dropped as in training."""
        drop = _Dropper(rates, random)
        weight, bias = self.get_parameter("encoder_weight"), self.get_parameter("encoder_bias")
        h = drop.features(x) @ weight + bias[:, None, :]
        if self.config.encoder_mlp:
            h = drop(h)
            h = drop(h + self._apply_linear("encoder_first", torch.relu(h)))
            h = drop(h + self._apply_linear("encoder_second", torch.relu(h)))
        return self.layout.start(h)

    def couple(self, H: Tensor) -> Operator:
        """The operator that a state implies: the given one, or attention on its edges."""
        if self.config.adjacency == "original":
            return self.operator
        seen = self.layout.seen(H)
        query, key = self._apply_linear("query", seen), self._apply_linear("key", seen)
        weights = soft_weights(self.operator, query, key, self.config.heads)
        return self.operator.with_stochastic_weights(weights)

    @cached_property
    def quotient(self) -> Quotient | None:
        """The groups of nodes with the same neighbours, where A is the graph's own and they are worth it."""
        return Quotient.of(self.operator) if self.config.adjacency == "original" else None

    def field(self, H: Tensor) -> VectorField:
        """dH/dt of all members, with the operator that H implies."""
        return lower(self.system, self.couple(H), self.coefficients(), batch=(self.members,))

    def decode(self, H: Tensor, rates: Rates | None = None, random: Randomness | None = None) -> Tensor:
        """Logits (M, n, classes) of a state (M, n, states*d), from what is read out of it."""
        drop = _Dropper(rates, random, first=8)
        H = drop(self.layout.readout(H), relu=self.config.relu)
        if not self.config.decoder_mlp:
            return self._apply_linear("decoder", H)
        H = drop(H)
        H = drop(H + self._apply_linear("decoder_hidden", torch.tanh(H)))
        return drop(self._apply_linear("decoder", torch.tanh(H)))

    # ------------------------------------------------------------------ the whole
    def flow(self, H: Tensor) -> Flow:
        """How H(T) is reached; members share the number of steps."""
        c = self.config
        with torch.no_grad():
            return Flow.choose(self.field(H), c.method, c.time, c.step, c.adjacency == "live")

    def evolve(self, H0: Tensor, time: Tensor, flow: Flow, degree: int) -> tuple[Tensor, Tensor | None]:
        """H(T), and what the polynomial of every member may have left out (None where nothing is)."""
        return flow.run(self.field, H0, time, degree, quotient=self.quotient, watch=flow.is_cut(degree))

    def forward(self, x: Features) -> Tensor:
        """Logits (M, n, classes) without dropout, at the time of the configuration."""
        H0 = self.encode(x)
        time = torch.full((self.members,), self.config.time, dtype=torch.float64, device=H0.device)
        flow = self.flow(H0)
        return self.decode(self.evolve(H0, time, flow, flow.degree(self.field(H0), H0, time))[0])

    def load_members(self, values: Mapping[str, Tensor]) -> None:
        """Copy parameters from tensors by name."""
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                parameter.copy_(values[name])


class _Dropper:
    """Dropout with a stream of its own at every place of the network; the identity without random numbers."""

    def __init__(self, rates: Rates | None, random: Randomness | None, first: int = 0) -> None:
        self.rates, self.random, self.place = rates, random, counters.DROPOUT + first

    def features(self, x: Features) -> Features:
        if self.rates is None or self.random is None:
            return x
        self.place += 1
        return x.dropped(self.random.seeds, self.random.step, self.rates.input_dropout, self.place)

    def __call__(self, x: Tensor, relu: bool = False) -> Tensor:
        if self.rates is None or self.random is None:
            return functional.relu(x) if relu else x
        self.place += 1
        return dropout(x, self.random.seeds, self.random.step, self.rates.dropout, self.place, relu=relu)
