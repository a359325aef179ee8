"""Different equations on a GPU: recorded epochs have the values of the CPU, from rung to rung."""

from __future__ import annotations

import pytest
import torch

pytestmark = pytest.mark.gpu

LINES = (
    "-alpha*L@H + beta*L@H0 + gamma*A@A@H", "BS", "-alpha*L@H + gamma*H", "-alpha*L@L@H + beta*tanh(H0)",
    "-alpha*L@H + beta*tanh(H)", "-alpha*L@H - gamma*tanh(H) + beta*H0", "-alpha*L@H + beta*sigmoid(A@H)*(H0 - H)",
)  # fmt: skip


@pytest.mark.parametrize("adjacency", ["original", "soft"])
@pytest.mark.parametrize("beta", ["scalar", "channel"])
def test_recorded_epochs_have_the_curves_of_the_cpu(adjacency: str, beta: str) -> None:
    from gread.datasets.embedded import karate
    from gread.models.equation_model import EquationBatch
    from gread.models.resolution import resolve_method
    from gread.settings.config import Config
    from gread.settings.equation_settings import EquationSettings
    from gread.settings.trials import Trial, grouped
    from gread.training.ensemble import Ensemble

    training = Config().updated({"epochs": 12}).training
    own = {"hidden": 8, "attention_dim": 8, "adjacency": adjacency, "beta": beta, "slots": 3}
    models = [resolve_method(EquationSettings.of(line, **own))[0] for line in LINES]
    trials = [Trial(Config(model, training), split) for model in models for split in (0, 3)]
    for group in grouped(trials):
        found = []
        for device in ("cpu", "cuda"):
            ensemble = Ensemble(
                karate(), [trials[k] for k in group], device=device, dtype=torch.float64,
                networks={EquationSettings: EquationBatch},
            )  # fmt: skip
            ensemble.advance(12)
            found.append(ensemble.outcome().history)
        assert ensemble.use_graph
        torch.testing.assert_close(found[1], found[0], rtol=1e-6, atol=1e-6)


def test_rungs_drop_the_same_equations_as_on_the_cpu() -> None:
    from gread.datasets.embedded import karate
    from gread.discovery.equation_batches import train_equations
    from gread.settings.config import Config

    config = Config().updated({"hidden": 8, "adjacency": "original"})
    done = [
        train_equations(LINES, karate(), config, splits=[0, 1], epochs=60, rungs=[20], keep=0.5, device=device)
        for device in ("cpu", "cuda")
    ]
    for one, other in zip(*done, strict=True):
        assert one.rungs[0][1] == pytest.approx(other.rungs[0][1], abs=0.1)
    assert sorted(one.epochs for one in done[0]) == sorted(one.epochs for one in done[1]) == [20] * 3 + [60] * 4
