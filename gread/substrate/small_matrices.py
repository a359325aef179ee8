"""Small matrices at nodes and edges, (..., d, d), without asking the host: orthogonal ones, inverse square roots."""

from __future__ import annotations

import torch
from torch import Tensor

#: Steps of the iteration for inverse square roots: enough for condition numbers up to 1e6 in double precision.
STEPS = 30


def lower_vectors(numbers: Tensor, size: int) -> list[Tensor]:
    """The columns (..., size) of a unit lower triangular matrix, its entries below the diagonal column by column.

    >>> [v.tolist() for v in lower_vectors(torch.tensor([2.0, 3.0, 4.0]), 3)]
    [[1.0, 2.0, 3.0], [0.0, 1.0, 4.0], [0.0, 0.0, 1.0]]
    """
    one, none = torch.ones_like(numbers[..., :1]), torch.zeros_like(numbers[..., :1])
    columns, place = [], 0
    for k in range(size):
        below = numbers[..., place : place + size - 1 - k]
        columns.append(torch.cat([*k * [none], one, below], -1))
        place += size - 1 - k
    return columns


def householder(numbers: Tensor, size: int) -> Tensor:
    """Orthogonal matrices (..., size, size) as products of reflections I - 2 v v'/|v|^2, one for each `lower_vectors`.

    >>> Q = householder(torch.tensor([0.3, -1.0, 2.0]), 3)
    >>> torch.allclose(Q @ Q.mT, torch.eye(3), atol=1e-6)
    True
    """
    identity = torch.eye(size, dtype=numbers.dtype, device=numbers.device)
    product = identity.expand(*numbers.shape[:-1], size, size)
    for v in lower_vectors(numbers, size):
        scaled = 2 * v / v.square().sum(-1, keepdim=True)
        product = product - (product @ v[..., None]) * scaled[..., None, :]
    return product


def inverse_root(matrices: Tensor, steps: int = STEPS) -> Tensor:
    """A^(-1/2) of symmetric positive definite matrices (..., d, d) by Newton's coupled iteration.

    With A divided by its largest row sum all eigenvalues lie in (0, 1], where Y <- Y T, Z <- T Z, T = (3 I - Z Y)/2
    converge to A^(1/2) and A^(-1/2); the smallest one grows by 9/4 a step at first.

    >>> inverse_root(torch.tensor([[4.0, 0.0], [0.0, 0.25]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 2.0000]])
    """
    identity = torch.eye(matrices.shape[-1], dtype=matrices.dtype, device=matrices.device)
    size = matrices.abs().sum(-1).amax(-1)[..., None, None].detach()
    root, inverse = matrices / size, identity.expand_as(matrices)
    for _ in range(steps):
        turn = 1.5 * identity - 0.5 * (inverse @ root)
        root, inverse = root @ turn, turn @ inverse
    return inverse * torch.rsqrt(size)
