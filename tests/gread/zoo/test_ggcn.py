"""GGCN against its rule in numpy, with matrices of all pairs of nodes as the authors have them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from gread.models.features import Features
from gread.models.place import Place
from gread.settings.config import Config
from gread.settings.model_records import find_model
from rdgraph import Graph
from rdgraph.errors import InvalidArgument
from tests.dense_case import NODES, SEEDS, make_case, symmetric

MEMBERS = pytest.mark.parametrize("member", range(len(SEEDS)))


def softplus(x: np.ndarray) -> np.ndarray:
    return np.log1p(np.exp(x))


def elu(x: np.ndarray) -> np.ndarray:
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


@MEMBERS
def test_the_rule(member: int) -> None:
    case = make_case("ggcn", hidden=4, layers=4, decay=0.7)
    looped = symmetric(case.adjacency + np.eye(NODES))

    def convolve(k: int, h: np.ndarray) -> np.ndarray:
        u = h @ case.part(f"layer_{k}_weight", member) + case.part(f"layer_{k}_bias", member)
        lengths = np.linalg.norm(u, axis=1)
        cosine = u @ u.T / np.outer(lengths, lengths)
        np.fill_diagonal(cosine, 0)
        slope, shift = case.part(f"degree_{k}", member)
        degrees = np.diag(looped)[:, None] / np.where(looped > 0, looped, 1) - 1
        signed = cosine * looped * softplus(slope * degrees + shift)
        shares = np.exp(case.part(f"mixture_{k}", member))
        shares /= shares.sum()
        positive, negative = np.maximum(signed, 0), -np.maximum(-signed, 0)
        assert (positive > 0).any()
        assert (negative < 0).any()
        mixed = shares[0] * positive @ u + shares[1] * negative @ u + shares[2] * u
        return softplus(case.part(f"scale_{k}", member)) * mixed

    total = elu(case.x @ case.part("skip_weight", member) + case.part("skip_bias", member))
    z = elu(convolve(0, case.x))
    total = total + z
    for k in (1, 2):
        total = total + math.log(0.7 / (k + 2) ** 3 + 1) * elu(convolve(k, total))
    np.testing.assert_allclose(case.logits(member), convolve(3, total), rtol=1e-9, atol=1e-9)


def test_where_the_coefficients_start() -> None:
    case = make_case("ggcn", spread=False)
    np.testing.assert_array_equal(case.part("degree_1", 1), [0.5, 0])
    np.testing.assert_array_equal(case.part("mixture_1", 1), [0, 0, 0])
    np.testing.assert_array_equal(case.part("scale_1", 1), [2])


def test_loops_of_the_graph_stay_on_the_diagonal() -> None:
    """A loop of the graph adds to that of A_ii, and is no edge: the ratios see it, the sums over neighbours do not."""
    place = Place.of(Graph.from_edges([[0, 1, 0, 1, 2], [1, 0, 0, 2, 1]], 3), dtype=torch.float64)
    model = find_model("ggcn").network(Config.of("ggcn").model, place, features=2, classes=2, seeds=[0])
    matrix = symmetric(np.array([[2.0, 1, 0], [1, 1, 1], [0, 1, 1]]))
    np.testing.assert_allclose(model.adjacency.dense(), matrix - np.diag(np.diag(matrix)), rtol=1e-12)
    ratios = model.adjacency.with_weights(model.ratios).dense().numpy()
    expected = np.where(
        matrix - np.diag(np.diag(matrix)) > 0, np.diag(matrix)[:, None] / np.maximum(matrix, 1e-9) - 1, 0
    )
    np.testing.assert_allclose(ratios, expected, rtol=1e-12, atol=1e-12)


def test_a_node_whose_state_is_zero_has_no_direction() -> None:
    """Its cosines are 0, and slopes are numbers."""
    case = make_case("ggcn", spread=False, hidden=4)
    model = case.model
    with torch.no_grad():
        model.parts["layer_0_bias"].zero_()
    x = case.x.copy()
    x[0] = 0
    logits = model(Features.make(x, dtype=torch.float64))
    assert torch.isfinite(logits).all()
    logits.sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())


def test_one_layer_is_too_few() -> None:
    with pytest.raises(InvalidArgument, match="layers >= 2"):
        Config.of("ggcn", layers=1)
