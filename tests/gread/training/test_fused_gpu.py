"""Trainings of nonlinear equations on a GPU by generated kernels: the curves of torch's operations, bits, captures."""

from __future__ import annotations

import pytest
import torch

from rdgraph.graphs.kernels import devices

pytestmark = pytest.mark.gpu

NETWORKS = [
    {"reaction": "F", "method": "rk4"},
    {"reaction": "F", "method": "rk4", "adjacency": "original"},
    {"reaction": "-alpha*L@H + beta*tanh(H)*(1 - H) + H0", "method": "rk4", "beta": "channel"},
    {"reaction": "Z", "method": "euler", "adjacency": "live"},
]


def trained(
    monkeypatch: pytest.MonkeyPatch, is_fused: bool, values: dict, use_graph: bool | None = None, **more: object
):
    """A training in which every state is large enough for the kernels, or none is."""
    from gread.datasets.embedded import karate
    from gread.settings.config import Config
    from gread.settings.trials import Trial
    from gread.training.ensemble import Ensemble

    monkeypatch.setattr(devices, "FUSED_ENTRIES", 0 if is_fused else 1 << 60)
    base = {"hidden": 8, "epochs": 15, "attention_dim": 8, "step": 0.5}
    trials = [Trial(Config().updated(base | values), split, seed) for split in (0, 3) for seed in (0, 1)]
    ensemble = Ensemble(karate(), trials, device="cuda", use_graph=use_graph, **more)
    ensemble.advance(15)
    return ensemble


@pytest.mark.parametrize("values", NETWORKS, ids=str)
def test_curves_are_those_of_torch(monkeypatch, values):
    found = [trained(monkeypatch, is_fused, values).outcome().history for is_fused in (True, False)]
    torch.testing.assert_close(found[0][:5, :, 0], found[1][:5, :, 0], rtol=2e-4, atol=2e-5)
    exact = [
        trained(monkeypatch, is_fused, values, dtype=torch.float64).outcome().history for is_fused in (True, False)
    ]
    torch.testing.assert_close(exact[0], exact[1], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("values", NETWORKS, ids=str)
def test_captured_epochs_are_the_same_bits_every_time(monkeypatch, values):
    captured, again, eager = (trained(monkeypatch, True, values, use_graph) for use_graph in (True, True, False))
    assert captured._replay is not None
    assert eager._replay is None
    for name, value in captured.state.items():
        assert torch.equal(value, again.state[name]), name
        assert torch.equal(value, eager.state[name]), name


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_a_field_above_the_limit_has_the_gradients_of_one_below(monkeypatch, dtype):
    """States as large as the switch asks for, in every precision; the kernels are the ones that run."""
    import rdgraph as rd
    from rdgraph.graphs.kernels.entry_kernels import EntryKernels

    calls = []
    own = EntryKernels.value
    monkeypatch.setattr(EntryKernels, "value", lambda *args: calls.append(1) or own(*args))
    graph = rd.generators.barabasi_albert(2000, 3, seed=1)
    operator = graph.operator("row", dtype=dtype, device="cuda")
    random = torch.Generator(device="cuda").manual_seed(0)
    H = torch.rand(9, 2000, 64, generator=random, device="cuda").to(dtype).requires_grad_(True)
    weights = operator.weights.expand(9, -1).clone().requires_grad_(True)
    alpha, beta = (
        torch.rand(9, generator=random, device="cuda").to(torch.promote_types(dtype, torch.float32)) for _ in "ab"
    )
    values = {"alpha": alpha.requires_grad_(True), "beta": beta.requires_grad_(True)}
    found = []
    for limit in (1 << 20, 1 << 60):
        monkeypatch.setattr(devices, "FUSED_ENTRIES", limit)
        slope = rd.lower("F", operator.with_weights(weights), values, batch=(9,))(None, H)
        gradients = torch.autograd.grad(slope.square().sum(), [H, weights, *values.values()])
        found.append([slope, *gradients])
    assert len(calls) == 1
    tolerance = {torch.float32: 1e-5, torch.float64: 1e-11, torch.bfloat16: 3e-2}[dtype]
    for one, two in zip(*found, strict=True):
        assert (one.double() - two.double()).norm() <= tolerance * two.double().norm()
