"""Compiled steps: the states, statuses and costs of the torch path; when they are taken, and when they are not."""

from __future__ import annotations

import pytest
import torch

import rdgraph as rd
from rdgraph.errors import InvalidArgument
from rdgraph.graphs.kernels.c_compiler import find_compiler
from rdgraph.run.solvers import compiled_steps
from rdgraph.run.solvers.compiled_steps import Compilation, CompiledRungeKutta
from rdgraph.run.solvers.solver import solve
from rdgraph.vocabulary.methods import built_in_methods

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="no C compiler")

F64 = torch.float64
TABLEAUS = [method.name for method in built_in_methods() if method.tableau is not None and not method.is_adaptive]


def random(*shape: int, seed: int = 0, dtype: torch.dtype = F64) -> torch.Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=F64).to(dtype)


def grid_field(dtype: torch.dtype = F64, batch: tuple[int, ...] = (), **values) -> rd.run.VectorField:
    op = rd.generators.grid(5, 6, periodic=True).operator("symmetric", dtype=dtype)
    return rd.lower("-alpha*L@H + beta*H*(1 - H) + 0.1*H0", op, {"alpha": 1.0, "beta": 2.0} | values, batch=batch)


def both(field, H0, t, method, **settings) -> tuple[rd.run.Solution, rd.run.Solution]:
    return tuple(solve(field, H0, t, method, compiled=wanted, **settings) for wanted in (True, False))


@pytest.fixture
def steppers(monkeypatch) -> list:
    """Every compiled stepper that is made; runs of 25 evaluations count as long."""
    monkeypatch.setattr(compiled_steps, "WORTH", 25 * 2e-4)
    made = []

    class Seen(CompiledRungeKutta):
        def __init__(self, *given) -> None:
            super().__init__(*given)
            made.append(self)

    monkeypatch.setattr("rdgraph.run.solvers.solver.CompiledRungeKutta", Seen)
    return made


# ---------------------------------------------------------------------- the same results
@pytest.mark.parametrize("method", TABLEAUS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-13), (torch.float32, 2e-5)])
def test_every_tableau_steps_as_in_torch(method, dtype, tolerance, steppers):
    field, H0 = grid_field(dtype), random(30, 2, dtype=dtype)
    made, plain = both(field, H0, [0.0, 0.35, 1.0], method, step=0.05)
    torch.testing.assert_close(made.states, plain.states, rtol=tolerance, atol=tolerance)
    assert made.stats == plain.stats
    assert len(steppers) == 1


@pytest.mark.parametrize("interpolation", ["linear", "cubic"])
def test_saves_between_steps(interpolation):
    field, H0 = grid_field(), random(30, 1)
    made, plain = both(field, H0, [0.0, 0.33, 0.35, 0.8, 1.0], "rk4", step=0.1, interpolation=interpolation)
    torch.testing.assert_close(made.states, plain.states, rtol=1e-13, atol=1e-13)
    assert made.stats == plain.stats


def test_members_with_different_steps_times_and_coefficients():
    field, H0 = grid_field(batch=(2, 2), beta=random(2, 2, seed=1)), random(2, 2, 30, 1)
    t = torch.stack([torch.zeros(2, 2, dtype=F64), random(2, 2, seed=2), 1 + random(2, 2, seed=3)])
    made, plain = both(field, H0, t, "rk4", step=0.02 + 0.1 * random(2, 2, seed=4))
    torch.testing.assert_close(made.states, plain.states, rtol=1e-13, atol=1e-13)
    assert made.status.tolist() == plain.status.tolist() == [["ok", "ok"], ["ok", "ok"]]


@pytest.mark.parametrize("method", ["rk4", "dopri5"])
@pytest.mark.parametrize(
    "text",
    [
        "u' = 0.1 - u + u**2*v - Du*L@u; v' = 0.9 - u**2*v - Dv*L@v",
        "H'' = -gamma*H - alpha*H' + tanh(A@H) + 0.1*H0",
        "u' = -exp(-t)*L@u + sin(3*t)*v; v' = t*u - v",
    ],
)
def test_several_fields_and_time(text, method):
    system = rd.parse(text)
    op = rd.generators.grid(4, 5).operator("none", dtype=F64)
    field = rd.lower(system, op, dict.fromkeys(system.coefficients, 0.3))
    settings = {} if method == "dopri5" else {"step": torch.tensor([0.03, 0.07], dtype=F64)}
    made, plain = both(field, random(2, 20, 4), [0.2, 0.5, 1.3], method, **settings)
    torch.testing.assert_close(made.states, plain.states, rtol=1e-9, atol=1e-9)
    assert made.stats == plain.stats


def test_adaptive_steps():
    field, H0 = grid_field(batch=(3,), beta=random(3, seed=1)), random(3, 30, 2)
    made, plain = both(field, H0, [0.0, 0.4, 2.0], "dopri5")
    torch.testing.assert_close(made.states, plain.states, rtol=1e-10, atol=1e-10)
    assert made.stats == plain.stats


@pytest.mark.slow
@pytest.mark.parametrize("method", ["euler", "rk4", "dopri5"])
def test_how_each_member_ends_is_unchanged(method):
    """One overflows, one meets NaN at the start, one has a square root of negative numbers later, one lives."""
    op = rd.generators.path(3).operator("row", dtype=F64)
    field = rd.lower("beta*H**2 - gamma*sqrt(H + 1) - alpha*L@H", op, values_of_four(), batch=(4,))
    H0 = torch.tensor([5.0, torch.nan, 0.1, 0.5], dtype=F64)[:, None, None].expand(4, 3, 1).contiguous()
    settings = {} if method == "dopri5" else {"step": 0.01}
    made, plain = both(field, H0, [0.0, 1.0, 3.0], method, **settings)
    assert made.status.tolist() == plain.status.tolist()
    assert len(set(made.status.tolist())) == 3
    torch.testing.assert_close(made.failed_at, plain.failed_at, equal_nan=True, rtol=1e-6, atol=1e-9)
    lives = made.status.tolist().index("ok")
    torch.testing.assert_close(made.states[:, lives], plain.states[:, lives], rtol=1e-8, atol=1e-10)
    alone = solve(field.rebatched(lives), H0[lives], [0.0, 1.0, 3.0], method, compiled=True, **settings)
    assert torch.equal(made.states[:, lives], alone.states)


def values_of_four() -> dict[str, torch.Tensor]:
    beta = torch.tensor([1.0, 1.0, 0.0, 0.0], dtype=F64)
    gamma = torch.tensor([0.0, 0.0, 1.0, 0.0], dtype=F64)
    return {"alpha": torch.tensor(0.1, dtype=F64), "beta": beta, "gamma": gamma}


def test_a_limit_ends_a_member():
    field, H0 = grid_field(batch=(2,), beta=torch.tensor([0.0, 3.0], dtype=F64)), random(2, 30, 1) / 2
    made, plain = both(field, H0, [0.0, 2.0], "rk4", step=0.05, limit=1.0)
    assert made.status.tolist() == plain.status.tolist() == ["ok", "blow-up"]
    torch.testing.assert_close(made.failed_at, plain.failed_at, equal_nan=True)
    torch.testing.assert_close(made.states, plain.states, rtol=1e-13, atol=1e-13)


def test_a_call_takes_no_more_steps_than_an_interruption_may_wait(monkeypatch, steppers):
    field, H0 = grid_field(), random(30, 1)
    whole = solve(field, H0, [0.0, 1.0], "rk4", step=0.01, compiled=True)
    monkeypatch.setattr(compiled_steps, "MOST_ENTRIES", 30 * 4 * 7)
    parts = solve(field, H0, [0.0, 1.0], "rk4", step=0.01, compiled=True)
    assert [stepper.most_steps(H0) for stepper in steppers] == [7, 7]
    assert torch.equal(whole.states, parts.states)


def test_a_method_without_times_gives_the_start():
    field, H0 = grid_field(), random(30, 1)
    assert torch.equal(solve(field, H0, [0.5], "rk4", compiled=True).final, H0)


# ---------------------------------------------------------------------- when they are taken
def test_long_runs_are_compiled_and_short_ones_are_not(steppers):
    field, H0 = grid_field(), random(30, 1)
    solve(field, H0, [0.0, 1.0], "euler", step=0.1)
    assert steppers == []
    solve(field, H0, [0.0, 1.0], "euler", step=1 / 64)
    assert len(steppers) == 1
    assert steppers[0].evaluations == 64


def test_the_choice_depends_on_size_alone():
    field, H0 = grid_field().bind(random(30, 1)), random(30, 1)
    times = torch.tensor([0.0, 1.0], dtype=F64)
    assert Compilation(None, 10, times).of(field, H0) is None
    assert Compilation(True, 10, times).of(field, H0) is not None
    assert Compilation(None, 10, times).of(field, H0) is None  # although it lies in the cache by now
    assert Compilation(None, 10_000, times).of(field, H0) is not None
    assert Compilation(False, 10_000, times).of(field, H0) is None


def test_gradients_take_the_torch_path(steppers):
    beta = torch.tensor(2.0, dtype=F64, requires_grad=True)
    field, H0 = grid_field(beta=beta), random(30, 1)
    final = solve(field, H0, [0.0, 1.0], "euler", step=0.02).final
    assert steppers == []
    final.sum().backward()
    assert float(beta.grad) != 0
    with torch.no_grad():
        again = solve(field, H0, [0.0, 1.0], "euler", step=0.02).final
    assert len(steppers) == 1
    torch.testing.assert_close(again, final.detach(), rtol=1e-12, atol=1e-12)
    t = torch.tensor([0.0, 1.0], dtype=F64, requires_grad=True)
    with torch.no_grad():
        solve(field, H0, t, "euler", step=0.02)
    assert len(steppers) == 2
    with pytest.raises(InvalidArgument, match="gradient"):
        solve(field, H0, [0.0, 1.0], "euler", step=0.1, compiled=True)


def test_without_a_compiler_the_torch_path_is_taken(monkeypatch, steppers):
    monkeypatch.setenv("CC", "no-such-compiler")
    field, H0 = grid_field(), random(30, 1)
    assert solve(field, H0, [0.0, 1.0], "euler", step=0.02).status.item() == "ok"
    assert steppers == []
    with pytest.raises(InvalidArgument, match="there is no C compiler"):
        solve(field, H0, [0.0, 1.0], "euler", step=0.1, compiled=True)


@pytest.mark.parametrize("method", ["exact", "strang"])
def test_methods_without_a_tableau_are_not_compiled(method):
    op = rd.generators.path(4).operator("symmetric", dtype=F64)
    field = rd.lower("-alpha*L@H", op, {"alpha": 1.0})
    with pytest.raises(InvalidArgument, match=f"expected a method with a tableau for compiled=True, got {method}"):
        solve(field, random(4, 1), [0.0, 1.0], method, compiled=True)
    with pytest.raises(InvalidArgument, match="got the adjoint"):
        solve(field, random(4, 1), [0.0, 1.0], "rk4", step=0.1, adjoint=True, compiled=True)


def test_a_user_defined_step_function_takes_the_torch_path(steppers):
    rd.register_method("midpoint-here", lambda f, H, dt: H + dt * f(H + dt / 2 * f(H)), order=2)
    try:
        solve(grid_field(), random(30, 1), [0.0, 1.0], "midpoint-here", step=0.02)
    finally:
        rd.vocabulary.unregister_method("midpoint-here")
    assert steppers == []


def test_a_row_of_too_many_channels_takes_the_torch_path(steppers, monkeypatch):
    monkeypatch.setattr("rdgraph.run.lowering.compiled_field.MAX_CHANNELS", 2)
    solve(grid_field(), random(30, 3), [0.0, 1.0], "euler", step=0.02)
    assert steppers == []


def test_many_mixed_channels_take_the_torch_path(steppers):
    op = rd.generators.path(4).operator("row", dtype=F64)
    for channels, count in ((17, 0), (16, 1)):
        field = rd.lower("-L@H@W", op, {"W": random(channels, channels) / 20})
        made = solve(field, random(4, channels), [0.0, 1.0], "euler", step=0.02)
        assert len(steppers) == count
    plain = solve(field, random(4, channels), [0.0, 1.0], "euler", step=0.02, compiled=False)
    torch.testing.assert_close(made.states, plain.states, rtol=1e-12, atol=1e-12)
