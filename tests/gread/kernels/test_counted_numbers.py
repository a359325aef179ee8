"""Numbers by counting: bits, uniform numbers and dropout, the same in torch and in Triton, whoever is beside them."""

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

from gread.kernels import counters
from gread.kernels import training_operations as ops
from gread.models.features import Features
from tests.gread.kernels.random_tensors import random

triton = pytest.importorskip("triton", reason="Triton is not installed")

launches = pytest.importorskip("gread.kernels.triton_training")

interpreted = pytest.mark.skipif(os.environ["TRITON_INTERPRET"] != "1", reason="Triton was loaded without interpreter")


def seeds_of(*values: int) -> Tensor:
    return torch.tensor(values, dtype=torch.int64)


def number(value: int) -> Tensor:
    return torch.tensor(value, dtype=torch.int64)


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


def test_dropped_features_keep_their_entries_scaled():
    matrix = scipy.sparse.csr_array(np.arange(1.0, 2001.0).reshape(50, 40))
    x = Features.make(matrix, dtype=torch.float64)
    dropped = x.dropped(seeds_of(1, 2), number(0), torch.tensor([0.25, 0.5]), 9).values
    for member, rate in enumerate((0.25, 0.5)):
        kept = dropped[member] != 0
        torch.testing.assert_close(dropped[member][kept], (x.values[0] / (1 - rate))[kept])
        assert abs(float(kept.double().mean()) - (1 - rate)) < 0.04
    assert not torch.equal(dropped[0] != 0, dropped[1] != 0)
