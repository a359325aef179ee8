"""`rdgraph conform`: exit codes, json, the report, and what is refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rdgraph.errors import InvalidArgument, MissingDependency
from studies.cli import app as cli
from studies.cli.conform_commands import load_layer
from tests.report_pages import visible_text

LAYER = "tests.rdgraph.infer.layers.layers:released_filter_bank"
PAPER = ["-alpha*L@H + beta*L@H", "--set", "alpha=0.5", "--set", "beta=0.25"]


def test_a_layer_that_differs_ends_in_one_and_leaves_a_report(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli.app, ["conform", LAYER, *PAPER, "--report", str(tmp_path / "report")])
    assert done.exit_code == 1
    assert "the layer computes: -alpha*L@H + beta*(I + A)@H" in done.stdout
    page = visible_text(tmp_path / "report")
    assert "The layer differs from -alpha*L@H + beta*L@H. First hint: operator: I + A in place of L" in page
    assert {"witness.png", "formulas.png"} <= {p.name for p in (tmp_path / "report/figures").iterdir()}
    assert "permutation equivariance" in page
    rows = (tmp_path / "report/probes.csv").read_text(encoding="utf-8")
    assert '"star"' in rows
    assert '"differs"' in rows


def test_a_layer_that_conforms_ends_in_zero() -> None:
    words = ["conform", LAYER, "-alpha*L@H + beta*(H + A@H)", "--json", "--normalisation", "row", "--self-loops", "no"]
    done = CliRunner().invoke(cli.app, words)
    found = json.loads(done.stdout)
    assert (done.exit_code, found["conforms"], found["proof"]) == (0, True, True)
    assert found["reading"].endswith("alpha = 0.5, beta = 0.25")


def test_without_an_equation_the_line_is_looked_for() -> None:
    done = CliRunner().invoke(cli.app, ["conform", LAYER, "--graphs", "simple"])
    assert done.exit_code == 0
    assert done.stdout.startswith("-0.25*H + 0.75*A@H (row normalisation without self-loops)")


def test_how_layers_are_named(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text("def make():\n    return lambda x, edge_index: 2*x\n", encoding="utf-8")
    assert load_layer(f"{path}:make")(3, None) == 6
    with pytest.raises(InvalidArgument, match="expected MODULE:OBJECT"):
        load_layer("torch")
    with pytest.raises(InvalidArgument, match="has no nothing"):
        load_layer("math:nothing")
    with pytest.raises(MissingDependency, match="cannot import the module no_such_module_here"):
        load_layer("no_such_module_here:layer")
    with pytest.raises(InvalidArgument, match=r"missing\.py"):
        load_layer("missing.py:layer")


FROM_FILES = {
    "a dataclass": """
from __future__ import annotations
from dataclasses import dataclass

@dataclass
class Doubled:
    factor: float = 2.0
    def __call__(self, x, edge_index):
        return self.factor*x
""",
    "a layer of PyTorch Geometric": """
from torch_geometric.nn import MessagePassing

class Doubled(MessagePassing):
    def __init__(self):
        super().__init__(aggr="add")
    def forward(self, x, edge_index):
        return 2*x + self.propagate(edge_index, x=x)
    def message(self, x_j):
        return 0*x_j
""",
}


@pytest.mark.parametrize("kind", FROM_FILES)
def test_classes_of_a_file_find_their_module(kind: str, tmp_path: Path) -> None:
    if "Geometric" in kind:
        pytest.importorskip("torch_geometric")
    path = tmp_path / "json.py"  # a name that is taken
    path.write_text(FROM_FILES[kind], encoding="utf-8")
    before = set(sys.modules)
    done = CliRunner().invoke(cli.app, ["conform", f"{path}:Doubled", "2*H", "--graphs", "simple", "--channels", "2"])
    assert done.exit_code == 0, done.output
    assert sys.modules["json"] is json
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) == str(path):
            del sys.modules[name]


def test_a_file_that_fails_leaves_no_module(tmp_path: Path) -> None:
    path = tmp_path / "failing_layer.py"
    path.write_text("raise RuntimeError('no')", encoding="utf-8")
    with pytest.raises(InvalidArgument, match=r"failing_layer.py cannot be run: RuntimeError: no"):
        load_layer(f"{path}:layer")
    assert "failing_layer" not in sys.modules
