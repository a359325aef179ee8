"""cvc5 as a second opinion on z3's answers, in a separate process that can be ended.

The process starts with the first obligation, answers one after the other, and starts again after it was ended. A thread
of this program talks to it, so that an interrupt of the asking thread never leaves an exchange half done. A fork of
this program starts another process.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from _thread import start_new_thread
from atexit import register as at_exit
from enum import Enum
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from rdgraph.reals import cvc5_worker

NAME = "cvc5"
#: Effort for one obligation in cvc5's own units, and seconds of processor time, since it does not keep to the units.
RESOURCES = 2_000_000
SECONDS = 1.0
#: Seconds of the clock after which the process is ended, where the system cannot limit processor time.
PATIENCE = 60.0
#: Number of opinions that are remembered.
REMEMBERED = 50_000


class Opinion(Enum):
    """cvc5's answer to an obligation; `NONE` where it gave none within its limits, or is not installed."""

    UNSAT = "unsat"
    SAT = "sat"
    NONE = "unknown"


@lru_cache(maxsize=1)
def is_installed() -> bool:
    """Whether cvc5 can be imported; it is not imported here."""
    return find_spec(NAME) is not None


class Consultation:
    """An obligation that is put to cvc5 while this program goes on.

    >>> Consultation("(declare-const x Real)(assert (< (* x x) 0.0))").opinion()
    <Opinion.UNSAT: 'unsat'>
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.is_dropped = False
        self.answer: SimpleQueue[Opinion] = SimpleQueue()
        self.process: _Process | None = None
        if text not in _opinions and is_installed():
            self.process = _processes.setdefault(os.getpid(), _Process())
            self.process.take(self)

    def opinion(self) -> Opinion:
        """Wait for cvc5's answer."""
        if self.process is None:
            return _opinions.get(self.text, Opinion.NONE)
        try:
            opinion = self.answer.get(timeout=PATIENCE)
        except Empty:
            self.drop()
            return Opinion.NONE
        except BaseException:
            self.drop()
            raise
        if len(_opinions) >= REMEMBERED:
            _opinions.pop(next(iter(_opinions)), None)
        _opinions[self.text] = opinion
        return opinion

    def drop(self) -> None:
        """The answer is no longer needed: the process does not go on with it."""
        self.is_dropped = True
        if self.process is not None and self.process.current is self:
            self.process.end()


class _Process:
    """A process of cvc5 and the thread that talks to it; both start when they are needed."""

    def __init__(self) -> None:
        self.waiting: SimpleQueue[Consultation] = SimpleQueue()
        self.current: Consultation | None = None
        self.running: subprocess.Popen[bytes] | None = None
        self.has_thread = False
        self.is_over = False

    def take(self, consultation: Consultation) -> None:
        """Answer a consultation after those before it."""
        self.waiting.put(consultation)
        if not self.has_thread:  # two threads that start at once share the queue
            start_new_thread(self._serve, ())
            self.has_thread = True

    def _serve(self) -> None:
        while True:
            self.current = consultation = self.waiting.get()
            answer = "" if consultation.is_dropped else self._exchange(consultation.text)
            if not (answer or consultation.is_dropped or self.is_over or self._ran_out()):
                answer = self._exchange(consultation.text)  # it was ended for the one before, or from outside
            self.current = None  # before the answer: who has it drops the consultation, which must not end the next one
            consultation.answer.put(Opinion(answer or Opinion.NONE.value))

    def _exchange(self, obligation: str) -> str:
        """Send an obligation and read the answer; "" where the process ended instead."""
        text = f"(set-logic QF_NRA)\n{obligation}".encode()
        message = memoryview(b"%d %d %g\n%b" % (len(text), RESOURCES, SECONDS, text))
        try:
            sink, source = self._pipes()
            while message:
                message = message[sink.write(message) :]
            answer: str = source.readline().decode().strip()
        except (OSError, ValueError):  # the process has ended, or cannot be started
            answer = ""
        if not answer:
            self._close()
        return answer

    def _pipes(self) -> tuple[Any, Any]:
        """Where the process reads and writes; it is started by the path of its program if there is none.

        Started so, it needs no main module of this program, and receives no Ctrl-C of the terminal.
        """
        if self.running is not None and self.running.poll() is not None:
            self._close()
        if self.running is None or self.running.returncode is not None:
            spec = find_spec(NAME)
            folder = str(Path(spec.origin or "").parents[1]) if spec else ""
            self.running = subprocess.Popen(
                [sys.executable, "-P", "-S", cvc5_worker.__file__], bufsize=0, stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
                env={**os.environ, "PYTHONPATH": folder},
            )  # fmt: skip
        return self.running.stdin, self.running.stdout

    def _ran_out(self) -> bool:
        """Whether the process was ended by its own limit of processor time."""
        return self.running is not None and self.running.returncode == -getattr(signal, "SIGPROF", 0)

    def end(self) -> None:
        """End the process; the next obligation starts another."""
        if self.running is not None:
            self.running.kill()

    def _close(self) -> None:
        if self.running is not None:
            self.running.kill()
            self.running.wait()
            for pipe in (self.running.stdin, self.running.stdout):
                if pipe is not None:
                    pipe.close()  # unbuffered, so that nothing is left to write

    def stop(self) -> None:
        """End the process for good."""
        self.is_over = True
        self._close()

    def forget(self) -> None:
        """In a fork: let go of the process, which belongs to the program that was forked."""
        if self.running is not None:
            self.running.returncode = 0  # it is neither ended nor waited for from here
            self._close()


#: The process of this program, by the number of the program: a fork has another number.
_processes: dict[int, _Process] = {}
#: Opinions by the text of the obligation.
_opinions: dict[str, Opinion] = {}


@at_exit
def _stop() -> None:
    for process in _processes.values():
        process.stop()


def _forget() -> None:
    for process in _processes.values():
        process.forget()
    _processes.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
