"""When the Laplacian energy increases: fates, thresholds and witnesses against dE/dt by numpy."""

from __future__ import annotations

import numpy as np
import pytest

import rdgraph as rd
from rdgraph.theory.equality import dense_oracle as dense

NEVER = "never increases, on every undirected regular graph"
SOME = "increases on some undirected regular graph, from some state"
EVERY = "increases on every undirected regular graph with an edge, from some state"
FROM_START = "along solutions from H(0) = H0"


@pytest.mark.parametrize(
    ("text", "decays"),
    [
        ("-alpha*L@H - beta*H**3", NEVER),
        ("-alpha*L@H + beta*exp(-H)", NEVER),
        ("-alpha*L@H + 1 - softplus(H)", NEVER),
        ("F", f"{EVERY}, for all coefficients"),
        ("AC", f"{SOME}, for all coefficients"),
        ("AC where 2*alpha < beta", f"{EVERY}, for all coefficients"),
        ("-4*A**2@H - 0.1*sigmoid(-H)", SOME),
        ("-alpha*L@H + tanh(H) - beta*H", f"{NEVER}, iff beta >= 1"),
        ("-alpha*L@H + beta*cos(H) - gamma*H", f"{NEVER}, iff beta <= gamma"),
        ("-alpha*L@H + sqrt(1 + H**2) - beta*H", f"{NEVER}, iff beta >= 1"),
        ("-alpha*L@H + phi(H) - 3*H where phi learned lipschitz=2", NEVER),
        ("-alpha*L@H + phi(H) - beta*H where phi learned lipschitz=2", f"{NEVER}, if beta >= 2"),
    ],
)
def test_fates(text: str, decays: str) -> None:
    law = rd.theory.energy_law(text)
    assert law.mode_rate is None
    assert law.decays.split("; decided")[0] == decays


@pytest.mark.parametrize(
    ("text", "decays"),
    [
        ("APPNP", f"never increases, {FROM_START}, on every graph"),
        ("-H + H0", f"never increases, {FROM_START}, on every graph"),
        ("ST", f"increases on some graph, {FROM_START}, for all coefficients"),
        ("-alpha*L@H - beta*H0", f"increases on every graph with an edge, {FROM_START}, for all coefficients"),
        ("-alpha*L@H - gamma*H + beta*H0", f"never increases, {FROM_START}, on every graph, iff beta <= gamma"),
        ("-alpha*L@H + beta*H0 where beta real", f"increases on some graph, {FROM_START}, for some coefficients"),
    ],
)
def test_fates_with_a_source(text: str, decays: str) -> None:
    assert rd.theory.energy_law(text).decays == decays


@pytest.mark.parametrize(
    "text",
    ["-alpha*L@H + tanh(A@H)", "-alpha*L@H + tanh(H) + H0", "-alpha*L@H + phi(H) where phi learned lipschitz=2",
     "A@H@W - alpha*H", "GRAFF"],
)  # fmt: skip
def test_other_laws_are_undecided(text: str) -> None:
    law = rd.theory.energy_law(text)
    assert law.decays.startswith("undecided")
    assert "<= 0" not in law.decays


@pytest.mark.parametrize(
    "text",
    ["-4*A**2@H - 0.1*sigmoid(-H)", "F", "AC", "Z", "BS", "ST", "alpha*L@H", "-alpha*L@H - beta*H0",
     "-alpha*L@H + relu(H)", "-alpha*L@H + tanh(H) - beta*H", "-alpha*L@H + beta*exp(H) where alpha < beta",
     "-alpha*L@H + beta*cos(H) - gamma*H where beta real, gamma < 0", "A@H@W - alpha*H where W symmetric",
     "FB where 3*alpha < beta", "-k*L@H + beta*H where k channel"],
)  # fmt: skip
def test_the_energy_increases_at_the_witness(text: str) -> None:
    """dE/dt = 2 tr(H^T L f(H)) on the cycle that is named, by the dense interpreter, for admissible coefficients."""
    system = rd.parse(text)
    law = rd.theory.energy_law(system)
    witness = law.witness
    assert witness is not None
    n = witness.nodes
    A = (np.roll(np.eye(n), 1, 0) + np.roll(np.eye(n), -1, 0)) / 2
    H = np.array(witness.state)[:, None]
    H0 = H if witness.initial is None else np.array(witness.initial)[:, None]
    numbers = {name: float(value) for name, value in witness.coefficients.items()}
    values = {name: np.full((1, 1), x) if name == "W" else np.array(x) for name, x in numbers.items()}
    rate = 2 * float(np.sum((H - A @ H) * dense.evaluate(system.expression, {"A": A, "H": H, "H0": H0, **values})))
    assert rate > 0
    assert rate == pytest.approx(witness.rate, rel=1e-7)
    assert set(numbers) == {*system.coefficients, *({"W"} & set(system.letters))}
    if law.threshold is not None:
        assert float(law.threshold.subs({**numbers, "w": numbers.get("W", 0.0)})) > 0


def test_a_symmetric_matrix_counts_by_its_eigenvalues() -> None:
    """A H W - H on random graphs: the energy never increases where |w| <= 1, and increases for W = 2."""
    law = rd.theory.energy_law("A@H@W - alpha*H where W symmetric")
    assert [float(law.threshold.subs({"alpha": 1, "w": w})) <= 0 for w in (-1.1, -0.9, 0.9, 1.1)] == [0, 1, 1, 0]
    rng = np.random.default_rng(3)
    B = np.triu((rng.random((9, 9)) < 0.4).astype(float), 1)
    B[0, :] = 1
    B += B.T
    np.fill_diagonal(B, 0)
    A = B / np.sqrt(np.outer(B.sum(1), B.sum(1)))
    W = rng.normal(size=(3, 3))
    W = (W + W.T) / 2
    W /= np.abs(np.linalg.eigvalsh(W)).max()
    for _ in range(50):
        H = rng.normal(size=(9, 3))
        assert np.sum((H - A @ H) * (A @ H @ W - H)) <= 1e-12


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
