"""Normal numbers by counting: each is a function of (seed, stream, step, place) alone, on every device.

The bits are those of Philox 4x32 with ten rounds (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as
1, 2, 3", 2011), in plain torch: 32-bit words are kept in int64, whose products wrap as they should.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

_MASK = 0xFFFFFFFF
_FACTORS, _BUMPS = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10


def philox(counter: tuple[Tensor, Tensor, Tensor, Tensor], key: tuple[Tensor, Tensor]) -> tuple[Tensor, ...]:
    """Four random 32-bit words for a counter of four and a key of two; all int64, of shapes that broadcast.

    >>> zero = torch.tensor(0)
    >>> [f"{int(x):08x}" for x in philox((zero, zero, zero, zero), (zero, zero))]
    ['6627e8d5', 'e169c58d', 'bc57ac4c', '9b00dbd8']
    """
    a, b, c, d = counter
    first, second = key
    for k in range(_ROUNDS):
        low, high = a * _FACTORS[0], c * _FACTORS[1]
        left, right = (first + k * _BUMPS[0]) & _MASK, (second + k * _BUMPS[1]) & _MASK
        a, b, c, d = _upper(high) ^ b ^ left, high & _MASK, _upper(low) ^ d ^ right, low & _MASK
    return a, b, c, d


def _upper(product: Tensor) -> Tensor:
    return (product >> 32) & _MASK


def normals(seeds: Tensor, stream: int, first: int, count: int, size: int) -> Tensor:
    """Standard normal numbers (count, M, size), float64, of the steps first, first + 1, ... for the seeds (M,).

    The transform of Box and Muller makes two of them from two uniform numbers of 32 bits; none is beyond 6.8.

    >>> both = normals(torch.tensor([3, 4]), 0, 0, 2, 5)
    >>> torch.equal(both[1:, 1:], normals(torch.tensor([4]), 0, 1, 1, 5)), bool((both[0] == both[1]).any())
    (True, False)
    """
    quads = -(-size // 4)
    device = seeds.device
    place = torch.arange(quads, device=device)
    step = torch.arange(first, first + count, device=device)[:, None, None]
    key = (seeds & _MASK)[:, None], _upper(seeds)[:, None]
    own = torch.full((), stream, dtype=torch.int64, device=device)
    bits = torch.stack(philox((place, own, step & _MASK, _upper(step)), key))
    u = (bits.to(torch.float64) + 0.5) * 2.0**-32
    radius, angle = torch.sqrt(-2 * torch.log(u[::2])), (2 * math.pi) * u[1::2]
    pairs = torch.stack([radius * torch.cos(angle), radius * torch.sin(angle)], -1)
    return pairs.movedim(0, -2).reshape(count, len(seeds), 4 * quads)[..., :size]
