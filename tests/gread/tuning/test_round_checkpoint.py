"""A round of halving that is cut off goes on to the same results, and keeps little on disk on the way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gread.datasets.embedded import karate
from gread.settings.config import Config
from gread.training import checkpoint
from gread.training.checkpoint import SHARE_OF_TIME, SavingPace
from gread.training.ensemble import Ensemble
from gread.tuning import successive_halving
from gread.tuning.candidates import Candidate, PlannedRound, TrialResult
from gread.tuning.rounds import train_round
from rdgraph.errors import FileError
from tests.gread.tuning.quick_searches import Cut

#: Members of a batch, so that every rung has several.
MEMBERS = 4


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gread.tuning.successive_halving.most_members", lambda *args, **options: MEMBERS)


def planned(count: int = 9, seed: int = 0) -> PlannedRound:
    """Two widths, so that there are two shapes."""
    configs = [
        Config.of("mlp", hidden=(4, 8)[k % 2]).updated({"epochs": 80, "learning_rate": 0.002 * 1.5**k})
        for k in range(count)
    ]
    return PlannedRound.of(karate(), [0, 1], seed, True, [Candidate(k, config) for k, config in enumerate(configs)])


def trained(folder: Path | None, plan: PlannedRound | None = None, **options: Any) -> list[TrialResult]:
    given: dict[str, Any] = {"device": "cpu", "every": 0.0, "tell": pytest.fail} | options
    return train_round(karate(), plan or planned(), checkpoint=folder, **given)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The members of every epoch that is trained."""
    real, seen = Ensemble._epoch, list[int]()

    def watched(self: Ensemble) -> None:
        seen.append(self.members)
        real(self)

    monkeypatch.setattr(Ensemble, "_epoch", watched)
    return seen


def on_save(monkeypatch: pytest.MonkeyPatch, then: Callable[[Path], None]) -> None:
    """Something is done whenever a file has been written."""
    real = successive_halving.save_bundle

    def saved(path: Path, *rest: Any) -> None:
        real(path, *rest)
        then(path)

    for module in (checkpoint, successive_halving):
        monkeypatch.setattr(module, "save_bundle", saved)


def test_a_round_that_is_over_before_it_is_time_writes_no_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_save(monkeypatch, lambda path: pytest.fail(f"{path} was written"))
    assert trained(tmp_path, every=1e9) == trained(None)


@pytest.mark.slow
def test_a_round_that_was_cut_off_after_any_file_goes_on_to_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counted: list[int]
) -> None:
    expected, written = trained(None), list[Path]()
    whole = sum(counted)
    with monkeypatch.context() as patched:
        on_save(patched, written.append)
        assert trained(tmp_path / "all") == expected
    names = {path.stem.partition("-")[0] for path in written}
    assert names == {"round", "piece", "reached", "batch"}
    left = list[int]()
    for count in range(1, len(written) + 1, 3):
        folder = tmp_path / str(count)
        files = list[Path]()

        def die(path: Path, files: list[Path] = files, count: int = count) -> None:
            files.append(path)
            if len(files) == count:
                raise Cut

        with monkeypatch.context() as patched:
            on_save(patched, die)
            with pytest.raises(Cut):
                trained(folder)
        counted.clear()
        heard = list[float]()
        assert trained(folder, progress=heard.append) == expected
        assert heard == sorted(heard)
        assert heard[-1:] in ([], [pytest.approx(1, abs=0.02)])  # none where nothing was left to do
        left.append(sum(counted))
    assert left[0] <= whole
    assert left[-1] <= whole / 5
    assert left == sorted(left, reverse=True)


def test_what_was_dropped_and_earlier_rungs_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = dict[str, tuple[set[str], int]]()

    def look(path: Path) -> None:
        if path.name == "round.json":
            newest = max(tmp_path.glob("begun-*"), key=lambda folder: int(folder.name.removeprefix("begun-")))
            size = sum(file.stat().st_size for file in newest.glob("*.safetensors"))
            seen[newest.name] = ({rung.name for rung in tmp_path.glob("rung-*")}, size)

    on_save(monkeypatch, look)
    trained(tmp_path)
    assert list(seen) == ["begun-40", "begun-80"]
    assert [rungs for rungs, _ in seen.values()] == [{"rung-20", "rung-40"}, {"rung-40", "rung-80"}]
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {"begun-80", "rung-80"}
    sizes = [size for _, size in seen.values()]
    assert sizes[1] < sizes[0]  # fewer go on


def test_an_interruption_saves_what_has_reached_the_rung(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counted: list[int]
) -> None:
    expected = trained(None)
    whole = sum(counted)

    def stop(share: float) -> None:
        if share > 0.8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path, every=1e9, progress=stop)
    assert (tmp_path / "round.json").exists()
    counted.clear()
    assert trained(tmp_path, every=1e9) == expected
    assert sum(counted) < 0.35 * whole


def test_a_round_of_other_trials_is_refused(tmp_path: Path) -> None:
    trained(tmp_path)
    with pytest.raises(FileError, match=r"the state of these trials on this data in .*round\.json, got that of others"):
        trained(tmp_path, planned(seed=1))


def test_words_that_are_none_of_a_round_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = successive_halving.save_bundle

    def wrong(path: Path, kind: str, words: dict[str, Any], numbers: Any) -> None:
        real(path, kind, {k: v for k, v in words.items() if k != "results"}, numbers)

    with monkeypatch.context() as patched:
        patched.setattr(successive_halving, "save_bundle", wrong)
        trained(tmp_path)
    with pytest.raises(FileError, match=r"expected the state of a round in .*'results'.*remove it"):
        trained(tmp_path)


def test_a_disk_that_is_full_costs_the_checkpoint_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, saved = successive_halving.save_bundle, list[Path]()

    def full(path: Path, *rest: Any) -> None:
        if path.stem != "piece-0":
            raise FileError("no space left")
        saved.append(path)
        real(path, *rest)

    said = list[str]()
    for module in (checkpoint, successive_halving):
        monkeypatch.setattr(module, "save_bundle", full)
    assert trained(tmp_path, tell=said.append) == trained(None)
    assert any("no checkpoint was written" in text and "no space left" in text for text in said)
    assert saved
    assert not list(tmp_path.rglob("*.safetensors"))  # half of a state is none


def test_what_takes_long_to_save_is_saved_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(checkpoint.time, "monotonic", lambda: now)

    def save() -> None:
        nonlocal now
        now += 12.0

    pace = SavingPace(30.0, pytest.fail)
    assert not pace.is_time
    now = 30.0
    assert pace.is_time
    assert pace.write(save)
    now = 42.0 + 12.0 / SHARE_OF_TIME - 1
    assert not pace.is_time
    now += 1
    assert pace.is_time
    assert SavingPace(0.0, pytest.fail).is_time


@pytest.mark.gpu
def test_a_round_on_a_gpu_goes_on_where_it_was_cut_off(tmp_path: Path) -> None:
    """Finished batches of the file and those of the card are joined."""
    expected = trained(None, device="cuda")

    def stop(share: float) -> None:
        if share > 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path, device="cuda", every=1e9, progress=stop)
    assert list(tmp_path.rglob("*.safetensors"))
    found = trained(tmp_path, device="cuda")
    assert [(r.state, r.epochs) for r in found] == [(r.state, r.epochs) for r in expected]
    assert [r.val for r in found] == [pytest.approx(r.val, abs=0.05) for r in expected]
