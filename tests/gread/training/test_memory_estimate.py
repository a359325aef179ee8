"""What a training is planned to take of the memory."""

from __future__ import annotations

import weakref
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from gread.datasets.embedded import karate
from gread.settings.config import Config
from gread.settings.model_records import models
from gread.settings.trials import Trial
from gread.training.ensemble import Ensemble
from gread.training.planner import estimate


class Storages(TorchDispatchMode):
    """Bytes of the storages that were made within the block and are still there, and the most of them at once."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.most = 0
        self._sizes = dict[int, int]()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = function(*args, **(kwargs or {}))
        given = {x.untyped_storage()._cdata for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)}
        for value in found if isinstance(found, list | tuple) else [found]:  # a view has the storage of an argument
            if isinstance(value, torch.Tensor) and value.untyped_storage()._cdata not in {*given, *self._sizes}:
                storage = value.untyped_storage()
                self._sizes[storage._cdata] = storage.nbytes()
                self.now += storage.nbytes()
                self.most = max(self.most, self.now)
                weakref.finalize(storage, self._forget, storage._cdata)
        return found

    def _forget(self, place: int) -> None:
        self.now -= self._sizes.pop(place)


@pytest.mark.parametrize("model", list(models))
def test_nothing_is_left_of_an_estimate(model: str) -> None:
    """A search estimates one network of every shape; what each left behind would fill a card."""
    data, trial = karate(), Trial(Config.of(model, hidden=16), 0)
    estimate(Ensemble(data, [trial], keep_best=False))  # what is made once for a graph stays with it
    with Storages() as storages:
        estimate(Ensemble(data, [trial], keep_best=False))
    assert storages.most > 0
    assert storages.now == 0


@pytest.mark.parametrize("model", ["gcn", "gcnii", "graphsage", "gat"])
def test_an_epoch_takes_no_more_than_was_estimated(model: str) -> None:
    """The rest of the memory's share is for what kernels and allocators take beside it."""
    trials = [Trial(Config.of(model, hidden=64, layers=6), split) for split in range(3)]
    ensemble = Ensemble(karate(), trials, keep_best=False)
    ensemble.advance(1)
    with Storages() as storages:
        ensemble._slopes()
    need = estimate(ensemble)
    assert need.states / 4 < storages.most / 3 < need.total
