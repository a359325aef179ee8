"""What a network is and how it is trained: frozen values, read from toml, with defaults < file < command line."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, get_args, get_type_hints

import tomli_w

from gread.settings.equation import read_equation
from rdgraph.errors import InvalidArgument, UnknownName
from rdgraph.files import read_text
from rdgraph.normalisations.registry import NORMALISATIONS
from rdgraph.systems.system import System

KINDS = ("scalar", "channel", "node")
LINKS = ("auto", "sigmoid", "free")
ADJACENCIES = ("original", "soft", "live")
VELOCITIES = ("zero", "encoded")
#: The method that stands for the one that follows from the equation.
AUTO = "auto"
#: The readout that stands for every encoded state.
ALL = "all"


@dataclass(frozen=True)
class Model:
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
            are. Starting at zero costs no parameters: a network of second order has those of first order.
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
    hidden: int = 64
    velocity: str = "zero"
    readout: str = ALL
    encoder_mlp: bool = False
    relu: bool = True
    decoder_mlp: bool = False
    input_dropout: float = 0.5
    dropout: float = 0.4

    def __post_init__(self) -> None:
        _one_of("alpha", self.alpha, KINDS)
        _one_of("beta", self.beta, KINDS)
        _one_of("alpha_link", self.alpha_link, LINKS)
        _one_of("beta_link", self.beta_link, LINKS)
        _one_of("adjacency", self.adjacency, ADJACENCIES)
        _one_of("velocity", self.velocity, VELOCITIES)
        _one_of("normalisation", self.normalisation, tuple(NORMALISATIONS))
        for name in ("hidden", "heads", "attention_dim"):
            _at_least(name, getattr(self, name), 1)
        _at_least("time", self.time, 0)
        _at_least("self_loops", self.self_loops, 0)
        if self.step is not None and not self.step > 0:
            raise InvalidArgument(f"expected step > 0 or none, got {self.step!r}")
        if self.attention_dim % self.heads:
            raise InvalidArgument(
                f"expected an attention_dim that {self.heads} heads share evenly, got {self.attention_dim}"
            )
        for name in ("input_dropout", "dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise InvalidArgument(f"expected 0 <= {name} < 1, got {getattr(self, name)!r}")

    @classmethod
    def of(cls, reaction: str | System, **settings: Any) -> Model:
        """The network of an equation; a `System` is taken as it is.

        >>> Model.of("BS", hidden=8).reaction
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

    def resolved(self, method: str, step: float | None, beta_link: str) -> Model:
        """The same network with what was left open filled in; its equation is not read again."""
        made = replace(self, method=method, step=step, beta_link=beta_link)
        vars(made)["system"] = self.system
        return made


@dataclass(frozen=True)
class Training:
    """How it is trained: full batch, Adam, cross-entropy on the training nodes of the split."""

    epochs: int = 200
    learning_rate: float = 0.01
    weight_decay: float = 5e-4

    def __post_init__(self) -> None:
        _at_least("epochs", self.epochs, 1)
        _at_least("weight_decay", self.weight_decay, 0)
        if not self.learning_rate > 0:
            raise InvalidArgument(f"expected learning_rate > 0, got {self.learning_rate!r}")


@dataclass(frozen=True)
class Config:
    """A network and its training.

    Args:
        model: The network, see `gread.settings.config.Model`.
        training: Epochs, learning rate and weight decay.

    Raises:
        InvalidArgument: For values of the wrong type or size, from `updated` and the readers of files.
        UnknownName: For settings and choices that there are not.

    >>> c = Config().updated({"hidden": 128, "learning_rate": 0.02})
    >>> c.model.hidden, c.training.learning_rate
    (128, 0.02)
    >>> Config.from_toml(c.toml()) == c
    True
    """

    model: Model = field(default_factory=Model)
    training: Training = field(default_factory=Training)

    def updated(self, values: Mapping[str, Any]) -> Config:
        """With other values, by their plain names; an unknown one is an error."""
        parts: dict[str, Model | Training] = {"model": self.model, "training": self.training}
        owners = {f.name: section for section, part in parts.items() for f in fields(part)}
        chosen: dict[str, dict[str, Any]] = {"model": {}, "training": {}}
        for name, value in values.items():
            if name not in owners:
                raise UnknownName("setting", name, tuple(owners))
            chosen[owners[name]][name] = _typed(parts[owners[name]], name, value)
        return replace(
            self, model=replace(self.model, **chosen["model"]), training=replace(self.training, **chosen["training"])
        )

    def sections(self) -> dict[str, dict[str, Any]]:
        """The settings by section, model and training, as `from_sections` takes them; those that are none are left out.

        >>> Config().updated({"hidden": 8}).sections()["model"]["hidden"]
        8
        """
        parts = {"model": dataclasses.asdict(self.model), "training": dataclasses.asdict(self.training)}
        return {name: {k: v for k, v in part.items() if v is not None} for name, part in parts.items()}

    def toml(self) -> str:
        """The text of a file that `from_toml` reads back; settings that are none are left out."""
        return tomli_w.dumps(self.sections())

    @classmethod
    def from_toml(cls, text: str, *, base: Config | None = None) -> Config:
        """Settings of a toml text with the sections [model] and [training], over the defaults or `base`."""
        try:
            read = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise InvalidArgument(f"expected toml, got a text that is not: {error}") from None
        return cls.from_sections(read, base=base)

    @classmethod
    def from_sections(cls, sections: Mapping[str, Any], *, base: Config | None = None) -> Config:
        """Settings by section, model and training, over the defaults or `base`.

        >>> Config.from_sections({"model": {"hidden": 8}}).model.hidden
        8
        """
        values: dict[str, Any] = {}
        for section, part in sections.items():
            if section not in ("model", "training"):
                raise UnknownName("section", section, ("model", "training"))
            if not isinstance(part, dict):
                raise InvalidArgument(f"expected a section [{section}] with settings, got {section} = {part!r}")
            known = [f.name for f in fields(Model if section == "model" else Training)]
            for name, value in part.items():
                if name not in known:
                    raise UnknownName(f"setting of [{section}]", name, known)
                values[name] = value
        return (base or cls()).updated(values)

    @classmethod
    def load(cls, path: str | Path, *, base: Config | None = None) -> Config:
        """From a toml file."""
        return cls.from_toml(read_text(Path(path), "a toml file"), base=base)


def _typed(part: Any, name: str, value: Any) -> Any:
    """A value of the setting's type; whole numbers stand for floats, text from a command line for any of them."""
    hint = get_type_hints(type(part))[name]
    kinds = get_args(hint) or (hint,)
    if value is None and type(None) in kinds:
        return None
    kind = next(k for k in kinds if k is not type(None))
    if isinstance(value, str) and kind is not str:
        try:
            value = json.loads(value.lower() if kind is bool else value)
        except (ValueError, RecursionError):
            raise InvalidArgument(f"expected {kind.__name__} for {name}, got {value!r}") from None
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value) if abs(value) <= sys.float_info.max else math.inf
    if type(value) is not kind:
        raise InvalidArgument(f"expected {kind.__name__} for {name}, got {value!r}")
    if kind is float and not math.isfinite(value):
        raise InvalidArgument(f"expected a finite {name}, got {value!r}")
    return value


def _one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise UnknownName(name, str(value), known)


def _at_least(name: str, value: float, least: float) -> None:
    if not (math.isfinite(value) and value >= least):
        raise InvalidArgument(f"expected {name} >= {least:g}, got {value!r}")
