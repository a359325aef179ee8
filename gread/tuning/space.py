"""`Space`: the settings that a search tries, as distributions by name with conditions; read from toml.

    source = "where the ranges come from"

    [fixed]                                                      # settings shared by all trials
    epochs = 200

    [settings]
    hidden = [32, 64, 128]                                       # one of these
    reaction = ["BS", "-alpha*L@H + beta*tanh(H)"]               # equations as well
    learning_rate = { low = 1e-3, high = 6e-2, log = true }      # a range; of whole numbers if both ends are
    method = ["euler", "exact"]
    step = { low = 0.1, high = 1.5, when = { method = ["euler"] } }

    [networks.gcn]                                               # further settings of one network
    layers = { low = 1, high = 4 }

Settings are drawn in this order; a condition names earlier settings, or settings that are not searched.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias

from gread.settings.config import Config
from gread.settings.gread_settings import share_equations
from gread.settings.model_records import models
from gread.settings.shipped_toml import read_toml
from rdgraph.errors import InvalidArgument, UnknownName

#: The shipped spaces, files of gread/data/spaces.
SHIPPED = ("paper", "wide", "small", "tuned", "modern")
SECTIONS = ("title", "source", "fixed", "settings", "networks")
RANGE_KEYS, CHOICE_KEYS = ("low", "high", "log", "step", "when"), ("choices", "when")

Value: TypeAlias = bool | int | float | str


@dataclass(frozen=True)
class Choice:
    """A choice of one of several values.

    Raises:
        InvalidArgument: For no values, duplicates, or a value that is neither a number nor a text.
    """

    values: tuple[Value, ...]

    def __post_init__(self) -> None:
        given = ", ".join(map(str, self.values)) or "none"
        if not all(isinstance(v, bool | int | float | str) for v in self.values):
            raise InvalidArgument(f"expected numbers and texts to choose from, got {given}")
        if not self.values or len({(type(v), v) for v in self.values}) < len(self.values):
            raise InvalidArgument(f"expected different values to choose from, got {given}")

    @property
    def examples(self) -> tuple[Value, ...]:
        """Values that every network must accept."""
        return self.values


@dataclass(frozen=True)
class Range:
    """A number between two ends, included: whole if both ends are whole, on a logarithmic scale, or in steps.

    Raises:
        InvalidArgument: For ends out of order, a logarithmic scale with ends that are not positive or with steps, or
            `log` that is neither true nor false.
    """

    low: float | int
    high: float | int
    log: bool = False
    step: float | int | None = None

    def __post_init__(self) -> None:
        numbers = [self.low, self.high, *(() if self.step is None else (self.step,))]
        if any(isinstance(n, bool) or not isinstance(n, int | float) or not math.isfinite(n) for n in numbers):
            raise InvalidArgument(f"expected numbers as low, high and step, got {numbers}")
        if not isinstance(self.log, bool):
            raise InvalidArgument(f"expected log = true or false, got {self.log!r}")
        if not self.low <= self.high or (self.step is not None and self.step <= 0):
            raise InvalidArgument(f"expected low <= high and a step above 0, got {numbers}")
        if self.log and (self.low <= 0 or self.step is not None):
            raise InvalidArgument(f"expected low > 0 and no step on a logarithmic scale, got {numbers}")
        if self.is_whole and isinstance(self.step, float):
            raise InvalidArgument(f"expected a whole step between whole numbers, got {self.step}")

    @property
    def is_whole(self) -> bool:
        return isinstance(self.low, int) and isinstance(self.high, int)

    @property
    def last(self) -> float | int:
        """The largest possible number: the last whole step up to the high end.

        >>> Range(1, 10, step=4).last, Range(0.1, 0.7, step=0.2).last
        (9, 0.7)
        """
        if self.step is None:
            return self.high
        low, high, step = (Decimal(str(number)) for number in (self.low, self.high, self.step))
        return (int if self.is_whole else float)(low + (high - low) // step * step)

    @property
    def examples(self) -> tuple[Value, ...]:
        return self.low, self.high


@dataclass(frozen=True)
class Searched:
    """A searched setting: its distribution, and the values of other settings under which it has an effect."""

    name: str
    distribution: Choice | Range
    when: tuple[tuple[str, tuple[Value, ...]], ...] = ()

    def counts(self, value_of: Callable[[str], Any]) -> bool:
        """Whether the setting has an effect, for the values of other settings by `value_of`."""
        return all(value_of(name) in allowed for name, allowed in self.when)


@dataclass(frozen=True)
class Space:
    """The settings that a search tries, with their ranges.

    Args:
        name: paper, wide, small, tuned, or the name of a file.
        source: The origin of its ranges.
        fixed: Settings that all trials share, besides those of the base configuration.
        searched: The drawn settings, in order.

    Raises:
        InvalidArgument: For a space without settings, or with a setting twice.

    >>> space = find_space("paper").of(Config())
    >>> space.searched[0]
    Searched(name='adjacency', distribution=Choice(values=('original', 'soft')), when=())
    >>> space.config(Config(), {"hidden": 32}).model.hidden
    32
    """

    name: str
    source: str
    fixed: Mapping[str, Value]
    searched: tuple[Searched, ...]
    networks: Mapping[str, tuple[Searched, ...]]

    def of(self, base: Config) -> Space:
        """The space for the network of `base` only, checked to contain only settings of that network."""
        further = self.networks.get(base.model.model, ())
        names = {s.name for s in further}
        space = Space(
            self.name, self.source, self.fixed, (*(s for s in self.searched if s.name not in names), *further), {}
        )
        space._check(base)
        return space

    def restricted(self, name: str, values: Collection[Value]) -> Space:
        """The space with the choices of a setting restricted to `values`.

        >>> space = find_space("paper").restricted("method", ["rk4"])
        >>> next(s.distribution for s in space.searched if s.name == "method")
        Choice(values=('rk4',))
        """
        searched = []
        for setting in self.searched:
            if setting.name == name and isinstance(setting.distribution, Choice):
                allowed = tuple(value for value in setting.distribution.values if value in values)
                if not allowed:
                    known = ", ".join(map(str, setting.distribution.values))
                    raise InvalidArgument(f"expected a {name} among {known}, got {', '.join(map(str, values))}")
                setting = replace(setting, distribution=Choice(allowed))
            searched.append(setting)
        return replace(self, searched=tuple(searched))

    def _check(self, base: Config) -> None:
        if not self.searched:
            raise InvalidArgument(f"expected settings of {base.model.model} to search in {self.name}, got none")
        start = base.updated(self.fixed)
        tried = [start, *(start.updated({s.name: value}) for s in self.searched for value in s.distribution.examples)]
        share_equations(config.model for config in tried)  # raises for an equation that cannot be read
        for position, searched in enumerate(self.searched):
            later = {s.name for s in self.searched[position:]}
            for name, allowed in searched.when:
                if name in later:
                    raise InvalidArgument(f"expected {name} before {searched.name}, which depends on it, got it after")
                for value in allowed:
                    start.updated({name: value})

    def config(self, base: Config, values: Mapping[str, Value]) -> Config:
        """The configuration of a trial with these values."""
        return base.updated({**self.fixed, **values})

    def draw(self, base: Config, suggest: Callable[[Searched], Value]) -> dict[str, Value]:
        """The values of a trial; `suggest` returns those of the settings with an effect, one after the other."""
        start, values = base.updated(self.fixed), dict[str, Value]()

        def value_of(name: str) -> Any:
            return values[name] if name in values else getattr(_owner(start, name), name)

        for searched in self.searched:
            if searched.counts(value_of):
                values[searched.name] = suggest(searched)
        return values

    def without(self, names: set[str]) -> Space:
        """The space without some settings, neither searched nor fixed."""
        searched = tuple(s for s in self.searched if s.name not in names)
        fixed = {name: value for name, value in self.fixed.items() if name not in names}
        return Space(self.name, self.source, fixed, searched, self.networks)

    def sections(self) -> dict[str, Any]:
        """The settings as tables of a space file."""
        return {"fixed": dict(self.fixed), "settings": {s.name: _written(s) for s in self.searched}}


def _owner(config: Config, name: str) -> Any:
    return config.model if any(f.name == name for f in fields(config.model)) else config.training


# ---------------------------------------------------------------------- files
def find_space(name: str | Path | Mapping[str, Any]) -> Space:
    """The shipped space of that name, or the space of a toml file.

    Args:
        name: "paper", "wide", "small", "tuned" or "modern", the path of a toml file, or a mapping with the content of
            one.

    Returns:
        The space for all its networks; `Space.of` restricts it to the network of a configuration.

    Raises:
        UnknownName: For a name that is neither a space nor a file.
        FileError: For a file that cannot be read.
        InvalidArgument: For a file that does not describe a space.

    >>> find_space("small").name
    'small'
    >>> find_space({"settings": {"hidden": [8, 16]}}).searched[0].distribution
    Choice(values=(8, 16))
    """
    if isinstance(name, Mapping):
        return _parse(name, "given")
    if not isinstance(name, str | Path):
        raise InvalidArgument(
            f"expected a space: its name, a toml file, or a mapping with the content of one, got {name!r:.60}"
        )
    return read_toml(name, read_space, "spaces", SHIPPED, "space")


def read_space(text: str, name: str) -> Space:
    """The space that a toml text describes."""
    return _parse(tomllib.loads(text), name)


def _parse(values: Mapping[str, Any], name: str) -> Space:
    """The space that the tables of a file describe."""
    for section in values:
        if section not in SECTIONS:
            raise UnknownName(f"section of the space {name}", section, SECTIONS)
    fixed, networks = values.get("fixed", {}), values.get("networks", {})
    tables = [fixed, values.get("settings", {}), networks, *(networks.values() if isinstance(networks, dict) else ())]
    if not all(isinstance(table, dict) for table in tables):
        raise InvalidArgument(f"[fixed], [settings] and [networks.NAME] of the space {name} must be tables")
    for network in networks:
        models.find(network)
    if doubled := sorted(set(fixed) & set(values.get("settings", {}))):
        raise InvalidArgument(f"expected a setting in [fixed] or in [settings], got {', '.join(doubled)} in both")
    source, searched = str(values.get("source", f"file {name}")), _searched(values.get("settings", {}))
    return Space(name, source, dict(fixed), searched, {key: _searched(table) for key, table in networks.items()})


def _searched(table: Mapping[str, Any]) -> tuple[Searched, ...]:
    return tuple(_read(name, value) for name, value in table.items())


def _read(name: str, value: Any) -> Searched:
    table = {"choices": value} if isinstance(value, list) else value
    if not isinstance(table, dict):
        raise InvalidArgument(f"expected a list or a range for {name}, got {value!r}; fixed values go to [fixed]")
    keys = CHOICE_KEYS if "choices" in table else RANGE_KEYS
    for key in table:
        if key not in keys:
            raise UnknownName(f"key of {name}", key, keys)
    conditions = table.get("when", {})
    if not isinstance(conditions, dict):
        raise InvalidArgument(f"expected when = {{ SETTING = VALUE }} for {name}, got {conditions!r}")
    when = tuple((key, tuple(v) if isinstance(v, list) else (v,)) for key, v in conditions.items())
    if "choices" not in table and not {"low", "high"} <= set(table):
        raise InvalidArgument(f"expected low and high for {name}, got {', '.join(table) or 'neither'}")
    try:
        return Searched(name, _distribution(table), when)
    except InvalidArgument as problem:
        raise InvalidArgument(f"{problem}, for {name}") from None


def _distribution(table: Mapping[str, Any]) -> Choice | Range:
    if "choices" not in table:
        return Range(table["low"], table["high"], table.get("log", False), table.get("step"))
    choices = table["choices"]
    return Choice(tuple(choices) if isinstance(choices, list) else (choices,))


def _written(searched: Searched) -> Any:
    distribution = searched.distribution
    if isinstance(distribution, Choice):
        table: dict[str, Any] = {"choices": list(distribution.values)}
    else:
        table = {"low": distribution.low, "high": distribution.high, "log": distribution.log}
        table |= {} if distribution.step is None else {"step": distribution.step}
    return table | ({"when": {name: list(values) for name, values in searched.when}} if searched.when else {})
