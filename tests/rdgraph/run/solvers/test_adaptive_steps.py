"""dopri5 for whole batches: the steps of torchdiffeq, member by member, and gradients."""

from __future__ import annotations

import math

import pytest
import torch
import torchdiffeq
from torch import Tensor

from rdgraph.graphs.graph import Graph
from rdgraph.run.lowering.vector_field import VectorField, lower
from rdgraph.systems.parser import parse
from tests.rdgraph.run.solvers.adaptive_runs import solve, state
from tests.rdgraph.run.solvers.ring_fields import F64, RING, field_of


# ---------------------------------------------------------------------- dopri5 and torchdiffeq
class Counted:
    """A field of one member as torchdiffeq calls it, with the numbers of calls, accepted and rejected steps."""

    def __init__(self, field: VectorField) -> None:
        self.field, self.calls, self.accepted, self.rejected = field, 0, 0, 0

    def __call__(self, t: Tensor, H: Tensor) -> Tensor:
        self.calls += 1
        return self.field(t, H)

    def callback_accept_step(self, *step: Tensor) -> None:
        self.accepted += 1

    def callback_reject_step(self, *step: Tensor) -> None:
        self.rejected += 1


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 2e-6)])
@pytest.mark.parametrize("batch", [(), (3,), (1, 2)])
def test_every_member_takes_the_steps_of_torchdiffeq(
    batch: tuple[int, ...], dtype: torch.dtype, tolerance: float
) -> None:
    count = math.prod(batch)
    alpha = torch.linspace(20.0, 1.0, count, dtype=dtype).reshape(batch)
    field, H0 = field_of("F", batch, dtype, alpha=alpha, beta=1.0), state(*batch, dtype=dtype)
    t = torch.tensor([0.0, 0.3, 0.31, 1.0], dtype=dtype)
    sol = solve(field, H0, t, rtol=1e-4, atol=1e-6)
    counted = [Counted(field.rebatched(k) if batch else field) for k in range(count)]
    for k, own in enumerate(counted):
        theirs = torchdiffeq.odeint(own, H0.reshape(-1, 4, 2)[k], t, method="dopri5", rtol=1e-4, atol=1e-6)
        torch.testing.assert_close(sol.states.reshape(4, -1, 4, 2)[:, k], theirs, rtol=tolerance, atol=tolerance)
    assert sol.stats.evaluations == max(own.calls for own in counted)  # as many as the slowest member asks for
    assert sol.stats.products == sol.stats.evaluations * field.plan.products
    assert sol.stats.accepted == sum(own.accepted for own in counted)
    assert sol.stats.rejected == sum(own.rejected for own in counted)
    assert sol.stats.rejected > 0


@pytest.mark.parametrize("text", ["F", "ST", "-alpha*L@H + beta*tanh(A@H) - 0.1*H**3"])
def test_random_fields_agree_with_torchdiffeq(text: str) -> None:
    for seed in range(2):
        draw = torch.Generator().manual_seed(seed)
        values = {name: 3 * torch.rand((), dtype=F64, generator=draw) for name in ("alpha", "beta")}
        field, H0 = field_of(text, **values).bind(state(seed=seed)), state(seed=seed)
        t = torch.cat([torch.zeros(1), torch.rand(5, generator=draw).cumsum(0)]).double()
        own = Counted(field)
        theirs = torchdiffeq.odeint(own, H0, t, method="dopri5", rtol=1e-6, atol=1e-8)
        sol = solve(field, H0, t, rtol=1e-6, atol=1e-8)
        torch.testing.assert_close(sol.states, theirs, rtol=1e-11, atol=1e-12)
        assert (sol.stats.evaluations, sol.stats.accepted) == (own.calls, own.accepted)


@pytest.mark.parametrize(("dtype", "expected"), [(torch.float64, 1e-6), (torch.float32, 1e-4)])
def test_default_tolerances_suit_the_precision(dtype: torch.dtype, expected: float) -> None:
    H0 = torch.ones(4, 1, dtype=dtype)
    sol = solve(field_of("-gamma*H", dtype=dtype, gamma=1.0), H0, [0.0, 1.0])
    torch.testing.assert_close(sol.final, H0 * math.exp(-1), rtol=expected, atol=0)
    assert sol.stats.accepted < 40


# ---------------------------------------------------------------------- one batch, many clocks
@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_member_does_not_notice_its_batch(dtype: torch.dtype) -> None:
    """Slow, stiff, waiting, failing and broken members side by side: each to the bit as it is alone."""
    alpha = torch.tensor([0.1, 60.0, 2.0, 1.0, 1.0, 7.0], dtype=dtype)
    beta = torch.tensor([1.0, 0.5, -1.0, 3.0, 3.0, 0.0], dtype=dtype)
    graph = Graph.from_dense((torch.rand(9, 9, generator=torch.Generator().manual_seed(3)) < 0.4).double().numpy())
    op = graph.operator("row", self_loops=1.0, dtype=dtype)
    H0 = torch.rand(6, 9, 3, dtype=dtype, generator=torch.Generator().manual_seed(4))
    H0[3], H0[4, 2, 1] = H0[3] - 1.2, math.nan
    t = torch.tensor([0.0, 0.2, 0.25, 0.9, 2.0], dtype=F64)[:, None].repeat(1, 6)
    t[:, 2] = 0.7
    t[:, 5] *= 0.5
    values = {"alpha": alpha, "beta": beta}
    settings = {"rtol": 1e-3, "atol": 1e-5}
    together = solve(lower("F", op, values, batch=(6,)), H0, t, **settings)
    assert together.status.tolist() == ["ok", "ok", "ok", "blow-up", "not-a-number", "ok"]
    costs = []
    for k in range(6):
        alone = solve(lower("F", op, {n: v[k] for n, v in values.items()}), H0[k], t[:, k], **settings)
        assert torch.equal(alone.states.nan_to_num(7.0), together.states[:, k].nan_to_num(7.0))
        assert str(alone.status) == together.status[k]
        assert torch.equal(alone.failed_at.nan_to_num(-1.0), together.failed_at[k].nan_to_num(-1.0))
        costs.append(alone.stats)
    assert together.stats.evaluations == max(cost.evaluations for cost in costs)
    assert together.stats.accepted == sum(cost.accepted for cost in costs)
    assert together.stats.rejected == sum(cost.rejected for cost in costs)


def test_weights_nodes_and_mixing_follow_their_members() -> None:
    op = RING.operator("none", dtype=F64)
    weights = torch.rand(3, op.num_edges, dtype=F64, generator=torch.Generator().manual_seed(1))
    degree = torch.rand(3, 4, 1, dtype=F64, generator=torch.Generator().manual_seed(2))
    system = parse("-alpha*L@H + beta*H@W - gamma*H**3", {"beta": "node", "gamma": "channel"})
    draw = torch.Generator().manual_seed(3)
    shapes = {"alpha": (3,), "beta": (4,), "gamma": (3, 2), "W": (3, 2, 2)}
    values = {n: torch.rand(shape, dtype=F64, generator=draw) for n, shape in shapes.items()}
    values["alpha"] *= torch.tensor([30.0, 1.0, 0.1], dtype=F64)  # members finish one after the other
    together = solve(lower(system, op.with_weights(weights, "free", degree), values, batch=(3,)), state(3), [0.0, 1.0])
    for k in range(3):
        own = {n: v if n == "beta" else v[k] for n, v in values.items()}
        alone = solve(lower(system, op.with_weights(weights[k], "free", degree[k]), own), state(3)[k], [0.0, 1.0])
        torch.testing.assert_close(together.final[k], alone.final, rtol=1e-13, atol=1e-14)


def test_members_have_their_own_times() -> None:
    field, H0 = field_of("F", (2,), alpha=1.0, beta=1.0), state(2)
    t = torch.tensor([[0.0, 1.0], [0.5, 1.0], [1.0, 1.0]], dtype=F64)
    sol = solve(field, H0, t)
    assert torch.equal(sol.states[:, 1], H0[1].expand(3, 4, 2))
    assert torch.equal(sol.states[:, 0], solve(field.rebatched(0), H0[0], t[:, 0]).states)


def test_states_between_the_steps_are_interpolated() -> None:
    """A hundred saves cost nothing, and lie as close to the truth as the ends of the steps."""
    H0 = state()
    field = field_of("diffusion", alpha=1.0)
    t = torch.linspace(0, 3, 101, dtype=F64)
    sol = solve(field, H0, t, rtol=1e-6, atol=1e-8)
    assert sol.stats == solve(field, H0, [0.0, 3.0], rtol=1e-6, atol=1e-8).stats
    assert sol.stats.accepted < 30
    torch.testing.assert_close(sol.states, solve(field, H0, t, "exact").states, rtol=0, atol=1e-6)
    doubled = solve(field, H0, t.repeat_interleave(2), rtol=1e-6, atol=1e-8)
    assert torch.equal(doubled.states[::2], sol.states)
    assert torch.equal(doubled.states[1::2], sol.states)


def test_the_start_is_bound_for_every_member() -> None:
    field = field_of("ST", (2,), alpha=torch.tensor([0.0, 1.0], dtype=F64), beta=0.5)
    H0 = state(2)
    sol = solve(field, H0, [0.0, 2.0])
    torch.testing.assert_close(sol.final[0], 2 * H0[0], rtol=1e-6, atol=0)  # H' = H0/2
    torch.testing.assert_close(sol.final, solve(field, H0, [0.0, 2.0], "rk4", step=0.02).final, rtol=1e-6, atol=1e-7)


# ---------------------------------------------------------------------- gradients of the accepted steps
def leaves_of(batch: tuple[int, ...], draw: torch.Generator) -> dict[str, Tensor]:
    shapes = {"alpha": batch, "beta": (*batch, 2), "weights": (8,), "H0": (*batch, 4, 2)}
    return {n: torch.rand(s, dtype=F64, generator=draw).requires_grad_() for n, s in shapes.items()}


def run_of(leaves: dict[str, Tensor], batch: tuple[int, ...]) -> VectorField:
    system = parse("-30*alpha*L@H + beta*H*(1 - H) + 0.2*H0", {"beta": "channel"})
    op = RING.operator("row", dtype=F64).with_weights(leaves["weights"], "free")
    return lower(system, op, {"alpha": leaves["alpha"], "beta": leaves["beta"]}, batch=batch)


def test_gradients_agree_with_torchdiffeq() -> None:
    """torchdiffeq also differentiates its first step, which counts for no more than the tolerance."""
    t = torch.tensor([0.0, 0.2, 0.4], dtype=F64)
    settings = {"rtol": 1e-5, "atol": 1e-7}
    leaves = leaves_of((), torch.Generator().manual_seed(0))
    field = run_of(leaves, ()).bind(leaves["H0"])
    own = Counted(field)
    theirs = torchdiffeq.odeint(own, leaves["H0"], t, method="dopri5", **settings)
    sol = solve(field, leaves["H0"], t, **settings)
    assert own.rejected > 0
    assert sol.stats.rejected == own.rejected
    assert sol.stats.evaluations == own.calls + 1 + 6 * own.accepted  # the steps are repeated for the gradient
    with torch.no_grad():
        assert torch.equal(solve(field, leaves["H0"], t, **settings).states, sol.states)
    weight = torch.linspace(-1, 1, theirs.numel(), dtype=F64).view_as(theirs)
    found, expected = (
        torch.autograd.grad((weight * states).sum(), list(leaves.values())) for states in (sol.states, theirs)
    )
    for one, two in zip(found, expected, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-3, atol=1e-4)


def test_gradients_of_a_batch_are_those_of_its_members() -> None:
    leaves = leaves_of((3,), torch.Generator().manual_seed(1))
    t = torch.tensor([[0.0, 0.0, 0.0], [0.4, 0.1, 0.0], [1.0, 0.2, 0.0]], dtype=F64, requires_grad=True)
    weight = torch.linspace(-1, 1, 3 * 3 * 8, dtype=F64).view(3, 3, 4, 2)
    sol = solve(run_of(leaves, (3,)), leaves["H0"], t)
    together = torch.autograd.grad((weight * sol.states).sum(), [*leaves.values(), t])
    apart = [torch.zeros_like(x) for x in together]
    for k in range(3):
        own = {n: x if n == "weights" else x[k] for n, x in leaves.items()}
        alone = solve(run_of(own, ()), own["H0"], t[:, k])
        parts = torch.autograd.grad((weight[:, k] * alone.states).sum(), [*leaves.values(), t], materialize_grads=True)
        apart = [total + part for total, part in zip(apart, parts, strict=True)]
    for one, two in zip(together, apart, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-11, atol=1e-13)


def test_gradients_in_time_are_the_field() -> None:
    field, H0 = field_of("F", alpha=1.0, beta=1.0), state()
    first, last = (torch.tensor(x, dtype=F64, requires_grad=True) for x in (0.2, 0.9))
    final = solve(field, H0, [first, last], rtol=1e-9, atol=1e-11).final
    slopes = torch.autograd.grad(final.sum(), [first, last])
    expected = field(None, final.detach()).sum().item()
    assert slopes[0].item() == pytest.approx(-expected, rel=1e-4)
    assert slopes[1].item() == pytest.approx(expected, rel=1e-4)


def test_gradients_agree_with_the_closed_form() -> None:
    h, beta = torch.tensor([0.3], dtype=F64, requires_grad=True), torch.tensor(2.0, dtype=F64, requires_grad=True)
    sol = solve(field_of("beta*H*(1 - H)", beta=beta), h.expand(4, 1), [0.0, 1.5], rtol=1e-10, atol=1e-12)
    grown = h * torch.exp(1.5 * beta)
    exact = grown / (1 - h + grown)
    torch.testing.assert_close(sol.final, exact.expand(4, 1), rtol=1e-9, atol=0)
    found = torch.autograd.grad(sol.final.sum() / 4, [h, beta])
    for one, two in zip(found, torch.autograd.grad(exact.sum(), [h, beta]), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-8, atol=0)


def test_states_saved_before_a_failure_keep_their_gradient() -> None:
    H0 = torch.full((2, 4, 1), 0.1, dtype=F64)
    H0[1] = 2.0
    H0.requires_grad_()
    sol = solve(field_of("H*H", (2,)), H0, [0.0, 0.2, 3.0])
    assert sol.status.tolist() == ["ok", "blow-up"]
    (slope,) = torch.autograd.grad(sol.states[1].sum(), H0)
    torch.testing.assert_close(slope, 1 / (1 - 0.2 * H0.detach()) ** 2, rtol=1e-5, atol=0)
    assert not sol.states.detach()[2, 1].isnan().any()
