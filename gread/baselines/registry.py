"""The compared methods by name: how each is built, its settings, its source.

A method is a plain module (`build`), or an equation that `gread.models.gread_model` runs as it runs GREAD (`equation`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from gread.baselines.classical import GAT, GCN, GATSettings, GCNSettings
from gread.baselines.heterophily import H2GCN, H2GCNSettings
from gread.baselines.layered import Layered, LayeredSettings
from gread.settings.gread_settings import GreadSettings
from rdgraph.errors import InvalidArgument, UnknownName


@dataclass(frozen=True)
class Baseline:
    """One method: a builder (settings, features, classes) -> module with its settings, or an equation."""

    name: str
    family: str
    source: str
    settings: type[LayeredSettings] | None = None
    build: Callable[[Any, int, int], Layered] | None = None
    equation: GreadSettings | None = None

    def __post_init__(self) -> None:
        if (self.equation is None) == (self.build is None) or (self.build is None) != (self.settings is None):
            raise InvalidArgument(
                f"expected a builder with settings or an equation for {self.name}, got another choice"
            )


_MEMBERS = (
    Baseline("GCN", "classical", "Kipf and Welling, ICLR 2017; layers of torch-geometric", GCNSettings, GCN),
    Baseline("GAT", "classical", "Velickovic et al., ICLR 2018; layers of torch-geometric", GATSettings, GAT),
    Baseline("H2GCN", "heterophily", "Zhu et al., NeurIPS 2020", H2GCNSettings, H2GCN),
    Baseline(
        "GRAND", "continuous",
        "Chamberlain et al., ICML 2021: dH/dt = sigmoid(alpha) (S - I) H, S attention computed from H(0) and frozen",
        equation=GreadSettings(reaction="diffusion", adjacency="soft"),
    ),
)  # fmt: skip

#: Name of a method -> the method.
zoo: Mapping[str, Baseline] = {member.name: member for member in _MEMBERS}


def find_baseline(name: str) -> Baseline:
    """The method of that name.

    >>> find_baseline("H2GCN").family
    'heterophily'
    """
    if name not in zoo:
        raise UnknownName("baseline", name, zoo)
    return zoo[name]


def make_baseline(name: str, *, features: int, classes: int, **settings: Any) -> Layered:
    """The network of that name, its parameters drawn from torch's generator; settings that it has not are errors.

    >>> make_baseline("H2GCN", features=4, classes=2, hidden=8, rounds=1).decoder.in_features
    24
    """
    found = find_baseline(name)
    if found.build is None or found.settings is None:
        raise InvalidArgument(
            f"expected a method that is a module of its own, got {name}; train its `equation` instead"
        )
    known = [f.name for f in fields(found.settings)]
    for setting in settings:
        if setting not in known:
            raise UnknownName(f"setting of {name}", setting, known)
    return found.build(found.settings(**settings), features, classes)
