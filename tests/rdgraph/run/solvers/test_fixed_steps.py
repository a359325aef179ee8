"""Fixed steps: equal to torchdiffeq, order as declared, times and steps of every member its own."""

from __future__ import annotations

import math
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torchdiffeq
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from rdgraph.errors import InvalidArgument
from rdgraph.graphs.graph import Graph
from rdgraph.run.lowering.field_blocks import FieldBlocks
from rdgraph.run.lowering.vector_field import VectorField, lower
from rdgraph.run.solvers.fixed_steps import MAX_STEPS, make_timetable
from rdgraph.run.solvers.solver import solve
from rdgraph.vocabulary.methods import FIXED, methods, z
from tests.property_examples import examples

F64 = torch.float64
THEIRS = {"euler": "euler", "midpoint": "midpoint", "heun": "heun2", "rk4": "rk4"}
RING = Graph.from_edges([[0, 1, 2, 3, 1, 2, 3, 0], [1, 2, 3, 0, 0, 1, 2, 3]])


def field_of(text: str, batch: tuple[int, ...] = (), dtype: torch.dtype = F64, **coefficients: Any) -> VectorField:
    return lower(text, RING.operator("row", dtype=dtype), coefficients, batch=batch)


def state(*batch: int, dtype: torch.dtype = F64, seed: int = 0) -> Tensor:
    return torch.rand(*batch, 4, 3, dtype=dtype, generator=torch.Generator().manual_seed(seed))


class Stub(nn.Module):
    """The least a field has to offer: dH/dt = rate*H, so that the loop is tested alone."""

    def __init__(self, rate: Any, batch: tuple[int, ...] = ()) -> None:
        super().__init__()
        self.rate, self.batch = rate, batch
        self.plan = SimpleNamespace(products=5)
        self.system = SimpleNamespace(fields=("H",), is_noisy=False, is_single=True)
        self.blocks = FieldBlocks(self.system.fields)
        self.uses_initial = False
        self.calls = 0

    def forward(self, t: Any, H: Tensor) -> Tensor:
        self.calls += 1
        return self.rate * H

    def check_state(self, H: Tensor) -> None:
        assert H.shape[:-2] == self.batch

    def spread(self, batch: tuple[int, ...]) -> Stub:
        assert batch == self.batch
        return self

    def prepared(self) -> Stub:
        return self


# ---------------------------------------------------------------------- the same numbers as torchdiffeq
@settings(max_examples=examples(30))
@given(
    method=st.sampled_from(sorted(THEIRS)),
    start=st.sampled_from([0.0, -1.5, 0.1]),
    gaps=st.lists(st.sampled_from([0.05, 0.1, 1 / 3, 0.7, 1.0]), min_size=1, max_size=6),
    step=st.none() | st.sampled_from([0.1, 0.2, 0.25, 0.3, 1 / 3, 0.7, 5.0]),
    interpolation=st.sampled_from(["linear", "cubic"]),
    dtype=st.sampled_from([torch.float64, torch.float32]),
)
def test_equals_torchdiffeq_step_rule_included(
    method: str, start: float, gaps: list[float], step: float | None, interpolation: str, dtype: torch.dtype
) -> None:
    field = field_of("AC", dtype=dtype, alpha=1.0, beta=0.7)
    t = torch.tensor([start, *(start + np.cumsum(gaps))], dtype=dtype)
    H0 = state(dtype=dtype)
    ours = solve(field, H0, t, method, step=step, interpolation=interpolation)
    options = {"step_size": step, "interp": interpolation}
    theirs = torchdiffeq.odeint(field, H0, t, method=THEIRS[method], options=options)
    torch.testing.assert_close(
        ours.states, theirs, rtol=0, atol=20 * torch.finfo(dtype).eps * float(theirs.abs().max())
    )
    assert ours.ok
    assert torch.equal(ours.times, t)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@settings(max_examples=examples(50))
@given(start=st.floats(-3, 3), length=st.floats(0.01, 9), step=st.floats(0.01, 2) | st.sampled_from([0.1, 0.3, 0.7]))
def test_the_grid_is_torchdiffeqs(dtype: torch.dtype, start: float, length: float, step: float) -> None:
    t = torch.tensor([start, start + length], dtype=dtype)
    steps: list[Tensor] = []
    spy = Stub(0.0)
    spy.callback_step = lambda t0, y0, dt: steps.append(dt)  # type: ignore[assignment]
    torchdiffeq.odeint(spy, torch.ones(1, 1, dtype=dtype), t, method="euler", options={"step_size": step})
    ours = make_timetable(t, None, step).lengths
    theirs = torch.stack([dt for dt in steps if dt > 0])
    assert torch.equal(ours, theirs)


# ---------------------------------------------------------------------- each method is what its tableau says
@pytest.mark.parametrize("name", sorted(methods))
def test_a_step_multiplies_eigenvectors_by_the_stability_polynomial(name: str) -> None:
    field = field_of("diffusion", alpha=1.0)
    H0 = torch.tensor([[1.0], [-1.0], [1.0], [-1.0]], dtype=F64)  # L H0 = 2 H0
    sol = solve(field, H0, [0.0, 0.75], methods[name], step=0.3)
    factor = math.prod(float(methods[name].stability.subs(z, -2 * dt)) for dt in (0.3, 0.3, 0.15))
    torch.testing.assert_close(sol.final, factor * H0, rtol=1e-14, atol=0)


@cache
def allen_cahn() -> tuple[VectorField, Tensor, Tensor]:
    """A nonlinear problem and its solution at time 1, to about 1e-14."""
    field, H0 = field_of("AC", alpha=1.0, beta=1.0), 0.2 + 0.5 * state()
    return field, H0, solve(field, H0, [0.0, 1.0], methods["dopri5"], step=1 / 250).final


@pytest.mark.parametrize("name", sorted(methods))
def test_observed_order_is_declared_order(name: str) -> None:
    field, H0, truth = allen_cahn()
    steps = np.array([1 / 12, 1 / 18, 1 / 27])
    errors = [float((solve(field, H0, [0.0, 1.0], methods[name], step=h).final - truth).norm()) for h in steps]
    slope = np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert slope == pytest.approx(methods[name].order, abs=0.1)


def test_dopri5_at_a_tight_tolerance_agrees() -> None:
    field, H0, truth = allen_cahn()
    sol = solve(field, H0, [0.0, 1.0], "dopri5", rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(sol.final, truth, rtol=0, atol=1e-9)


def test_names_and_tableaux_are_the_same_methods() -> None:
    assert set(FIXED) - {"semi-implicit-euler"} == set(methods) - {"dopri5"}  # which has no tableau
    field, H0 = field_of("F", alpha=1.0, beta=0.5), state()
    for name in set(FIXED) & set(methods):
        named, given_ = (solve(field, H0, [0.0, 1.0], m, step=0.25).final for m in (name, methods[name]))
        assert torch.equal(named, given_)


def test_costs_are_counted() -> None:
    stub = Stub(-1.0)
    sol = solve(stub, torch.ones(2, 1), [0.0, 1.0], "rk4", step=0.3)
    assert (sol.stats.evaluations, sol.stats.products, sol.stats.accepted, sol.stats.rejected) == (16, 80, 4, 0)
    assert stub.calls == 16
    assert solve(Stub(-1.0), torch.ones(2, 1), [0.0, 1.0], methods["dopri5"], step=0.5).stats.evaluations == 12
    assert solve(Stub(-1.0), torch.ones(2, 1), [0.0, 0.3, 0.5, 1.0], "euler").stats.accepted == 3


# ---------------------------------------------------------------------- times
@pytest.mark.parametrize("method", ["euler", "rk4", "dopri5"])
@pytest.mark.parametrize("t", [[0.0], [0.0, 0.0], [2.0, 2.0, 2.0]])
def test_time_zero_is_the_identity(method: str, t: list[float]) -> None:
    H0 = state()
    sol = solve(field_of("F", alpha=1.0, beta=1.0), H0, t, method)
    assert torch.equal(sol.states, H0.expand(len(t), 4, 3))
    assert sol.stats.evaluations == 0
    assert sol.ok


@pytest.mark.parametrize("method", ["heun", "dopri5"])
def test_repeated_times_repeat_states_at_no_cost(method: str) -> None:
    field, H0 = field_of("F", alpha=1.0, beta=1.0), state()
    plain = solve(field, H0, [0.0, 0.5, 1.0], method)
    twice = solve(field, H0, [0.0, 0.0, 0.5, 0.5, 0.5, 1.0, 1.0], method)
    assert torch.equal(twice.states, plain.states[[0, 0, 1, 1, 1, 2, 2]])
    assert twice.stats == plain.stats


def test_save_at_replaces_the_times_but_not_the_steps() -> None:
    field, H0 = field_of("F", alpha=1.0, beta=1.0), state()
    grid = solve(field, H0, [0.0, 0.5, 1.0], "rk4")
    sol = solve(field, H0, [0.0, 0.5, 1.0], "rk4", save_at=[0.25, 0.5])
    assert sol.times.tolist() == [0.25, 0.5]
    assert torch.equal(sol.states[1], grid.states[1])
    torch.testing.assert_close(sol.states[0], (grid.states[0] + grid.states[1]) / 2, rtol=1e-15, atol=1e-15)
    assert sol.stats == grid.stats


def test_cubic_interpolation_is_fourth_order_where_linear_is_second() -> None:
    field, H0 = field_of("AC", alpha=1.0, beta=1.0), state()
    save = [0.37]
    truth = solve(field, H0, [0.0, 0.37], methods["dopri5"], step=0.01).final
    for interpolation, order in (("linear", 2), ("cubic", 4)):
        # steps in which 0.37 lies in the middle
        errors = [
            float((solve(field, H0, [0.0, 1.0], "rk4", step=0.74 / k, interpolation=interpolation, save_at=save).final
                   - truth).abs().max())
            for k in (1, 3, 9)
        ]  # fmt: skip
        assert np.log(errors[1] / errors[2]) / np.log(3) == pytest.approx(order, abs=0.35)


def test_per_member_times_and_steps_match_each_member_alone() -> None:
    alpha = torch.tensor([0.5, 1.0, 2.0, 3.0], dtype=F64)
    field = field_of("F", batch=(4,), alpha=alpha, beta=0.8)
    H0 = state(4)
    t = torch.tensor([[0.0, 0.5, 0.0, 1.0], [1.0, 0.6, 0.0, 1.3], [2.0, 0.7, 0.0, 4.0]], dtype=F64)
    step = torch.tensor([0.3, 0.04, 0.1, 0.5], dtype=F64)
    for interpolation in ("linear", "cubic"):
        sol = solve(field, H0, t, "rk4", step=step, interpolation=interpolation)
        assert sol.times.shape == (3, 4)
        assert sol.stats.accepted == 7
        for k in range(4):
            single = solve(
                field.rebatched(k), H0[k], t[:, k], "rk4", step=float(step[k]), interpolation=interpolation
            )  # fmt: skip
            torch.testing.assert_close(sol.states[:, k], single.states, rtol=1e-15, atol=1e-15)


def test_per_member_times_without_a_step_are_each_members_grid() -> None:
    field = field_of("F", batch=(2, 2), alpha=torch.rand(2, 2, dtype=F64), beta=0.8)
    H0 = state(2, 2)
    t = torch.tensor([0.0, 0.5, 0.5, 2.0], dtype=F64)[:, None, None] * torch.tensor([[1.0, 2.0], [0.0, 0.1]], dtype=F64)
    saves = t[[0, 2, 3]] * 0.9
    sol = solve(field, H0, t, "heun", save_at=saves)
    for k in range(4):
        single = solve(
            field.rebatched(k), H0.view(4, 4, 3)[k], t.view(4, 4)[:, k], "heun", save_at=saves.view(3, 4)[:, k]
        )  # fmt: skip
        torch.testing.assert_close(sol.states.view(3, 4, 4, 3)[:, k], single.states, rtol=1e-15, atol=1e-15)


def test_shared_steps_with_saves_of_each_member() -> None:
    field, H0 = field_of("F", batch=(2,), alpha=1.0, beta=0.8), state(2)
    saves = torch.tensor([[0.05, 0.9], [0.95, 1.0]], dtype=F64)
    sol = solve(field, H0, [0.0, 1.0], "rk4", step=0.1, save_at=saves)
    dense = solve(field, H0, [0.0, 1.0], "rk4", step=0.1, save_at=[0.05, 0.9, 0.95, 1.0])
    assert torch.equal(sol.states[:, 0], dense.states[[0, 2], 0])
    assert torch.equal(sol.states[:, 1], dense.states[[1, 3], 1])


@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_batch_shape_and_precision(batch: tuple[int, ...], dtype: torch.dtype) -> None:
    field = field_of("AC", batch=batch, dtype=dtype, alpha=torch.rand(batch, dtype=dtype), beta=1.0)
    H0 = state(*batch, dtype=dtype)
    sol = solve(field, H0, [0.0, 0.5, 1.0], "rk4", step=0.25)
    assert sol.states.shape == (3, *batch, 4, 3)
    assert sol.states.dtype == dtype
    assert sol.status.shape == batch
    assert sol.failed_at.shape == batch
    assert bool(sol.failed_at.isnan().all())
    for k, member in enumerate(H0.reshape(-1, 4, 3)):
        own = field.rebatched(k) if batch else field
        alone = torchdiffeq.odeint(own, member, torch.tensor([0.0, 1.0]), method="rk4", options={"step_size": 0.25})[-1]
        torch.testing.assert_close(sol.final.reshape(-1, 4, 3)[k], alone, rtol=0, atol=8 * torch.finfo(dtype).eps)


def test_times_may_hold_tensors_of_members() -> None:
    field, H0 = field_of("F", batch=(2,), alpha=1.0, beta=0.8), state(2)
    T = torch.tensor([1.0, 2.0], dtype=F64)
    mixed = solve(field, H0, [0.0, T], "rk4", step=0.25)
    assert torch.equal(mixed.times, torch.stack([torch.zeros(2, dtype=F64), T]))
    assert torch.equal(mixed.final[0], solve(field, H0, [0, 1], "rk4", step=0.25).final[0])


# ---------------------------------------------------------------------- gradients
def test_gradients_in_state_coefficients_and_times() -> None:
    H0 = state(2)[..., :1].clone().requires_grad_()
    alpha = torch.tensor([0.5, 1.5], dtype=F64, requires_grad=True)
    T = torch.tensor([0.7, 1.1], dtype=F64, requires_grad=True)

    def run(H: Tensor, a: Tensor, end: Tensor) -> Tensor:
        field = field_of("AC", batch=(2,), alpha=a, beta=0.5)
        return solve(field, H, [0.0, 0.3 * end, end], "rk4", step=0.4, interpolation="cubic").states[1:].square().sum()

    assert torch.autograd.gradcheck(run, (H0, alpha, T))


def test_the_derivative_in_the_end_is_the_field() -> None:
    field, H0 = field_of("F", alpha=1.0, beta=1.0), state()
    T = torch.tensor(0.3, dtype=F64, requires_grad=True)
    solve(field, H0, [0.0, T], "euler").final.sum().backward()
    assert T.grad is not None
    assert T.grad.item() == pytest.approx(field(0.0, H0).sum().item(), rel=1e-14)


def test_second_derivatives() -> None:
    def run(beta: Tensor) -> Tensor:
        return solve(field_of("F", alpha=1.0, beta=beta), state(), [0.0, 1.0], "heun", step=0.5).final.sum()

    assert torch.autograd.gradgradcheck(run, (torch.tensor(0.5, dtype=F64, requires_grad=True),))


# ---------------------------------------------------------------------- what makes no sense
@pytest.mark.parametrize(
    ("t", "step", "text"),
    [
        ([], None, "at least one time, got none"),
        (1.0, None, "at least one time, got the number 1; write"),
        ("soon", None, "list of numbers"),
        ([0.0, 2.0, 1.0], None, "not to decrease, got \\[0, 2, 1\\]; sort it"),
        ([1.0, 0.0], 0.1, "opposite sign"),
        ([0.0, math.nan], None, "finite times in t"),
        ([0.0, math.inf], 0.1, "finite times in t"),
        ([[0.0, 1.0], [1.0, 2.0]], None, "expected t of shape \\(2,\\), got \\(2, 2\\)"),
        ([0.0, 1.0], 0.0, "step > 0 and finite, got 0"),
        ([0.0, 1.0], -0.1, "step > 0 and finite, got -0.1"),
        ([0.0, 1.0], math.nan, "step > 0 and finite"),
        ([0.0, 1.0], [0.1, 0.2], "step to be a number, got shape \\(2,\\)"),
        ([0.0, 1.0], "small", "step to be a number > 0"),
        ([0.0, 1.0], 1e-9, f"at most {MAX_STEPS} steps, got 1000000000; take a larger step"),
    ],
)
def test_bad_times_and_steps_are_refused(t: Any, step: Any, text: str) -> None:
    with pytest.raises(InvalidArgument, match=text):
        solve(Stub(1.0), torch.ones(2, 1), t, "euler", step=step)


@pytest.mark.parametrize("save_at", [[-0.1], [0.5, 1.1]])
def test_saves_outside_the_times_are_refused(save_at: list[float]) -> None:
    with pytest.raises(InvalidArgument, match="expected save_at within t, from 0 to 1"):
        solve(Stub(1.0), torch.ones(2, 1), [0.0, 1.0], "euler", save_at=save_at)


def test_shapes_of_members_times_and_steps_are_checked() -> None:
    stub, H0 = Stub(1.0, (3,)), torch.ones(3, 2, 1)
    with pytest.raises(InvalidArgument, match=r"shape \(2,\) or \(2, 3\), one column per member, got \(2, 2\)"):
        solve(stub, H0, torch.rand(2, 2), "euler")
    with pytest.raises(InvalidArgument, match=r"a tensor \(3,\), one per member, got shape \(2,\)"):
        solve(stub, H0, [0.0, 1.0], "euler", step=[0.1, 0.2])
