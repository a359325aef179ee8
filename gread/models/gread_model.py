"""`GREAD`: encoder, reaction-diffusion layer, decoder, for all members of an ensemble at once.

H(0) = e(X), dH/dt = f(t, H) of any rdgraph system up to T, logits = o(H(T)). The first axis of every parameter is the
member; members do not interact. The states of several fields are concatenated in H (M, n, states*d) and share one
adjacency.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from gread.kernels.edge_attention import edge_products, edge_softmax, split_heads
from gread.models.batched_model import BatchedModel, Passed
from gread.models.features import Features
from gread.models.flow import (
    POLYNOMIAL,
    QUANTUM,
    SOLVE,
    STEPS,
    Additions,
    Flow,
    MakeField,
    bounding,
    pieces_of,
    with_finite_gradient,
)
from gread.models.mixed_coefficients import MixedCoefficient, shared_settings
from gread.models.place import Place
from gread.models.randomness import Dropper, Randomness, Rates
from gread.models.resolution import DRAWN, TRUSTED, link_of, linked, resolve_method
from gread.models.state_layout import StateLayout
from gread.settings.gread_settings import HALF, GreadSettings
from gread.settings.model_records import ModelRecord, ModelSettings
from rdgraph import lower
from rdgraph.errors import InvalidArgument
from rdgraph.graphs.eigenbasis import Eigenbasis
from rdgraph.graphs.operator import Operator
from rdgraph.graphs.twin_quotient import Quotient
from rdgraph.language.tree import Kind
from rdgraph.run import VectorField
from rdgraph.run.lowering.coefficients import valued_letters
from rdgraph.run.lowering.splines import make_controls, start_parameters
from rdgraph.run.solvers.polynomial_flow import LinearFlow, Piece, Shortcut

# ---------------------------------------------------------------------- flow memory
# The states kept for the gradient of a flow, and the segments in which it can be computed with less memory.

#: Lengths of segments to try, the longest first.
LENGTHS = (8, 4, 3, 2, 1)


def kept_states(flow: Flow, degree: int, segment: int, *, soft: bool, single: bool) -> int:
    """The number of states kept at a time for the gradient of a flow.

    Args:
        flow: The flow.
        degree: The degree of its polynomial.
        segment: The steps or terms between two kept states; 0 keeps all.
        soft: Whether the weights of A need a gradient.
        single: Whether the system has one field; polynomials of several are not divided into segments.
    """
    if flow.form == POLYNOMIAL:
        size = segment if segment and single else degree
        boundaries = 2 * (degree // size) if soft and 0 < size < degree else 0
        return min(size, degree) * (1 + soft) + boundaries
    steps = 1 if flow.schedule is None else flow.schedule.steps
    if flow.form != STEPS or not segment or segment >= steps:
        return 6 * flow.evaluations
    return 6 * flow.evaluations * segment // steps + steps // segment


def segment_lengths(flow: Flow, degree: int) -> list[int]:
    """Possible lengths of segments for the gradient, the longest first; empty if it cannot be divided."""
    whole = degree if flow.form == POLYNOMIAL else 0 if flow.schedule is None else flow.schedule.steps
    return [size for size in LENGTHS if size < whole] if flow.form != SOLVE else []


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


# ---------------------------------------------------------------------- soft adjacency
# Soft adjacency: edge weights from scaled dot products of the states, a softmax within every row.
#
# w_ij = mean over heads of softmax_j(q_i . k_j / sqrt(width)), q = H Wq + bq, k = H Wk + bk, on the edges of the graph
# and optionally on self-loops. Row i of A is normalised, so A is row-stochastic.


def soft_weights(operator: Operator, query: Tensor, key: Tensor, heads: int) -> Tensor:
    """Edge weights (M, E) on the pattern of an operator, for queries and keys (M, n, heads*width).

    If members have different graphs, stacked into one pattern, only the nonzero entries of a member count.

    >>> import torch, rdgraph as rd
    >>> path = rd.generators.path(3).operator("row")
    >>> soft_weights(path, torch.zeros(1, 3, 4), torch.zeros(1, 3, 4), 2)
    tensor([[1.0000, 0.5000, 0.5000, 1.0000]])
    """
    return head_weights(operator, split_heads(query, heads), split_heads(key, heads), heads)


def head_weights(operator: Operator, query: Tensor, key: Tensor, heads: int) -> Tensor:
    """Edge weights (M, E), averaged over the heads, for queries and keys (M*heads, n, width)."""
    rows, _, width = query.shape
    logits = edge_products(operator.pattern, query, key) * width**-0.5
    return edge_softmax(operator, logits.view(rows // heads, heads, operator.num_edges)).mean(1)


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
        """A network of this class, or a `gread.models.blocks.Stack` for settings with blocks."""
        if cls is GREAD and settings is not None and settings.is_stacked:
            from gread.models.blocks import Stack

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


RECORDS = (
    ModelRecord(
        "gread", "GREAD", "reaction-diffusion", source="Choi et al., ICML 2023", rule="dH/dt = -alpha L H + beta r(H)",
        settings=GreadSettings, network=GREAD,
    ),
)  # fmt: skip
