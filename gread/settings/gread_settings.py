"""`GreadSettings`: the settings of a network around a reaction-diffusion equation."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

from gread.settings.equation import read_equation
from gread.settings.model_settings import ModelSettings
from rdgraph.errors import InvalidArgument
from rdgraph.integrators.flow_coefficients import Schedule
from rdgraph.methods.registry import FIXED
from rdgraph.normalisations.registry import NORMALISATIONS
from rdgraph.systems.system import System

KINDS = ("scalar", "channel", "node")
LINKS = ("auto", "sigmoid", "free")
ADJACENCIES = ("original", "soft", "live")
VELOCITIES = ("zero", "encoded", "same")
#: The method that stands for the one that follows from the equation.
AUTO = "auto"
#: The readout that stands for every encoded state.
ALL = "all"


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
    encoder_mlp: bool = False
    relu: bool = True
    decoder_mlp: bool = False
    dropout: float = field(default=0.4, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, known in (
            ("alpha", KINDS), ("beta", KINDS), ("alpha_link", LINKS), ("beta_link", LINKS),
            ("adjacency", ADJACENCIES), ("velocity", VELOCITIES), ("normalisation", tuple(NORMALISATIONS)),
        ):  # fmt: skip
            self.check_one_of(name, known)
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
        """The settings that are not free; times may differ where the number of steps does not."""
        steps = Schedule.make(self.method, self.time, self.step).steps if self.method in FIXED else 1
        return super().shape, steps

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

    def resolved(self, method: str, step: float | None, beta_link: str) -> GreadSettings:
        """The same network with what was left open filled in; its equation is not read again."""
        made = replace(self, method=method, step=step, beta_link=beta_link)
        vars(made)["system"] = self.system
        return made
