"""A study from outside: a plugin module registers one, and the command line runs it like those of the package."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import studies
from rdgraph.errors import InvalidArgument, MissingDependency, UnknownName
from studies.cli import app as cli
from studies.registered_studies import STUDIES
from studies.runs import libraries
from studies.runs.index import read_entry
from studies.runs.tables import read_rows
from tests.paths import ROOT

PLUGIN = '''
"""How fast the modes of a path decay under diffusion: a study that another package brings."""

import numpy as np
from matplotlib.figure import Figure

import studies


def settings(small):
    return {"nodes": 4 if small else 40, "alpha": 0.5}


def run(run):
    n, alpha = run.settings["nodes"], run.settings["alpha"]
    lam = 1 - np.cos(np.pi * np.arange(n) / (n - 1))
    rows = run.part("rates", lambda: [{"lam": float(x), "rate": float(-alpha * x)} for x in lam])
    figure = Figure()
    figure.subplots().plot([row["lam"] for row in rows], [row["rate"] for row in rows])
    run.figure("rates", figure, "Rates over eigenvalues.", rows)
    run.table("rates", rows, "The rates.")
    run.verdict("No mode grows.", "holds" if max(row["rate"] for row in rows) <= 0 else "fails", "The table.")
    run.results(rows)


studies.register_study(
    studies.Study("path-decay", "Decay on a path", "How fast do the modes of a path decay?", run, settings)
)
'''


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    (tmp_path / "decay_plugin.py").write_text(PLUGIN, encoding="utf-8")
    return tmp_path


@pytest.mark.slow
def test_a_study_from_outside_runs_on_the_command_line(plugin: Path) -> None:
    """In a process of its own, which imports the module and then is the command line."""
    program = "import decay_plugin; from studies.cli.app import main; main()"
    place = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(plugin)]), "COLUMNS": "200"}
    words = ["study", "path-decay", "--small", "--out", str(plugin / "run")]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, *words], env=place, cwd=plugin, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    folder = plugin / "run"
    assert done.stdout.splitlines() == ["1 verdict: 1 holds", f"wrote {folder / 'report.html'}"]
    assert (folder / "state").read_text() == "done\n"
    config = tomllib.loads((folder / "config.toml").read_text(encoding="utf-8"))
    assert (config["study"], config["settings"]) == ("path-decay", {"nodes": 4, "alpha": 0.5})
    assert [row["rate"] for row in read_rows(folder / "results.csv")] == pytest.approx([0.0, -0.25, -0.75, -1.0])
    entry = read_entry(folder, plugin)
    assert (entry.title, entry.small, [v.answer for v in entry.verdicts]) == ("Decay on a path", True, ["holds"])
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert '<button type="button">λ</button>' in page
    assert "rdgraph study path-decay --small --seed 0" in page


@pytest.fixture
def registered() -> Iterator[studies.Study]:
    study = studies.Study("two-and-two", "A sum", "What is 2 + 2?", lambda run: run.results([{"x": 4}]), extra="torch")
    yield studies.register_study(study)
    studies.unregister_study("two-and-two")


def test_a_registered_study_is_listed_and_found(registered: studies.Study) -> None:
    assert studies.find_study("two-and-two") is registered
    shown = CliRunner(env={"COLUMNS": "200"}).invoke(cli.app, ["study"])
    assert "two-and-two" in shown.stdout
    assert list(STUDIES)[-1] == "two-and-two"
    unknown = CliRunner().invoke(cli.app, ["study", "two-and-tow"])
    assert isinstance(unknown.exception, UnknownName)
    assert "did you mean 'two-and-two'" in str(unknown.exception)


def test_the_extra_is_asked_for_before_anything_is_written(
    registered: studies.Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(libraries.EXTRAS, "torch", ("no_such_library",))  # type: ignore[arg-type]
    run = CliRunner().invoke(cli.app, ["study", "two-and-two", "--out", str(tmp_path / "x")])
    assert isinstance(run.exception, MissingDependency)
    assert "the study two-and-two needs no_such_library" in str(run.exception)
    assert not (tmp_path / "x").exists()


def test_registration_is_checked(registered: studies.Study) -> None:
    def body(run: studies.StudyRun) -> None:
        run.results([])

    with pytest.raises(InvalidArgument, match="'two-and-two' is taken"):
        studies.register_study(registered)
    with pytest.raises(InvalidArgument, match="expected a Study, got function"):
        studies.register_study(body)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="expected an extra among torch, gread"):
        studies.register_study(studies.Study("x", "X", "Why?", body, extra="numpy"))
    with pytest.raises(InvalidArgument, match="a study's name"):
        studies.Study("no name", "X", "Why?", body)
    with pytest.raises(InvalidArgument, match="a title and a question"):
        studies.Study("x", "X", " ", body)
    with pytest.raises(UnknownName, match="expected a registered study, got 'x'"):
        studies.unregister_study("x")


@pytest.mark.parametrize("small", [True, False])
def test_every_study_of_the_package_has_settings_and_a_question(small: bool) -> None:
    for study in STUDIES.values():
        assert study.question.endswith("?")
        assert study.config(small=small).toml()
