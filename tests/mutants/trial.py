"""One mutant at a time: a forked process in which it is active, and the tests of its module."""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

import pytest
from mutmut.mutation.trampoline import set_mutant_under_test

from tests.paths import ROOT

NOTICED = ("killed", "timeout", "crashed")
#: Loaded before the processes part, so that each of them starts at once; nothing is computed here, for what is
#: remembered before the mutant is active would hide it.
_LIBRARIES = ("sympy", "z3", "flint", "numpy", "scipy.sparse", "networkx", "hypothesis", "matplotlib.pyplot", "pytest")
#: A mutant may take this many times the processor time of the program itself, and this many seconds more.
_TIMES, _SECONDS = 4, 10
#: Seconds without any progress after which a process counts as stuck.
_IDLE = 20


class Trials:
    """Runs mutants of the package in `tree`; `tests` are the test files of each module."""

    def __init__(self, tree: Path, tests: Mapping[str, Sequence[str]]) -> None:
        os.environ["OMP_NUM_THREADS"] = "1"  # threads do not outlive the parting of processes
        sys.path.insert(0, str(tree))
        for name in (*_LIBRARIES, "rdgraph", *(_dotted(module) for module in tests)):
            import_module(name)
        if not str(sys.modules["rdgraph"].__file__).startswith(str(tree)):
            raise RuntimeError(f"expected rdgraph from {tree}, got {sys.modules['rdgraph'].__file__}")
        self.tests = tests
        self.seconds = 0.0
        self._limits: dict[str, int] = {}

    def status(self, mutant: str, module: str) -> str:
        """killed, timeout, crashed or survived; the first mutant of a module is tried after the program itself."""
        if module not in self._limits:
            before = self.seconds
            if (verdict := self._run("", module, 600)) != "survived":
                raise RuntimeError(f"expected the tests of {module} to pass without a mutant, got {verdict}")
            self._limits[module] = int(_TIMES * (self.seconds - before)) + _SECONDS
        return self._run(mutant, module, self._limits[module])

    def _run(self, mutant: str, module: str, limit: int) -> str:
        child = os.fork()
        if child == 0:
            _try(mutant, self.tests[module], limit)
        status, usage = _ended(child)
        self.seconds += usage.ru_utime + usage.ru_stime
        if os.WIFSIGNALED(status):
            return "timeout" if os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL) else "crashed"
        return {0: "survived", 5: "no tests"}.get(os.WEXITSTATUS(status), "killed")


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


def _try(mutant: str, files: Sequence[str], limit: int) -> None:
    """In the child: run the tests with the mutant active, and end with pytest's exit code."""
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.chdir(ROOT)
    set_mutant_under_test(mutant)
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not slow and not hypothesis"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # libraries that are loaded before pytest begins
    code = 3
    try:
        code = int(pytest.main([*options, *files]))
    finally:
        os._exit(code)


def _dotted(module: str) -> str:
    return module.removesuffix(".py").replace("/", ".")
