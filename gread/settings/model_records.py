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
    "gread.zoo.gat",
    "gread.zoo.h2gcn",
    "gread.zoo.grand",
    "gread.zoo.grand_plus",
    "gread.zoo.graff",
    "gread.zoo.acmp",
    "gread.zoo.cgnn",
    "gread.zoo.graphcon",
    "gread.zoo.gde",
    "gread.zoo.blend",
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

    Raises:
        InvalidArgument: For a family that there is not, or settings of another name.
    """

    name: str
    title: str
    family: str
    source: str
    rule: str
    settings: type[ModelSettings]
    network: Callable[..., Any]
    published: str = ""

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

    >>> find_model("gcn").title
    'GCN'
    """
    return models.find(name)


def register_model(record: ModelRecord) -> ModelRecord:
    """Take up a network of one's own under a name that is free; `train`, presets and the command line then know it."""
    return models.add(record)


def unregister_model(name: str) -> None:
    """Take a registered network out again."""
    models.remove(name)
