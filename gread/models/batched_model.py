"""`BatchedModel`: networks of one shape as one module; the first axis of every parameter is the member.

Your own network is a subclass of a few lines: `build` adds parameters and operators, `states` computes the layers,
`read` returns the logits. Splits, seeds and configurations are then trained together as one CUDA graph, with
checkpoints, presets and reports, like all others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from gread.kernels import counters
from gread.kernels.linear_layers import linear, linear_heads, linear_onto
from gread.models.features import Features
from gread.models.place import Place
from gread.models.randomness import Dropper, Randomness, Rates
from gread.settings.model_records import ModelSettings, find_model
from rdgraph import Graph
from rdgraph.errors import InvalidArgument, NotApplicable


# ---------------------------------------------------------------------- batched model
class Passed(NamedTuple):
    """The result of a pass: logits (M, n, classes), and the truncation of polynomials (M,) or None."""

    logits: Tensor
    tail: Tensor | None = None


class BatchedModel(nn.Module):
    """M networks of one shape on one `Place`.

    Args:
        settings: The settings that all members share; values of `settings.free` are taken from the rates instead.
        place: The graph, see `gread.models.place.Place`.
        features: Columns of the features.
        classes: Columns of the logits.
        seeds: One per member (M,), for the initial parameters.

    Subclasses add parameters in `build` by `add_linear` and `add_parameter`, and numbers that training changes without
    a gradient, such as running means, by `add_buffer`; the first axis of all is the member.

    >>> import numpy as np, gread, rdgraph as rd
    >>> from gread.models.features import Features
    >>> class Averages(gread.models.BatchedModel):
    ...     def build(self):
    ...         self.add_linear("classifier", self.features, self.classes)
    ...         self.mean = self.place.operator("row")
    ...     def states(self, x, drop):
    ...         return [self.mean @ self.linear("classifier", drop.features(x))]
    >>> place = gread.models.Place.of(rd.generators.path(4))
    >>> networks = Averages(gread.models.ModelSettings(), place, features=3, classes=2, seeds=[0, 1, 2])
    >>> networks(Features.make(np.eye(4, 3))).shape
    torch.Size([3, 4, 2])
    """

    #: The current degree of a polynomial that may grow in training, and the full degree; 0 for most networks.
    degree: int = 0
    whole: int = 0
    #: Steps or terms between states kept for the gradient, with the others recomputed; 0 keeps all.
    segment: int = 0
    #: Whether a pass never synchronises with the host, so that a CUDA graph can record it.
    is_capturable: bool = True

    def __init__(
        self, settings: ModelSettings, place: Place, *, features: int, classes: int, seeds: Sequence[int]
    ) -> None:
        super().__init__()
        self.settings, self.place = settings, place
        self.features, self.classes, self.members = features, classes, len(seeds)
        self.seeds = torch.tensor(list(seeds), dtype=torch.int64, device=place.device)
        #: Parameters without weight decay.
        self.undecayed: set[str] = set()
        #: The number of random streams used so far, by all members or by each (M,).
        self._streams: int | Tensor = 0
        self.build()

    @classmethod
    def of_members(cls, settings: Sequence[ModelSettings], place: Place, **options: Any) -> BatchedModel:
        """The networks of a batch whose members have these settings of one shape."""
        return cls(settings[0], place, **options)

    # ------------------------------------------------------------------ to be defined by a network
    def build(self) -> None:
        """Add the parameters and operators."""
        raise NotImplementedError

    def states(self, x: Features, drop: Dropper) -> list[Tensor]:
        """The states (M, n, d_k) layer by layer, from the first, H_0, to the last; widths may differ."""
        raise NotImplementedError

    def read(self, states: list[Tensor], drop: Dropper) -> Tensor:
        """Logits (M, n, classes) from the states; by default the last of them."""
        return states[-1]

    # ------------------------------------------------------------------ passes
    def run(self, x: Features, rates: Rates | None = None, random: Randomness | None = None) -> Passed:
        """Run the networks; with rates and random numbers as in training, without them as in prediction."""
        drop = Dropper(rates, random)
        return Passed(self.read(self.states(x, drop), drop))

    def forward(self, x: Features) -> Tensor:
        """Logits (M, n, classes) without dropout."""
        return self.run(x).logits

    # ------------------------------------------------------------------ polynomials that grow
    @property
    def is_cut(self) -> bool:
        """Whether a polynomial is truncated, so that its tail must be watched."""
        return self.degree < self.whole

    def prepare(self, x: Features, rates: Rates) -> None:
        """Prepare what depends on the features and the rates, before the first pass of a training."""

    def lengthen(self, x: Features, rates: Rates, tails: Tensor) -> None:
        """Raise the degree of polynomials that are too short; `tails` (M,) is the truncation of each."""

    @property
    def member_degrees(self) -> tuple[int, ...]:
        """The degree of every member."""
        return (self.degree,) * self.members

    def take_degrees(self, degrees: Sequence[int]) -> None:
        """Continue with the degrees of members that were trained in other ensembles, or higher ones."""
        self.degree = max(degrees)

    @property
    def segments(self) -> list[int]:
        """Values of `segment` with decreasing memory; empty for networks that cannot recompute states."""
        return []

    def memory(self, x: Features) -> int | None:
        """Numbers that one member keeps for its gradient; None if unknown, in which case they are measured."""
        return None

    # ------------------------------------------------------------------ parameters
    def uniform(self, shape: tuple[int, ...], bound: float, drawing: Tensor | None = None) -> Tensor:
        """U(-bound, bound) of shape (M, *shape), every member from its own stream.

        With `drawing` (M,) only some members draw: the streams of the others do not advance, and their values are
        meaningless.
        """
        self._streams = self._streams + (1 if drawing is None else drawing.long())
        count = int(torch.tensor(shape).prod()) if shape else 1
        drawn = counters.uniform(self.seeds, counters.INITIAL + self._streams, count)
        return ((2 * drawn - 1) * bound).to(self.place.dtype).reshape(self.members, *shape)

    def normal(self, shape: tuple[int, ...], deviation: float = 1.0) -> Tensor:
        """Normal numbers of shape (M, *shape) with this standard deviation, every member from its own streams."""
        radius, angle = (self.uniform(shape, 0.5).double() + 0.5 for _ in range(2))
        drawn = (-2 * torch.log1p(-radius.clamp(max=1 - 2**-24))).sqrt() * torch.cos(2 * torch.pi * angle)
        return (deviation * drawn).to(self.place.dtype)

    def full(self, shape: tuple[int, ...], value: float) -> Tensor:
        """(M, *shape) filled with a number."""
        return torch.full((self.members, *shape), value, dtype=self.place.dtype, device=self.place.device)

    def add_parameter(self, name: str, value: Tensor, *, is_decayed: bool = True) -> None:
        """Add a parameter (M, ...) that training changes by its gradient."""
        self.register_parameter(name, nn.Parameter(value))
        if not is_decayed:
            self.undecayed.add(name)

    def add_buffer(self, name: str, value: Tensor) -> None:
        """Add numbers (M, ...) that training passes change in place, saved with the parameters."""
        self.register_buffer(name, value)

    def add_linear(self, name: str, inputs: int, outputs: int, *, bias: bool = True, start: str = "torch") -> None:
        """Add parameters of X W + b, NAME_weight (M, inputs, outputs) and NAME_bias (M, outputs).

        `start`: "torch" draws both from U(-1, 1)/sqrt(inputs) as nn.Linear does; "glorot" draws W from
        U(-1, 1) sqrt(6/(inputs + outputs)) and sets b to 0; "fan_out" draws both from U(-1, 1)/sqrt(outputs).
        """
        bounds = {"torch": inputs**-0.5, "glorot": (6 / (inputs + outputs)) ** 0.5, "fan_out": outputs**-0.5}
        if start not in bounds:
            raise InvalidArgument(f"expected a start among {', '.join(bounds)}, got {start!r}")
        self.add_parameter(f"{name}_weight", self.uniform((inputs, outputs), bounds[start]))
        if bias:
            value = self.full((outputs,), 0.0) if start == "glorot" else self.uniform((outputs,), bounds[start])
            self.add_parameter(f"{name}_bias", value)

    def times(self, name: str, x: Tensor | Features) -> Tensor:
        """x W (M, n, outputs)."""
        weight = self.get_parameter(f"{name}_weight")
        return x @ weight

    def shift(self, name: str) -> Tensor:
        """The bias b (M, 1, outputs), to be added to states."""
        return self.get_parameter(f"{name}_bias")[:, None, :]

    def linear(self, name: str, x: Tensor | Features) -> Tensor:
        """x W + b (M, n, outputs)."""
        if isinstance(x, Features):
            return self.times(name, x) + self.shift(name)
        return linear(x, self.get_parameter(f"{name}_weight"), self.get_parameter(f"{name}_bias"))

    def linear_onto(self, h: Tensor, name: str, x: Tensor) -> Tensor:
        """h + x W + b."""
        return linear_onto(h, x, self.get_parameter(f"{name}_weight"), self.get_parameter(f"{name}_bias"))

    def linear_heads(self, names: Sequence[str], x: Tensor, heads: int) -> Sequence[Tensor]:
        """x W + b of several layers with equal columns, each (M*heads, n, outputs/heads)."""
        weights, biases = ([self.get_parameter(f"{name}_{part}") for name in names] for part in ("weight", "bias"))
        return linear_heads(x, weights, biases, heads)

    @property
    def parts(self) -> dict[str, Tensor]:
        """Everything that training changes, by name: parameters and buffers."""
        return {**dict(self.named_parameters()), **dict(self.named_buffers())}

    def load_members(self, values: Mapping[str, Tensor]) -> None:
        """Copy parameters and buffers from tensors by name."""
        with torch.no_grad():
            for name, part in self.parts.items():
                part.copy_(values[name])

    def member_part(self, name: str, value: Tensor, member: int) -> Tensor:
        """The value (1, ...) of one member in a part (M, ...) by name."""
        return value[member : member + 1]

    def extra_parts(self, member: int) -> dict[str, Any]:
        """Tensors that are saved with a trained member besides its parts, such as its training nodes."""
        return {}


# ---------------------------------------------------------------------- parameter count
# The number of parameters of a network.


def count_parameters(settings: ModelSettings, graph: Graph, *, features: int, classes: int) -> int:
    """The number of parameters of one network with these settings on a graph.

    >>> from gread.settings.config import Config
    >>> count_parameters(Config.of("mlp", hidden=4).model, Graph.from_edges([[], []], 3), features=5, classes=2)
    34
    """
    place = Place.of(graph, trusted=torch.ones(1, graph.num_nodes))
    model = find_model(settings.model).network(settings, place, features=features, classes=classes, seeds=[0])
    return sum(p.numel() for p in model.parameters())


def graph_seen_by(settings: ModelSettings, graph: Graph, *, features: int, classes: int) -> Graph:
    """The graph of one network with these settings: with edges both ways where it refuses a directed graph.

    >>> from gread.settings.config import Config
    >>> one_way = Graph.from_edges([[0, 1], [1, 2]], 3)
    >>> [graph_seen_by(Config.of(name).model, one_way, features=5, classes=2).is_undirected for name in ("gcn", "gat")]
    [True, False]
    """
    if not graph.is_undirected:
        try:
            count_parameters(settings, graph, features=features, classes=classes)
        except NotApplicable:
            return graph.undirected()
    return graph
