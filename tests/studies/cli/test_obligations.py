"""Proof obligations on disk: another run of z3 on the files alone gives the outcome that they announce."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
import z3
from typer.testing import CliRunner

from rdgraph.check_certificate import check
from rdgraph.check_certificate import main as rdgraph_check
from rdgraph.errors import RdgraphError
from rdgraph.reals.judge import Obligation, Possibility
from studies.cli.app import app
from studies.cli.obligations import obligation_files, write_obligations

TRUE = "(set-logic QF_NRA)\n(set-info :status sat)\n(declare-const x Real)\n(assert (> x 0.0))\n(check-sat)\n"
FALSE = TRUE.replace("(> x 0.0)", "(< (* x x) 0.0)").replace("status sat", "status unsat")


def solved(path: Path) -> str:
    solver = z3.Solver()
    solver.set("timeout", 20_000)
    solver.from_file(str(path))
    return str(solver.check())


def index(folder: Path) -> list[dict[str, str]]:
    with (folder / "index.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    "words",
    [
        ("analyse", "-alpha*L@H + beta*H*(1 - H)", "--json"),
        ("analyse", "alpha**2*H + beta*A@H where alpha real"),
        ("verify", "M1.4"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_files_of_a_command_are_decided_as_recorded(words: tuple[str, ...], tmp_path: Path) -> None:
    folder = tmp_path / "proofs"
    run = CliRunner().invoke(app, [*words, "--smt2", str(folder)])
    assert run.exit_code == 0, run.output
    rows = index(folder)
    assert sorted(row["file"] for row in rows) == sorted(path.name for path in folder.glob("*.smt2"))
    assert f"wrote {len(rows)} proof obligations" in run.stderr
    if "--json" in words:
        assert rows
        assert json.loads(run.stdout)["existence"] == "local"
    for row in rows:
        path = folder / row["file"]
        header = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith(";")]
        assert header[-1] == f"; expected: {row['expected']}"
        assert all(f"; {line}" in header for line in row["statement"].splitlines())
        if row["expected"] != "unknown":
            assert solved(path) == row["expected"], row


def test_equal_questions_are_written_once_and_in_order(tmp_path: Path) -> None:
    questions = [
        Obligation("x > 0", TRUE, Possibility.POSSIBLE),
        Obligation("x**2 < 0", FALSE, Possibility.IMPOSSIBLE),
        Obligation("x > 0", TRUE, Possibility.POSSIBLE),
    ]
    summary = write_obligations(questions, tmp_path / "new")
    assert summary.startswith("wrote 2 proof obligations (1 unsat, 1 sat) to ")
    rows = index(tmp_path / "new")
    assert [(row["file"][:5], row["expected"], row["statement"]) for row in rows] == [
        ("0001-", "sat", "x > 0"), ("0002-", "unsat", "x**2 < 0"),
    ]  # fmt: skip
    before = [row["file"] for row in rows]
    write_obligations(questions[1:], tmp_path / "new")
    after = index(tmp_path / "new")
    assert after[0]["file"] == before[1].replace("0002", "0001")
    assert len(obligation_files(tmp_path / "new")) == 3


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine", encoding="utf-8")
    with pytest.raises(RdgraphError, match=r"thesis\.tex"):
        write_obligations([], tmp_path)
    with pytest.raises(RdgraphError, match="is a file"):
        write_obligations([], tmp_path / "thesis.tex")
    assert (tmp_path / "thesis.tex").read_text(encoding="utf-8") == "mine"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["thesis.tex"]


def test_certificates_of_commands_are_checked_without_a_solver(tmp_path: Path) -> None:
    analysis, claims = tmp_path / "new" / "analysis.json", tmp_path / "claims"
    run = CliRunner().invoke(app, ["analyse", "-alpha*L@H + beta*H*(1 - H)", "--certificate", str(analysis)])
    assert run.exit_code == 0, run.output
    checked, missing = check(json.loads(analysis.read_text(encoding="utf-8")))
    assert f"{checked} of {checked} obligations proved" in run.stderr
    assert (checked > 10, missing) == (True, 0)
    run = CliRunner().invoke(app, ["verify", "M1.4", "--certificates", str(claims)])
    assert run.exit_code == 0, run.output
    assert [path.name for path in claims.iterdir()] == ["M1.4.json"]
    assert rdgraph_check([str(analysis), str(claims / "M1.4.json")]) == 0
