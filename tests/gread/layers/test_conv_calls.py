"""`GREADConv` on graphs that come and go, what it starts from and saves, and what it refuses."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor

from gread.layers.conv import CACHED, GREADConv
from rdgraph.errors import InvalidArgument, NotApplicable, UnknownName
from tests.gread.layers.small_layers import CHANNELS, DIRECTED, NODES, PATH, make_layer, make_state


# ---------------------------------------------------------------------- graphs that come and go
def test_a_batch_of_graphs_is_as_its_graphs_one_by_one() -> None:
    layer = make_layer()
    first, second = make_state(5), 0.5 * make_state(4)
    both = layer(torch.cat([first, second]), torch.cat([DIRECTED, PATH + 5], dim=1))
    torch.testing.assert_close(both, torch.cat([layer(first, DIRECTED), layer(second, PATH)]), rtol=1e-12, atol=1e-13)


def test_edges_are_remembered_by_their_content(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = make_layer()
    edges, x = DIRECTED.clone(), make_state()
    before = layer(x, edges)
    remembered = list(layer._layouts)
    assert torch.equal(layer(x, edges.clone()), before)
    assert layer._layouts == remembered
    edges.numpy()[:, 0] = (3, 4)  # behind torch's back
    changed = layer(x, edges)
    assert not torch.allclose(changed, before)
    assert torch.equal(changed, copy.deepcopy(make_layer())(x, edges.clone()))
    assert torch.equal(layer(x, DIRECTED), before)
    assert len(layer._layouts) == 2
    longer = torch.cat([x, x[:1]])
    assert layer(longer, DIRECTED).shape == (NODES + 1, CHANNELS)
    for k in range(2 * CACHED):
        layer(x, DIRECTED[:, : k + 1])
    assert len(layer._layouts) == CACHED
    assert not any("layout" in name for name in layer.state_dict())


def test_no_edges_and_no_nodes() -> None:
    x, none = make_state(), torch.zeros(2, 0, dtype=torch.int64)
    for adjacency in ("soft", "original"):
        layer = make_layer("-alpha*L@H", adjacency=adjacency, self_loops=0.0)
        decay = torch.exp(-layer.coefficients()["alpha"])
        torch.testing.assert_close(layer(x, none), decay * x, rtol=1e-12, atol=1e-13)
        still = make_layer("-alpha*L@H", adjacency=adjacency, self_loops=1.0)
        torch.testing.assert_close(still(x, none), x, rtol=1e-12, atol=1e-13)
        assert still(x[:0], none).shape == (0, CHANNELS)


@pytest.mark.parametrize("kind", ["row", "column", "symmetric"])
def test_an_edge_of_weight_zero_is_none(kind: str) -> None:
    layer = make_layer(adjacency="original", normalisation=kind, self_loops=0.0)
    weight = torch.tensor([2.0, 2.0, 1.0, 1.0, 0.0, 0.0], dtype=torch.float64)
    found = layer(make_state(), PATH, weight)  # node 3 has no other edge
    torch.testing.assert_close(found, layer(make_state(), PATH[:, :4], weight[:4]), rtol=1e-13, atol=1e-14)


def test_reset_parameters_draws_as_the_classifier_starts() -> None:
    torch.manual_seed(1)
    layer = GREADConv(200, "-alpha*L@H + beta*H + gamma*H0")
    assert layer.coefficients()["alpha"] == 0.5
    assert layer.coefficients()["gamma"] == 0.5
    beta = layer.coefficients()["beta"].detach().clone()
    assert -1 <= float(beta.min()) < -0.9
    assert 0.9 < float(beta.max()) <= 1
    assert bool((layer.query.weight == 1e-5).all())
    mixing = GREADConv(100, "CGNN").coefficients()["W"]
    assert 0.09 < float(mixing.detach().abs().max()) <= 0.1
    layer.reset_parameters()
    assert not torch.equal(layer.coefficients()["beta"], beta)
    squashed = GREADConv(200, "BS", beta_link="sigmoid", alpha_link="free")
    assert bool((squashed.coefficients()["beta"] == 0.5).all())
    assert squashed.coefficients()["alpha"] == squashed.coefficient_alpha


def test_state_dict_carries_everything() -> None:
    layer, other = make_layer(), GREADConv(CHANNELS, heads=2, attention_dim=4).double()
    other.load_state_dict(layer.state_dict())
    assert torch.equal(layer(make_state(), DIRECTED), other(make_state(), DIRECTED))


# ---------------------------------------------------------------------- refusals
@pytest.mark.parametrize(
    ("settings", "error", "text"),
    [
        ({"beta": "node"}, NotApplicable, "beta of kind node"),
        ({"reaction": "-alpha*L@H + M*H0"}, NotApplicable, "M of kind node"),
        ({"method": "rk5"}, UnknownName, "rk5"),
        ({"method": "rk4"}, InvalidArgument, "step > 0 for rk4"),
        ({"adjacency": "live", "method": "exact"}, NotApplicable, "attention.*got exact.*euler or rk4"),
        ({"adjacency": "hard"}, UnknownName, "hard"),
        ({"heads": 3, "attention_dim": 4}, InvalidArgument, "3 heads"),
    ],
    ids=str,
)
def test_settings_that_cannot_be(settings: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        GREADConv(CHANNELS, **settings)


@pytest.mark.parametrize(
    ("x", "edges", "text"),
    [
        (make_state()[:, :2], PATH, r"\(nodes, 3\), got \(5, 2\)"),
        (make_state(3), PATH, r"nodes 0..2 of x, got 0..3"),
        (make_state(), PATH - 1, r"got -1..2"),
        (make_state(), PATH.T, r"\(2, edges\)"),
        (make_state(), PATH.double(), "whole numbers"),
        (make_state(), PATH.to_sparse(), "whole numbers"),
        (make_state(), PATH.tolist(), "list"),
    ],
    ids=["channels", "range", "negative", "turned", "floats", "sparse", "list"],
)
def test_calls_that_cannot_be(x: Tensor, edges: Any, text: str) -> None:
    with pytest.raises(InvalidArgument, match=text):
        make_layer()(x, edges)


def test_weights_that_cannot_be() -> None:
    x, weight = make_state(), torch.ones(6, dtype=torch.float64)
    with pytest.raises(InvalidArgument, match="expected no edge_weight for the soft adjacency"):
        make_layer()(x, PATH, weight)
    layer = make_layer(adjacency="original", normalisation="symmetric")
    with pytest.raises(InvalidArgument, match=r"\(6,\), one per edge, got \(5,\)"):
        layer(x, PATH, weight[:5])
    with pytest.raises(InvalidArgument, match="undirected graph"):
        layer(x, DIRECTED)
    weight[0] = 2.0
    with pytest.raises(InvalidArgument, match="weighs differently"):
        layer(x, PATH, weight)
