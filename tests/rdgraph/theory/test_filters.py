"""Spectra: three routes to every response, Runge-Kutta methods, filter classes and growth rates against numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.linalg import expm

import rdgraph as rd
from rdgraph.errors import InvalidArgument, NotApplicable, UnknownName
from rdgraph.language.answer_symbols import public
from rdgraph.language.tree import Kind
from rdgraph.systems.catalogue import catalogue
from rdgraph.systems.system import System
from rdgraph.testing import systems
from tests.property_examples import examples
from tests.rdgraph.theory.filter_cases import (
    CHANNELS,
    END,
    GRAPHS,
    LAM,
    LINEAR,
    VALUES,
    dense_generators,
    draw_values,
    gains,
    operator,
    per_channel,
    unit_of_time,
)


def test_the_linear_part_of_the_catalogue() -> None:
    assert LINEAR == [
        "diffusion", "BS", "ST", "FB", "FB*", "FB-released", "FB*-released", "GRAND-l", "GRAFF-diagonal",
        "APPNP", "SGC",
    ]  # fmt: skip


# ---------------------------------------------------------------------- the dense generator
def read(text: str) -> sp.Expr:
    return sp.sympify(text, locals={n: sp.Symbol(n) for n in ("alpha", "beta", "lam", "T")})


def phi1(x: np.ndarray) -> np.ndarray:
    small = np.abs(x) < 1e-12
    return np.where(small, 1 + x / 2, np.expm1(x) / np.where(small, 1.0, x))


def assert_three_routes(system: System, A: np.ndarray, values: dict[str, Any], end: float) -> None:
    """Symbolic response in the eigenbasis = scalar formulas on diag(V^T G V) = expm of the augmented generator."""
    n = len(A)
    mu, V = np.linalg.eigh(A)
    symbolic = system.response(T=end)
    p, q = system.symbol(), public(system.source_symbol)
    for channel, (G, S) in enumerate(dense_generators(system, A, values)):
        own = per_channel(system, values, channel)
        rotated, rotated_source = V.T @ G @ V, V.T @ S @ V
        rounding = 1e-11 * (1 + np.abs(G).max() + np.abs(S).max())
        np.testing.assert_allclose(rotated, np.diag(gains(p, 1 - mu, own)), atol=rounding)
        np.testing.assert_allclose(rotated_source, np.diag(gains(q, 1 - mu, own)), atol=rounding)
        x = end * np.diag(rotated)
        first = V @ np.diag(gains(symbolic, 1 - mu, own)) @ V.T
        second = V @ np.diag(np.exp(x) + end * np.diag(rotated_source) * phi1(x)) @ V.T
        augmented = expm(end * np.block([[G, S], [np.zeros((n, 2 * n))]]))
        third = augmented[:n, :n] + augmented[:n, n:]
        scale = 1 + np.abs(third).max()
        np.testing.assert_allclose(first / scale, third / scale, atol=1e-10)
        np.testing.assert_allclose(second / scale, third / scale, atol=1e-10)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("name", LINEAR)
def test_three_routes_for_the_catalogue(name: str, graph: str) -> None:
    system = catalogue[name]
    values = {n: spread(VALUES[n], kind) for n, kind in system.coefficients.items()}
    assert_three_routes(system, operator(graph), values, 1.7)


def spread(value: float, kind: Kind) -> Any:
    """A number, or one for each channel."""
    return value * np.linspace(1.0, 0.5, CHANNELS) if kind is Kind.CHANNEL else value


@settings(max_examples=examples(60))
@given(systems(linear=True), st.sampled_from(sorted(GRAPHS)), st.integers(0, 2**20), st.sampled_from([0.01, 1, 3]))
@example(rd.parse("(2*alpha*A + 0.1*A)@H + alpha*H0"), "bipartite", 0, 0.01)
def test_three_routes_for_random_systems(system: System, graph: str, seed: int, times: float) -> None:
    values = draw_values(system, seed)
    assert_three_routes(system, operator(graph), values, times * unit_of_time(system, operator(graph), values))


@pytest.mark.parametrize(
    ("name", "p", "response"),
    [
        ("diffusion", "-alpha*lam", "exp(-T*alpha*lam)"),
        ("BS", "(beta-alpha)*lam - beta*lam**2", "exp(T*((beta-alpha)*lam - beta*lam**2))"),
        ("FB", "(beta-alpha)*lam", "exp(T*(beta-alpha)*lam)"),
        ("FB*", "(beta-alpha)*lam + beta", "exp(T*((beta-alpha)*lam + beta))"),
        ("FB-released", "2*beta - (alpha+beta)*lam", "exp(T*(2*beta - (alpha+beta)*lam))"),
        ("FB*-released", "3*beta - (alpha+beta)*lam", "exp(T*(3*beta - (alpha+beta)*lam))"),
    ],
)
def test_symbols_and_responses_in_closed_form(name: str, p: str, response: str) -> None:
    assert sp.expand(catalogue[name].symbol() - read(p)) == 0
    assert sp.simplify(catalogue[name].response() - read(response)) == 0


def test_source_response_at_rest_and_in_general() -> None:
    response = catalogue["ST"].response()
    alpha, beta = sp.symbols("alpha beta")
    assert response.subs(LAM, 0) == 1 + beta * END
    decay = sp.exp(-alpha * END * LAM)
    wanted = (decay + beta / (alpha * LAM) * (1 - decay)).subs({alpha: 2, beta: 3, END: 1, LAM: sp.Rational(1, 2)})
    got = response.subs({alpha: 2, beta: 3, END: 1, LAM: sp.Rational(1, 2)})
    assert sp.simplify(got - wanted) == 0


@pytest.mark.parametrize(
    ("text", "declared", "why"),
    [
        ("-k*L@H", {"k": "node"}, "node coefficient"),
        ("A@(k*H)", {"k": "node"}, "node coefficient"),
        ("-L@H + H@W", {}, "mixes channels"),
        ("-alpha*L@H + beta*H*(1 - H)", {}, "nonlinear"),
        ("-L@tanh(H)", {}, "nonlinear"),
        ("H*(A@H)", {}, "nonlinear"),
        ("A@H*M", {}, "node coefficient"),
    ],
)
def test_no_symbol_and_the_reason(text: str, declared: dict[str, str], why: str) -> None:
    system = rd.parse(text, declared)
    for question in (
        system.symbol,
        system.response,
        lambda: rd.classify(system),
        lambda: rd.theory.growth_rate(system),
    ):
        with pytest.raises(NotApplicable, match="no symbol because") as caught:
            question()
        assert why in str(caught.value)


def test_a_masked_source_leaves_the_symbol_but_no_response() -> None:
    system = catalogue["GRAND++"]
    assert system.symbol() == -LAM
    with pytest.raises(NotApplicable, match="no response because"):
        system.response()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"T": -1}, "T >= 0"),
        ({"T": float("nan")}, "finite T"),
        ({"T": 1, "method": "euler", "step": 0}, "step > 0"),
        ({"T": 1, "method": "euler", "step": -0.5}, "step > 0"),
        ({"T": 1, "method": "euler", "step": float("inf")}, "finite step"),
        ({"T": 1j}, "real T"),
    ],
)
def test_refused_times_and_steps(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        catalogue["BS"].response(**options)


def test_unknown_methods_offer_the_nearest() -> None:
    with pytest.raises(UnknownName, match="did you mean 'euler'"):
        catalogue["BS"].response(T=1, method="eular", step=1)
