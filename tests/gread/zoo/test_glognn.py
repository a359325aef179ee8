"""GloGNN against the least-squares problem that it solves, with the matrix of all pairs of nodes written out."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gread.models.features import Features
from gread.models.randomness import Dropper
from gread.settings.config import Config
from gread.zoo.channel_networks import definite_inverse
from rdgraph.errors import InvalidArgument
from tests.dense_case import CLASSES, NODES, SEEDS, DenseCase, averaging, make_case

MEMBERS = pytest.mark.parametrize("member", range(len(SEEDS)))
PRICES = {"alpha": 0.7, "beta": 2.0, "gamma": 0.3, "delta": 0.6}


def first_state(case: DenseCase, member: int, delta: float) -> np.ndarray:
    """H_0 by its formula."""
    inner = np.zeros((NODES, 4))
    if delta > 0:
        inner += delta * (case.x @ case.part("features_weight", member) + case.part("features_bias", member))
    if delta < 1:
        known = averaging(case.adjacency) @ case.part("neighbours_weight", member)
        inner += (1 - delta) * (known + case.part("neighbours_bias", member))
    return np.maximum(inner, 0) @ case.part("second_weight", member) + case.part("second_bias", member)


def pulled_to(case: DenseCase, member: int) -> np.ndarray:
    """sum_k l_k A^k, dense."""
    weights = case.part("order_weights", member)
    matrix = averaging(case.adjacency)
    return sum(weight * np.linalg.matrix_power(matrix, k + 1) for k, weight in enumerate(weights))


@pytest.mark.parametrize("delta", [0.0, 0.6, 1.0])
@MEMBERS
def test_the_rule(member: int, delta: float) -> None:
    """Z ((1-g)^2 H H' + (a + b) 1) = (1-g)(H - g H_0) H' + b sum_k l_k A^k, the normal equations of all pairs."""
    case = make_case("glognn", hidden=4, layers=2, orders=3, **{**PRICES, "delta": delta})
    start = first_state(case, member, delta)
    share, price, h = 1 - 0.3, 0.7 + 2.0, start
    for _ in range(2):
        right = share * (h - 0.3 * start) @ h.T + 2.0 * pulled_to(case, member)
        z = right @ np.linalg.inv(share**2 * h @ h.T + price * np.eye(NODES))
        h = share * z @ h + 0.3 * start
    np.testing.assert_allclose(case.logits(member), h, rtol=1e-9, atol=1e-9)


def test_the_coefficients_are_the_best() -> None:
    """The state is that of coefficients at which the slope of what is minimised vanishes, found by autograd."""
    case = make_case("glognn", hidden=4, layers=1, orders=2, **PRICES)
    h = torch.tensor(first_state(case, 0, 0.6))
    near = torch.tensor(pulled_to(case, 0))
    z = torch.zeros(NODES, NODES, dtype=torch.float64, requires_grad=True)
    # The problem is quadratic: its Hessian acts on rows alike, so that one step of Newton's method ends in the minimum.
    loss = (h - 0.7 * z @ h - 0.3 * h).square().sum() + 0.7 * z.square().sum() + 2.0 * (z - near).square().sum()
    (slope,) = torch.autograd.grad(loss, z)
    hessian = 2 * (0.49 * h @ h.T + 2.7 * torch.eye(NODES, dtype=torch.float64))
    best = -slope @ torch.linalg.inv(hessian)
    after = (h - 0.7 * best @ h - 0.3 * h).square().sum() + 0.7 * best.square().sum() + 2 * (best - near).square().sum()
    for direction in torch.randn(5, NODES, NODES, dtype=torch.float64, generator=torch.Generator().manual_seed(0)):
        moved = best + 1e-3 * direction
        worse = (h - 0.7 * moved @ h - 0.3 * h).square().sum() + 0.7 * moved.square().sum()
        assert worse + 2.0 * (moved - near).square().sum() > after
    np.testing.assert_allclose(case.logits(0), 0.7 * best @ h + 0.3 * h, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_single_precision_holds_where_states_are_large(size: float) -> None:
    """The authors' difference of two terms loses its digits in single precision; this form keeps them."""
    case = make_case("glognn", hidden=4, layers=1, orders=2, **{**PRICES, "gamma": 0.0})
    h = size * torch.tensor(np.random.default_rng(2).normal(size=(len(SEEDS), NODES, CLASSES)))
    with torch.no_grad():
        expected = case.model.rewritten(h, h)
        narrow = make_case("glognn", hidden=4, layers=1, orders=2, **{**PRICES, "gamma": 0.0}).model.float()
        narrow.adjacency = narrow.adjacency.to(dtype=torch.float32)
        found = narrow.rewritten(h.float(), h.float())
    assert (found - expected).abs().max() < 1e-5 * expected.abs().max()


def test_the_difference_of_the_authors_loses_digits() -> None:
    """(H - H K^-1 H'H/p)/p is H (p 1 + H'H)^-1, and not so in single precision where H'H is large beside p."""
    price, one = 2.7, torch.eye(CLASSES)
    h = 1e3 * torch.tensor(np.random.default_rng(2).normal(size=(NODES, CLASSES)))
    expected = h @ definite_inverse(price * one + h.mT @ h)
    narrow = h.float()
    gram = narrow.mT @ narrow
    difference = (narrow - narrow @ torch.linalg.inv(one + gram / price) @ gram / price) / price
    assert (difference - expected).abs().max() > 0.1 * expected.abs().max()
    kept = narrow @ definite_inverse(price * one.double() + narrow.double().mT @ narrow.double()).float()
    assert (kept - expected).abs().max() < 1e-5 * expected.abs().max()


def test_the_inverse_and_its_slope() -> None:
    generator = torch.Generator().manual_seed(3)
    half = torch.randn(4, 5, 5, dtype=torch.float64, generator=generator)
    matrix = half @ half.mT + 0.1 * torch.eye(5, dtype=torch.float64)
    torch.testing.assert_close(definite_inverse(matrix), torch.linalg.inv(matrix), rtol=1e-9, atol=1e-9)

    def symmetric_inverse(a: torch.Tensor) -> torch.Tensor:
        return definite_inverse(a + a.mT)

    assert torch.autograd.gradcheck(symmetric_inverse, (matrix.requires_grad_(),))


def test_a_diverged_member_leaves_the_others_alone() -> None:
    case = make_case("glognn", hidden=4)
    h = torch.randn(2, NODES, CLASSES, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected = case.model.rewritten(h, h)[1]
        h[0, 0, 0] = torch.nan
        found = case.model.rewritten(h, h)
    assert not torch.isfinite(found[0]).all()
    torch.testing.assert_close(found[1], expected, rtol=1e-12, atol=1e-12)


def test_the_features_are_not_dropped_by_default() -> None:
    assert Config.of("glognn").model.input_dropout == 0


def test_coefficients_need_a_price() -> None:
    with pytest.raises(InvalidArgument, match="alpha \\+ beta > 0"):
        Config.of("glognn", alpha=0.0, beta=0.0)


def test_states_are_those_of_the_rewritings() -> None:
    case = make_case("glognn", hidden=4, layers=3)
    states = case.model.states(Features.make(case.x, dtype=torch.float64), Dropper())
    assert [tuple(s.shape) for s in states] == 4 * [(2, NODES, CLASSES)]
