"""Linear systems of several fields for training: polynomials of fixed degree, their gradients and their batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import rdgraph as rd
from rdgraph.graphs.graph import Graph
from rdgraph.run.lowering.vector_field import lower
from rdgraph.run.solvers.flow_coefficients import coefficients
from rdgraph.run.solvers.linear_part import linear_part
from rdgraph.run.solvers.polynomial_flow import LinearFlow, is_polynomial
from rdgraph.run.solvers.polynomial_products import apply_coupled
from rdgraph.run.solvers.schedules import Schedule, Schedules
from tests.rdgraph.run.solvers.coupled_cases import (
    DOUBLE,
    PAIR,
    TRIPLE,
    WAVE,
    dense_solution,
    made,
    random_matrix,
    start,
)


@pytest.mark.parametrize(
    "text",
    [
        WAVE,
        PAIR,
        TRIPLE,
        "u' = -alpha*L@u + beta*v + gamma*A@u0; v' = -u - L@v + v0",
        "H'' = -alpha*L@H + 1",
    ],
)
@pytest.mark.parametrize("kind", ["symmetric", "row"])
@pytest.mark.parametrize(("method", "step"), [("exact", None), ("rk4", 0.5), ("heun", 2.0)])
def test_a_polynomial_of_fixed_degree_is_the_run(text: str, kind: str, method: str, step: float | None) -> None:
    operator = Graph.from_dense(random_matrix(np.random.default_rng(3))).operator(kind, dtype=DOUBLE)
    field = made(text, operator)
    assert is_polynomial(field)
    H0, time = start(7, 2 * len(field.system.fields), 4), torch.tensor(1.1, dtype=DOUBLE)
    schedule = Schedule.make(method, 1.1, step)
    degree = LinearFlow.needed(field, H0, schedule, time, rtol=1e-13)
    found, beyond = LinearFlow(schedule, degree).run(field, H0, time, watch=True)
    options = {} if step is None else {"step": step}
    wanted = rd.solve(field, H0, [0.0, 1.1], method, **options).final
    assert (found - wanted).abs().max() < 1e-9
    assert beyond is not None
    assert float(beyond) < 1e-11


@pytest.mark.slow
def test_the_polynomial_has_gradients_in_everything() -> None:
    operator = Graph.from_dense(random_matrix(np.random.default_rng(1), nodes=4)).operator("row", dtype=DOUBLE)
    alpha, gamma, time = (torch.tensor(x, dtype=DOUBLE, requires_grad=True) for x in (0.6, 1.1, 0.9))
    H0, weights = start(4, 4, 5).requires_grad_(), operator.weights.clone().requires_grad_()

    def final(alpha: Tensor, gamma: Tensor, time: Tensor, H0: Tensor, weights: Tensor) -> Tensor:
        own = operator.with_stochastic_weights(weights)
        return LinearFlow(Schedule("exact"), 12)(lower(WAVE, own, {"alpha": alpha, "gamma": gamma}), H0, time)

    assert torch.autograd.gradcheck(final, (alpha, gamma, time, H0, weights), fast_mode=True)
    assert torch.autograd.gradgradcheck(final, (alpha, gamma, time, H0, weights), fast_mode=True)


def test_members_of_several_fields_have_different_schedules() -> None:
    operator = Graph.from_dense(random_matrix(np.random.default_rng(1))).operator("row", dtype=DOUBLE)
    text = "u' = -alpha*L@u + beta*v + gamma*A@u0; v' = -u - L@v + v0"
    alpha, time = torch.tensor([0.2, 0.9, 3.0], dtype=DOUBLE), torch.tensor([1.0, 1.3, 0.5], dtype=DOUBLE)
    H0 = start(7, 4, 2, (3,))
    each = [Schedule.make("rk4", 1.0, 0.3), Schedule("exact"), Schedule.make("heun", 0.5, 0.2)]
    field = lower(text, operator, {"alpha": alpha, "beta": 0.5, "gamma": 0.4}, batch=(3,))
    together = LinearFlow(Schedules(tuple(each)), 20)(field, H0, time)
    for k, schedule in enumerate(each):
        alone = lower(text, operator, {"alpha": float(alpha[k]), "beta": 0.5, "gamma": 0.4})
        assert torch.allclose(together[k], LinearFlow(schedule, 20)(alone, H0[k], time[k]), rtol=1e-11, atol=1e-11)


def test_members_of_a_batch_have_different_polynomials() -> None:
    operator = Graph.from_dense(random_matrix(np.random.default_rng(1))).operator("symmetric", dtype=DOUBLE)
    alpha, time = torch.tensor([0.2, 3.0], dtype=DOUBLE), torch.tensor([1.0, 0.5], dtype=DOUBLE)
    field = lower(WAVE, operator, {"alpha": alpha, "gamma": 0.4}, batch=(2,))
    H0 = start(7, 4, 2, (2,))
    found = LinearFlow(Schedule("exact"), 24)(field, H0, time)
    for k in range(2):
        single = lower(WAVE, operator, {"alpha": float(alpha[k]), "gamma": 0.4})
        assert np.abs(found[k].numpy() - dense_solution(single, H0[k], float(time[k]))).max() < 1e-9


def test_terms_of_a_sum_of_matrices_are_applied_field_by_field() -> None:
    operator = Graph.from_dense(random_matrix(np.random.default_rng(1))).operator("symmetric", dtype=DOUBLE)
    A, series = operator.dense(), start(5 * 3, 3, 1).reshape(5, 3, 3)
    x = start(7, 6, 2)
    for kind in ("taylor", "chebyshev"):
        basis = [torch.eye(7, dtype=DOUBLE), A]
        for _ in range(3):
            basis.append(2 * A @ basis[-1] - basis[-2] if kind == "chebyshev" else A @ basis[-1])
        blocks = x.reshape(7, 3, 2)
        wanted = sum(torch.einsum("ij,nm,mjd->nid", c, b, blocks) for c, b in zip(series, basis, strict=True))
        found = apply_coupled(operator, series[..., None, None], x, kind)
        assert torch.allclose(found, wanted.reshape(7, 6), atol=1e-12)  # type: ignore[union-attr]


def test_coefficients_ask_nothing_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    operator = Graph.from_dense(random_matrix(np.random.default_rng(1))).operator("symmetric", dtype=DOUBLE)
    linear, time = linear_part(made(WAVE, operator)), torch.tensor(1.0, dtype=DOUBLE)
    coefficients(linear, Schedule("exact"), time, 8)  # tables that are made once

    def refused(self: Tensor) -> Any:
        raise AssertionError("the host was asked for a number")

    for name in ("item", "__bool__", "__int__", "__float__", "tolist", "cpu", "numpy"):
        monkeypatch.setattr(Tensor, name, refused)
    coefficients(linear, Schedule("exact"), time, 8)
