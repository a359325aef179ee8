"""Reports rebuilt by newer code: from the parts alone, on a machine without the device, or refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import typer.testing

from rdgraph.errors import FileError, InvalidArgument
from studies.cells import cell as cells
from studies.cli import app as cli
from studies.registered_studies import find_study
from studies.runs import run_config as configs
from studies.runs.kept_page import collected, page
from studies.runs.report_only import rebuild_report
from studies.runs.study import Study, execute
from studies.runs.study_run import StudyRun

CHOICES = ["--set", "epochs=2", "--set", "levels=[0.0, 1.0]"]


def invoke(*words: str) -> typer.testing.Result:
    return typer.testing.CliRunner(env={"COLUMNS": "200"}).invoke(cli.app, ["study", *words])


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run of a study that trains cells."""
    folder = tmp_path_factory.mktemp("measured") / "run"
    assert invoke("homophily", "--small", "--seed", "3", *CHOICES, "--out", str(folder)).exit_code == 0
    return folder


@pytest.fixture
def folder(measured: Path, tmp_path: Path) -> Path:
    """A copy of it, as a run on a missing GPU, interrupted before its report."""
    copy = tmp_path / "copy"
    shutil.copytree(measured, copy)
    config = copy / "config.toml"
    config.write_text(config.read_text().replace('device = "cpu"', 'device = "cuda:7"'))
    environment = json.loads((copy / "environment.json").read_text())
    del environment["seconds"]
    recorded = {**environment, "code": "0123456789ab", "gpu": "A card", "platform": "Elsewhere"}
    (copy / "environment.json").write_text(json.dumps(recorded))
    for name in ("results.csv", "report.html", "report.json", "levels.csv", "metrics.csv"):
        (copy / name).unlink()
    (copy / "state").write_text("running\n")
    return copy


def contents(folder: Path) -> dict[str, bytes]:
    found = [path for path in folder.rglob("*") if path.is_file() and path.name != ".lock"]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def test_the_report_of_a_gpu_run_is_rebuilt_without_a_gpu(
    measured: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("train_cell", "train_group"):
        monkeypatch.setattr(cells, name, lambda *_: pytest.fail("something was trained"))
    before = contents(folder)
    (folder / ".report-only-killed").mkdir()
    done = invoke("homophily", "--report-only", "--out", str(folder))
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (0, f"wrote {folder / 'report.html'}")
    after = contents(folder)
    for name in ("results.csv", "levels.csv", "metrics.csv", "report.json"):
        assert after[name] == (measured / name).read_bytes()
    assert after["state"] == b"done\n"
    for name in before:
        if name.startswith("parts/") or name == "config.toml":
            assert after[name] == before[name]
    environment = json.loads(after["environment.json"])
    rebuilt = environment.pop("retold")
    assert environment == json.loads(before["environment.json"])
    assert rebuilt["code"] == configs.fingerprint()
    report = after["report.html"].decode()
    assert configs.fingerprint() in report
    assert "0123456789ab" in report
    assert "--seed 3 --device cuda:7" in report
    assert f"code 0123456789ab (report by code {configs.fingerprint()})" in page(collected(folder))
    assert not list(folder.glob(".report-only-*"))


def test_a_run_without_all_its_parts_is_refused_and_left_as_it_was(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("train_cell", "train_group"):
        monkeypatch.setattr(cells, name, lambda *_: pytest.fail("something was trained"))
    (folder / "checkpoints").mkdir()
    (folder / "checkpoints" / "begun").write_text("x")
    for name in ("mlp", "gcn"):
        (folder / "parts" / f"{name}.csv").unlink()
        before = contents(folder)
        done = invoke("homophily", "--report-only", "--out", str(folder))
        assert isinstance(done.exception, FileError)
        assert ("1 part," if name == "mlp" else "2 parts,") in str(done.exception)
        assert "mlp; measure with rdgraph study homophily" in str(done.exception)
        assert "\n" not in str(done.exception)
        assert contents(folder) == before


def test_a_study_that_breaks_off_without_rows_says_at_least(tmp_path: Path) -> None:
    def body(run: StudyRun) -> None:
        first = run.part("first", lambda: [{"x": 1}])[0]["x"]
        run.results([{"x": first, "y": run.part("second", lambda: [{"y": 2}])[0]["y"]}])

    study = Study("toy", "A toy", "Does it run?", body)
    execute(study, tmp_path / "run")
    for path in (tmp_path / "run" / "parts").iterdir():
        path.unlink()
    with pytest.raises(FileError, match=r"at least 1 part, .* first"):
        rebuild_report(study, tmp_path / "run")


def test_a_mistake_of_the_newer_code_is_raised_and_leaves_the_folder(tmp_path: Path) -> None:
    def body(run: StudyRun) -> None:
        run.results(run.part("x", lambda: [{"x": 1}]))

    def broken(run: StudyRun) -> None:
        body(run)
        raise ZeroDivisionError

    execute(Study("toy", "A toy", "Does it run?", body), tmp_path / "run")
    before = contents(tmp_path / "run")
    with pytest.raises(ZeroDivisionError):
        rebuild_report(Study("toy", "A toy", "Does it run?", broken), tmp_path / "run")
    assert contents(tmp_path / "run") == before


def test_what_cannot_be_rebuilt_is_refused_in_a_line(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(FileError, match="homophily, not of grid"):
        rebuild_report(find_study("grid"), folder)
    assert isinstance(invoke("homophily", "--report-only", "--out", str(tmp_path / "none")).exception, FileError)
    assert not (tmp_path / "none").exists()
    done = invoke("homophily", "--report-only", "--out", str(folder), "--seed", "0", "--set", "epochs=3")
    assert isinstance(done.exception, InvalidArgument)
    assert "--seed, --set" in str(done.exception)
    assert isinstance(invoke("--report-only").exception, InvalidArgument)
    config = folder / "config.toml"
    config.write_text("\n".join(line for line in config.read_text().splitlines() if not line.startswith("epochs =")))
    with pytest.raises(FileError, match="epochs"):
        rebuild_report(find_study("homophily"), folder)
