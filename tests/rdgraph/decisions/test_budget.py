"""The clock over a decision: it stops work anywhere, in any thread, and leaves nothing behind."""

from __future__ import annotations

import sys
import threading
import time

import pytest
import sympy as sp

from rdgraph.decisions.budget import remaining, time_limit, within_budget
from rdgraph.errors import Undecided

X, Y = sp.symbols("x y", real=True)


def test_time_runs_out_inside_sympy() -> None:
    def work() -> None:
        while True:
            sp.factor(sp.expand((X + Y + 1) ** 6 - X))

    with pytest.raises(Undecided, match=r"time ran out after 0\.2 s"), time_limit(0.2):
        work()


def test_the_shorter_limit_counts_and_the_longer_goes_on() -> None:
    with time_limit(30):
        with pytest.raises(Undecided, match=r"0\.05 s"), time_limit(0.05):
            _spin()
        assert 20 < remaining() < 30
        with pytest.raises(Undecided, match=r"0\.05 s"), time_limit(0.05), time_limit(60):
            _spin()
    assert remaining() == float("inf")


def test_waiting_is_not_computing() -> None:
    with time_limit(0.2):
        time.sleep(0.5)


def test_limits_work_in_any_thread() -> None:
    seen: list[str] = []

    def work() -> None:
        try:
            with time_limit(0.05):
                _spin()
        except Undecided as problem:
            seen.append(str(problem))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(timeout=30)
    assert seen == ["time ran out after 0.05 s"]


def test_many_short_limits_leave_nothing_behind() -> None:
    """An interrupt that comes too late must not surface in what runs next."""
    for _ in range(200):
        try:
            with time_limit(0.0005):
                sum(range(20_000))
        except Undecided:
            pass
    assert sum(range(200_000)) == 19999900000


def test_answers_within_their_budget() -> None:
    @within_budget(lambda problem: f"undecided: {problem}", seconds=0.05)
    def slow(n: int) -> str:
        if n:
            _spin()
        return "done"

    assert slow(0) == "done"
    assert slow(1) == "undecided: time ran out after 0.05 s"


def _spin() -> None:
    while True:
        pass


def test_an_interrupt_lost_in_a_destructor_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is told of it, while an error of the destructor itself is told as before."""
    told: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda problem: told.append(str(problem.exc_value)))
    slept: list[float] = []

    class Slow:
        def __del__(self) -> None:
            begin = time.thread_time()
            try:
                while time.thread_time() - begin < 0.2:
                    pass
            finally:
                slept.append(time.thread_time() - begin)

    class Faulty:
        def __del__(self) -> None:
            raise ValueError("a fault")

    def work() -> None:
        Slow()
        Faulty()
        _spin()

    with pytest.raises(Undecided, match="time ran out"), time_limit(0.05):
        work()
    assert slept[0] < 0.2  # the interrupt arrived in the destructor
    assert told == ["a fault"]
