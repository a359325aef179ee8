"""Label propagation against a dense iteration and its fixed point, and what the other references say."""

from __future__ import annotations

import numpy as np
import pytest

from gread.datasets.embedded import karate
from gread.datasets.node_data import NodeData
from gread.datasets.splits import Masks
from gread.datasets.synthetic import csbm
from gread.models.label_propagation import (
    ALPHAS,
    accuracies,
    best_propagation,
    label_propagation,
    majority_class,
)
from rdgraph import Graph
from rdgraph.errors import InvalidArgument


def dense(data: NodeData) -> np.ndarray:
    W = np.zeros((data.num_nodes, data.num_nodes))
    W[data.graph.edge_index[1], data.graph.edge_index[0]] = data.graph.weight
    W = np.maximum(W, W.T)
    d = W.sum(1)
    return W / np.sqrt(np.outer(d, d))


def test_steps_are_those_of_the_dense_iteration() -> None:
    data, alpha = csbm(3, n=40), 0.7
    train = data.masks.train[1]
    Y0 = np.eye(data.num_classes)[data.y] * train[:, None]
    Y = Y0
    for _ in range(6):
        Y = np.where(train[:, None], Y0, alpha * dense(data) @ Y + (1 - alpha) * Y0)
    np.testing.assert_allclose(label_propagation(data, 1, alpha, steps=6), Y, atol=1e-12)


def test_many_steps_reach_the_solution_of_the_linear_system() -> None:
    """Of the other nodes Y = alpha (A_uu Y + A_ul Y0)."""
    data, alpha = csbm(5, n=30), 0.9
    train = data.masks.train[0]
    A, Y0 = dense(data), np.eye(data.num_classes)[data.y]
    inner = np.eye(int((~train).sum())) - alpha * A[np.ix_(~train, ~train)]
    expected = np.linalg.solve(inner, alpha * A[np.ix_(~train, train)] @ Y0[train])
    found = label_propagation(data, 0, alpha, steps=500)
    np.testing.assert_allclose(found[~train], expected, atol=1e-10)
    np.testing.assert_array_equal(found[train], Y0[train])


def isolated() -> NodeData:
    """Two nodes joined, a node alone; classes 1, 1, 0, of which the first trains with the last."""
    graph = Graph.from_edges([[0, 1], [1, 0]], 5)
    y = np.array([1, 1, 0, 1, 0])
    masks = Masks(*(np.array([[k in part for k in range(5)]]) for part in ((0, 2, 3), (), (1, 4))))
    return NodeData(graph, np.zeros((5, 1)), y, masks)


def test_nodes_that_no_label_reaches_take_the_usual_class() -> None:
    data = isolated()
    scores = label_propagation(data, 0, 0.5)
    np.testing.assert_allclose(scores[4], [1 / 3, 2 / 3])
    assert scores[1].argmax() == 1
    assert best_propagation(data, 0).alpha == ALPHAS[len(ALPHAS) // 2]
    found = accuracies(data, 0, scores)
    assert (found.train, found.test) == (1.0, 0.5)
    assert np.isnan(found.val)


def test_the_validation_nodes_choose_alpha() -> None:
    data = csbm(1, n=60, within=0.2, between=0.1)
    found = best_propagation(data, 2)
    each = [accuracies(data, 2, label_propagation(data, 2, alpha)).val for alpha in ALPHAS]
    assert found.alpha == ALPHAS[int(np.argmax(each))]


def test_majority() -> None:
    data = isolated()
    assert majority_class(data, 0).argmax(1).tolist() == 5 * [1]
    assert accuracies(data, 0, majority_class(data, 0)).train == pytest.approx(2 / 3)


def test_wrong_arguments() -> None:
    for wrong in ({"alpha": 1.5}, {"alpha": 0.5, "steps": -1}, {"alpha": 0.5, "split": 99}):
        with pytest.raises(InvalidArgument, match="expected"):
            label_propagation(karate(), **{"split": 0, **wrong})  # type: ignore[arg-type]
