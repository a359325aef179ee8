"""The energy under nonlinear reactions on regular graphs: told fates against dE/dt on random states."""

from __future__ import annotations

import numpy as np
import pytest

import rdgraph as rd

REGULAR = "on undirected regular graphs"


@pytest.mark.parametrize(
    ("text", "decays"),
    [
        ("-alpha*L@H - beta*H**3", f"never increases, {REGULAR}"),
        ("-alpha*L@H + beta*exp(-H)", f"never increases, {REGULAR}"),
        ("-alpha*L@H + 1 - softplus(H)", f"never increases, {REGULAR}"),
        ("F", f"increases for some states, whatever the coefficients, {REGULAR}"),
        ("-alpha*L@H + tanh(H) - beta*H", f"{REGULAR} never increases iff 1 - beta <= 0"),
        ("-alpha*L@H + beta*cos(H) - gamma*H", f"{REGULAR} never increases iff beta - gamma <= 0"),
        ("-alpha*L@H + sqrt(1 + H**2) - beta*H", f"{REGULAR} never increases iff 1 - beta <= 0"),
    ],
)
def test_fates(text: str, decays: str) -> None:
    law = rd.energy_law(text)
    assert law.mode_rate is None
    assert law.decays.split("; decided")[0] == decays


@pytest.mark.parametrize("text", ["-alpha*L@H + tanh(A@H)", "-alpha*L@H + tanh(H) + H0"])
def test_other_terms_are_undecided(text: str) -> None:
    assert rd.energy_law(text).decays.startswith("undecided")


def test_the_threshold_is_that_of_the_energy() -> None:
    """dE/dt of -L H + tanh(H) - beta H on a cycle: never positive from beta = 1 on, positive for some states below."""
    rng = np.random.default_rng(0)
    n = 40
    A = (np.roll(np.eye(n), 1, 0) + np.roll(np.eye(n), -1, 0)) / 2
    L = np.eye(n) - A
    slowest = np.cos(2 * np.pi * np.arange(n) / n)[:, None]
    states = [1e-3 * slowest, *(rng.normal(size=(n, 1)) * s + rng.normal() for s in (0.01, 0.3, 1, 3, 10))]

    def largest(beta: float) -> float:
        return max(float(np.sum(H * (L @ (-L @ H + np.tanh(H) - beta * H)))) / np.sum(H * H) for H in states)

    assert largest(1.0) <= 1e-15
    assert largest(0.9) > 1e-6
