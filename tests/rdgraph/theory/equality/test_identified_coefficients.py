"""Identifiable combinations of coefficients, and their rank against that of a numeric Jacobian."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sp

import rdgraph as rd
from rdgraph.graphs.normalisation import dense_operator
from rdgraph.systems.system import System
from rdgraph.theory.equality import dense_oracle as dense
from tests.rdgraph.theory.equality.small_graph import GRAPH

IDENTIFIED: dict[str, tuple[str, set[str], set[str], set[str]]] = {
    # equation, combinations, coefficients known one by one, hidden ones
    "FB": ("FB", {"alpha - beta"}, set(), set()),
    "BS": ("BS", {"alpha", "beta"}, {"alpha", "beta"}, set()),
    "F": ("F", {"alpha", "beta"}, {"alpha", "beta"}, set()),
    "Z": ("Z", {"alpha", "beta"}, {"alpha", "beta"}, set()),
    "product": ("-a*b*L@H", {"a*b"}, set(), set()),
    "product and factor": ("-a*b*L@H + b*H**2", {"a", "b"}, {"a", "b"}, set()),
    "hidden": ("-alpha*L@H + beta*H - beta*H", {"alpha"}, {"alpha"}, {"beta"}),
    "hidden in L": ("-alpha*L@H + beta*(L + A - I)@H", {"alpha"}, {"alpha"}, {"beta"}),
    "sum": ("-(alpha + 2*beta)*L@H + gamma*H0", {"alpha + 2*beta", "gamma"}, {"gamma"}, set()),
    "inside": ("-alpha*L@H + tanh(beta*H)", {"alpha", "beta"}, {"alpha", "beta"}, set()),
    "inside product": ("-alpha*L@H + tanh(a*b*H)", {"alpha", "a*b"}, {"alpha"}, set()),
    "inside sum": ("-alpha*L@H + sin((a + b)*H)", {"alpha", "a + b"}, {"alpha"}, set()),
    "ratio": ("-alpha/beta*L@H + H**2", {"alpha/beta"}, set(), set()),
    "square": ("-alpha**2*L@H + alpha*beta*H**3", {"alpha", "beta"}, {"alpha", "beta"}, set()),
    "ACMP": ("ACMP", {"alpha*(beta - 1)", "delta"}, {"delta"}, set()),
    "Nagumo": ("Nagumo", {"a", "alpha", "beta"}, {"a", "alpha", "beta"}, set()),
}


@cache
def identified(name: str) -> Any:
    return rd.theory.identify(rd.parse(IDENTIFIED[name][0]))


@pytest.mark.parametrize("name", IDENTIFIED)
def test_identifiable_combinations(name: str) -> None:
    _, combinations, single, hidden = IDENTIFIED[name]
    answer = identified(name)
    letters = {n: sp.Symbol(n) for n in ("alpha", "beta", "gamma", "delta", "a", "b")}
    expected = {sp.expand(sp.sympify(c, locals=letters)) for c in combinations}
    got = {sp.expand(c) for c in answer.combinations}
    assert {min(c, -c, key=str) for c in got} == {min(c, -c, key=str) for c in expected}
    assert set(answer.single) == single
    assert set(answer.hidden) == hidden


def flow_end(system: System, values: dict[str, float], start: np.ndarray) -> np.ndarray:
    """H(T) by many classical Runge-Kutta steps: smooth in the coefficients."""
    A, H, step = dense_operator(GRAPH, "row"), start, 0.02

    def f(X: np.ndarray) -> np.ndarray:
        return np.broadcast_to(dense.evaluate(system.expression, {"A": A, "H": X, "H0": start, **values}), X.shape)

    for _ in range(12):
        k1 = f(H)
        k2 = f(H + step / 2 * k1)
        k3 = f(H + step / 2 * k2)
        H = H + step / 6 * (k1 + 2 * k2 + 2 * k3 + f(H + step * k3))
    return H


@pytest.mark.parametrize("name", IDENTIFIED)
def test_rank_is_that_of_the_numeric_jacobian(name: str) -> None:
    system = rd.parse(IDENTIFIED[name][0])
    generator = np.random.default_rng(2)
    values = {n: float(generator.uniform(0.3, 0.9)) for n in system.coefficients}
    start = generator.uniform(-0.8, 0.8, (7, 3))
    columns = {}
    for letter in values:
        ends = [flow_end(system, {**values, letter: values[letter] + e * 1e-5}, start) for e in (1, -1)]
        columns[letter] = (ends[0] - ends[1]).ravel() / 2e-5
    sizes = np.linalg.svd(np.array(list(columns.values())), compute_uv=False)
    assert int((sizes > 1e-6 * max(sizes[0], 1e-3)).sum()) == identified(name).rank
    for letter in identified(name).hidden:
        assert np.abs(columns[letter]).max() < 1e-8
