"""`rdgraph distil`: a run folder with its page for a training and for a layer, and what is refused."""

from __future__ import annotations

import csv
import json
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from gread.formulas.distilled_network import TOLERANCE, LearnedCurves, chosen_name, formula_cost
from rdgraph.errors import FileError, InvalidArgument
from studies.cli import app as cli
from studies.distilling.study import (
    LAYER_TOLERANCE,
    FormulaChoices,
    _judge,
    _states,
    _write_search,
    answered,
    layer_curves,
    searched,
)
from studies.runs.uncertainty import HOLDS, UNDECIDED
from studies.training.learned_tables import read_functions


def rdgraph(*words: object) -> Result:
    return CliRunner().invoke(cli.app, [str(word) for word in words])


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_function_of_a_layer_becomes_a_formula(tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ("--layer", "torch:nn.ReLU", "--range=-1:2", "--functions", "relu", "--max-size", "9", "--out", out)
    found = rdgraph("distil", *words)
    assert found.exit_code == 0, found.output
    outline = json.loads((out / "report.json").read_text())
    assert "relu(H)" in outline["answer"]
    assert outline["verdicts"][0]["answer"] == "holds"
    assert outline["figures"] == ["figures/formula.png"]
    assert tomllib.loads((out / "config.toml").read_text())["settings"]["tolerance"] == LAYER_TOLERANCE
    sizes = [int(row["size"]) for row in table(out / "front.csv")]
    assert sizes == sorted(sizes)
    assert {"existence", "Lipschitz"} <= {row["topic"] for row in table(out / "proofs.csv")}
    assert rdgraph("distil", *words).exit_code == 0  # done already


def test_what_cannot_be_distilled_is_refused(tmp_path: Path) -> None:
    for words, said in (
        ((), "a run folder or --layer"),
        ((tmp_path, "--layer", "torch:nn.ReLU"), "a run folder or --layer"),
        ((tmp_path,), "config.toml"),
        ((tmp_path,), "name the folder of a finished training"),
    ):
        assert said in str(rdgraph("distil", *words).exception)
    for span in ("3:1", "3", "a:b"):
        with pytest.raises(InvalidArgument, match="LOWER:UPPER"):
            layer_curves(abs, span)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--tolerance", "-1"), "tolerance > 0, got -1"),
        (("--tolerance", "nan"), "tolerance > 0, got nan"),
        (("--max-size", "0"), "max_size >= 1, got 0"),
        (("--functions", "foo"), "a function of formulas, got 'foo'"),
        (("--seed", "-1"), "as seed, got -1"),
        (("--function", "phi"), "--function goes with a run folder"),
    ],
)
def test_choices_that_make_no_sense_leave_no_folder(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert said in str(rdgraph("distil", "--layer", "torch:nn.ReLU", *words, "--out", out).exception)
    assert not out.exists()
    assert "--range goes with --layer" in str(rdgraph("distil", tmp_path, "--range=-1:1").exception)


@pytest.mark.parametrize("text", ["[]", "3", '{"phi": 3}', '{"phi": {"declaration": "phi learned"}}', "{", "{}"])
def test_damaged_functions_are_told_in_one_line(text: str, tmp_path: Path) -> None:
    (tmp_path / "functions.json").write_text(text, encoding="utf-8")
    with pytest.raises((FileError, InvalidArgument)):
        chosen_name(list(read_functions(tmp_path)), None)
    with pytest.raises(FileError, match="trials and states of phi"):
        _states(tmp_path, "phi")


def test_trainings_that_diverged_leave_the_cost_undecided() -> None:
    told: list[tuple[str, str, str]] = []
    run: Any = SimpleNamespace(verdict=lambda *words: told.append(words))
    for diverged in (0, 1):
        _judge(run, formula_cost(np.zeros(3), [0, 1, 2], 0.4), 3, diverged)
    assert [answer for _, answer, _ in told] == [HOLDS, UNDECIDED]
    assert told[1][2] == "0.00 points; 1 of 3 trainings with it diverged."


@pytest.fixture
def lines() -> LearnedCurves:
    """The function of two trials: lines whose constants differ in sign, with a jump that no short formula follows."""
    x = np.linspace(-2, 2, 120)
    y = np.stack([-x + 0.5, -0.6 * x - 0.2]) + 0.3 * np.sign(np.sin(9 * x))
    return LearnedCurves("phi", x, y, np.ones_like(x))


@pytest.mark.parametrize("tolerance", [0.1, 0.9])
def test_the_error_over_several_trials_is_told_with_letters(lines: LearnedCurves, tolerance: float) -> None:
    search = searched(lines, FormulaChoices(tolerance, 7, ()))
    assert (search.formula is None) == (tolerance == 0.1)
    fits = np.array([np.polyfit(lines.x, own, 1) for own in lines.y])
    tables: dict[str, tuple[list[dict[str, Any]], str]] = {}
    run: Any = SimpleNamespace(
        figure=lambda *words: None, say=lambda *words: None, table=lambda name, *rest: tables.update({name: rest})
    )
    _write_search(run, lines, search)
    rows, caption = tables["front"]
    assert "every trial" in caption
    level = f"from {fits[1, 1]:.4g} to {fits[0, 1]:.4g}"
    assert rows[-1]["formula"] == "gamma - delta*H"
    assert level in rows[-1]["constants"]
    said = answered(lines, search, formula_cost(np.zeros(2), [0, 1], 0.4), 2)
    assert "every trial" in said
    slope = f"from {-fits[1, 0]:.4g} to {-fits[0, 0]:.4g}"
    if search.formula is None:
        assert level in said
    assert slope in said
    for row in tables["constants"][0] if search.formula else ():
        assert row["smallest"] <= row["mean"] <= row["largest"]


@pytest.mark.slow
def test_a_training_becomes_a_formula_on_the_same_splits(tmp_path: Path) -> None:
    run, out = tmp_path / "run", tmp_path / "out"
    trained = rdgraph(
        "train", "--dataset", "karate", "--reaction", "-alpha*L@H + phi(H)", "--learned", "phi: knots=8", "--splits",
        "0-1", "--epochs", "15", "--out", run,
    )  # fmt: skip
    assert trained.exit_code == 0, trained.output
    words = (run, "--functions", "tanh", "--tolerance", "0.2", "--out", out)
    found = rdgraph("distil", *words)
    assert found.exit_code == 0, found.output
    rows, before = table(out / "results.csv"), table(run / "results.csv")
    assert [float(row["learned"]) for row in rows] == [float(row["test_accuracy"]) for row in before]
    gap = sum(100 * (float(row["learned"]) - float(row["formula"])) for row in rows) / 2
    outline = json.loads((out / "report.json").read_text())
    assert f"it costs {gap:.2f} points" in outline["answer"]
    assert outline["verdicts"][0]["statement"] == "The formula costs at most 0.5 points of accuracy."
    none = rdgraph(
        "distil", run, "--functions", "tanh", "--tolerance", "1e-9", "--max-size", "2", "--out", tmp_path / "n"
    )
    assert none.exit_code == 1
    assert "no formula of size <= 2" in none.output
    assert (tmp_path / "n" / "report.html").is_file()
    rdgraph("distil", run, "--functions", "tanh", "--max-size", "2", "--out", tmp_path / "usual")
    assert tomllib.loads((tmp_path / "usual" / "config.toml").read_text())["settings"]["tolerance"] == TOLERANCE
