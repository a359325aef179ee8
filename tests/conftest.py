"""Strict set-up of every test: fixed seeds, no display, no network; profiles of hypothesis; tests that need a card."""

from __future__ import annotations

import gc
import os
import random
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import matplotlib
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings

from rdgraph.reals import second_engine
from tests.paths import ROOT
from tests.property_examples import PROFILE, USUAL, examples

SEED = 20230723

matplotlib.use("Agg")

# Ctrl-C is heard also where the tests run in the background, which a shell starts deaf to it; so are their processes.
signal.signal(signal.SIGINT, signal.default_int_handler)

# What tests compile is not left in the user's caches.
_COMPILED = tempfile.TemporaryDirectory(prefix="rdgraph-tests-")
os.environ["RDGRAPH_CACHE"] = _COMPILED.name

#: In every profile; the health check is the only one that asks the clock, on a busy machine it would fail at random.
_COMMON = {
    "phases": [Phase.explicit, Phase.generate, Phase.shrink],
    "deadline": None,
    "database": None,
    "print_blob": True,
    "suppress_health_check": [HealthCheck.too_slow],
}
#: The same examples on every run of the same tests, or others each time.
for name, is_random in (("quick", False), ("ci", False), ("deep", True)):
    settings.register_profile(name, derandomize=not is_random, max_examples=examples(USUAL, name), **_COMMON)
settings.load_profile(PROFILE)


#: Of a thousand proofs cvc5 confirms all but five in a quarter of a second; the long run waits for the others.
if PROFILE != "deep":
    second_engine.SECONDS = 0.25

#: Of a test with more cases than this, so many belong to the first look, spread over all; the others are marked slow.
FIRST_LOOK = 3
#: Examples of docstrings that fit and search for many seconds.
LONG_EXAMPLES = {"rdgraph.infer.fit.fitting.fit", "rdgraph.infer.formulas.state_distillation.distil"}
#: Programs that measure, and nothing that a user imports: their tests run one command later than others.
MEASURING = ROOT / "tests" / "studies" / "benchmarks"


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Nothing that is collected is garbage: to look for some would take a seventh of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Cases for later; tests marked `gpu` are skipped where there is no card."""
    _let_examples_run_alone(items)
    _leave_cases_for_later(items)
    _leave_cases_for_the_deep_run(items)
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if marked and not _has_card():
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="no CUDA device; `make test-gpu` is for machines that have one"))


def _let_examples_run_alone(items: list[pytest.Item]) -> None:
    """Examples of public names run when they are copied: they see no import but their own."""
    examples = [item for item in items if isinstance(item, pytest.DoctestItem) and item.path.suffix == ".py"]
    if not examples:
        return
    from tests.doors import public_examples

    alone = public_examples()
    for item in examples:
        if item.name in alone:
            item.dtest.globs = {}


def _leave_cases_for_later(items: list[pytest.Item]) -> None:
    """Mark all but the first look at tests of many cases as slow, long examples too; what measures is slow or deep."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
        if MEASURING in item.path.parents:
            item.add_marker(pytest.mark.deep if item.get_closest_marker("slow") else pytest.mark.slow)
        if item.name in LONG_EXAMPLES:
            item.add_marker(pytest.mark.slow)
    for many in cases.values():
        for place in set(range(len(many))) - spread(len(many), FIRST_LOOK):
            many[place].add_marker(pytest.mark.slow)


def spread(count: int, wanted: int) -> set[int]:
    """Which of the cases of a test are chosen: all, or the first, the last and others evenly between them.

    >>> sorted(spread(3, 3)), sorted(spread(8, 3)), sorted(spread(8, 1))
    ([0, 1, 2], [0, 3, 7], [0])
    """
    return set(range(count)) if count <= wanted else {k * (count - 1) // max(wanted - 1, 1) for k in range(wanted)}


def _leave_cases_for_the_deep_run(items: list[pytest.Item]) -> None:
    """Of a test marked `slow_cases(n)`, mark all slow cases but n spread over all as deep."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("slow_cases") is not None:
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for many in cases.values():
        (wanted,) = many[0].get_closest_marker("slow_cases").args
        for place in set(range(len(many))) - spread(len(many), wanted):
            if many[place].get_closest_marker("slow") is not None:
                many[place].add_marker(pytest.mark.deep)


def _has_card() -> bool:
    try:
        import torch
    except ImportError:
        return False
    return bool(torch.cuda.is_available())


@pytest.fixture(autouse=True)
def _fixed_seeds() -> None:
    """Global generators start every test in the same state, whatever ran before; torch too where it is loaded."""
    random.seed(SEED)
    np.random.seed(SEED)  # noqa: NPY002  code under test may reach the legacy generator through a library
    if (torch := sys.modules.get("torch")) is not None:
        torch.manual_seed(SEED)


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every way out by socket raises; local (AF_UNIX) sockets still connect."""
    local = getattr(socket, "AF_UNIX", None)

    def guarded(method: str) -> Any:
        original = getattr(socket.socket, method)

        def call(self: socket.socket, *args: Any) -> Any:
            if local is None or self.family != local:
                refuse(*args)
            return original(self, *args)

        return call

    def refuse(*address: Any, **_: Any) -> Any:
        raise RuntimeError(f"expected a test without network, got a connection to {address}; use files or a stub")

    for method in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, method, guarded(method))
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
