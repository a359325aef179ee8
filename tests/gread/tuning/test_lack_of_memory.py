"""Searches that find less memory than they need: what cannot be trained fails alone, the rest in smaller batches."""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import Any

import pytest
import torch

from gread.datasets.embedded import karate
from gread.settings.config import Config
from gread.training import planner
from gread.training.ensemble import Ensemble
from gread.tuning import rounds
from gread.tuning.candidates import Candidate, PlannedRound
from gread.tuning.rounds import train_round
from gread.tuning.searching import Search
from gread.tuning.space import read_space
from rdgraph.errors import InvalidArgument
from tests.gread.tuning.quick_searches import Cut, plan, quick


def set_memory(monkeypatch: pytest.MonkeyPatch, free: int, total: int) -> None:
    monkeypatch.setattr(planner, "free_memory", lambda device: free)
    monkeypatch.setattr(planner, "total_memory", lambda device: total)


@pytest.mark.parametrize("halving", [False, True])
def test_what_does_not_fit_the_memory_fails_alone(monkeypatch: pytest.MonkeyPatch, halving: bool) -> None:
    monkeypatch.setattr(planner, "free_memory", lambda device: 10_000_000)
    space, said = read_space("[settings]\nhidden = [8, 20000]\n", "large"), list[str]()
    found = quick(4, space=space, fixed={"epochs": 20}, tell=said.append, halving=halving)
    for candidate, result in zip(found.candidates, found.results, strict=True):
        assert result.state == ("complete" if candidate.values["hidden"] == 8 else "failed")
    failed = [r for r in found.results if r.state == "failed"]
    assert 0 < len(failed) < 4
    assert "GiB" in failed[0].note
    assert "cannot be trained" in said[0]


def test_of_a_shape_what_is_too_large_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Members of one shape differ in what they take: the largest are refused, the others are trained."""
    tried = [
        Candidate(k, Config().updated({"hidden": 8, "attention_dim": 8, "method": "exact", "time": time, "epochs": 20}))
        for k, time in enumerate((0.2, 1.0, 30.0))
    ]
    needs = [planner.estimate(Ensemble(karate(), c.trainings([0], 0), keep_best=False)).total for c in tried]
    assert needs[1] < needs[2]
    monkeypatch.setattr(planner, "free_memory", lambda device: int((needs[1] + needs[2]) / 2 / planner.SHARE))
    plan = PlannedRound.of(karate(), [0], 0, False, tried)
    results = train_round(karate(), plan, device="cpu", tell=lambda text: None)
    assert [r.state for r in results] == ["complete", "complete", "failed"]
    assert "GiB for one member" in results[2].note


def test_a_search_without_a_sound_trial_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "free_memory", lambda device: 10)
    found = quick(2, tell=lambda text: None)
    assert [r.state for r in found.results] == ["failed", "failed"]
    with pytest.raises(InvalidArgument, match=r"a trial that could be trained, got 2 without: .* GiB"):
        _ = found.best


def test_batches_are_made_for_the_memory_that_a_search_began_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Results are the same to the bit only where batches are, and those of another day or machine would be others."""
    real, seen = rounds.train_round, list[tuple[int, int]]()

    def watched(*args: Any, memory: int, **kwargs: Any) -> Any:
        with planner.planned_for(memory):
            seen.append((memory, planner.planned_memory("cpu")))
        if len(seen) == 2:
            raise Cut
        return real(*args, memory=memory, **kwargs)

    monkeypatch.setattr(rounds, "train_round", watched)
    set_memory(monkeypatch, 2**30 + 12345, 2**40)
    with pytest.raises(Cut):
        quick(6, round_size=2, folder=tmp_path)
    set_memory(monkeypatch, 2**29, 2**40)
    quick(6, round_size=2, folder=tmp_path)
    assert seen == [(2**30, 2**30)] * 4
    set_memory(monkeypatch, 2**28, 2**29)  # a machine that has not so much
    with planner.planned_for(2**30):
        assert planner.planned_memory("cpu") == 2**29


def planned_round(trials: int = 2, **options: Any) -> PlannedRound:
    planned = Search(plan(trials, **options), None).plan_round()
    assert planned is not None
    return planned


@pytest.mark.slow
def test_a_round_that_does_not_fit_after_all_is_trained_in_smaller_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, tried, said = rounds._Round._to_the_end, list[tuple[int, Path | None]](), list[str]()

    def tight(*args: Any) -> Any:
        tried.append((planner.planned_memory("cpu"), args[2]))
        if tried[-1][0] > 2**30:
            raise torch.OutOfMemoryError("too large")
        return real(*args)

    set_memory(monkeypatch, 2**32, 2**60)
    monkeypatch.setattr(rounds._Round, "_to_the_end", tight)
    found = train_round(karate(), planned_round(), device="cpu", checkpoint=tmp_path, memory=2**60, tell=said.append)
    assert [r.state for r in found] == ["complete", "complete"]
    assert [memory for memory, _ in tried] == [2**60, 2**32, 2**31, 2**30]
    assert tried[0][1] == tmp_path
    assert len({folder for _, folder in tried}) == 4  # batches are remembered with the state
    assert all("smaller batches" in text for text in said)
    tried.clear()
    set_memory(monkeypatch, 2**60, 2**60)
    with pytest.raises(torch.OutOfMemoryError):
        train_round(karate(), planned_round(), device="cpu", tell=said.append)
    assert [memory for memory, _ in tried] == [2 ** (60 - k) for k in range(rounds.TRIES + 1)]


def test_a_batch_of_one_needs_no_more_than_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """What smaller batches are planned for says nothing about a network alone."""
    set_memory(monkeypatch, 1000, 2000)
    with planner.planned_for(100):
        assert planner.check_fit(planner.Need(300, 300), "cuda", None) == 1
        assert planner.check_fit(planner.Need(10, 10), "cuda", None) == 4
        with pytest.raises(InvalidArgument, match="for one member"):
            planner.check_fit(planner.Need(600, 600), "cuda", None)


def test_what_did_not_fit_is_gone_before_trials_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trial is not to blame for what the batches of the attempt before it hold."""
    real, held, said = rounds._Round._halved, list[Any](), list[str]()

    def tight(*args: Any) -> Any:
        if held:
            return real(*args)
        large = torch.zeros(10)
        held.append(weakref.ref(large))
        raise torch.OutOfMemoryError("too large")

    def asked(*args: Any) -> dict[int, Any]:
        assert held[0]() is None
        return {}

    monkeypatch.setattr(rounds._Round, "_halved", tight)
    monkeypatch.setattr(rounds, "refused", asked)
    found = train_round(karate(), planned_round(halving=True), device="cpu", tell=said.append)
    assert [r.state for r in found] == ["complete", "complete"]
    assert len(said) == 1


@pytest.mark.slow
@pytest.mark.parametrize("halving", [False, True])
def test_a_round_without_some_trials_goes_on_where_it_was_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, halving: bool
) -> None:
    """The first attempt and the one without the failed trials may both have begun; neither takes up the other's."""
    space = read_space("[settings]\nhidden = [8, 20000]\n", "large")
    planned = planned_round(4, space=space, fixed={"epochs": 40}, halving=halving)
    is_late, name = [True], "_halved" if halving else "_to_the_end"
    real = getattr(rounds._Round, name)

    def begun(attempt: Any, candidates: Any, folder: Any) -> Any:
        if len(candidates) == 4:  # as where the lack of memory turns out in the midst of a training
            real(attempt, [c for c in candidates if c.values["hidden"] == 8][:1], folder)
            raise torch.OutOfMemoryError("too large")
        return real(attempt, candidates, folder)

    def cut(now: float) -> None:
        if is_late[0] and now > 0.5 and len(list(tmp_path.glob("attempt-*"))) == 1:
            raise Cut

    monkeypatch.setattr(planner, "free_memory", lambda device: 10_000_000)
    plain = train_round(karate(), planned, device="cpu", tell=lambda text: None)
    monkeypatch.setattr(rounds._Round, name, begun)
    options: dict[str, Any] = {"device": "cpu", "checkpoint": tmp_path, "every": 0.0, "tell": lambda text: None}
    with pytest.raises(Cut):
        train_round(karate(), planned, progress=cut, **options)
    is_late[0] = False
    again = train_round(karate(), planned, progress=cut, **options)
    assert {r.state for r in again} == {r.state for r in plain} >= {"failed"}
    assert again == plain
