"""States of networks by name, layer by layer: which settings a deep one has, and what it holds before every layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from gread.models.batched_model import BatchedModel
from gread.models.features import Features
from gread.models.randomness import Dropper
from gread.settings.config import Config
from gread.settings.gread_settings import GreadSettings
from gread.zoo.h2gcn import H2GCN

#: An entry beyond this is no number in the single precision that networks are trained in.
LIMIT = float(torch.finfo(torch.float32).max)


def fitting_config(name: str, values: Mapping[str, Any]) -> Config:
    """The defaults of a network with those of the values that it has settings for.

    Heads are those of networks whose states lie side by side, one block a head; equations keep theirs.

    >>> fitting_config("gcn", {"layers": 8, "heads": 1}).model.layers
    8
    """
    start = Config.of(name)
    known = {f.name for part in (start.model, start.training) for f in fields(part)}
    if isinstance(start.model, GreadSettings):
        known -= {"heads"}
    return start.updated({key: value for key, value in values.items() if key in known})


@torch.no_grad()
def layer_states(model: BatchedModel, x: Features, depth: int) -> Tensor:
    """States (K + 1, M, n, d) of M networks: before the first layer, and after each.

    A network of K layers that gives K states has none before the first one: the features stand there. States that
    differ in width are filled up with zeros, which no measure sees. H2GCN, whose rounds have no parameters, is looked
    at for `depth` rounds, however many it has.
    """
    states = narrow_rounds(model, x, depth) if isinstance(model, H2GCN) else model.states(x, Dropper())
    if len(states) == getattr(model.settings, "layers", 0):
        states = [dense_features(x).expand(model.members, -1, -1), *states]
    width = max(h.shape[-1] for h in states)
    return torch.stack([functional.pad(h, (0, width - h.shape[-1])) for h in states])


def dense_features(x: Features) -> Tensor:
    """X (1 or M, n, f) with its zeros written out."""
    some = x.values
    return some if x.pattern is None else x @ torch.eye(x.shape[1], dtype=some.dtype, device=some.device)[None]


def narrow_rounds(model: H2GCN, x: Features, rounds: int) -> list[Tensor]:
    """States with the inner products of R_0, ..., R_rounds between nodes, in at most n columns each.

    Energies, angles and ranks of a state depend on R_k R_k' alone, which `narrowed` keeps, so that the width need not
    double in every round.
    """
    states = [narrowed(model.states(x, Dropper())[0])]
    for _ in range(rounds):
        states.append(narrowed(model.around(states[-1])))
    return states


def narrowed(state: Tensor) -> Tensor:
    """States (..., n, d) with the same inner products between nodes, H H', in no more columns than nodes.

    >>> H = torch.arange(6.0).reshape(2, 3)
    >>> torch.allclose(narrowed(H) @ narrowed(H).T, H @ H.T), narrowed(H).shape
    (True, torch.Size([2, 2]))
    """
    if state.shape[-1] <= state.shape[-2]:
        return state
    return torch.linalg.qr(state.mT, mode="r").R.mT.contiguous()


def first_loss(states: Tensor, step: float = 1.0) -> np.ndarray:
    """The time before the first state that has entries beyond `LIMIT`, of every member (M,); nan without one.

    >>> first_loss(torch.tensor([1.0, 2.0, torch.inf]).reshape(3, 1, 1, 1))
    array([1.])
    """
    wild = ~(states.abs().amax((-2, -1)) <= LIMIT).cpu().numpy()
    return np.where(wild.any(0), (wild.argmax(0) - 1.0) * step, np.nan)
