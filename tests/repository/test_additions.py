"""One of each thing that CONTRIBUTING tells how to add, in a copy of the packages, by the files it names alone."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import rdgraph.vocabulary.function_records as function_records
import rdgraph.vocabulary.methods as method_records
from rdgraph.systems.catalogue import catalogue
from studies.registered_studies import study_records
from tests.paths import ROOT

PACKAGES = ("rdgraph", "analysis", "gread", "studies")

FUNCTION = """\
    ElementwiseFunction(
        "arctan", sp.atan, lambda x: 1 / (1 + x**2), r"\\arctan" + _ROUND,
        numpy=np.arctan, torch="torch.atan({0})", c="atan(x)", ball=lambda x: arb(x).atan(),
        range=Span.of(-sp.pi / 2, sp.pi / 2), slope=Span(sp.S.Zero, sp.S.One, has_upper=True),
        monotone=Monotone.INCREASING, at_zero=sp.S.Zero, reflection=lambda x, y: -y, inverse=sp.tan,
    ),
)  # fmt: skip
"""
METHOD = """\
        _fixed("ralston", [[], ["2/3"]], ["1/4", "3/4"], 2, "Ralston's method of least error"),
    )  # fmt: skip
"""
SYSTEM = """
[[system]]
name = "bent"
title = "Diffusion with a bent reaction"
equation = "-alpha*L@H + beta*arctan(A@H)"
source = "a test"
"""
STUDY = {
    "__init__.py": '"""A study that a test adds."""\n',
    "study.toml": '[study]\ntitle = "A sum"\nquestion = "What is 2 + 2?"\n',
    "study.py": '''"""A sum."""


def settings(small):
    return {"terms": 2 if small else 4}


def run(run):
    run.results(run.part("sum", lambda: [{"total": 2 * run.settings["terms"]}]))
''',
}

#: What is then asked of all four; whatever knows of functions, methods, systems and studies knows the new ones.
USES = """
import sys
import numpy as np
import torch
import rdgraph as rd
from rdgraph.infer.formulas.slopes_and_inverses import inverses
from rdgraph.infer.formulas.slopes_and_inverses import SLOPES
from studies.registered_studies import find_study, study_records
from studies.explorer.page_text import language
from studies.explorer.page_text import catalogue_entries, page_text

system = rd.catalogue["bent"]
print("bound", rd.lipschitz_global(system).value)
ones = np.ones(1)
print("slope", SLOPES["arctan"](ones, np.arctan(ones))[0], language()["function_slopes"]["arctan"])
print("inverse", *inverses()["arctan"](np.array([0.5, np.arctan(3.0), 2.0])))
print("limit", rd.step_limit("-alpha*L@H", "ralston").value)
H0 = torch.linspace(-1, 1, 5, dtype=torch.float64)[:, None]
ring = rd.generators.ring(5).operator("symmetric", dtype=torch.float64)
field = rd.lower(system, ring, {"alpha": 1.0, "beta": 0.5})
few, many = (rd.solve(field, H0, t=[0.0, 1.0], method="ralston", step=step).states[-1] for step in (0.05, 0.025))
exact = rd.solve(field, H0, t=[0.0, 1.0], method="rk4", step=0.01).states[-1]
print("order", round(float(torch.log2((few - exact).abs().max() / (many - exact).abs().max()))))
(bundle,) = (entry["bundle"] for entry in catalogue_entries() if entry["name"] == "bent")
print("bundle", bundle["text"], "arctan" in page_text("bent"))
print("study", find_study("mine").question, [record.name for record in study_records()].index("mine"))
"""


def _run(words: list[str], folder: Path, environment: Mapping[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _replaced(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, (path, old)
    path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.mark.slow
def test_a_reaction_a_study_an_integrator_and_an_activation_take_one_record_each(tmp_path: Path) -> None:
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package)
    _replaced(_copied(tmp_path, function_records.__file__), ")  # fmt: skip\n", FUNCTION)
    _replaced(_copied(tmp_path, method_records.__file__), "    )  # fmt: skip\n\n", METHOD + "\n")
    with (tmp_path / "rdgraph/data/catalogue.toml").open("a", encoding="utf-8") as file:
        file.write(SYSTEM)
    (tmp_path / "studies/mine").mkdir()
    for name, text in STUDY.items():
        (tmp_path / "studies/mine" / name).write_text(text, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "COLUMNS": "200"}
    said = dict(line.split(" ", 1) for line in _run(["-c", USES], tmp_path, environment).splitlines())
    assert said["bound"] == "2*alpha + beta"
    slope, source = said["slope"].split(" ", 1)
    assert float(slope) == 0.5
    assert "x*x" in source or "Math.pow(x, 2)" in source
    inside, near, outside = map(float, said["inverse"].split())
    assert (inside, near) == pytest.approx((math.tan(0.5), 3.0), rel=1e-12)
    assert math.isnan(outside)
    assert said["limit"] == "1/alpha"
    assert said["order"] == "2"
    assert said["bundle"] == "-alpha*L@H + beta*arctan(A@H) True"
    assert said["study"].startswith("What is 2 + 2? ")
    _run(["-m", "studies.cli.app", "study", "mine", "--small", "--out", "done"], tmp_path, environment)
    assert (tmp_path / "done/results.csv").read_text(encoding="utf-8").splitlines() == ['"total"', "4"]


def _copied(folder: Path, file: str) -> Path:
    """The copy of a file of the packages."""
    return folder / Path(file).relative_to(ROOT)


def test_every_study_is_known_by_the_record_beside_its_module() -> None:
    for record in study_records():
        path = ROOT / f"{record.module.replace('.', '/')}.py"
        assert path.is_file(), record.module
        assert "\ndef run(" in path.read_text(encoding="utf-8") or "\nrun = " in path.read_text(encoding="utf-8")
    assert len({record.name for record in study_records()}) == len(study_records()) >= 19


def test_names_and_questions_of_studies_are_known_without_sympy() -> None:
    program = (
        "import sys; from studies.registered_studies import study_records; "
        "print(len(study_records()), 'sympy' in sys.modules)"
    )
    found = _run(["-c", program], ROOT, os.environ).split()
    assert found == [str(len(study_records())), "False"]
    assert "bent" not in catalogue
