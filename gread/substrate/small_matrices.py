"""Small matrices by the thousand, (M, d, d, K): one for each of K nodes or edges, which come last.

A product is a few long multiplications of entries, which is faster than batched products of such sizes. Nothing here
asks the host, and every function has a derivative.
"""

from __future__ import annotations

import torch
from torch import Tensor

#: Steps of the iteration for inverse square roots: enough for condition numbers up to 1e6 in double precision.
STEPS = 30


def matrix_products(left: Tensor, right: Tensor) -> Tensor:
    """P Q (M, a, c, ...) of the matrices P (M, a, b, ...) and Q (M, b, c, ...), one for each index that follows.

    >>> shears = torch.tensor([[1.0, 2.0], [0.0, 1.0]])[None, :, :, None]
    >>> matrix_products(shears, shears)[0, :, :, 0]
    tensor([[1., 4.],
            [0., 1.]])
    """
    total = left[:, :, 0, None] * right[:, None, 0]
    for k in range(1, left.shape[2]):
        total = torch.addcmul(total, left[:, :, k, None], right[:, None, k])
    return total


def identities(like: Tensor) -> Tensor:
    """The identity (1, d, d, 1) for matrices (M, d, d, K)."""
    return torch.eye(like.shape[1], dtype=like.dtype, device=like.device)[None, :, :, None]


def lower_vectors(numbers: Tensor, size: int) -> list[Tensor]:
    """The columns (M, size, K) of unit lower triangular matrices, their numbers (M, k, K) column by column.

    >>> numbers = torch.tensor([2.0, 3.0, 4.0])[None, :, None]
    >>> [v.ravel().tolist() for v in lower_vectors(numbers, 3)]
    [[1.0, 2.0, 3.0], [0.0, 1.0, 4.0], [0.0, 0.0, 1.0]]
    """
    one, none = torch.ones_like(numbers[:, :1]), torch.zeros_like(numbers[:, :1])
    columns, place = [], 0
    for k in range(size):
        below = numbers[:, place : place + size - 1 - k]
        columns.append(torch.cat([*k * [none], one, below], 1))
        place += size - 1 - k
    return columns


def householder(numbers: Tensor, size: int) -> Tensor:
    """Orthogonal matrices (M, size, size, K): products of I - 2 v v'/|v|^2, one for each of the `lower_vectors`.

    >>> Q = householder(torch.tensor([0.3, -1.0, 2.0])[None, :, None], 3)
    >>> torch.allclose(matrix_products(Q, Q.transpose(1, 2)), identities(Q), atol=1e-6)
    True
    """
    product = torch.eye(size, dtype=numbers.dtype, device=numbers.device)[None, :, :, None]
    for v in lower_vectors(numbers, size):
        scaled = 2 * v / v.square().sum(1, keepdim=True)
        turned = (product * v[:, None]).sum(2)
        product = torch.addcmul(product, turned[:, :, None], scaled[:, None], value=-1)
    return product


def inverse_root(matrices: Tensor, steps: int = STEPS) -> Tensor:
    """A^(-1/2) of symmetric positive definite matrices (M, d, d, K) by Newton's coupled iteration.

    With A divided by its largest row sum all eigenvalues lie in (0, 1], where Y <- Y T, Z <- T Z, T = (3 I - Z Y)/2
    converge to A^(1/2) and A^(-1/2); the smallest one grows by 9/4 a step at first.

    >>> inverse_root(torch.tensor([[4.0, 0.0], [0.0, 0.25]])[None, :, :, None])[0, :, :, 0]
    tensor([[0.5000, 0.0000],
            [0.0000, 2.0000]])
    """
    identity = identities(matrices)
    size = matrices.abs().sum(2, keepdim=True).amax(1, keepdim=True).detach()
    root, inverse = matrices / size, identity.expand_as(matrices)
    for _ in range(steps):
        turn = 1.5 * identity - 0.5 * matrix_products(inverse, root)
        root, inverse = matrix_products(root, turn), matrix_products(turn, inverse)
    return inverse * torch.rsqrt(size)
