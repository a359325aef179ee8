"""LINKX against torch-geometric's with the same weights, in prediction and in training, and its rule in numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from gread.models.features import Features
from gread.models.randomness import Randomness, make_rates
from tests.dense_case import CLASSES, COLUMNS, NODES, SEEDS, DenseCase, geometric, make_case

MEMBERS = pytest.mark.parametrize("member", range(len(SEEDS)))


@MEMBERS
def test_the_rule(member: int) -> None:
    """One layer of edges and of features, two of both; running means where training left them."""
    case = make_case("linkx", hidden=4, layers=2)

    def linear(name: str, h: np.ndarray) -> np.ndarray:
        return h @ case.part(f"{name}_weight", member) + case.part(f"{name}_bias", member)

    edges, nodes = linear("edges_0", case.adjacency), linear("nodes_0", case.x)
    h = np.maximum(linear("join_edges", edges) + linear("join_nodes", nodes) + edges + nodes, 0)
    h = np.maximum(linear("both_0", h), 0)
    mean, variance, weight, bias = (
        case.part(f"both_0_norm_{part}", member) for part in ("mean", "variance", "weight", "bias")
    )
    h = (h - mean) / np.sqrt(variance + 1e-5) * weight + bias
    np.testing.assert_allclose(case.logits(member), linear("both_1", h), rtol=1e-9, atol=1e-9)


def copied(case: DenseCase, member: int, **sizes: int) -> Any:
    """torch-geometric's LINKX with the numbers of one member."""
    other = geometric().LINKX(NODES, COLUMNS, 4, CLASSES, **sizes).double()
    parts = {name: value[member].detach() for name, value in case.model.parts.items()}

    def fill(layer: Any, name: str) -> None:
        layer.weight.copy_(parts[f"{name}_weight"].T)
        layer.bias.copy_(parts[f"{name}_bias"])

    def fill_norm(norm: Any, name: str) -> None:
        inner = getattr(norm, "module", norm)
        for part, target in (("weight", inner.weight), ("bias", inner.bias), ("mean", inner.running_mean),
                             ("variance", inner.running_var)):  # fmt: skip
            target.copy_(parts[f"{name}_norm_{part}"])

    def fill_perceptron(mlp: Any, name: str, first: int = 0) -> None:
        for k, layer in enumerate(mlp.lins):
            fill(layer, f"{name}_{k + first}")
        for k, norm in enumerate(mlp.norms):
            fill_norm(norm, f"{name}_{k + first}")

    with torch.no_grad():
        other.edge_lin.weight.copy_(parts["edges_0_weight"])
        other.edge_lin.bias.copy_(parts["edges_0_bias"])
        if other.edge_mlp is not None:
            fill_norm(other.edge_norm, "edges_0")
            fill_perceptron(other.edge_mlp, "edges", 1)
        fill_perceptron(other.node_mlp, "nodes")
        fill(other.cat_lin1, "join_edges")
        fill(other.cat_lin2, "join_nodes")
        fill_perceptron(other.final_mlp, "both")
    return other


SIZES = pytest.mark.parametrize(("layers", "edge_layers", "node_layers"), [(1, 1, 1), (3, 2, 1), (2, 1, 3), (2, 3, 2)])


@SIZES
@MEMBERS
def test_it_is_that_of_torch_geometric(member: int, layers: int, edge_layers: int, node_layers: int) -> None:
    case = make_case("linkx", hidden=4, layers=layers, edge_layers=edge_layers, node_layers=node_layers)
    sizes = {"num_layers": layers, "num_edge_layers": edge_layers, "num_node_layers": node_layers}
    other = copied(case, member, **sizes).eval()
    with torch.no_grad():
        expected = other(torch.tensor(case.x), case.edges)
    np.testing.assert_allclose(case.logits(member), expected.numpy(), rtol=1e-9, atol=1e-9)


@SIZES
def test_so_it_is_in_training(layers: int, edge_layers: int, node_layers: int) -> None:
    """Norms of the nodes at hand, running means afterwards, and gradients; nothing dropped."""
    shape = {"layers": layers, "edge_layers": edge_layers, "node_layers": node_layers}
    case = make_case("linkx", hidden=4, dropout=0.0, **shape)
    other = copied(case, 1, **{f"num_{name}": size for name, size in shape.items()}).train()
    rates = make_rates([case.model.settings] * len(SEEDS))
    random = Randomness(case.model.seeds, torch.tensor(1))
    logits = case.model.run(Features.make(case.x, dtype=torch.float64), rates, random).logits[1]
    expected = other(torch.tensor(case.x), case.edges)
    torch.testing.assert_close(logits, expected, rtol=1e-9, atol=1e-9)
    for out in (logits, expected):
        out.square().sum().backward()
    torch.testing.assert_close(
        case.model.get_parameter("edges_0_weight").grad[1], other.edge_lin.weight.grad, rtol=1e-9, atol=1e-9
    )
    torch.testing.assert_close(
        case.model.get_parameter("nodes_0_weight").grad[1].T, other.node_mlp.lins[0].weight.grad, rtol=1e-9, atol=1e-9
    )
    if edge_layers > 1:
        running = case.model.parts["edges_0_norm_variance"][1]
        torch.testing.assert_close(running, other.edge_norm.running_var, rtol=1e-9, atol=1e-9)
