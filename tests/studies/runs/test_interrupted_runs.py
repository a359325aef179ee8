"""StudyRun folders: interrupted, killed, damaged, and resumed."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rdgraph.errors import FileError, RdgraphError
from studies.runs import study_run as run_module
from studies.runs.index import write_index
from studies.runs.study import execute
from studies.runs.study_run import StudyRun
from studies.runs.tables import read_rows
from tests.paths import ROOT
from tests.studies.runs.toy_studies import state, toy, whole


def stopping(computed: list[str], stop: Callable[[], object] | None) -> Callable[[StudyRun], None]:
    def body(run: StudyRun) -> None:
        def compute(name: str) -> list[dict[str, float]]:
            computed.append(name)
            return [{"x": 0.1 + len(name)}]

        first = run.part("first", lambda: compute("first"))
        if stop is not None:
            stop()
        run.table("both", first + run.part("second", lambda: compute("second")), "Both parts.")

    return body


def raise_interrupt() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("stop", [raise_interrupt, lambda: os.kill(os.getpid(), signal.SIGTERM)])
def test_an_interrupted_run_is_valid_and_resumes(tmp_path: Path, stop: Callable[[], object]) -> None:
    computed: list[str] = []
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt):
        execute(toy(stopping(computed, stop)), tmp_path)
    assert signal.getsignal(signal.SIGTERM) is before
    assert state(tmp_path) == "interrupted"
    assert "This run was interrupted" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert [row["part"] for row in read_rows(tmp_path / "metrics.csv")] == ["first"]
    execute(toy(stopping(computed, None)), tmp_path)
    assert computed == ["first", "second"]
    assert state(tmp_path) == "done"
    assert read_rows(tmp_path / "both.csv") == [{"x": 5.1}, {"x": 6.1}]
    assert "This run was interrupted" not in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_killed_run_resumes(tmp_path: Path) -> None:
    program = f"""
import os, signal
from pathlib import Path
from studies.runs.study import Study, execute

def body(run):
    run.part("first", lambda: [{{"x": 5.1}}])
    run.part("second", lambda: os.kill(os.getpid(), signal.SIGKILL))

numbers = {{"alpha": 0.5, "times": [0.0, 1.0], "count": 3}}
study = Study("toy", "A toy", "Does it run?", body, lambda small: numbers)
execute(study, Path({str(tmp_path)!r}))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert state(tmp_path) == "running"
    computed: list[str] = []
    execute(toy(stopping(computed, None)), tmp_path)
    assert computed == ["second"]
    assert state(tmp_path) == "done"


def test_a_killed_run_leaves_no_drafts(tmp_path: Path) -> None:
    """What a process was writing when it was killed goes when the run is resumed; other hidden files stay."""
    early, late = tmp_path / ".0123456789abcdef.part.toml", tmp_path / "figures" / ".00ff00ff00ff00ff.part.pdf"
    early.touch()
    with pytest.raises(KeyboardInterrupt):
        execute(toy(stopping([], raise_interrupt)), tmp_path)
    kept = {tmp_path / ".gitignore", tmp_path / "figures" / ".notes.part.pdf"}
    late.parent.mkdir()
    for path in (late, *kept):
        path.touch()
    assert not early.exists()
    execute(toy(stopping([], None)), tmp_path)
    assert not late.exists()
    assert all(path.is_file() for path in kept)


def test_ctrl_c_twice_leaves_a_run_that_says_so(tmp_path: Path) -> None:
    """The second signal comes while the report is written."""

    def body(run: StudyRun) -> None:
        finish = run.finish

        def interrupted(state: str, problem: str = "") -> None:
            signal.raise_signal(signal.SIGINT)
            finish(state, problem)

        run.finish = interrupted  # type: ignore[method-assign]
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        execute(toy(body), tmp_path)
    assert state(tmp_path) == "interrupted"
    assert "This run was interrupted" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_an_interruption_of_the_report_is_no_finished_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    presses = [signal.SIGINT]
    render = run_module.report.render

    def pressed(page: Any) -> str:
        if presses:
            signal.raise_signal(presses.pop())
        return render(page)

    monkeypatch.setattr(run_module.report, "render", pressed)
    with pytest.raises(KeyboardInterrupt):
        execute(toy(whole), tmp_path)
    assert state(tmp_path) == "interrupted"
    execute(toy(whole), tmp_path)
    assert state(tmp_path) == "done"


def test_a_full_disk_does_not_hide_the_first_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def body(run: StudyRun) -> None:
        def refuse(*_: Any) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, "open", refuse)
        raise ZeroDivisionError("the first")

    with pytest.raises(ZeroDivisionError, match="the first"):
        execute(toy(body), tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"code": 3}', '{"earlier_code": 3, "code": "a"}', "\xff"])
def test_a_damaged_environment_is_refused(tmp_path: Path, text: str) -> None:
    execute(toy(whole), tmp_path)
    (tmp_path / "environment.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(FileError, match="was changed"):
        execute(toy(whole), tmp_path)


@pytest.mark.parametrize("text", ["\xff", "settings = 3"])
def test_damaged_settings_are_refused(tmp_path: Path, text: str) -> None:
    execute(toy(whole), tmp_path)
    (tmp_path / "config.toml").write_bytes(text.encode("latin-1"))
    with pytest.raises(RdgraphError, match=r"in UTF-8|not written by a study"):
        execute(toy(whole), tmp_path)


@pytest.mark.parametrize("name", ["report.json", "config.toml", "state", "figures/line.png"])
def test_an_index_over_damaged_runs_names_them(tmp_path: Path, name: str) -> None:
    execute(toy(whole), tmp_path / "toy")
    assert write_index(tmp_path).is_file()
    path = tmp_path / "toy" / name
    path.unlink() if name.endswith("png") else path.write_bytes(b"\xff")
    with pytest.raises(FileError, match=r"were changed|in UTF-8"):
        write_index(tmp_path)


def test_a_part_is_not_left_half_written(tmp_path: Path) -> None:
    def body(run: StudyRun) -> None:
        run.part("bad", lambda: [{"x": 1.0}, {"x": None}])  # type: ignore[list-item]

    with pytest.raises(RdgraphError, match="a table holds"):
        execute(toy(body), tmp_path)
    assert state(tmp_path) == "failed"
    assert not (tmp_path / "parts").exists()
    assert "InvalidArgument: a table holds" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_parts_of_other_code_are_kept_and_reported(tmp_path: Path) -> None:
    execute(toy(whole), tmp_path)
    path = tmp_path / "environment.json"
    assert "earlier version" not in (tmp_path / "report.html").read_text(encoding="utf-8")
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), "code": "0" * 12}))
    execute(toy(whole), tmp_path)
    assert json.loads(path.read_text(encoding="utf-8"))["earlier_code"] == ["0" * 12]
    assert "earlier version" in (tmp_path / "report.html").read_text(encoding="utf-8")
