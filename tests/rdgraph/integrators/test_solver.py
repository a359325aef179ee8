"""`solve`: members that fail stay apart from those that do not, trackers and measures, what is refused."""

from __future__ import annotations

import io
import itertools
import math
import weakref
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console
from torch import Tensor

from rdgraph.errors import InvalidArgument, NotApplicable, UnknownName
from rdgraph.graphs.graph import Graph
from rdgraph.integrators.solution import Solution, Stats, Status
from rdgraph.integrators.solver import METHODS, solve
from rdgraph.integrators.trackers import Callback, ProgressBar
from rdgraph.lowering.vector_field import VectorField, lower
from rdgraph.methods.tableaux import methods
from rdgraph.systems.parser import parse

F64 = torch.float64
RING = Graph.from_edges([[0, 1, 2, 3, 1, 2, 3, 0], [1, 2, 3, 0, 0, 1, 2, 3]])
SQUARE = "beta*H*H - alpha*L@H"  # blows up from positive data


def field_of(text: str, batch: tuple[int, ...] = (), dtype: torch.dtype = F64, **coefficients: Any) -> VectorField:
    return lower(text, RING.operator("row", dtype=dtype), coefficients, batch=batch)


def state(*batch: int, dtype: torch.dtype = F64, seed: int = 0) -> Tensor:
    return 0.1 + torch.rand(*batch, 4, 2, dtype=dtype, generator=torch.Generator().manual_seed(seed))


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
def test_an_undefined_operation_is_told_from_blow_up(method: str) -> None:
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


# ---------------------------------------------------------------------- gradients beside a failure
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
    assert again.stats.evaluations == 2 * plain.stats.evaluations - 1  # one step told the cause of the failure
    assert seen == [0, 1, 2] * 2


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
def test_strang_is_second_order_with_steps_of_every_members_own() -> None:
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


# ---------------------------------------------------------------------- trackers and measures
class Log:
    """Remembers what it was told."""

    def __init__(self, fail_at: int | None = None) -> None:
        self.heard: list[Any] = []
        self.fail_at = fail_at

    def start(self, total: int) -> None:
        self.heard.append(("start", total))

    def saved(self, index: int, time: Tensor, state: Tensor) -> None:
        assert not state.requires_grad
        self.heard.append((index, round(float(time), 12)))
        if index == self.fail_at:
            raise KeyboardInterrupt

    def stop(self) -> None:
        self.heard.append("stop")


@pytest.mark.parametrize("method", ["heun", "dopri5", "exact"])
def test_trackers_hear_every_save_in_order(method: str) -> None:
    log = Log()
    H0 = state().requires_grad_()
    sol = solve(field_of("diffusion", alpha=1.0), H0, [0.0, 0.5, 1.0], method, trackers=[log])
    assert log.heard == [("start", 3), (0, 0.0), (1, 0.5), (2, 1.0), "stop"]
    assert sol.final.requires_grad


def test_an_interrupted_run_stops_its_trackers() -> None:
    log, other = Log(fail_at=1), Log()
    with pytest.raises(KeyboardInterrupt):
        solve(field_of("diffusion", alpha=1.0), state(), [0.0, 0.5, 1.0], "euler", trackers=[other, log])
    assert log.heard == [("start", 3), (0, 0.0), (1, 0.5), "stop"]
    assert other.heard[-1] == "stop"


def test_the_callback_gets_the_saved_states() -> None:
    seen: list[tuple[int, float, Tensor]] = []
    tracker = Callback(lambda index, time, state: seen.append((index, float(time), state)))
    sol = solve(field_of("diffusion", alpha=1.0), state(), [0.0, 0.5], "euler", trackers=[tracker])
    assert [(index, time) for index, time, _ in seen] == [(0, 0.0), (1, 0.5)]
    assert all(torch.equal(kept, saved) for (_, _, kept), saved in zip(seen, sol.states, strict=True))


def test_the_progress_bar_shows_only_on_a_terminal() -> None:
    field, H0 = field_of("diffusion", alpha=1.0), state()
    quiet, loud, forced = io.StringIO(), io.StringIO(), io.StringIO()
    bars = [
        ProgressBar(console=Console(file=quiet)),
        ProgressBar("heat", console=Console(file=loud, force_terminal=True, width=80)),
        ProgressBar("forced", force=True, console=Console(file=forced, width=80)),
    ]
    solve(field, H0, [0.0, 0.5, 1.0], "euler", trackers=bars)
    assert quiet.getvalue() == ""
    assert "heat" in loud.getvalue()
    assert "100%" in loud.getvalue()
    assert "forced" in forced.getvalue()
    assert [bar._shown for bar in bars] == [None, None, None]


@pytest.mark.parametrize("method", ["rk4", "dopri5", "exact"])
def test_measures_are_taken_at_every_save(method: str) -> None:
    field = field_of("diffusion", (2,), alpha=1.0)
    H0 = state(2).requires_grad_()
    measures = {"mean": lambda H: H.mean((-2, -1)), "largest": lambda H: float(H.detach().abs().max())}
    sol = solve(field, H0, [0.0, 0.5, 1.0], method, measures=measures)
    assert sol.measures["mean"].shape == (3, 2)
    assert torch.equal(sol.measures["mean"], sol.states.mean((-2, -1)))
    assert sol.measures["largest"].tolist() == pytest.approx(sol.states.abs().amax((1, 2, 3)).tolist())
    last = solve(field, H0, [0.0, 0.5, 1.0], method, measures=measures, keep_states=False)
    assert last.states.shape == (1, 2, 4, 2)
    assert torch.equal(last.final, sol.final)
    assert last.times.tolist() == [0.0, 0.5, 1.0]
    assert torch.equal(last.measures["mean"], sol.measures["mean"])
    last.measures["mean"].sum().backward()
    torch.testing.assert_close(H0.grad, torch.full_like(H0, 3 / 8))


def test_without_states_the_trajectory_is_not_held() -> None:
    alive: list[weakref.ref[Tensor]] = []
    most = 0

    def energy(H: Tensor) -> Tensor:
        nonlocal most
        alive.append(weakref.ref(H))
        most = max(most, sum(ref() is not None for ref in alive))
        return H.square().sum()

    t = np.linspace(0, 1, 20)
    with torch.no_grad():
        sol = solve(field_of("diffusion", alpha=1.0), state(), t, "euler", measures={"e": energy}, keep_states=False)
    assert len(alive) == 20
    assert most <= 3
    assert sol.measures["e"].shape == (20,)


# ---------------------------------------------------------------------- the solution
def test_a_solution_reads_well() -> None:
    sol = solve(field_of(SQUARE, (2, 2), alpha=0.1, beta=1.0), state(2, 2) * 0.1, [0.0, 1.0], "euler")
    assert repr(sol) == "Solution(2 times, states (2, 2, 2, 4, 2), 4 ok, 1 evaluations, 1 products)"
    assert sol.status.shape == (2, 2)
    assert (sol.status == "ok").all()
    assert sol.stats == Stats(1, 1, 1, 0)
    assert [status.code for status in Status] == [0, 1, 2, 3, 4]


# ---------------------------------------------------------------------- what is refused
@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"method": "euler", "rtol": 1e-3}, "expected for euler only step, interpolation, got rtol"),
        ({"method": methods["heun"], "atol": 1e-3}, "expected for heun only step, interpolation, got atol"),
        ({"method": "dopri5", "step": 0.1}, "expected for dopri5 only rtol, atol, max_steps, got step"),
        ({"method": "dopri5", "interpolation": "cubic"}, "got interpolation"),
        ({"method": "exact", "step": 0.1}, "expected for exact only rtol, atol, got step"),
        ({"method": "rk4", "max_steps": 7}, "got max_steps"),
        ({"method": "rk4", "interpolation": "spline"}, "expected interpolation 'linear' or 'cubic', got 'spline'"),
        ({"rtol": -1.0}, "expected rtol >= 0 and finite, got -1.0"),
        ({"atol": math.nan}, "expected atol >= 0 and finite, got nan"),
        ({"rtol": 0.0, "atol": 0.0}, "one of rtol, atol to be > 0"),
        ({"max_steps": 0}, "expected max_steps >= 1, got 0"),
        ({"limit": 0.0}, "expected limit > 0, got 0.0"),
        ({"limit": math.nan}, "expected limit > 0, got nan"),
        ({"method": "rk4-classical", "adjoint": True}, "a method with an adjoint, euler, midpoint, heun, rk4, dopri5"),
        ({"method": methods["rk4"], "adjoint": True}, "a method with an adjoint.* got rk4"),
        ({"method": "exact", "adjoint": True}, "got exact"),
        ({"method": "rk4", "adjoint": True, "save_at": [0.5]}, "expected a step for the adjoint with save_at"),
    ],
)
def test_settings_that_a_method_cannot_use_are_refused(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(NotApplicable, match=text):
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
    with pytest.raises(NotApplicable, match=r"expected a vector field, got System; make one with lower"):
        solve(parse("F"), state(), [0.0, 1.0], "euler")  # type: ignore[arg-type]


def test_an_infinite_limit_still_stops_at_overflow() -> None:
    H0 = torch.full((4, 1), 1e200, dtype=F64)
    sol = solve(field_of(SQUARE, alpha=0.0, beta=1.0), H0, [0.0, 1.0], "euler", limit=math.inf)
    assert sol.status == "blow-up"
    assert torch.equal(sol.final, H0)


def test_an_empty_batch_is_refused() -> None:
    with pytest.raises(NotApplicable, match="at least one member"):
        solve(field_of("diffusion", (0,), alpha=1.0), torch.zeros(0, 4, 2, dtype=F64), [0.0, 1.0], "euler")


# ---------------------------------------------------------------------- on a GPU
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
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
