"""Strict set-up of every test: fixed seeds, no display, no network, the same hypothesis examples on every run."""

from __future__ import annotations

import random
import socket
import sys
from typing import Any

import matplotlib
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.internal.conjecture import providers

SEED = 20230723

matplotlib.use("Agg")

# Hypothesis also draws numbers found in the source of loaded modules; which are loaded depends on the tests that ran
# before in the same process, and the examples are to be the same on every run.
providers._get_local_constants = lambda: providers._local_constants

settings.register_profile(
    "default",
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    deadline=None,
    derandomize=True,
    database=None,
    print_blob=True,
    # The only health check that asks the clock; on a busy machine it would fail a test at random.
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("default")


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
