"""The door of analysis and of studies: names, docstrings, and systems given as text, as a name, as a `System`."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import analysis
import rdgraph as rd
from analysis import plots
from analysis.phases.diagram import roughness_borders, stability_borders, swept_names
from analysis.phases.reaction_grid import reaction_fates
from analysis.spectra import sensitivity
from analysis.verdicts.energy_fates import check_symbol, make_symbols
from analysis.verdicts.statements import Reaction
from rdgraph.systems.system import System
from tests.doors import DOORS, public_names
from tests.paths import ROOT

PACKAGES = ("analysis", "studies")
NAMES = [(package, name) for package in PACKAGES for name in public_names(package)]


def modules(package: Any) -> list[str]:
    return [found.name for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]


# ---------------------------------------------------------------------- names
@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_opens_and_is_no_module(package: str) -> None:
    named = public_names(package)
    assert {name: value.__name__ for name, value in named.items()} == {name: name for name in named}
    parts = {part for module in modules(importlib.import_module(package)) for part in module.split(".")}
    assert set(named) & parts == set()


@pytest.mark.parametrize("door", DOORS)
def test_a_door_loads_nothing_until_it_is_used(door: str) -> None:
    program = f"import json, sys, {door}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(json.loads(done.stdout))
    assert loaded & {"torch", "numpy", "scipy", "sympy", "matplotlib", "rich"} == set()


@pytest.mark.parametrize(("package", "name"), NAMES)
def test_every_public_name_is_documented(package: str, name: str) -> None:
    """One line, then Args, Returns and an example for functions; Attributes or Args for records."""
    value: Any = public_names(package)[name]
    text = inspect.getdoc(value) or ""
    assert text.split("\n")[0].endswith(".")
    if inspect.isclass(value):
        fields = list(getattr(value, "__dataclass_fields__", {}))
        listed = [field for field in fields if re.search(rf"^ +{field}: ", text, re.MULTILINE)]
        assert listed == fields
        assert "Example:" in text
        return
    parameters = list(inspect.signature(value).parameters)
    assert [p for p in parameters if re.search(rf"^ +{p}: ", text, re.MULTILINE)] == parameters
    assert ("Returns:" in text) == (inspect.signature(value).return_annotation != "None")
    assert "Example:" in text
    assert ">>>" in text or "    See `" in text


# ---------------------------------------------------------------------- systems as text
TEXT = "-alpha*L@H + beta*(A@H - A@A@H)"
NUMBERS = {"alpha": 0.5, "beta": 1.0}
WINDOW = ((0.0, 1.0), (0.0, 2.0))
LAM = np.array([0.25, 0.5, 2.0])
GRAPH = rd.generators.path(4)
OP = GRAPH.operator("symmetric", dtype=torch.float64)
ROW = GRAPH.operator("row", dtype=torch.float64)
START = torch.tensor([[1.0], [0.0], [2.0], [0.5]], dtype=torch.float64)
AC = "-alpha*L@H + beta*(H - H**3)"
NAMED = ("alpha", "beta")

#: A call of every function of analysis that takes a system, with the name and the text of one, and a number of it.
CALLS: dict[str, tuple[str, str, Callable[[Any], Any]]] = {
    "gain_at": ("BS", TEXT, lambda s: analysis.gain_at(s, LAM, T=1.0, values=NUMBERS)),
    "response_curves": (
        "BS", TEXT,
        lambda s: analysis.response_curves(s, T=1.0, values=NUMBERS, methods=[("rk4", 0.5)], points=5)[0].gain,
    ),
    "response_figure": (
        "BS", TEXT, lambda s: analysis.response_figure([s], T=1.0, values=NUMBERS)[1][1].gain,
    ),
    "empirical_gains": ("BS", TEXT, lambda s: analysis.empirical_gains(s, OP, NUMBERS, T=1.0).gain),
    "sensitivity": ("BS", TEXT, lambda s: sensitivity(s, OP, NUMBERS, T=1.0).values),
    "stability_borders": ("BS", TEXT, lambda s: [b.y for b in stability_borders(s, LAM, NAMED, WINDOW, values={})]),
    "roughness_borders": ("BS", TEXT, lambda s: [b.y for b in roughness_borders(s, LAM, NAMED, WINDOW, values={})]),
    "phase_diagram": (
        "BS", TEXT, lambda s: analysis.phase_diagram(s, OP, np.array([0.5, 1.0]), np.array([0.75]), T=5.0).simulated,
    ),
    "reaction_diagram": (
        "AC", AC, lambda s: analysis.reaction_diagram(s, ROW, np.ones(1), np.ones(1), T=5.0).betas,
    ),
    "reaction_fates": (
        "AC", AC,
        lambda s: [reaction_fates(s, ROW, NAMED, np.ones(1), np.ones(1), {}, (0.1, 0.9))[0][0].goal],
    ),
    "oversmoothing": ("BS", TEXT, lambda s: analysis.oversmoothing(s, GRAPH, NUMBERS, START, T=5.0).lam2),
    "make_symbols": ("BS", TEXT, lambda s: make_symbols(s)(LAM, NUMBERS)[0]),
    "check_symbol": ("BS", TEXT, lambda s: [] if check_symbol(s, OP) is None else [1.0]),
    "response": ("BS", TEXT, lambda s: plots.response(s, values=NUMBERS).axes[0].lines[0].get_ydata()),
    "phase": ("BS", TEXT, lambda s: plots.phase(s, GRAPH, points=3).axes[0].get_xlim()),
    "energy": (
        "BS", TEXT,
        lambda s: plots.energy(s, graph=GRAPH, T=1.0, values=NUMBERS).axes[0].lines[0].get_ydata(),
    ),
    "swept_names": ("BS", TEXT, lambda s: [len(name) for name in swept_names(s)]),
    "read": ("AC", AC, lambda s: Reaction.read(s, NUMBERS).f.coeffs),
}  # fmt: skip


def takes_a_system(function: Any) -> bool:
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False
    return bool({"system", "systems"} & set(parameters))


def functions_that_take_a_system() -> set[str]:
    """The public functions and methods of analysis with a parameter called system or systems."""
    found = set()
    for name in modules(analysis):
        module = importlib.import_module(name)
        for key, value in vars(module).items():
            if key.startswith("_") or getattr(value, "__module__", "") != name:
                continue
            if inspect.isclass(value):
                methods = inspect.getmembers(value, lambda m: inspect.isfunction(m) or inspect.ismethod(m))
                found |= {k for k, method in methods if not k.startswith("_") and takes_a_system(method)}
            elif takes_a_system(value):
                found.add(key)
    return found


def test_the_calls_are_those_of_every_function_that_takes_a_system() -> None:
    assert functions_that_take_a_system() == set(CALLS) | {"simulated_classes"}  # which gets what phase_diagram read


@pytest.mark.parametrize("name", CALLS)
def test_a_system_is_a_system_a_name_or_a_line_of_text(name: str) -> None:
    known, text, call = CALLS[name]
    assert isinstance(rd.parse(text), System)
    expected = np.asarray(call(rd.parse(text)), dtype=float)
    for given in (known, text, rd.catalogue[known]):
        assert np.array_equal(np.asarray(call(given), dtype=float), expected, equal_nan=True), given
    with pytest.raises(rd.errors.RdgraphError, match="expected"):
        call("A*H")
