"""The networks that are compared, their settings, and the graphs they are trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gread.datasets.node_data import NodeData
from gread.datasets.synthetic import csbm
from gread.settings.config import Config
from gread.settings.gread_settings import GreadSettings
from gread.settings.model_records import find_model
from studies.oversmoothing.network_states import fitting_config
from studies.runs.tables import MutableRow

LINEAR, CLASSICAL = ("BS", "ST", "FB", "FB*"), ("F", "AC", "Z")
#: The equation that the reactions are compared with.
PLAIN = "diffusion"
#: The network around these equations.
EQUATION = "gread"
#: Settings of the study that are settings of a network, and those of them that only an equation takes from it.
SHARED = ("epochs", "learning_rate", "weight_decay", "dropout", "input_dropout", "hidden", "method", "time", "step")
CHOSEN = ("adjacency", "normalisation", "self_loops", "relu", "alpha", "beta")


@dataclass(frozen=True)
class Subject:
    """A kind of network: its name in print and, for a reaction, whether beta is a scalar (SC) or a vector (VC).

    `model` is the network by name; that of an equation is GREAD.
    """

    name: str
    kind: str = "-"
    model: str = field(default=EQUATION, compare=False)

    @classmethod
    def of(cls, model: str) -> Subject:
        """The subject of a network by name.

        >>> Subject.of("h2gcn").name
        'H2GCN'
        """
        return cls(find_model(model).title, model=model)

    @property
    def is_compared(self) -> bool:
        """Whether it is a network by name, or plain diffusion, beside the reactions."""
        return self.kind == "-"

    @property
    def is_equation(self) -> bool:
        """Whether it is an equation of the catalogue rather than a network by name."""
        return self.model == EQUATION and self != Subject.of(EQUATION)

    @property
    def key(self) -> str:
        """A name for files.

        >>> Subject("FB*", "SC").key, Subject.of("gcn").key
        ('FBstar-SC', 'gcn')
        """
        name = self.name.replace("*", "star") if self.is_equation else self.model
        return name if self.is_compared else f"{name}-{self.kind}"


def make_subjects(settings: Mapping[str, Any]) -> tuple[Subject, ...]:
    """The networks by name, plain diffusion, and the reactions with a scalar and with a vector beta.

    >>> [subject.key for subject in make_subjects({"models": ["gcn"], "reactions": ["BS"]})]
    ['gcn', 'diffusion', 'BS-SC', 'BS-VC']
    """
    reactions = tuple(dict.fromkeys(settings["reactions"]))
    return (
        *(Subject.of(name) for name in dict.fromkeys(settings["models"])),
        *([Subject(PLAIN)] if reactions else []),
        *(Subject(name, kind) for name in reactions for kind in ("SC", "VC")),
    )


def make_graphs(settings: Mapping[str, Any], seeds: Sequence[int]) -> list[NodeData]:
    """The appendix' cSBM for every seed, with one stratified split."""
    s = settings
    options: dict[str, Any] = {name: s[name] for name in ("within", "between", "sigma")}
    made = (
        csbm(seed, n=sum(s["sizes"]), classes=len(s["sizes"]), signal=s["means"][-1], features=s["channels"], **options)
        for seed in seeds
    )
    return [one.stratified(1, train=s["train"], val=s["val"], seed=k) for one, k in zip(made, seeds, strict=True)]


def configuration(subject: Subject, settings: Mapping[str, Any]) -> Config:
    """The settings of a subject: a network by name takes those it has, as many layers as the flows have steps.

    >>> published = {"epochs": 3, "time": 4.0, "step": 1.0, "method": "euler", "adjacency": "original", "dropout": 0.0}
    >>> [configuration(Subject("BS", kind), published).model.beta for kind in ("SC", "VC")]
    ['scalar', 'channel']
    >>> configuration(Subject.of("gcn"), published).model.layers
    4
    """
    given = {name: settings[name] for name in (*SHARED, *CHOSEN) if name in settings}
    if subject.is_equation:
        kinds = {"SC": {"beta": "scalar"}, "VC": {"beta": "channel"}, "-": {}}
        return Config.of(EQUATION, **given, reaction=subject.name).updated(kinds[subject.kind])
    has_flow = issubclass(find_model(subject.model).settings, GreadSettings)
    wanted = (*SHARED, "relu") if has_flow else SHARED
    own = {name: settings[name] for name in (*wanted, "rounds", "heads") if name in settings}
    return fitting_config(
        subject.model, {**own, "layers": layer_count(settings), "attention_dropout": settings["dropout"]}
    )


def layer_count(settings: Mapping[str, Any]) -> int:
    """Steps of Euler's method, and layers of the networks beside it."""
    return round(settings["time"] / settings["step"])


def named(subject: Subject) -> MutableRow:
    """The columns that name a subject."""
    return {"network": subject.name, "beta": subject.kind}
