"""Runs of several fields, of second order, of time and with further operators, against scipy and against themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp
from torch import Tensor

import rdgraph as rd
from rdgraph.errors import InvalidArgument, RdgraphError, UnknownName
from rdgraph.language.reader import start_of
from rdgraph.run.lowering.vector_field import VectorField
from rdgraph.run.solvers.solver import solve
from rdgraph.theory.equality.dense_oracle import evaluate

F64 = torch.float64
NODES, CHANNELS = 5, 2
GRAPH = rd.generators.erdos_renyi(NODES, 0.6, 1)
VALUES = {
    "alpha": 0.8, "beta": 0.6, "gamma": 1.3, "omega": 2.0, "a": 0.2, "b": 0.9, "Du": 0.1, "Dv": 0.7,
}  # fmt: skip
SCHNAKENBERG = "u' = a - u + u**2*v - Du*L@u; v' = b - u**2*v - Dv*L@v"
EPIDEMIC = "S' = -beta*S*(A@J); J' = beta*S*(A@J) - gamma*J; Z' = gamma*J"
OSCILLATORS = "H'' = -gamma*H - alpha*H' + tanh(A@H)"
SEASONS = "u' = -alpha*exp(-t)*L@u + beta*sin(omega*t)*v; v' = u - t*v"
FORCED = "u' = -alpha*exp(-t)*L@u + beta*sin(omega*t)"
STARTS = "u' = -L@u + v*(u0 - u); v' = A@u0 - v"
WIND = "u' = -alpha*L@u + beta*B@u - u*v; v' = B@A@v - v + u where B antisymmetric"
SYSTEMS = (SCHNAKENBERG, EPIDEMIC, OSCILLATORS, SEASONS, FORCED, STARTS, WIND)


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=F64)


def wind() -> np.ndarray:
    matrix = random(NODES, NODES, seed=7).numpy()
    return matrix - matrix.T


def made(text: str, normalisation: str = "row", **own: Any) -> VectorField:
    system = rd.parse(text)
    batch = own.pop("batch", ())
    values = {**{n: VALUES[n] for n in system.coefficients}, **own}
    operators = {name: wind() for name in system.operators.names}
    return rd.lower(system, GRAPH.operator(normalisation, dtype=F64), values, batch=batch, operators=operators)


def start_for(field: VectorField, *batch: int) -> Tensor:
    return random(*batch, NODES, len(field.system.fields) * CHANNELS, seed=3)


def by_scipy(field: VectorField, H0: Tensor, times: list[float]) -> np.ndarray:
    """The dense interpreter integrated by scipy, which shares nothing with the lowered field; no batch."""
    op, fields = field.operator, field.system.fields
    matrix, shape = op.dense().numpy(), tuple(H0.shape)
    known: dict[str, Any] = {n: v.numpy() for n, v in field.coefficients.items()}
    known |= {"A": matrix, "I": np.eye(NODES), "B": wind()}
    if op.degree is not None:
        known["L"] = np.diag(matrix.sum(1)) - matrix
    blocks = np.split(H0.numpy(), len(fields), -1)
    known |= {start_of(name): block for name, block in zip(fields, blocks, strict=True)}

    def slope(t: float, y: np.ndarray) -> np.ndarray:
        states = dict(zip(fields, np.split(y.reshape(shape), len(fields), -1), strict=True))
        parts = [evaluate(tree, {**known, **states, "t": t}) for tree in field.system.flow.values()]
        wide = [np.broadcast_to(part, (NODES, CHANNELS)) for part in parts]
        return np.concatenate(wide, -1).ravel()

    found = solve_ivp(slope, (times[0], times[-1]), H0.numpy().ravel(), "DOP853", times, rtol=1e-11, atol=1e-12)
    return found.y.T.reshape(-1, *shape)


# ---------------------------------------------------------------------- the same numbers as scipy
@pytest.mark.parametrize("normalisation", ["row", "none"])
@pytest.mark.parametrize("text", SYSTEMS)
def test_runs_equal_those_of_scipy(text: str, normalisation: str) -> None:
    field = made(text, normalisation)
    H0, times = start_for(field), [0.2, 0.7, 1.5]
    wanted = by_scipy(field, H0, times)
    adaptive = solve(field, H0, times, "dopri5", rtol=1e-9, atol=1e-10)
    assert adaptive.ok
    np.testing.assert_allclose(adaptive.states.numpy(), wanted, rtol=1e-6, atol=1e-7)
    steps = solve(field, H0, times, "rk4", step=0.01)
    np.testing.assert_allclose(steps.states.numpy(), wanted, rtol=1e-6, atol=1e-7)
    auto = solve(field, H0, times)
    assert auto.reason
    np.testing.assert_allclose(auto.states.numpy(), wanted, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize(("method", "order"), [("euler", 1), ("midpoint", 2), ("heun", 2), ("rk4", 4)])
@pytest.mark.parametrize("text", [SCHNAKENBERG, OSCILLATORS, SEASONS, FORCED, STARTS])
def test_the_order_is_the_declared_one(text: str, method: str, order: int) -> None:
    field = made(text)
    H0, times = start_for(field), [0.1, 1.1]
    wanted = by_scipy(field, H0, times)[-1]
    errors = [np.abs(solve(field, H0, times, method, step=h).final.numpy() - wanted).max() for h in (0.1, 0.05)]
    assert abs(np.log2(errors[0] / errors[1]) - order) < 0.35


@pytest.mark.parametrize("method", ["rk4", "dopri5"])
@pytest.mark.parametrize("text", [SCHNAKENBERG, SEASONS])
@pytest.mark.slow
def test_the_adjoint_has_the_gradient_of_the_steps(text: str, method: str) -> None:
    field = made(text, beta=torch.tensor(0.6, dtype=F64, requires_grad=True)) if "beta" in text else made(
        text, a=torch.tensor(0.2, dtype=F64, requires_grad=True)
    )  # fmt: skip
    leaf = next(x for x in field.tensors())
    settings = {"step": 0.02} if method == "rk4" else {"rtol": 1e-9, "atol": 1e-10}
    found = []
    for adjoint in (False, True):
        H0 = start_for(field, 2).requires_grad_(True)
        sol = solve(field, H0, torch.tensor([[0.1, 0.0], [0.9, 0.6]], dtype=F64), method, adjoint=adjoint, **settings)
        found.append((sol.final.detach(), *torch.autograd.grad(sol.final.square().sum(), [H0, leaf])))
    for plain, other in zip(*found, strict=True):
        torch.testing.assert_close(plain, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("method", ["euler", "rk4", "dopri5"])
@pytest.mark.parametrize("text", SYSTEMS)
def test_members_with_different_times_are_separate_runs(text: str, method: str) -> None:
    field = made(text)
    H0 = start_for(field, 3)
    t = torch.tensor([[0.1, 0.0, 0.2], [1.0, 0.5, 0.2]], dtype=F64)
    settings: dict[str, Any] = {} if method == "dopri5" else {"step": 0.05}
    sol = solve(field, H0, t, method, **settings)
    assert sol.ok
    for k in range(3):
        alone = solve(field, H0[k], t[:, k], method, **settings)
        torch.testing.assert_close(sol.states[:, k], alone.states, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("method", ["euler", "rk4", "dopri5"])
@pytest.mark.parametrize("text", [SCHNAKENBERG, SEASONS, STARTS])
def test_members_do_not_notice_a_neighbour_that_breaks(text: str, method: str) -> None:
    field = made(text, batch=(3,))
    H0 = start_for(field, 3)
    settings: dict[str, Any] = {"limit": 1e6} if method == "dopri5" else {"limit": 1e6, "step": 0.05}
    alone = solve(field, H0, [0.0, 0.5], method, **settings).states[:, [0, 2]]
    for other in (1e300, torch.inf, torch.nan):
        changed = H0.clone()
        changed[1] = other
        sol = solve(field, changed, [0.0, 0.5], method, **settings)
        assert torch.equal(sol.states[:, [0, 2]], alone)
        assert sol.status[[0, 2]].tolist() == ["ok", "ok"]
        assert sol.status[1] != "ok"


@pytest.mark.parametrize("text", [SCHNAKENBERG, OSCILLATORS, SEASONS])
def test_gradients_of_runs_are_those_of_differences(text: str) -> None:
    system = rd.parse(text)
    names = list(system.coefficients)

    def final(*numbers: Tensor) -> Tensor:
        field = made(text, **dict(zip(names, numbers, strict=True)))
        return solve(field, start_for(field)[..., : len(system.fields)], [0.0, 0.4], "heun", step=0.1).final

    leaves = [torch.tensor(VALUES[n], dtype=F64, requires_grad=True) for n in names]
    assert torch.autograd.gradcheck(final, leaves)


# ---------------------------------------------------------------------- states by name
def test_states_come_and_go_by_name() -> None:
    field = made(SCHNAKENBERG)
    u, v = random(NODES, CHANNELS, seed=1), random(NODES, CHANNELS, seed=2)
    named = solve(field, {"v": v, "u": u}, [0.0, 0.3], "rk4", step=0.1)
    packed = solve(field, torch.cat([u, v], -1), [0.0, 0.3], "rk4", step=0.1)
    assert torch.equal(named.states, packed.states)
    assert named.fields == ("u", "v")
    assert torch.equal(named["u"], packed.states[..., :CHANNELS])
    assert torch.equal(named["v"][0], v)
    with pytest.raises(UnknownName, match="w"):
        named["w"]


def test_a_velocity_that_is_not_given_is_zero() -> None:
    field, H = made(OSCILLATORS), random(NODES, CHANNELS)
    sol = solve(field, {"H": H}, [0.0, 0.4], "rk4", step=0.1)
    other = solve(field, {"H": H, "H'": torch.zeros_like(H)}, [0.0, 0.4], "rk4", step=0.1)
    assert torch.equal(sol.states, other.states)
    assert float(sol["H'"][-1].abs().max()) > 0


def test_one_field_comes_by_name_too() -> None:
    field, u = made("u' = -L@u"), random(NODES, CHANNELS)
    sol = solve(field, {"u": u}, [0.0, 0.4])
    assert torch.equal(sol["u"], solve(field, u, [0.0, 0.4]).states)
    assert sol.method == "exact"


def test_measures_and_saves_in_between_see_the_packed_state() -> None:
    field = made(SCHNAKENBERG)
    H0 = start_for(field)
    sol = solve(field, H0, [0.0, 1.0], "rk4", step=0.1, save_at=[0.25, 1.0], measures={"mean": lambda H: H.mean()})
    assert sol.states.shape == (2, NODES, 2 * CHANNELS)
    torch.testing.assert_close(sol.measures["mean"], sol.states.mean((-2, -1)))


@pytest.mark.parametrize("method", ["euler", "rk4"])
def test_runs_in_bfloat16_stay_near(method: str) -> None:
    exact = made(SCHNAKENBERG)
    narrow = rd.lower(exact.system, exact.operator.to(dtype=torch.bfloat16), {n: VALUES[n] for n in exact.coefficients})
    H0 = start_for(exact)
    sol = solve(narrow, H0.bfloat16(), [0.0, 1.0], method, step=0.25)
    assert sol.final.dtype == torch.bfloat16
    wanted = solve(exact, H0, [0.0, 1.0], method, step=0.25).final
    assert (sol.final.double() - wanted).norm() / wanted.norm() < 3e-2


# ---------------------------------------------------------------------- errors
@pytest.mark.parametrize(
    ("start", "error", "words"),
    [
        ({"u": random(NODES, 1)}, InvalidArgument, "got none for v"),
        ({"u": random(NODES, 1), "x": random(NODES, 1)}, UnknownName, "x"),
        ({"u": random(NODES, 1), "v": random(NODES, 2)}, InvalidArgument, "states of one shape"),
        (random(NODES, 3), InvalidArgument, "multiple of 2 channels"),
        (random(NODES + 1, 2), InvalidArgument, "expected a state tensor"),
        (random(NODES, 2).float(), InvalidArgument, "float64"),
    ],
)
def test_starts_that_do_not_fit_are_refused(start: Any, error: type[RdgraphError], words: str) -> None:
    with pytest.raises(error, match=words):
        solve(made(SCHNAKENBERG), start, [0.0, 1.0])
