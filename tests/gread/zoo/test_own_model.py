"""A network from outside: registered, configured, trained, resumed, saved and read back like the built-in ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

from gread import Config, Network, Trial, karate, register_model, train
from gread.models import GREAD, BatchedModel, ModelRecord, ModelSettings, Place
from gread.models.features import Features
from gread.models.randomness import Dropper, Randomness, make_rates
from gread.settings.model_records import models, unregister_model
from rdgraph import Graph, generators
from rdgraph.errors import InvalidArgument, UnknownName


@dataclass(frozen=True, kw_only=True)
class OwnSettings(ModelSettings, model="own-net"):
    free: ClassVar[tuple[str, ...]] = (*ModelSettings.free, "share")

    share: float = 0.5
    depth: int = 2


class OwnNetwork(BatchedModel):
    settings: OwnSettings

    def build(self) -> None:
        self.mean = self.place.operator("row", self_loops=1.0)
        self.add_linear("encoder", self.features, self.settings.hidden)
        self.add_linear("decoder", self.settings.hidden, self.classes)

    def states(self, x: Features, drop: Dropper) -> list[Tensor]:
        states = [torch.tanh(self.linear("encoder", drop.features(x)))]
        for _ in range(self.settings.depth):
            states.append(drop(self.mean @ states[-1], "share"))
        return states

    def read(self, states: list[Tensor], drop: Dropper) -> Tensor:
        return self.linear("decoder", states[-1])


@pytest.fixture
def known() -> Iterator[str]:
    record = ModelRecord(
        "own-net", "own", "simple", source="this test", rule="H' = drop(P H)", settings=OwnSettings, network=OwnNetwork
    )
    register_model(record)
    yield record.name
    unregister_model(record.name)


def test_from_settings_to_files(known: str, tmp_path: Path) -> None:
    config = Config.from_toml('[model]\nname = "own-net"\nhidden = 8\nshare = 0.25\n[training]\nepochs = 30\n')
    assert Config.from_toml(config.toml()) == config
    done = train(karate(), [Trial(config, split) for split in range(3)], device="cpu")
    assert done.status == ("ok", "ok", "ok")
    assert done.history[:, -1, 0].mean() < done.history[:, 0, 0].mean()
    done.network(1).save(tmp_path)
    data = karate()
    assert torch.equal(Network.load(tmp_path).logits(data.x, data.graph), done.network(1).logits(data.x, data.graph))


def test_free_settings_share_a_batch(known: str) -> None:
    """Members that differ in a setting of their own kind run side by side, each as if it were alone."""
    configs = [Config.of(known, hidden=8, epochs=5, share=share) for share in (0.0, 0.6)]
    assert len({Trial(config).shape for config in configs}) == 1
    both = train(karate(), [Trial(config) for config in configs], device="cpu", dtype=torch.float64)
    for k, config in enumerate(configs):
        alone = train(karate(), [Trial(config)], device="cpu", dtype=torch.float64)
        np.testing.assert_allclose(both.history[k], alone.history[0], rtol=1e-9)
    assert not np.allclose(both.history[0], both.history[1])


def test_it_goes_on_from_a_checkpoint(known: str, tmp_path: Path) -> None:
    trials = [Trial(Config.of(known, hidden=8, epochs=40))]
    whole = train(karate(), trials, device="cpu")

    class Stop(Exception):
        pass

    def stop(progress: object) -> None:
        raise Stop

    with pytest.raises(Stop):
        train(karate(), trials, device="cpu", checkpoint=tmp_path, every=0.0, progress=stop)
    again = train(karate(), trials, device="cpu", checkpoint=tmp_path)
    np.testing.assert_array_equal(whole.history, again.history)


def test_names_that_are_taken_or_unknown(known: str) -> None:
    with pytest.raises(InvalidArgument, match="taken"):
        register_model(models[known])
    with pytest.raises(UnknownName, match="did you mean 'gcn'"):
        Config.of("gcnn")
    with pytest.raises(UnknownName, match="expected a setting of own-net, got 'layers'"):
        Config.of(known, layers=3)
    with pytest.raises(InvalidArgument, match="whose `model` is"):
        ModelRecord("other", "other", "simple", source="here", rule="none", settings=OwnSettings, network=OwnNetwork)
    with pytest.raises(InvalidArgument, match="expected a family among"):
        ModelRecord("own-net", "other", "new", source="here", rule="none", settings=OwnSettings, network=OwnNetwork)


def test_a_network_without_an_equation_says_so(known: str) -> None:
    network = train(karate(), [Trial(Config.of(known, epochs=2))], device="cpu").network(0)
    with pytest.raises(InvalidArgument, match="expected a network around an equation"):
        network.coefficients()
    with pytest.raises(InvalidArgument, match="expected features"):
        network.logits(np.zeros((3, 3)), karate().graph)


def test_operators_of_one_place_do_not_stand_in_for_each_other() -> None:
    """Functions of one name that differ in what they hold make graphs of their own."""

    def shift(by: int) -> Callable[[Graph], Graph]:
        return lambda graph: Graph.from_edges((graph.edge_index + by) % graph.num_nodes, graph.num_nodes)

    place = Place.of(generators.path(4))
    first, second = (place.derived(shift(by), "none").dense() for by in (0, 1))
    assert not torch.equal(first, second)
    assert place.operator("row") is place.operator("row")


def test_a_flow_that_was_not_prepared_does_not_train_as_if_it_predicted() -> None:
    settings = Config().updated({"hidden": 4}).gread
    model = GREAD(settings, Place.of(karate().graph), features=34, classes=2, seeds=[0])
    x = Features.make(karate().x)
    with pytest.raises(InvalidArgument, match="expected a network that was prepared"):
        model.run(x, make_rates([settings]), Randomness(model.seeds, torch.tensor(1)))
