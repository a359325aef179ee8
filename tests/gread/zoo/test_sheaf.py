"""Sheaf diffusion against a dense Laplacian, block by block."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from gread.kernels.edge_attention import reversed_edges
from gread.models.features import Features
from gread.zoo.sheaf import householder, inverse_root
from tests.gread.zoo.test_classical import EDGES, C, N, X, make, own, same

PAIRS = sorted({(i, j) for a, b in EDGES.T.tolist() for i, j in ((a, b), (b, a))})


def reflection_product(numbers: np.ndarray, d: int) -> np.ndarray:
    lower, place = np.eye(d), 0
    for k in range(d):
        lower[k + 1 :, k] = numbers[place : place + d - 1 - k]
        place += d - 1 - k
    made = np.eye(d)
    for k in range(d):
        v = lower[:, k : k + 1]
        made = made @ (np.eye(d) - 2 * v @ v.T / (v.T @ v))
    return made


def matrix(name: str, numbers: np.ndarray, d: int) -> np.ndarray:
    if name == "sheaf-diagonal":
        return np.diag(numbers)
    return reflection_product(numbers, d) if name == "sheaf" else numbers.reshape(d, d)


def root(block: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(block)
    return vectors @ np.diag(values**-0.5) @ vectors.T


def laplacian(name: str, model: Any, k: int, h: np.ndarray, d: int, signs: list[int]) -> np.ndarray:
    """(n*s, n*s) with the blocks of the nodes, fixed dimensions after the learned ones."""
    left, right = own(model, f"maps_{k}_own"), own(model, f"maps_{k}_neighbour")
    maps = {(i, j): matrix(name, np.tanh(h[i] @ left + h[j] @ right), d) for i, j in PAIRS}
    s = d + len(signs)
    whole = np.zeros((N, s, N, s))
    for i, j in PAIRS:
        F, G = np.eye(s), np.eye(s)
        F[:d, :d], G[:d, :d] = maps[i, j], maps[j, i]
        for place, sign in enumerate(signs, d):
            G[place, place] = sign
        whole[i, :, i] += F.T @ F
        whole[i, :, j] -= F.T @ G
    scale = np.zeros_like(whole)
    for i in range(N):
        scale[i, :, i] = root(whole[i, :, i] + np.eye(s))
    flat = (scale.reshape(N * s, -1), whole.reshape(N * s, -1))
    return flat[0] @ flat[1] @ flat[0]


@pytest.mark.parametrize("extra", [{}, {"low_pass": True, "high_pass": True, "second_linear": True}], ids=str)
@pytest.mark.parametrize("name", ["sheaf", "sheaf-diagonal", "sheaf-general"])
def test_the_rule(name: str, extra: dict[str, bool]) -> None:
    d, f = 3, 2
    model = make(name, hidden=f, stalk=d, layers=2, **extra)
    signs = [1, -1] if extra else []
    s = d + len(signs)

    def elu(x: np.ndarray) -> np.ndarray:
        return np.where(x > 0, x, np.expm1(x))

    h = elu(X @ own(model, "encoder_weight") + own(model, "encoder_bias"))
    if extra:
        h = h @ own(model, "second_weight") + own(model, "second_bias")
    for k in range(2):
        mixed = np.einsum("ab,nbc->nac", own(model, f"stalks_{k}"), h.reshape(N, s, f)) @ own(model, f"channels_{k}")
        change = elu(laplacian(name, model, k, h, d, signs) @ mixed.reshape(N * s, f))
        keep = 1 + np.tanh(own(model, f"keep_{k}"))
        h = (keep[:, None] * h.reshape(N, s, f) - change.reshape(N, s, f)).reshape(N, -1)
    with torch.no_grad():
        found = model(Features.make(X, dtype=torch.float64))[1].numpy()
    assert found.shape == (N, C)
    same(found, h @ own(model, "classifier_weight") + own(model, "classifier_bias"))


def test_the_laplacian_is_symmetric_and_without_negative_eigenvalues() -> None:
    model = make("sheaf-general", hidden=1, stalk=2, layers=1)
    h = np.random.default_rng(1).normal(size=(N, 2))
    whole = laplacian("sheaf-general", model, 0, h, 2, [])
    np.testing.assert_allclose(whole, whole.T, atol=1e-12)
    assert np.linalg.eigvalsh(whole).min() > -1e-12
    basis = torch.eye(2 * N, dtype=torch.float64).reshape(2 * N, N, 2).transpose(1, 2)
    state = torch.tensor(h)[None].expand(2, -1, -1)
    columns = [model.laplacian(0, state, e[None, :, :, None].expand(2, -1, -1, -1))[1, :, :, 0] for e in basis]  # type: ignore[operator]
    found = torch.stack([column.T.reshape(-1) for column in columns], 1).detach().numpy()
    np.testing.assert_allclose(found, whole, atol=1e-9)


def last(blocks: np.ndarray) -> torch.Tensor:
    """The first axis last, one member."""
    return torch.tensor(np.moveaxis(blocks, 0, -1))[None]


def over_nodes(matrices: torch.Tensor) -> np.ndarray:
    return np.moveaxis(matrices[0].numpy(), -1, 0)


@pytest.mark.parametrize("condition", [1.0, 1e2, 1e4, 1e6])
def test_inverse_roots(condition: float) -> None:
    rng = np.random.default_rng(0)
    vectors = np.linalg.qr(rng.normal(size=(5, 4, 4)))[0]
    values = np.exp(rng.uniform(0, np.log(condition), (5, 4))) * 7
    values[:, 0], values[:, 1] = 7, 7 * condition
    blocks = np.einsum("nab,nb,ncb->nac", vectors, values, vectors)
    found = over_nodes(inverse_root(last(blocks)))
    np.testing.assert_allclose(found @ blocks @ found, np.broadcast_to(np.eye(4), (5, 4, 4)), atol=1e-8)


def test_householder_is_a_product_of_reflections() -> None:
    numbers = np.random.default_rng(0).normal(size=(4, 6))
    found = over_nodes(householder(last(numbers), 4))
    for one, row in zip(found, numbers, strict=True):
        np.testing.assert_allclose(one, reflection_product(row, 4), atol=1e-12)


def test_values_of_reversed_edges_have_first_and_second_derivatives() -> None:
    pattern = make("sheaf", hidden=1, stalk=1, layers=1).edges.pattern  # type: ignore[union-attr]
    at = dict(zip(PAIRS, range(len(PAIRS)), strict=True))
    x = torch.randn(2, len(PAIRS), dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    found = reversed_edges(pattern, x)  # type: ignore[arg-type]
    assert torch.equal(found, x[:, [at[j, i] for i, j in PAIRS]])
    assert torch.autograd.gradcheck(lambda v: reversed_edges(pattern, v).sin(), x)  # type: ignore[arg-type]
    assert torch.autograd.gradgradcheck(lambda v: reversed_edges(pattern, v).sin(), x)  # type: ignore[arg-type]
