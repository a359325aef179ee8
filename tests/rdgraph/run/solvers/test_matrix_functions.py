"""Functions of small matrices: exponentials, power sums, logarithmic norms, and the bound of their expansions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
import torch

from rdgraph.run.solvers.matrix_functions import exponentials, frugal_phi1, logarithmic_norm, phi1, power_sums
from rdgraph.run.solvers.operator_filters import Filters, powers
from tests.rdgraph.run.solvers.coupled_cases import DOUBLE, start


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_exponentials_are_those_of_scipy(size: int) -> None:
    generator = np.random.default_rng(size)
    for scale, is_complex in itertools.product((1e-3, 0.4, 3.0, 40.0), (False, True)):
        matrices = scale * generator.normal(size=(6, size, size))
        if is_complex:
            matrices = matrices + 1j * scale * generator.normal(size=(6, size, size))
        exp, phi1 = exponentials(torch.from_numpy(matrices).movedim(0, -1))
        for k, matrix in enumerate(matrices):
            zero = np.zeros_like(matrix)
            both = scipy.linalg.expm(np.block([[matrix, np.eye(size)], [zero, zero]]))
            for found, wanted in ((exp, both[:size, :size]), (phi1, both[:size, size:])):
                scale_of = max(1, np.abs(wanted).max())  # of which scipy loses some digits
                assert np.abs(found[..., k].numpy() - wanted).max() <= 2e-11 * scale_of


def test_exponentials_of_singular_and_defective_matrices() -> None:
    shear = torch.tensor([[0.0, 2.0], [0.0, 0.0]], dtype=DOUBLE)
    exp, phi1 = exponentials(shear)
    assert exp.tolist() == [[1, 2], [0, 1]]
    assert phi1.tolist() == [[1, 1], [0, 1]]


def test_exponentials_mark_what_needs_more_squarings_and_leave_the_others_alone() -> None:
    matrices = torch.stack([torch.eye(2, dtype=DOUBLE), 600 * torch.eye(2, dtype=DOUBLE)], -1)
    few, many = exponentials(matrices, 4).exp, exponentials(matrices[..., :1]).exp
    assert torch.equal(few[..., 0], many[..., 0])
    assert few[..., 1].isinf().all()
    assert exponentials(torch.full((2, 2, 1), torch.nan, dtype=DOUBLE)).exp.isinf().all()


def test_exponentials_have_two_derivatives() -> None:
    matrices = start(2, 2, seed=3)[..., None].requires_grad_()
    assert torch.autograd.gradcheck(exponentials, (matrices,))
    assert torch.autograd.gradgradcheck(lambda m: exponentials(m).phi1, (matrices,))


@pytest.mark.parametrize("count", [1, 2, 5, 12])
def test_power_sums_are_powers_and_their_sums(count: int) -> None:
    factor = start(3, 3, seed=count) / 2
    power, sums = power_sums(factor, [bit == "1" for bit in f"{count:b}"])
    wanted = [torch.linalg.matrix_power(factor, k) for k in range(count + 1)]
    assert torch.allclose(power, wanted[-1], atol=1e-13)
    assert torch.allclose(sums, torch.stack(wanted[:-1]).sum(0), atol=1e-13)


@pytest.mark.parametrize("order", [1.0, 2.0, float("inf")])
def test_the_logarithmic_norm_is_its_limit_and_bounds_the_exponential(order: float) -> None:
    generator = np.random.default_rng(1)
    for matrix in generator.normal(size=(20, 3, 3)):
        mu = float(logarithmic_norm(torch.from_numpy(matrix)[..., None], order))
        h = 1e-7
        assert abs((np.linalg.norm(np.eye(3) + h * matrix, order) - 1) / h - mu) < 1e-5
        for t in (0.3, 2.0):
            assert np.linalg.norm(scipy.linalg.expm(t * matrix), order) <= np.exp(t * mu) * (1 + 1e-12)


@pytest.mark.parametrize(("kind", "order"), [("chebyshev", 2.0), ("taylor", 1.0), ("taylor", float("inf"))])
def test_the_bound_holds_on_ellipses_and_discs(kind: str, order: float) -> None:
    generator = torch.Generator().manual_seed(5)
    rows = 12
    P, S = (torch.randn(3, 2, 2, rows, dtype=DOUBLE, generator=generator) for _ in range(2))
    P[:, 1, 0] *= 50  # fields in very different units
    one = torch.ones(rows, dtype=DOUBLE)
    for source, flow in ((S[:0], True), (S, True), (S, False)):
        filters = Filters(P, source, 0.3 * one, 0.2 * one, 0.9 * one, order, flow)
        for rho in (1.2, 2.0, 4.0):
            angle = torch.linspace(0, 2 * torch.pi, 200, dtype=DOUBLE)
            z = torch.polar(torch.full_like(angle, rho), angle)
            y = (z + 1 / z) / 2 if kind == "chebyshev" else z
            values = filters(y).movedim((2, 3), (0, 1))
            largest = torch.linalg.matrix_norm(values, ord=order).amax(-1)
            bound = filters.log_bound(kind, torch.tensor([rho], dtype=DOUBLE))[:, 0]
            assert (largest.log() <= bound + 1e-9).all()
            assert powers(kind, 2, torch.tensor([rho], dtype=DOUBLE))[1] >= y.abs().max() - 1e-12


# ---------------------------------------------------------------------- phi1 of numbers
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_the_frugal_function_has_the_values_and_derivatives_of_the_plain_one(dtype: torch.dtype) -> None:
    line = torch.cat([torch.linspace(-30, 30, 61), torch.tensor([0.0, 1e-12, 0.4999, 0.5001, -0.5, 1e-5])]).double()
    z = (line if dtype is torch.float64 else torch.polar(line.abs(), 3 * line)).to(dtype).requires_grad_()
    torch.testing.assert_close(frugal_phi1(z), phi1(z), rtol=1e-14, atol=1e-15)
    weights = torch.linspace(1, 2, len(z), dtype=torch.float64).to(dtype)
    slopes = [torch.autograd.grad(f(z), z, weights)[0] for f in (frugal_phi1, phi1)]
    torch.testing.assert_close(slopes[0], slopes[1], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_the_derivatives_are_those_of_differences(dtype: torch.dtype) -> None:
    z = torch.tensor([0.0, 0.3, -0.4, 1.7, -2.5], dtype=dtype, requires_grad=True)
    assert torch.autograd.gradcheck(frugal_phi1, (z,))
    assert torch.autograd.gradgradcheck(frugal_phi1, (z,))
