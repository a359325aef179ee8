"""`Schedules`: how the times of members of one batch are integrated, each by a method, steps and a step of its own.

A linear flow is a polynomial of A whatever the method, so members with several methods share one program and differ in
coefficients alone. Where there have to be steps, members with fewer of them are held while the others go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from rdgraph.errors import InvalidArgument
from rdgraph.run.solvers.flow_coefficients import Schedule, stability
from rdgraph.run.solvers.special_functions import frugal_phi1


@dataclass(frozen=True)
class _Tables:
    """The schedules of M members as numbers on a device.

    `weights` (M, stages + 1) are the stability polynomials, padded with zeros, `step` (M,) and `before` (M,), all steps
    but the last, in float64, `is_exact` (M,), and `bits` (B, M), the numbers of steps but the last, highest bit first.
    """

    weights: Tensor
    step: Tensor
    before: Tensor
    is_exact: Tensor
    bits: Tensor

    def plan(self) -> Tensor:
        """What the kernels read, (M, stages + 3)."""
        count = torch.where(self.is_exact, 0.0, self.before + 1)
        return torch.cat([self.weights, self.step[:, None], count[:, None]], 1)


@dataclass(frozen=True)
class Schedules:
    """One `Schedule` for every member of a batch.

    Args:
        each: The schedules, in the order of the members.

    Raises:
        InvalidArgument: For no members.

    >>> both = Schedules((Schedule.make("euler", 1.0, 0.5), Schedule.make("euler", 1.0, 0.25)))
    >>> both.steps, both.method
    (4, 'euler')
    >>> [length.tolist() for length in both.lengths(torch.ones(2))]
    [[0.5, 0.25], [0.5, 0.25], [0.0, 0.25], [0.0, 0.25]]
    """

    each: tuple[Schedule, ...]
    _tables: dict[torch.device, _Tables] = field(default_factory=dict, repr=False, compare=False)
    _parts: dict[tuple[int, int], Schedule | Schedules] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.each:
            raise InvalidArgument("expected at least one schedule, got none")

    @staticmethod
    def of(each: Sequence[Schedule]) -> Schedule | Schedules:
        """One schedule where all members have the same one, else one for each."""
        return each[0] if len(set(each)) == 1 else Schedules(tuple(each))

    @property
    def steps(self) -> int:
        """The most steps of a member."""
        return max(one.steps for one in self.each)

    @property
    def method(self) -> str:
        """The method that all members share."""
        names = sorted({one.method for one in self.each})
        if len(names) > 1:
            raise InvalidArgument(f"expected members that are stepped by one method, got {', '.join(names)}")
        return names[0]

    def whole_degree(self, order: int, extra: int) -> int:
        """The highest degree of the whole polynomials of the members."""
        return max(one.whole_degree(order, extra) for one in set(self.each))

    # ------------------------------------------------------------------ steps
    def lengths(self, time: Tensor) -> list[Tensor]:
        """The step lengths for times (M,): a member that has ended takes steps of length 0."""
        tables = self.tables(time.device)
        step, last = tables.step.to(time.dtype), time - (tables.before * tables.step).to(time.dtype)
        found = []
        for number in range(self.steps):
            length = torch.where(tables.before > number, step, last)
            found.append(torch.where(tables.before >= number, length, 0.0))
        return found

    def going(self, number: int, device: torch.device) -> Tensor | None:
        """Who takes the step of that number, (M,); None where everybody does."""
        if all(one.steps > number for one in self.each):
            return None
        return self.tables(device).before >= number

    def begins(self, number: int, time: Tensor) -> Tensor:
        """When the step of that number begins, (M,)."""
        return (number * self.tables(time.device).step).to(time.dtype)

    # ------------------------------------------------------------------ polynomials
    def of_members(self, first: int, last: int) -> Schedule | Schedules:
        """The schedule of the members first..last-1, cached like the tables of all."""
        if (first, last) not in self._parts:
            self._parts[first, last] = Schedules.of(self.each[first:last])
        return self._parts[first, last]

    def plan(self, device: torch.device) -> Tensor:
        """What the kernels read, (M, stages + 3): stability polynomial, step, number of steps (0: the flow itself)."""
        return self.tables(device).plan()

    @property
    def has_exact(self) -> bool:
        """Whether the flow of some member is the exponential."""
        return any(one.is_exact for one in self.each)

    def gain(self, p: Tensor, s: Tensor | None, time: Tensor) -> tuple[Tensor, Tensor | None]:
        """h(T)/h(0) of h' = p h + s h(0): what the flow keeps, what the source adds; p (R, J), time (R, 1).

        The rows of a member are consecutive. Of what a member does not use nothing is computed that could overflow.
        """
        tables = self._per_row(len(p), p.device)
        exact, step = tables.is_exact[:, None], tables.step[:, None]
        stepped = torch.where(exact, 0.0, p)
        last = time - tables.before[:, None] * step
        value, extra = _step(tables.weights, last, stepped, s)
        factor, push = _step(tables.weights, step, stepped, s)
        before, sums = _powers(factor, tables.bits)
        if extra is not None and push is not None:
            extra = value * (push * sums) + extra
        value = value * before
        if not self.has_exact:
            return value, extra
        exponent = torch.where(exact, time * p, 0.0)
        if extra is not None and s is not None:
            extra = torch.where(exact, time * s * frugal_phi1(exponent), extra)
        return torch.where(exact, torch.exp(exponent), value), extra

    # ------------------------------------------------------------------ numbers on a device
    def tables(self, device: torch.device) -> _Tables:
        """The schedules as numbers; made once and kept, since a recorded program reads them where they are."""
        if device not in self._tables:
            polynomials = [(1.0,) if one.is_exact else stability(one.method) for one in self.each]
            width = max(map(len, polynomials))
            before = [one.steps - 1 for one in self.each]
            most = max(before).bit_length()
            bits = [[before >> place & 1 for before in before] for place in reversed(range(most))]

            def numbers(values: object) -> Tensor:
                return torch.tensor(values, dtype=torch.float64, device=device)

            self._tables[device] = _Tables(
                numbers([[*w, *[0.0] * (width - len(w))] for w in polynomials]),
                numbers([one.step for one in self.each]),
                numbers(before),
                torch.tensor([one.is_exact for one in self.each], device=device),
                torch.tensor(bits, dtype=torch.bool, device=device).reshape(most, len(self.each)),
            )
        return self._tables[device]

    def _per_row(self, rows: int, device: torch.device) -> _Tables:
        tables, width = self.tables(device), rows // len(self.each)
        if width == 1:
            return tables
        return _Tables(
            tables.weights.repeat_interleave(width, 0), tables.step.repeat_interleave(width),
            tables.before.repeat_interleave(width), tables.is_exact.repeat_interleave(width),
            tables.bits.repeat_interleave(width, 1),
        )  # fmt: skip


def _step(weights: Tensor, dt: Tensor, p: Tensor, s: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """One Runge-Kutta step h -> R(z) h + dt s (R(z) - 1)/z, with z = dt p and weights (R, stages + 1)."""
    x = dt * p
    push = torch.zeros_like(x)
    for weight in weights[:, 1:].flip(1).unbind(1):
        push = push * x + weight[:, None]
    return 1 + x * push, None if s is None else dt * s * push


def _powers(factor: Tensor, bits: Tensor) -> tuple[Tensor, Tensor]:
    """factor^count and 1 + factor + ... + factor^(count - 1), by doubling, for counts of their own (bits (B, R))."""
    power, sums = torch.ones_like(factor), torch.zeros_like(factor)
    for odd in bits[..., None]:
        power, sums = power * power, sums + sums * power
        power, sums = torch.where(odd, power * factor, power), torch.where(odd, sums * factor + 1, sums)
    return power, sums
