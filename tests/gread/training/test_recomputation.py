"""Gradients that compute states again are those that keep all of them; the planner asks for it if memory is short."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import rdgraph as rd
from gread import Config, Trial, karate, train
from gread.training import Ensemble, ensemble, planner
from rdgraph.errors import InvalidArgument
from rdgraph.graphs.operator import Operator
from rdgraph.run.solvers.polynomial_flow import apply_polynomial


def make_config(**values: Any) -> Config:
    return Config().updated({"hidden": 5, "epochs": 3, "time": 2.0, "dropout": 0.3} | values)


CASES: list[dict[str, Any]] = [
    {"adjacency": "original"},
    {"adjacency": "soft"},
    {"adjacency": "original", "normalisation": "row", "method": "rk4", "step": 0.5},
    {"reaction": "F", "method": "euler", "step": 0.25},
    {"reaction": "AC", "method": "rk4", "step": 0.5, "adjacency": "original"},
    {"reaction": "-alpha*L@H + beta*H*cos(t)", "method": "rk4", "step": 0.5},
    {"adjacency": "live", "method": "euler", "step": 0.5},
]


def slopes(config: Config, checkpointing: str | int) -> tuple[Ensemble, Tensor, list[Tensor | None]]:
    ensemble = Ensemble(karate(), [Trial(config, split) for split in range(2)], checkpointing=checkpointing)
    return ensemble, *ensemble._slopes()


@pytest.mark.parametrize("values", CASES)
def test_gradients_are_the_same_whatever_is_kept(values: dict[str, Any]) -> None:
    config = make_config(**values)
    ensemble, loss, expected = slopes(config, "none")
    assert ensemble.model.segment == 0
    assert ensemble.model.segments
    for segment in (1, 2, 3):
        other, found, gradients = slopes(config, segment)
        assert other.model.segment == segment
        torch.testing.assert_close(found, loss, rtol=0, atol=0)
        for name, one, two in zip(ensemble.parameters, expected, gradients, strict=True):
            assert (one is None) == (two is None), name
            if one is not None and two is not None:
                torch.testing.assert_close(
                    two, one, rtol=2e-5, atol=1e-7, msg=lambda text, name=name: f"{name}: {text}"
                )


@pytest.mark.parametrize("kind", ["chebyshev", "taylor"])
@pytest.mark.parametrize("degree", [0, 1, 2, 5, 8])
@pytest.mark.parametrize("segment", [1, 2, 3, 5, 9, 40])
def test_polynomials_in_segments_have_the_gradients_of_whole_ones(kind: str, degree: int, segment: int) -> None:
    graph = rd.Graph.from_edges(np.random.default_rng(1).integers(0, 7, (2, 25)), 7)
    blank = graph.operator("row", dtype=torch.float64)
    random = torch.Generator().manual_seed(degree)

    def leaves() -> list[Tensor]:
        random.manual_seed(degree)
        shapes = [(2, blank.num_edges), (degree + 1, 2, 1, 3), (2, 7, 3)]
        return [torch.randn(s, generator=random, dtype=torch.float64).requires_grad_() for s in shapes]

    def run(size: int) -> tuple[Tensor, tuple[Tensor, ...]]:
        weights, series, x = leaves()
        out = apply_polynomial(Operator(blank.pattern, weights), series, x, kind, segment=size)
        return out.detach(), torch.autograd.grad(out.sin().sum(), (weights, series, x))

    (whole, expected), (found, gradients) = run(0), run(segment)
    torch.testing.assert_close(found, whole, rtol=0, atol=0)
    for one, two in zip(expected, gradients, strict=True):
        torch.testing.assert_close(two, one, rtol=1e-12, atol=1e-12)


def kept_states(segment: int) -> int:
    """Numbers that autograd keeps for a polynomial of degree 24 with weights that want a gradient."""
    operator = rd.generators.ring(50).operator("row")
    weights = operator.weights.clone().requires_grad_()
    seen: dict[int, int] = {}

    def note(x: Tensor) -> Tensor:
        seen[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
        return x

    x = torch.ones(1, 50, 16)
    with torch.autograd.graph.saved_tensors_hooks(note, lambda x: x):
        apply_polynomial(Operator(operator.pattern, weights), torch.ones(25, 1, 1, 1), x, "taylor", segment=segment)
    return sum(seen.values()) // (x.numel() * 4)


def test_segments_keep_less() -> None:
    assert kept_states(0) >= 24
    assert kept_states(5) <= 8


def test_the_planner_keeps_what_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    config = make_config(reaction="AC", method="rk4", step=0.1, time=3.0)
    trial = [Trial(config)]
    whole = planner.estimate(Ensemble(karate(), trial)).states
    short = planner.estimate(Ensemble(karate(), trial, checkpointing=1)).states
    assert short < whole / 4
    assert Ensemble(karate(), trial).model.segment == 0
    monkeypatch.setattr(ensemble, "free_memory", lambda device: int(0.6 * whole / ensemble.SHARE))
    chosen = Ensemble(karate(), trial).model.segment
    assert chosen > 1
    monkeypatch.setattr(ensemble, "free_memory", lambda device: 10)
    least = Ensemble(karate(), trial).model.segment
    needs = {k: planner.estimate(Ensemble(karate(), trial, checkpointing=k)).states for k in (1, 2, 3, 4, 8)}
    assert needs[least] == min(needs.values())
    assert Ensemble(karate(), trial, checkpointing="none").model.segment == 0


def test_a_training_that_does_not_fit_whole_is_trained_in_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    config = make_config(reaction="AC", method="rk4", step=0.2, time=3.0)
    expected = train(karate(), [Trial(config)], device="cpu")
    need = planner.estimate(Ensemble(karate(), [Trial(config)]))
    room = int(0.5 * need.total / planner.SHARE)
    for module in (planner, ensemble):
        monkeypatch.setattr(module, "free_memory", lambda device: room)
    with pytest.raises(InvalidArgument, match="GiB for one member"):
        train(karate(), [Trial(config)], device="cpu", checkpointing="none")
    found = train(karate(), [Trial(config)], device="cpu")
    np.testing.assert_allclose(found.history, expected.history, rtol=1e-5)


def test_networks_without_steps_know_one_way_only() -> None:
    ensemble = Ensemble(karate(), [Trial(Config.of("gcn", epochs=1))], checkpointing=2)
    assert ensemble.model.segment == 0
    with pytest.raises(InvalidArgument, match="expected auto, none or a number"):
        Ensemble(karate(), [Trial(make_config())], checkpointing="some")
    with pytest.raises(InvalidArgument, match="expected auto, none or a number"):
        Ensemble(karate(), [Trial(make_config())], checkpointing=0)
