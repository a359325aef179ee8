"""Trainings that are killed, stopped, without a disk, or in damaged folders."""

from __future__ import annotations

import errno
import io
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tomli_w
from pyarrow import parquet
from rich.console import Console

from rdgraph.errors import FileError, RdgraphError
from studies.cli.train_display import Display
from studies.runs import study_run
from studies.runs.index import read_entry
from studies.runs.tables import read_rows
from studies.training import study as training
from studies.training.plan import Request, TrainingPlan, make_plan, read_plan
from tests.paths import ROOT
from tests.studies.cli.train_calls import rdgraph


# ---------------------------------------------------------------------- folders, interruptions
def test_folders_are_numbered(tmp_path: Path) -> None:
    plan = make_plan(Request("karate", reaction="FB*"))
    assert training.default_folder(plan, base=tmp_path) == tmp_path / "karate-FBstar-1"
    assert training.default_folder(plan, resume=True, base=tmp_path) == tmp_path / "karate-FBstar-1"
    for name in ("karate-FBstar-2", "karate-FBstar-10", "karate-FBstar-old", "karate-BS-44"):
        (tmp_path / name).mkdir()
    assert training.default_folder(plan, base=tmp_path) == tmp_path / "karate-FBstar-11"
    assert training.default_folder(plan, resume=True, base=tmp_path) == tmp_path / "karate-FBstar-10"


def test_a_folder_with_other_things_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("mine")
    for resume in (False, True):
        with pytest.raises(RdgraphError, match=r"holds letter.txt.*choose another"):
            training.execute(_plan(), tmp_path, resume=resume)
    assert [p.name for p in tmp_path.iterdir()] == ["letter.txt"]


def _plan(**settings: Any) -> TrainingPlan:
    return make_plan(Request("karate", splits="0-1", settings={"hidden": 4, "epochs": 60, **settings}))


@pytest.mark.slow
def test_an_interrupted_training_resumes_to_the_same_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "draw_all", lambda *_: ([], []))
    heard: list[int] = []

    def stop(progress: Any) -> None:
        heard.append(progress.epoch)
        if progress.epoch >= 40:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        training.execute(_plan(), tmp_path / "cut", progress=stop, every=0.0)
    assert (tmp_path / "cut/state").read_text() == "interrupted\n"
    assert not (tmp_path / "cut/results.csv").exists()
    page = (tmp_path / "cut/report.html").read_text(encoding="utf-8")
    assert "This run was interrupted" in page
    assert f"rdgraph train --resume --out {tmp_path / 'cut'}" in page
    assert read_entry(tmp_path / "cut", tmp_path).state == "interrupted"
    assert list((tmp_path / "cut/checkpoints").iterdir())
    resumed: list[int] = []
    rows = training.execute(
        read_plan(tmp_path / "cut"), tmp_path / "cut", resume=True, progress=lambda p: resumed.append(p.epoch)
    )
    assert heard[-1] == 40
    assert resumed[-1] == 60
    assert min(resumed) > 40  # only what was left
    whole = training.execute(_plan(), tmp_path / "whole")
    assert rows == whole == read_rows(tmp_path / "cut/results.csv")
    both = [parquet.read_table(tmp_path / name / "metrics.parquet") for name in ("cut", "whole")]
    assert both[0].equals(both[1])
    assert not (tmp_path / "cut/checkpoints").exists()
    assert (tmp_path / "cut/state").read_text() == "done\n"


def test_ctrl_c_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "execute", interrupt)
    run = rdgraph("train", "--small", "--out", tmp_path / "x")
    assert run.exit_code == 130
    assert f"rdgraph train --resume --out {tmp_path / 'x'}" in run.stderr.replace("\n", " ")


def test_a_resumed_run_keeps_what_it_leaves_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    folder, words = tmp_path / "x", ("--small", "--epochs", "2", "--set", "hidden=4", "--no-figures", "--no-references")
    with monkeypatch.context() as patch:
        patch.setattr(training, "train", interrupt)
        assert rdgraph("train", *words, "--out", folder).exit_code == 130
    assert "--no-references --no-figures" in read_plan(folder).command(folder)
    assert rdgraph("train", "--resume", "--out", folder).exit_code == 0
    assert (folder / "state").read_text() == "done\n"
    assert not [*folder.glob("*.png"), *folder.glob("*/*.png"), *folder.glob("references.csv")]
    (folder / "checkpoints").mkdir()  # as of a run killed between its last file and its end
    assert rdgraph("train", "--resume", "--out", folder).exit_code == 0
    assert not (folder / "checkpoints").exists()


def test_the_display_on_a_terminal_is_a_table() -> None:
    text = io.StringIO()
    with Display(Console(file=text, width=120, force_terminal=True)) as display:
        display.update(_progress(120))
        display._live.refresh()  # type: ignore[union-attr]
        display.stage("drawing the report")
        display._live.refresh()  # type: ignore[union-attr]
    shown = text.getvalue()
    for words in ("training", "validation", "120/400", "2 of 4", "0.5000", "81.25 %", "drawing the report"):
        assert words in shown


def test_the_display_says_what_else_is_trained() -> None:
    live, lines = io.StringIO(), io.StringIO()
    with Display(Console(file=live, width=120, force_terminal=True)) as display:
        display.update(_progress(120), what="MLP")
        display._live.refresh()  # type: ignore[union-attr]
    assert "MLP" in live.getvalue()
    with Display(Console(file=lines, width=120)) as display:
        display.update(_progress(400), what="MLP")
    assert lines.getvalue().startswith("MLP: epoch 400 of 400")


def _progress(epoch: int) -> Any:
    return SimpleNamespace(epoch=epoch, epochs=400, batch=1, batches=4, loss=0.5, val_accuracy=0.8125, seconds=1.0)


# ---------------------------------------------------------------------- kills and signals
@pytest.mark.slow
def test_a_kill_in_the_first_moment_leaves_a_folder_that_starts_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As soon as config.toml is there: no checkpoint yet, perhaps no state."""
    folder = tmp_path / "run"
    words = ["train", "--dataset", "karate", "--splits", "0-1", "--set", "hidden=4", "--set", "epochs=60"]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "studies.cli.app", *words, "--device", "cpu", "--out", str(folder)], env=environment,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=tmp_path,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 120
        while not (folder / "config.toml").exists():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.001)
    finally:
        process.kill()
        process.wait()
    assert not (folder / "results.csv").exists()
    monkeypatch.setattr(training, "draw_all", lambda *_: ([], []))
    rows = training.execute(read_plan(folder), folder, resume=True)
    assert (folder / "state").read_text() == "done\n"
    assert rows == training.execute(_plan(), tmp_path / "whole")


@pytest.mark.parametrize("exists", [True, False])
def test_resuming_where_nothing_was_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exists: bool) -> None:
    monkeypatch.setattr(training, "draw_all", lambda *_: ([], []))
    if exists:
        (tmp_path / "run").mkdir()
        (tmp_path / "run/.lock").touch()
        (tmp_path / "run/.0123456789abcdef.part.toml").touch()
    alone = rdgraph("train", "--resume", "--out", tmp_path / "run")
    assert "has no config.toml" in str(alone.exception)
    whole = rdgraph("train", "--small", "--resume", "--epochs", "2", "--set", "hidden=4", "--out", tmp_path / "run")
    assert whole.exit_code == 0, whole.output
    assert (tmp_path / "run/state").read_text() == "done\n"


@pytest.mark.slow
@pytest.mark.parametrize("later", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_twice_and_more_leaves_a_folder_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, later: signal.Signals
) -> None:
    """The first waits, the second stops at once, a third while the state is written changes nothing."""
    write, told = study_run.write_text, []

    def interrupted(path: Path, text: str) -> None:
        if text == "interrupted\n":
            signal.raise_signal(later)
        write(path, text)

    def press(progress: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        told.append("went on")
        signal.raise_signal(later)
        told.append("too far")

    monkeypatch.setattr(study_run, "write_text", interrupted)
    with pytest.raises(KeyboardInterrupt):
        training.execute(_plan(), tmp_path, progress=press, tell=told.append)
    assert told == ["stopping at the end of this epoch; Ctrl-C again stops at once", "went on"]
    assert (tmp_path / "state").read_text() == "interrupted\n"


@pytest.mark.slow
def test_ctrl_c_leaves_a_checkpoint_of_that_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "draw_all", lambda *_: ([], []))

    def press(progress: Any) -> None:
        if progress.epoch == 40:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        training.execute(_plan(), tmp_path, progress=press, tell=lambda text: None)
    resumed: list[int] = []
    training.execute(_plan(), tmp_path, resume=True, progress=lambda p: resumed.append(p.epoch))
    assert 40 < resumed[0] <= 60  # what was done is not done again


# ---------------------------------------------------------------------- full disks and damaged folders
def test_a_full_disk_is_told_of_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints cannot be written, and the training goes on; then results cannot, and the error is about them."""
    real, told = os.open, []

    def refuse(path: Any, flags: int, *rest: Any, **others: Any) -> int:
        if flags & os.O_CREAT and (told or "checkpoints" in str(path)):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(path, flags, *rest, **others)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(FileError, match=r"results\.csv: No space left on device; make room, or choose another folder"):
        training.execute(_plan(epochs=2), tmp_path, tell=told.append)
    assert [text.partition(":")[0] for text in told] == [
        "the training cannot be resumed", "no checkpoint was written; the training continues",
    ]  # fmt: skip


@pytest.fixture
def finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A finished run without figures."""
    monkeypatch.setattr(training, "draw_all", lambda *_: ([], []))
    training.execute(_plan(epochs=1), tmp_path / "run")
    return tmp_path / "run"


HEADING = '"split","seed","best_epoch","val_accuracy","test_accuracy","status"\n'


def test_results_that_were_damaged_are_refused(finished: Path) -> None:
    path = finished / "results.csv"
    whole = path.read_bytes()
    for content, needle in (
        (None, "cannot be read"),
        (b"", "does not match the 2 trials"),
        (b"\xff\xfe", "in UTF-8"),
        (whole[: len(whole) // 2], "was changed"),
        (b'"split"\n0\n1\n', "does not match the 2 trials"),
        (HEADING.encode() + b'0,0,1,0.5,0.5,"ok"\n', "does not match the 2 trials"),
        (HEADING.encode() + b'0,0,1,0.5,"much","ok"\n1,0,1,0.5,0.5,"ok"\n', "does not match the 2 trials"),
        (HEADING.encode() + b"0,0,1,0.5,0.5,1\n1,0,1,0.5,0.5,1\n", "does not match the 2 trials"),
    ):
        path.unlink() if content is None else path.write_bytes(content)
        run = rdgraph("train", "--resume", "--out", finished)
        assert isinstance(run.exception, FileError), (content, run.output)
        assert re.search(needle, str(run.exception)), content
    path.write_bytes(whole)
    assert rdgraph("train", "--resume", "--out", finished).exit_code == 0


def test_settings_that_were_damaged_are_refused(finished: Path) -> None:
    path = finished / "config.toml"
    whole = path.read_text(encoding="utf-8")
    splits = tomli_w.dumps({"splits": [0, 1]})
    assert splits in whole
    for content, needle in (
        (b"\xff", "expected the settings of a training in UTF-8"),
        (b"[model", "not valid TOML"),
        (b"", "settings of another program"),
        (b'study = "grid"\n', "settings of another program"),
        (b'study = "train"\n', "no valid small"),
        (whole.replace(splits, 'splits = ["a"]\n').encode(), "no valid splits"),
        (whole.replace(splits, "splits = [0, 99]\n").encode(), "expected a split among 0..9"),
        (whole.replace("seeds = 1", "seeds = true").encode(), "no valid seeds"),
        (whole.replace("seeds = 1", "seeds = 0").encode(), "expected 1 to 10,000 seeds"),
        (whole.replace('device = "cpu"', 'device = "abacus"').encode(), "expected the device"),
        (whole.replace("hidden = 4", "hidden = 'wide'").encode(), "expected int for hidden"),
        (whole.replace("[training]", "[trainings]").encode(), "study|section|trainings|other settings"),
    ):
        path.write_bytes(content)
        run = rdgraph("train", "--resume", "--out", finished)
        assert isinstance(run.exception, RdgraphError), (content, run.output)
        assert re.search(needle, str(run.exception)), (content, run.exception)
    path.write_bytes(b"\xff")
    assert isinstance(rdgraph("train", "--small", "--preset", path, "--out", finished / "x").exception, FileError)


@pytest.mark.parametrize("missing", ["--edges", "--nodes"])
def test_a_graph_whose_files_are_not_there(tmp_path: Path, missing: str) -> None:
    (tmp_path / "e.csv").write_text("source,target\na,b\n")
    (tmp_path / "n.csv").write_text("id,label,x\na,0,1\nb,1,2\n")
    files = {"--edges": tmp_path / "e.csv", "--nodes": tmp_path / "n.csv", missing: tmp_path / "nope.csv"}
    run = rdgraph("train", *(word for pair in files.items() for word in pair))
    assert isinstance(run.exception, FileError)
    assert re.search(r"cannot read .*nope\.csv: No such file or directory", str(run.exception))
