"""The networks that are compared, their settings, and the graphs they are trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gread.baselines.fitting import Build
from gread.baselines.registry import find_baseline, make_baseline
from gread.datasets.node_data import NodeData
from gread.datasets.synthetic import csbm
from gread.settings.config import Config
from gread.settings.gread_settings import GreadSettings
from studies.runs.tables import MutableRow

BASELINES, LINEAR, CLASSICAL = (
    ("GCN", "GAT", "H2GCN", "GRAND", "diffusion"),
    ("BS", "ST", "FB", "FB*"),
    ("F", "AC", "Z"),
)
REACTIONS = LINEAR + CLASSICAL
#: Settings of the study that are settings of a network, and those of them that an equation of the zoo has of its own.
SHARED = ("epochs", "learning_rate", "weight_decay", "dropout", "input_dropout", "hidden", "method", "time", "step")
CHOSEN = ("adjacency", "normalisation", "self_loops", "relu", "alpha", "beta")


@dataclass(frozen=True)
class Subject:
    """A kind of network: its name and, for a reaction, whether beta is a scalar (SC) or a vector (VC)."""

    name: str
    kind: str = "-"

    @property
    def key(self) -> str:
        """A name for files.

        >>> Subject("FB*", "SC").key
        'FBstar-SC'
        """
        name = self.name.replace("*", "star")
        return name if self.kind == "-" else f"{name}-{self.kind}"

    @property
    def is_module(self) -> bool:
        """Whether it is a network of layers of its own; otherwise an equation."""
        return self.name in ("GCN", "GAT", "H2GCN")


SUBJECTS = (*map(Subject, BASELINES), *(Subject(name, kind) for name in REACTIONS for kind in ("SC", "VC")))


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
    """The settings of a subject; of a module those of its training count.

    >>> published = {"epochs": 3, "time": 4.0, "step": 1.0, "method": "euler", "adjacency": "original"}
    >>> [configuration(Subject("BS", kind), published).model.beta for kind in ("SC", "VC")]
    ['scalar', 'channel']
    """
    given = {name: settings[name] for name in (*SHARED, *CHOSEN) if name in settings}
    if subject.name == "GRAND":
        equation = find_baseline("GRAND").equation
        return Config(equation or GreadSettings()).updated({k: v for k, v in given.items() if k in (*SHARED, "relu")})
    if subject.is_module:
        return Config().updated({k: v for k, v in given.items() if k in SHARED})
    kinds = {"SC": {"beta": "scalar"}, "VC": {"beta": "channel"}, "-": {}}
    return Config().updated({**given, "reaction": subject.name, **kinds[subject.kind]})


def builder(subject: Subject, settings: Mapping[str, Any]) -> Build:
    """What makes a module of the zoo: as many layers as the flows have steps, H2GCN as many rounds as fit."""
    options = {name: settings[name] for name in ("hidden", "input_dropout", "dropout")}
    own: dict[str, dict[str, Any]] = {
        "GCN": {"layers": layer_count(settings)},
        "GAT": {"layers": layer_count(settings), "heads": settings["gat_heads"], "attention_dropout": 0.0},
        "H2GCN": {"rounds": settings["rounds"]},
    }
    return lambda features, classes: make_baseline(
        subject.name, features=features, classes=classes, **options, **own[subject.name]
    )


def layer_count(settings: Mapping[str, Any]) -> int:
    """Steps of Euler's method, and layers of the networks beside it."""
    return round(settings["time"] / settings["step"])


def named(subject: Subject) -> MutableRow:
    """The columns that name a subject."""
    return {"network": subject.name, "beta": subject.kind}
