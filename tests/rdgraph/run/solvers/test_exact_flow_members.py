"""Times, members and precisions of exact flows, and their gradients."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from rdgraph.errors import NotApplicable
from rdgraph.graphs.operator import Operator
from rdgraph.run.lowering.vector_field import VectorField
from rdgraph.run.solvers.propagator import exact_states
from tests.rdgraph.run.solvers.exact_cases import DOUBLE, made, matrix_exponential, random_graph, solve


# ---------------------------------------------------------------------- times, members, precision
def test_all_save_times_share_the_products_of_the_last() -> None:
    field, H0 = (
        made("BS", random_graph().operator("row", dtype=DOUBLE), {"alpha": 1.0, "beta": 1.0}),
        torch.randn(14, 2).double(),
    )
    last = exact_states(field, H0, torch.tensor([0.0, 3.0]))[1]
    times = torch.linspace(1, 4, 13, dtype=DOUBLE)
    states, stats = exact_states(field, H0, times)
    assert stats == last
    assert torch.equal(states[0], H0)
    for k in (1, 5, 12):
        expected = matrix_exponential(field, H0, times[k].item() - 1)
        assert np.abs(states[k].numpy() - expected).max() < 1e-8 * np.abs(expected).max()


def test_no_time_is_the_identity_and_costs_nothing() -> None:
    field, H0 = (
        made("ST", random_graph().operator(dtype=DOUBLE), {"alpha": 1.0, "beta": 1.0}),
        torch.randn(14, 2).double(),
    )
    for times in (torch.zeros(1), torch.full((3,), 2.0)):
        states, stats = exact_states(field.bind(H0), H0, times)
        assert torch.equal(states, H0.expand(len(times), 14, 2))
        assert (stats.products, stats.accepted) == (0, 0)


def test_time_runs_backwards_too() -> None:
    field, H0 = (
        made("BS", random_graph().operator("row", dtype=DOUBLE), {"alpha": 0.3, "beta": -0.2}),
        torch.randn(14, 2).double(),
    )
    there = solve(field, H0, 2.0)
    back = exact_states(field, there, torch.tensor([2.0, 1.0, 0.0]))[0]
    assert torch.allclose(back[-1], H0, rtol=0, atol=1e-8)
    assert torch.allclose(back[1], solve(field, H0, 1.0), rtol=0, atol=1e-8)


def ensemble(normalisation: str = "row", source: bool = False) -> tuple[VectorField, Tensor, Tensor]:
    """Members with coefficients, edge weights, states and times of their own."""
    operator = random_graph().operator(normalisation, dtype=DOUBLE)
    if normalisation == "row":
        weights = torch.rand(4, operator.num_edges, dtype=DOUBLE) + 0.1
        operator = operator.with_weights(weights)
        operator = operator.with_weights(
            weights / (operator @ torch.ones(14, 1).double())[..., operator.pattern.rows, 0], "row"
        )
    values = {
        "alpha": torch.tensor([0.5, 1.0, 0.2, 0.9]).double(),
        "beta": torch.tensor([0.7, -1.0, 3.0, 0.1]).double(),
    }
    field = made(
        "BS" if not source else "-alpha*L@H + beta*M*H0", operator, values | {"M": torch.ones(14).double()}, batch=(4,)
    )
    times = torch.tensor([[0.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.3, 7.0], [3.0, 2.0, 6.0, 7.0]]).double()
    return field, torch.randn(4, 14, 3, dtype=DOUBLE), times


@pytest.mark.parametrize(
    ("normalisation", "source", "options"),
    [
        ("symmetric", False, {}),
        ("symmetric", False, {"atol": 1e-4, "rtol": 1e-9}),
        ("row", False, {}),
        ("row", False, {"rtol": 1e-14}),
        ("row", True, {"atol": 1e-4, "rtol": 1e-9}),
    ],
)
def test_a_member_does_not_notice_the_others(normalisation: str, source: bool, options: dict[str, float]) -> None:
    field, H0, times = ensemble(normalisation, source)
    states, _ = exact_states(field.bind(H0), H0, times, **options)
    for member in range(4):
        single, start = field.rebatched(member), H0[member].contiguous()
        alone, _ = exact_states(single.bind(start), start, times[:, member].contiguous(), **options)
        assert torch.equal(states[:, member], alone)
        expected = matrix_exponential(single.bind(start), start, times[-1, member].item())
        assert np.abs(alone[-1].numpy() - expected).max() < 2e-4 * np.abs(expected).max()


def test_overflow_is_infinite_and_stays_in_its_member() -> None:
    field, H0, times = ensemble()
    before, _ = exact_states(field, H0, times)
    values = {
        "alpha": torch.tensor([0.5, -1e5, 0.2, 0.9]).double(),
        "beta": torch.tensor([0.7, 0.0, 3.0, 0.1]).double(),
    }
    wild = made("BS", field.operator, values, batch=(4,))
    after, _ = exact_states(wild, H0, times)
    assert after[2, 1].isinf().all()
    assert torch.equal(after[:, [0, 2, 3]], before[:, [0, 2, 3]])
    single = H0.float()
    narrow = made(
        "FB*",
        field.operator.to(dtype=torch.float32),
        {"alpha": 0.0, "beta": torch.tensor([1.0, 40.0, 1.0, 1.0])},
        batch=(4,),
    )
    states, _ = exact_states(narrow, single, torch.tensor([0.0, 3.0]))
    assert not states[-1, 1].isfinite().any()
    assert states[-1, [0, 2, 3]].isfinite().all()


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("BS", torch.float32),
        ("BS", DOUBLE),
        ("-alpha*L@H + beta*(A@H - A@A@H) + beta*H0", DOUBLE),
        ("-alpha*L@H + beta*(A@H - A@A@H) + M*H0", DOUBLE),
    ],
)
def test_cancellation_is_met_by_cutting_the_time(text: str, dtype: torch.dtype) -> None:
    """|g| on the circle is e^50 times the gain on the real axis here; without parts every digit would be lost."""
    values = {"alpha": 0.5, "beta": 4.0, "M": torch.ones(14, dtype=dtype)}
    field = made(text, random_graph().operator("row", dtype=dtype), values)
    H0 = torch.randn(14, 2, dtype=dtype)
    times = torch.tensor([0.0, 0.1, 3.3, 9.99, 10.0], dtype=DOUBLE)
    states, stats = exact_states(field.bind(H0), H0, times)
    assert stats.accepted > 1
    for time, state in zip(times.tolist(), states, strict=True):
        expected = matrix_exponential(field.bind(H0), H0, time)
        assert (
            np.abs(state.double().numpy() - expected).max()
            < (1e-8 if dtype is DOUBLE else 1e-4) * np.abs(expected).max()
        )


def test_symmetric_operators_never_need_parts() -> None:
    field, H0 = (
        made("BS", random_graph().operator(dtype=DOUBLE), {"alpha": 0.5, "beta": 4.0}),
        torch.randn(14, 2).double(),
    )
    states, stats = exact_states(field, H0, torch.tensor([0.0, 10.0]))
    expected = matrix_exponential(field, H0, 10.0)
    assert stats.accepted == 1
    assert np.abs(states[-1].numpy() - expected).max() < 1e-9 * np.abs(expected).max()


@pytest.mark.parametrize(("dtype", "size"), [(torch.float32, 1e-5), (torch.bfloat16, 0.1)])
@pytest.mark.parametrize("normalisation", ["symmetric", "row"])
def test_narrow_states(dtype: torch.dtype, size: float, normalisation: str) -> None:
    """The worst of the square in cancellation, alpha = -1 and beta = 1, and a mild one."""
    for alpha in (-1.0, 0.75):
        field = made("BS", random_graph().operator(normalisation, dtype=dtype), {"alpha": alpha, "beta": 1.0})
        H0 = torch.randn(14, 2, dtype=dtype)
        states, stats = exact_states(field, H0, torch.tensor([0.0, 3.49]))
        assert states.dtype == dtype
        expected = matrix_exponential(field, H0, 3.49)
        assert np.abs(states[-1].double().numpy() - expected).max() < size * np.abs(expected).max()
        assert stats.products <= (20 if normalisation == "symmetric" else 40)


def test_an_absolute_tolerance_spares_products() -> None:
    field, H0 = (
        made("BS", random_graph().operator(dtype=DOUBLE), {"alpha": 1.0, "beta": 1.0}),
        torch.randn(14, 2).double(),
    )
    times = torch.tensor([0.0, 3.0])
    exact = matrix_exponential(field, H0, 3.0)
    for atol in (1e-2, 1e-4):
        states, stats = exact_states(field, H0, times, atol=atol)
        assert np.linalg.norm(states[-1].numpy() - exact, axis=0).max() <= atol
        assert stats.products < exact_states(field, H0, times)[1].products
    assert exact_states(field, 0 * H0, times, atol=1e-4)[1].products == 0


def test_a_time_too_long_is_refused() -> None:
    field = made("diffusion", random_graph().operator("row", dtype=DOUBLE), {"alpha": 1.0})
    with pytest.raises(NotApplicable, match="shorten the time"):
        exact_states(field, torch.randn(14, 1).double(), torch.tensor([0.0, 1e7]))


# ---------------------------------------------------------------------- gradients
@pytest.mark.parametrize(
    ("text", "normalisation"),
    [
        ("-alpha*L@H + beta*L@L@H where beta channel", "symmetric"),
        ("-alpha*L@H + beta*L@L@H where beta channel", "column"),
        ("-alpha*L@H + beta*H0", "none"),
        ("-alpha*L@H + beta*H0", "row"),
        ("-L@H + alpha*M*H0", "row"),
    ],
)
def test_gradients_are_those_of_finite_differences(text: str, normalisation: str) -> None:
    operator = random_graph(4, share=0.8).operator(normalisation, dtype=DOUBLE)

    def final(alpha: Tensor, beta: Tensor, time: Tensor, weights: Tensor, H0: Tensor) -> Tensor:
        changed = Operator(operator.pattern, weights, normalisation, degree=operator.degree)
        field = made(text, changed, {"alpha": alpha, "beta": beta, "M": torch.arange(4).double()})
        times = torch.stack([time.new_zeros(()), time / 2, time])
        return exact_states(field.bind(H0), H0, times, rtol=1e-13)[0]

    inputs = (torch.tensor(0.3), torch.tensor([0.05, -0.02]), torch.tensor(1.2), operator.weights, torch.randn(4, 2))
    if "beta channel" not in text:
        inputs = (inputs[0], torch.tensor(0.05), *inputs[2:])
    leaves = tuple(x.detach().double().requires_grad_() for x in inputs)
    assert torch.autograd.gradcheck(final, leaves, rtol=1e-5, atol=1e-7, fast_mode=True)


@pytest.mark.parametrize("normalisation", ["symmetric", "row"])
@pytest.mark.parametrize(
    ("text", "alpha", "beta"),
    [
        ("-alpha*L@H + beta*L@H0", 0.5, 0.5),  # the state stays at H0
        ("-alpha*L@H + beta*L@H0", 0.5, 0.5 + 1e-7),
        ("-alpha*L@H + beta*A@A@A@H0", 0.7, 0.0),
        ("-alpha*L@H + beta*A@A@A@H0", 0.0, 0.0),  # nothing moves
        ("-alpha*L@H + beta*A@A@A@H", 0.0, 0.0),
    ],
)
def test_gradients_where_the_terms_vanish(text: str, alpha: float, beta: float, normalisation: str) -> None:
    operator, H0 = random_graph().operator(normalisation, dtype=DOUBLE), torch.randn(14, 2).double()

    def final(alpha: Tensor, beta: Tensor, time: Tensor) -> Tensor:
        field = made(text, operator, {"alpha": alpha, "beta": beta})
        return exact_states(field.bind(H0), H0, torch.stack([time.new_zeros(()), time]), rtol=1e-13)[0][-1]

    leaves = tuple(torch.tensor(x, dtype=DOUBLE, requires_grad=True) for x in (alpha, beta, 1.5))
    assert torch.autograd.gradcheck(final, leaves, rtol=1e-6, atol=1e-8, fast_mode=True)


def test_second_derivatives() -> None:
    operator, H0 = random_graph(4, share=0.8).operator("row", dtype=DOUBLE), torch.randn(4, 1).double()

    def final(alpha: Tensor, time: Tensor) -> Tensor:
        field = made("BS", operator, {"alpha": alpha, "beta": 0.5})
        return exact_states(field, H0, torch.stack([time.new_zeros(()), time]), rtol=1e-13)[0][-1]

    leaves = (torch.tensor(0.7).double().requires_grad_(), torch.tensor(1.5).double().requires_grad_())
    assert torch.autograd.gradgradcheck(final, leaves, rtol=1e-5, atol=1e-7, fast_mode=True)


@pytest.mark.parametrize("time", [1e-9, 1e-3, 3.0])
def test_the_derivative_in_time_is_the_field(time: float) -> None:
    field, H0 = (
        made("BS", random_graph().operator("row", dtype=DOUBLE), {"alpha": 1.0, "beta": 0.5}),
        torch.randn(14, 2).double(),
    )
    end = torch.tensor(time, dtype=DOUBLE, requires_grad=True)
    cotangent = torch.randn(14, 2, dtype=DOUBLE)
    final = exact_states(field, H0, torch.stack([end.new_zeros(()), end]), rtol=1e-6)[0][-1]
    (slope,) = torch.autograd.grad((cotangent * final).sum(), end)
    expected = (cotangent * field(0.0, final.detach())).sum()
    assert slope.item() == pytest.approx(expected.item(), rel=1e-5, abs=1e-5)


def test_gradients_of_healthy_members_survive_an_overflow() -> None:
    operator, H0 = random_graph().operator("row", dtype=DOUBLE), torch.randn(2, 14, 1).double()
    slopes = []
    for second in (0.5, -1e6):
        alpha = torch.tensor([0.5, second], dtype=DOUBLE, requires_grad=True)
        final = exact_states(made("diffusion", operator, {"alpha": alpha}, batch=(2,)), H0, torch.tensor([0.0, 2.0]))[
            0
        ][-1]
        slopes.append(torch.autograd.grad(final[0].square().sum(), alpha)[0][0].item())
    assert math.isfinite(slopes[0])
    assert slopes[0] == slopes[1]
