"""`python -m tests.mutants.trial TREE TEST,TEST MUTANT ...`: each mutant in a forked process, with the tests named."""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path

import pytest

from tests.paths import ROOT

NOTICED = ("killed", "timeout", "crashed")
PACKAGES = ("rdgraph", "analysis", "gread", "studies")
UNIT_TESTS = "not slow and not hypothesis and not gpu"
#: Processor time that the tests of a folder may take without a mutant.
MOST_SECONDS = 1200
#: A mutant may take this many times the processor time of the program itself, and this many seconds more.
_TIMES, _SECONDS = 4, 10
#: Seconds without any progress after which a process counts as stuck.
_IDLE = 20


class Trials:
    """Runs mutants of the packages in `tree`, with the given test files in their order.

    The tests are collected once; every mutant gets a process that is forked before any of them has run, for what is
    remembered before the mutant is active would hide it.
    """

    def __init__(self, tree: Path, tests: Sequence[str]) -> None:
        os.environ["OMP_NUM_THREADS"] = "1"  # threads are lost when a process forks
        sys.path.insert(0, str(tree))
        for package in PACKAGES:
            if not str(import_module(package).__file__).startswith(str(tree)):
                raise RuntimeError(f"expected {package} from {tree}, got {sys.modules[package].__file__}")
        self.tests = tests
        self.outcome: dict[str, str] = {}
        self._seconds = 0.0
        self._queue: list[str] = []

    def run(self, mutants: Iterable[str]) -> dict[str, str]:
        """Try mutants one after the other: killed, timeout, crashed or survived."""
        self._queue = list(mutants)
        os.chdir(ROOT)
        options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--capture=no", "-m", UNIT_TESTS]
        if (code := pytest.main([*options, *self.tests], plugins=[self])) != 0:
            raise RuntimeError(f"the tests could not be collected: pytest ended with {int(code)}")
        return self.outcome

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Replaces pytest's loop; the first trial is that of the program itself, which sets the time limit."""
        order = {ROOT / file: place for place, file in enumerate(self.tests)}
        items = sorted(session.items, key=lambda item: order[item.path])
        if (verdict := self._tried("", session, items, MOST_SECONDS)) != "survived":
            raise RuntimeError(f"the tests fail without a mutant: {verdict}")
        limit = int(_TIMES * self._seconds) + _SECONDS
        for mutant in self._queue:
            self.outcome[mutant] = self._tried(mutant, session, items, limit)
        return True

    def _tried(self, mutant: str, session: pytest.Session, items: list[pytest.Item], limit: int) -> str:
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            _try(mutant, session, items, limit)
        status, usage = _ended(child)
        self._seconds = usage.ru_utime + usage.ru_stime
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


if __name__ == "__main__":
    with Path(os.devnull).open("w") as nowhere:
        shown, sys.stdout = sys.stdout, nowhere
        found = Trials(Path(sys.argv[1]), sys.argv[2].split(",")).run(sys.argv[3:])
        sys.stdout = shown
    sys.stdout.write("".join(f"{mutant} {status}\n" for mutant, status in found.items()))
