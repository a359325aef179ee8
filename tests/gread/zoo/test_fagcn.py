"""FA-GCN against its rule in numpy and against torch-geometric's layer."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gread.models.randomness import Dropper
from tests.dense_case import SEEDS, geometric, make_case, symmetric

MEMBERS = pytest.mark.parametrize("member", range(len(SEEDS)))


@MEMBERS
def test_the_rule(member: int) -> None:
    case = make_case("fagcn", hidden=4, layers=3, epsilon=0.2)
    normalised = symmetric(case.adjacency)
    start = np.maximum(case.x @ case.part("encoder_weight", member) + case.part("encoder_bias", member), 0)
    h = start
    for k in range(3):
        gate, bias = case.part(f"gate_{k}_weight", member)[:, 0], case.part(f"gate_{k}_bias", member)[0]
        after = 0.2 * start
        for i, j in np.argwhere(case.adjacency):
            after[i] += np.tanh(gate @ np.concatenate([h[i], h[j]]) + bias) * normalised[i, j] * h[j]
        h = after
    expected = h @ case.part("decoder_weight", member) + case.part("decoder_bias", member)
    np.testing.assert_allclose(case.logits(member), expected, rtol=1e-9, atol=1e-9)


@MEMBERS
def test_a_round_is_that_of_torch_geometric(member: int) -> None:
    """Which has no bias in the gate; without self-loops, as the authors' code."""
    case = make_case("fagcn", hidden=4)
    with torch.no_grad():
        case.model.parts["gate_1_bias"].zero_()
    layer = geometric().FAConv(4, eps=0.3, add_self_loops=False).double()
    gate = case.model.parts["gate_1_weight"][member].detach()
    h = torch.tensor(np.random.default_rng(0).normal(size=(len(SEEDS), case.x.shape[0], 4)))
    with torch.no_grad():
        layer.att_r.weight.copy_(gate[:4].T)  # of the receiving node
        layer.att_l.weight.copy_(gate[4:].T)
        expected = layer(h[member], h[member], case.edges)
        found = 0.3 * h + case.model.mixed(1, h, Dropper())
    torch.testing.assert_close(found[member], expected, rtol=1e-9, atol=1e-9)


def test_loops_of_the_graph_are_left_out() -> None:
    pattern = make_case("fagcn").model.adjacency.pattern
    assert bool((pattern.rows != pattern.indices).all())
