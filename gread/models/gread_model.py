"""`GREAD`: encoder, reaction-diffusion layer, decoder, for all members of an ensemble at once.

H(0) = e(X), dH/dt = f(t, H) of any rdgraph system up to T, logits = o(H(T)). The first axis of every parameter is the
member; members do not interact. The states of several fields are concatenated in H (M, n, states*d) and share one
adjacency.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from gread.kernels.edge_attention import head_weights
from gread.models.batched_model import BatchedModel, Passed
from gread.models.features import Features
from gread.models.flow import (
    QUANTUM,
    Additions,
    Flow,
    MakeField,
    bounding,
    kept_states,
    pieces_of,
    segment_lengths,
    with_finite_gradient,
)
from gread.models.mixed_coefficients import MixedCoefficient, shared_settings
from gread.models.norms import BatchNorm, LayerNorm
from gread.models.place import Place
from gread.models.randomness import Dropper, Randomness, Rates
from gread.models.resolution import DRAWN, TRUSTED, link_of, linked, resolve_method
from gread.models.state_layout import StateLayout
from gread.settings.gread_settings import HALF, GreadSettings
from gread.settings.model_records import ModelRecord, ModelSettings
from rdgraph import lower
from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.graphs.eigenbasis import Eigenbasis
from rdgraph.graphs.operator import Operator
from rdgraph.graphs.twin_quotient import Quotient
from rdgraph.language.tree import Kind
from rdgraph.run import VectorField
from rdgraph.run.lowering.coefficients import valued_letters
from rdgraph.run.lowering.splines import make_controls, start_parameters
from rdgraph.run.solvers.polynomial_flow import LinearFlow, Piece, Shortcut

# ---------------------------------------------------------------------- place operator
# The operator A of a place for the settings of a network around an equation.


def storage_dtype(place: Place, config: GreadSettings) -> torch.dtype:
    """The precision of the states of the flow and of the operator.

    >>> from rdgraph import generators
    >>> storage_dtype(Place.of(generators.path(3)), GreadSettings(storage="bfloat16"))
    torch.bfloat16
    """
    return torch.bfloat16 if config.storage == HALF else place.dtype


def make_operator(place: Place, config: GreadSettings) -> Operator:
    """The operator A of a network; for attention only its entries matter, including self-loops."""
    place = replace(place, dtype=storage_dtype(place, config))
    if config.adjacency == "original":
        return place.operator(config.normalisation, config.self_loops)
    return place.operator("row", float(config.self_loops > 0))


# ---------------------------------------------------------------------- gread model
#: Initial weights of the queries and keys, so small that the first adjacency is nearly uniform.
ATTENTION_START = 1e-5
#: The name under which the training nodes of an equation with trusted sources are saved.
TRUSTED_NODES = "trusted"
#: The number of the first dropout of the decoder, independent of those of the encoder.
DECODER_DROPOUT = 8
#: The number of the first dropout between steps.
STEP_DROPOUT = 16


class GREAD(BatchedModel):
    """A batch of networks of one shape: encoder, reaction-diffusion, decoder; `forward` gives logits (M, n, classes).

    H(0) = e(X), dH/dt = f(t, H), logits = o(H(T)). Linear layers are initialised as in torch. `config.method` is the
    method that is used, and `reason` says why it was chosen if it was "auto". `layout` says which of several states are
    encoded and read.

    Args:
        settings: The network; one `gread.settings.gread_settings.GreadSettings` for all members.
        each: The settings of every member, if they differ in what members of one shape may differ in: methods, steps,
            times, and whether a coefficient is one number or one per channel. `config` then has room for all of them.
        place: The graph, from which the settings define A; for the soft adjacency only its entries matter.
        features: Columns of the features.
        classes: Columns of the logits.
        seeds: One per member (M,), for the initial parameters.

    Raises:
        UnknownName: For an unknown method, reaction or readout.
        LanguageError: For an equation that cannot be read.
        NotApplicable: For white noise and operators besides A.

    >>> import numpy as np, gread, rdgraph as rd
    >>> from gread.models.features import Features
    >>> from gread.settings.gread_settings import GreadSettings
    >>> place = gread.models.Place.of(rd.generators.path(4))
    >>> settings = GreadSettings(hidden=8, method="euler", step=1.0)
    >>> model = gread.models.GREAD(settings, place, features=3, classes=2, seeds=[0, 1])
    >>> model(Features.make(np.eye(4, 3))).shape
    torch.Size([2, 4, 2])
    """

    def __new__(cls, settings: GreadSettings | None = None, *_: Any, **__: Any) -> GREAD:
        """A network of this class, or a `Stack` for settings with blocks."""
        if cls is GREAD and settings is not None and settings.is_stacked:
            return super().__new__(Stack)
        return super().__new__(cls)

    def __init__(
        self,
        settings: GreadSettings,
        place: Place,
        *,
        features: int,
        classes: int,
        seeds: Sequence[int],
        each: Sequence[GreadSettings] | None = None,
    ) -> None:
        self._flow: Flow | None = None
        self._degrees: list[int] = []
        self._mixed: dict[str, MixedCoefficient] = {}
        config, reason = resolve_method(settings)
        #: The settings of the members.
        self.each = (config,) * len(seeds) if each is None else tuple(resolve_method(one)[0] for one in each)
        self.config: GreadSettings = shared_settings(self.each)
        config = self.config
        super().__init__(config, place, features=features, classes=classes, seeds=seeds)
        self.reason = reason

    @classmethod
    def of_members(cls, settings: Sequence[ModelSettings], place: Place, **options: Any) -> BatchedModel:
        """The networks of a batch whose members have these settings."""
        return cls(settings[0], place, each=settings, **options)  # type: ignore[arg-type]

    def build(self) -> None:
        """Add the encoder, what the flow needs, and the decoder."""
        config = self.config
        #: The precision of the states of the flow.
        self.storage = storage_dtype(self.place, config)
        self.operator, self.system = make_operator(self.place, config), config.system
        self.layout = StateLayout.of(config)
        encoded = self.layout.encoded_width
        self.add_encoder(encoded)
        if config.encoder_mlp:
            self.add_linear("encoder_first", encoded, encoded)
            self.add_linear("encoder_second", encoded, encoded)
        self.add_flows()
        self.add_decoder(self.layout.read_width)

    def add_attention(self) -> None:
        """Add queries and keys, if A is attention."""
        if self.config.adjacency != "original":
            for name in ("query", "key"):
                self.add_linear(name, self.layout.encoded_width, self.config.attention_dim)
                with torch.no_grad():
                    self.get_parameter(f"{name}_weight").fill_(ATTENTION_START)

    # ------------------------------------------------------------------ parts that subclasses change
    def add_flows(self) -> None:
        """Add queries and keys of the attention, and the coefficients."""
        self.add_attention()
        self.add_coefficients()

    def add_encoder(self, columns: int) -> None:
        """Add the linear encoder from the features to `columns` columns."""
        self.add_linear("encoder", self.features, columns)

    def add_coefficients(self) -> None:
        """Add parameters for the coefficients of the equation."""
        for name, kind in self.coefficient_kinds.items():
            self._add_coefficient(name, kind)
        for name, declared in self.system.learned.items():
            start = torch.as_tensor(start_parameters(declared), dtype=self.place.dtype, device=self.place.device)
            shape = (self.config.hidden,) * declared.per_channel + (declared.parameters,)
            is_decayed = declared.monotone is None
            self.add_parameter(f"coefficient_{name}", self.full(shape, 0.0) + start, is_decayed=is_decayed)

    def add_decoder(self, columns: int) -> None:
        """Add the decoder from `columns` columns to the classes, with a hidden layer if the settings ask for it."""
        if self.config.decoder_mlp:
            self.add_linear("decoder_hidden", columns, columns)
        self.add_linear("decoder", columns, self.classes)

    def first(self, x: Features, drop: Dropper) -> Tensor:
        """The output of the linear encoder."""
        return self.linear("encoder", drop.features(x))

    def begin(self, encoded: Tensor, drop: Dropper) -> Tensor:
        """All initial states, (M, n, states*d), from the encoded ones."""
        return self.layout.start(encoded)

    def readout(self, H: Tensor) -> Tensor:
        """The columns of a state that the decoder reads."""
        return self.layout.readout(H)

    def additions(self, H0: Tensor, drop: Dropper) -> Additions:
        """What the network adds to the equation during the flow, such as clamped states."""
        return bounding(self.config, self.layout)

    # ------------------------------------------------------------------ parameters
    @property
    def coefficient_kinds(self) -> dict[str, Kind]:
        """The names in the equation that need values, with their kinds: coefficients, trusted nodes, matrices."""
        return valued_letters(self.system)

    @staticmethod
    def nodes_of(config: Any, parameters: Mapping[str, Tensor]) -> int:
        """The number of nodes of the graph of these parameters; 1 if they fit any graph."""
        trusted, kinds = parameters.get(TRUSTED_NODES), config.system.coefficients
        sizes = (p.shape[-1] for k, p in parameters.items() if kinds.get(k.rpartition("coefficient_")[2]) == "node")
        return next(sizes, 1 if trusted is None else int(trusted.shape[-1]))

    @property
    def trusted(self) -> Tensor | None:
        """The training nodes (M, n), if the equation uses them."""
        return self.place.trusted if self.coefficient_kinds.get(TRUSTED) is Kind.NODE else None

    def _add_coefficient(self, name: str, kind: Kind) -> None:
        if name == TRUSTED and kind is Kind.NODE:
            return
        d, n = self.config.hidden, self.place.nodes
        shape = {Kind.SCALAR: (), Kind.CHANNEL: (d,), Kind.NODE: (n,), Kind.MATRIX: (d, d)}[kind]
        if self.config.mixed and (mixed := MixedCoefficient.of(name, kind, self.each, self.place.device)) is not None:
            self._mixed[name] = mixed
            value = mixed.start(self.uniform(shape, 1.0, mixed.is_free))
        elif kind is Kind.MATRIX:
            value = self.uniform(shape, d**-0.5)
        elif self.link(name, kind) in DRAWN:
            value = self.uniform(shape, 1.0)
        else:
            value = self.full(shape, 0.0)
        self.add_parameter(f"coefficient_{name}", value)

    def link(self, name: str, kind: Kind) -> str:
        """How a parameter becomes a coefficient: sigmoid, negated sigmoid or free."""
        return link_of(self.config, name, kind)

    def coefficients(self) -> dict[str, Tensor]:
        """The coefficients of the equation, (M,), (M, d), (M, n) or (M, d, d), and controls of learned functions."""
        values = {}
        for name, kind in self.coefficient_kinds.items():
            if name == TRUSTED and kind is Kind.NODE:
                if self.trusted is None:
                    raise InvalidArgument(
                        f"expected trusted nodes for {self.system}, got none; pass Place(..., trusted=...) of (M, n)"
                    )
                values[name] = self.trusted
                continue
            values[name] = self.coefficient(name, kind)
        for name, declared in self.system.learned.items():
            values[name] = make_controls(declared, self.get_parameter(f"coefficient_{name}"))
        return {name: self.apart_from_poles(value) for name, value in values.items()}

    def coefficient(self, name: str, kind: Kind) -> Tensor:
        """The values of one coefficient, from its parameter."""
        if name in self._mixed:
            return self._mixed[name].values(self.get_parameter(f"coefficient_{name}"))
        return linked(self.get_parameter(f"coefficient_{name}"), self.link(name, kind))

    def apart_from_poles(self, x: Tensor) -> Tensor:
        """A value used by the equation; for equations with poles, its gradient is kept finite."""
        return with_finite_gradient(x) if self.config.region.is_clamped else x

    def member_part(self, name: str, value: Tensor, member: int) -> Tensor:
        """The value of one member in a part of all members."""
        mixed = self._mixed.get(name.removeprefix("coefficient_"))
        return super().member_part(name, value, member) if mixed is None else mixed.of_member(value, member)

    def extra_parts(self, member: int) -> dict[str, Any]:
        """The training nodes of a member, if the equation uses them."""
        return {} if self.trusted is None else {TRUSTED_NODES: self.trusted[member : member + 1]}

    # ------------------------------------------------------------------ the parts
    def encode(self, x: Features, rates: Rates | None = None, random: Randomness | None = None) -> Tensor:
        """H(0), (M, n, states*d); rates and random numbers drop entries as in training."""
        drop = Dropper(rates, random)
        h = self.first(x, drop)
        if self.config.encoder_mlp:
            h = drop(h)
            h = drop(self.linear_onto(h, "encoder_first", torch.relu(h)))
            h = drop(self.linear_onto(h, "encoder_second", torch.relu(h)))
        return self.begin(h, drop).to(self.storage)

    def couple(self, H: Tensor) -> Operator:
        """The operator A for a state: the given one, or attention on its edges."""
        if self.config.adjacency == "original":
            return self.operator
        seen = self.layout.seen(H).to(self.place.dtype)
        query, key = self.linear_heads(("query", "key"), seen, self.config.heads)
        weights = head_weights(self.operator, query, key, self.config.heads)
        return self.operator.with_stochastic_weights(self.apart_from_poles(weights.to(self.storage)))

    @cached_property
    def shortcut(self) -> Shortcut | None:
        """A cheaper form of a fixed A: its eigenvectors on a GPU if it is small, else the quotient by twin nodes."""
        if self.config.adjacency != "original":
            return None
        small = Eigenbasis.of(self.operator) if self.operator.device.type == "cuda" else None
        return small or Quotient.of(self.operator)

    @property
    def further_operators(self) -> dict[str, Operator]:
        """The operators besides A that the equation names, by name; none unless a network defines some."""
        return {}

    def field(self, H: Tensor) -> VectorField:
        """dH/dt of all members, with the operator A for H."""
        return self.field_on(self.couple(H))

    def field_on(self, operator: Operator) -> VectorField:
        """dH/dt of all members, with this operator A."""
        values = self.coefficients()
        return lower(self.system, operator, values, batch=(self.members,), operators=self.further_operators)

    def decode(self, H: Tensor, rates: Rates | None = None, random: Randomness | None = None) -> Tensor:
        """Logits (M, n, classes) of a state (M, n, states*d)."""
        drop = Dropper(rates, random, first=DECODER_DROPOUT)
        H = drop(self.readout(H.to(self.place.dtype)), relu=self.config.relu)
        if not self.config.decoder_mlp:
            return self.linear("decoder", H)
        H = drop(H)
        H = drop(self.linear_onto(H, "decoder_hidden", torch.tanh(H)))
        return drop(self.linear("decoder", torch.tanh(H)))

    # ------------------------------------------------------------------ the whole
    def flow(self, H: Tensor) -> Flow:
        """The flow from H to H(T), with each member's method, time and step."""
        integrations = [(one.method, one.time, one.step) for one in self.each]
        with torch.no_grad():
            added = self.additions(H, Dropper())
            return Flow.choose_each(self.field(H), integrations, self.config.adjacency == "live", added)

    def evolve(
        self, H0: Tensor, time: Tensor, flow: Flow, degree: int, drop: Dropper | None = None,
        pieces: Sequence[Piece] = (), make_field: MakeField | None = None,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        """H(T), and a bound on the truncation of every member's polynomial (None without truncation)."""
        added = self.additions(H0, drop or Dropper())
        watch, H0 = flow.is_cut(degree), self.apart_from_poles(H0)
        return flow.run(
            make_field or self.field, H0, time, degree, shortcut=self.shortcut, watch=watch, added=added, pieces=pieces,
            segment=self.segment,
        )  # fmt: skip

    def through(
        self, encoded: Tensor, time: Tensor, flow: Flow, degree: int, drop: Dropper, pieces: Sequence[Piece] = ()
    ) -> tuple[Tensor, Tensor | None]:
        """What the decoder is given, from the output of `encode`: H(T); and the truncation as in `evolve`."""
        return self.evolve(encoded, time, flow, degree, drop, pieces)

    def opening(self, encoded: Tensor) -> Tensor:
        """The state at which the first flow starts, from the output of `encode`."""
        return encoded

    def needed_degrees(self, flow: Flow, start: Tensor, time: Tensor) -> list[int]:
        """The degree that every member's polynomial needs now; empty if all are whole."""
        return flow.degrees(self.field(start), start, time)

    def prepare(self, x: Features, rates: Rates) -> None:
        """Choose the flow and the degrees of its polynomials."""
        with torch.no_grad():
            start = self.opening(self.encode(x))
            self._flow = self.flow(start)
            self._degrees = self.needed_degrees(self._flow, start, rates["time"])
        self.degree = max(self._degrees, default=self._flow.whole)
        self.whole, self.is_capturable = self._flow.whole, self._flow.is_capturable

    def lengthen(self, x: Features, rates: Rates, tails: Tensor) -> None:
        """Raise the degree of the polynomials by half, or to what the current coefficients need."""
        flow = self.chosen_flow
        with torch.no_grad():
            needed = self.needed_degrees(flow, self.opening(self.encode(x)), rates["time"])
        lacking = max((count - degree for count, degree in zip(needed, self.member_degrees, strict=True)), default=0)
        self.degree = min(flow.whole, self.degree + max(4, self.degree // 2, lacking))

    @property
    def member_degrees(self) -> tuple[int, ...]:
        """The degree of every member: the initial one plus the common increase since."""
        if not self._degrees:
            return (self.degree,) * self.members
        raised = self.degree - max(self._degrees)
        return tuple(min(self.degree, start + raised) for start in self._degrees)

    def pieces(self) -> Sequence[Piece]:
        """Members with similar degrees, whose polynomials are computed together; empty if all are one piece."""
        if not self.system.is_single:
            return ()
        is_ragged = LinearFlow.takes_ragged(self.operator.device, self.shortcut, self.segment)
        return pieces_of(self.member_degrees, 1 if is_ragged else QUANTUM)

    def take_degrees(self, degrees: Sequence[int]) -> None:
        """Continue with the degrees of members that were trained in other ensembles, or higher ones."""
        most = max(self._degrees, default=self.degree)
        raised = max((degree - start for degree, start in zip(degrees, self._degrees, strict=False)), default=0)
        self.degree = min(self.whole, most + max(0, raised))

    @property
    def chosen_flow(self) -> Flow:
        """The flow that `prepare` chose."""
        if self._flow is None:
            raise InvalidArgument("expected a network that was prepared; call prepare first")
        return self._flow

    def run(self, x: Features, rates: Rates | None = None, random: Randomness | None = None) -> Passed:
        """Encode, evolve, decode; up to the times of the rates, or that of the configuration."""
        if rates is None:
            return Passed(self._predict(x))
        drop = Dropper(rates, random, first=STEP_DROPOUT)
        start = self.encode(x, rates, random)
        H, tail = self.through(start, rates["time"], self.chosen_flow, self.degree, drop, self.pieces())
        return Passed(self.decode(H, rates, random), tail)

    def _predict(self, x: Features) -> Tensor:
        encoded = self.encode(x)
        time, flow, degree = self.whole_flow(encoded)
        return self.decode(self.through(encoded, time, flow, degree, Dropper())[0])

    def whole_flow(self, encoded: Tensor) -> tuple[Tensor, Flow, int]:
        """The times of the members (M,), the flow and the degree for a prediction."""
        time = torch.tensor([one.time for one in self.each], dtype=torch.float64, device=encoded.device)
        start = self.opening(encoded)
        flow = self.flow(start)
        return time, flow, max(self.needed_degrees(flow, start, time), default=flow.whole)

    def states(self, x: Features, drop: Dropper) -> list[Tensor]:
        """H at every step, or at ten evenly spaced times if the method has no steps."""
        H0 = self.encode(x, drop.rates, drop.random)
        flow = self.flow(H0)
        steps = flow.schedule.steps if flow.schedule is not None and self.config.step is not None else 10
        times = torch.linspace(0.0, self.config.time, steps + 1, dtype=torch.float64)
        added = self.additions(H0, Dropper(drop.rates, drop.random, first=STEP_DROPOUT))
        return list(flow.states(self.field, H0, self.config.time, times, added))

    def memory(self, x: Features) -> int:
        """Numbers that one member keeps for its gradient."""
        config, flow = self.config, self.chosen_flow
        state = self.place.nodes * config.hidden * len(self.layout.fields)
        soft = config.adjacency != "original"
        states = kept_states(flow, self.degree, self.segment, soft=soft, single=self.system.is_single)
        count = 12 + states * self.storage.itemsize // self.place.dtype.itemsize
        count += 8 * config.encoder_mlp + 6 * config.decoder_mlp
        count += max((2 * (f.knots + 8) for f in self.system.learned.values()), default=0)  # sums over pieces
        edges = self.operator.num_edges * (4 * config.heads + 4) if soft else 0
        return state * count + edges + x.values[0].numel() * 2 + self.place.nodes * self.classes * 8

    @property
    def segments(self) -> list[int]:
        """Possible lengths of segments for the gradient, the longest first; empty if it cannot be divided."""
        return segment_lengths(self.chosen_flow, self.degree)


# ---------------------------------------------------------------------- blocks
# GREAD with several blocks between encoder and decoder, each with a flow of the equation.
#
# A block computes h -> norm(flow(h W + b) + residual); between blocks follow an activation and dropout.

#: The distance between the first random streams of two blocks, for their initial parameters.
STREAMS = 256
#: The activations by name.
CURVES: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu, "gelu": functional.gelu, "tanh": torch.tanh, "none": lambda x: x
}  # fmt: skip
#: States that the norm, the residual and the activation of a block keep for their gradients.
KEPT_BY_BLOCK = 6


class Block(GREAD):
    """The parameters of one block of a stack: mixing, attention, coefficients, residual and norm.

    It has no encoder and decoder of its own. What all blocks share belongs to the first.

    Args:
        stack: The stack, whose operator and layout the block uses.
        number: Its place in the stack, from 0.
        first: The first block, for the others.
    """

    def __init__(self, stack: Stack, number: int, first: Block | None = None) -> None:
        self.number, self.operator, self.layout, self.storage = number, stack.operator, stack.layout, stack.storage
        # In a tuple, since a module that is an attribute would be registered here as well.
        self._first = () if first is None else (first,)
        width = stack.layout.encoded_width
        super().__init__(
            stack.config, stack.place, features=width, classes=width, seeds=stack.seeds.tolist(), each=stack.each
        )

    def build(self) -> None:
        """Add the parameters of the block."""
        config, width = self.config, self.layout.encoded_width
        self.system = config.system
        self._streams = STREAMS * (self.number + 1)
        if config.mixing:
            self.add_linear("mixing", width, width)
        if not self._lender("adjacency"):
            self.add_attention()
        if not self._lender("coefficients"):
            self.add_coefficients()
        if config.residual == "linear":
            self.add_linear("residual", width, width)
        self.norm: LayerNorm | BatchNorm | None = None
        if config.norm != "none":
            self.norm = (LayerNorm if config.norm == "layer" else BatchNorm)(self, "norm", width)

    def _lender(self, part: str) -> tuple[Block, ...]:
        """The first block, if this one uses its coefficients or adjacency."""
        return self._first if self.config.shares(part) else ()

    def coefficients(self) -> dict[str, Tensor]:
        """The coefficients of the flow of this block."""
        for first in self._lender("coefficients"):
            return first.coefficients()
        return super().coefficients()

    def couple(self, H: Tensor) -> Operator:
        """The operator A of this block for a state."""
        for first in self._lender("adjacency"):
            return first.couple(H)
        return super().couple(H)

    # ------------------------------------------------------------------ what surrounds the flow
    def mixed(self, h: Tensor) -> Tensor:
        """The encoded columns at which the flow starts."""
        return self.linear("mixing", h) if self.config.mixing else h

    def finished(self, result: Tensor, h: Tensor, is_training: bool) -> Tensor:
        """The output of the block, from the result of the flow and the input h of the block."""
        if self.config.residual == "identity":
            result = result + h
        elif self.config.residual == "linear":
            result = self.linear_onto(result, "residual", h)
        if isinstance(self.norm, BatchNorm):
            return self.norm(self, result, is_training)
        return result if self.norm is None else self.norm(self, result)


class Stack(GREAD):
    """GREAD in blocks; `forward` gives logits (M, n, classes).

    H_0 = e(X), H_k = norm(Phi_k(H_(k-1) W_k + b_k) + residual), Phi_k the flow of the equation up to T with the
    coefficients and the operator of block k, logits = o(H_K). For several fields the encoded states pass from block to
    block; velocities start as in GREAD in every block. With polynomials all blocks have the highest degree that one of
    them needs.

    Raises:
        NotApplicable: For a readout that is not encoded, which no block passes on.

    >>> import numpy as np, gread, rdgraph as rd
    >>> from gread.models.features import Features
    >>> from gread.settings.gread_settings import GreadSettings
    >>> place = gread.models.Place.of(rd.generators.path(4))
    >>> settings = GreadSettings(hidden=8, adjacency="original", blocks=3, mixing=True, norm="layer")
    >>> model = gread.models.GREAD(settings, place, features=3, classes=2, seeds=[0, 1])
    >>> type(model).__name__, model(Features.make(np.eye(4, 3))).shape
    ('Stack', torch.Size([2, 4, 2]))
    """

    def add_flows(self) -> None:
        """Add the blocks."""
        if missing := set(self.layout.read) - set(self.layout.encoded):
            raise NotApplicable(
                f"expected a readout that the blocks pass on, got {min(missing)}, which is not encoded; set "
                "velocity=encoded, or readout=all"
            )
        blocks = [Block(self, 0)]
        blocks += [Block(self, number, blocks[0]) for number in range(1, self.config.blocks)]
        self.blocks = nn.ModuleList(blocks)
        self.undecayed |= {f"blocks.{block.number}.{name}" for block in blocks for name in block.undecayed}

    def block(self, number: int) -> Block:
        """One of the blocks, counted from 0."""
        block = self.blocks[number]
        assert isinstance(block, Block)
        return block

    def member_part(self, name: str, value: Tensor, member: int) -> Tensor:
        """The value of one member in a part of all members."""
        if not name.startswith("blocks."):
            return super().member_part(name, value, member)
        _, number, part = name.split(".", 2)
        return self.block(int(number)).member_part(part, value, member)

    def coefficients(self) -> dict[str, Tensor]:
        """The coefficients of all blocks, by name and block such as alpha[1]; of the first only if they are shared."""
        if self.config.shares("coefficients"):
            return self.block(0).coefficients()
        return {
            f"{name}[{number + 1}]": value
            for number in range(self.config.blocks)
            for name, value in self.block(number).coefficients().items()
        }

    # ------------------------------------------------------------------ the flow
    def couple(self, H: Tensor) -> Operator:
        """The operator A of the first block for a state."""
        return self.block(0).couple(H)

    def field_on(self, operator: Operator) -> VectorField:
        """dH/dt in the first block, with this operator A."""
        return self.block(0).field_on(operator)

    def begin(self, encoded: Tensor, drop: Dropper) -> Tensor:
        """The encoded columns (M, n, encoded*d), which the first block takes."""
        return encoded

    def opening(self, encoded: Tensor) -> Tensor:
        """The state at which the flow of the first block starts."""
        return self._start(self.block(0), encoded)

    def _start(self, block: Block, h: Tensor) -> Tensor:
        return self.layout.start(block.mixed(h.to(self.place.dtype))).to(self.storage)

    def readout(self, H: Tensor) -> Tensor:
        """The encoded columns that the decoder reads."""
        return self.layout.read_encoded(H)

    def needed_degrees(self, flow: Flow, start: Tensor, time: Tensor) -> list[int]:
        """The degree that every member's polynomials need, in the block that needs most."""
        count = 1 if self.config.shares("coefficients") else self.config.blocks
        operator = self.couple(start)
        needed = [flow.degrees(self.block(k).field_on(operator), start, time) for k in range(count)]
        return [max(each) for each in zip(*needed, strict=True)]

    def through(
        self, encoded: Tensor, time: Tensor, flow: Flow, degree: int, drop: Dropper, pieces: Sequence[Piece] = ()
    ) -> tuple[Tensor, Tensor | None]:
        """The output of the last block (M, n, encoded*d), and the largest truncation of a block's polynomial."""
        states, tail = self._outputs(encoded, time, flow, degree, drop, pieces)
        return states[-1], tail

    def _outputs(
        self, encoded: Tensor, time: Tensor, flow: Flow, degree: int, drop: Dropper, pieces: Sequence[Piece] = ()
    ) -> tuple[list[Tensor], Tensor | None]:
        """The input of the first block and the output of every block; and the truncation as in `through`."""
        h, tail = encoded.to(self.place.dtype), None
        states, operator = [h], None
        for number in range(self.config.blocks):
            block = self.block(number)
            if number:
                h = self._activated(h, drop)
            start = self._start(block, h)
            if number == 0 and self.config.adjacency == "soft" and self.config.shares("adjacency"):
                operator = block.couple(start)
            make_field = block.field if operator is None else _fixed(block, operator)
            H, cut = self.evolve(start, time, flow, degree, drop, pieces, make_field)
            tail = cut if tail is None or cut is None else torch.maximum(tail, cut)
            h = block.finished(self.layout.seen(H).to(self.place.dtype), h, drop.is_training)
            states.append(h)
        return states, tail

    def _activated(self, h: Tensor, drop: Dropper) -> Tensor:
        if self.config.activation == "relu":
            return drop(h, relu=True)  # in one kernel with dropout
        return drop(CURVES[self.config.activation](h))

    def states(self, x: Features, drop: Dropper) -> list[Tensor]:
        """The input of the first block and the output of every block."""
        encoded = self.encode(x, drop.rates, drop.random)
        time, flow, degree = self.whole_flow(encoded)
        return self._outputs(encoded, time, flow, degree, Dropper(drop.rates, drop.random, first=STEP_DROPOUT))[0]

    def memory(self, x: Features) -> int:
        """Numbers that one member keeps for its gradient."""
        width = self.place.nodes * self.layout.encoded_width
        ends = x.values[0].numel() * 2 + self.place.nodes * self.classes * 8
        return ends + self.config.blocks * (super().memory(x) - ends + KEPT_BY_BLOCK * width)


def _fixed(block: Block, operator: Operator) -> Callable[[Tensor], VectorField]:
    """The field of a block whose operator is given."""
    return lambda H: block.field_on(operator)


RECORDS = (
    ModelRecord(
        "gread", "GREAD", "reaction-diffusion", source="Choi et al., ICML 2023", rule="dH/dt = -alpha L H + beta r(H)",
        settings=GreadSettings, network=GREAD,
    ),
)  # fmt: skip
