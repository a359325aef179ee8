"""Strict set-up of every test: fixed seeds, no display, no network; profiles of hypothesis; tests that need a card."""

from __future__ import annotations

import os
import random
import socket
import sys
import tempfile
from typing import Any

import matplotlib
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.internal.conjecture import providers

SEED = 20230723

matplotlib.use("Agg")

# What tests compile is not left in the user's caches.
_COMPILED = tempfile.TemporaryDirectory(prefix="rdgraph-tests-")
os.environ["RDGRAPH_CACHE"] = _COMPILED.name

# Hypothesis also draws numbers found in the source of loaded modules; which are loaded depends on the tests that ran
# before in the same process, and the examples are to be the same on every run.
providers._get_local_constants = lambda: providers._local_constants

#: In every profile; the health check is the only one that asks the clock, on a busy machine it would fail at random.
_COMMON = {
    "phases": [Phase.explicit, Phase.generate, Phase.shrink],
    "deadline": None,
    "database": None,
    "print_blob": True,
    "suppress_health_check": [HealthCheck.too_slow],
}
#: The same examples on every run, or others each time.
for name, is_random in (("quick", False), ("ci", False), ("deep", True)):
    settings.register_profile(name, derandomize=not is_random, **_COMMON)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci")
settings.load_profile(PROFILE)


#: Of a test with more cases than this, one in three belongs to the first look; the others are marked slow.
MANY_CASES = 5


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The examples of the profile, cases for later; tests marked `gpu` are skipped where there is no card."""
    _leave_cases_for_later(items)
    functions = {getattr(item.obj, "__func__", item.obj) for item in items if isinstance(item, pytest.Function)}
    for test in functions:
        if not getattr(test, "is_hypothesis_test", False):
            continue
        own = test._hypothesis_internal_use_settings
        test._hypothesis_internal_use_settings = settings(own, max_examples=examples(own.max_examples))
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if marked and not _has_card():
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="no CUDA device; `make test-gpu` is for machines that have one"))


def _leave_cases_for_later(items: list[pytest.Item]) -> None:
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for many in cases.values():
        for place, item in enumerate(many):
            if len(many) > MANY_CASES and place % 3:
                item.add_marker(pytest.mark.slow)


def examples(asked: int, profile: str = PROFILE) -> int:
    """How many examples a test is given: a first look (`make test`), all of them (`make test-slow`), more."""
    match profile:
        case "quick":
            return min(asked, max(3, asked // 10))
        case "deep":
            return max(1000, 30 * asked)
    return asked


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
