"""Operators: products of any batch shape, derivatives, transposes, norms, errors."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck, gradgradcheck

import rdgraph as rd
from rdgraph.graphs.kernels import operations as ops
from rdgraph.graphs.operator import Operator
from rdgraph.testing import adjacency

NORMALISATIONS = ["symmetric", "row", "column", "none"]
ARROW = [[0, 1, 2, 2], [1, 2, 0, 1]]


def random(*shape: int, seed: int = 0, grad: bool = False) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_(grad)


def arrow(weights: torch.Tensor | None = None) -> Operator:
    """A directed graph with rows of length 1, 2, 1 and weights of both signs."""
    weights = random(4) if weights is None else weights
    return rd.Graph.from_edges(ARROW).operator("none", dtype=torch.float64).with_weights(weights)


@given(adjacency(max_nodes=7, weighted=True), st.sampled_from(NORMALISATIONS), st.sampled_from([0.0, 0.5, 1.0]))
def test_the_operator_is_the_dense_one(matrix, normalisation, loops):
    from rdgraph.graphs.normalisation import dense_operator

    op = rd.Graph.from_dense(matrix).operator(normalisation, self_loops=loops, dtype=torch.float64)
    expected = torch.tensor(dense_operator(matrix, normalisation, self_loops=loops))
    torch.testing.assert_close(op.dense(), expected)
    x = random(len(matrix), 3)
    torch.testing.assert_close(op @ x, expected @ x)
    identity = torch.diag(expected.sum(1)) if normalisation == "none" else torch.eye(len(matrix), dtype=torch.float64)
    torch.testing.assert_close(op.laplacian(x), (identity - expected) @ x)
    torch.testing.assert_close(op.transpose() @ x, expected.T @ x)


@given(adjacency(max_nodes=7, weighted=True), st.sampled_from(NORMALISATIONS))
def test_the_norm_bounds_the_operator(matrix, normalisation):
    op = rd.Graph.from_dense(matrix).operator(normalisation, dtype=torch.float64)
    name, bound = op.norm
    order = {"2": 2, "inf": float("inf"), "1": 1}[name]
    assert torch.linalg.matrix_norm(op.dense(), order) <= bound * (1 + 1e-12)


@pytest.mark.parametrize("weight_batch", [(), (2,), (2, 3)])
@pytest.mark.parametrize("state_batch", [(), (3,), (2, 3)])
def test_weights_and_states_may_each_carry_the_batch(weight_batch, state_batch):
    try:
        batch = torch.broadcast_shapes(weight_batch, state_batch)
    except RuntimeError:
        pytest.skip("shapes that do not broadcast")
    op, x = arrow(random(*weight_batch, 4)), random(*state_batch, 3, 2, seed=1)
    found = op @ x
    assert found.shape == (*batch, 3, 2)
    torch.testing.assert_close(found, op.dense() @ x)


@pytest.mark.parametrize("batch", [(), (2,)])
def test_derivatives_of_both_orders(batch):
    op = arrow()
    inputs = (
        random(*batch, 4, seed=1, grad=True), random(2, 3, 2, seed=2, grad=True), random(2, seed=3, grad=True),
        random(2, 1, 1, seed=4, grad=True), random(2, 3, 2, seed=5, grad=True), random(3, 1, seed=6, grad=True),
    )  # fmt: skip

    def combined(weights, x, scale, factor, y, node):
        return op.with_weights(weights).product(x, scale, [(factor, y), (node, x)])

    assert gradcheck(combined, inputs)
    assert gradgradcheck(combined, inputs)


def test_a_symmetric_operator_is_its_own_transpose_in_the_gradient():
    op = rd.Graph.from_edges([[0, 1, 1, 2], [1, 0, 2, 1]]).operator("symmetric", dtype=torch.float64)
    assert len(op._tensors(tracked=True)) == 4
    assert gradcheck(lambda x: op @ x, (random(3, 2, grad=True),))
    free = op.with_weights(op.weights.clone().requires_grad_(True), "symmetric")
    assert gradcheck(lambda w, x: Operator(op.pattern, w, "symmetric") @ x, (free.weights, random(3, 2, grad=True)))


@pytest.mark.slow
def test_torch_accepts_the_operations():
    op = arrow(random(4).requires_grad_(True))
    pattern, x = op.pattern.tensors, random(1, 3, 2, grad=True)
    weights, factor = random(1, 4, grad=True), random(1, 1, 2, grad=True)
    torch.library.opcheck(ops.spmm.overload, (pattern, weights, x, factor, factor, [factor], [x]))
    torch.library.opcheck(ops.spmm.overload, (pattern, weights, x, None, None, [], []))
    plain = [t.detach() for t in (weights, x, factor)]
    torch.library.opcheck(ops.pull.overload, (pattern, *plain, None))
    torch.library.opcheck(ops.sddmm.overload, (pattern, x, x, True))
    torch.library.opcheck(ops.inner.overload, (x, x))


def test_an_operator_without_edges_has_norm_zero():
    assert rd.Graph.from_edges([[], []], num_nodes=3).operator("none").norm == ("inf", 0.0)


def test_soft_weights_keep_the_sparsity():
    op = arrow()
    weights = random(5, 4).exp()
    weights = weights / op.with_weights(weights).product(torch.ones(3, 1).double())[:, op.pattern.rows.long(), 0]
    soft = op.with_weights(weights, "row")
    assert soft.batch == (5,)
    assert op.with_stochastic_weights(weights).norm == soft.norm
    assert soft.norm == ("inf", 1.0)
    assert soft.pattern is op.pattern


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: arrow(torch.ones(3)), "one weight per edge"),
        (lambda: arrow(torch.ones(4, dtype=torch.int64)), "floating-point"),
        (lambda: arrow().with_weights(torch.ones(4), "rows"), "expected a normalisation, got .rows."),
        (lambda: arrow() @ torch.ones(4, 2, dtype=torch.float64), r"expected a state \(..., 3, channels\)"),
        (lambda: Operator.from_csr([0, 2], [0, 1], torch.ones(2)), "column numbers in 0..0"),
        (lambda: Operator.from_csr([0, 2, 1], [0, 1], torch.ones(2)), "rise from 0 to 2"),
        (lambda: Operator.from_csr([0], [], torch.ones(0)), "n >= 1"),
    ],
)
def test_bad_operators_are_refused(make, words):
    with pytest.raises((rd.errors.InvalidArgument, rd.errors.UnknownName), match=words):
        make()
