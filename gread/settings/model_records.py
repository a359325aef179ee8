"""`ModelRecord`: a network that can be trained by name; those that are built in are loaded when they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from gread.settings.model_settings import ModelSettings
from rdgraph.errors import InvalidArgument
from rdgraph.records import Records

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Families of networks, in the order of their listing.
FAMILIES = ("simple", "classical", "heterophily", "oversmoothing", "continuous", "reaction-diffusion", "tuned")
#: Modules with networks of their own; each has a tuple RECORDS.
PLACES = (
    "gread.models.gread_model",
    "gread.zoo.mlp",
    "gread.zoo.gcn",
    "gread.zoo.chebnet",
    "gread.zoo.gat",
    "gread.zoo.graph_sage",
    "gread.zoo.sgc",
    "gread.zoo.tuned",
    "gread.zoo.mixhop",
    "gread.zoo.geom_gcn",
    "gread.zoo.fagcn",
    "gread.zoo.gprgnn",
    "gread.zoo.h2gcn",
    "gread.zoo.wrgat",
    "gread.zoo.ggcn",
    "gread.zoo.linkx",
    "gread.zoo.glognn",
    "gread.zoo.acmgcn",
    "gread.zoo.pairnorm",
    "gread.zoo.jknet",
    "gread.zoo.gcnii",
    "gread.zoo.graphcon",
    "gread.zoo.cgnn",
    "gread.zoo.gde",
    "gread.zoo.grand",
    "gread.zoo.grand_plus",
    "gread.zoo.blend",
    "gread.zoo.acmp",
    "gread.zoo.sheaf",
    "gread.zoo.graff",
)


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

    >>> record = find_model("gat")
    >>> record.family, record.settings().heads
    ('classical', 8)
    """

    name: str
    title: str
    family: str
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

    >>> find_model("gcn").title
    'GCN'
    """
    return models.find(name)


def register_model(record: ModelRecord) -> ModelRecord:
    """Take up a network of one's own under a name that is free; `train`, presets and the command line then know it.

    Args:
        record: The network with its settings.

    Returns:
        The record.

    Raises:
        InvalidArgument: For a name that is taken or none.

    >>> from dataclasses import dataclass
    >>> from typing import ClassVar
    >>> from gread.settings.config import Config
    >>> from gread.zoo.gcn import GCN, GCNSettings
    >>> @dataclass(frozen=True, kw_only=True)
    ... class DeepSettings(GCNSettings):
    ...     model: ClassVar[str] = "deep-gcn"
    ...     layers: int = 8
    >>> _ = register_model(ModelRecord("deep-gcn", "deep GCN", "classical", "ours", "as GCN", DeepSettings, GCN))
    >>> Config.of("deep-gcn").model.layers
    8
    >>> unregister_model("deep-gcn")
    """
    return models.add(record)


def unregister_model(name: str) -> None:
    """Take a registered network out again."""
    models.remove(name)
