"""Kernels of training: rows and rectangles, softmax within rows, Adam and copies; those of Triton against torch."""

from __future__ import annotations

import os

os.environ.setdefault("TRITON_INTERPRET", "1")

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck

import rdgraph as rd
from gread.kernels import training_operations as ops
from gread.kernels.edge_attention import soft_weights
from gread.models.features import Features
from rdgraph.graphs.kernels.rectangular_matrix import Rectangle
from rdgraph.graphs.kernels.row_order import LONG, MUCH, SHORT, SMALL, Rows
from tests.gread.kernels.random_tensors import random

triton = pytest.importorskip("triton", reason="Triton is not installed")

launches = pytest.importorskip("gread.kernels.triton_training")

interpreted = pytest.mark.skipif(os.environ["TRITON_INTERPRET"] != "1", reason="Triton was loaded without interpreter")


# ---------------------------------------------------------------------- rows and rectangles
def rows_with(degrees: list[int]) -> Rows:
    indptr = torch.tensor([0, *np.cumsum(degrees)], dtype=torch.int32)
    return Rows(indptr, torch.zeros(sum(degrees), dtype=torch.int32))


def test_long_rows_are_cut_short_on_small_graphs_with_a_hub():
    hub = MUCH * SHORT + 1
    arranged = rows_with([1, hub, 2]).arrange()
    assert arranged.long_rows.tolist() == [1]
    starts, ends, owners = arranged.pieces
    assert (ends - starts).max() == SHORT
    assert int((ends - starts).sum()) == hub
    assert set(owners.tolist()) == {1}
    assert not rows_with([1, hub - 1, 2]).arrange().has_long
    assert rows_with([LONG + 1] * (SMALL // LONG)).arrange().pieces[1].diff().max() <= LONG + 1
    assert rows_with([1, hub, 2]).arrange(long=1000).long_rows.tolist() == []
    assert not rows_with([]).arrange().has_long


@given(st.data())
def test_every_edge_lies_in_one_place_of_the_arrangement(data):
    degrees = data.draw(st.lists(st.integers(0, 12), min_size=1, max_size=8))
    degrees[0] += data.draw(st.sampled_from([0, MUCH * SHORT, MUCH * SHORT + 700]))
    rows = rows_with(degrees).arrange()
    starts, ends, _ = rows.main
    spans = list(zip(starts.tolist(), ends.tolist(), strict=True))
    if rows.has_long:
        spans += list(zip(rows.pieces[0].tolist(), rows.pieces[1].tolist(), strict=True))
    covered = sorted(edge for start, end in spans for edge in range(start, end))
    assert covered == list(range(sum(degrees)))


@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (3, 8)], ids=str)
@pytest.mark.parametrize("shared", [True, False])
def test_products_with_rectangles_and_their_gradients(shape, shared):
    matrix = scipy.sparse.random_array(shape, density=0.5, rng=np.random.default_rng(2), format="csr")
    matrix.sort_indices()
    rectangle = Rectangle.make(matrix)
    values = random(1 if shared else 2, matrix.nnz).requires_grad_(True)
    x = random(2, shape[1], 3, seed=1).requires_grad_(True)
    dense = torch.zeros(len(values), *shape, dtype=torch.float64)
    row = np.repeat(np.arange(shape[0]), np.diff(matrix.indptr))
    dense[:, row, matrix.indices] = values.detach()
    torch.testing.assert_close(rectangle.product(values, x).detach(), dense @ x.detach())
    assert gradcheck(rectangle.product, [values, x])


def test_sparse_and_dense_features_give_the_same_products():
    matrix = scipy.sparse.random_array((7, 5), density=0.4, rng=np.random.default_rng(3), format="csr")
    weight = random(3, 5, 4)
    sparse, dense = (Features.make(x, dtype=torch.float64) for x in (matrix, matrix.toarray()))
    torch.testing.assert_close(sparse @ weight, dense @ weight)
    torch.testing.assert_close(dense @ weight, torch.tensor(matrix.toarray()) @ weight)
    each = Features.make(np.stack([matrix.toarray(), 2 * matrix.toarray(), matrix.toarray()]), dtype=torch.float64)
    torch.testing.assert_close((each @ weight)[1], 2 * (dense @ weight)[1])
    with pytest.raises(ValueError, match="expected features"):
        Features.make(np.zeros(3))


# ---------------------------------------------------------------------- softmax within rows
class Attention:
    """A graph with an isolated node, a hub and a self-loop here and there."""

    def __init__(self, loops: float = 0.0) -> None:
        edges = [(0, k) for k in range(1, 9)] + [(k, 0) for k in range(1, 9)] + [(2, 3), (3, 3)]
        graph = rd.Graph.from_edges(np.array(edges).T, num_nodes=10)
        self.operator = graph.operator("row", self_loops=loops, dtype=torch.float64)
        pattern = self.operator.pattern
        self.indptr, self.rows, self.columns = pattern.indptr, pattern.rows, pattern.indices.long()

    def dense(self, logits: Tensor) -> Tensor:
        """Row softmax by a masked matrix, taken back to the edges."""
        full = torch.full((len(logits), 10, 10), -torch.inf, dtype=logits.dtype)
        full[:, self.rows.long(), self.columns] = logits
        return torch.softmax(full, -1)[:, self.rows.long(), self.columns]


def test_row_softmax_is_the_dense_one():
    a = Attention()
    logits = 3 * random(3, len(a.rows))
    found = ops.row_softmax(a.indptr, a.rows, logits)
    torch.testing.assert_close(found, a.dense(logits), rtol=1e-12, atol=1e-12)
    big = 1e4 * random(3, len(a.rows), seed=1)
    torch.testing.assert_close(ops.row_softmax(a.indptr, a.rows, big), a.dense(big), rtol=1e-12, atol=1e-12)
    assert gradcheck(lambda x: ops.row_softmax(a.indptr, a.rows, x), [logits.requires_grad_(True)])


@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")  # masked lanes, in the interpreter's numpy
@interpreted
@pytest.mark.parametrize("degrees", [[1], [0, 3, 0, 17, 1, 0], [70, 0, 2, 150], [5] * 37], ids=str)
@pytest.mark.parametrize("rising", [False, True])
def test_row_softmax_of_triton(degrees, rising):
    """Rows without edges, rows longer than a block, more rows than a block; forward and backward."""
    indptr = torch.tensor([0, *np.cumsum(degrees)], dtype=torch.int32)
    rows = torch.tensor(np.repeat(np.arange(len(degrees)), degrees), dtype=torch.int32)
    logits = 30 * random(2, len(rows), dtype=torch.float32)
    if rising:  # the highest comes in the last block of a row
        logits = logits.sort(-1).values
    plain = ops._row_softmax(indptr, rows, logits, None)
    torch.testing.assert_close(launches.row_softmax(indptr, logits), plain, rtol=1e-5, atol=1e-7)
    g = random(2, len(rows), seed=1, dtype=torch.float32)
    pulled = ops._row_softmax(indptr, rows, plain, g)
    torch.testing.assert_close(launches.row_softmax(indptr, plain, g), pulled, rtol=1e-4, atol=1e-6)


@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")  # masked lanes, in the interpreter's numpy
@interpreted
def test_row_softmax_of_triton_is_safe_for_large_logits():
    logits = torch.tensor([[1e4, -1e4, 9999.0, -1e4, -1e4]])
    found = launches.row_softmax(torch.tensor([0, 3, 3, 5], dtype=torch.int32), logits)
    e = float(np.exp(-1.0))
    torch.testing.assert_close(found, torch.tensor([[1 / (1 + e), 0.0, e / (1 + e), 0.5, 0.5]]))


@pytest.mark.parametrize("loops", [0.0, 1.0])
@pytest.mark.parametrize("heads", [1, 2, 4])
def test_soft_weights_are_a_dense_attention(heads, loops):
    a = Attention(loops)
    query, key = random(2, 10, 8), random(2, 10, 8, seed=1)
    found = soft_weights(a.operator, query, key, heads)
    width = 8 // heads
    parts = []
    for h in range(heads):
        part = slice(h * width, (h + 1) * width)
        scores = query[..., part] @ key[..., part].transpose(1, 2) / width**0.5
        parts.append(a.dense(scores[:, a.rows.long(), a.columns]))
    torch.testing.assert_close(found, torch.stack(parts).mean(0), rtol=1e-12, atol=1e-12)
    sums = a.operator.with_weights(found).dense().sum(-1)
    full = torch.tensor([1.0 if count else 0.0 for count in a.indptr.diff().tolist()]).double()
    torch.testing.assert_close(sums, full.expand(2, -1), rtol=1e-12, atol=1e-12)
    assert bool(full.all()) == bool(loops)


def test_soft_weights_of_large_states_stay_weights():
    a = Attention(1.0)
    found = soft_weights(a.operator, 1e4 * random(1, 10, 4), 1e4 * random(1, 10, 4, seed=1), 2)
    assert bool(torch.isfinite(found).all())
    torch.testing.assert_close(a.operator.with_weights(found).dense().sum(-1), torch.ones(1, 10).double())


def test_numerical_derivatives_of_soft_weights():
    a = Attention(1.0)
    inputs = [random(2, 10, 4).requires_grad_(True), random(2, 10, 4, seed=1).requires_grad_(True)]
    assert gradcheck(lambda q, k: soft_weights(a.operator, q, k, 2), inputs)


# ---------------------------------------------------------------------- Adam and copies
RATES, DECAYS = (0.01, 0.1, 0.003), (0.0, 0.05, 0.5)


def corrections(step: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.tensor([1 / (1 - 0.9**step), (1 - 0.999**step) ** -0.5], dtype=dtype)


def test_members_step_as_torch_would_alone():
    """Twenty steps on quadratic losses, each member with its own rate and decay."""
    target, start = random(3, 4, 5), random(3, 4, 5, seed=1)
    p, m, v = start.clone(), torch.zeros_like(start), torch.zeros_like(start)
    rates, decays = torch.tensor(RATES).double(), torch.tensor(DECAYS).double()
    alone = [start[k].clone().requires_grad_(True) for k in range(3)]
    helpers = [
        torch.optim.Adam([one], lr=float(rate), weight_decay=float(decay))
        for one, rate, decay in zip(alone, rates, decays, strict=True)
    ]
    for step in range(1, 21):
        ops.adam_step(p, 2 * (p - target), m, v, rates, decays, torch.ones(3).bool(), corrections(step))
        for one, helper, goal in zip(alone, helpers, target, strict=True):
            helper.zero_grad()
            (one - goal).square().sum().backward()
            helper.step()
    torch.testing.assert_close(p, torch.stack([one.detach() for one in alone]), rtol=1e-11, atol=1e-12)


def test_members_that_stand_still_do_not_move_by_a_bit():
    p, g, m, v = (random(3, 4, seed=k) for k in range(4))
    g[1] = torch.nan
    before = [t.clone() for t in (p, m, v)]
    moves = torch.tensor([True, False, True])
    ops.adam_step(p, g, m, v.abs_(), torch.tensor(RATES).double(), torch.tensor(DECAYS).double(), moves, corrections(3))
    before[2].abs_()
    for after, earlier in zip((p, m, v), before, strict=True):
        assert torch.equal(after[1], earlier[1])
        assert not torch.equal(after[0], earlier[0])
        assert bool(torch.isfinite(after).all())


@interpreted
@pytest.mark.parametrize("shape", [(3,), (3, 7), (3, 33, 40)], ids=str)
def test_adam_of_triton(shape):
    tensors = [random(*shape, seed=k, dtype=torch.float32) for k in range(4)]
    tensors[3].abs_()
    others = [t.clone() for t in tensors]
    rest = (torch.tensor(RATES), torch.tensor(DECAYS), torch.tensor([True, False, True]), corrections(7, torch.float32))
    still = [t[1].clone() for t in tensors]
    launches.adam(*tensors, *rest, (0.9, 0.999), 1e-8)
    ops.adam_step(*others, *rest)
    for found, expected, before in zip(tensors, others, still, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
        assert torch.equal(found[1], before)


# ---------------------------------------------------------------------- layer norm
def norm_inputs(shape: tuple[int, int, int], dtype: torch.dtype = torch.float32) -> list[Tensor]:
    members, _, width = shape
    return [
        random(*shape, dtype=dtype),
        random(members, width, seed=1, dtype=dtype),
        random(members, width, seed=2, dtype=dtype),
    ]


def test_layer_norm_is_that_of_torch_for_every_member():
    x, weight, bias = norm_inputs((2, 5, 3), torch.float64)
    for member, found in enumerate(ops.layer_norm(x, weight, bias, 1e-5)):
        expected = torch.nn.functional.layer_norm(x[member], (3,), weight[member], bias[member], 1e-5)
        torch.testing.assert_close(found, expected)


@interpreted
@pytest.mark.parametrize("shape", [(2, 70, 5), (1, 3, 16), (3, 1, 1), (2, 2200, 3)], ids=str)
def test_layer_norm_of_triton(shape):
    x, weight, bias = norm_inputs(shape)
    g = random(*shape, seed=3, dtype=torch.float32)
    tracked = [t.clone().requires_grad_() for t in (x, weight, bias)]
    expected = ops.layer_norm(*tracked, 1e-5)
    torch.testing.assert_close(launches.layer_norm(x, weight, bias, 1e-5), expected.detach(), rtol=1e-5, atol=1e-5)
    found = launches.layer_norm_gradient(g, x, weight, 1e-5)
    for ours, theirs in zip(found, torch.autograd.grad(expected, tracked, g), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


@interpreted
@pytest.mark.parametrize("shape", [(3,), (3, 2000)], ids=str)
def test_copies_of_chosen_members(shape):
    source, target, chosen = random(*shape), random(*shape, seed=1), torch.tensor([True, False, True])
    expected = torch.stack([(source if c else target)[k] for k, c in enumerate(chosen.tolist())])
    other = target.clone()
    launches.select(source, target, chosen)
    ops.select([source], [other], chosen)
    assert torch.equal(target, expected)
    assert torch.equal(other, expected)
