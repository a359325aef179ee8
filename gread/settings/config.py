"""`Config`: a network and its training; immutable, read from toml, with defaults < file < command line."""

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

import tomli_w

from gread.settings.gread_settings import FOR_OWN_DATA, GreadSettings
from gread.settings.model_records import ModelSettings, check_at_least, find_model
from rdgraph.errors import InvalidArgument, UnknownName
from rdgraph.files import read_text

OPTIMISERS = ("adam", "adamw")
SELECTIONS = ("accuracy", "loss")
#: The section of a file about the data on which the settings were chosen.
CHOSEN = "chosen"
#: The key of [model] that names the network.
NAME = "name"
_TYPES: dict[type, dict[str, Any]] = {}


@dataclass(frozen=True)
class Training:
    """Settings of a training: full batch, cross-entropy on the training nodes of the split.

    Args:
        epochs: The maximum number of epochs.
        learning_rate: The learning rate of the optimiser.
        weight_decay: Part of the gradient in adam, decoupled from it in adamw.
        optimiser: adam or adamw.
        select: The criterion on the validation nodes for the best epoch: accuracy (the first best one) or loss.
        patience: Early stopping after this many epochs without improvement; 0 trains all epochs.

    Raises:
        InvalidArgument: For numbers out of range.
        UnknownName: For an unknown choice.
    """

    epochs: int = 200
    learning_rate: float = 0.01
    weight_decay: float = 5e-4
    optimiser: str = "adam"
    select: str = "accuracy"
    patience: int = 0

    def __post_init__(self) -> None:
        check_at_least("epochs", self.epochs, 1)
        check_at_least("weight_decay", self.weight_decay, 0)
        check_at_least("patience", self.patience, 0)
        if not self.learning_rate > 0:
            raise InvalidArgument(f"expected learning_rate > 0, got {self.learning_rate!r}")
        for name, known in (("optimiser", OPTIMISERS), ("select", SELECTIONS)):
            if getattr(self, name) not in known:
                raise UnknownName(name, str(getattr(self, name)), known)

    @property
    def shape(self) -> tuple[object, ...]:
        """The settings that must agree for two trainings to share a batch."""
        return self.epochs, self.optimiser, self.select, self.patience


@dataclass(frozen=True)
class Config:
    """A network and its training.

    Args:
        model: The network: the settings of GREAD, `gread.settings.gread_settings.GreadSettings`, or of any other
            network of `gread.settings.model_records.models`.
        training: Epochs, learning rate, weight decay and the choice of the best epoch.

    Raises:
        InvalidArgument: For values of the wrong type or size, from `updated` and the readers of files.
        UnknownName: For unknown settings and choices.

    >>> import gread
    >>> c = gread.Config().updated({"hidden": 128, "learning_rate": 0.02})
    >>> c.model.hidden, c.training.learning_rate
    (128, 0.02)
    >>> gread.Config.from_toml(c.toml()) == c
    True
    >>> gread.Config.of("gcn", layers=3).model.layers
    3
    """

    model: ModelSettings = field(default_factory=GreadSettings)
    training: Training = field(default_factory=Training)

    @classmethod
    def of(cls, model: str, **values: Any) -> Config:
        """The defaults of a network by name, with some values replaced."""
        return cls(find_model(model).settings()).updated(values)

    @classmethod
    def for_own_data(cls, model: str, **values: Any) -> Config:
        """The defaults of a network by name for data without published settings, with some values replaced."""
        defaults = FOR_OWN_DATA if model == GreadSettings.model else {}
        return cls.of(model, **{**defaults, **values})

    @classmethod
    def read(cls, base: Config | str | None) -> Config:
        """A configuration, the defaults of a network by name, or those of GREAD for None.

        >>> import gread
        >>> gread.Config.read("gcn") == gread.Config.of("gcn")
        True
        """
        if isinstance(base, str):
            return cls.of(base)
        if not isinstance(base, Config | None):
            raise InvalidArgument(f"expected a Config or the name of a network, got {type(base).__name__}")
        return base or cls()

    @property
    def gread(self) -> GreadSettings:
        """The settings of a network around an equation; an error for other networks."""
        if not isinstance(self.model, GreadSettings):
            raise InvalidArgument(
                f"expected a network around an equation, such as gread or grand, got {self.model.model}, which has none"
            )
        return self.model

    def updated(self, values: Mapping[str, Any]) -> Config:
        """The configuration with values replaced by name; an unknown name is an error."""
        if not isinstance(values, Mapping):
            raise InvalidArgument(f"expected settings by their names, such as {{'hidden': 8}}, got {values!r:.60}")
        parts: dict[str, ModelSettings | Training] = {"model": self.model, "training": self.training}
        owners = {f.name: section for section, part in parts.items() for f in fields(part)}
        chosen: dict[str, dict[str, Any]] = {"model": {}, "training": {}}
        for name, value in values.items():
            if name not in owners:
                raise UnknownName(f"setting of {self.model.model}", name, tuple(owners))
            chosen[owners[name]][name] = _typed(parts[owners[name]], name, value)
        return replace(
            self, model=replace(self.model, **chosen["model"]), training=replace(self.training, **chosen["training"])
        )

    def sections(self) -> dict[str, dict[str, Any]]:
        """The settings by section, model and training, as for `from_sections`, without those that are None.

        >>> import gread
        >>> gread.Config().updated({"hidden": 8}).sections()["model"]["hidden"]
        8
        """
        model = {NAME: self.model.model, **dataclasses.asdict(self.model)}
        parts = {"model": model, "training": dataclasses.asdict(self.training)}
        return {name: {k: v for k, v in part.items() if v is not None} for name, part in parts.items()}

    def toml(self, chosen: Mapping[str, Any] | None = None) -> str:
        """The toml text of the settings, for `from_toml`, without those that are None.

        `chosen` is written to a separate section about the data on which the settings were chosen.
        """
        return tomli_w.dumps({**({CHOSEN: dict(chosen)} if chosen else {}), **self.sections()})

    @classmethod
    def from_toml(cls, text: str, *, base: Config | None = None) -> Config:
        """Settings of a toml text with the sections [model] and [training], over the defaults or `base`."""
        try:
            read = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise InvalidArgument(f"the text is not valid TOML: {error}") from None
        return cls.from_sections(read, base=base)

    @classmethod
    def from_sections(cls, sections: Mapping[str, Any], *, base: Config | None = None) -> Config:
        """Settings by section, model and training, over the defaults or `base`.

        >>> import gread
        >>> gread.Config.from_sections({"model": {"hidden": 8}}).model.hidden
        8
        """
        values: dict[str, Any] = {}
        start = _named(sections, base or cls())
        for section, part in sections.items():
            if section == CHOSEN:
                continue
            if section not in ("model", "training"):
                raise UnknownName("section", section, ("model", "training"))
            if not isinstance(part, dict):
                raise InvalidArgument(f"expected a section [{section}] with settings, got {section} = {part!r}")
            known = [f.name for f in fields(start.model if section == "model" else start.training)]
            for name, value in part.items():
                if section == "model" and name == NAME:
                    continue
                if name not in known:
                    raise UnknownName(f"setting of [{section}]", name, known)
                values[name] = value
        return start.updated(values)

    @classmethod
    def load(cls, path: str | Path, *, base: Config | None = None) -> Config:
        """Read a configuration from a toml file."""
        return cls.from_toml(read_text(Path(path), "a toml file"), base=base)


def _named(sections: Mapping[str, Any], base: Config) -> Config:
    """The base configuration: `base`, or the defaults of the network named in the sections."""
    part = sections.get("model")
    name = part.get(NAME, base.model.model) if isinstance(part, dict) else base.model.model
    if not isinstance(name, str):
        raise InvalidArgument(f"expected the name of a network, got {name!r}")
    return base if name == base.model.model else replace(base, model=find_model(name).settings())


def _types(settings: type) -> dict[str, Any]:
    """The types of the settings of a section by name, cached since `get_type_hints` is slow."""
    if settings not in _TYPES:
        _TYPES[settings] = get_type_hints(settings)
    return _TYPES[settings]


def _typed(part: Any, name: str, value: Any) -> Any:
    """A value converted to the type of a setting: whole numbers to floats, text from a command line to any type."""
    hint = _types(type(part))[name]
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
