"""`Space`: which settings a search tries, as distributions by name with conditions; read from toml.

    source = "where the ranges come from"

    [fixed]                                                      # what all trials share
    epochs = 200

    [settings]
    hidden = [32, 64, 128]                                       # one of these
    reaction = ["BS", "-alpha*L@H + beta*tanh(H)"]               # equations as well
    learning_rate = { low = 1e-3, high = 6e-2, log = true }      # a range; of whole numbers where both ends are
    method = ["euler", "exact"]
    step = { low = 0.1, high = 1.5, when = { method = ["euler"] } }

    [networks.gcn]                                               # more of them, for one network
    layers = { low = 1, high = 4 }

Settings are drawn in this order; a condition names settings before it, or those that are not searched.
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

#: The spaces that are shipped, files of gread/data/spaces.
SHIPPED = ("paper", "wide", "small", "tuned")
SECTIONS = ("title", "source", "fixed", "settings", "networks")
RANGE_KEYS, CHOICE_KEYS = ("low", "high", "log", "step", "when"), ("choices", "when")

Value: TypeAlias = bool | int | float | str


@dataclass(frozen=True)
class Choice:
    """One of some values.

    Raises:
        InvalidArgument: For no values, the same one twice, or one that is neither a number nor a text.
    """

    values: tuple[Value, ...]

    def __post_init__(self) -> None:
        if not all(isinstance(v, bool | int | float | str) for v in self.values):
            raise InvalidArgument(f"expected numbers and texts to choose from, got {list(self.values)}")
        if not self.values or len({(type(v), v) for v in self.values}) < len(self.values):
            raise InvalidArgument(f"expected different values to choose from, got {list(self.values)}")

    @property
    def examples(self) -> tuple[Value, ...]:
        """Values that every network has to accept."""
        return self.values


@dataclass(frozen=True)
class Range:
    """A number between two others, ends included: whole where both ends are, on a logarithmic scale, or in steps.

    Raises:
        InvalidArgument: For ends out of order, a logarithm of what is not positive, steps on a logarithmic scale, or a
            scale that is neither true nor false.
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
        """The largest number that is drawn: the last whole step below the high end.

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
    """A setting that is searched: its distribution, and the values that other settings must have for it to count."""

    name: str
    distribution: Choice | Range
    when: tuple[tuple[str, tuple[Value, ...]], ...] = ()

    def counts(self, value_of: Callable[[str], Any]) -> bool:
        """Whether the setting counts, where `value_of` gives the values of other settings."""
        return all(value_of(name) in allowed for name, allowed in self.when)


@dataclass(frozen=True)
class Space:
    """The settings that a search tries, with their ranges.

    Args:
        name: paper, wide, small, tuned, or the name of a file.
        source: Where its ranges come from.
        fixed: Settings that all trials share, beside those of the configuration that is searched around.
        searched: The settings that are drawn, in order.

    Raises:
        InvalidArgument: For a space that searches nothing, or a setting twice.

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
        """The space of settings for the network of `base` alone, checked: every setting is one of that network."""
        own = self.networks.get(base.model.model, ())
        names = {s.name for s in own}
        space = Space(
            self.name, self.source, self.fixed, (*(s for s in self.searched if s.name not in names), *own), {}
        )
        space._check(base)
        return space

    def restricted(self, name: str, values: Collection[Value]) -> Space:
        """The space with only those choices of a setting that are among `values`.

        >>> space = find_space("paper").restricted("method", ["rk4"])
        >>> next(s.distribution for s in space.searched if s.name == "method")
        Choice(values=('rk4',))
        """
        found = []
        for one in self.searched:
            if one.name == name and isinstance(one.distribution, Choice):
                kept = tuple(value for value in one.distribution.values if value in values)
                if not kept:
                    known = ", ".join(map(str, one.distribution.values))
                    raise InvalidArgument(f"expected a {name} among {known}, got {', '.join(map(str, values))}")
                one = replace(one, distribution=Choice(kept))
            found.append(one)
        return replace(self, searched=tuple(found))

    def _check(self, base: Config) -> None:
        if not self.searched:
            raise InvalidArgument(f"expected settings of {base.model.model} to search in {self.name}, got none")
        start = base.updated(self.fixed)
        tried = [start, *(start.updated({s.name: value}) for s in self.searched for value in s.distribution.examples)]
        share_equations(config.model for config in tried)  # one that cannot be read is refused here
        for place, searched in enumerate(self.searched):
            later = {s.name for s in self.searched[place:]}
            for name, allowed in searched.when:
                if name in later:
                    raise InvalidArgument(f"expected {name} before {searched.name}, which depends on it, got it after")
                for value in allowed:
                    start.updated({name: value})

    def config(self, base: Config, values: Mapping[str, Value]) -> Config:
        """The configuration of a trial with these values."""
        return base.updated({**self.fixed, **values})

    def draw(self, base: Config, suggest: Callable[[Searched], Value]) -> dict[str, Value]:
        """The values of a trial: `suggest` gives those of the settings that count, one after the other."""
        start, found = base.updated(self.fixed), dict[str, Value]()

        def value_of(name: str) -> Any:
            return found[name] if name in found else getattr(_owner(start, name), name)

        for searched in self.searched:
            if searched.counts(value_of):
                found[searched.name] = suggest(searched)
        return found

    def without(self, names: set[str]) -> Space:
        """The same space with some settings left as they are."""
        kept = tuple(s for s in self.searched if s.name not in names)
        fixed = {name: value for name, value in self.fixed.items() if name not in names}
        return Space(self.name, self.source, fixed, kept, self.networks)

    def sections(self) -> dict[str, Any]:
        """The searched settings as tables of the file that the space was read from."""
        return {"fixed": dict(self.fixed), "settings": {s.name: _written(s) for s in self.searched}}


def _owner(config: Config, name: str) -> Any:
    return config.model if any(f.name == name for f in fields(config.model)) else config.training


# ---------------------------------------------------------------------- files
def find_space(name: str | Path | Mapping[str, Any]) -> Space:
    """The shipped space of that name, or that of a toml file.

    Args:
        name: "paper", "wide", "small" or "tuned", the path of a toml file, or a mapping with the content of one.

    Returns:
        The space, for all networks that it knows; `Space.of` makes it one for a configuration.

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
        return _made(name, "given")
    if not isinstance(name, str | Path):
        raise InvalidArgument(
            f"expected a space: its name, a toml file, or a mapping with the content of one, got {name!r:.60}"
        )
    return read_toml(name, read_space, "spaces", SHIPPED, "space")


def read_space(text: str, name: str) -> Space:
    """The space that a toml text describes."""
    return _made(tomllib.loads(text), name)


def _made(values: Mapping[str, Any], name: str) -> Space:
    """The space that the tables of a file describe."""
    for section in values:
        if section not in SECTIONS:
            raise UnknownName(f"section of the space {name}", section, SECTIONS)
    fixed, networks = values.get("fixed", {}), values.get("networks", {})
    tables = [fixed, values.get("settings", {}), networks, *(networks.values() if isinstance(networks, dict) else ())]
    if not all(isinstance(table, dict) for table in tables):
        raise InvalidArgument(
            f"expected tables [fixed], [settings] and [networks.NAME] in the space {name}, got others"
        )
    for network in networks:
        models.find(network)
    if doubled := sorted(set(fixed) & set(values.get("settings", {}))):
        raise InvalidArgument(f"expected a setting in [fixed] or in [settings], got {', '.join(doubled)} in both")
    return Space(
        name,
        str(values.get("source", f"file {name}")),
        dict(fixed),
        _searched(values.get("settings", {})),
        {network: _searched(table) for network, table in networks.items()},
    )


def _searched(table: Mapping[str, Any]) -> tuple[Searched, ...]:
    return tuple(_read(name, value) for name, value in table.items())


def _read(name: str, value: Any) -> Searched:
    table = {"choices": value} if isinstance(value, list) else value
    if not isinstance(table, dict):
        raise InvalidArgument(f"expected a list or a range for {name}, got {value!r}; settle it in [fixed]")
    keys = CHOICE_KEYS if "choices" in table else RANGE_KEYS
    for key in table:
        if key not in keys:
            raise UnknownName(f"word about {name}", key, keys)
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
