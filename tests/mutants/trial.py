"""One mutant at a time: a forked process in which it is active, and the tests of its module."""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path

import pytest

from tests.paths import ROOT

NOTICED = ("killed", "timeout", "crashed")
#: A mutant may take this many times the processor time of the program itself, and this many seconds more.
_TIMES, _SECONDS = 4, 10
#: Seconds without any progress after which a process counts as stuck.
_IDLE = 20


class Trials:
    """Runs mutants of the package in `tree`; `tests` are the test files of each module.

    The tests are collected once; every mutant gets a process that is forked before any of them has run, for what is
    remembered before the mutant is active would hide it.
    """

    def __init__(self, tree: Path, tests: Mapping[str, Sequence[str]]) -> None:
        os.environ["OMP_NUM_THREADS"] = "1"  # threads do not outlive the parting of processes
        sys.path.insert(0, str(tree))
        if not str(import_module("rdgraph").__file__).startswith(str(tree)):
            raise RuntimeError(f"expected rdgraph from {tree}, got {sys.modules['rdgraph'].__file__}")
        self.tests = tests
        self.seconds = 0.0
        self._limits: dict[str, int] = {}
        self._queue: list[tuple[str, str]] = []
        self._tell: Callable[[str, str], None] = lambda name, status: None

    def run(self, mutants: Iterable[tuple[str, str]], tell: Callable[[str, str], None]) -> None:
        """Try (mutant, module) one after the other; `tell` hears what became of each."""
        self._queue, self._tell = list(mutants), tell
        os.chdir(ROOT)
        files = sorted({file for _, module in self._queue for file in self.tests[module]})
        options = [
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
            "--capture=no",
            "-m",
            "not slow and not hypothesis",
        ]
        if (code := pytest.main([*options, *files], plugins=[self])) != 0:
            raise RuntimeError(f"expected the tests to be collected, got pytest's exit code {int(code)}")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """In place of pytest's own loop."""
        for mutant, module in self._queue:
            files = {ROOT / file: i for i, file in enumerate(self.tests[module])}
            items = sorted((item for item in session.items if item.path in files), key=lambda item: files[item.path])
            self._tell(mutant, self._status(mutant, module, session, items))
        return True

    def _status(self, mutant: str, module: str, session: pytest.Session, items: list[pytest.Item]) -> str:
        """killed, timeout, crashed or survived; the first mutant of a module is tried after the program itself."""
        if module not in self._limits:
            before = self.seconds
            if (verdict := self._tried("", session, items, 600)) != "survived":
                raise RuntimeError(f"expected the tests of {module} to pass without a mutant, got {verdict}")
            self._limits[module] = int(_TIMES * (self.seconds - before)) + _SECONDS
        return self._tried(mutant, session, items, self._limits[module])

    def _tried(self, mutant: str, session: pytest.Session, items: list[pytest.Item], limit: int) -> str:
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            _try(mutant, session, items, limit)
        status, usage = _ended(child)
        self.seconds += usage.ru_utime + usage.ru_stime
        if os.WIFSIGNALED(status):
            return "timeout" if os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL) else "crashed"
        return "killed" if os.WEXITSTATUS(status) else "survived"


def _try(mutant: str, session: pytest.Session, items: list[pytest.Item], limit: int) -> None:
    """In the child: run the tests with the mutant active up to the first that fails, and end with 1 or 0."""
    code = 1
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        from mutmut.mutation.trampoline import set_mutant_under_test  # only where mutants are tried

        set_mutant_under_test(mutant)
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.testsfailed:
                break
        else:
            code = 0
    finally:
        os._exit(code)


def _ended(child: int) -> tuple[int, resource.struct_rusage]:
    """Wait for a process; one that has computed nothing for a while waits for itself, and is ended."""
    spent, since = -1, time.monotonic()
    while True:
        found, status, usage = os.wait4(child, os.WNOHANG)
        if found:
            return status, usage
        ticks = sum(map(int, Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[11:13]))
        if ticks != spent:
            spent, since = ticks, time.monotonic()
        elif time.monotonic() - since > _IDLE:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.02)
