"""A function from outside, taken through everything: parse, analyse, preflight, lower, solve, train, command line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import rdgraph as rd
from gread.classifier.estimators import GREADClassifier
from gread.datasets.embedded import karate
from rdgraph.errors import InvalidArgument, MissingDependency
from rdgraph.plugins import load_plugins
from rdgraph.vocabulary.functions import FUNCTIONS
from tests.paths import ROOT
from tests.warm_processes import run_warm

PLUGIN = '''"""A plugin: the Gaussian error linear unit, with what is known of it."""

import rdgraph

rdgraph.register_function(
    "gelu_outside",
    "x*(1 + erf(x/sqrt(2)))/2",
    torch="torch.nn.functional.gelu({})",
    range=(-0.17, None),
    slope=(-0.13, 1.13),
)
'''
EQUATION = "-alpha*L@H + beta*gelu_outside(H)"


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "gelu_plugin.py").write_text(PLUGIN, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("RDGRAPH_PLUGINS", "gelu_plugin")
    yield tmp_path
    sys.modules.pop("gelu_plugin", None)
    if "gelu_outside" in FUNCTIONS:
        rd.vocabulary.unregister_function("gelu_outside")


@pytest.mark.slow
def test_a_function_from_outside_goes_through_everything(plugin: Path) -> None:
    assert load_plugins() == ("gelu_plugin",)
    system = rd.parse(EQUATION)
    assert rd.parse(str(system)) == system
    found = rd.analyse(system)
    assert found.answers["one_sided"]["symmetric"] == "113*beta/100"
    assert found.answers["existence"] == "global"

    graph = rd.generators.ring(8)
    report = rd.preflight(system, graph=graph, values={"alpha": 1, "beta": 0.5}, T=1, method="rk4", step=0.25)
    assert report.outcome in ("safe", "undecided")
    assert any("0.565" in str(f) or "113/200" in str(f) for f in report.findings), report.findings

    field = rd.lower(system, graph.operator(dtype=torch.float64), {"alpha": 1.0, "beta": 0.5})
    state = torch.linspace(-1, 1, 16, dtype=torch.float64).reshape(8, 2)
    fine = rd.solve(field, state, [0.0, 1.0], method="dopri5", rtol=1e-9, atol=1e-11)
    coarse = rd.solve(field, state, [0.0, 1.0], method="rk4", step=0.1)
    torch.testing.assert_close(fine.final, coarse.final, rtol=1e-5, atol=1e-6)

    club = karate()
    masks = club.masks
    classifier = GREADClassifier(
        reaction=EQUATION, method="rk4", step=0.5, hidden=8, epochs=20, adjacency="original", learning_rate=0.05,
        device="cpu",
    ).fit(club.x, club.y, graph=club.graph, mask=masks.train[0], val_mask=masks.val[0])  # fmt: skip
    assert classifier.score(club.x, club.y) > 0.5


def _command(plugin: Path, *words: str, plugins: str = "gelu_plugin") -> subprocess.CompletedProcess[str]:
    environment = {
        "PYTHONPATH": f"{ROOT}:{plugin}", "PATH": "/usr/bin:/bin", "NO_COLOR": "1", "COLUMNS": "200",
        "RDGRAPH_PLUGINS": plugins,
    }  # fmt: skip
    return run_warm(["studies.cli.app", *words], ROOT, environment)


@pytest.mark.slow
def test_the_command_line_loads_plugins(plugin: Path) -> None:
    run = _command(plugin, "analyse", EQUATION, "--json")
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["one_sided"]["row"] == "113*beta/100"


@pytest.mark.slow
def test_the_command_line_without_the_plugin_refuses(plugin: Path) -> None:
    run = _command(plugin, "analyse", EQUATION, plugins="")
    assert run.returncode == 2
    assert "a known function" in run.stderr
    run = _command(plugin, "catalogue", plugins="not_there_at_all")
    assert run.returncode == 2
    assert "plugin not_there_at_all of RDGRAPH_PLUGINS" in run.stderr


@pytest.mark.parametrize("name", ["os;ls", "a-b", "..", "/tmp/x.py"])
def test_names_of_plugins_are_names_of_modules(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RDGRAPH_PLUGINS", name)
    with pytest.raises(InvalidArgument, match="names of modules"):
        load_plugins()


def test_entry_points_are_loaded_and_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A distribution on the path with the group `rdgraph.plugins`: a function is called, a broken one is told."""
    (tmp_path / "cube_package.py").write_text(
        "import rdgraph\n\ndef install():\n    rdgraph.register_function('cube_of_package', 'x**3')\n", encoding="utf-8"
    )
    about = tmp_path / "cube_package-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: cube-package\nVersion: 1.0\n", encoding="utf-8")
    points = about / "entry_points.txt"
    points.write_text("[rdgraph.plugins]\ncube = cube_package:install\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("RDGRAPH_PLUGINS", raising=False)
    try:
        assert load_plugins() == ("cube",)
        assert rd.parse("cube_of_package(H)").normal == rd.parse("H").normal ** 3
        points.write_text("[rdgraph.plugins]\ncube = cube_package:nobody\n", encoding="utf-8")
        with pytest.raises(MissingDependency, match=r"plugin cube .*cube_package:nobody"):
            load_plugins()
    finally:
        rd.vocabulary.unregister_function("cube_of_package")


def test_equations_import_nothing(plugin: Path) -> None:
    with pytest.raises(rd.errors.LanguageError):
        rd.parse("gelu_plugin(H)")
    assert "gelu_plugin" not in sys.modules
