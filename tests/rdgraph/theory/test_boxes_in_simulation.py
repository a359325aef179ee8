"""Invariant boxes: kept by simulated states, known ones found, and none where there is none."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

import rdgraph as rd
from rdgraph.errors import NotApplicable
from rdgraph.graphs.normalisation import dense_operator
from rdgraph.systems.catalogue import catalogue
from rdgraph.systems.system import System
from rdgraph.testing import adjacency
from rdgraph.theory.equality import dense_oracle as dense
from tests.property_examples import examples
from tests.rdgraph.theory.simulated_cases import BOXES, at, box_of, coefficients_of


def leaves(
    system: System, A: np.ndarray, values: dict[str, float], lower: float, upper: float, start: np.ndarray
) -> float:
    """How far a trajectory gets out of the box."""

    def f(_: float, y: np.ndarray) -> np.ndarray:
        H = y.reshape(-1, 1)
        filled = {"A": A, "H": H, "H0": start, **values}
        return np.broadcast_to(dense.evaluate(system.expression, filled), H.shape).ravel()

    path = solve_ivp(f, (0, 4.0), start.ravel(), rtol=1e-8, atol=1e-10).y
    return float(max(path.max() - upper, lower - path.min()))


@pytest.mark.slow_cases(9)
@pytest.mark.parametrize("normalisation", ["row", "symmetric"])
@pytest.mark.parametrize("name", BOXES)
def test_boxes_are_invariant(name: str, normalisation: str) -> None:
    box = box_of(name, normalisation)
    if not box.exists:
        assert box.reason
        return
    text, assume = BOXES[name]
    system = rd.parse(text, assume=assume)

    @settings(max_examples=examples(8))
    @given(adjacency(min_nodes=3, max_nodes=6, connected=True, weighted=True), st.integers(0, 2**20))
    def check(graph: np.ndarray, seed: int) -> None:
        generator = np.random.default_rng(seed)
        A, values = dense_operator(graph, normalisation), coefficients_of(system, generator)
        known = {**values, "R": float(generator.uniform(0.5, 3)), "s": float(A.sum(axis=1).max())}
        ends = [(box.lower, box.upper), *box.others]
        for pair in ends:
            lower, upper = (at(e, known) for e in pair)
            assert lower < upper
            start = generator.uniform(lower, upper, (len(A), 1))
            start[0], start[-1] = lower, upper
            assert leaves(system, A, values, lower, upper, start) < 1e-6

    check()


@pytest.mark.parametrize(
    ("name", "lower", "upper"),
    [
        ("F", 0, 1),
        ("AC", -1, 1),
        ("Z", 0, 1),
        ("F, beta<0", 0, 1),
        ("AC, beta<0", -1, 1),
        ("Z, beta<0", 0, 1),
        ("Nagumo", 0, 1),
    ],
)
def test_known_row_boxes(name: str, lower: int, upper: int) -> None:
    assert (box_of(name, "row").lower, box_of(name, "row").upper) == (lower, upper)


@pytest.mark.parametrize(
    ("name", "upper", "lower"),
    [
        ("F", lambda q: 1 + q, lambda q: 0),
        ("AC", lambda q: np.sqrt(1 + q), lambda q: -np.sqrt(1 + q)),
        ("Z", lambda q: (1 + np.sqrt(1 + 4 * q)) / 2, lambda q: 0),
    ],
)
def test_known_symmetric_boxes(name: str, upper: Callable[[float], float], lower: Callable[[float], float]) -> None:
    box = box_of(name, "symmetric")
    for alpha, beta, s in ((1.0, 1.0, 1.0), (0.7, 1.3, 2.5), (2.0, 0.3, 7.0)):
        q = alpha / beta * (s - 1)
        values = {"alpha": alpha, "beta": beta, "s": s}
        assert at(box.upper, values) == pytest.approx(upper(q))
        assert at(box.lower, values) == pytest.approx(lower(q), abs=1e-12)


@pytest.mark.parametrize("name", ["F", "AC", "Z"])
def test_the_star_leaves_the_row_box(name: str) -> None:
    """Symmetric A on a star: from the upper face of the row box the hub moves out."""
    system, star = catalogue[name], np.zeros((6, 6))
    star[0, 1:] = star[1:, 0] = 1
    values = {"alpha": 1.0, "beta": 1.0}
    row = box_of(name, "row")
    lower, upper = float(row.lower), float(row.upper)
    assert leaves(system, dense_operator(star, "symmetric"), values, lower, upper, np.full((6, 1), upper)) > 0.05
    assert leaves(system, dense_operator(star, "row"), values, lower, upper, np.full((6, 1), upper)) < 1e-6


@pytest.mark.parametrize(
    "text", ["BS", "ST", "FB*", "CGNN", "GRAND++", "-alpha*L@H + beta*exp(H)", "-alpha*L@H + H**2 + 1"]
)
def test_no_box_where_none_exists(text: str) -> None:
    for normalisation in ("row", "symmetric"):
        box = rd.invariant_box(rd.parse(text), normalisation)
        assert not box.exists
        assert box.upper is None
        assert box.reason


def test_blurring_sharpening_loses_positivity() -> None:
    path = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=float)
    start = np.array([[0.0], [0.0], [1.0]])
    values = {"alpha": 1.0, "beta": 1.0}
    assert leaves(catalogue["BS"], dense_operator(path, "row"), values, 0.0, 1.0, start) > 0.01
    assert "maximum principle" in rd.invariant_box(catalogue["BS"], "row").reason


def test_boxes_know_two_normalisations() -> None:
    for question in (rd.invariant_box, lambda s, n: rd.step_limit(s, "euler", n)):
        with pytest.raises(NotApplicable, match="symmetric or row"):
            question(catalogue["F"], "column")
