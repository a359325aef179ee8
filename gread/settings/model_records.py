"""`ModelRecord`: a network that can be trained by name; those that are built in are loaded when they are asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import KW_ONLY, dataclass, fields
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from rdgraph.errors import InvalidArgument, UnknownName
from rdgraph.records import Records

if TYPE_CHECKING:
    from collections.abc import Iterator


# ---------------------------------------------------------------------- model records
# ---------------------------------------------------------------------- model settings
# `ModelSettings`: what the settings of every network have in common; a network adds its own beside them.


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """Settings of one kind of network, `model`; its members of one batch may differ in the settings `free` alone.

    Args:
        hidden: Channels of the hidden states.
        input_dropout: The share of the features that is dropped in training.
        dropout: The share of hidden entries that is dropped.
        row_features: Whether the features of every node are divided by their sum first.

    Raises:
        InvalidArgument: For sizes and shares out of range.

    >>> import gread
    >>> gread.models.ModelSettings(hidden=16).dropout
    0.5
    """

    #: The name of the network that these settings are of.
    model: ClassVar[str] = ""
    #: Settings in which members of one batch may differ.
    free: ClassVar[tuple[str, ...]] = ("input_dropout", "dropout")

    hidden: int = 64
    input_dropout: float = 0.5
    dropout: float = 0.5
    row_features: bool = False

    def __post_init__(self) -> None:
        self.check_at_least(1, "hidden")
        self.check_share("input_dropout", "dropout")

    @property
    def shape(self) -> Hashable:
        """What has to agree for two networks to be trained in one batch."""
        return self.model, tuple((f.name, getattr(self, f.name)) for f in fields(self) if f.name not in self.free)

    @cached_property
    def effort(self) -> int:
        """Products with A that a pass takes, about: what members of one batch should have in common, as all of them
        take as many as the one with the most."""
        return 1

    @property
    def is_padded(self) -> bool:
        """Whether members with less effort pay for the one with the most."""
        return True

    # ------------------------------------------------------------------ checks, for the settings by name
    def check_at_least(self, least: float, *names: str) -> None:
        """Raise unless these settings are finite and not below that number."""
        for name in names:
            check_at_least(name, getattr(self, name), least)

    def check_share(self, *names: str) -> None:
        """Raise unless these settings are shares that may be dropped."""
        for name in names:
            if not 0 <= getattr(self, name) < 1:
                raise InvalidArgument(f"expected 0 <= {name} < 1, got {getattr(self, name)!r}")

    def check_divides(self, whole: str, part: str) -> None:
        """Raise unless one setting is a multiple of another."""
        if getattr(self, whole) % getattr(self, part):
            raise InvalidArgument(
                f"expected a {whole} that is a multiple of {part} = {getattr(self, part)}, got {getattr(self, whole)}"
            )

    def check_between(self, least: float, most: float, *names: str) -> None:
        """Raise unless these settings are in the interval, ends included."""
        for name in names:
            if not least <= getattr(self, name) <= most:
                raise InvalidArgument(f"expected {least:g} <= {name} <= {most:g}, got {getattr(self, name)!r}")

    def check_one_of(self, name: str, known: tuple[str, ...]) -> None:
        """Raise unless a setting is one of those words."""
        if getattr(self, name) not in known:
            raise UnknownName(name, str(getattr(self, name)), known)


def check_at_least(name: str, value: float, least: float) -> None:
    """Raise unless a number is finite and not below another."""
    if not (math.isfinite(value) and value >= least):
        raise InvalidArgument(f"expected {name} >= {least:g}, got {value!r}")


# ---------------------------------------------------------------------- model records
#: Families of networks, in the order of their listing.
FAMILIES = ("simple", "classical", "heterophily", "oversmoothing", "continuous", "reaction-diffusion", "tuned")
#: Modules with networks; each has a tuple RECORDS.
PLACES = (
    "gread.models.gread_model",
    *(
        f"gread.zoo.{module}"
        for module in (
            "classical_networks", "neighbour_networks", "channel_networks", "deep_networks", "equation_networks",
            "sheaf", "graff",
        )
    ),
)  # fmt: skip


@dataclass(frozen=True)
class ModelRecord:
    """A kind of network.

    Args:
        name: What it is called on the command line and in files, such as "gcnii".
        title: What it is called in print, such as "GCNII".
        family: One of `FAMILIES`.
        source: Where it was published.
        rule: Its update rule in one line.
        settings: The class of its settings, whose `model` is the name.
        network: Makes the networks of a batch from (settings, place, features=, classes=, seeds=): a class that is a
            `gread.models.batched_model.BatchedModel`.
        published: Its row in the table of the GREAD paper, "" where it has none.
        line: Where its layers are the steps of a graph dynamical system, that system in the language of rdgraph, at
            weights that are the identity; networks around an equation have theirs in the settings.

    Raises:
        InvalidArgument: For a family that there is not, or settings of another name.

    >>> import gread
    >>> record = gread.models.find_model("gat")
    >>> record.family, record.settings().heads
    ('classical', 8)
    """

    name: str
    title: str
    family: str
    _: KW_ONLY
    source: str
    rule: str
    settings: type[ModelSettings]
    network: Callable[..., Any]
    published: str = ""
    line: str = ""

    def __post_init__(self) -> None:
        if self.family not in FAMILIES:
            raise InvalidArgument(f"expected a family among {', '.join(FAMILIES)}, got {self.family!r}")
        if self.settings.model != self.name:
            raise InvalidArgument(
                f"expected settings whose `model` is {self.name!r}, got {self.settings.model!r}; "
                "make a subclass of the settings for every name"
            )


def _built_in() -> Iterator[ModelRecord]:
    for place in PLACES:
        yield from import_module(place).RECORDS


#: Name of a network -> its record.
models: Records[ModelRecord] = Records("model", _built_in)


def find_model(name: str) -> ModelRecord:
    """The network of that name.

    Args:
        name: Such as "gcn"; `rdgraph models` lists them.

    Returns:
        Its record: settings, network, family, source and rule.

    Raises:
        UnknownName: For a name that there is not, with the closest one.

    >>> import gread
    >>> gread.models.find_model("gcn").title
    'GCN'
    """
    return models.find(name)


def register_model(record: ModelRecord) -> ModelRecord:
    """Register your own network under a free name; `train`, presets and the command line then know it.

    Args:
        record: The network with its settings.

    Returns:
        The record.

    Raises:
        InvalidArgument: For a name that is taken or none.

    >>> import gread
    >>> from dataclasses import dataclass
    >>> from typing import ClassVar
    >>> from gread.settings.model_records import unregister_model
    >>> from gread.zoo.classical_networks import GCN, GCNSettings
    >>> @dataclass(frozen=True, kw_only=True)
    ... class DeepSettings(GCNSettings):
    ...     model: ClassVar[str] = "deep-gcn"
    ...     layers: int = 8
    >>> facts = {"source": "ours", "rule": "as GCN", "settings": DeepSettings, "network": GCN}
    >>> _ = gread.register_model(gread.models.ModelRecord("deep-gcn", "deep GCN", "classical", **facts))
    >>> gread.Config.of("deep-gcn").model.layers
    8
    >>> unregister_model("deep-gcn")
    """
    return models.add(record)


def unregister_model(name: str) -> None:
    """Take a registered network out again."""
    models.remove(name)


# ---------------------------------------------------------------------- stacked settings
# `StackedSettings`: the settings of a network that is a stack of layers.


@dataclass(frozen=True, kw_only=True)
class StackedSettings(ModelSettings):
    """Settings of a stack of `layers` layers, the last of which gives the logits."""

    layers: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_at_least(1, "layers")

    def widths(self, features: int, classes: int) -> list[int]:
        """Columns before and after every layer: `layers` + 1 numbers."""
        return [features, *(self.layers - 1) * [self.hidden], classes]
