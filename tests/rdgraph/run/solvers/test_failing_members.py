"""`solve`: members that fail stay apart from those that do not, in states and in gradients."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from rdgraph.run.solvers.solution import Solution
from rdgraph.run.solvers.solver import solve
from rdgraph.run.solvers.trackers import Callback
from tests.rdgraph.run.solvers.ring_fields import F64, field_of
from tests.rdgraph.run.solvers.solver_runs import SQUARE, state


# ---------------------------------------------------------------------- members that fail
@pytest.mark.parametrize("method", ["euler", "midpoint", "heun", "rk4", "rk4-classical"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_blow_up_freezes_one_member_at_its_last_finite_state(method: str, dtype: torch.dtype) -> None:
    field = field_of(SQUARE, (3,), dtype, alpha=0.5, beta=1.0)
    H0 = state(3, dtype=dtype) * 0.2
    H0[1] += 3
    t = torch.linspace(0, 2, 9, dtype=dtype)
    sol = solve(field, H0, t, method, step=0.125)
    assert sol.status.tolist() == ["ok", "blow-up", "ok"]
    assert not sol.ok
    assert bool(torch.isfinite(sol.states).all())
    assert sol.failed_at[[0, 2]].isnan().all()
    failed = float(sol.failed_at[1])
    assert 0 < failed < 2
    reached = solve(field, H0, [0.0, failed], method, step=0.125)
    assert reached.ok
    assert bool((sol.states[t >= failed, 1] == reached.final[1]).all())
    beyond = solve(field, reached.final, [failed, failed + 0.125], method)
    assert beyond.status.tolist() == ["ok", "blow-up", "ok"]
    assert float(beyond.failed_at[1]) == failed


@pytest.mark.parametrize("method", ["euler", "rk4", "dopri5"])
def test_members_are_bitwise_independent_of_their_neighbours(method: str) -> None:
    beta = torch.tensor([1.0, 1.0, -2.0], dtype=F64)
    field = field_of(SQUARE, (3,), alpha=0.5, beta=beta)
    settings = (
        {"limit": 1e3, "rtol": 1e-4, "atol": 1e-6}
        if method == "dopri5"
        else {"step": torch.tensor([0.05, 0.1, 0.07], dtype=F64)}
    )
    t = torch.tensor([[0.0, 0.0, 0.1], [1.0, 0.5, 0.4]], dtype=F64)
    H0 = state(3)
    alone = solve(field, H0, t, method, **settings).states[:, [0, 2]]
    for other in (1e30, 1e300, math.inf, math.nan, 0.0):
        changed = H0.clone()
        changed[1] = other
        sol = solve(field, changed, t, method, **settings)
        assert torch.equal(sol.states[:, [0, 2]], alone)
        assert sol.status[[0, 2]].tolist() == ["ok", "ok"]
        assert (sol.status[1] == "ok") == (other == 0.0)


def test_a_shared_clock_is_bitwise_independent_too() -> None:
    field, H0 = field_of(SQUARE, (2,), alpha=0.5, beta=1.0), state(2) * 0.2
    healthy = solve(field, H0, [0.0, 0.33, 1.0], "rk4", step=0.1)
    H0[1] = 50.0
    for interpolation in ("linear", "cubic"):
        sol = solve(field, H0, [0.0, 0.33, 1.0], "rk4", step=0.1, interpolation=interpolation)
        assert sol.status.tolist() == ["ok", "blow-up"]
        rows = [0, 2] if interpolation == "cubic" else [0, 1, 2]
        assert torch.equal(sol.states[rows, 0], healthy.states[rows, 0])
        assert bool(torch.isfinite(sol.states).all())


@pytest.mark.parametrize("method", ["euler", "heun", "rk4", "dopri5"])
def test_an_undefined_operation_is_distinguished_from_blow_up(method: str) -> None:
    field = field_of("-sqrt(H) - 1", (2,))
    H0 = torch.ones(2, 4, 2, dtype=F64)
    H0[1] = 0.01
    sol = solve(field, H0, [0.0, 0.25], method, **({} if method == "dopri5" else {"step": 0.05}))
    assert sol.status.tolist() == ["ok", "not-a-number"]
    assert float(sol.failed_at[1]) <= 0.05


@pytest.mark.parametrize("method", ["euler", "rk4", "dopri5", "exact"])
def test_states_that_start_broken_are_marked_and_left_as_they_are(method: str) -> None:
    field = field_of("diffusion", (3,), alpha=1.0)
    H0 = state(3)
    H0[0, 1, 1] = math.nan
    H0[2, 0, 0] = -math.inf
    sol = solve(field, H0, [1.0, 2.0], method)
    assert sol.status.tolist() == ["not-a-number", "ok", "blow-up"]
    assert sol.failed_at[[0, 2]].tolist() == [1.0, 1.0]
    assert torch.equal(sol.final[[0, 2]].nan_to_num(7.0), H0[[0, 2]].nan_to_num(7.0))


def test_broken_starts_are_not_interpolated() -> None:
    H0 = state(2)
    H0[1] = math.inf
    sol = solve(field_of("diffusion", (2,), alpha=1.0), H0, [0.0, 1.0], "euler", save_at=[0.5])
    assert torch.equal(sol.final[1], H0[1])


@pytest.mark.parametrize("method", ["euler", "dopri5"])
@pytest.mark.parametrize("start", [1e200, math.nan])
def test_members_that_do_not_move_are_not_evaluated(method: str, start: float) -> None:
    beta = torch.tensor(1.0, dtype=F64, requires_grad=True)
    H0 = torch.ones(2, 4, 1, dtype=F64)
    H0[1] = start
    t = torch.tensor([[0.0, 3.0], [0.25, 3.0]], dtype=F64)
    sol = solve(field_of(SQUARE, (2,), alpha=0.0, beta=beta), H0, t, method)
    assert sol.status.tolist() == ["ok", "not-a-number" if math.isnan(start) else "ok"]
    assert torch.equal(sol.final[1].nan_to_num(7.0), H0[1].nan_to_num(7.0))
    sol.final[0].sum().backward()
    expected = 4 * 0.25 if method == "euler" else 4 * 0.25 / (1 - 0.25) ** 2  # h = 1/(1 - beta*t)
    assert beta.grad is not None
    assert beta.grad.item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("method", ["euler", "rk4", "dopri5", "exact"])
def test_the_limit_stops_growth(method: str) -> None:
    field = field_of("gamma*H", (2,), gamma=torch.tensor([1.0, -1.0], dtype=F64))
    H0 = torch.ones(2, 4, 1, dtype=F64)
    sol = solve(field, H0, torch.linspace(0, 5, 51, dtype=F64), method, limit=10.0)
    assert sol.status.tolist() == ["blow-up", "ok"]
    assert float(sol.states.abs().max()) <= 10.0
    assert float(sol.failed_at[0]) < math.log(10.0) + 0.1
    torch.testing.assert_close(sol.final[1], H0[1] * math.exp(-5), rtol=0, atol=2e-3)


def test_a_failure_after_the_last_save_is_reported() -> None:
    field, H0 = field_of(SQUARE, alpha=0.0, beta=1.0), torch.ones(4, 1, dtype=F64)
    for method, settings in (("rk4", {"step": 0.05}), ("dopri5", {"limit": 1e3, "rtol": 1e-5, "atol": 1e-7})):
        sol = solve(field, H0, [0.0, 3.0], method, save_at=[0.5], **settings)
        assert sol.status == "blow-up"
        torch.testing.assert_close(sol.final, torch.full((4, 1), 2.0, dtype=F64), rtol=1e-4, atol=0)


# ---------------------------------------------------------------------- gradients of a batch with a failure
@pytest.mark.parametrize("text", [SQUARE, SQUARE + " + 0.1*H0"])
@pytest.mark.parametrize("method", ["euler", "rk4", "dopri5"])
@pytest.mark.parametrize("broken", [5.0, 1e200, math.nan])
def test_gradients_of_healthy_members_do_not_notice_a_failure(text: str, method: str, broken: float) -> None:
    t = torch.tensor([0.0, 0.33, 1.57], dtype=F64)
    settings: dict[str, Any] = {"step": 0.1, "interpolation": "cubic"}
    if method == "dopri5":
        settings = {"limit": 1e2, "rtol": 1e-4, "atol": 1e-6}

    def gradients(members: list[int]) -> tuple[Solution, Tensor, Tensor, Tensor]:
        H0 = 0.2 * state(3)
        H0[1] = broken
        H0 = H0[members].requires_grad_()
        alpha, beta = (torch.tensor(x, dtype=F64, requires_grad=True) for x in (0.5, 1.0))
        sol = solve(field_of(text, (len(members),), alpha=alpha, beta=beta), H0, t, method, **settings)
        sol.final.sum().backward()
        assert H0.grad is not None
        assert alpha.grad is not None
        assert beta.grad is not None
        return sol, H0.grad, alpha.grad, beta.grad

    sol, *mixed = gradients([0, 1, 2])
    assert sol.status.tolist()[::2] == ["ok", "ok"]
    assert sol.status[1] != "ok"
    _, *healthy = gradients([0, 2])
    torch.testing.assert_close(mixed[0][[0, 2]], healthy[0], rtol=1e-12, atol=0)
    assert bool((mixed[0][1] == 0).all())
    torch.testing.assert_close(mixed[1:], healthy[1:], rtol=1e-12, atol=0)


def test_cubic_saves_stay_finite_on_the_brink() -> None:
    H0 = torch.full((2, 4, 1), 0.1, dtype=F64)
    H0[1] = 5.0
    beta = torch.tensor(1.0, dtype=F64, requires_grad=True)
    t = torch.linspace(0, 1.5, 61, dtype=F64)
    field = field_of(SQUARE, (2,), alpha=0.0, beta=beta)
    sol = solve(field, H0, t, "rk4", step=0.1, interpolation="cubic")
    assert sol.status.tolist() == ["ok", "blow-up"]
    with torch.no_grad():
        assert torch.equal(solve(field, H0, t, "rk4", step=0.1, interpolation="cubic").states, sol.states)
    assert float(sol.final[1].detach().max()) > 1e160  # the slope there, its square, is infinite
    assert bool(torch.isfinite(sol.states).all())
    (gradient,) = torch.autograd.grad(sol.states[:, 0].sum(), beta)
    expected = (4 * t * 0.1**2 / (1 - 0.1 * t) ** 2).sum()
    torch.testing.assert_close(gradient, expected, rtol=1e-5, atol=0)


def test_states_saved_before_the_failure_keep_their_gradient() -> None:
    H0 = torch.full((2, 4, 1), 0.1, dtype=F64)
    H0[1] = 2.0
    H0.requires_grad_()
    sol = solve(field_of(SQUARE, (2,), alpha=0.0, beta=1.0), H0, [0.0, 0.2, 3.0], "rk4", step=0.05)
    assert sol.status.tolist() == ["ok", "blow-up"]
    sol.states[1].sum().backward()
    assert H0.grad is not None
    h = H0.detach()
    torch.testing.assert_close(H0.grad, 1 / (1 - 0.2 * h) ** 2, rtol=1e-4, atol=0)


def test_repeating_the_run_for_gradients_is_counted_and_tells_trackers_once() -> None:
    H0 = torch.full((4, 1), 2.0, dtype=F64)
    seen: list[int] = []
    field = field_of(SQUARE, alpha=0.0, beta=1.0)
    settings = {"step": 0.1, "trackers": [Callback(lambda index, time, state: seen.append(index))]}
    plain = solve(field, H0, [0.0, 0.2, 3.0], "euler", **settings)
    again = solve(field, H0.clone().requires_grad_(), [0.0, 0.2, 3.0], "euler", **settings)
    assert plain.status == again.status == "blow-up"
    assert torch.equal(plain.states, again.states)
    assert again.stats.evaluations == 2 * plain.stats.evaluations - 1  # one step to find the cause of the failure
    assert seen == [0, 1, 2] * 2
