"""Searches that are cut off, wherever that is, go on to the same; folders and journals of others are refused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gread.datasets.embedded import karate
from gread.tuning import ask_tell, rounds, searching
from gread.tuning.searching import Search, SearchProgress, search
from rdgraph.errors import FileError
from tests.gread.tuning.quick_searches import MLP, Cut, plan, quick
from tests.paths import ROOT


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["asking", "training", "telling"])
def test_a_search_that_was_cut_off_goes_on_to_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    options: dict[str, Any] = {"round_size": 3, "sampler": "tpe", "trials": 7}
    expected = quick(**options)
    place, name = {
        "asking": (ask_tell, "_suggested"),
        "training": (rounds, "train_round"),
        "telling": (ask_tell.Ledger, "_finish"),
    }[moment]
    real, calls = getattr(place, name), {"asking": 17, "training": 2, "telling": 5}[moment]

    def dying(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls -= 1
        if not calls:
            raise Cut
        return real(*args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(place, name, dying)
        with pytest.raises(Cut):
            quick(folder=tmp_path, **options)
    found = quick(folder=tmp_path, **options)
    assert found.results == expected.results
    assert [c.config for c in found.candidates] == [c.config for c in expected.candidates]
    assert not (tmp_path / searching.UNRECORDED).exists()
    assert not (tmp_path / searching.CHECKPOINTS).exists()
    with monkeypatch.context() as patched:  # a finished one is only read
        patched.setattr(rounds, "train_round", lambda *args, **kwargs: pytest.fail("trained again"))
        assert quick(folder=tmp_path, **options).results == expected.results


KILLED = """
import os, signal, sys
from pathlib import Path
from gread.tuning import successive_halving
from gread.tuning.searching import Search
from tests.gread.tuning.quick_searches import plan

real, count = successive_halving.save_bundle, 0

def saved(*args):
    global count
    real(*args)
    count += 1
    if count == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)

successive_halving.save_bundle = saved
Search(plan(9, epochs=80, halving=True), Path(sys.argv[1]), device="cpu", every=0).run()
"""


def halved(folder: Path | None = None) -> list[dict[str, Any]]:
    """The results of the search that is killed."""
    found = Search(plan(9, epochs=80, halving=True), folder, device="cpu", every=0).run()
    return [result.record() for result in found.results]


@pytest.fixture(scope="module")
def whole() -> list[dict[str, Any]]:
    return halved()


@pytest.mark.slow
@pytest.mark.parametrize("kill", [1, 2, 4])
def test_kill_9_in_the_midst_of_halving_loses_nothing_that_was_saved(
    tmp_path: Path, kill: int, whole: list[dict[str, Any]]
) -> None:
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path), str(kill)], cwd=ROOT, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False,
    )  # fmt: skip
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    kept = {path.name.partition("-")[0] for path in (tmp_path / searching.CHECKPOINTS).rglob("*.safetensors")}
    assert "reached" in kept or "round" in kept
    assert halved(tmp_path) == whole


def test_a_folder_of_another_search_is_refused(tmp_path: Path) -> None:
    quick(2, folder=tmp_path)
    with pytest.raises(FileError, match="another search"):
        quick(3, folder=tmp_path)


def test_a_folder_of_another_search_is_refused_whoever_made_it(tmp_path: Path) -> None:
    first = Search(plan(3), tmp_path, device="cpu").run()
    with pytest.raises(FileError, match="another search"):
        quick(3, folder=tmp_path, fixed={"epochs": 40, "hidden": 16})
    again = search(
        karate(), trials=3, base=MLP["base"], fixed={"epochs": 20, "hidden": 8}, splits=[0, 1], folder=tmp_path,
        device="cpu",
    )  # fmt: skip
    assert again.results == first.results


def test_a_journal_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / searching.JOURNAL).write_text("not a journal\n{}\n")
    with pytest.raises(FileError, match="journal of trials"):
        quick(2, folder=tmp_path)


def test_progress_tells_of_the_best_so_far() -> None:
    heard: list[SearchProgress] = []
    found = quick(4, round_size=2, progress=heard.append)
    assert heard[-1].trials == heard[-1].total == 4
    assert heard[-1].best_trial == found.chosen.number
    assert heard[-1].best == found.chosen.val_accuracy
    assert heard[-1].seconds_left == 0
    assert [p.trials for p in heard] == sorted(p.trials for p in heard)
