"""`BrownianPath`: the increments of white noise for every member, step by step, the same for the same seed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from rdgraph.errors import InvalidArgument
from rdgraph.run.solvers.steppers import StepResult, first_is_nan

if TYPE_CHECKING:
    from rdgraph.run.lowering.vector_field import VectorField


# ---------------------------------------------------------------------- counted normals
# Counter-based normal numbers: each depends only on (seed, stream, step, index), on every device.
#
# The bits are those of Philox 4x32 with ten rounds (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as
# 1, 2, 3", 2011), in plain torch: 32-bit words are kept in int64, whose products wrap as they should.

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
    index = torch.arange(quads, device=device)
    step = torch.arange(first, first + count, device=device)[:, None, None]
    key = (seeds & _MASK)[:, None], _upper(seeds)[:, None]
    stream_number = torch.full((), stream, dtype=torch.int64, device=device)
    bits = torch.stack(philox((index, stream_number, step & _MASK, _upper(step)), key))
    u = (bits.to(torch.float64) + 0.5) * 2.0**-32
    radius, angle = torch.sqrt(-2 * torch.log(u[::2])), (2 * math.pi) * u[1::2]
    pairs = torch.stack([radius * torch.cos(angle), radius * torch.sin(angle)], -1)
    return pairs.movedim(0, -2).reshape(count, len(seeds), 4 * quads)[..., :size]


# ---------------------------------------------------------------------- brownian path
#: Numbers drawn at once, so that small states do not pay overhead for every step.
_AT_ONCE = 1 << 16


@dataclass(eq=False)
class BrownianPath:
    """Increments of independent Brownian motions, one for each entry of the noisy blocks of a state.

    A member's path follows from its seed, the number of its step, and its own nodes and channels: not from its
    neighbours, nor from the times that are saved. `parts` independent increments make up a step: a run with the same
    seed and steps of 1/parts of the length follows the same path, up to rounding. `step` is the length of a whole step,
    () or (*batch); None where the steps differ, and are then cut into equal parts.

    >>> path = BrownianPath(torch.tensor(7), ("u",), ("u",), parts=2)
    >>> fine = BrownianPath(torch.tensor(7), ("u",), ("u",))
    >>> like, h = torch.zeros(3, 1, dtype=torch.float64), torch.tensor(0.5)
    >>> sums = fine.increment(0, h / 2, like) + fine.increment(1, h / 2, like)
    >>> torch.allclose(path.increment(0, h, like), sums)
    True
    """

    seeds: Tensor
    fields: tuple[str, ...]
    noisy: tuple[str, ...]
    step: Tensor | None = None
    parts: int = 1
    _drawn: dict[str, tuple[int, Tensor]] = field(default_factory=dict)

    def increment(self, number: int, dt: Tensor, like: Tensor) -> Tensor:
        """W(t + dt) - W(t) in step `number`, shaped like the state; dt is () or (*batch, 1, 1)."""
        lengths = self._lengths(dt.detach().to(torch.float64))
        blocks = [torch.zeros_like(like).chunk(len(self.fields), -1)[0]] * len(self.fields)
        for k, name in enumerate(self.fields):
            if name in self.noisy:
                shape = blocks[k].shape
                draws = self._draws(name, k, number, shape[-2] * shape[-1])
                roots = lengths.sqrt().reshape(self.parts, *(1,) * (len(shape) + 1 - lengths.ndim), *lengths.shape[1:])
                blocks[k] = (roots * draws.reshape(self.parts, *shape)).sum(0).to(like.dtype)
        return torch.cat(blocks, -1) if len(blocks) > 1 else blocks[0]

    def _lengths(self, dt: Tensor) -> Tensor:
        """The lengths of the parts of a step, (parts, ...): full ones, then the rest of a short last step."""
        if self.parts == 1:
            return dt[None]
        whole = dt if self.step is None else self.step.to(dt)
        whole = whole[..., None, None] if whole.ndim and whole.ndim < dt.ndim else whole
        numbers = torch.arange(self.parts, dtype=dt.dtype, device=dt.device).reshape(
            -1, *(1,) * max(dt.ndim, whole.ndim)
        )
        part = whole / self.parts
        return torch.minimum((dt - numbers * part).clamp(min=0), part)

    def _draws(self, name: str, stream: int, number: int, size: int) -> Tensor:
        """The normal numbers of a step, (parts, M, size); several steps are drawn at once."""
        first, block = self._drawn.get(name, (0, None))
        seeds = self.seeds.reshape(-1)
        if block is None or not first <= number < first + len(block):
            steps = max(1, _AT_ONCE // (self.parts * len(seeds) * size))
            draws = normals(seeds, stream, number * self.parts, steps * self.parts, size)
            first, block = number, draws.reshape(steps, self.parts, len(seeds), size)
            self._drawn[name] = first, block
        return block[number - first]


def read_seeds(seed: Any, batch: tuple[int, ...], device: Any) -> Tensor:
    """Seeds (*batch) as int64: given ones, or consecutive numbers from a given one.

    >>> read_seeds(5, (3,), "cpu").tolist(), read_seeds([8, 2], (2,), "cpu").tolist()
    ([5, 6, 7], [8, 2])
    """
    count = torch.Size(batch).numel()
    if not isinstance(seed, bool) and isinstance(seed, Integral) and abs(int(seed)) + count < 2**63:
        return int(seed) + torch.arange(count, device=device).reshape(batch)
    if isinstance(seed, Sequence | Tensor | np.ndarray):
        try:
            seeds = torch.as_tensor(seed, device=device)
        except (TypeError, ValueError, RuntimeError, OverflowError):  # texts, ragged lists, more than 64 bits
            seeds = torch.empty(0)
        if tuple(seeds.shape) == batch and not (seeds.is_floating_point() or seeds.dtype == torch.bool):
            return seeds.to(torch.int64)
    got = f"a tensor {tuple(seed.shape)} of {seed.dtype}" if isinstance(seed, Tensor) else repr(seed)
    raise InvalidArgument(f"expected a whole number as seed, or one for each member of {batch}, got {got}; pass seed=0")


# ---------------------------------------------------------------------- noisy steps
# Steps of systems with white noise, dH = f(H) dt + g(H) dW in the sense of Ito.


class EulerMaruyama:
    """H + f(t, H) dt + g(t, H) dW: strong order 1/2, and 1 where g does not depend on H; weak order 1.

    Steps are taken in their order, and counted.
    """

    def __init__(self, field: VectorField, path: BrownianPath) -> None:
        self.field, self.path = field, path
        self.evaluations = self.number = 0

    @property
    def products(self) -> int:
        return self.evaluations * self.field.plan.products + self.number * self.field.noise_products

    def slope(self, H: Tensor, t: Tensor | None = None) -> Tensor:
        self.evaluations += 1
        return self.field(t, H)

    def advance(self, H: Tensor, dt: Tensor, t: Tensor | None = None) -> StepResult:
        drift = self.slope(H, t)
        return StepResult(torch.addcmul(H, drift, dt) + self.kick(H, dt, t), drift)

    def kick(self, H: Tensor, dt: Tensor, t: Tensor | None) -> Tensor:
        """g(t, H) dW of the next step."""
        increment = self.path.increment(self.number, dt, H)
        self.number += 1
        return self.field.diffusion(t, H) * increment

    def is_undefined(self, H: Tensor, dt: Tensor, t: Tensor | None = None) -> Tensor:
        return first_is_nan([H, self.slope(H, t), self.field.diffusion(t, H)])
