"""The studies by name. A study is a module with NAME, TITLE, QUESTION and `run(run)`, loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import cast

from rdgraph.errors import UnknownName
from studies.runs import libraries
from studies.runs.run_folder import Study

#: Name of a study -> its module.
STUDIES: Mapping[str, str] = {
    "grid": "studies.grid.study",
    "oversmoothing": "studies.oversmoothing.study",
    "trained-energy": "studies.trained_energy.study",
    "response": "studies.response.study",
    "discretisation": "studies.discretisation.study",
    "datasets": "studies.datasets.study",
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
