"""Singular values of dH(T)/dH(0), against dense matrix exponentials and finite differences."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.linalg import expm

import rdgraph as rd
from analysis.spectra import jacobians, sensitivity
from rdgraph.errors import Diverged, InvalidArgument

GRAPH = rd.generators.erdos_renyi(12, 0.4, seed=3)


@pytest.mark.parametrize("normalisation", ["symmetric", "row"])
def test_linear_flows_have_the_singular_values_of_their_exponential(normalisation: str) -> None:
    op = GRAPH.operator(normalisation, dtype=torch.float64)
    A = np.asarray(op.dense())
    L = np.eye(12) - A
    found = sensitivity("BS", op, {"alpha": 0.7, "beta": 0.4}, T=2.0)
    expected = np.linalg.svd(expm(2.0 * (-0.7 * L + 0.4 * (A - A @ A))), compute_uv=False)
    assert found.is_exact
    np.testing.assert_allclose(found.values, expected, rtol=1e-9, atol=1e-12)
    assert found.norm == pytest.approx(expected[0])
    share = expected / expected.sum()
    assert found.effective_rank == pytest.approx(np.exp(-(share * np.log(share)).sum()))
    assert found.count(0.1) == (expected > 0.1 * expected[0]).sum()


def test_a_source_passes_on_the_start() -> None:
    """H' = -L H + H0: dH(T)/dH(0) = exp(-T L) + (1 - exp(-T L))/L, which keeps every direction."""
    op = GRAPH.operator("symmetric", dtype=torch.float64)
    lam = np.linalg.eigvalsh(np.eye(12) - np.asarray(op.dense()))
    found = sensitivity("-alpha*L@H + beta*H0", op, {"alpha": 1.0, "beta": 1.0}, T=30.0)
    gains = np.exp(-30 * lam) + np.where(lam > 1e-9, -np.expm1(-30 * lam) / np.maximum(lam, 1e-12), 30.0)
    np.testing.assert_allclose(found.values, np.sort(gains)[::-1], rtol=1e-7)
    gone = sensitivity("diffusion", op, {"alpha": 1.0}, T=30.0)
    assert gone.effective_rank < 1.01 < 2 < found.effective_rank


def test_a_jacobian_is_that_of_differences() -> None:
    op = GRAPH.operator("row", dtype=torch.float64)
    field = rd.lower("AC", op, {"alpha": 0.5, "beta": 1.2})
    start = torch.randn(12, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

    def end(H: torch.Tensor) -> np.ndarray:
        return np.asarray(rd.solve(field, H, [0.0, 1.0], "rk4", step=0.1).final.flatten())

    columns = []
    for k in range(24):
        moved = torch.zeros(24, dtype=torch.float64)
        moved[k] = 1e-6
        columns.append((end(start + moved.view(12, 2)) - end(start - moved.view(12, 2))) / 2e-6)
    expected = np.linalg.svd(np.stack(columns, 1), compute_uv=False)
    found = sensitivity("AC", op, {"alpha": 0.5, "beta": 1.2}, T=1.0, H0=start, method="rk4", step=0.1)
    assert not found.is_exact
    np.testing.assert_allclose(found.values, expected, rtol=1e-6)


def test_both_ways_agree_on_a_linear_system(monkeypatch: pytest.MonkeyPatch) -> None:
    op = GRAPH.operator("row", dtype=torch.float64)
    start = torch.ones(12, 1, dtype=torch.float64)
    exact = sensitivity("BS", op, {"alpha": 0.7, "beta": 0.4}, T=1.0, H0=start)
    monkeypatch.setattr(jacobians, "ROWS", 5)
    monkeypatch.setattr(jacobians, "_has_response", lambda system: False)
    other = sensitivity("BS", op, {"alpha": 0.7, "beta": 0.4}, T=1.0, H0=start)
    assert (exact.is_exact, other.is_exact) == (True, False)
    np.testing.assert_allclose(other.values, exact.values, rtol=1e-6, atol=1e-9)


def test_what_has_no_jacobian_is_refused() -> None:
    op = GRAPH.operator("row", dtype=torch.float64)
    with pytest.raises(InvalidArgument, match="start H0"):
        sensitivity("AC", op, {"alpha": 1.0, "beta": 1.0}, T=1.0, method="rk4", step=0.1)
    with pytest.raises(InvalidArgument, match="2048"):
        sensitivity("AC", op, {"alpha": 1.0, "beta": 1.0}, T=1.0, H0=torch.zeros(12, 200), method="rk4", step=0.1)
    far = torch.full((12, 1), 9.0, dtype=torch.float64)
    with pytest.raises(Diverged):
        sensitivity("-alpha*L@H + beta*H**3", op, {"alpha": 1.0, "beta": 1.0}, T=9.0, H0=far, method="rk4", step=0.1)
