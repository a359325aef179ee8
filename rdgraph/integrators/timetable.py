"""When to step and when to save, settled on the host before the first step, so that the loop itself asks nothing.

The step rule is torchdiffeq's: the grid is t0 + k*step with ceil(T/step) steps, the last one shortened to end at T.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from rdgraph.errors import InvalidArgument

MAX_STEPS = 10**8


class Event(NamedTuple):
    """One save that falls into one step: its number, which members it is for (None: all), and where it lies."""

    save: int
    members: Tensor | None
    at_end: bool
    completes: bool


@dataclass(frozen=True, eq=False)
class Timetable:
    """Save times (S,) or (S, *batch) and step ends (N + 1,) or (N + 1, *batch), shared or one column per member.

    >>> plan = make_timetable([0.0, 1.0], None, 0.4)
    >>> plan.grid.tolist(), plan.steps
    ([0.0, 0.4, 0.8, 1.0], 3)
    """

    saves: Tensor
    grid: Tensor
    batch: tuple[int, ...]

    @property
    def times(self) -> Tensor:
        """The ends of the steps as they broadcast against a state, (N + 1,) or (N + 1, *batch, 1, 1)."""
        return self.grid[..., None, None] if self.grid.ndim > 1 else self.grid

    @property
    def steps(self) -> int:
        return len(self.grid) - 1

    @property
    def start(self) -> Tensor:
        return self.grid[0]

    @cached_property
    def lengths(self) -> Tensor:
        """Step lengths, (N,) or (N, *batch, 1, 1): each multiplies a state."""
        lengths = self.grid.diff(dim=0)
        return lengths[..., None, None] if lengths.ndim > 1 else lengths

    @cached_property
    def active(self) -> Tensor | None:
        """(N, *batch): who still moves in each step; None where nobody ever waits."""
        moving = self.grid.detach().diff(dim=0) > 0
        return None if bool(moving.all()) else moving

    @cached_property
    def events(self) -> dict[int, list[Event]]:
        """Saves by the step that reaches them; step -1 is the start."""
        grid, saves = _host(self.grid), _host(self.saves)
        if grid.ndim < saves.ndim:
            grid = np.broadcast_to(grid.reshape(-1, *(1,) * len(self.batch)), (len(grid), *self.batch))
        elif saves.ndim < grid.ndim:
            saves = np.broadcast_to(saves.reshape(-1, *(1,) * len(self.batch)), (len(saves), *self.batch))
        columns, wanted = grid.reshape(len(grid), -1), saves.reshape(len(saves), -1)
        pairs = zip(columns.T, wanted.T, strict=True)
        places = np.stack([np.searchsorted(column, own, side="left") - 1 for column, own in pairs], axis=1)
        ends = np.take_along_axis(columns, places + 1, axis=0) == wanted
        found: dict[int, list[Event]] = {}
        for index, (place, end) in enumerate(zip(places, ends, strict=True)):
            for step in np.unique(place).tolist():
                here = place == step
                members = None if here.all() else torch.from_numpy(here.reshape(self.batch)).to(self.grid.device)
                event = Event(index, members, bool(end[here].all()), step == place.max())
                found.setdefault(step, []).append(event)
        return found

    def fraction(self, index: int, step: int) -> Tensor:
        """Where save number `index` lies in a step: 0 at its start, 1 at its end; () or (*batch, 1, 1)."""
        first, last = self.grid[step], self.grid[step + 1]
        length = torch.where(last > first, last - first, 1)
        part = ((self.saves[index] - first) / length).clamp(0, 1)
        return part[..., None, None] if part.ndim else part


def make_timetable(
    t: Any, save_at: Any = None, step: Any = None, batch: tuple[int, ...] = (), device: Any = None
) -> Timetable:
    """Read times and step, refuse what makes no sense, and lay out the grid; without a step, `t` is the grid."""
    times = read_times(t, "t", batch)
    saves = times if save_at is None else read_times(save_at, "save_at", batch).to(times.dtype)
    first, last = times.detach()[0].cpu(), times.detach()[-1].cpu()
    outside = (saves.detach().cpu() < first) | (saves.detach().cpu() > last)
    if bool(outside.any()):
        raise InvalidArgument(
            f"expected save_at within t, from {_range(first)} to {_range(last)}, got {_range(saves)}; extend t"
        )
    grid = times if step is None else _uniform(times, read_step(step, times, batch))
    if grid.ndim == 1:
        grid = grid[_rises(grid)]
    return Timetable(saves.to(device), grid.to(device), batch)


def read_times(value: Any, name: str, batch: tuple[int, ...]) -> Tensor:
    """Times as a floating tensor (K,) or (K, *batch) that never falls; tensors keep their dtype, the rest is float64.

    >>> read_times([0.0, torch.tensor([1.0, 2.0])], "t", (2,)).tolist()
    [[0.0, 0.0], [1.0, 2.0]]
    """
    if isinstance(value, Sequence) and any(isinstance(entry, Tensor) for entry in value):
        value = _stacked(value)
    try:
        times = value if isinstance(value, Tensor) else torch.as_tensor(np.asarray(value, dtype=np.float64))
    except (TypeError, ValueError):
        raise InvalidArgument(f"expected {name} to be a list of numbers, got {value!r}; write [0.0, 1.0]") from None
    times = times if times.is_floating_point() else times.to(torch.float64)
    if times.ndim == 0 or len(times) == 0:
        got = f"the number {float(times):g}" if times.ndim == 0 else "none"
        raise InvalidArgument(f"expected {name} to hold at least one time, got {got}; write [0.0, 1.0]")
    if times.ndim > 1 and tuple(times.shape[1:]) != batch:
        allowed = f"({len(times)},)" + (f" or {(len(times), *batch)}, one column per member" if batch else "")
        raise InvalidArgument(f"expected {name} of shape {allowed}, got {tuple(times.shape)}")
    known = times.detach()
    if not bool(torch.isfinite(known).all()):
        raise InvalidArgument(f"expected finite times in {name}, got {_range(known)}; remove NaN and inf")
    if bool((known.diff(dim=0) < 0).any()):
        raise InvalidArgument(
            f"expected {name} not to decrease, got {_listed(known)}; sort it; to go back in time integrate the system "
            "with the opposite sign"
        )
    return times


def _stacked(entries: Sequence[Any]) -> Tensor:
    """Numbers and tensors () or (*batch) as one tensor, in the dtype and on the device of the first floating tensor."""
    model = next((e for e in entries if isinstance(e, Tensor) and e.is_floating_point()), torch.zeros(0).double())
    tensors = [torch.as_tensor(entry, dtype=model.dtype, device=model.device) for entry in entries]
    shape = np.broadcast_shapes(*(tensor.shape for tensor in tensors))
    return torch.stack([tensor.expand(shape) for tensor in tensors])


def read_step(value: Any, times: Tensor, batch: tuple[int, ...]) -> Tensor:
    """The step as a tensor () or (*batch), positive and finite."""
    try:
        step = torch.as_tensor(value, dtype=times.dtype, device=times.device).detach()
    except (TypeError, ValueError, RuntimeError):
        raise InvalidArgument(f"expected step to be a number > 0, or one per member, got {value!r}") from None
    if step.ndim and tuple(step.shape) != batch:
        allowed = f" or a tensor {batch}, one per member" if batch else ""
        raise InvalidArgument(f"expected step to be a number{allowed}, got shape {tuple(step.shape)}")
    if not bool((torch.isfinite(step) & (step > 0)).all()):
        raise InvalidArgument(
            f"expected step > 0 and finite, got {_range(step)}; step=None takes one step per interval"
        )
    return step


def _uniform(times: Tensor, step: Tensor) -> Tensor:
    """start + k*step for k below the number of steps, then the end; members that are done repeat their end."""
    start, end = times[0], times[-1]
    counts = torch.ceil((end - start).detach() / step + 1) - 1
    longest = float(counts.max())
    if longest > MAX_STEPS:
        raise InvalidArgument(f"expected at most {MAX_STEPS} steps, got {longest:.0f}; take a larger step")
    numbers = torch.arange(int(longest) + 1, dtype=times.dtype, device=times.device)
    numbers = numbers.reshape(-1, *(1,) * counts.ndim)
    points = numbers * step + start
    return torch.where((numbers < counts) & (points < end), points, end)


def _rises(grid: Tensor) -> Tensor:
    """Positions of the entries that exceed all before them: repeated times cost no step."""
    known = grid.detach()
    return torch.cat([known.new_ones(1, dtype=torch.bool), known.diff() > 0]).nonzero().ravel()


def _host(values: Tensor) -> np.ndarray:
    return np.asarray(values.detach().cpu().numpy())


def _range(values: Tensor) -> str:
    low, high = float(values.min()), float(values.max())
    return f"{low:g}" if low == high or low != low else f"{low:g}..{high:g}"


def _listed(values: Tensor) -> str:
    entries = [f"{x:g}" for x in values.flatten()[:6].tolist()]
    return "[" + ", ".join(entries) + (", ...]" if values.numel() > 6 else "]")
