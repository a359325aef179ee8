"""What a network is and how it is trained: frozen values, read from toml, with defaults < file < command line."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, get_args, get_type_hints

from rdgraph.errors import NotApplicable, UnknownName
from rdgraph.files import read_text
from rdgraph.normalisations.registry import NORMALISATIONS

KINDS = ("scalar", "channel", "node")
LINKS = ("auto", "sigmoid", "free")
ADJACENCIES = ("original", "soft", "live")


@dataclass(frozen=True)
class Model:
    """The network: encoder, reaction-diffusion layer, decoder.

    reaction       a name of the catalogue, or an equation in the language of rdgraph
    alpha, beta    scalar, channel (one value per column of H) or node (one per node)
    alpha_link, beta_link   sigmoid keeps a coefficient in (0, 1); free leaves it as it is; auto, the choice of the
                   GREAD authors' code, is the sigmoid for alpha and for scalars, else free, drawn from U(-1, 1)
    adjacency      original: A from the graph, by `normalisation`; soft: attention from H(0), frozen in time; live:
                   attention from H(t)
    self_loops     weight of self-loops (soft, live: whether there are any)
    heads, attention_dim    of the soft adjacency
    time, method, step      H(time), by a method of `rdgraph.solve`; the step is not used by exact and dopri5
    hidden         channels of H
    encoder_mlp    two residual layers after the linear encoder; relu: after the flow; decoder_mlp: one hidden layer
    input_dropout  of the features; dropout: of hidden layers and before the decoder
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
    method: str = "exact"
    step: float | None = None
    hidden: int = 64
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
        _one_of("normalisation", self.normalisation, tuple(NORMALISATIONS))
        for name in ("hidden", "heads", "attention_dim"):
            _at_least(name, getattr(self, name), 1)
        _at_least("time", self.time, 0)
        _at_least("self_loops", self.self_loops, 0)
        if self.step is not None and not self.step > 0:
            raise NotApplicable(f"expected step > 0 or none, got {self.step!r}")
        if self.attention_dim % self.heads:
            raise NotApplicable(
                f"expected an attention_dim that {self.heads} heads share evenly, got {self.attention_dim}"
            )
        for name in ("input_dropout", "dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise NotApplicable(f"expected 0 <= {name} < 1, got {getattr(self, name)!r}")


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
            raise NotApplicable(f"expected learning_rate > 0, got {self.learning_rate!r}")


@dataclass(frozen=True)
class Config:
    """A network and its training.

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

    def toml(self) -> str:
        """The text of a file that `from_toml` reads back; settings that are none are left out."""
        lines = []
        for section in ("model", "training"):
            part = getattr(self, section)
            lines += [f"[{section}]"]
            lines += [f"{k} = {json.dumps(v)}" for k, v in dataclasses.asdict(part).items() if v is not None]
            lines += [""]
        return "\n".join(lines)

    @classmethod
    def from_toml(cls, text: str, *, base: Config | None = None) -> Config:
        """Settings of a toml text with the sections [model] and [training], over the defaults or `base`."""
        try:
            read = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise NotApplicable(f"expected toml, got a text that is not: {error}") from None
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
                raise NotApplicable(f"expected a section [{section}] with settings, got {section} = {part!r}")
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
            raise NotApplicable(f"expected {kind.__name__} for {name}, got {value!r}") from None
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value) if abs(value) <= sys.float_info.max else math.inf
    if type(value) is not kind:
        raise NotApplicable(f"expected {kind.__name__} for {name}, got {value!r}")
    if kind is float and not math.isfinite(value):
        raise NotApplicable(f"expected a finite {name}, got {value!r}")
    return value


def _one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise UnknownName(name, str(value), known)


def _at_least(name: str, value: float, least: float) -> None:
    if not (math.isfinite(value) and value >= least):
        raise NotApplicable(f"expected {name} >= {least:g}, got {value!r}")
