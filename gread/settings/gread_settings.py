"""`GreadSettings`: the settings of a network around a reaction-diffusion equation."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar

from gread.settings.model_records import ModelSettings
from gread.settings.state_region import FREE as FREE_STATES
from gread.settings.state_region import SAFE, StateRegion
from rdgraph import parse
from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.language.reader import declared_names
from rdgraph.language.tree import Kind
from rdgraph.systems.single_operator import in_one_operator, terms_beyond_generator
from rdgraph.systems.system import System
from rdgraph.vocabulary.methods import FIXED, find_method
from rdgraph.vocabulary.normalisations import NORMALISATIONS, find_normalisation

# ---------------------------------------------------------------------- equation
# The equation of a network: from text or `System` to the trained `System`, parsed once.


def complete_text(reaction: str) -> str:
    """The text of an equation including the functions declared in this process, so that it can be read elsewhere."""
    return str(parse(reaction)) if any(name in reaction for name in declared_names()) else reaction


def read_equation(reaction: str | System, alpha: str, beta: str, *, has_operators: bool = False) -> System:
    """The system of a catalogue name, a text or a `System`, with alpha and beta of the given kinds.

    Raises NotApplicable for white noise, for which H(T) is random, and for operators besides A, since a network has one
    graph, unless the network defines them (`has_operators`).

    >>> print(read_equation("ST", "scalar", "channel"))
    -alpha*L@H + beta*H0 where beta channel
    >>> print(read_equation("u' = -Du*L@u + beta*v; v' = u - v", "scalar", "channel"))
    u' = -Du*L@u + beta*v; v' = u - v where beta channel
    """
    system = parse(reaction)
    if system.is_noisy:
        raise NotApplicable(
            f"expected an equation without white noise to train, got {system.text}; remove the term with xi, or draw "
            "paths with rdgraph.solve"
        )
    if not has_operators and (further := [name for name in system.operators.names if name in system.letters]):
        raise NotApplicable(
            f"expected an equation in A and L alone to train, got {system.text}, for whose {', '.join(further)} a "
            "network has no graph; write it in A and L, or run it with rdgraph.solve"
        )
    kinds, declared = {"alpha": alpha, "beta": beta}, system.coefficients
    return parse(system, {name: kind for name, kind in kinds.items() if declared.get(name, kind) != kind})


# ---------------------------------------------------------------------- gread settings
KINDS = ("scalar", "channel", "node")
LINKS = ("auto", "sigmoid", "free")
ADJACENCIES = ("original", "soft", "live")
VELOCITIES = ("zero", "encoded", "same")
#: The precision of the states of the flow: that of the parameters, or bfloat16 with half the memory.
STORAGES = FULL, HALF = ("full", "bfloat16")
#: What a block may add to its flow, see `Stack`; and the most blocks.
RESIDUALS, NORMS = ("none", "identity", "linear"), ("none", "layer", "batch")
ACTIVATIONS, SHARED = ("relu", "gelu", "tanh", "none"), ("none", "coefficients", "adjacency", "all")
MOST_BLOCKS = 128
#: The value for a method, link or region that is chosen from the equation.
AUTO = "auto"
#: The readout of every encoded state.
ALL = "all"
#: Replacements of the defaults for data without published settings: as accurate as a GCN on tables with few features,
#: and cheaper than attention.
FOR_OWN_DATA: dict[str, Any] = {"adjacency": "original", "normalisation": "row", "time": 4.0}
#: The least relative size of counted terms of the exponential series in estimates of the flow, and the most terms.
COUNTED, MOST_TERMS = 1e-7, 512


@dataclass(frozen=True)
class GreadSettings(ModelSettings, model="gread"):
    """The network: encoder, reaction-diffusion layer, decoder.

    Args:
        reaction: A name of the catalogue, or an equation in the language of rdgraph, also with several fields or of
            second order.
        alpha: The kind of the coefficient alpha: scalar, channel (one value per column of H) or node (one per node).
            The kinds of all others except beta are those of the equation: scalar unless declared otherwise.
        beta: The kind of the coefficient beta.
        alpha_link: sigmoid restricts alpha to (0, 1); free does not restrict it; auto, the choice of the GREAD authors'
            code, is the sigmoid for alpha and for scalars, else free, initialised from U(-1, 1). All coefficients
            except alpha and beta use auto, with diffusivities such as Du like alpha; a declared sign is respected.
        beta_link: The same for beta; with method auto, also the sigmoid if the slope has no bound for all states.
        adjacency: original: A from the graph, by `normalisation`; soft: attention from H(0), constant in time; live:
            attention from H(t).
        normalisation: The normalisation of A.
        self_loops: The weight of self-loops (soft, live: whether there are any).
        heads: Heads of the attention.
        attention_dim: Columns of its queries and keys, divided evenly among the heads.
        time: T; the decoder reads H(T).
        method: A method of `rdgraph.solve`, or auto to choose one from the equation.
        step: The step, for methods that have one; with auto it replaces the chosen step.
        hidden: Channels of every field, so that published settings for one field apply to each of several, as does the
            number of values of a channel coefficient; the encoder has this many columns for each encoded state.
        velocity: The initial velocities of second-order fields: zero, encoded from the features like the fields, or the
            same as their fields. Zero and same need no further parameters.
        readout: The decoded states at T: all (every encoded state, concatenated) or one field or velocity by name.
        states: The region of the states. free: no restriction. safe: a region in which a run cannot overflow. Equations
            that grow at most linearly need none; for others H(0) is mapped smoothly into a box that is proved to be
            invariant, such as [0, 1] for Fisher's, or else into [-1, 1], with dH/dt = tanh(f(H)); with poles into an
            interval between them, to which H in f(H) is clamped as well. auto: safe with method auto, else free, as
            published. Also tanh, an interval such as "[0, 1]", one for each field, "[0, 1] x [-1, 1]",
            "tanh on [0, 1]", and with the clamp "tanh within [0.25, 0.75]".
        storage: The precision of the states of the flow: full, that of the parameters, or bfloat16 with half the
            memory and sums in float32, for graphs whose states do not fit otherwise; for methods with steps or a
            polynomial.
        encoder_mlp: Whether two residual layers follow the linear encoder.
        relu: Whether a ReLU follows the flow.
        decoder_mlp: Whether the decoder has a hidden layer.
        input_dropout: The share of the features that is dropped in training.
        dropout: The share of hidden entries that is dropped, including those before the decoder.
        blocks: Blocks between encoder and decoder, each with a flow of the equation up to T. One block without the four
            next settings is GREAD as published.
        mixing: Whether every block starts with H W + b.
        residual: What is added to the result of a block: none, identity (its input), or linear (a matrix times it).
        norm: What follows: none, layer (over the channels of a node) or batch (over the nodes).
        activation: What follows between two blocks, before dropout: relu, gelu, tanh or none. After the last block
            `relu` decides.
        shared: What all blocks share: none, coefficients, adjacency (attention from the first block) or all.

    Raises:
        InvalidArgument: For sizes, shares and steps out of range.
        UnknownName: For an unknown choice.
    """

    free: ClassVar[tuple[str, ...]] = (*ModelSettings.free, "time")
    #: Settings in which members may differ as well, if `program` and `kinds` allow it.
    mixed: ClassVar[tuple[str, ...]] = ("method", "step", "alpha", "beta", "alpha_link", "beta_link")

    reaction: str = "BS"
    alpha: str = "scalar"
    beta: str = "channel"
    alpha_link: str = "auto"
    beta_link: str = "auto"
    adjacency: str = "soft"
    normalisation: str = "symmetric"
    self_loops: float = 1.0
    heads: int = 4
    attention_dim: int = 64
    time: float = 1.0
    method: str = AUTO
    step: float | None = None
    velocity: str = "zero"
    readout: str = ALL
    states: str = AUTO
    storage: str = FULL
    encoder_mlp: bool = False
    relu: bool = True
    decoder_mlp: bool = False
    dropout: float = field(default=0.4, kw_only=True)
    blocks: int = field(default=1, kw_only=True)
    mixing: bool = field(default=False, kw_only=True)
    residual: str = field(default="none", kw_only=True)
    norm: str = field(default="none", kw_only=True)
    activation: str = field(default="relu", kw_only=True)
    shared: str = field(default="none", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "reaction", complete_text(self.reaction))
        for name, known in (
            ("alpha", KINDS), ("beta", KINDS), ("alpha_link", LINKS), ("beta_link", LINKS),
            ("adjacency", ADJACENCIES), ("velocity", VELOCITIES), ("normalisation", tuple(NORMALISATIONS)),
            ("storage", STORAGES), ("residual", RESIDUALS), ("norm", NORMS), ("activation", ACTIVATIONS),
            ("shared", SHARED),
        ):  # fmt: skip
            self.check_one_of(name, known)
        if self.method != AUTO:
            find_method(self.method)
        if self.states not in (AUTO, SAFE):
            object.__setattr__(self, "states", str(StateRegion.read(self.states)))
        self.check_at_least(1, "heads", "attention_dim")
        self.check_between(1, MOST_BLOCKS, "blocks")
        self.check_at_least(0, "time", "self_loops")
        if self.step is not None and not self.step > 0:
            raise InvalidArgument(f"expected step > 0 or none, got {self.step!r}")
        if self.attention_dim % self.heads:
            raise InvalidArgument(
                f"expected an attention_dim that {self.heads} heads share evenly, got {self.attention_dim}"
            )

    @property
    def shape(self) -> Hashable:
        """What members of a batch share: settings neither free nor mixed, and the shared part of mixed ones."""
        steps = step_count(self.method, self.time, self.step) if self.method in FIXED else 1
        if not self.mixed:
            return super().shape, steps
        settings = ((f.name, getattr(self, f.name)) for f in fields(self))
        shared = tuple((name, value) for name, value in settings if name not in self.free + self.mixed)
        return self.model, shared, self.program, self.kinds

    @property
    def is_stacked(self) -> bool:
        """Whether there is more than one flow between encoder and decoder, see `gread.models.gread_model.Stack`."""
        return self.blocks > 1 or self.mixing or self.residual != "none" or self.norm != "none"

    def shares(self, part: str) -> bool:
        """Whether all blocks share their coefficients, or their adjacency.

        >>> GreadSettings(shared="all").shares("adjacency"), GreadSettings(shared="adjacency").shares("coefficients")
        (True, False)
        """
        return self.shared in (part, "all")

    @property
    def region(self) -> StateRegion:
        """The region of the initial states; free if it is not chosen yet."""
        return StateRegion.read(FREE_STATES if self.states in (AUTO, SAFE) else self.states)

    @property
    def program(self) -> Hashable:
        """The part of the integration that members of a batch must share.

        Polynomials of A differ only in their coefficients, for all methods, steps and times; steps must be of one
        method.

        >>> GreadSettings(method="rk4", step=0.5).program == GreadSettings(method="exact", time=3.0).program
        True
        """
        if self.method != AUTO and self.is_polynomial:
            return "polynomial"
        return (self.method,) if self.method in FIXED else (self.method, self.step)

    @property
    def kinds(self) -> Hashable:
        """The kinds of alpha and beta that members of a batch must share; a scalar counts as equal channels."""
        if Kind.MATRIX in self.system.letters.values():
            return self.alpha, self.beta, self.alpha_link, self.beta_link
        return tuple("node" if kind == "node" else "channel" for kind in (self.alpha, self.beta))

    @cached_property
    def is_polynomial(self) -> bool:
        """Whether H(T) is a polynomial of A: one field, linear, a normalised operator, and a suitable method."""
        record = find_method(self.method)
        if not (record.is_exact or record.is_runge_kutta or record.is_adaptive):
            return False
        if self.adjacency == "live" or self.region.is_saturated:
            return False
        normalisation = self.normalisation if self.adjacency == "original" else "row"
        if find_normalisation(normalisation).norm is None or not self.system.is_single:
            return False
        try:
            return not terms_beyond_generator(in_one_operator(self.system).system.structure)
        except NotApplicable:
            return False

    @cached_property
    def effort(self) -> int:
        """The approximate number of products with A: the truncated degree of a polynomial, else the evaluations."""
        return self.blocks * self._flow_effort

    @cached_property
    def _flow_effort(self) -> int:
        """The effort of one flow."""
        if self.method == AUTO:
            return 1
        record = find_method(self.method)
        stages = 1 if record.tableau is None else len(record.tableau.weights)
        steps = step_count(self.method, self.time, self.step) if self.method in FIXED else 0
        if not self.is_polynomial:
            return max(1, steps * stages)
        order = max((1, *self.system.structure.generator))
        counted = exponential_terms(order * self.time)
        return max(1, min(steps * stages * order, counted) if steps else counted)

    @property
    def is_padded(self) -> bool:
        """Whether short members cost as much as the longest; not for polynomials, which are computed piece by piece."""
        return self.method == AUTO or not self.is_polynomial

    @property
    def equation(self) -> Hashable:
        """The settings that determine the equation."""
        return type(self), self.reaction, self.alpha, self.beta

    @classmethod
    def of(cls, reaction: str | System, **settings: Any) -> GreadSettings:
        """The network of an equation, given as text or as a `System`.

        >>> GreadSettings.of("BS", hidden=8).reaction
        'BS'
        """
        instance = cls(reaction=str(reaction), **settings)
        if isinstance(reaction, System):
            vars(instance)["system"] = read_equation(reaction, instance.alpha, instance.beta)
        return instance

    @cached_property
    def system(self) -> System:
        """The equation, with alpha and beta of the declared kinds; parsed on first use and cached."""
        return read_equation(self.reaction, self.alpha, self.beta)

    def resolved(
        self, method: str, step: float | None, beta_link: str, region: StateRegion | None = None
    ) -> GreadSettings:
        """The settings with open choices filled in; the equation is not parsed again."""
        states = self.states if region is None else str(region)
        instance = replace(self, method=method, step=step, beta_link=beta_link, states=states)
        vars(instance)["system"] = self.system
        return instance


def step_count(method: str, time: float, step: float | None) -> int:
    """The number of steps of a method with fixed steps, the last one shortened.

    >>> step_count("euler", 1.46, 1.0)
    2
    """
    from rdgraph.run.solvers.schedules import Schedule  # imports torch, which settings alone do not need

    return Schedule.make(method, time, step).steps


def exponential_terms(z: float) -> int:
    """The number of terms of the series of exp(z) that matter relative to exp(z).

    >>> exponential_terms(0.0), exponential_terms(1.0), exponential_terms(12.0)
    (1, 11, 35)
    """
    count, term = 0, math.exp(-min(z, 500.0))
    while count < MOST_TERMS and (term > COUNTED or count < z):
        count += 1
        term *= z / count
    return count


def share_equations(models: Iterable[object]) -> None:
    """Let settings with the same equation share one parsed system, since parsing takes milliseconds."""
    known: dict[Hashable, System] = {}
    for model in models:
        if isinstance(model, GreadSettings) and model.equation not in known:
            known[model.equation] = model.system
        elif isinstance(model, GreadSettings):
            vars(model).setdefault("system", known[model.equation])
