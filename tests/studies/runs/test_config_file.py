"""Studies from toml files: what a run wrote makes the same run again; wrong files are refused; results as parquet."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer.testing
from pyarrow import parquet

from rdgraph.errors import FileError
from studies.cli import app as cli
from studies.registered_studies import register_study, unregister_study
from studies.runs.report_only import StudyFile, read_study_file
from studies.runs.study import Study
from studies.runs.study_run import StudyRun
from studies.runs.tables import read_rows, write_parquet


def body(run: StudyRun) -> None:
    size = int(run.settings["size"])
    rows = run.part("draws", lambda: [{"x": float(v)} for v in run.generator("draws").random(size)])
    run.verdict("There are some.", "holds" if rows else "fails", f"{len(rows)}")
    run.results(rows)


@pytest.fixture
def study() -> Study:
    made = Study("draws-of-a-test", "Draws", "How many?", body, lambda small: {"size": 2 if small else 5, "scale": 1.0})
    register_study(made)
    yield made
    unregister_study(made.name)


def run(*words: str) -> typer.testing.Result:
    return typer.testing.CliRunner().invoke(cli.app, ["study", *words], catch_exceptions=False)


def test_the_file_of_a_run_makes_it_again(study: Study, tmp_path: Path) -> None:
    first = tmp_path / "first"
    assert run(study.name, "--small", "--seed", "3", "--set", "size=4", "--out", str(first)).exit_code == 0
    again = tmp_path / "again"
    assert run("--config", str(first / "config.toml"), "--out", str(again)).exit_code == 0
    assert (again / "config.toml").read_bytes() == (first / "config.toml").read_bytes()
    assert (again / "results.csv").read_bytes() == (first / "results.csv").read_bytes()
    other = tmp_path / "other"
    words = ("--config", str(first / "config.toml"), "--seed", "4", "--set", "size=1", "--out", str(other))
    assert run(study.name, *words).exit_code == 0
    assert len(read_rows(other / "results.csv")) == 1
    assert "seed = 4" in (other / "config.toml").read_text(encoding="utf-8")


def test_a_file_may_be_short(study: Study, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("[settings]\nscale = 1\nsize = 3\n", encoding="utf-8")
    found = read_study_file(path)
    assert found == StudyFile(settings={"scale": 1, "size": 3})
    assert found.changes(study, small=False) == {"size": 3}
    assert run(study.name, "--config", str(path), "--out", str(tmp_path / "run")).exit_code == 0
    assert len(read_rows(tmp_path / "run/results.csv")) == 3


@pytest.mark.parametrize(
    ("text", "needle"),
    [
        ("seed = 'one'", "seed = 'one'"),
        ("colour = 1", "colour = 1"),
        ("seed = ", "not valid TOML"),
        ("seed = true", "seed = True"),
    ],
)
def test_wrong_files_are_refused(tmp_path: Path, text: str, needle: str) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FileError, match=re.escape(needle)):
        read_study_file(path)


def test_a_file_of_another_study_is_refused(study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "grid.toml"
    path.write_text('study = "grid"\n', encoding="utf-8")
    with pytest.raises(Exception, match="grid, not of"):
        run(study.name, "--config", str(path), "--out", str(tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_the_index_is_a_word_of_the_command(study: Study, tmp_path: Path) -> None:
    assert run(study.name, "--out", str(tmp_path / "one")).exit_code == 0
    done = run("--index", str(tmp_path))
    assert done.stdout == f"wrote {tmp_path / 'index.html'}\n"
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert '<span class="answer holds">1 holds</span>' in page


def test_parquet_has_the_rows_of_the_csv(study: Study, tmp_path: Path) -> None:
    assert run(study.name, "--out", str(tmp_path / "run")).exit_code == 0
    assert parquet.read_table(tmp_path / "run/results.parquet").to_pylist() == read_rows(tmp_path / "run/results.csv")
    mixed = [{"a": 1, "b": "x", "c": 1}, {"a": 2.5, "b": 2, "c": 2}]
    assert write_parquet(tmp_path / "mixed.parquet", mixed)
    assert parquet.read_table(tmp_path / "mixed.parquet").to_pylist() == [
        {"a": 1.0, "b": "x", "c": 1},
        {"a": 2.5, "b": "2", "c": 2},
    ]
    assert not write_parquet(tmp_path / "none.parquet", [])
