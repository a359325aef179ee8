"""States kept in bfloat16: the same network to the precision of the storage, in less memory, parameters in full."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from gread import GREADClassifier, karate
from gread.settings.config import Config
from gread.settings.gread_settings import GreadSettings
from gread.settings.model_records import models
from gread.settings.trials import make_trials
from gread.training.ensemble import Ensemble
from rdgraph.errors import InvalidArgument, RdgraphError

CASES: list[dict[str, Any]] = [
    {},
    {"adjacency": "original"},
    {"reaction": "AC", "method": "euler", "step": 0.5},
    {"reaction": "F", "method": "rk4", "step": 0.5, "adjacency": "original"},
    {"adjacency": "live", "method": "euler", "step": 0.5},
    {"reaction": "u' = -L@u + v; v' = -L@v - u"},
]


def made(storage: str, **settings: Any) -> Ensemble:
    return Ensemble(karate(), make_trials(Config.of("gread", hidden=16, storage=storage, **settings), [0, 1], [0]))


def passed(ensemble: Ensemble) -> tuple[torch.Tensor, int, torch.Tensor]:
    """Logits, bytes of states that are kept for the gradient, and the gradient of a sum of the logits."""
    sizes: dict[int, int] = {}

    def note(x: torch.Tensor) -> torch.Tensor:
        if x.ndim >= 3 and x.shape[-2] == karate().num_nodes and x.is_floating_point():
            sizes[x.data_ptr()] = x.numel() * x.element_size()
        return x

    model = ensemble.model
    with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(note, lambda x: x):
        logits = model.run(ensemble.problem.features, ensemble.rates).logits
        weights = torch.linspace(-1.0, 1.0, logits.numel()).view_as(logits)
        found = torch.autograd.grad((weights * logits).sum(), list(model.parameters()), allow_unused=True)
    gradient = torch.cat([part.flatten() for part in found if part is not None])
    return logits.detach(), sum(sizes.values()), gradient


@pytest.mark.parametrize("settings", CASES, ids=str)
def test_the_network_is_the_same_to_the_precision_of_the_storage(settings: dict[str, Any]) -> None:
    (full, kept, slopes), (half, fewer, near) = (passed(made(storage, **settings)) for storage in ("full", "bfloat16"))
    assert half.dtype == torch.float32
    error = float((half - full).norm() / full.norm())
    assert 0 < error < 0.02
    assert fewer < 0.9 * kept
    assert float(torch.cosine_similarity(near, slopes, dim=0)) > 0.99


@pytest.mark.slow
def test_it_is_trained_with_parameters_in_full() -> None:
    ensemble = made("bfloat16")
    ensemble.advance(60)
    assert {p.dtype for p in ensemble.model.parameters()} == {torch.float32}
    assert ensemble.model.memory(ensemble.problem.features) < made("full").model.memory(ensemble.problem.features)
    assert float(ensemble.outcome().val_accuracy.min()) > 0.8


def test_a_classifier_takes_it_and_predicts() -> None:
    data = karate()
    found = GREADClassifier(hidden=8, storage="bfloat16", epochs=20, device="cpu").fit(data)
    assert len(found.predict(data)) == data.num_nodes


def test_an_adaptive_method_says_that_it_cannot() -> None:
    with pytest.raises(InvalidArgument, match=r"whose tolerance torch\.bfloat16 cannot hold"):
        made("bfloat16", reaction="AC", method="dopri5").advance(1)
    with pytest.raises(RdgraphError, match="known: bfloat16, full"):
        Config.of("gread", storage="float8")


@pytest.mark.parametrize(
    "name", [name for name, record in models.items() if issubclass(record.settings, GreadSettings)]
)
def test_every_network_around_an_equation_takes_it(name: str) -> None:
    trials = make_trials(Config.of(name, hidden=8, storage="bfloat16"), [0], [0])
    ensemble = Ensemble(karate(), trials)
    ensemble.advance(2)
    assert torch.isfinite(ensemble.state["history"][:2]).all()
