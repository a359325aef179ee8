"""The adjoint: the gradient of the equation, the same states, failing members, times."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from rdgraph.run.lowering.vector_field import lower
from rdgraph.systems.parser import parse
from rdgraph.vocabulary.methods import WITH_ADJOINT
from tests.rdgraph.run.solvers.adaptive_runs import solve, state
from tests.rdgraph.run.solvers.ring_fields import F64, RING, field_of


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


@pytest.mark.slow
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


@pytest.mark.parametrize("method", sorted(WITH_ADJOINT))
def test_the_adjoint_has_the_same_states(method: str) -> None:
    field, H0 = field_of("F", (2,), alpha=1.0, beta=0.5), state(2)
    for settings in ({}, {"step": 0.3}, {"step": 0.3, "interpolation": "cubic", "save_at": [0.4, 0.6]}):
        if method == "dopri5" and settings:
            continue
        plain, back = (solve(field, H0, [0.0, 0.5, 1.0], method, adjoint=a, **settings) for a in (False, True))
        torch.testing.assert_close(back.states, plain.states, rtol=1e-12, atol=1e-14)
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
