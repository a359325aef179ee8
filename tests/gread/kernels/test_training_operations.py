"""Kernels of training: Triton's in their interpreter against plain torch, and plain torch against the definitions."""

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
from gread.kernels import counters
from gread.kernels import operations as ops
from gread.models.features import Features
from gread.models.soft_adjacency import soft_weights
from rdgraph.integrators import flow_coefficients as responses
from rdgraph.integrators.flow_coefficients import Schedule, _basis, _by_autograd, transform_table
from rdgraph.integrators.member_schedules import Schedules
from rdgraph.integrators.polynomial_products import _moments, _sampled
from rdgraph.kernels.rectangular_matrix import Rectangle
from rdgraph.kernels.row_order import LONG, MUCH, SHORT, SMALL, Rows

triton = pytest.importorskip("triton", reason="Triton is not installed")
stacks = pytest.importorskip("rdgraph.kernels.triton_polynomial")
launches = pytest.importorskip("gread.kernels.triton_training")

interpreted = pytest.mark.skipif(os.environ["TRITON_INTERPRET"] != "1", reason="Triton was loaded without interpreter")


def random(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def seeds_of(*values: int) -> Tensor:
    return torch.tensor(values, dtype=torch.int64)


def number(value: int) -> Tensor:
    return torch.tensor(value, dtype=torch.int64)


# ---------------------------------------------------------------------- stacks of states
@interpreted
@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (4, 2, 5, 3), (3, 2, 33, 7), (2, 3, 70, 66)], ids=str)
@pytest.mark.parametrize("spread", ["scalar", "members", "channels", "both"])
def test_moments(shape, spread):
    count, members, _, d = shape
    stack, x = random(*shape), random(*shape[1:], seed=1)
    b, c = {"scalar": (1, 1), "members": (members, 1), "channels": (1, d), "both": (members, d)}[spread]
    series = random(count, b, 1, c, seed=2)
    total, slopes = stacks.moments(stack, x, series)
    torch.testing.assert_close(total, (series * stack).sum(0), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(slopes, (stack * x).sum(2, keepdim=True), rtol=1e-12, atol=1e-12)
    for found, expected in zip((total, slopes), _moments(stack, x, series), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


@interpreted
def test_moments_accumulate_in_single_precision_at_least():
    stack, x, series = (
        random(3, 1, 40, 5, dtype=torch.float32),
        random(1, 40, 5, dtype=torch.float32),
        random(3, 1, 1, 1),
    )
    total, slopes = stacks.moments(stack, x, series)
    assert (total.dtype, slopes.dtype) == (torch.float32, torch.float32)
    torch.testing.assert_close(total.double(), (series * stack.double()).sum(0), rtol=1e-5, atol=1e-5)


@interpreted
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 2, 5), (2, 1, 17), (2, 2, 70)], ids=str)
@pytest.mark.parametrize("doubled", [False, True])
def test_sampled_stacks(shape, doubled):
    """Rows without edges, a row of all columns, and more edges than one program takes."""
    count, members, d = shape
    matrix = (np.random.default_rng(1).random((9, 9)) < 0.3).astype(float)
    matrix[0], matrix[4] = 1, 0
    op = rd.Operator.from_csr(*(lambda m: (m.indptr, m.indices, torch.tensor(m.data)))(scipy.sparse.csr_array(matrix)))
    left, right = random(count, members, 9, d), random(count, members, 9, d, seed=1)
    pattern = op.pattern
    found = stacks.sample_stacks(pattern.rows, pattern.indices, left, right, doubled)
    factors = torch.tensor([1.0] + [2.0 if doubled else 1.0] * (count - 1)).double()
    full = torch.einsum("k,kbid,kbjd->bij", factors, left, right)
    expected = full[:, pattern.rows.long(), pattern.indices.long()]
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(_sampled(pattern.tensors, None, left, right, doubled, False, 0), expected)
    shared = _sampled(pattern.tensors, None, left, right, doubled, True, 0)
    torch.testing.assert_close(shared, expected.sum(0, keepdim=True))


@interpreted
def test_sampled_stacks_without_edges():
    empty = torch.empty(0, dtype=torch.int32)
    assert stacks.sample_stacks(empty, empty, random(2, 3, 4, 5), random(2, 3, 4, 5), True).shape == (3, 0)


@interpreted
@pytest.mark.parametrize("kind", ["taylor", "chebyshev"])
@pytest.mark.parametrize(
    "manners",
    [
        [("exact", 1.3, None)],
        [("euler", 0.7, 1.0)],
        [("rk4", 1.3, 0.4)],
        [("heun", 5.0, 0.1)],
        [("rk4", 1.3, 0.4), ("exact", 2.0, None)],
        [("euler", 3.0, 0.25), ("rk4", 0.3, 1.0)],
    ],
)
@pytest.mark.parametrize("terms", [2, 3])
def test_gains_and_their_gradients(kind, manners, terms):
    """Values at the sample points and the pull-back to the generators are those of autograd in plain torch."""
    rows, degree, count = 6, 11, 16
    generator = (0.5 * random(terms, rows)).requires_grad_(True)
    times = torch.tensor([time - 0.05 * k for k, (_, time, _) in enumerate(manners * 2)][:2], dtype=torch.float64)
    schedule, cpu = Schedules.of([Schedule.make(*manner) for manner in manners]), torch.device("cpu")
    expected, _, gain = _by_autograd(generator, None, times.repeat_interleave(3), schedule, kind, count, degree)
    basis, transform = _basis(kind, count, terms, cpu), transform_table(kind, count, degree, cpu)
    values, slopes = stacks.gains(generator.detach(), times, basis, schedule.plan(cpu), schedule.has_exact)
    torch.testing.assert_close((values.flatten(1) @ transform).T, expected.detach(), rtol=1e-11, atol=1e-12)
    torch.testing.assert_close(values.square().sum(1).amax(-1).sqrt(), gain, rtol=1e-11, atol=1e-12)
    weight = random(degree + 1, rows, seed=1)
    (wanted,) = torch.autograd.grad((expected * weight).sum(), generator)
    torch.testing.assert_close(stacks.pull_gains(weight.T @ transform.T, slopes, basis), wanted, rtol=1e-10, atol=1e-11)


@interpreted
def test_the_function_of_the_gpu_route_gives_the_gradients_of_the_plain_one():
    schedule = Schedule.make("rk4", 1.5, 0.5)
    found = []
    for route in ("kernels", "plain"):
        generator = (0.5 * random(3, 4)).requires_grad_(True)
        times = torch.tensor([1.4, 1.5], dtype=torch.float64)
        if route == "kernels":
            series, gain = responses._Coefficients.apply(generator, times, schedule, "taylor", 32, 20)
        else:
            series, _, gain = _by_autograd(generator, None, times.repeat_interleave(2), schedule, "taylor", 32, 20)
        (slope,) = torch.autograd.grad(series.square().sum(), generator)
        found.append((series.detach(), gain.detach(), slope))
    for one, two in zip(*found, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-10, atol=1e-12)


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


def test_dropped_features_keep_their_entries_scaled():
    matrix = scipy.sparse.csr_array(np.arange(1.0, 2001.0).reshape(50, 40))
    x = Features.make(matrix, dtype=torch.float64)
    dropped = x.dropped(seeds_of(1, 2), number(0), torch.tensor([0.25, 0.5]), 9).values
    for member, rate in enumerate((0.25, 0.5)):
        kept = dropped[member] != 0
        torch.testing.assert_close(dropped[member][kept], (x.values[0] / (1 - rate))[kept])
        assert abs(float(kept.double().mean()) - (1 - rate)) < 0.04
    assert not torch.equal(dropped[0] != 0, dropped[1] != 0)


# ---------------------------------------------------------------------- numbers by counting
def reference(seed: int, stream: int, step: int, place: int) -> int:
    """The bits, written with Python's integers."""

    def mix(x: int) -> int:
        x = ((x ^ (x >> 16)) * 0x21F0AAAD) % 2**32
        x = ((x ^ (x >> 15)) * 0xD35A2D97) % 2**32
        return x ^ (x >> 15)

    folded = mix((seed % 2**32) ^ mix((seed >> 32) % 2**32))
    key = mix((mix((folded + stream * 0x85EBCA6B) % 2**32) + step * 0x9E3779B9) % 2**32)
    return mix(mix((place + key) % 2**32) ^ key)


@given(st.integers(0, 2**63 - 1), st.integers(0, 2**18), st.integers(0, 2**20))
def test_bits_are_a_function_of_seed_stream_step_and_place(seed, stream, step):
    found = counters.bits(counters.keys(seeds_of(seed), stream, number(step)), 5)
    assert found.tolist() == [[reference(seed, stream, step, place) for place in range(5)]]
    u = counters.uniform(seeds_of(seed), stream, 5, number(step))
    assert u.tolist() == [[(bits >> 8) / 2**24 for bits in found[0].tolist()]]


def test_mixing_is_a_bijection_on_a_sample():
    x = torch.arange(200_000)
    assert len(counters.mix(x).unique()) == len(x)


@given(st.lists(st.integers(0, 2**62), min_size=2, max_size=6), st.integers(0, 1000))
def test_a_member_draws_its_numbers_whoever_is_beside_it(seeds, step):
    together = counters.uniform(torch.tensor(seeds), counters.DROPOUT, 33, number(step))
    for m, seed in enumerate(seeds):
        assert torch.equal(together[m : m + 1], counters.uniform(seeds_of(seed), counters.DROPOUT, 33, number(step)))


def test_numbers_are_uniform_and_streams_steps_and_members_are_uncorrelated():
    count = 40_000
    lag = counters.uniform(seeds_of(7), 1, count + 1)[0]
    series = [
        lag[:-1],
        lag[1:],
        *counters.uniform(seeds_of(8, 7 + (1 << 32)), 1, count),
        counters.uniform(seeds_of(7), 2, count)[0],
        *(counters.uniform(seeds_of(7), 1, count, number(step))[0] for step in (1, 2)),
    ]
    for u in series:
        assert abs(float(u.double().mean()) - 0.5) < 5 / (12 * count) ** 0.5
        assert abs(float(u.double().var()) - 1 / 12) < 5 * (1 / 180 / count) ** 0.5
        assert 0 <= float(u.min()) < 1e-3
        assert 1 - 1e-3 < float(u.max()) < 1
        shares = torch.histc(u, 16, 0, 1) / count
        assert float((shares * 16 - 1).abs().max()) < 6 * (16 / count) ** 0.5
    correlations = torch.corrcoef(torch.stack(series).double()) - torch.eye(len(series))
    assert float(correlations.abs().max()) < 5 / count**0.5


@interpreted
@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (2, 33, 50)], ids=str)
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("is_shared", [False, True])
def test_dropout_has_the_same_bits_in_torch_and_triton(shape, relu, is_shared):
    seeds = torch.tensor([3, (5 << 32) | 9, 2**62 + 1])[: shape[0]]
    rates = torch.tensor([0.0, 0.3, 0.9])[: shape[0]]
    x = random(1 if is_shared else shape[0], *shape[1:], dtype=torch.float32)
    sign = x.expand(shape).contiguous() if relu else None
    for step in (0, 199):
        plain = ops._dropout(x, sign, seeds, number(step), rates, counters.DROPOUT + 3)
        found = launches.dropout(x, sign, seeds, number(step), rates, counters.DROPOUT + 3)
        assert torch.equal(found, plain)


def test_dropout_drops_the_asked_share_and_keeps_the_mean():
    rates = torch.tensor([0.0, 0.1, 0.5, 0.9])
    x = torch.ones(1, 40_000)
    out = ops.dropout(x, seeds_of(0, 1, 2, 3), number(4), rates, 11)
    for member, rate in enumerate(rates.tolist()):
        assert abs(float((out[member] == 0).double().mean()) - rate) < 0.01
        kept = out[member][out[member] != 0]
        torch.testing.assert_close(kept, torch.full_like(kept, 1 / (1 - rate)))
    again = ops.dropout(x, seeds_of(0, 1, 2, 3), number(5), rates, 11)
    assert torch.equal(out[0], again[0])
    assert not torch.equal(out[2], again[2])


def test_relu_before_dropout_keeps_what_is_not_a_number():
    x = torch.tensor([[-1.0, torch.nan, 2.0, 0.0]])
    out = ops.dropout(x, seeds_of(1), number(0), torch.tensor([0.0]), 5, relu=True)
    torch.testing.assert_close(out, torch.tensor([[0.0, torch.nan, 2.0, 0.0]]), equal_nan=True)
    if os.environ["TRITON_INTERPRET"] == "1":
        found = launches.dropout(x, x, seeds_of(1), number(0), torch.tensor([0.0]), 5)
        torch.testing.assert_close(found, out, equal_nan=True)


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("is_shared", [False, True])
def test_gradient_of_dropout(relu, is_shared):
    x = random(1 if is_shared else 2, 4, 3).requires_grad_(True)
    rates = torch.tensor([0.5, 0.2])
    assert gradcheck(lambda x: ops.dropout(x, seeds_of(5, 6), number(2), rates, 1, relu=relu), [x])


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
