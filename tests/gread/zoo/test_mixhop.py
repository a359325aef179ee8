"""MixHop against its rule in numpy and against torch-geometric's layer."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from gread.models.features import Features
from gread.models.randomness import Dropper, Randomness, make_rates
from tests.dense_case import CLASSES, COLUMNS, NODES, SEEDS, geometric, make_case, symmetric

MEMBERS = pytest.mark.parametrize("member", range(len(SEEDS)))


@pytest.mark.parametrize("hops", [1, 2, 3])
@MEMBERS
def test_the_rule(member: int, hops: int) -> None:
    case = make_case("mixhop", hidden=4, layers=3, hops=hops)
    looped = symmetric(case.adjacency + np.eye(NODES))
    h = case.x / np.linalg.norm(case.x, axis=1, keepdims=True)
    for k in range(3):
        weights = np.split(case.part(f"layer_{k}_weight", member), hops + 1, axis=1)
        h = np.concatenate([np.linalg.matrix_power(looped, p) @ h @ w for p, w in enumerate(weights)], 1)
        if k < 2:
            h = (h - h.mean(0)) / np.sqrt(h.var(0) + 1e-3) + case.part(f"layer_{k}_shift", member)
            h = np.maximum(h, 0)
    shares = np.exp(case.part("shares", member))
    shares /= shares.sum()
    expected = sum(share * part for share, part in zip(shares, np.split(h, hops + 1, axis=1), strict=True))
    np.testing.assert_allclose(case.logits(member), expected, rtol=1e-9, atol=1e-9)


@MEMBERS
def test_a_layer_is_that_of_torch_geometric(member: int) -> None:
    case = make_case("mixhop", hidden=4)
    layer = geometric().MixHopConv(COLUMNS, 4, powers=[0, 1, 2], bias=False).double()
    weight = case.model.parts["layer_0_weight"].detach()
    x = torch.tensor(case.x)
    with torch.no_grad():
        for lin, part in zip(layer.lins, weight[member].chunk(3, -1), strict=True):
            lin.weight.copy_(part.T)
        expected = layer(x, case.edges)
        found = case.model.mixed(x @ weight)[member]
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


def test_features_have_length_one_after_dropout() -> None:
    """Sparse or dense, whatever was dropped: a network of one layer and one hop sees rows of length 1, or of zeros."""
    case = make_case("mixhop", layers=1, input_dropout=0.5)
    rates, random = make_rates([case.model.settings] * 2), Randomness(case.model.seeds, torch.tensor(3))
    with torch.no_grad():
        weight = case.model.parts["layer_0_weight"]
        weight.zero_()
        for member in range(2):
            weight[member, : min(COLUMNS, CLASSES), : min(COLUMNS, CLASSES)] = torch.eye(min(COLUMNS, CLASSES))
        narrow = np.where(np.arange(COLUMNS) < CLASSES, np.abs(case.x), 0)
        for x in (narrow, csr_array(narrow)):
            near = case.model.states(Features.make(x, dtype=torch.float64), Dropper(rates, random))[-1][..., :CLASSES]
            lengths = near.norm(dim=-1)
            assert ((lengths - 1).abs().lt(1e-9) | (lengths == 0)).all()
            assert (near == 0).any()


def test_what_is_not_decayed() -> None:
    assert make_case("mixhop").model.undecayed == {"layer_0_shift", "shares"}
