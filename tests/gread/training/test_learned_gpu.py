"""Learned functions on a GPU: the numbers of the CPU, the same bits on every run, epochs that are captured."""

from __future__ import annotations

import pytest
import torch

import rdgraph as rd
from rdgraph.run.lowering.splines import make_controls

pytestmark = pytest.mark.gpu

TEXTS = [
    "-alpha*L@H + phi(H) where phi learned lipschitz=2",
    "-alpha*L@H + phi(H) where phi learned knots=7 odd bound=1 per_channel",
]


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def solved(text: str, device: str, dtype: torch.dtype = torch.float64) -> list[torch.Tensor]:
    """A state at T = 1 of three members, and the gradients of a sum of it."""
    system = rd.parse(text)
    op = rd.generators.barabasi_albert(300, 4, seed=1).operator("row", dtype=dtype, device=device)
    declared = system.learned["phi"]
    own = (3, *((5,) if declared.per_channel else ()), declared.parameters)
    theta = drawn(*own, seed=1).to(device, dtype).requires_grad_()
    H = (2 * drawn(3, 300, 5)).to(device, dtype).requires_grad_()
    field = rd.lower(system, op, {"alpha": 0.5, "phi": make_controls(declared, theta)}, batch=(3,))
    end = rd.solve(field, H, t=[0.0, 1.0], method="rk4", step=0.25).states[-1]
    return [end.detach(), *torch.autograd.grad(end.square().sum(), [H, theta])]


@pytest.mark.parametrize("text", TEXTS)
def test_states_and_gradients_equal_those_of_the_cpu(text: str) -> None:
    for one, two in zip(solved(text, "cpu"), solved(text, "cuda"), strict=True):
        torch.testing.assert_close(one, two.cpu(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("text", TEXTS)
def test_every_run_has_the_same_bits(text: str) -> None:
    for one, two in zip(solved(text, "cuda", torch.float32), solved(text, "cuda", torch.float32), strict=True):
        assert torch.equal(one, two)


def test_a_state_that_is_no_number_does_no_harm() -> None:
    op = rd.generators.ring(4).operator("row", device="cuda")
    field = rd.lower("phi(H)", op, {"phi": torch.linspace(-1, 1, 12, device="cuda")})
    states = [[float("nan")], [float("inf")], [-float("inf")], [0.0]]
    got = field(0.0, torch.tensor(states, device="cuda"))
    torch.cuda.synchronize()
    assert got.isfinite().ravel().tolist() == [False, False, False, True]


@pytest.mark.parametrize("text", TEXTS)
def test_captured_epochs_have_the_numbers_of_plain_ones(text: str) -> None:
    from gread.datasets.embedded import karate
    from gread.settings.config import Config
    from gread.settings.trials import Trial
    from gread.training.ensemble import Ensemble

    values = {"hidden": 8, "epochs": 15, "attention_dim": 8, "method": "rk4", "step": 0.5, "reaction": text}
    trials = [Trial(Config().updated(values), split, 0) for split in (0, 3)]
    found = []
    for use_graph in (True, False):
        ensemble = Ensemble(karate(), trials, device="cuda", use_graph=use_graph)
        ensemble.advance(15)
        found.append(ensemble)
    for name, value in found[0].parameters.items():
        torch.testing.assert_close(value, found[1].parameters[name], rtol=1e-3, atol=1e-4)
    assert found[0].parameters["coefficient_phi"].abs().max() > 0
