"""dopri5 and the adjoint through torchdiffeq: the same numbers, member by member, and failures as a status."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torchdiffeq
from torch import Tensor

from rdgraph.graphs.graph import Graph
from rdgraph.integrators.adjoint import ADJOINT_METHODS
from rdgraph.integrators.solution import Status
from rdgraph.integrators.solve import solve
from rdgraph.lowering.field import VectorField, lower
from rdgraph.parse import parse

F64 = torch.float64
RING = Graph.from_edges([[0, 1, 2, 3, 1, 2, 3, 0], [1, 2, 3, 0, 0, 1, 2, 3]])


def field_of(text: str, batch: tuple[int, ...] = (), dtype: torch.dtype = F64, **coefficients: Any) -> VectorField:
    return lower(text, RING.operator("row", dtype=dtype), coefficients, batch=batch)


def state(*batch: int, dtype: torch.dtype = F64, seed: int = 0) -> Tensor:
    return torch.rand(*batch, 4, 2, dtype=dtype, generator=torch.Generator().manual_seed(seed))


# ---------------------------------------------------------------------- dopri5
@pytest.mark.parametrize("batch", [(), (2,), (1, 2)])
def test_every_member_is_torchdiffeqs_own_result(batch: tuple[int, ...]) -> None:
    count = math.prod(batch)
    alpha = torch.linspace(20.0, 1.0, count, dtype=F64).reshape(batch)
    field, H0 = field_of("F", batch, alpha=alpha, beta=1.0), state(*batch)
    t = torch.tensor([0.0, 0.3, 1.0], dtype=F64)
    sol = solve(field, H0, t, rtol=1e-6, atol=1e-8)
    totals = [0, 0, 0]
    for k in range(count):
        own = field.rebatched(k) if batch else field
        calls = [0, 0, 0]

        def counted(time: Tensor, H: Tensor, own: VectorField = own, calls: list[int] = calls) -> Tensor:
            calls[0] += 1
            return own(time, H)

        counted.callback_accept_step = lambda *a, calls=calls: calls.__setitem__(1, calls[1] + 1)  # type: ignore[attr-defined]
        counted.callback_reject_step = lambda *a, calls=calls: calls.__setitem__(2, calls[2] + 1)  # type: ignore[attr-defined]
        theirs = torchdiffeq.odeint(counted, H0.reshape(-1, 4, 2)[k], t, method="dopri5", rtol=1e-6, atol=1e-8)
        assert torch.equal(sol.states.reshape(3, -1, 4, 2)[:, k], theirs)
        totals = [a + b for a, b in zip(totals, calls, strict=True)]
    assert [sol.stats.evaluations, sol.stats.accepted, sol.stats.rejected] == totals
    assert min(totals) > 0
    assert sol.stats.products == totals[0] * field.plan.products
    assert sol.stats.evaluations == 6 * (sol.stats.accepted + sol.stats.rejected) + 2 * count


@pytest.mark.parametrize(("dtype", "expected"), [(torch.float64, 1e-6), (torch.float32, 1e-4)])
def test_default_tolerances_suit_the_precision(dtype: torch.dtype, expected: float) -> None:
    H0 = torch.ones(4, 1, dtype=dtype)
    sol = solve(field_of("-gamma*H", dtype=dtype, gamma=1.0), H0, [0.0, 1.0])
    torch.testing.assert_close(sol.final, H0 * math.exp(-1), rtol=expected, atol=0)
    assert sol.stats.accepted < 40


def test_members_have_their_own_times() -> None:
    field, H0 = field_of("F", (2,), alpha=1.0, beta=1.0), state(2)
    t = torch.tensor([[0.0, 1.0], [0.5, 1.0], [1.0, 1.0]], dtype=F64)
    sol = solve(field, H0, t)
    assert torch.equal(sol.states[:, 1], H0[1].expand(3, 4, 2))
    assert torch.equal(sol.states[:, 0], solve(field.rebatched(0), H0[0], t[:, 0]).states)


def test_the_start_is_bound_for_every_member() -> None:
    field = field_of("ST", (2,), alpha=torch.tensor([0.0, 1.0], dtype=F64), beta=0.5)
    H0 = state(2)
    sol = solve(field, H0, [0.0, 2.0])
    torch.testing.assert_close(sol.final[0], 2 * H0[0], rtol=1e-6, atol=0)  # H' = H0/2
    torch.testing.assert_close(sol.final, solve(field, H0, [0.0, 2.0], "rk4", step=0.02).final, rtol=1e-6, atol=1e-7)


# ---------------------------------------------------------------------- failures are values
def test_finite_time_blow_up_is_found_where_theory_puts_it() -> None:
    field = field_of("F", (2,), alpha=1.0, beta=2.0)
    H0 = torch.full((2, 4, 1), 0.5, dtype=F64)
    H0[1] = -0.25  # equal in all nodes: the scalar equation, blow-up at ln(1 + 1/|h0|)/beta
    star = math.log(1 + 1 / 0.25) / 2
    t = torch.tensor([0.0, 0.4, 0.7, 1.0, 2.0], dtype=F64)
    sol = solve(field, H0, t, rtol=1e-4, atol=1e-6)
    assert sol.status.tolist() == ["ok", "blow-up"]
    assert float(sol.failed_at[1]) == pytest.approx(star, rel=1e-4)
    assert bool(torch.isfinite(sol.states).all())
    assert torch.equal(sol.states[3, 1], sol.states[4, 1])
    assert float(sol.final[1].max()) < -1e10
    before = solve(field, H0, t[:3], rtol=1e-4, atol=1e-6)
    assert before.ok
    torch.testing.assert_close(sol.states[:3], before.states, rtol=1e-12, atol=0)


def test_a_tolerance_below_the_resolution_of_time_is_a_step_underflow() -> None:
    sol = solve(field_of("diffusion", alpha=1.0), state(), [1.0, 2.0], rtol=0.0, atol=1e-40)
    assert sol.status == Status.STEP_UNDERFLOW
    assert float(sol.failed_at) == 1.0
    assert torch.equal(sol.final, state())


def test_chattering_around_a_singularity_ends() -> None:
    H0 = torch.ones(4, 1, dtype=F64)  # h = sqrt(1 - 2t) ends at 1/2, dopri5 steps over it and back
    sol = solve(field_of("-1/H"), H0, [0.0, 1.0], rtol=1e-3, atol=1e-6, max_steps=100)
    assert sol.status == Status.TOO_MANY_STEPS
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


# ---------------------------------------------------------------------- the adjoint
def gradients(adjoint: bool, method: str, settings: dict[str, Any], t: Any) -> dict[str, Tensor]:
    """Gradients of a weighted sum of all states in everything a field is made of."""
    op = RING.operator("row", dtype=F64)
    system = parse("-alpha*L@H + beta*H*(1 - H) + 0.3*H@W + 0.2*gamma*H0", {"beta": "channel", "gamma": "node"})
    generator = torch.Generator().manual_seed(1)

    def leaf(*shape: int) -> Tensor:
        return torch.rand(*shape, dtype=F64, generator=generator).requires_grad_()

    leaves = {
        "weights": torch.linspace(0.3, 0.6, op.num_edges, dtype=F64).requires_grad_(),
        "alpha": leaf(2), "beta": leaf(2, 2), "gamma": leaf(4), "W": leaf(2, 2), "H0": leaf(2, 4, 2),
    }  # fmt: skip
    coefficients = {name: leaves[name] for name in ("alpha", "beta", "gamma", "W")}
    field = lower(system, op.with_weights(leaves["weights"]), coefficients, batch=(2,))
    sol = solve(field, leaves["H0"], t, method, adjoint=adjoint, **settings)
    assert sol.ok
    weights = torch.linspace(-1, 1, sol.states.numel(), dtype=F64).view_as(sol.states)
    (weights * sol.states).sum().backward()
    return {name: value.grad if value.grad is not None else torch.zeros_like(value) for name, value in leaves.items()}


@pytest.mark.parametrize(
    ("method", "settings", "tolerance"),
    [
        ("euler", {"step": 2e-3}, 4e-3),
        ("midpoint", {"step": 0.02}, 4e-4),
        ("heun", {"step": 0.02}, 4e-4),
        ("rk4", {"step": torch.tensor([0.05, 0.02], dtype=F64)}, 1e-5),
        ("dopri5", {"rtol": 1e-8, "atol": 1e-10}, 1e-6),
    ],
)
def test_the_adjoint_gives_the_gradient_of_the_equation(
    method: str, settings: dict[str, Any], tolerance: float
) -> None:
    t = [0.0, 0.3] if method == "euler" else [0.0, 0.2, 0.5]
    backwards = gradients(True, method, settings, t)
    steps = gradients(False, method, settings, t)
    for name, expected in steps.items():
        assert float(expected.abs().max()) > 1e-3, name
        torch.testing.assert_close(backwards[name], expected, rtol=0, atol=tolerance * float(expected.abs().max()))


@pytest.mark.parametrize("method", sorted(ADJOINT_METHODS))
def test_the_adjoint_has_the_same_states(method: str) -> None:
    field, H0 = field_of("F", (2,), alpha=1.0, beta=0.5), state(2)
    for settings in ({}, {"step": 0.3}, {"step": 0.3, "interpolation": "cubic", "save_at": [0.4, 0.6]}):
        if method == "dopri5" and settings:
            continue
        plain, back = (solve(field, H0, [0.0, 0.5, 1.0], method, adjoint=a, **settings) for a in (False, True))
        torch.testing.assert_close(back.states, plain.states, rtol=1e-14, atol=1e-14)
        assert torch.equal(back.times, plain.times)


@pytest.mark.parametrize("method", ["euler", "rk4", "dopri5"])
@pytest.mark.parametrize("broken", [30.0, math.nan])
def test_a_failing_member_leaves_the_adjoint_of_the_others_alone(method: str, broken: float) -> None:
    settings: dict[str, Any] = {"step": 0.1} if method != "dopri5" else {"rtol": 1e-4, "atol": 1e-6, "limit": 1e3}

    def run(members: list[int]) -> tuple[Any, Tensor]:
        H0 = 0.3 * state(3)
        H0[1] = broken
        beta = torch.tensor(1.0, dtype=F64, requires_grad=True)
        field = field_of("beta*H*H", (len(members),), beta=beta)
        sol = solve(field, H0[members], [0.0, 0.4, 1.5], method, adjoint=True, **settings)
        sol.final.sum().backward()
        assert beta.grad is not None
        return sol, beta.grad

    sol, mixed = run([0, 1, 2])
    assert sol.status.tolist() == ["ok", "not-a-number" if math.isnan(broken) else "blow-up", "ok"]
    assert torch.equal(sol.final[1].isnan(), torch.full((4, 2), math.isnan(broken)))
    healthy, alone = run([0, 2])
    assert healthy.ok
    assert torch.equal(sol.states[:, [0, 2]], healthy.states)
    torch.testing.assert_close(mixed, alone, rtol=1e-12, atol=0)


def test_the_adjoint_differentiates_in_time() -> None:
    field, H0 = field_of("F", alpha=1.0, beta=1.0), state()
    T = torch.tensor(0.7, dtype=F64, requires_grad=True)
    sol = solve(field, H0, [0.0, T], adjoint=True)
    sol.final.sum().backward()
    assert T.grad is not None
    assert T.grad.item() == pytest.approx(field(None, sol.final.detach()).sum().item(), rel=1e-9)
