"""`ModelRecord`: a network that can be trained by name; built-in ones are loaded on first use."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import KW_ONLY, dataclass, fields
from functools import cache, cached_property
from importlib import import_module
from importlib.resources import files
from typing import TYPE_CHECKING, Any, ClassVar

from rdgraph.errors import InvalidArgument, UnknownName
from rdgraph.records import Records

if TYPE_CHECKING:
    from collections.abc import Iterator


# ---------------------------------------------------------------------- model settings
@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """Settings common to all networks; `model` is the kind of network, whose batches may differ in the `free` settings.

    Args:
        hidden: Channels of the hidden states.
        input_dropout: The share of the features that is dropped in training.
        dropout: The share of hidden entries that is dropped.
        row_features: Whether the features of every node are first divided by their sum.

    Raises:
        InvalidArgument: For sizes and shares out of range.

    >>> import gread
    >>> gread.models.ModelSettings(hidden=16).dropout
    0.5
    """

    #: The name of the network with these settings; subclasses give theirs as `class Own(ModelSettings, model="own")`.
    model: ClassVar[str] = ""
    #: The least values of settings by name; subclasses add theirs as `class Own(ModelSettings, least={"depth": 1})`.
    least: ClassVar[Mapping[str, float]] = {"hidden": 1}
    #: Settings in which members of one batch may differ.
    free: ClassVar[tuple[str, ...]] = ("input_dropout", "dropout")

    hidden: int = 64
    input_dropout: float = 0.5
    dropout: float = 0.5
    row_features: bool = False

    def __init_subclass__(cls, model: str | None = None, least: Mapping[str, float] | None = None) -> None:
        super().__init_subclass__()
        cls.least = {**cls.least, **(least or {})}
        if model is not None:
            cls.model = model

    def __post_init__(self) -> None:
        for name, least in self.least.items():
            self.check_at_least(least, name)
        self.check_share("input_dropout", "dropout")

    @property
    def shape(self) -> Hashable:
        """The settings that must agree for two networks to be trained in one batch."""
        return self.model, tuple((f.name, getattr(self, f.name)) for f in fields(self) if f.name not in self.free)

    @cached_property
    def effort(self) -> int:
        """The approximate number of products with A in a pass; a batch computes as many as its largest member."""
        return 1

    @property
    def is_padded(self) -> bool:
        """Whether members with less effort cost as much as the one with the most."""
        return True

    # ------------------------------------------------------------------ checks of settings by name
    def check_at_least(self, least: float, *names: str) -> None:
        """Raise unless these settings are finite and at least `least`."""
        for name in names:
            check_at_least(name, getattr(self, name), least)

    def check_share(self, *names: str) -> None:
        """Raise unless these settings are in [0, 1)."""
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
        """Raise unless these settings are in the closed interval."""
        for name in names:
            if not least <= getattr(self, name) <= most:
                raise InvalidArgument(f"expected {least:g} <= {name} <= {most:g}, got {getattr(self, name)!r}")

    def check_one_of(self, name: str, known: tuple[str, ...]) -> None:
        """Raise unless a setting is one of the known words."""
        if getattr(self, name) not in known:
            raise UnknownName(name, str(getattr(self, name)), known)


def check_at_least(name: str, value: float, least: float) -> None:
    """Raise unless a number is finite and at least `least`."""
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
            "sheaf",
        )
    ),
)  # fmt: skip


@dataclass(frozen=True)
class ModelRecord:
    """A kind of network.

    Args:
        name: Its name on the command line and in files, such as "gcnii".
        title: Its name in print, such as "GCNII".
        family: One of `FAMILIES`.
        source: Its publication.
        rule: Its update rule in one line.
        settings: The class of its settings, whose `model` is the name.
        network: A `gread.models.batched_model.BatchedModel`, or a function with its arguments (settings, place,
            features=, classes=, seeds=).
        published: Its row in the table of the GREAD paper, "" for none.
        line: The graph dynamical system of which its layers are the steps, for identity weights, in the language of
            rdgraph; networks around an equation have it in the settings.

    Raises:
        InvalidArgument: For an unknown family, or settings of another name.

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
                "define a subclass of the settings for every name"
            )


#: What is printed of the networks of this package: module, name, title, family, rule, source, parameters, published.
NETWORKS = files("gread") / "data" / "networks.csv"


@cache
def printed_rows() -> tuple[dict[str, str], ...]:
    """The rows of the file of the networks of this package.

    >>> [row["title"] for row in printed_rows() if row["name"] == "gat"]
    ['GAT']
    """
    return tuple(csv.DictReader(io.StringIO(NETWORKS.read_text(encoding="utf-8"))))


def printed_records(*networks: tuple[Any, ...]) -> tuple[ModelRecord, ...]:
    """Records of networks of this package: settings, network and perhaps `line` are given, the rest is in the file."""
    rows, records = {row["name"]: row for row in printed_rows()}, []
    for settings, network, *line in networks:
        row = rows[settings.model]
        facts = {name: row[name] for name in ("title", "family", "source", "rule", "published")}
        records.append(ModelRecord(row["name"], **facts, settings=settings, network=network, line="".join(line)))
    return tuple(records)


def _built_in() -> Iterator[ModelRecord]:
    for module in PLACES:
        yield from import_module(module).RECORDS


#: The records of all networks by name.
models: Records[ModelRecord] = Records("model", _built_in)


def find_model(name: str) -> ModelRecord:
    """The network with that name.

    Args:
        name: Such as "gcn"; `rdgraph models` lists them.

    Returns:
        Its record: settings, network, family, source and rule.

    Raises:
        UnknownName: For an unknown name, with the closest known one.

    >>> import gread
    >>> gread.models.find_model("gcn").title
    'GCN'
    """
    return models.find(name)


def register_model(record: ModelRecord) -> ModelRecord:
    """Register your own network under a new name, for `train`, presets and the command line.

    Args:
        record: The network with its settings.

    Returns:
        The record.

    Raises:
        InvalidArgument: For a name that is taken or invalid.

    >>> import gread
    >>> from dataclasses import dataclass
    >>> from gread.settings.model_records import unregister_model
    >>> from gread.zoo.classical_networks import GCN, GCNSettings
    >>> @dataclass(frozen=True, kw_only=True)
    ... class DeepSettings(GCNSettings, model="deep-gcn"):
    ...     layers: int = 8
    >>> facts = {"source": "ours", "rule": "as GCN", "settings": DeepSettings, "network": GCN}
    >>> _ = gread.register_model(gread.models.ModelRecord("deep-gcn", "deep GCN", "classical", **facts))
    >>> gread.Config.of("deep-gcn").model.layers
    8
    >>> unregister_model("deep-gcn")
    """
    return models.add(record)


def unregister_model(name: str) -> None:
    """Remove a registered network."""
    models.remove(name)


# ---------------------------------------------------------------------- stacked settings
@dataclass(frozen=True, kw_only=True)
class StackedSettings(ModelSettings, least={"layers": 1}):
    """Settings of a stack of `layers` layers, the last of which gives the logits."""

    layers: int = 2

    def widths(self, features: int, classes: int) -> list[int]:
        """The numbers of columns before and after every layer: `layers` + 1 numbers."""
        return [features, *(self.layers - 1) * [self.hidden], classes]
