"""dopri5 where it fails: blow-up, undefined states, steps too small or too many, each as a value and soon."""

from __future__ import annotations

import math

import pytest
import torch
import torchdiffeq

from rdgraph.graphs.graph import Graph
from rdgraph.run.lowering.vector_field import lower
from rdgraph.run.solvers.solution import RunStatus
from tests.rdgraph.run.solvers.adaptive_runs import solve, state
from tests.rdgraph.run.solvers.ring_fields import F64, field_of


def test_finite_time_blow_up_is_found_where_theory_puts_it() -> None:
    field = field_of("F", (4,), alpha=1.0, beta=2.0)
    H0 = torch.full((4, 4, 1), 0.5, dtype=F64)
    H0[1:] = -torch.tensor([0.25, 3.0, 0.01], dtype=F64)[:, None, None]
    stars = [math.log(1 + 1 / h) / 2 for h in (0.25, 3.0, 0.01)]  # equal in all nodes: the scalar equation
    t = torch.tensor([0.0, 0.4, 0.7, 1.0, 2.0, 4.0], dtype=F64)
    sol = solve(field, H0, t, rtol=1e-4, atol=1e-6)
    assert sol.status.tolist() == ["ok", *["blow-up"] * 3]
    assert sol.failed_at[1:].tolist() == pytest.approx(stars, rel=1e-4)
    assert bool(torch.isfinite(sol.states).all())
    assert torch.equal(sol.states[3, 1], sol.states[4, 1])
    assert float(sol.final[1:].amax()) < -1e10
    before = solve(field, H0[:2].repeat(2, 1, 1), t[:3], rtol=1e-4, atol=1e-6)
    assert before.ok
    assert torch.equal(sol.states[:3, :2], before.states[:, :2])


@pytest.mark.slow
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_failing_member_is_given_up_soon(dtype: torch.dtype, grad: bool) -> None:
    graph = Graph.from_dense((torch.rand(100, 100, generator=torch.Generator().manual_seed(3)) < 0.04).double().numpy())
    H0 = torch.rand(4, 100, 4, dtype=dtype, generator=torch.Generator().manual_seed(4))
    H0[1] -= 1
    beta = torch.tensor(1.0, dtype=dtype, requires_grad=grad)
    field = lower("F", graph.operator("row", dtype=dtype), {"alpha": 1.0, "beta": beta}, batch=(4,))
    sol = solve(field, H0, [0.0, 4.0])
    assert sol.status.tolist() == ["ok", "blow-up", "ok", "ok"]
    assert sol.stats.evaluations < 2000
    H0[1] = math.nan
    broken = solve(field, H0, [0.0, 4.0])
    assert broken.status[1] == "not-a-number"
    assert torch.equal(broken.states[:, [0, 2, 3]], sol.states[:, [0, 2, 3]])
    assert broken.stats.evaluations < sol.stats.evaluations / 3


@pytest.mark.parametrize(
    ("text", "start", "end", "expected"),
    [
        ("100*H", 1.0, 2.0, math.exp(200)),  # grows by 1e86 and does not blow up
        ("1000*H*(1 - H)", 1e-9, 0.5, 1.0),
        ("-H**3", 1e6, 1.0, 1 / math.sqrt(1e-12 + 2)),  # begins a million million times faster than it ends
        ("H*H", 1.0, 1 - 1e-4, 1e4),
    ],
)
def test_fast_is_not_yet_a_blow_up(text: str, start: float, end: float, expected: float) -> None:
    H0 = torch.full((4, 1), start, dtype=F64)
    sol = solve(field_of(text), H0, [0.0, end], rtol=1e-6, atol=1e-12)
    assert sol.ok
    torch.testing.assert_close(sol.final, torch.full_like(H0, expected), rtol=1e-2 if text == "H*H" else 2e-3, atol=0)


def test_an_attempt_that_is_undefined_is_repeated_with_a_shorter_step() -> None:
    """h = 1/(1 + 5t)^2 never reaches zero, but a long step does, where the root ends; torchdiffeq gives up there."""
    H0 = torch.ones(4, 1, dtype=F64)
    settings = {"rtol": 0.5, "atol": 0.5}
    field = field_of("-10*H*sqrt(H)")
    sol = solve(field, H0, [0.0, 4.0], **settings)
    assert sol.ok
    assert sol.stats.rejected > 0
    assert 0 < float(sol.final.max()) < 0.1
    with pytest.raises(AssertionError, match="underflow in dt"):
        torchdiffeq.odeint(field, H0, torch.tensor([0.0, 4.0], dtype=F64), method="dopri5", **settings)


def test_a_tolerance_below_the_resolution_of_time_is_a_step_underflow() -> None:
    sol = solve(field_of("diffusion", alpha=1.0), state(), [1.0, 2.0], rtol=0.0, atol=1e-40)
    assert sol.status == RunStatus.STEP_UNDERFLOW
    assert float(sol.failed_at) == 1.0
    assert torch.equal(sol.final, state())


def test_chattering_around_a_singularity_ends() -> None:
    H0 = torch.ones(4, 1, dtype=F64)  # h = sqrt(1 - 2t) ends at 1/2, dopri5 steps over it and back
    sol = solve(field_of("-1/H"), H0, [0.0, 1.0], rtol=1e-3, atol=1e-6, max_steps=100)
    assert sol.status == RunStatus.TOO_MANY_STEPS
    assert float(sol.failed_at) == pytest.approx(0.5, rel=1e-2)
    assert bool(torch.isfinite(sol.final).all())


@pytest.mark.parametrize("max_steps", [2, 5])
def test_the_number_of_steps_can_be_bounded(max_steps: int) -> None:
    field, H0 = field_of("diffusion", alpha=20.0), state()
    full = solve(field, H0, [0.0, 1.0])
    assert full.stats.accepted + full.stats.rejected > 5
    sol = solve(field, H0, [0.0, 1.0], max_steps=max_steps)
    assert sol.status == "too-many-steps"
    assert 0 <= float(sol.failed_at) < 1
    torch.testing.assert_close(sol.final, solve(field, H0, [0.0, float(sol.failed_at)]).final, rtol=1e-10, atol=1e-12)
    enough = full.stats.accepted + full.stats.rejected
    assert solve(field, H0, [0.0, 1.0], max_steps=enough).ok
