"""Stacks of states: kernels of Triton in their interpreter against plain torch, plain torch against definitions."""

from __future__ import annotations

import os

os.environ.setdefault("TRITON_INTERPRET", "1")

import numpy as np
import pytest
import scipy.sparse
import torch

import rdgraph as rd
from rdgraph.run.solvers import flow_coefficients as responses
from rdgraph.run.solvers.flow_coefficients import _basis, _by_autograd, transform_table
from rdgraph.run.solvers.polynomial_products import _moments, _sampled
from rdgraph.run.solvers.schedules import Schedule, Schedules
from tests.gread.kernels.random_tensors import random

triton = pytest.importorskip("triton", reason="Triton is not installed")
stacks = pytest.importorskip("rdgraph.graphs.kernels.triton_polynomial")

interpreted = pytest.mark.skipif(os.environ["TRITON_INTERPRET"] != "1", reason="Triton was loaded without interpreter")


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
    op = rd.graphs.Operator.from_csr(
        *(lambda m: (m.indptr, m.indices, torch.tensor(m.data)))(scipy.sparse.csr_array(matrix))
    )
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
    numbers, elapsed = generator[:, None, None], times.repeat_interleave(3)
    series, _, gain = _by_autograd(numbers, numbers[:0], elapsed, schedule, kind, count, degree)
    expected = series[:, 0, 0]
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
            numbers, elapsed = generator[:, None, None], times.repeat_interleave(2)
            series, _, gain = _by_autograd(numbers, numbers[:0], elapsed, schedule, "taylor", 32, 20)
            series = series[:, 0, 0]
        (slope,) = torch.autograd.grad(series.square().sum(), generator)
        found.append((series.detach(), gain.detach(), slope))
    for one, two in zip(*found, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-10, atol=1e-12)
