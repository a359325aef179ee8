"""One word for one argument, and few arguments by position, in everything that the doors of the packages offer."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import rdgraph as rd
from tests.doors import public_names

#: The most arguments that are passed by position.
MOST_POSITIONAL = 4
#: Records that users build; the others are answers and results, which only the library builds.
BUILT = {
    "rdgraph": ("Derivation", "Graph", "LearnedFunction", "LearnedValues", "Operator", "System", "Tableau"),
    "analysis": ("Measure",),
    "gread": (
        "Config", "GNNClassifier", "GREADClassifier", "GREADConv", "Masks", "ModelRecord", "NodeData", "RemoteFile",
        "Trial", "Variant",
    ),
}  # fmt: skip
#: The default of the networks is that of the paper and of their recorded trainings.
NETWORKS = {"GREADClassifier"}


def callables() -> Iterator[tuple[str, Callable[..., Any]]]:
    """The functions that the doors offer, those of `rd.plot`, `rd.testing` and `rd.generators`, and the records."""
    for package, built in BUILT.items():
        for name, value in public_names(package).items():
            if inspect.isfunction(value) or name in built:
                yield f"{package}.{name}", value
    for module in (rd.plot, rd.testing, rd.generators):
        for name in dir(module):
            if inspect.isfunction(value := getattr(module, name)) and not name.startswith("_"):
                yield f"{module.__name__}.{name}", value


CALLABLES = dict(callables())


def test_few_arguments_are_positional() -> None:
    positional = {
        name: [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        for name, value in CALLABLES.items()
        if (parameters := inspect.signature(value).parameters.values())
    }
    assert {name: given for name, given in positional.items() if len(given) > MOST_POSITIONAL} == {}


def test_numbers_are_values_and_kinds_are_kinds() -> None:
    assert [name for name, value in CALLABLES.items() if "coefficients" in inspect.signature(value).parameters] == []
    for name in ("choose_method", "fit", "lower", "preflight", "steady_states"):
        assert "values" in inspect.signature(public_names("rdgraph")[name]).parameters, name
    for name in ("parse", "conform"):
        assert "kinds" in inspect.signature(public_names("rdgraph")[name]).parameters, name


def test_the_system_comes_first() -> None:
    for name, value in CALLABLES.items():
        parameters = list(inspect.signature(value).parameters)
        if "system" in parameters:
            assert parameters[0] == "system", name


def test_one_normalisation_is_the_default() -> None:
    """Where a normalisation is not required; None leaves it open, "free" says that weights are as they are given."""
    defaults = {
        name: parameter.default
        for name, value in CALLABLES.items()
        if (parameter := inspect.signature(value).parameters.get("normalisation"))
        and parameter.default not in (parameter.empty, None, "free")
        and name.rpartition(".")[2] not in NETWORKS
    }
    assert len(defaults) > 5
    assert set(defaults.values()) == {"symmetric"}
