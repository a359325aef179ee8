"""`Schedule` and `Schedules`: by which method and in which steps a time is integrated, for all members or for each.

A linear flow is a polynomial of A for every method, so members with several methods share one program and differ in
coefficients alone. Where steps have to be taken, members with fewer steps wait for the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property

import sympy as sp
import torch
from torch import Tensor

from rdgraph.errors import InvalidArgument
from rdgraph.run.solvers.matrix_functions import exact_gain, plus_identity, power_sums, product
from rdgraph.vocabulary.methods import WITH_GAINS, Tableau, find_method, methods, z

#: Most terms of an exact flow; a member whose coefficients need more overflows, and is marked.
_MOST_TERMS = 1 << 9
#: Squarings of the exponential, enough for the longest flow that is expanded; larger exponents are marked as infinite.
_SQUARINGS = 11


# ---------------------------------------------------------------------- one schedule
@dataclass(frozen=True)
class Schedule:
    """How a time is integrated: `method` and, for Runge-Kutta methods, the number of steps of length `step`.

    The last step is the remaining time, at most `step`; with one step it is the time itself.
    """

    method: str
    steps: int = 1
    step: float = 0.0

    @classmethod
    def make(cls, method: str, time: float, step: float | None) -> Schedule:
        """The schedule of torchdiffeq's rule: ceil(time/step) steps, the last one shortened.

        >>> Schedule.make("euler", 1.46, 1.0).steps, Schedule.make("rk4", 0.1, 0.2).steps
        (2, 1)
        """
        record = find_method(method)
        if record.is_exact:
            return cls(method)
        if not record.is_fixed and record.tableau is None:
            raise InvalidArgument(
                f"expected a method of Runge-Kutta steps or exact, got {method}; take one of {', '.join(WITH_GAINS)}"
            )
        if step is None or not step > 0:
            raise InvalidArgument(f"expected a step > 0 for {method}, got {step!r}; pass step=...")
        count = max(1, math.ceil(time / step + 1) - 1)
        # As on the grid of `solve`, a step that would start at the end up to rounding is omitted.
        return cls(method, count - 1 if count > 1 and (count - 1) * step >= time else count, float(step))

    @property
    def is_exact(self) -> bool:
        """Whether the exact flow is taken instead of steps."""
        return find_method(self.method).is_exact

    @property
    def has_exact(self) -> bool:
        """Whether the flow of some member is the exponential."""
        return self.is_exact

    def lengths(self, time: Tensor) -> list[Tensor]:
        """The step lengths for times (...,): all but the last are `step`."""
        last = time - (self.steps - 1) * self.step
        return [torch.full_like(time, self.step)] * (self.steps - 1) + [last]

    def going(self, number: int, device: torch.device) -> None:
        """Which members take the step of that number; None: all of them."""

    def begins(self, number: int, time: Tensor) -> Tensor:
        """When the step of that number begins, (...,)."""
        return torch.full_like(time, number * self.step)

    def whole_degree(self, order: int, extra: int) -> int:
        """The degree of the whole polynomial where the generator has that order, and the source `extra`."""
        if self.is_exact:
            return _MOST_TERMS
        return self.steps * len(stability(self.method)[1:]) * order + extra

    def of_members(self, first: int, last: int) -> Schedule:
        """The schedule of the members first..last-1: it is the same for all."""
        return self

    def plan(self, device: torch.device) -> Tensor:
        """What the kernels read, (1, stages + 3): stability polynomial, step, number of steps (0: the flow itself)."""
        if self.is_exact:
            return _on_device((1.0, 0.0, 0.0), device)
        return _on_device((*stability(self.method), self.step, float(self.steps)), device)

    def gain(self, p: Tensor, s: Tensor | None, time: Tensor) -> tuple[Tensor, Tensor | None]:
        """h(T)/h(0) of h' = p h + s h(0), the flow's part and the source's; p, s (F, F, R, J), time (R, 1)."""
        if self.is_exact:
            return exact_gain(p, s, time, _SQUARINGS)
        last, step = time - (self.steps - 1) * self.step, torch.full_like(time, self.step)
        return _stepped_gain(stability(self.method), step, last, self._bits, p, s)

    @cached_property
    def _bits(self) -> list[bool]:
        """The number of steps but the last in binary, highest bit first."""
        return [bit == "1" for bit in f"{self.steps - 1:b}"] if self.steps > 1 else []


def stability(method: str) -> tuple[float, ...]:
    """The stability polynomial of a Runge-Kutta method, lowest power first.

    >>> stability("heun")
    (1.0, 1.0, 0.5)
    """
    return _numbers(methods[method])


@cache
def _numbers(tableau: Tableau) -> tuple[float, ...]:
    return tuple(float(c) for c in reversed(sp.Poly(tableau.stability, z).all_coeffs()))


@cache
def _on_device(numbers: tuple[float, ...], device: torch.device) -> Tensor:
    return torch.tensor([numbers], dtype=torch.float64, device=device)


def _stepped_gain(
    weights: Sequence[float | Tensor], step: Tensor, last: Tensor, bits: Sequence[bool] | Tensor, p: Tensor,
    s: Tensor | None,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """The gains of Runge-Kutta steps: as many of length `step` as `bits` say, then one of length `last`.

    All of them are polynomials of P, which commute; `weights` is the stability polynomial.
    """
    value, extra = _one_step(weights, last, p, s)
    if len(bits):
        factor, push = _one_step(weights, step, p, s)
        before, sums = power_sums(factor, bits)
        if push is not None and extra is not None:
            extra = product(value, product(sums, push)) + extra
        value = product(value, before)
    return value, extra


def _one_step(
    weights: Sequence[float | Tensor], dt: Tensor, p: Tensor, s: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """One Runge-Kutta step h -> R(z) h + dt (R(z) - 1)/z s, with z = dt P."""
    x = dt * p
    push = plus_identity(torch.zeros_like(x), weights[-1])
    for weight in reversed(weights[1:-1]):
        push = plus_identity(product(push, x), weight)
    return plus_identity(product(x, push)), None if s is None else dt * product(push, s)


# ---------------------------------------------------------------------- schedules of members
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
        lengths = []
        for number in range(self.steps):
            length = torch.where(tables.before > number, step, last)
            lengths.append(torch.where(tables.before >= number, length, 0.0))
        return lengths

    def going(self, number: int, device: torch.device) -> Tensor | None:
        """Which members take the step of that number, (M,); None where all of them do."""
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
        """h(T)/h(0) of h' = p h + s h(0), the flow's part and the source's; p, s (F, F, R, J), time (R, 1).

        The rows of a member are consecutive. Nothing that could overflow is computed where a member does not use it.
        """
        tables = self._per_row(p.shape[-2], p.device)
        exact, step = tables.is_exact[:, None], tables.step[:, None]
        last = time - tables.before[:, None] * step
        stepped = torch.where(exact, 0.0, p)
        weights = tables.weights[..., None].unbind(1)
        value, extra = _stepped_gain(weights, step, last, tables.bits[..., None], stepped, s)
        if not self.has_exact:
            return value, extra
        flow, forced = exact_gain(torch.where(exact, p, 0.0), s, time, _SQUARINGS)
        if extra is not None and forced is not None:
            extra = torch.where(exact, forced, extra)
        return torch.where(exact, flow, value), extra

    # ------------------------------------------------------------------ numbers on a device
    def tables(self, device: torch.device) -> _Tables:
        """The schedules as numbers; cached, since a captured program refers to them by address."""
        if device not in self._tables:
            polynomials = [(1.0,) if one.is_exact else stability(one.method) for one in self.each]
            width = max(map(len, polynomials))
            before = [one.steps - 1 for one in self.each]
            most = max(before).bit_length()
            bits = [[count >> bit & 1 for count in before] for bit in reversed(range(most))]

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


#: How times are integrated: by one schedule for all members, or by one for each.
AnySchedule = Schedule | Schedules
