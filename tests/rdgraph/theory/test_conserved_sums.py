"""Conserved sums: known combinations, their weights, and completeness."""

from __future__ import annotations

import numpy as np
import pytest

import rdgraph as rd
from tests.adversary import field_attacks
from tests.adversary.field_systems import DrawnFields


def texts(system: str) -> list[str]:
    return [one.text for one in rd.theory.conserved(system).sums]


@pytest.mark.parametrize(
    ("system", "sums"),
    [
        ("u' = -beta*u*(A@v); v' = beta*u*(A@v) - gamma*v; w' = gamma*v", ["u + v + w"]),
        ("u' = -Du*L@u; v' = -Dv*L@v", ["u", "v"]),
        ("u' = a*u*v - L@u; v' = -b*u*v - L@v", ["a*v + b*u"]),
        ("H'' = -gamma*L@H", ["H'"]),
        ("u' = sin(t)*v; v' = -sin(t)*v", ["u + v"]),
        ("u' = a - u + u**2*v; v' = b - u**2*v", []),
        ("u' = -L@u + xi; v' = L@v", ["v"]),
    ],
)
def test_combinations(system: str, sums: list[str]) -> None:
    assert texts(system) == sums


def test_weights_follow_the_normalisation_and_nodes_may_conserve_by_themselves() -> None:
    diffusing = rd.theory.conserved("u' = -u*v - L@u; v' = u*v - L@v").sums[0]
    assert dict(diffusing.weights) == {"symmetric": "sqrt(d)", "row": "d", "column": "1", "none": "1"}
    assert not diffusing.is_local
    local = rd.theory.conserved("u' = -u*v; v' = u*v").sums[0]
    assert local.is_local
    assert set(local.weights.values()) == {"any"}
    laplacian = rd.theory.conserved("u' = -L@u; v' = A@u - u").sums[0]
    assert (laplacian.text, "none" in laplacian.weights) == ("u - v", False)


def test_exchange_along_edges_is_conserved_on_undirected_graphs() -> None:
    answer = rd.theory.conserved("u' = u*(A@v); v' = -v*(A@u)")
    assert [one.text for one in answer.sums] == ["u + v"]
    assert dict(answer.sums[0].weights) == {"row": "d", "none": "1", "symmetric": "1"}
    drawn = DrawnFields((("u", "u*(A@v)"), ("v", "-v*(A@u)")))
    assert field_attacks.conserved(drawn, answer, np.random.default_rng(5)) is None


def test_exchange_within_one_field_is_conserved_on_undirected_graphs() -> None:
    """Sums over undirected graphs with the weights d of the nodes; on a directed graph w = w A is not conserved."""
    answer = rd.theory.conserved("H**2*(A@H) - H*(A@(H**2))")
    assert (answer.weights, answer.is_undirected) == ({"row": "d", "none": "1", "symmetric": "1"}, True)
    rng = np.random.default_rng(3)
    weights, h = rng.uniform(0.5, 2.0, (5, 5)), rng.normal(size=5)
    undirected = weights + weights.T
    for matrix, is_conserved in ((undirected, True), (weights, False)):
        A = matrix / matrix.sum(1, keepdims=True)
        values, vectors = np.linalg.eig(A.T)
        w = vectors[:, np.argmin(abs(values - 1))].real
        drift = w @ (h**2 * (A @ h) - h * (A @ h**2))
        assert bool(abs(drift) < 1e-12) is is_conserved


def test_products_of_two_operators_are_not_claimed_to_be_complete() -> None:
    assert not rd.theory.conserved("u' = (A@u)*(A@v); v' = -u*(A@A@v)").is_complete
