"""`solve`: exact flows, splitting, the solution, what is refused, and no waiting for the device."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from rdgraph.errors import InvalidArgument, NotApplicable, UnknownName
from rdgraph.run.lowering.vector_field import VectorField, lower
from rdgraph.run.solvers.solution import RunStatus, Solution, Stats
from rdgraph.run.solvers.solver import solve
from rdgraph.systems.parser import parse
from rdgraph.vocabulary.methods import METHODS, methods
from tests.rdgraph.run.solvers.ring_fields import F64, RING, field_of
from tests.rdgraph.run.solvers.solver_runs import SQUARE, state


# ---------------------------------------------------------------------- exact
def test_exact_agrees_with_dopri5_and_serves_every_save() -> None:
    field = field_of("ST", (2,), alpha=torch.tensor([0.5, 1.5], dtype=F64), beta=0.3)
    H0 = state(2)
    t = torch.tensor([[0.0, 1.0], [0.5, 1.0], [2.0, 4.0]], dtype=F64)
    exact = solve(field, H0, t, "exact")
    steps = solve(field, H0, t, "dopri5", rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(exact.states, steps.states, rtol=0, atol=1e-9)
    assert exact.stats.products < steps.stats.products
    only = solve(field, H0, t, "exact", save_at=t[1:2])
    torch.testing.assert_close(only.final, exact.states[1], rtol=0, atol=1e-12)


def test_exact_marks_members_that_overflow() -> None:
    gamma = torch.tensor([1.0, 400.0], dtype=F64, requires_grad=True)
    alpha = torch.tensor(0.5, dtype=F64, requires_grad=True)
    H0 = state(2)
    sol = solve(field_of("gamma*H - alpha*L@H", (2,), alpha=alpha, gamma=gamma), H0, [0.0, 1.0, 2.0], "exact")
    assert sol.status.tolist() == ["ok", "blow-up"]
    assert float(sol.failed_at[1]) == 1.0
    assert bool(torch.isfinite(sol.states).all())
    assert torch.equal(sol.states[2, 1], sol.states[1, 1])
    sol.final.sum().backward()
    one = torch.tensor(0.5, dtype=F64, requires_grad=True)
    field = field_of("gamma*H - alpha*L@H", alpha=one, gamma=1.0)
    solve(field, H0[0], [0.0, 1.0, 2.0], "exact").final.sum().backward()
    torch.testing.assert_close(alpha.grad, one.grad, rtol=1e-9, atol=1e-9)


def test_exact_refuses_what_is_not_linear() -> None:
    with pytest.raises(NotApplicable, match="nonlinear"):
        solve(field_of("F", alpha=1.0, beta=1.0), state(), [0.0, 1.0], "exact")


# ---------------------------------------------------------------------- strang
def test_strang_is_second_order_with_different_steps() -> None:
    field = field_of("AC", (2,), alpha=torch.tensor([1.0, 0.5], dtype=F64), beta=1.0)
    H0 = 0.8 * state(2)
    truth = solve(field, H0, [0.0, 1.0], methods["dopri5"], step=0.02).final
    steps = torch.tensor([[1 / 4, 1 / 5], [1 / 8, 1 / 10], [1 / 16, 1 / 20]], dtype=F64)
    errors = [(solve(field, H0, [0.0, 1.0], "strang", step=s).final - truth).norm(dim=(-2, -1)) for s in steps]
    orders = torch.stack([(a / b).log2() for a, b in itertools.pairwise(errors)])
    torch.testing.assert_close(orders, torch.full((2, 2), 2.0, dtype=F64), rtol=0, atol=0.1)
    between = solve(field, H0, [0.0, 1.0], "strang", step=1 / 8, save_at=[0.4375], interpolation="cubic")
    assert between.stats.evaluations == 2
    near = solve(field, H0, [0.0, 0.4375], methods["dopri5"], step=0.02).final
    torch.testing.assert_close(between.final, near, rtol=0, atol=2e-3)


def test_strang_marks_blow_up_and_keeps_the_other_gradients() -> None:
    def run(members: list[int]) -> tuple[Solution, Tensor]:
        H0 = state(3)
        H0[1] = -0.5  # Fisher's equation blows up at ln(1 + 1/0.5)/beta
        beta = torch.tensor(1.0, dtype=F64, requires_grad=True)
        field = field_of("F", (len(members),), alpha=1.0, beta=beta)
        sol = solve(field, H0[members], [0.0, 1.0, 2.0], "strang", step=0.125)
        sol.final.sum().backward()
        assert beta.grad is not None
        return sol, beta.grad

    sol, mixed = run([0, 1, 2])
    assert sol.status.tolist() == ["ok", "blow-up", "ok"]
    assert 0 < math.log(3) - float(sol.failed_at[1]) < 0.125
    healthy, alone = run([0, 2])
    torch.testing.assert_close(sol.states[:, [0, 2]], healthy.states, rtol=1e-14, atol=0)
    torch.testing.assert_close(mixed, alone, rtol=1e-12, atol=0)


# ---------------------------------------------------------------------- the solution
def test_a_solution_reads_well() -> None:
    sol = solve(field_of(SQUARE, (2, 2), alpha=0.1, beta=1.0), state(2, 2) * 0.1, [0.0, 1.0], "euler")
    assert repr(sol) == "Solution(2 times, states (2, 2, 2, 4, 2), 4 ok, by euler, 1 evaluations, 1 products)"
    assert sol.status.shape == (2, 2)
    assert (sol.status == "ok").all()
    assert sol.stats == Stats(1, 1, 1, 0)
    assert [status.code for status in RunStatus] == [0, 1, 2, 3, 4]


# ---------------------------------------------------------------------- what is refused
@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"method": "euler", "rtol": 1e-3}, "expected for euler only step, interpolation, got rtol"),
        ({"method": methods["heun"], "atol": 1e-3}, "expected for heun only step, interpolation, got atol"),
        ({"method": "dopri5", "step": 0.1}, "expected for dopri5 only rtol, atol, max_steps, got step"),
        ({"method": "dopri5", "interpolation": "cubic"}, "got interpolation"),
        ({"method": "exact", "step": 0.1}, "expected for exact only rtol, atol, max_steps, got step"),
        ({"method": "rk4", "max_steps": 7}, "got max_steps"),
        ({"method": "rk4", "interpolation": "spline"}, "expected interpolation 'linear' or 'cubic', got 'spline'"),
        ({"rtol": -1.0}, "expected rtol >= 0 and finite, got -1.0"),
        ({"atol": math.nan}, "expected atol >= 0 and finite, got nan"),
        ({"rtol": 0.0, "atol": 0.0}, "one of rtol, atol to be > 0"),
        ({"method": "dopri5", "max_steps": 0}, "expected max_steps >= 1, got 0"),
        ({"limit": 0.0}, "expected limit > 0, got 0.0"),
        ({"limit": math.nan}, "expected limit > 0, got nan"),
        ({"method": "rk4-classical", "adjoint": True}, "a method with an adjoint, euler, midpoint, heun, rk4, dopri5"),
        ({"method": methods["rk4"], "adjoint": True}, "a method with an adjoint.* got rk4"),
        ({"method": "exact", "adjoint": True}, "got exact"),
        ({"method": "rk4", "adjoint": True, "save_at": [0.5]}, "expected a step for the adjoint with save_at"),
    ],
)
def test_settings_that_a_method_cannot_use_are_refused(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidArgument, match=text):
        solve(field_of("diffusion", alpha=1.0), state(), [0.0, 1.0], **settings)


def test_unknown_methods_get_the_nearest_name() -> None:
    with pytest.raises(UnknownName, match="expected a method, got 'rk5'; did you mean 'rk4'") as caught:
        solve(field_of("diffusion", alpha=1.0), state(), [0.0, 1.0], "rk5")
    assert all(name in str(caught.value) for name in METHODS)


@pytest.mark.parametrize(
    "wrong",
    [
        torch.zeros(3, 2, dtype=F64),
        torch.zeros(4, dtype=F64),
        torch.zeros(4, 2, 2, dtype=F64),
        torch.zeros(4, 2, dtype=torch.float32),
        torch.zeros(4, 2, dtype=F64, device="meta"),
        torch.zeros(4, 0, dtype=F64),
        np.zeros((4, 2)),
    ],
    ids=["nodes", "dimensions", "batch", "dtype", "device", "channels", "type"],
)
@pytest.mark.parametrize("method", ["euler", "dopri5", "exact"])
def test_states_that_do_not_fit_the_field_are_refused(wrong: Any, method: str) -> None:
    with pytest.raises((InvalidArgument, NotApplicable), match="expected"):
        solve(field_of("diffusion", alpha=1.0), wrong, [0.0, 1.0], method)


def test_a_system_is_not_yet_a_field() -> None:
    with pytest.raises(InvalidArgument, match=r"expected a vector field, got System; make one with lower"):
        solve(parse("F"), state(), [0.0, 1.0], "euler")  # type: ignore[arg-type]


def test_an_infinite_limit_still_stops_at_overflow() -> None:
    H0 = torch.full((4, 1), 1e200, dtype=F64)
    sol = solve(field_of(SQUARE, alpha=0.0, beta=1.0), H0, [0.0, 1.0], "euler", limit=math.inf)
    assert sol.status == "blow-up"
    assert torch.equal(sol.final, H0)


def test_an_empty_batch_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="at least one member"):
        solve(field_of("diffusion", (0,), alpha=1.0), torch.zeros(0, 4, 2, dtype=F64), [0.0, 1.0], "euler")


# ---------------------------------------------------------------------- on a GPU
@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore:Synchronization debug mode")
def test_the_loop_never_waits_for_the_device() -> None:
    field = lower(SQUARE, RING.operator("row", dtype=F64, device="cuda"), {"alpha": 0.5, "beta": 1.0}, batch=(3,))
    H0 = state(3)
    H0[1] = 50.0
    step = torch.tensor([0.05, 0.1, 0.02], dtype=F64)
    on_cpu = solve(field_of(SQUARE, (3,), alpha=0.5, beta=1.0), H0, [0.0, 0.33, 0.7], "rk4", step=step)
    advance, calls = type(field).forward, 0

    def guarded(self: VectorField, t: Any, H: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        torch.cuda.set_sync_debug_mode("error" if calls < 4 * 35 else "default")
        return advance(self, t, H)

    solve(field, H0.cuda(), [0.0, 0.33, 0.7], "rk4", step=step)  # compiles and caches
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(field), "forward", guarded)
        try:
            on_gpu = solve(field, H0.cuda(), [0.0, 0.33, 0.7], "rk4", step=step)
        finally:
            torch.cuda.set_sync_debug_mode("default")
    assert on_gpu.stats.accepted == 35
    assert on_gpu.status.tolist() == ["ok", "blow-up", "ok"]
    torch.testing.assert_close(on_gpu.states[:, [0, 2]].cpu(), on_cpu.states[:, [0, 2]], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(on_gpu.failed_at.cpu(), on_cpu.failed_at, equal_nan=True)
