"""Records of integrators, and a method that comes from outside: from gains and limits to training and commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import sympy as sp
import torch
from typer.testing import CliRunner

import rdgraph as rd
from analysis import empirical_gains
from rdgraph.errors import InvalidArgument, NotApplicable, UnknownName
from rdgraph.vocabulary.methods import FIXED, FOR_NOISE, METHODS, WITH_ADJOINT, find_method, make_tableau, records

F64 = torch.float64
RALSTON = make_tableau("ralston", [[], ["2/3"]], ["1/4", "3/4"], 2, note="Ralston's method of order 2")


def shu_osher(f: Any, H: Any, dt: Any) -> Any:
    """The strong-stability-preserving method of order 3 (Shu and Osher 1988), as convex combinations of Euler steps."""
    first = H + dt * f(H)
    second = 3 * H / 4 + (first + dt * f(first)) / 4
    return H / 3 + 2 * (second + dt * f(second)) / 3


@pytest.fixture
def own_methods() -> Iterator[None]:
    rd.register_method("ralston", RALSTON)
    rd.register_method("ssp3", shu_osher, order=3)
    yield
    rd.vocabulary.unregister_method("ralston")
    rd.vocabulary.unregister_method("ssp3")


# ---------------------------------------------------------------------- the records
def test_every_record_says_what_it_applies_to() -> None:
    fixed = ["euler", "midpoint", "heun", "rk4", "rk4-classical", "semi-implicit-euler"]
    assert list(records) == [*fixed, "strang", "imex", "exact", "dopri5", *FOR_NOISE]
    assert list(FOR_NOISE) == ["euler-maruyama", "exponential-euler-maruyama"]
    assert set(FIXED) == set(fixed)
    assert set(WITH_ADJOINT) == {"euler", "midpoint", "heun", "rk4", "dopri5"}
    assert [n for n in METHODS if find_method(n).is_exact] == ["exact"]
    assert [n for n in METHODS if find_method(n).is_splitting] == ["strang"]
    assert [n for n in METHODS if find_method(n).is_adaptive] == ["dopri5"]
    for record in records.values():
        assert record.note
        assert record.tableau is None or record.tableau.order == record.order
    with pytest.raises(UnknownName, match="did you mean 'heun'"):
        find_method("huen")


@pytest.mark.parametrize(
    ("name", "definition", "settings", "text"),
    [
        ("euler", RALSTON, {}, "taken by another method"),
        ("auto", RALSTON, {}, "taken by another method"),
        ("not a name", RALSTON, {}, "letters, digits"),
        ("mine", RALSTON, {"order": 3}, "the order 2, got order=3"),
        ("mine", shu_osher, {}, "needs order= >= 1"),
        ("mine", shu_osher, {"order": 4}, "the order 4: .* fall like order 2.8"),
        ("mine", lambda f, H, dt: H + dt * f(H) / 2, {"order": 1}, "the order 1"),
        ("mine", lambda f, H, dt: H.clone(), {"order": 1}, "plain arithmetic"),
        ("mine", "rk4", {}, "a Tableau or a function"),
    ],
)
def test_what_is_no_method_is_refused(name: str, definition: Any, settings: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidArgument, match=text):
        rd.register_method(name, definition, **settings)
    assert "mine" not in records


def test_a_tableau_that_contradicts_its_order_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="declares order 3"):
        make_tableau("wrong", [[], ["2/3"]], ["1/4", "3/4"], 3)


def test_only_what_was_registered_can_be_taken_out() -> None:
    with pytest.raises(UnknownName, match="registered method"):
        rd.vocabulary.unregister_method("euler")


# ---------------------------------------------------------------------- Ralston's method from outside
@pytest.mark.usefixtures("own_methods")
def test_a_registered_tableau_has_gains_and_limits() -> None:
    lam, alpha = sp.symbols("lam alpha")
    one = 1 - lam * alpha / 2 + lam**2 * alpha**2 / 8
    assert sp.expand(rd.theory.response(rd.catalogue["diffusion"], T=1, method="ralston", step=0.5) - one**2) == 0
    assert rd.step_limit(rd.parse("diffusion"), "ralston").value == rd.step_limit(rd.parse("diffusion"), "heun").value
    page = rd.preflight("BS", T=4, method="ralston", step=0.25, values={"alpha": 1, "beta": 0.5})
    assert page.outcome == "safe"
    assert page.settings["method"] == "ralston"
    op = rd.generators.path(5).operator("symmetric", dtype=F64)
    found = empirical_gains("BS", op, {"alpha": 0.7, "beta": 0.4}, T=2.0, method="ralston", step=0.5)
    assert found.error.max() < 1e-13


@pytest.mark.usefixtures("own_methods")
@pytest.mark.parametrize(("name", "order"), [("ralston", 2), ("ssp3", 3)])
def test_registered_methods_solve_with_their_order(name: str, order: int) -> None:
    field = rd.lower("F", rd.generators.ring(5).operator("row", dtype=F64), {"alpha": 1.0, "beta": 2.0}, batch=(2,))
    H0 = torch.rand(2, 5, 3, dtype=F64, generator=torch.Generator().manual_seed(0))
    truth = rd.solve(field, H0, [0.0, 1.0], "dopri5", rtol=1e-12, atol=1e-14).final
    errors = [float((rd.solve(field, H0, [0.0, 1.0], name, step=h).final - truth).norm()) for h in (0.1, 0.05)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.35)
    sol = rd.solve(field, H0, [0.0, 1.0], name, step=0.1)
    assert sol.method == name
    assert sol.stats.evaluations == 10 * order
    bad = H0.clone()
    bad[1] = torch.nan
    assert rd.solve(field, bad, [0.0, 1.0], name, step=0.1).status.tolist() == ["ok", "not-a-number"]


@pytest.mark.usefixtures("own_methods")
def test_a_step_function_has_no_gains_and_says_so() -> None:
    with pytest.raises(NotApplicable, match="a step function without a tableau"):
        rd.theory.response(rd.catalogue["diffusion"], T=1, method="ssp3", step=0.5)
    assert "a step function has no tableau" in str(rd.preflight("BS", method="ssp3", step=0.5))


@pytest.mark.usefixtures("own_methods")
@pytest.mark.parametrize("name", ["ralston", "ssp3"])
@pytest.mark.parametrize("reaction", ["BS", "-alpha*L@H + beta*tanh(H)"])
def test_registered_methods_train(name: str, reaction: str) -> None:
    from gread import GREADClassifier

    rng = np.random.default_rng(0)
    y = np.arange(24) % 2
    x = rng.normal(size=(24, 4)) + y[:, None]
    graph = rd.generators.ring(24)
    settings: dict[str, Any] = {"epochs": 3, "hidden": 4, "heads": 1, "attention_dim": 4}
    clf = GREADClassifier(reaction=reaction, method=name, step=0.5, **settings).fit(x, y, graph=graph, mask=y >= 0)
    assert clf.predict(x, graph=graph).shape == (24,)


@pytest.mark.usefixtures("own_methods")
def test_registered_methods_are_known_on_the_command_line() -> None:
    from studies.cli.app import app

    words = ["preflight", "BS", "--method", "ralston", "--step", "0.25", "--set", "alpha=1", "--set", "beta=0.5"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "method = ralston" in done.stdout


def test_without_it_the_name_is_unknown() -> None:
    with pytest.raises(UnknownName, match="ralston"):
        rd.preflight("BS", method="ralston", step=0.25)


# ---------------------------------------------------------------------- Euler with the new velocity
def test_the_semi_implicit_method_moves_by_the_new_velocity() -> None:
    op = rd.generators.path(5).operator("row", dtype=F64)
    field = rd.lower("u' = -u; H'' = -gamma*tanh(H) - alpha*H' + A@u", op, {"alpha": 0.3, "gamma": 0.8})
    start = torch.randn(5, 6, generator=torch.Generator().manual_seed(0), dtype=F64)
    found = rd.solve(field, start, [0.0, 1.0], "semi-implicit-euler", step=0.25).final
    A = op.dense().numpy()
    u, h, v = np.split(start.numpy(), 3, 1)
    for _ in range(4):
        v = v + 0.25 * (-0.8 * np.tanh(h) - 0.3 * v + A @ u)
        u, h = u - 0.25 * u, h + 0.25 * v
    np.testing.assert_allclose(found.numpy(), np.concatenate([u, h, v], 1), rtol=1e-12, atol=1e-13)


def test_the_semi_implicit_method_is_euler_for_fields_of_first_order() -> None:
    op = rd.generators.path(5).operator("row", dtype=F64)
    field, start = rd.lower("AC", op, {"alpha": 0.7, "beta": 0.2}), torch.eye(5, 3, dtype=F64)
    one, other = (rd.solve(field, start, [0.0, 1.0], m, step=0.3).final for m in ("euler", "semi-implicit-euler"))
    torch.testing.assert_close(one, other)


def test_the_semi_implicit_method_keeps_the_energy_of_a_wave() -> None:
    """Explicit Euler amplifies every oscillation, this one none up to a step of 2/frequency; its order is 1."""
    op = rd.generators.ring(6).operator("row", dtype=F64)
    field, start = rd.lower("H'' = -L@H", op, {}), torch.zeros(6, 2, dtype=F64)
    start[0, 0] = 1.0
    sizes = {
        method: float(rd.solve(field, start, [0.0, 200.0], method, step=0.5).final.abs().max())
        for method in ("euler", "semi-implicit-euler")
    }
    assert sizes["euler"] > 1e6
    assert sizes["semi-implicit-euler"] < 4
    exact = rd.solve(field, start, [0.0, 2.0], "exact").final
    errors = [
        float((rd.solve(field, start, [0.0, 2.0], "semi-implicit-euler", step=dt).final - exact).abs().max())
        for dt in (0.02, 0.01)
    ]
    assert 1.8 < errors[0] / errors[1] < 2.2
