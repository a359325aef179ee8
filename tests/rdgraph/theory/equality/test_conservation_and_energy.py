"""Conserved means and laws of the energy, each against numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy as sp
from scipy.integrate import solve_ivp

import rdgraph as rd
from rdgraph.graphs.normalisation import dense_operator
from rdgraph.language.tree import Kind
from rdgraph.systems.catalogue import catalogue
from rdgraph.theory.equality import dense_oracle as dense
from tests.rdgraph.theory.equality.small_graph import GRAPH

# ---------------------------------------------------------------------- conservation
CONSERVED = {
    "diffusion": True, "BS": True, "FB": True, "F": False, "AC": False, "ST": False, "FB*": False, "GRAND-l": True,
    "SGC": True, "-alpha*L@(H**3 - H)": True, "L@tanh(H) - L@L@H": True, "-L@H + H*(A@H) - A@(H*H)": False,
    "(A@H)*H - H*(A@H) - L@H": True, "-L@H@W": True, "H@W - A@H@W": True, "-k*L@H where k channel": True,
    "-k*L@H where k node": False, "A@(k*H) - k*H where k node": True,
}  # fmt: skip


@pytest.mark.parametrize("normalisation", ["symmetric", "row", "column"])
@pytest.mark.parametrize("text", CONSERVED)
def test_conserved_means_are_constant_in_simulation(text: str, normalisation: str) -> None:
    system = rd.parse(text)
    found = rd.theory.conserved(system)
    assert found.exists == CONSERVED[text]
    generator = np.random.default_rng(4)
    A, degree = dense_operator(GRAPH, normalisation), GRAPH.sum(axis=1)
    kinds = system.coefficients
    values: dict[str, Any] = {"W": generator.normal(size=(2, 2))}
    for name in kinds:
        shape = {Kind.CHANNEL: (2,), Kind.NODE: (7, 1)}.get(kinds[name], ())
        values[name] = generator.uniform(0.5, 1.5, shape)
    start = generator.uniform(-0.7, 0.7, (7, 2))

    def f(_: float, flat: np.ndarray) -> np.ndarray:
        H = flat.reshape(7, 2)
        return np.broadcast_to(
            dense.evaluate(system.expression, {"A": A, "H": H, "H0": start, **values}), H.shape
        ).ravel()

    end = solve_ivp(f, (0, 0.3), start.ravel(), rtol=1e-10, atol=1e-12).y[:, -1].reshape(7, 2)
    weights = {"symmetric": np.sqrt(degree), "row": degree, "column": np.ones(7)}[normalisation]
    drift = np.abs(weights @ (end - start)).max()
    if found.exists:
        named = {"sqrt(d)": np.sqrt(degree), "d": degree, "1": np.ones(7)}[found.weights[normalisation]]
        np.testing.assert_array_equal(named, weights)
        assert drift < 1e-8
    else:
        assert drift > 1e-4


# ---------------------------------------------------------------------- energy
@pytest.mark.parametrize("name", ["diffusion", "BS", "ST", "FB", "FB*", "FB-released", "APPNP", "SGC"])
def test_energy_law_is_the_derivative_of_the_energy(name: str) -> None:
    system = catalogue[name]
    law = rd.theory.energy_law(system)
    A = dense_operator(GRAPH, "symmetric")
    L = np.eye(7) - A
    lam, V = np.linalg.eigh(L)
    generator = np.random.default_rng(5)
    values = {n: v for n, v in {"alpha": 0.6, "beta": 0.9}.items() if n in system.coefficients}
    H, H0 = generator.normal(size=(2, 7, 2))
    rate = dense.evaluate(system.expression, {"A": A, "H": H, "H0": H0, **values})
    energy = [np.trace((H + e * rate).T @ L @ (H + e * rate)) for e in (1e-5, -1e-5)]
    c, c0 = V.T @ H, V.T @ H0
    modes = np.array([float(sp.sympify(law.mode_rate).subs({**values, "lam": x})) for x in lam])
    total = (modes[:, None] * c**2).sum()
    if law.source_rate is not None:
        sources = np.array([float(law.source_rate.subs({**values, "lam": x})) for x in lam])
        total += (sources[:, None] * c * c0).sum()
    assert total == pytest.approx((energy[0] - energy[1]) / 2e-5, rel=1e-7)
    assert (law.source_rate is not None) == system.structure.has_source


@pytest.mark.parametrize(
    ("text", "assume", "decays"),
    [
        ("diffusion", (), "never increases, on every graph"),
        ("-alpha*L@L@H", (), "never increases, on every graph"),
        ("BS", ("beta <= alpha",), "never increases, on every graph"),
        ("alpha*L@H", (), "increases on every graph with an edge, from some state, for all coefficients"),
        ("BS", ("alpha < beta",), "increases on some graph, from some state, for all coefficients"),
    ],
)
def test_energy_verdicts(text: str, assume: tuple[str, ...], decays: str) -> None:
    assert rd.theory.energy_law(rd.parse(text, assume=assume)).decays == decays


@pytest.mark.parametrize(("name", "threshold"), [("BS", 1.0), ("FB", 1.0)])
def test_energy_threshold(name: str, threshold: float) -> None:
    law = rd.theory.energy_law(catalogue[name])
    assert law.decays.startswith("never increases, on every graph, iff")
    for ratio in (0.5, 0.99, 1.01, 2.0):
        assert bool(law.threshold.subs({"alpha": 1, "beta": ratio}) <= 0) == (ratio <= threshold)


def test_nonlinear_systems_have_no_mode_rate() -> None:
    law = rd.theory.energy_law(catalogue["AC"])
    assert law.mode_rate is None
    assert law.decays.startswith("increases on some undirected regular graph")
