"""Linear systems of several fields: exact flows against dense exponentials, bounds kept, gradients, refusals."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
import torch
from torch import Tensor

import rdgraph as rd
from rdgraph.errors import NotApplicable
from rdgraph.graphs.graph import Graph
from rdgraph.graphs.operator import Operator
from rdgraph.run.lowering.vector_field import lower
from rdgraph.run.solvers.linear_part import Linear, linear_part
from rdgraph.run.solvers.operator_filters import operator_base
from rdgraph.run.solvers.polynomial_flow import is_polynomial
from rdgraph.run.solvers.propagator import Propagator, exact_states
from tests.rdgraph.run.solvers.coupled_cases import (
    DOUBLE,
    FORCED,
    PAIR,
    TRIPLE,
    WAVE,
    dense_solution,
    made,
    random_matrix,
    start,
)

SYSTEMS = (WAVE, PAIR, FORCED, TRIPLE)
NORMALISATIONS = ("symmetric", "row", "column", "none")


# ---------------------------------------------------------------------- the flow itself
@pytest.mark.parametrize("text", SYSTEMS)
@pytest.mark.parametrize("kind", NORMALISATIONS)
def test_fields_move_as_the_dense_exponential_says(text: str, kind: str) -> None:
    for seed, directed in itertools.product((0, 1), (False, True)):
        if directed and kind == "symmetric":
            continue
        if kind == "none" and text == FORCED:
            text = "u' = -alpha*L@u + beta*v + gamma*L@u0; v' = -u - L@v + v0 + delta"
        if kind == "none" and text == TRIPLE:
            text = "u' = -L@u + v; v' = -alpha*w - L@v; w' = beta*u - gamma*L@w"
        matrix = random_matrix(np.random.default_rng(seed), directed=directed)
        field = made(text, Graph.from_dense(matrix).operator(kind, dtype=DOUBLE))
        H0 = start(7, 2 * len(field.system.fields), seed)
        for time in (0.1, 1.7):
            solution = rd.solve(field, H0, [0.0, time / 2, time])
            assert solution.method == "exact"
            wanted = dense_solution(field, H0, time)
            assert np.abs(solution.final.numpy() - wanted).max() <= 1e-8 * np.abs(wanted).max()
            half = dense_solution(field, H0, time / 2)
            assert np.abs(solution.states[1].numpy() - half).max() <= 1e-8 * np.abs(half).max()


def test_the_flow_solves_the_equations() -> None:
    field = made(FORCED, Graph.from_dense(random_matrix(np.random.default_rng(4))).operator("row", dtype=DOUBLE))
    H0 = start(7, 4, 2)
    bound = field.bind(H0)

    def rate(_: float, y: np.ndarray) -> np.ndarray:
        return bound(0.0, torch.from_numpy(y).reshape(7, 4)).numpy().ravel()

    wanted = scipy.integrate.solve_ivp(rate, (0, 2), H0.numpy().ravel(), method="DOP853", rtol=1e-12, atol=1e-13)
    found = rd.solve(field, H0, [0.0, 2.0], "exact").final
    assert np.abs(found.numpy().ravel() - wanted.y[:, -1]).max() < 1e-9


def random_linear(generator: np.random.Generator) -> tuple[Linear, np.ndarray, list[np.ndarray]]:
    """A linear part of two or three fields on a random graph, its X, and its matrices by power."""
    directed = bool(generator.random() < 0.5)
    kind = str(generator.choice(NORMALISATIONS[1:] if directed else NORMALISATIONS))
    nodes = int(generator.integers(3, 8))
    operator = Graph.from_dense(random_matrix(generator, directed=directed, nodes=nodes)).operator(kind, dtype=DOUBLE)
    letter = str(generator.choice(["A", "L"])) if kind == "none" else "A"
    size, count = int(generator.integers(2, 4)), int(generator.integers(1, 4))
    scale = 10 ** generator.uniform(-1, 0.7)
    matrices = [generator.normal(size=(size, size)) * scale / (1 + k) for k in range(count)]
    entries = tuple(tuple(tuple(torch.from_numpy(row).unbind()) for row in matrix) for matrix in matrices)
    dense = operator.dense().numpy()
    if letter == "L":
        dense = np.diag(operator.degree.numpy()[:, 0]) - dense  # type: ignore[union-attr]
    return Linear(operator_base(operator, letter), entries), dense, matrices


def largest_gain(linear: Linear, elapsed: Tensor) -> float:
    """max |exp(t P(x))| over the real interval, densely sampled."""
    values = linear.filters(elapsed)[0](torch.linspace(-1, 1, 201, dtype=DOUBLE)).movedim((2, 3), (0, 1))
    return float(torch.linalg.matrix_norm(values, ord=linear.base.norm).max())


def check_bound(seed: int) -> int:
    """One random case: the error stays below what was promised before the first product; the products it took."""
    generator = np.random.default_rng(seed)
    linear, X, matrices = random_linear(generator)
    degree, size = len(matrices) - 1, len(matrices[0])
    time = 10 ** generator.uniform(-2, 0.5) / max(1.0, float(linear.base.radius.max())) ** degree
    rtol = float(generator.choice([1e-3, 1e-6, 1e-10]))
    H = torch.from_numpy(generator.normal(size=(len(X), size)))
    elapsed = torch.tensor([time], dtype=DOUBLE).reshape(1, 1, 1)
    propagator = Propagator.make(linear, elapsed, H, rtol=rtol)
    whole = sum(np.kron(matrix, np.linalg.matrix_power(X, k)) for k, matrix in enumerate(matrices))
    begin = H.numpy().T.ravel()
    wanted, found = scipy.linalg.expm(time * whole) @ begin, propagator(H)[0].numpy().T.ravel()
    order = linear.base.norm
    gain = max(largest_gain(linear, elapsed), 1.0 if len(propagator.segments) > 1 else 0.0)
    allowed = (1 if linear.base.kind == "chebyshev" else 2) * rtol + 200 * size * np.finfo(float).eps
    assert np.linalg.norm(found - wanted, order) <= allowed * gain * np.linalg.norm(begin, order), seed
    return propagator.products


@pytest.mark.slow
def test_errors_stay_below_the_bound_on_random_systems() -> None:
    degrees = [check_bound(seed) for seed in range(120)]
    assert max(degrees) > 20
    assert np.median(degrees) <= 6  # the degree is not paid for twice


@pytest.mark.deep
@pytest.mark.slow
def test_errors_stay_below_the_bound_on_thousands_of_random_systems() -> None:
    for seed in range(1000, 4000):
        check_bound(seed)


def test_coefficients_may_differ_between_channels_and_members() -> None:
    matrix = random_matrix(np.random.default_rng(7))
    operator = Graph.from_dense(matrix).operator("symmetric", dtype=DOUBLE)
    system = rd.parse(WAVE, {"alpha": "channel"})
    alpha = torch.tensor([[0.1, 2.0, 0.5], [3.0, 0.2, 0.0]], dtype=DOUBLE)
    gamma = torch.tensor([0.3, 5.0], dtype=DOUBLE)
    H0 = start(7, 6, 1, (2,))
    both = lower(system, operator, {"alpha": alpha, "gamma": gamma}, batch=(2,))
    found = rd.solve(both, H0, torch.tensor([[0.0, 0.0], [1.5, 0.7]], dtype=DOUBLE)).final
    for k, time in enumerate((1.5, 0.7)):
        single = lower(system, operator, {"alpha": alpha[k], "gamma": gamma[k]})
        assert np.abs(found[k].numpy() - dense_solution(single, H0[k], time)).max() < 1e-9
        assert torch.equal(rd.solve(single, H0[k], [0.0, time]).final, found[k])


def test_one_product_over_all_fields_for_every_degree(monkeypatch: pytest.MonkeyPatch) -> None:
    field = made(TRIPLE, Graph.from_dense(random_matrix(np.random.default_rng(2))).operator("symmetric", dtype=DOUBLE))
    H0, widths = start(7, 6), []
    original = Operator.product

    def counted(self: Operator, x: Tensor, *rest: Any) -> Tensor:
        widths.append(x.shape[-1])
        return original(self, x, *rest)

    monkeypatch.setattr(Operator, "product", counted)
    solution = rd.solve(field, H0, [0.0, 1.0])
    assert widths == [6] * solution.stats.products
    assert 0 < solution.stats.products < 25


def test_a_member_that_overflows_leaves_the_others_alone() -> None:
    operator = Graph.from_dense(random_matrix(np.random.default_rng(2))).operator("row", dtype=DOUBLE)
    text = "u' = beta*u + v; v' = u - L@v"
    field = lower(rd.parse(text, assume=["beta real"]), operator, {"beta": torch.tensor([0.5, 5000.0])}, batch=(2,))
    H0 = start(7, 4, 0, (2,))
    solution = rd.solve(field, H0, [0.0, 1.0], "exact")
    alone = rd.solve(lower(rd.parse(text), operator, {"beta": 0.5}), H0[0], [0.0, 1.0], "exact")
    assert [str(status) for status in solution.status] == ["ok", "blow-up"]
    assert torch.equal(solution.final[0], alone.final)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["symmetric", "row"])
def test_gradients_in_coefficients_time_weights_and_start(kind: str) -> None:
    operator = Graph.from_dense(random_matrix(np.random.default_rng(1), nodes=4)).operator(kind, dtype=DOUBLE)
    H0 = start(4, 2, 5).requires_grad_()
    time = torch.tensor(0.8, dtype=DOUBLE, requires_grad=True)
    alpha, beta = (torch.tensor(x, dtype=DOUBLE, requires_grad=True) for x in (0.6, 1.1))
    weights = operator.weights.clone().requires_grad_()

    def final(alpha: Tensor, beta: Tensor, time: Tensor, H0: Tensor, weights: Tensor) -> Tensor:
        own = operator.with_weights(weights) if weights.requires_grad else operator
        values = {"alpha": alpha, "beta": beta, "gamma": 0.3, "delta": 0.2}
        field = lower(rd.parse("u' = -alpha*L@u + beta*v + gamma*u0; v' = -u - A@v + delta"), own, values)
        return exact_states(field.bind(H0), H0, torch.stack([torch.zeros_like(time), time]))[0][-1]

    fixed = operator.weights
    assert torch.autograd.gradcheck(lambda *given: final(*given, fixed), (alpha, beta, time, H0), fast_mode=True)
    assert torch.autograd.gradcheck(
        lambda w: final(alpha.detach(), beta.detach(), time.detach(), H0.detach(), w), (weights,), fast_mode=True
    )


@pytest.mark.slow
def test_gradients_of_a_wave_in_all_its_numbers() -> None:
    operator = Graph.from_dense(random_matrix(np.random.default_rng(1), nodes=4)).operator("symmetric", dtype=DOUBLE)
    given = [torch.tensor(x, dtype=DOUBLE, requires_grad=True) for x in (0.6, 1.1, 0.9)]
    H0 = start(4, 2, 5).requires_grad_()

    def final(alpha: Tensor, gamma: Tensor, time: Tensor, H0: Tensor) -> Tensor:
        field = lower(rd.parse(WAVE), operator, {"alpha": alpha, "gamma": gamma})
        return exact_states(field, H0, torch.stack([torch.zeros_like(time), time]))[0][-1]

    assert torch.autograd.gradcheck(final, (*given, H0), fast_mode=True)
    assert torch.autograd.gradgradcheck(final, (*given, H0), fast_mode=True)


# ---------------------------------------------------------------------- what is refused, and what is chosen
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("u' = -L@u + u*v; v' = -u", "nonlinear"),
        ("u' = -exp(-t)*L@u + v; v' = u", "time t"),
        ("u' = -L@u + v; v' = tanh(A@u)", "nonlinear"),
    ],
)
def test_other_fields_are_refused_with_the_reason(text: str, reason: str) -> None:
    operator = Graph.from_dense(random_matrix(np.random.default_rng(1))).operator("row", dtype=DOUBLE)
    with pytest.raises(NotApplicable, match=reason):
        linear_part(made(text, operator))
    assert not is_polynomial(made(text, operator))


def test_further_operators_and_two_letters_without_normalisation_are_refused() -> None:
    from rdgraph.systems.single_operator import coupled_in_one_operator

    with pytest.raises(NotApplicable, match="operator B need not commute"):
        coupled_in_one_operator(rd.parse("u' = -L@u + B@v; v' = u where B antisymmetric"))
    with pytest.raises(NotApplicable, match="do not commute"):
        coupled_in_one_operator(rd.parse("u' = -L@u + A@v; v' = u"), has_degrees=True)
    with pytest.raises(NotApplicable, match="noise"):
        coupled_in_one_operator(rd.parse("u' = -L@u + v + sigma*xi; v' = u"))


def test_the_method_is_chosen_with_its_reason() -> None:
    assert rd.theory.choose_method(WAVE).method == "exact"
    assert "P(lam) = [[0, 1], [-gamma - lam, -alpha]]" in rd.theory.choose_method(WAVE).reason
    assert rd.theory.choose_method("u' = -L@u + u*v; v' = -u").method == "dopri5"
    assert rd.theory.choose_method("u' = -L@u + u*v; v' = -u", stepped=True).method == "rk4"
    assert rd.theory.choose_method(WAVE, 1.0, stepped=True).method == "rk4"
