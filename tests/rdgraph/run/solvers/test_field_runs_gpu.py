"""Runs of several fields on a card: the same paths of noise and the same states as on the CPU, to rounding."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import rdgraph as rd
from rdgraph.run.solvers.noise import normals

pytestmark = pytest.mark.gpu

PAIR = "u' = a - u + u**2*v - Du*L@u; v' = b - u**2*v - Dv*L@v"
NOISY = "u' = a - u + u**2*v - Du*L@u + sigma*u*xi; v' = b - u**2*v - Dv*L@v"
VALUES = {"a": 0.1, "b": 0.9, "Du": 0.2, "Dv": 3.0, "sigma": 0.3}


@pytest.mark.parametrize("normalisation", ["symmetric", "row", "none"])
@pytest.mark.parametrize(
    ("text", "settings"),
    [
        (PAIR, {"method": "rk4", "step": 0.05}),
        (PAIR, {"method": "dopri5"}),
        (PAIR, {"method": "imex", "step": 0.05}),
        (PAIR, {"method": "strang", "step": 0.05}),
        (PAIR, {}),
        (NOISY, {"method": "euler-maruyama", "step": 0.05, "seed": 4, "path_parts": 2}),
        (NOISY, {"method": "exponential-euler-maruyama", "step": 0.05, "seed": 4}),
        (NOISY, {}),
    ],
)
def test_states_and_gradients_are_those_of_the_cpu(text: str, settings: dict[str, Any], normalisation: str) -> None:
    op = rd.generators.erdos_renyi(40, 0.2, 1).operator(normalisation, dtype=torch.float64)
    found = []
    for device in ("cpu", "cuda"):
        names = rd.parse(text).coefficients
        values = {n: torch.tensor(VALUES[n], dtype=torch.float64, device=device, requires_grad=True) for n in names}
        field = rd.lower(text, op.to(device=device), values)
        H0 = torch.rand(3, 40, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(device)
        sol = rd.solve(field, H0, [0.0, 0.5], **settings)
        assert sol.ok
        slopes = torch.autograd.grad(sol.final.square().mean(), list(values.values()))
        found.append([sol.final.detach().cpu(), *(x.cpu() for x in slopes)])
    for own, other in zip(*found, strict=True):
        torch.testing.assert_close(own, other, rtol=1e-8, atol=1e-8)


def test_normal_numbers_are_the_same_on_every_device() -> None:
    seeds = torch.tensor([0, 5, 2**50])
    torch.testing.assert_close(
        normals(seeds, 1, 7, 3, 1001), normals(seeds.cuda(), 1, 7, 3, 1001).cpu(), rtol=1e-13, atol=1e-13
    )
