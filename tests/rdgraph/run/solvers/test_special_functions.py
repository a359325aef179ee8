"""phi1 and its twin that keeps little for the gradient: values, derivatives of first and second order."""

from __future__ import annotations

import pytest
import torch

from rdgraph.run.solvers.special_functions import frugal_phi1, phi1


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
