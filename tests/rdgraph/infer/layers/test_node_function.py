"""The function of one entry that a layer computes, and layers that compute none."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rdgraph.errors import InvalidArgument
from rdgraph.infer.layers.layer_call import node_function

X = np.linspace(-2, 2, 21)


class Reaction(torch.nn.Module):
    """H (1 - H) - (H - A H), on the edges of a graph."""

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        source, target = edge_index
        return x * (1 - x) - torch.zeros_like(x).index_add(0, target, x[target] - x[source])


def test_a_column_of_entries_is_answered_one_by_one() -> None:
    torch.manual_seed(0)
    mlp = torch.nn.Sequential(torch.nn.Linear(1, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1))
    first, second = (p.detach().double().numpy() for p in (mlp[0].weight, mlp[2].weight))
    biases = [p.detach().double().numpy() for p in (mlp[0].bias, mlp[2].bias)]
    expected = np.tanh(X[:, None] @ first.T + biases[0]) @ second.T + biases[1]
    np.testing.assert_allclose(node_function(mlp, X), expected[:, 0], rtol=1e-12)
    assert next(mlp.parameters()).dtype is torch.float32


def test_a_layer_on_graphs_is_asked_without_neighbours() -> None:
    np.testing.assert_allclose(node_function(Reaction(), X), X * (1 - X), rtol=1e-12)


def test_what_is_no_function_of_one_entry_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="depends on the other entries"):
        node_function(lambda x: x - x.mean(), X)
    with pytest.raises(InvalidArgument, match="takes entries as a column"):
        node_function(torch.nn.Linear(3, 3), X)
    with pytest.raises(InvalidArgument, match="a finite value for each"):
        node_function(torch.nn.Linear(1, 2), X)
    with pytest.raises(InvalidArgument, match="can be called"):
        node_function(3.0, X)
