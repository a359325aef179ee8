"""The GCN with pair norms against its rule in numpy and against torch-geometric's norm."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gread.models.norms import pair_norm
from gread.settings.config import Config
from rdgraph.errors import UnknownName
from tests.dense_case import NODES, SEEDS, averaging, geometric, make_case, symmetric

MEMBERS = pytest.mark.parametrize("member", range(len(SEEDS)))


@pytest.mark.parametrize("individually", [False, True])
@pytest.mark.parametrize("normalisation", ["row", "symmetric"])
@MEMBERS
def test_the_rule(member: int, normalisation: str, individually: bool) -> None:
    case = make_case("pairnorm", hidden=4, layers=3, scale=1.7, normalisation=normalisation, individually=individually)
    row = normalisation == "row"
    matrix = averaging(case.adjacency) if row else symmetric(case.adjacency + np.eye(NODES))
    h = case.x
    for k in range(3):
        h = matrix @ h @ case.part(f"layer_{k}_weight", member) + case.part(f"layer_{k}_bias", member)
        if k < 2:
            centred = h - h.mean(0)
            lengths = (centred**2).sum(1, keepdims=True)
            size = np.sqrt(lengths) + 1e-5 if individually else np.sqrt(lengths.mean() + 1e-5)
            h = np.maximum(1.7 * centred / size, 0)
    np.testing.assert_allclose(case.logits(member), h, rtol=1e-9, atol=1e-9)


def test_the_norm_is_that_of_torch_geometric() -> None:
    x = torch.tensor(np.random.default_rng(0).normal(size=(2, NODES, 4)))
    expected = torch.stack([geometric().PairNorm(scale=2.0, eps=1e-5)(member) for member in x])
    torch.testing.assert_close(pair_norm(x, 2.0), expected, rtol=1e-9, atol=1e-9)


def test_normalisations_are_two() -> None:
    with pytest.raises(UnknownName):
        Config.of("pairnorm", normalisation="column")
