"""The clock over a decision: it stops work anywhere, in any thread, and leaves nothing behind."""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
import sympy as sp

from rdgraph.errors import Undecided
from rdgraph.reals.budget import (
    AGAIN_SECONDS,
    attempt,
    limited,
    page,
    remaining,
    remaining_time,
    spend,
    spent,
    unmetered,
    within_budget,
)  # fmt: skip
from rdgraph.reals.judge import remembered
from tests.paths import ROOT

X, Y = sp.symbols("x y", real=True)


def test_time_runs_out_inside_sympy() -> None:
    def work() -> None:
        while True:
            sp.factor(sp.expand((X + Y + 1) ** 6 - X))

    with pytest.raises(Undecided, match=r"time ran out after 0\.2 s"):
        attempt(0.2, work)


def test_the_shorter_limit_counts_and_the_longer_goes_on() -> None:
    def work() -> None:
        with pytest.raises(Undecided, match=r"0\.05 s"):
            attempt(0.05, _spin)
        assert 20 < remaining_time() < 30
        with pytest.raises(Undecided, match=r"0\.05 s"):
            attempt(0.05, attempt, 60, _spin)

    attempt(30, work)
    assert remaining_time() == float("inf")


def test_the_outer_limit_is_heard_where_inner_ones_end_at_the_same_time() -> None:
    """What is caught on the way is the end of inner limits; when the time around them is up, that is the end."""
    caught: list[str] = []

    def work() -> None:
        while True:
            try:
                attempt(0.02, _spin)
            except Undecided as problem:
                caught.append(str(problem))

    begin = time.thread_time()
    with pytest.raises(Undecided, match=r"0\.1 s"):
        attempt(0.1, work)
    assert 3 <= len(caught) <= 5
    assert set(caught) == {"time ran out after 0.02 s"}
    assert time.thread_time() - begin < 0.1 + AGAIN_SECONDS


def test_the_questions_of_a_page_share_its_effort() -> None:
    ask = within_budget(str)

    def questions() -> list[str]:
        return [ask(_work)(0.15), ask(_work)(0.15), ask(_work)(0.15), ask(lambda: "a short one")()]

    first, second, *others = page(0.2, questions)
    assert first == "done"
    assert second == "the effort allowed is spent (0.05 s)"
    assert others == ["the effort allowed to all questions together is spent"] * 2
    assert ask(lambda: "after the page")() == "after the page"


def test_the_clock_of_a_page_is_a_last_resort() -> None:
    ask = within_budget(str)
    begin = time.thread_time()
    first, second = page(0.1, lambda: [ask(_spin)(), ask(len)("abc")])
    assert time.thread_time() - begin < 0.1 + 2 * AGAIN_SECONDS
    assert first.startswith("time ran out after 0.")
    assert "together" in second


def test_of_nested_pages_the_shorter_counts() -> None:
    with pytest.raises(Undecided, match="together"):
        page(0.0, page, 60.0, limited, 60.0, _spin)
    assert page(60.0, lambda: limited(30.0, remaining)) <= 30 + 1e-9
    with pytest.raises(ZeroDivisionError):
        page(60.0, lambda: 1 // 0)
    assert limited(30.0, len, "abc") == 3


def test_a_page_that_is_interrupted_leaves_no_deadline() -> None:
    for _ in range(20):
        with pytest.raises(Undecided):
            attempt(0.01, page, 0.02, _spin)
        assert limited(30.0, len, "abc") == 3


# ---------------------------------------------------------------------- effort
def test_effort_ends_a_limit_whatever_the_clock_says() -> None:
    assert limited(1.0, _work, 0.9) == "done"
    for _ in range(3):
        with pytest.raises(Undecided, match="effort"):
            limited(1.0, _work, 1.1)
    assert remaining() == remaining_time() == float("inf")
    assert _work(100.0) == "done", "without a limit nothing ends"


def test_of_nested_limits_the_first_to_end_counts() -> None:
    def inner_first() -> float:
        with pytest.raises(Undecided, match=r"0\.2 s"):
            limited(0.2, _work, 0.5)
        return remaining()

    assert limited(1.0, inner_first) == pytest.approx(0.79, abs=0.02)
    with pytest.raises(Undecided, match=r"0\.1 s"):
        limited(0.1, lambda: [limited(5.0, _work, 0.05) for _ in range(9)])


def test_what_is_reported_as_a_whole_is_not_ended_on_the_way() -> None:
    def question() -> float:
        begin = spent()
        unmetered(_work, 5.0)
        return spent() - begin

    assert limited(1.0, question) == 0
    with pytest.raises(Undecided, match="effort"):
        limited(1.0, lambda: [question(), spend(1.1)])


def test_a_remembered_answer_costs_the_same_effort_again() -> None:
    @remembered(8)
    def question(effort: float) -> str:
        return _work(effort)

    for _ in range(2):
        begin = spent()
        assert question(0.5) == "done"
        assert spent() - begin == pytest.approx(0.5)
        with pytest.raises(Undecided, match="effort"):
            limited(0.4, question, 0.5)


def test_the_clock_ends_the_whole_question() -> None:
    """What was asked within has no chance to give another answer instead."""
    reached: list[str] = []

    def question() -> str:
        try:
            limited(0.02, _spin)
        except Undecided:
            reached.append("another answer")
        return "another answer"

    ask = within_budget(str, seconds=0.1)
    assert ask(question)().startswith("time ran out")
    assert ask(lambda: ask(question)() and "another answer")().startswith("time ran out")
    assert reached == []
    assert remaining() == remaining_time() == float("inf")


def _work(seconds: float) -> str:
    """Work whose effort is reported in small parts."""
    for _ in range(round(100 * seconds)):
        spend(0.01)
    return "done"


@pytest.mark.parametrize("problem", [OverflowError, MemoryError, RecursionError])
def test_numbers_that_are_too_large_leave_a_question_undecided(problem: type[Exception]) -> None:
    def question() -> None:
        raise problem

    answer = within_budget(str)(question)()
    assert "`question`" in answer
    assert problem.__name__ not in answer


def test_what_a_function_returns_and_raises() -> None:
    def work(a: int, *, b: int) -> int:
        return a // b

    assert attempt(30, work, 6, b=3) == 2
    with pytest.raises(ZeroDivisionError):
        attempt(30, work, 1, b=0)
    with pytest.raises(KeyboardInterrupt):
        attempt(30, signal.raise_signal, signal.SIGINT)
    assert remaining_time() == float("inf")


def test_a_limit_of_no_time() -> None:
    for seconds in (0.0, -1.0):
        with pytest.raises(Undecided, match=f"after {seconds:g} s"):
            attempt(seconds, _spin)
    assert attempt(float("inf"), len, "abc") == 3


def test_waiting_is_not_computing() -> None:
    attempt(0.2, time.sleep, 0.5)


def test_limits_work_in_any_thread() -> None:
    seen: list[str] = []

    def work() -> None:
        try:
            attempt(0.05, _spin)
        except Undecided as problem:
            seen.append(str(problem))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(timeout=30)
    assert seen == ["time ran out after 0.05 s"]


def test_many_short_limits_leave_nothing_behind() -> None:
    """An interrupt that comes too late must not surface in what runs next."""
    for _ in range(200):
        with suppress(Undecided):
            attempt(0.0005, sum, range(20_000))
    assert sum(range(200_000)) == 19999900000


@pytest.mark.deep
@pytest.mark.slow
def test_a_storm_of_limits_leaves_nothing_behind() -> None:
    """In a separate program, because an interrupt that is left behind would hit the next test."""
    program = [sys.executable, str(Path(__file__).with_name("interrupt_storm.py")), "4"]
    done = subprocess.run(program, capture_output=True, text=True, cwd=ROOT, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    for way in ("single: done", "single: undecided", "nested: undecided", "failing: failed", "broken_off: heard"):
        assert way in done.stdout


def test_answers_within_their_budget() -> None:
    @within_budget(lambda problem: f"undecided: {problem}", seconds=0.05)
    def slow(n: int) -> str:
        if n:
            _spin()
        return "done"

    assert slow(0) == "done"
    assert slow(1) == "undecided: time ran out after 0.2 s"


def _spin() -> None:
    while True:
        pass


def test_an_interrupt_lost_in_a_destructor_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not reported, while an error of the destructor itself still is."""
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

    with pytest.raises(Undecided, match="time ran out"):
        attempt(0.05, work)
    assert slept[0] < 0.2  # the interrupt arrived in the destructor
    assert told == ["a fault"]


def test_time_runs_out_while_ctypes_reads_an_argument() -> None:
    class Slow:
        @classmethod
        def from_param(cls, value: float) -> int:
            while value == 1.0:
                pass
            raise ValueError("no argument")

    absolute = ctypes.CDLL(None).abs
    absolute.argtypes = [Slow]  # type: ignore[list-item]
    with pytest.raises(Undecided, match="time ran out"):
        attempt(0.05, absolute, 1.0)
    assert remaining_time() == float("inf")
    with pytest.raises(ctypes.ArgumentError, match="no argument"):
        attempt(60, absolute, 2.0)
    with pytest.raises(Undecided, match=r"after 0\.05 s"):
        attempt(0.05, attempt, 60, absolute, 1.0)
