"""The fixed-step loop: steps, waits, freezes and saves, all members at once, without synchronisation.

A member that becomes non-finite (or exceeds the limit) stays at its last state while the others continue. If gradients
are needed and a member failed, the loop runs a second time without the failing step of that member: the product of a
zero gradient with an infinite slope would otherwise make every coefficient shared by the members NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from rdgraph.errors import InvalidArgument
from rdgraph.run.solvers.solution import RunStatus, Stats
from rdgraph.run.solvers.steppers import Marching, Stepper, StepResult, Stretch
from rdgraph.run.solvers.trackers import Recorder

# ---------------------------------------------------------------------- timetable
# When to step and when to save, computed on the host before the first step, so that the loop needs no decisions.
#
# The step rule is torchdiffeq's: the grid is t0 + k*step with ceil(T/step) steps, the last one shortened to end at T.

MAX_STEPS = 10**8


class Event(NamedTuple):
    """One save that falls into one step: its index, its members (None: all), and its position in the step."""

    save: int
    members: Tensor | None
    at_end: bool
    completes: bool


@dataclass(frozen=True, eq=False)
class Timetable:
    """Save times (S,) or (S, *batch) and fixed step ends (N + 1,) or (N + 1, *batch), shared or one column per member.

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
        """(N, *batch): which members still move in each step; None if all move in every step."""
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
        places = np.stack([np.searchsorted(column, times, side="left") - 1 for column, times in pairs], axis=1)
        ends = np.take_along_axis(columns, places + 1, axis=0) == wanted
        events: dict[int, list[Event]] = {}
        for index, (interval, end) in enumerate(zip(places, ends, strict=True)):
            for step in np.unique(interval).tolist():
                here = interval == step
                members = None if here.all() else torch.from_numpy(here.reshape(self.batch)).to(self.grid.device)
                event = Event(index, members, bool(end[here].all()), step == interval.max())
                events.setdefault(step, []).append(event)
        return events

    def fraction(self, index: int, step: int) -> Tensor:
        """The position of save number `index` in its step: 0 at its start, 1 at its end; () or (*batch, 1, 1)."""
        first, last = self.grid[step], self.grid[step + 1]
        length = torch.where(last > first, last - first, 1)
        part = ((self.saves[index] - first) / length).clamp(0, 1)
        return part[..., None, None] if part.ndim else part


def make_timetable(
    t: Any, save_at: Any = None, step: Any = None, batch: tuple[int, ...] = (), device: Any = None
) -> Timetable:
    """The timetable of checked times and step; without a step, `t` is the grid."""
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
    """Times as a floating tensor (K,) or (K, *batch) that never falls; tensors keep their dtype, others become float64.

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
    """start + k*step for k below the number of steps, then the end; finished members repeat their end."""
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
    """Indices of the entries that exceed all before them: repeated times take no step."""
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


# ---------------------------------------------------------------------- fixed steps
class Integration(NamedTuple):
    """The result of an integrator for `solve`: the saved states, and how each member ended."""

    recorder: Recorder
    codes: Tensor
    failed_at: Tensor
    stats: Stats


@dataclass(frozen=True, eq=False)
class March:
    """One pass over the timetable. `survived` (*batch) counts steps until failure, `alive` marks who finished."""

    alive: Tensor
    survived: Tensor
    state: Tensor


def integrate_fixed(
    make_stepper: Callable[[Tensor], Stepper],
    H0: Tensor,
    timetable: Timetable,
    recorder: Recorder,
    *,
    bound: float,
    cubic: bool,
) -> Integration:
    """Integrate all members; `make_stepper(H0)` gives the method for trajectories that start at H0."""
    stepper = make_stepper(H0)
    march = _march(stepper, H0, timetable, recorder, bound, cubic)
    codes = torch.where(march.alive, RunStatus.OK.code, RunStatus.BLOW_UP.code)
    failed_at = torch.where(march.alive, torch.nan, _pick(timetable.grid.detach(), march.survived))
    steppers = [stepper]
    if not bool(march.alive.all()):
        undefined = _is_undefined(stepper, march, timetable)
        codes = torch.where(undefined & ~march.alive, RunStatus.NOT_A_NUMBER.code, codes)
        if march.state.requires_grad:
            recorder, rest = recorder.silent(), _rest(H0, march.survived)
            steppers.append(make_stepper(choose(march.survived > 0, H0, rest)))
            _march(steppers[1], H0, timetable, recorder, bound, cubic, last=march.survived, rest=rest)
    costs = (Stats(each.evaluations, each.products) for each in steppers)
    return Integration(recorder, codes, failed_at, sum(costs, Stats(accepted=timetable.steps)))


def _is_undefined(stepper: Stepper, march: March, timetable: Timetable) -> Tensor:
    """(*batch): whether the failed step broke on NaN; it is repeated to inspect its stages."""
    state = march.state.detach()
    dt = torch.zeros((), dtype=state.dtype, device=state.device)
    if timetable.steps:
        lengths = timetable.grid.detach().diff(dim=0)
        dt = _pick(lengths, march.survived.clamp(max=timetable.steps - 1))[..., None, None].to(state.dtype)
    t = _pick(timetable.grid.detach(), march.survived.clamp(max=timetable.steps))[..., None, None].to(state.dtype)
    with torch.no_grad():
        return stepper.is_undefined(state, dt, t)


def _rest(H0: Tensor, survived: Tensor) -> Tensor:
    """A state at which the field is finite, for members to wait at: their start, if they took a step from it.

    Otherwise it is the start of the member that came furthest, or zero where no member took a step.
    """
    start = H0.detach()
    furthest = start.reshape(-1, *start.shape[-2:])[survived.flatten().argmax()]
    spare = torch.where(survived.max() > 0, furthest, 0.0)
    return choose(survived > 0, start, spare.expand_as(start))


def is_within(H: Tensor, bound: float) -> Tensor:
    """(*batch): whether every entry of (*batch, n, d) has size at most `bound`; false for NaN."""
    known = H.detach()
    if H.device.type == "cpu":  # two quick reductions; elsewhere one launch counts for more than one pass
        return torch.maximum(known.amax((-2, -1)), -known.amin((-2, -1))) <= bound
    return torch.linalg.vector_norm(known, torch.inf, dim=(-2, -1)) <= bound


def choose(members: Tensor, yes: Tensor, no: Tensor) -> Tensor:
    """`yes` for the chosen members (*batch), `no` for the others; on the CPU without a copy if possible."""
    if members.device.type == "cpu" and bool(members.all()):
        return yes
    return torch.where(members[..., None, None], yes, no)


def _march(
    stepper: Stepper,
    H0: Tensor,
    timetable: Timetable,
    recorder: Recorder,
    bound: float,
    cubic: bool,
    last: Tensor | None = None,
    rest: Tensor | None = None,
) -> March:
    """Step through the timetable; with `last` (*batch), a member takes only that many steps and is then a constant.

    Members that do not move are evaluated at `rest`, by default their start, and the result is discarded.
    """
    H, alive = H0, is_within(H0, bound)
    lengths, moving = timetable.lengths.to(H0.dtype), timetable.active
    times = timetable.times.to(H0.dtype)
    if rest is None:
        rest = H0.detach() if moving is None else _rest(H0, moving[0].long())
    survived = torch.zeros(alive.shape, dtype=torch.int64, device=H0.device)
    saver = _StepSaver(stepper, timetable, recorder, rest, cubic, cautious=last is not None)
    saver.save(-1, H, StepResult(H, None), alive)
    k = -1
    while (k := k + 1) < timetable.steps:
        if isinstance(stepper, Marching) and last is None and (end := saver.stretch(k, stepper.most_steps(H))) > k:
            stretch = Stretch(lengths[k:end], times[k:end], None if moving is None else moving[k:end])
            H, alive, survived = stepper.march(H, stretch, bound, alive, survived)
            k = end - 1
            saver.save(k, H, StepResult(H, None), alive)
            continue
        active = None if moving is None else moving[k]
        if last is not None:
            active = k < last if active is None else active & (k < last)
        step = stepper.advance(H if active is None else choose(active, H, rest), lengths[k], times[k])
        fine = is_within(step.state, bound)
        alive = alive & (fine if active is None else fine | ~active)
        survived = survived + alive
        moved = alive if active is None else alive & active
        stay = H if last is None else choose(k < last, H, H.detach())
        state = choose(moved, step.state, stay)
        saver.save(k, stay, StepResult(state, step.slope), moved)
        H = state
    return March(alive, survived, H)


class _StepSaver:
    """Interpolates the saves that fall into a step: linearly as in torchdiffeq, or by cubic Hermite polynomials."""

    def __init__(
        self, stepper: Stepper, timetable: Timetable, recorder: Recorder, rest: Tensor, cubic: bool, cautious: bool
    ) -> None:
        self.stepper = stepper
        self.timetable = timetable
        self.recorder = recorder
        self.rest = rest
        self.cubic = cubic
        self.cautious = cautious
        self.pending: dict[int, Tensor] = {}

    def stretch(self, k: int, most: int) -> int:
        """The end of the steps from k on that can be taken together: only the end of the last one is saved."""
        last = min(k + most, self.timetable.steps)
        for step in range(k, last):
            if events := self.timetable.events.get(step):
                return step + 1 if all(event.at_end for event in events) else step
        return last

    def save(self, k: int, before: Tensor, step: StepResult, moved: Tensor) -> None:
        """All saves of step k, from the state before it to the state after it."""
        bends: _Bends | None = None
        for event in self.timetable.events.get(k, ()):
            value = step.state
            if not event.at_end:
                part = self.timetable.fraction(event.save, k).to(before.dtype)
                between = before + part * (step.state - before)
                if self.cubic:
                    bends = bends or self._bends(k, before, step, moved)
                    cubic = _hermite(before, step.state, bends, part, self.timetable.lengths[k].to(before.dtype))
                    between = choose(bends.sound, cubic, between)
                value = torch.where(moved[..., None, None] & (part != 1), between, value)
            self._deliver(event, value)

    def _deliver(self, event: Event, value: Tensor) -> None:
        if event.members is not None:
            known = self.pending.pop(event.save, self.rest)
            value = torch.where(event.members[..., None, None], value, known)
        if event.completes:
            self.recorder.save(value)
        else:
            self.pending[event.save] = value

    def _bends(self, k: int, before: Tensor, step: StepResult, moved: Tensor) -> _Bends:
        """Slopes at both ends; a state about to blow up may have an infinite one and is then interpolated linearly."""
        t0, t1 = self.timetable.times[k].to(before.dtype), self.timetable.times[k + 1].to(before.dtype)
        first = self.stepper.slope(choose(moved, before, self.rest), t0) if step.slope is None else step.slope
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.cautious):
            last = self.stepper.slope(choose(moved, step.state, self.rest), t1)
        sound = moved & is_within(last, torch.finfo(last.dtype).max)
        if self.cautious:
            last = self.stepper.slope(choose(sound, step.state, self.rest), t1)
        return _Bends(first, last, sound)


class _Bends(NamedTuple):
    """f at both ends of a step, and the members (*batch) for which both are finite."""

    first: Tensor
    last: Tensor
    sound: Tensor


def _hermite(before: Tensor, after: Tensor, bends: _Bends, x: Tensor, dt: Tensor) -> Tensor:
    """The cubic through both states with both slopes, at the fraction x of the step."""
    bend = x * (1 - x) * dt
    rise = x * x * (3 - 2 * x)
    return before + rise * (after - before) + bend * ((1 - x) * bends.first - x * bends.last)


def _pick(rows: Tensor, index: Tensor) -> Tensor:
    """rows[index] for rows (N,), or member by member for rows (N, *batch); index and result (*batch)."""
    return rows[index] if rows.ndim == 1 else rows.gather(0, index[None])[0]
