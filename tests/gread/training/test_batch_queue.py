"""The queue of batches as it is on a GPU, with streams that tell when their epochs are done."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest
import torch

from gread.datasets.embedded import karate
from gread.settings.config import Config
from gread.settings.trials import Trial
from gread.training import batch_queue
from gread.training.batch_queue import Batch, run_batches
from gread.training.ensemble import Ensemble


class Stream:
    """A stream whose epochs are done after so many questions."""

    def __init__(self, questions: int) -> None:
        self.questions, self.left = questions, 0

    def synchronize(self) -> None:
        pass

    def record_event(self) -> Stream:
        self.left = self.questions
        return self

    def query(self) -> bool:
        self.left -= 1
        return self.left < 0


class Saver:
    def tick(self, must_save: bool = False) -> None:
        pass


@pytest.fixture
def streams(monkeypatch: pytest.MonkeyPatch) -> list[Stream]:
    """Streams of the queue, of which the last is taken first."""
    given: list[Stream] = []
    monkeypatch.setattr(batch_queue, "_streams", lambda device, count: given)
    monkeypatch.setattr(batch_queue.torch.cuda, "stream", lambda stream: nullcontext())
    monkeypatch.setattr(batch_queue, "LOOK", 1e9)  # whole chunks, however slow the machine
    return given


def batch(epochs: int) -> Batch:
    trial = Trial(Config().updated({"hidden": 4, "epochs": epochs}))
    return Batch(lambda: (Ensemble(karate(), [trial], keep_best=False), Saver()), epochs, share=0.3)  # type: ignore[arg-type,return-value]


def run(batches: list[Batch]) -> tuple[list[tuple[int, int]], list[int]]:
    """Which batch was looked at in which epoch, and the order in which they ended."""
    looks: list[tuple[int, int]] = []
    ended: list[int] = []

    def finish(number: int, ensemble: Ensemble, saver: Any) -> None:
        assert ensemble.epoch == batches[number].end
        ended.append(number)

    run_batches(batches, "cpu", lambda number, e: looks.append((number, e.epoch)), finish, lambda text: None)
    return looks, ended


@pytest.mark.slow
def test_a_batch_with_long_epochs_does_not_hold_up_the_others(streams: list[Stream]) -> None:
    streams += [Stream(0), Stream(100)]
    looks, ended = run([batch(40), batch(60)])
    assert ended == [1, 0]
    assert [epoch for number, epoch in looks if number == 1] == [1, 20, 40, 60]
    assert [epoch for number, epoch in looks if number == 0] == [1, 20, 40]


@pytest.mark.slow
def test_batches_are_set_up_while_others_are_under_way(streams: list[Stream]) -> None:
    streams += [Stream(10) for _ in range(3)]
    looks, ended = run([batch(20) for _ in range(5)])
    assert sorted(ended) == [0, 1, 2, 3, 4]
    assert len(streams) == 3
    first_looks = [number for number, epoch in looks if epoch == 1]
    assert first_looks[:3] == [0, 1, 2]
    assert looks.index((2, 1)) < looks.index((0, 20))


def test_a_batch_without_memory_waits_until_another_has_ended(streams: list[Stream]) -> None:
    streams += [Stream(10) for _ in range(3)]
    under_way: list[int] = []
    tries: list[tuple[int, ...]] = []

    def limited(number: int, epochs: int) -> Batch:
        own = batch(epochs)

        def begin() -> Any:
            tries.append(tuple(under_way))
            if len(under_way) == 2:
                raise torch.OutOfMemoryError("CUDA out of memory")
            under_way.append(number)
            return own.begin()

        return own._replace(begin=begin)

    batches = [limited(number, 20) for number in range(4)]
    ended: list[int] = []

    def finish(number: int, ensemble: Ensemble, saver: Any) -> None:
        under_way.remove(number)
        ended.append(number)

    run_batches(batches, "cpu", lambda number, e: None, finish, lambda text: None)
    assert sorted(ended) == [0, 1, 2, 3]
    assert tries.count((0, 1)) == 1  # not tried again while both are there
    assert len(streams) == 3


def test_a_batch_that_no_memory_is_enough_for_is_an_error(streams: list[Stream]) -> None:
    def begin() -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory")

    streams += [Stream(0)]
    with pytest.raises(torch.OutOfMemoryError):
        run([batch(20)._replace(begin=begin)])
