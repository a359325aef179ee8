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
# The equation of a network: text or `System` to the `System` that is trained, read once.


def lasting_text(reaction: str) -> str:
    """The text of an equation that reads to the same one elsewhere: with the learned functions declared here."""
    return str(parse(reaction)) if any(name in reaction for name in declared_names()) else reaction


def read_equation(reaction: str | System, alpha: str, beta: str, *, has_beside: bool = False) -> System:
    """The system of a catalogue name, a text or a `System`, with alpha and beta of the kinds asked for.

    Raises NotApplicable for white noise, under which there is no one H(T) to read classes from, and for operators
    beside A, since a network has one graph, unless it says what they are on it (`has_beside`).

    >>> print(read_equation("ST", "scalar", "channel"))
    -alpha*L@H + beta*H0 where beta channel
    >>> print(read_equation("u' = -Du*L@u + beta*v; v' = u - v", "scalar", "channel"))
    u' = -Du*L@u + beta*v; v' = u - v where beta channel
    """
    system = parse(reaction)
    if system.is_noisy:
        raise NotApplicable(
            f"expected an equation without white noise to train, got {system.text}; leave out the term of xi, or draw "
            "paths with rdgraph.solve"
        )
    if not has_beside and (further := [name for name in system.operators.names if name in system.letters]):
        raise NotApplicable(
            f"expected an equation in A and L alone to train, got {system.text}, for whose {', '.join(further)} a "
            "network has no graph; write it in A and L, or run it with rdgraph.solve"
        )
    asked = {"alpha": alpha, "beta": beta}
    letters = system.coefficients
    return parse(system, {name: kind for name, kind in asked.items() if letters.get(name, kind) != kind})


# ---------------------------------------------------------------------- gread settings
KINDS = ("scalar", "channel", "node")
LINKS = ("auto", "sigmoid", "free")
ADJACENCIES = ("original", "soft", "live")
VELOCITIES = ("zero", "encoded", "same")
#: How the states of the flow are kept: as the parameters are, or in half the memory.
STORAGES = FULL, HALF = ("full", "bfloat16")
#: The method that stands for the one that follows from the equation.
AUTO = "auto"
#: The readout that stands for every encoded state.
ALL = "all"
#: What a network for data without published settings has in place of the defaults here: as accurate as a GCN on tables
#: of few features, and cheaper than attention.
FOR_OWN_DATA: dict[str, Any] = {"adjacency": "original", "normalisation": "row", "time": 4.0}
#: Terms of the exponential that are larger than this share of it count, where the length of a flow is reckoned; and
#: the most that are reckoned with.
COUNTED, MOST_TERMS = 1e-7, 512


@dataclass(frozen=True)
class GreadSettings(ModelSettings):
    """The network: encoder, reaction-diffusion layer, decoder.

    Args:
        reaction: A name of the catalogue, or an equation in the language of rdgraph, also one for each of several
            fields or of second order.
        alpha: The kind of the coefficient alpha: scalar, channel (one value per column of H) or node (one per node).
            The kinds of all others but beta are those of the equation: scalar unless it declares another.
        beta: The kind of the coefficient beta.
        alpha_link: sigmoid keeps alpha in (0, 1); free leaves it as it is; auto, the choice of the GREAD authors' code,
            is the sigmoid for alpha and for scalars, else free, drawn from U(-1, 1). All coefficients but alpha and
            beta go by auto, diffusivities such as Du as alpha does; a sign that the equation declares is kept.
        beta_link: The same for beta; with the method auto, also the sigmoid in equations of one's own whose slope has
            no bound for all states.
        adjacency: original: A from the graph, by `normalisation`; soft: attention from H(0), frozen in time; live:
            attention from H(t).
        normalisation: How A is made from the graph.
        self_loops: The weight of self-loops (soft, live: whether there are any).
        heads: Heads of the attention.
        attention_dim: Columns of its queries and keys, shared evenly by the heads.
        time: T; the decoder reads H(T).
        method: A method of `rdgraph.solve`, or auto for the one that follows from the equation.
        step: The step, for methods that have one; with auto it replaces the step that was chosen.
        hidden: Channels of every field, so that published settings mean for each of several fields what they mean for
            one, as the number of values of a channel coefficient does; the encoder has so many columns for each state
            that it sets.
        velocity: How the velocities of fields of second order start: zero, or encoded from the features as the fields
            are, or the same as their fields. Starting at zero or as the fields costs no parameters: a network of
            second order has those of first order.
        readout: What the decoder reads at T: all (every encoded state, side by side) or one field or velocity by name.
        states: Where the states may be. free: wherever the encoder puts them. safe: where a run cannot overflow. An
            equation that grows at most linearly needs nothing; for others H(0) is mapped smoothly into a box that is
            proved to be invariant, such as [0, 1] for Fisher's, and where none is known into [-1, 1], with dH/dt =
            tanh(f(H)); with poles into an interval between them, to which H in f(H) is clamped too. auto: safe with
            the method auto, else free, as published. Also tanh, an interval such as "[0, 1]", one for each field,
            "[0, 1] x [-1, 1]", "tanh on [0, 1]", and with the clamp "tanh within [0.25, 0.75]".
        storage: How the states of the flow are kept: full, as the parameters are, or bfloat16, in half the memory, with
            sums in float32; for graphs whose states do not fit otherwise. Methods with steps or a polynomial take it.
        encoder_mlp: Whether two residual layers follow the linear encoder.
        relu: Whether a ReLU follows the flow.
        decoder_mlp: Whether the decoder has a hidden layer.
        input_dropout: The share of the features that is dropped in training.
        dropout: The share of hidden entries that is dropped, before the decoder too.

    Raises:
        InvalidArgument: For sizes, shares and steps out of range.
        UnknownName: For a choice that there is not.
    """

    model: ClassVar[str] = "gread"
    free: ClassVar[tuple[str, ...]] = (*ModelSettings.free, "time")
    #: Settings in which they may differ as well, as far as `program` and `kinds` allow it.
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

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "reaction", lasting_text(self.reaction))
        for name, known in (
            ("alpha", KINDS), ("beta", KINDS), ("alpha_link", LINKS), ("beta_link", LINKS),
            ("adjacency", ADJACENCIES), ("velocity", VELOCITIES), ("normalisation", tuple(NORMALISATIONS)),
            ("storage", STORAGES),
        ):  # fmt: skip
            self.check_one_of(name, known)
        if self.method != AUTO:
            find_method(self.method)
        if self.states not in (AUTO, SAFE):
            object.__setattr__(self, "states", str(StateRegion.read(self.states)))
        self.check_at_least(1, "heads", "attention_dim")
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
        own = tuple((name, value) for name, value in settings if name not in self.free + self.mixed)
        return self.model, own, self.program, self.kinds

    @property
    def region(self) -> StateRegion:
        """Where the states start; free where that is still open."""
        return StateRegion.read(FREE_STATES if self.states in (AUTO, SAFE) else self.states)

    @property
    def program(self) -> Hashable:
        """How H(T) is reached, as far as two members have to share it.

        Polynomials of A differ in coefficients alone, whatever the methods, steps and times; steps have to be of one
        method.

        >>> GreadSettings(method="rk4", step=0.5).program == GreadSettings(method="exact", time=3.0).program
        True
        """
        if self.method != AUTO and self.is_polynomial:
            return "polynomial"
        return (self.method,) if self.method in FIXED else (self.method, self.step)

    @property
    def kinds(self) -> Hashable:
        """The kinds of alpha and beta, as far as two members have to share them: one number is a channel's that all
        channels take."""
        if Kind.MATRIX in self.system.letters.values():
            return self.alpha, self.beta, self.alpha_link, self.beta_link
        return tuple("node" if kind == "node" else "channel" for kind in (self.alpha, self.beta))

    @cached_property
    def is_polynomial(self) -> bool:
        """Whether the equation has one field and is linear on a normalised operator, and the method makes H(T) a
        polynomial of A."""
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
        """Products with A, about: of a polynomial its degree, cut where terms no longer count, else evaluations."""
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
        """Polynomials are taken piece by piece, each as long as its members need."""
        return self.method == AUTO or not self.is_polynomial

    @property
    def equation(self) -> Hashable:
        """What the equation is read from: settings that agree in it have the same one."""
        return type(self), self.reaction, self.alpha, self.beta

    @classmethod
    def of(cls, reaction: str | System, **settings: Any) -> GreadSettings:
        """The network of an equation; a `System` is taken as it is.

        >>> GreadSettings.of("BS", hidden=8).reaction
        'BS'
        """
        made = cls(reaction=str(reaction), **settings)
        if isinstance(reaction, System):
            vars(made)["system"] = read_equation(reaction, made.alpha, made.beta)
        return made

    @cached_property
    def system(self) -> System:
        """The equation, with alpha and beta of the declared kinds; read when it is first asked for, and then kept."""
        return read_equation(self.reaction, self.alpha, self.beta)

    def resolved(
        self, method: str, step: float | None, beta_link: str, region: StateRegion | None = None
    ) -> GreadSettings:
        """The settings with open choices filled in; the equation is not parsed again."""
        states = self.states if region is None else str(region)
        made = replace(self, method=method, step=step, beta_link=beta_link, states=states)
        vars(made)["system"] = self.system
        return made


def step_count(method: str, time: float, step: float | None) -> int:
    """The steps that a method with fixed ones takes, the last one shortened.

    >>> step_count("euler", 1.46, 1.0)
    2
    """
    from rdgraph.run.solvers.schedules import Schedule  # imports torch, which settings alone do not need

    return Schedule.make(method, time, step).steps


def exponential_terms(z: float) -> int:
    """How many terms of the series of exp(z) matter relative to exp(z).

    >>> exponential_terms(0.0), exponential_terms(1.0), exponential_terms(12.0)
    (1, 11, 35)
    """
    count, term = 0, math.exp(-min(z, 500.0))
    while count < MOST_TERMS and (term > COUNTED or count < z):
        count += 1
        term *= z / count
    return count


def share_equations(models: Iterable[object]) -> None:
    """Let settings with the same equation share the one that is read first; reading takes milliseconds."""
    known: dict[Hashable, System] = {}
    for model in models:
        if isinstance(model, GreadSettings) and model.equation not in known:
            known[model.equation] = model.system
        elif isinstance(model, GreadSettings):
            vars(model).setdefault("system", known[model.equation])
