"""Engines: what all of them do, what they refuse, and errors that travel between processes."""

from __future__ import annotations

import pickle
import sys

import pytest

from rdgraph.errors import InvalidArgument, LanguageError, MissingDependency, RdgraphError, UnknownName, UnknownSign
from rdgraph.run.engines.engine import LocalEngine, Reporter
from rdgraph.run.engines.engine_choice import make_engine, opened
from rdgraph.run.engines.ray_engine import RayEngine, _need, threads


def halves(item: int, reporter: Reporter) -> float:
    reporter.share(0.5)
    reporter.tell(f"half of {item}")
    return item / 2


def test_the_local_engine_takes_one_item_after_the_other() -> None:
    taken, heard, told = [], [], []

    def items() -> object:
        for k in range(3):
            taken.append(k)
            yield k

    running = LocalEngine().run(halves, items(), hear=lambda *word: heard.append(word), tell=told.append)
    assert next(running) == (0, 0.0)
    assert taken == [0]  # the next one is asked for when this one is taken care of
    assert list(running) == [(1, 0.5), (2, 1.0)]
    assert heard == [(0, 0.5), (1, 0.5), (2, 0.5)]
    assert told == ["half of 0", "half of 1", "half of 2"]


def test_an_error_of_the_work_is_an_error_of_the_run() -> None:
    def work(item: int, reporter: Reporter) -> int:
        raise InvalidArgument(f"expected nothing, got {item}")

    with pytest.raises(InvalidArgument, match="got 1"):
        list(LocalEngine().run(work, [1]))


def test_engines_by_name() -> None:
    with opened("local") as engine:
        assert (engine.name, engine.slots, engine.device("auto")) == ("local", 1, "auto")
    with opened(engine) as same:
        assert same is engine
    with pytest.raises(UnknownName, match="local, ray"):
        make_engine("slurm")
    with pytest.raises(InvalidArgument, match="address"):
        make_engine("local", "auto")


def test_ray_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    with pytest.raises(MissingDependency, match=r"rdgraph\[ray\]"):
        _ = RayEngine().slots


def test_ray_is_not_started_before_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    engine = make_engine("ray", "10.0.0.1:6379")
    assert [engine.device(name) for name in ("cpu", "cuda")] == ["cpu", "cuda"]
    with pytest.raises(InvalidArgument, match="Ray chooses the GPU"):
        engine.device("cuda:1")
    engine.close()


def test_a_piece_takes_a_card_or_a_processor_for_every_thread() -> None:
    assert _need("cuda") == {"num_cpus": 1, "num_gpus": 1}
    assert _need("cpu") == {"num_cpus": threads(), "num_gpus": 0}
    assert threads() >= 1


@pytest.mark.parametrize(
    "error",
    [
        InvalidArgument("expected a, got b"),
        UnknownName("letter", "c", ["a"]),
        LanguageError("A*H", 1, expected="@", got="*", remedy="write A@H"),
        UnknownSign("no sign", "x"),
    ],
)
def test_errors_travel(error: RdgraphError) -> None:
    other = pickle.loads(pickle.dumps(error))
    assert type(other) is type(error)
    assert str(other) == str(error)
    assert other.__dict__ == error.__dict__
