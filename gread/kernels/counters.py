"""Counter-based random numbers: a function of (seed, stream, step, index).

A member of an ensemble draws the same numbers in every batch and on every device, and a resumed run draws the numbers
that it would have drawn. 32-bit integer mixing (multiply and shift, with constants after C. Wellons' "hash-prospector",
which searched for low bias) in plain torch; `triton_training` has the same in Triton.
"""

from __future__ import annotations

import torch
from torch import Tensor

#: The first streams of a member, by use of the numbers.
INITIAL, DROPOUT = 1 << 16, 1 << 17

_MASK = 0xFFFFFFFF
FIRST, SECOND, STEP, STREAM = 0x21F0AAAD, 0xD35A2D97, 0x9E3779B9, 0x85EBCA6B


def mix(x: Tensor) -> Tensor:
    """A bijection of the 32-bit integers, stored in int64, that scatters neighbours.

    >>> mix(torch.tensor([0, 1, 2])).tolist()
    [0, 114555507, 229111015]
    """
    x = ((x ^ (x >> 16)) * FIRST) & _MASK
    x = ((x ^ (x >> 15)) * SECOND) & _MASK
    return x ^ (x >> 15)


def keys(seeds: Tensor, stream: int | Tensor, step: Tensor | int) -> Tensor:
    """One key per member (M,) at a step, for a common stream or one stream per member (M,)."""
    folded = mix((seeds & _MASK) ^ mix((seeds >> 32) & _MASK))
    return mix((mix((folded + stream * STREAM) & _MASK) + step * STEP) & _MASK)


def bits(key: Tensor, count: int) -> Tensor:
    """Random 32-bit integers (M, count) at the indices 0..count-1."""
    return bits_at(key, torch.arange(count, device=key.device))


def bits_at(key: Tensor, indices: Tensor) -> Tensor:
    """Random 32-bit integers (M, P) at some indices (P,)."""
    return mix((mix((indices + key[:, None]) & _MASK) ^ key[:, None]) & _MASK)


def uniform_at(seeds: Tensor, stream: int | Tensor, indices: Tensor, step: Tensor | int = 0) -> Tensor:
    """The numbers of `uniform` at some indices (P,), (M, P)."""
    return (bits_at(keys(seeds, stream, step), indices) >> 8).to(torch.float32) * 2.0**-24


def uniform(seeds: Tensor, stream: int | Tensor, count: int, step: Tensor | int = 0) -> Tensor:
    """Numbers in [0, 1), (M, count), float32 with 24 random bits.

    >>> u = uniform(torch.tensor([3, 4]), INITIAL, 10000)
    >>> bool((u.mean(1) - 0.5).abs().max() < 0.01), bool((u[0] == u[1]).any())
    (True, False)
    """
    return uniform_at(seeds, stream, torch.arange(count, device=seeds.device), step)
