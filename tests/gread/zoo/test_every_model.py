"""What holds for every network by name: members apart, numbering of the nodes, gradients, files, own graphs."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from gread.datasets.embedded import karate
from gread.datasets.node_data import NodeData
from gread.datasets.splits import Masks
from gread.datasets.synthetic import csbm
from gread.models.batched_model import BatchedModel
from gread.models.place import Place
from gread.models.problem import Problem, make_features
from gread.models.randomness import Dropper, Randomness, make_rates
from gread.models.trained_network import Network
from gread.settings.config import Config
from gread.settings.model_records import models
from gread.settings.trials import Trial, make_trials
from gread.training.ensemble import Ensemble
from gread.training.trainer import train
from rdgraph import Graph
from tests.gread.training.test_capture import Recorded

EVERY = pytest.mark.parametrize("name", list(models))
#: Small sizes for settings that many networks have.
SMALL = {"hidden": 4, "heads": 2, "attention_dim": 4, "epochs": 4}


def small(name: str, **values: Any) -> Config:
    """The defaults of a network, small."""
    known = {f.name for part in (models[name].settings, type(Config().training)) for f in fields(part)}
    return Config.of(name, **{k: v for k, v in {**SMALL, **values}.items() if k in known})


def make(
    name: str, data: NodeData, seeds: list[int], dtype: torch.dtype = torch.float64, **values: Any
) -> BatchedModel:
    """A network on the graph of a data set, as it starts."""
    trusted = torch.tensor(data.masks.train[:1].repeat(len(seeds), 0), dtype=dtype)
    place = Place.of(data.graph, dtype=dtype, trusted=trusted)
    settings = small(name, **values).model
    model: BatchedModel = models[name].network(
        settings, place, features=data.num_features, classes=data.num_classes, seeds=seeds
    )
    return model


def seen(name: str, data: NodeData, dtype: torch.dtype = torch.float64) -> Any:
    return make_features(data.x, small(name).model, dtype=dtype)


@EVERY
def test_settings_survive_a_file(name: str) -> None:
    config = small(name)
    assert Config.from_toml(config.toml()) == config
    assert config.model.model == name


@EVERY
def test_a_member_alone_is_the_member_of_a_batch(name: str) -> None:
    """Training included: dropout, optimiser and the choice of the epoch."""
    data, config = karate(), small(name)
    trials = make_trials(config, range(3))
    together = train(data, trials, device="cpu", dtype=torch.float64)
    alone = train(data, trials[2:], device="cpu", dtype=torch.float64)
    np.testing.assert_allclose(together.history[2], alone.history[0], rtol=1e-6, atol=1e-9)
    assert together.parameters is not None
    assert alone.parameters is not None
    for part, value in alone.parameters[0].items():
        torch.testing.assert_close(together.parameters[2][part], value, rtol=1e-6, atol=1e-8)


@pytest.mark.slow
@EVERY
def test_training_lowers_the_loss(name: str) -> None:
    history = train(csbm(0, n=40), [Trial(small(name, epochs=25, hidden=8))], device="cpu").history[0]
    assert np.nanmean(history[-5:, 0]) < np.nanmean(history[:3, 0])


@EVERY
def test_the_numbering_of_the_nodes_does_not_matter(name: str) -> None:
    data = csbm(2, n=24, features=3)
    order = np.random.default_rng(0).permutation(data.num_nodes)
    place = np.argsort(order)
    moved = NodeData(
        Graph.from_edges(place[data.graph.edge_index], data.num_nodes), np.asarray(data.x)[order], data.y[order],
        Masks(*(part[:, order] for part in (data.masks.train, data.masks.val, data.masks.test))), meta=data.meta,
    )  # fmt: skip
    model, other = make(name, data, [3]), make(name, moved, [3])
    for part, value in model.parts.items():  # numbers per node go with their nodes
        if data.num_nodes in value.shape:
            axis = value.shape.index(data.num_nodes)
            other.load_members({**other.parts, part: value.index_select(axis, torch.tensor(order))})
    torch.testing.assert_close(
        model(seen(name, data))[:, order], other(seen(name, moved)), rtol=1e-6, atol=1e-9
    )  # fmt: skip


@EVERY
def test_gradients_agree_with_finite_differences(name: str) -> None:
    """Of the loss without dropout, in random directions; in double precision. Sources are not held back here."""
    data = csbm(1, n=12, features=3)
    model, x = make(name, data, [5], source_term="start"), seen(name, data)
    labels = torch.tensor(data.y)[None]

    def loss() -> torch.Tensor:
        return functional.cross_entropy(model(x).transpose(1, 2), labels)

    generator = torch.Generator().manual_seed(1)
    parts = dict(model.named_parameters())
    slopes = torch.autograd.grad(loss(), list(parts.values()), allow_unused=True)
    checked = 0
    for (part, value), slope in zip(parts.items(), slopes, strict=True):
        direction = torch.randn(value.shape, generator=generator, dtype=value.dtype)
        measured = []
        with torch.no_grad():
            for sign in (1, -1):
                value.add_(direction, alpha=sign * 1e-6)
                measured.append(float(loss()))
                value.sub_(direction, alpha=sign * 1e-6)
        expected = 0.0 if slope is None else float((slope * direction).sum())
        assert (measured[0] - measured[1]) / 2e-6 == pytest.approx(expected, rel=2e-4, abs=2e-7), part
        checked += slope is not None
    assert checked


@pytest.mark.slow
@EVERY
def test_a_network_is_saved_and_read_back(name: str, tmp_path: Path) -> None:
    data = karate()
    network = train(data, [Trial(small(name))], device="cpu").network(0)
    network.save(tmp_path)
    read = Network.load(tmp_path)
    assert torch.equal(read.logits(data.x, data.graph), network.logits(data.x, data.graph))
    for state in read.layers(data.x, data.graph):
        assert state.shape[0] == data.num_nodes


@pytest.mark.slow
@EVERY
def test_dropout_depends_on_the_seed_and_the_epoch_alone(name: str) -> None:
    data = karate()
    problem = Problem.make(data, [Trial(small(name))])
    model = make(name, data, [7, 8], torch.float32)
    rates = make_rates([small(name).model] * 2)
    model.prepare(problem.features, rates)
    passes = [
        model.run(problem.features, rates, Randomness(model.seeds, torch.tensor(step))).logits for step in (1, 1, 2)
    ]
    assert torch.equal(passes[0], passes[1])
    if any(getattr(small(name).model, rate) > 0 for rate in ("input_dropout", "dropout")):
        assert not torch.equal(passes[0], passes[2])
    assert not torch.equal(passes[0][0], passes[0][1])


@EVERY
def test_states_end_in_what_is_read(name: str) -> None:
    data = karate()
    model, drop = make(name, data, [1]), Dropper()
    states = model.states(seen(name, data), drop)
    assert all(state.shape[:2] == (1, data.num_nodes) for state in states)
    assert all(torch.isfinite(state).all() for state in states)


@pytest.mark.slow
@EVERY
def test_graphs_of_their_own(name: str) -> None:
    """Members on graphs of their own give what each gives on its graph alone."""
    datas = [csbm(seed, n=30, features=3) for seed in (0, 1)]
    trials = make_trials(small(name), [0], seeds=[0, 1])
    together = Ensemble(datas, trials, dtype=torch.float64)
    for k, data in enumerate(datas):
        alone = Ensemble(data, trials[k : k + 1], dtype=torch.float64)
        torch.testing.assert_close(together.logits()[k], alone.logits()[0], rtol=1e-7, atol=1e-9)


@EVERY
def test_an_epoch_can_be_recorded(name: str) -> None:
    """As a CUDA graph would: nothing comes from the host, nothing waits for the device."""
    ensemble = Ensemble(karate(), make_trials(small(name, select="loss", patience=2), (0, 3)))
    assert ensemble.model.is_capturable
    ensemble._epoch()
    with Recorded():
        ensemble._epoch()
    assert bool(ensemble.outcome().history[:2, :, 0].isfinite().all())
