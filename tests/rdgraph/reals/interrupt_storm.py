"""A storm of limits that end within microseconds of the work under them; run as a program, with its seconds.

Every limit ends in one of the ways that are allowed, and afterwards nothing is left: no interrupt on its way, no limit
in force, no thread. The interpreter changes threads as often as it can, so that interrupts arrive at every step.
"""

from __future__ import annotations

import _thread
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

from rdgraph.errors import Undecided
from rdgraph.reals.budget import AGAIN_SECONDS, attempt, remaining_time


class Storm:
    """Limits of random lengths in one thread, and how they ended."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.ended: Counter[str] = Counter()

    def blow(self, seconds: float, gusts: list[Callable[[], str]]) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            gust = self.random.choice(gusts)
            self.ended[f"{gust.__name__}: {gust()}"] += 1
            assert remaining_time() == float("inf"), f"{gust.__name__} left a limit in force"
        compute(2 * AGAIN_SECONDS)  # an interrupt that is repeated would arrive here

    def seconds(self) -> float:
        return self.random.uniform(0.0001, 0.003)

    def near(self, seconds: float) -> float:
        return seconds * self.random.uniform(0.6, 1.4)

    def single(self) -> str:
        seconds = self.seconds()
        try:
            return attempt(seconds, compute, self.near(seconds))
        except Undecided as problem:
            check(problem, seconds)
            return "undecided"

    def failing(self) -> str:
        def fail(seconds: float) -> str:
            compute(seconds)
            raise ValueError("the work fails")

        seconds = self.seconds()
        try:
            return attempt(seconds, fail, self.near(seconds))
        except Undecided:
            return "undecided"
        except ValueError:
            return "failed"

    def nested(self) -> str:
        """Limits within a limit that ends at about the time of one of them; the outer one is never lost."""
        outer, parts = self.seconds(), self.random.randint(1, 4)

        def work() -> str:
            for _ in range(parts):
                inner = outer / parts * self.random.uniform(0.5, 1.5)
                try:
                    attempt(inner, compute, self.near(inner))
                except Undecided as problem:
                    check(problem, inner)
            if remaining_time() == 0:
                compute(2 * AGAIN_SECONDS)
                raise AssertionError("an outer limit was lost")
            return "done"

        try:
            return attempt(outer, work)
        except Undecided as problem:
            check(problem, outer)
            return "undecided"

    def traced(self) -> str:
        """Under a trace function, as debuggers have it: it is called at every line and may be what is interrupted."""

        def trace(frame: FrameType, event: str, argument: object) -> object:
            return trace

        sys.settrace(trace)
        try:
            return self.single()
        finally:
            sys.settrace(None)

    def broken_off(self) -> str:
        """Ctrl-C at about the time of the limit: it is never lost, and neither is left behind."""
        seconds, heard = self.seconds(), False
        try:
            signal.setitimer(signal.ITIMER_REAL, self.near(seconds))
            with suppress(Undecided):
                attempt(seconds, compute, 2 * seconds)
            compute(1.0)
        except KeyboardInterrupt:
            heard = True
        assert heard, "Ctrl-C was lost"
        return "heard"


def check(problem: Undecided, seconds: float) -> None:
    """Whether it was this limit that ended."""
    assert str(problem) == f"time ran out after {seconds:g} s"


def compute(seconds: float) -> str:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
    return "done"


def main(seconds: float) -> None:
    """Raise what went wrong, or say how many limits ended how."""
    sys.setswitchinterval(1e-5)
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    storm, others = Storm(0), [Storm(seed) for seed in (1, 2)]
    storm.blow(seconds / 2, [storm.single, storm.failing, storm.nested, storm.traced, storm.broken_off])
    problems: list[object] = []
    threading.excepthook = lambda problem: problems.append(problem.exc_value)
    gusts = [[other.single, other.failing, other.nested, other.traced] for other in others]
    threads = [
        threading.Thread(target=other.blow, args=(seconds / 2, own)) for other, own in zip(others, gusts, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems, problems
    patience = time.monotonic() + 10
    while _thread._count() and time.monotonic() < patience:
        time.sleep(0.01)
    assert _thread._count() == 0, f"{_thread._count()} threads are left"
    ended = sum((other.ended for other in others), storm.ended)
    sys.stdout.write("".join(f"{count:7d} {name}\n" for name, count in sorted(ended.items())))


if __name__ == "__main__":
    main(float(sys.argv[1]))
