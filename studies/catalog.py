"""The studies by name. A study is a module with NAME, TITLE, QUESTION and `run(run)`, loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

from rdgraph.errors import UnknownName
from studies import libraries

if TYPE_CHECKING:
    from studies.run import Run


class Study(Protocol):
    """What a study's module offers; `settings(small)`, which may be missing, gives its resolved settings."""

    NAME: str
    TITLE: str
    QUESTION: str

    def run(self, run: Run) -> None:
        """Do the study: compute parts, draw figures, write what was found."""


#: Name of a study -> its module.
STUDIES: Mapping[str, str] = {
    "grid": "studies.grid",
    "oversmoothing": "studies.oversmoothing",
    "trained-energy": "studies.trained_energy",
    "response": "studies.response",
    "discretisation": "studies.discretisation",
    "datasets": "studies.datasets",
}
#: Studies that train networks, and the extra they need; the others need torch, if anything.
EXTRAS: Mapping[str, str] = {"trained-energy": "gread"}


def load(name: str) -> Study:
    """The study of that name.

    >>> load("grid").NAME
    'grid'
    """
    if name not in STUDIES:
        raise UnknownName("study", name, STUDIES)
    try:
        return cast("Study", import_module(STUDIES[name]))
    except ModuleNotFoundError as problem:
        extra = EXTRAS.get(name, "torch")
        if problem.name not in libraries.EXTRAS[extra]:
            raise
        raise libraries.missing(str(problem.name), f"the study {name}", extra) from None


def settings_of(study: Study, small: bool) -> dict[str, Any]:
    """The numbers a study runs with, in its small or its full mode; {} for a study without `settings`."""
    return dict(study.settings(small)) if hasattr(study, "settings") else {}
