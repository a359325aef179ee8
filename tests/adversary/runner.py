"""Runs of many systems: worker processes that can be ended, results as json lines, resumable."""

from __future__ import annotations

import json
import multiprocessing
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from tests.adversary import answers, suite
from tests.adversary.outcome import ERROR, HELD, REFUSED, REFUTED, TIMEOUT, UNDECIDED, Outcome, Question

#: Seconds our own check of an answer may take, and a worker may take to start.
CHECK_SECONDS = 120.0

#: Asks a question about a system given as text.
Door = Callable[[str, Question], Any]


@dataclass(frozen=True)
class Plan:
    """The systems of a run.

    Attributes:
        count: how many.
        seed: from which they are drawn.
        families: the families that are asked; all where empty.
        questions: put to each system.
        seconds: after which an answer counts as a timeout.
        ask: the door of the tool under test, a function that can be pickled.
        certificates: whether the certificate of every decided answer is checked; nothing is remembered between its
            questions then, so answers take longer.
    """

    count: int
    seed: int
    families: tuple[str, ...] = ()
    questions: int = 3
    seconds: float = 10.0
    ask: Door = answers.ask
    certificates: bool = False


@dataclass(frozen=True)
class Record:
    """The outcomes of one system."""

    index: int
    outcomes: tuple[Outcome, ...]

    def line(self) -> str:
        return json.dumps({"index": self.index, "outcomes": [o.to_dict() for o in self.outcomes]})

    @classmethod
    def read(cls, line: str) -> Record:
        data = json.loads(line)
        return cls(data["index"], tuple(Outcome(**o) for o in data["outcomes"]))


# ---------------------------------------------------------------------- one system, inside a worker
def examined(plan: Plan, index: int, done: int, announce: Callable[[str, Any], None]) -> None:
    """Ask and check the questions of one system from number `done` on, announcing what is under way."""
    drawn, questions = suite.planned(plan.seed, index, plan.families, plan.questions)
    for question in questions[done:]:
        base = Outcome(question.family, HELD, drawn.text, str(question))
        announce("asking", replace(base, status=TIMEOUT, detail=f"no answer within {plan.seconds:g} s"))
        start = time.perf_counter()
        answer, asked, outcome = None, None, base
        try:
            if plan.certificates:
                answer, asked = answers.ask_with_record(drawn.text, question)
            else:
                answer = plan.ask(drawn.text, question)
        except answers.Undecided as reason:
            outcome = replace(base, status=UNDECIDED, detail=str(reason))
        except answers.Refused as reason:
            outcome = replace(base, status=REFUSED, detail=str(reason))
        except Exception as problem:
            outcome = replace(base, status=ERROR, detail=f"{type(problem).__name__}: {problem}")
        outcome = replace(outcome, seconds=round(time.perf_counter() - start, 3))
        if answer is not None:
            outcome = replace(outcome, answer=str(answer))
            announce("checking", replace(outcome, status=ERROR, detail=f"the check took over {CHECK_SECONDS:.0f} s"))
            outcome = _judged(outcome, lambda a=answer, q=question: suite.check(drawn, q, a, plan.seed, index))  # type: ignore[misc]
        if asked is not None and outcome.status == HELD:
            outcome = _certified(outcome, asked)
        announce("done", outcome)


def _judged(outcome: Outcome, check: Callable[[], str | None]) -> Outcome:
    try:
        witness = check()
    except Exception as problem:
        return replace(outcome, status=ERROR, detail=f"in the check: {type(problem).__name__}: {problem}")
    return outcome if witness is None else replace(outcome, status=REFUTED, detail=witness)


def _certified(outcome: Outcome, asked: answers.Record) -> Outcome:
    """With the numbers of obligations that are checked without a solver; refuted where a certificate is rejected."""
    try:
        checked, unproved = answers.checked_without_solver(asked)
    except answers.Uncertified as reason:
        return replace(outcome, status=REFUTED, detail=f"the certificate is rejected: {reason}")
    except Exception as problem:
        return replace(outcome, status=ERROR, detail=f"in the certificate: {type(problem).__name__}: {problem}")
    return replace(outcome, checked=checked, unproved=unproved)


def _work(plan: Plan, channel: Connection) -> None:
    """A worker: receives (index, questions done), sends what it announces, then "finished"."""
    warnings.simplefilter("ignore")
    while (task := channel.recv()) is not None:
        index, done = task
        examined(plan, index, done, lambda stage, what: channel.send((stage, what)))
        channel.send(("finished", None))


# ---------------------------------------------------------------------- many systems, outside
class Worker:
    """One process, the system it is at, and since when its answer is awaited."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.outcomes: list[Outcome] = []
        self.index: int | None = None
        self.start()

    def start(self) -> None:
        # Forked from a server that has imported everything: a new worker starts at once, and in a clean state.
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["tests.adversary.runner"])
        self.channel, other = context.Pipe()
        self.process = context.Process(target=_work, args=(self.plan, other), daemon=True)
        self.process.start()
        other.close()
        self.deadline = time.monotonic() + CHECK_SECONDS
        self.pending: Outcome | None = None

    def give(self, index: int) -> None:
        self.index, self.outcomes = index, []
        self.channel.send((index, 0))
        self.deadline = time.monotonic() + CHECK_SECONDS

    def hear(self) -> bool:
        """Take one message; True when the system is finished."""
        try:
            stage, what = self.channel.recv()
        except EOFError:
            return self.replace("the worker process died")
        if stage == "finished":
            return True
        self.pending = what if stage != "done" else None
        if stage == "done":
            self.outcomes.append(what)
        self.deadline = time.monotonic() + (self.plan.seconds if stage == "asking" else CHECK_SECONDS)
        return False

    def overdue(self) -> bool:
        return time.monotonic() > self.deadline

    def replace(self, reason: str = "") -> bool:
        """End the process, note what it was at, and go on with the next question in a new one."""
        self.stop()
        if self.pending is not None:
            died = Outcome(**{**self.pending.to_dict(), "status": ERROR, "detail": reason})
            self.outcomes.append(died if reason else self.pending)
        elif reason:
            raise RuntimeError(f"{reason} between two questions of system {self.index}")
        self.start()
        self.channel.send((self.index, len(self.outcomes)))
        return False

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.channel.close()


def run(plan: Plan, jobs: int = 1, *, skip: frozenset[int] = frozenset()) -> Iterator[Record]:
    """The records of a plan in the order they are finished; systems in `skip` are left out."""
    waiting = iter(i for i in range(plan.count) if i not in skip)
    workers = [Worker(plan) for _ in range(jobs)]
    try:
        busy = [w for w in workers if _next(w, waiting)]
        while busy:
            ready = wait([w.channel for w in busy], timeout=0.2)
            for worker in list(busy):
                if worker.channel in ready:
                    if worker.hear():
                        assert worker.index is not None
                        yield Record(worker.index, tuple(worker.outcomes))
                        if not _next(worker, waiting):
                            busy.remove(worker)
                elif worker.overdue():
                    worker.replace()
    finally:
        for worker in workers:
            worker.stop()


def _next(worker: Worker, waiting: Iterator[int]) -> bool:
    index = next(waiting, None)
    if index is not None:
        worker.give(index)
    return index is not None


def resumed(path: Path) -> dict[int, Record]:
    """The records of an earlier run; a last line that was cut short is dropped."""
    found: dict[int, Record] = {}
    if path.exists():
        for line in path.read_text().splitlines():
            try:
                record = Record.read(line)
            except (json.JSONDecodeError, KeyError, TypeError):
                continue
            found[record.index] = record
    return found
