"""The catalogue: data with sources, readable entries, the relations between them."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import rdgraph as rd
from rdgraph.errors import InvalidArgument
from rdgraph.graphs.normalisation import dense_operator
from rdgraph.language.normal_form import State
from rdgraph.systems.catalogue import CatalogueEntry
from rdgraph.theory.equality.dense_oracle import evaluate

NAMES = {
    "diffusion", "F", "AC", "Z", "BS", "ST", "FB", "FB*", "FB-released", "FB*-released", "GRAND-l", "GRAND++", "CGNN",
    "CGNN-authors", "GRAFF", "GRAFF-diagonal", "ACMP", "APPNP", "SGC", "GCNII", "GDE", "CGNN-unweighted", "Nagumo",
}  # fmt: skip
SEVERAL = {
    "Schnakenberg", "Brusselator", "Gray-Scott", "FitzHugh-Nagumo", "Gierer-Meinhardt", "Mimura-Murray",
    "Lotka-Volterra", "SIS", "SIR", "GraphCON", "GraphCON-linear", "BLEND", "BS-inhibited",
}  # fmt: skip


def test_names_and_sources() -> None:
    assert set(rd.catalogue) == NAMES | SEVERAL
    assert set(rd.catalogue.single) == NAMES
    for entry in rd.catalogue.entries.values():
        assert entry.source
        assert entry.title
        assert rd.catalogue[entry.name].name == entry.name
        assert rd.parse(str(rd.catalogue[entry.name])) == rd.catalogue[entry.name]


def test_lookup() -> None:
    assert rd.parse("blurring-sharpening") == rd.catalogue["bs"]
    assert rd.parse("BS", assume="beta<0").assumptions.sign("beta") == "negative"
    assert rd.parse("BS", {"beta": "channel"}).coefficients["beta"] == "channel"
    with pytest.raises(rd.errors.UnknownName, match="did you mean 'GRAND"):
        rd.catalogue["GRAND-2"]


def test_the_released_filter_banks_are_not_the_printed_ones() -> None:
    assert not rd.equivalent("FB", "FB-released")
    assert rd.equivalent("FB-released", "-alpha*L@H + beta*(2*H - L@H)")
    assert rd.equivalent("FB*-released", "-alpha*L@H + beta*(3*H - L@H)")
    assert [c.kind for c in rd.classify(rd.parse("FB", assume="beta > alpha"))] == ["high-pass"]
    assert [c.kind for c in rd.classify(rd.catalogue["FB-released"])] == ["low-pass"]


# ---------------------------------------------------------------------- several fields, and usual numbers
def flow(name: str, states: dict[str, float], **values: float) -> dict[str, float]:
    """The right-hand sides at states that are the same in all nodes of a ring, where the operator keeps them."""
    entry = rd.catalogue.entry(name)
    known = {**entry.parameters, **values, "A": dense_operator(ring(5), "row")}
    known |= {state: np.full((5, 1), value) for state, value in states.items()}
    rates = {state: evaluate(tree, known) for state, tree in entry.system.flow.items()}
    for rate in rates.values():
        np.testing.assert_allclose(rate, rate[0, 0], rtol=0, atol=1e-12)
    return {state: float(rate[0, 0]) for state, rate in rates.items()}


def ring(nodes: int) -> np.ndarray:
    shifted = np.roll(np.eye(nodes), 1, axis=0)
    return shifted + shifted.T


@pytest.mark.parametrize(
    ("name", "state", "values"),
    [
        ("Schnakenberg", {"u": 1.0, "v": 0.9}, {}),
        ("Brusselator", {"u": 1.0, "v": 3.0}, {}),
        ("Gray-Scott", {"u": 1.0, "v": 0.0}, {"F": 0.04, "k": 0.06}),
        ("Gierer-Meinhardt", {"u": 1.0, "v": 1.0}, {}),
        ("Mimura-Murray", {"u": 5.0, "v": 10.0}, {}),
        ("Lotka-Volterra", {"u": 4 / 7, "v": 6 / 7}, {"a": 0.5, "b": 0.25, "Du": 1.0, "Dv": 1.0}),
        ("SIS", {"u": 0.25, "v": 0.75}, {"beta": 2.0, "delta": 0.5}),
        ("SIR", {"u": 0.3, "v": 0.0, "w": 0.7}, {}),
        ("GraphCON", {"H": 0.0, "H'": 0.0}, {}),
        ("GraphCON-linear", {"H": 2.0, "H'": 0.0}, {}),
        ("BS-inhibited", {"u": 0.0, "v": 0.0}, {"alpha": 1, "beta": 2, "gamma": 1, "epsilon": 0.1, "Dv": 3}),
    ],
)
def test_the_published_steady_state_stands_still(name: str, state: dict[str, float], values: dict[str, float]) -> None:
    assert rd.catalogue[name].fields == tuple(state)
    rates = flow(name, state, **values)
    assert max(map(abs, rates.values())) < 1e-12
    moved = flow(name, {field: value + 0.1 for field, value in state.items()}, **values)
    assert max(map(abs, moved.values())) > 1e-3


def test_the_resting_state_of_a_nerve() -> None:
    """FitzHugh's point, four digits of it, and that it is the only one."""
    rates = flow("FitzHugh-Nagumo", {"u": 1.1994, "v": -0.6243}, Du=1.0)
    assert max(map(abs, rates.values())) < 1e-3
    u, numbers = sp.Symbol("u"), rd.catalogue.entry("FHN").parameters
    a, b = (sp.Rational(str(numbers[name])) for name in "ab")
    (root,) = sp.Poly(u - u**3 / 3 + (a - u) / b, u).real_roots()
    assert float(root) == pytest.approx(1.1994, abs=5e-5)
    assert float((a - root) / b) == pytest.approx(-0.6243, abs=5e-5)


def test_what_is_conserved() -> None:
    for name in ("SIS", "SIR"):
        assert sp.expand(sum(rd.catalogue[name].normals.values())) == 0
    u, v, a, b = State("u"), State("v"), *sp.symbols("a b", positive=True)
    brusselator = rd.catalogue["Brusselator"].replace(Du=0, Dv=0)
    assert sp.expand(sum(brusselator.normals.values()) - (a - u)) == 0
    assert sp.expand(brusselator.normals["v"] - (b * u - u**2 * v)) == 0


def test_linear_systems_of_several_fields() -> None:
    linear = {name for name, s in rd.catalogue.items() if not s.is_single and s.coupling.is_linear}
    assert linear == {"GraphCON-linear", "BLEND", "BS-inhibited"}
    lam, alpha, gamma = sp.symbols("lam alpha gamma")
    assert rd.theory.symbol("GraphCON-linear") == sp.Matrix([[0, 1], [1 - gamma - lam, -alpha]])
    beta, epsilon, Dv = sp.symbols("beta epsilon Dv")
    expected = sp.Matrix([[rd.theory.symbol("BS"), -gamma], [epsilon, -epsilon - Dv * lam]])
    assert (rd.theory.symbol("BS-inhibited") - expected).expand() == sp.zeros(2)
    assert rd.theory.symbol("BS").has(beta)


def test_numbers_are_coefficients_with_a_source() -> None:
    for entry in rd.catalogue.entries.values():
        assert set(entry.parameters) <= set(entry.system.coefficients)
        if not entry.system.is_single:
            assert set(entry.parameters) == set(entry.system.coefficients)
        assert bool(entry.parameters) == bool(entry.parameters_source)
        assert all(value > 0 for value in entry.parameters.values())
    with pytest.raises(InvalidArgument, match="parameters_source"):
        CatalogueEntry("x", "x", "-alpha*L@H", "x", parameters={"alpha": 1.0})


def test_numbers_that_follow_from_published_ones() -> None:
    yeasts, school = rd.catalogue.entry("competition").parameters, rd.catalogue.entry("SIR").parameters
    assert yeasts["a"] == pytest.approx(3.15 * 5.8 / 13, rel=1e-4)
    assert yeasts["b"] == pytest.approx(0.439 * 13 / 5.8, rel=1e-4)
    assert yeasts["rho"] == pytest.approx(0.06069 / 0.21827, rel=1e-4)
    assert school["beta"] == pytest.approx(2.18e-3 * 763, rel=1e-12)
    assert school["delta"] == pytest.approx(2.18e-3 * 202, rel=1e-12)
    network = rd.catalogue.entry("Mimura-Murray").parameters
    assert network["Dv"] == pytest.approx(15.6 * network["Du"], rel=1e-12)


def test_one_step_of_appnp_is_its_layer() -> None:
    numbers = rd.catalogue.entry("APPNP").parameters
    step = rd.theory.euler_map(rd.catalogue["APPNP"].replace(**numbers), step=1)
    assert rd.equivalent(step, "0.9*A@H + 0.1*H0")


def test_the_diffusivities_of_mimura_and_murray_make_patterns() -> None:
    """Linearised by hand at (5, 10): some mode of L grows, and without diffusion none does."""
    numbers = rd.catalogue.entry("Mimura-Murray").parameters
    kinetics = np.array([[10 / 3, -5.0], [10.0, -4.0]])
    diffusion = np.diag([numbers["Du"], numbers["Dv"]])
    growth = [np.linalg.eigvals(kinetics - lam * diffusion).real.max() for lam in np.linspace(0, 30, 3001)]
    assert growth[0] < 0 < max(growth)
