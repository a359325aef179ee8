"""Lipschitz constants of several fields: known values, and Jacobians in numpy that respect and reach them."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import rdgraph as rd
from rdgraph.theory.rate_bounds import rate_bound
from tests.adversary import graphs
from tests.adversary.field_systems import DrawnFields, FieldRun

SCHNAKENBERG = "u' = a - u + u**2*v - Du*L@u; v' = b - u**2*v - Dv*L@v"
R, s = sp.symbols("R s")
Du, Dv, alpha, beta, gamma = sp.symbols("Du Dv alpha beta gamma")


@pytest.mark.parametrize(
    ("text", "normalisation", "expected", "exact"),
    [
        (SCHNAKENBERG, "row", sp.Max(2 * Dv + 3 * R**2, 2 * Du + 3 * R**2 + 1), True),
        (SCHNAKENBERG, "symmetric", sp.Max(Dv * (s + 1) + 3 * R**2, Du * (s + 1) + 3 * R**2 + 1), True),
        (SCHNAKENBERG, "none", sp.Max(2 * Dv * s + 3 * R**2, 2 * Du * s + 3 * R**2 + 1), False),
        ("u' = -beta*u*(A@v); v' = beta*u*(A@v) - gamma*v", "row", 2 * R * beta + gamma, True),
        ("u' = (alpha - beta)*u; v' = 0*v", "row", sp.Abs(alpha - beta), True),
        ("u' = u - u**3 - v; v' = u", "row", sp.Max(2, 3 * R**2), True),
        ("u' = M*u*v; v' = -v", "row", sp.Max(1, 2 * R), False),
        ("u' = -alpha*exp(-t)*L@u", "row", 2 * alpha, False),
        ("u' = t*u", "row", sp.Symbol("T"), False),
        ("u' = t*tanh(u) - u", "row", sp.Symbol("T") + 1, False),
        ("u' = u0*tanh(u) - u; v' = -v", "row", R + 1, False),
        ("u' = B@u - u where B antisymmetric", "row", 1 + sp.Symbol("s_B"), False),
        ("u' = B@u - u where B stochastic", "row", sp.Integer(2), False),
    ],
)
def test_local_constants(text: str, normalisation: str, expected: sp.Expr, exact: bool) -> None:
    answer = rd.theory.lipschitz_local(text, normalisation)
    assert answer.norm == "inf-norm"
    assert answer.is_sharp is exact
    for numbers in ((0.5, 1.3, 0.7, 2.0, 1.1, 0.4, 3.0, 1.7), (2.5, 0.2, 1.9, 0.3, 0.6, 2.1, 1.2, 0.8)):
        letters = [R, s, Du, Dv, alpha, beta, gamma, sp.Symbol("T")]
        point = dict(zip(letters, numbers, strict=True)) | {sp.Symbol("s_B"): 1.5}
        assert float(answer.value.subs(point)) == pytest.approx(float(expected.subs(point)), rel=1e-12)


def test_a_constant_for_all_states_exists_for_bounded_slopes_and_not_for_products() -> None:
    assert rd.lipschitz_global("H'' = -gamma*H - alpha*H' + tanh(A@H)", "row").value == sp.Symbol("alpha") + gamma + 1
    none = rd.lipschitz_global(SCHNAKENBERG, "row")
    assert none.value is None
    assert none.is_sharp
    open_one = rd.lipschitz_global("u' = u**2/v; v' = -v", "row")
    assert open_one.value is None
    assert open_one.reason.startswith("undecided")


@pytest.mark.parametrize("normalisation", ["symmetric", "row", "column", "none"])
def test_sampled_jacobians_respect_the_constant_and_reach_an_exact_one(normalisation: str) -> None:
    drawn = DrawnFields((("u", "a - u + u**2*v - 0.5*L@u"), ("v", "2 - u**2*v - 3*L@v")))
    answer = rd.theory.lipschitz_local(drawn.text, normalisation)
    rng = np.random.default_rng(7)
    for graph in (graphs.star(5), graphs.cycle(6), graphs.with_isolated(graphs.pair())):
        run = FieldRun(drawn, graph, normalisation, {"a": 1.0})
        claimed = float(answer.value.subs({"R": 1.5, "s": run.row_sum}))
        corners = [1.5 * rng.choice([-1.0, 1.0], (2, graph.nodes)) for _ in range(200)]
        sums = [np.abs(run.jacobian(x)).sum(1).max() for x in corners]
        assert max(sums) <= claimed + 1e-9
        if answer.is_sharp and graph.nodes == 5:
            assert max(sums) == pytest.approx(claimed, rel=1e-12)


def test_one_sided_constants_keep_the_sign_of_damping() -> None:
    assert rd.theory.one_sided("u' = -2*u + v; v' = -u - 3*v", "row").value == -1


def _measure(matrix: np.ndarray) -> float:
    """The logarithmic norm in the max norm: the largest sum of a diagonal entry and |other entries|."""
    beside = np.abs(matrix).sum(1) - np.abs(np.diag(matrix))
    return float((np.diag(matrix) + beside).max())


@pytest.mark.parametrize("text", ["u' = A@(b*u) - b*u; v' = -v where b node", "A@(b*H) - b*H where b node"])
def test_the_node_coefficient_of_a_neighbour_may_be_larger(text: str) -> None:
    """On one edge with b = 1 and b = 10 the first row is -1, 10: two states part like exp(9 t)."""
    b = np.array([1.0, 10.0])
    jacobian = np.array([[0.0, 1.0], [1.0, 0.0]]) * b - np.diag(b)
    assert _measure(jacobian) == 9
    assert float(rd.theory.one_sided(text, "row").value.subs("b", b.max())) >= 9


@pytest.mark.parametrize("text", ["u' = b*u + A@(u/(1 + b)); v' = -v where b node", "b*H + A@(H/(1 + b)) where b node"])
def test_a_bound_never_falls_with_a_node_coefficient(text: str) -> None:
    b = np.array([10.0, 0.1])
    jacobian = np.diag(b) + np.array([[0.0, 1.0], [1.0, 0.0]]) / (1 + b)
    answer = rd.lipschitz_global(text, "row")
    assert float(answer.value.subs("b", b.max())) >= np.abs(jacobian).sum(1).max()
    assert "b counts by its largest modulus" in answer.reason


@pytest.mark.parametrize("text", ["u' = (c*u)@W - c*u; v' = -v where c channel", "(c*H)@W - c*H where c channel"])
def test_a_matrix_brings_the_coefficients_of_other_channels(text: str) -> None:
    c, W = np.array([1.0, 100.0]), np.array([[0.0, 0.0], [0.5, 0.0]])
    jacobian = (c[:, None] * W).T - np.diag(c)  # of an entry's channels, u @ W read as W.T @ u
    assert _measure(jacobian) == 49
    bound = rd.theory.one_sided(text, "row").value
    assert float(bound.subs({"c": c.max(), "norm_W": np.abs(W).sum(0).max()})) >= 49
    alone = rd.theory.one_sided("tanh(H@W) - c*H where c channel", "row").value
    assert alone == sp.Symbol("norm_W") - sp.Symbol("c")


@pytest.mark.parametrize("text", ["u' = b*(A@(c*u)); v' = -v where b node, c node", "b*(A@(c*H)) where b node, c node"])
def test_rates_put_in_the_largest_values_of_all_nodes(text: str) -> None:
    """b = 10 at one node and c = 10 at its neighbour: the Jacobian has the entry 100."""
    b, c = np.array([10.0, 0.1]), np.array([0.1, 10.0])
    jacobian = b[:, None] * np.array([[0.0, 1.0], [1.0, 0.0]]) * c
    bound = rate_bound(rd.parse(text), "row")
    assert np.max(bound.at({"b": b[:, None], "c": c[:, None]})) == pytest.approx(np.abs(jacobian).sum(1).max())
    assert np.max(bound.at({"b": b, "c": c})) == pytest.approx(100)


def test_masks_of_other_nodes_do_not_enter_a_bound_as_letters() -> None:
    answer = rd.theory.one_sided("u' = M*tanh(u) + A@(u/(1 + M)); v' = -v", "row")
    assert answer.value == 2


@pytest.mark.parametrize("text", ["-L@H + beta*softplus(H) - H**3", "u' = 2*softplus(u) - u**3 + v; v' = -v"])
def test_bounds_with_functions_that_numpy_lacks_have_a_number(text: str) -> None:
    bound = rate_bound(rd.parse(text, {"beta": "node"} if "beta" in text else None), "row")
    assert 12 < float(bound.at(radius=2.0)) < 15.01


@pytest.mark.parametrize("text", ["H0*tanh(H) - H", "(A@H0)*tanh(A@H)", "u' = u0*tanh(A@u) - u; v' = -v"])
def test_a_start_is_bounded_as_the_states_are(text: str) -> None:
    assert rd.lipschitz_global(text, "row").value is None
    answer = rate_bound(rd.parse(text), "row")
    assert float(answer.at(radius=8.0)) - float(answer.at(radius=1.0)) == pytest.approx(7)


def test_a_mask_in_front_leaves_a_function_whole() -> None:
    assert rd.lipschitz_global("H*exp(-H**2)*M - L@H", "row").value == 3
    assert rd.lipschitz_global("c*H/(1 + H**2) + A@(c*H) where c node", "row").value == 2 * sp.Symbol("c")


@pytest.mark.parametrize("text", ["-L@tanh(H)", "-tanh(L@H)", "u' = -L@tanh(u); v' = -v/100"])
def test_the_rows_of_a_laplacian_with_degrees_count_once(text: str) -> None:
    """Two nodes with one edge of weight w: the rows of D - A add up to 2w in modulus."""
    for weight in (0.1, 3.0):
        assert float(rate_bound(rd.parse(text), "none").at(row_sum=weight)) == pytest.approx(2 * weight)
