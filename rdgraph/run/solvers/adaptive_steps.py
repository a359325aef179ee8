"""dopri5 for a whole batch: every attempt is one step of all active members, each at its own time.

A member has its own time, step length, error norm and verdict; the field is evaluated for all of them together. Who is
done or has failed leaves the group, so that a batch takes as many evaluations as its slowest member. Step control
follows torchdiffeq. Gradients are those of the accepted steps, which are taken a second time for them: nothing of the
attempts that were rejected, or of the way into a blow-up, is differentiated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from rdgraph.errors import NotApplicable
from rdgraph.run.solvers.compiled_steps import Compilation, CompiledMembers
from rdgraph.run.solvers.fixed_steps import is_within
from rdgraph.run.solvers.solution import RunStatus, Stats
from rdgraph.run.solvers.steppers import combine, first_is_nan
from rdgraph.vocabulary.methods import methods

if TYPE_CHECKING:
    from rdgraph.run.lowering.vector_field import VectorField
    from rdgraph.run.solvers.compiled_steps import CompiledMembers


# ---------------------------------------------------------------------- dormand prince
# One attempted step of Dormand and Prince's pair, for many members at once, each with its own step length.
#
# The state of order 5 is kept, its difference from order 4 is the error, and a quartic through the middle of the step
# gives states in between (Shampine, Some practical Runge-Kutta formulas, 1986): the formulas of torchdiffeq's dopri5.

#: Evaluations of one attempt: its first slope is the last one of the previous step.
EVALUATIONS = 6
#: Weights of the method of order 4, and of the state in the middle of the step.
_FOURTH = ("1951/21600", "0", "22642/50085", "451/720", "-12231/42400", "649/6300", "1/60")
_MIDDLE = (
    "6025192743/60171106304", "0", "51252292925/130801643196", "-2691868925/90256659456",
    "187940372067/3189068634112", "-1776094331/39487288512", "11237099/470086768",
)  # fmt: skip


@cache
def _weights() -> tuple[list[list[float]], list[float], list[float]]:
    """The stages, the error and the middle as sums of slopes."""
    tableau = methods["dopri5"]
    stages = [[float(a) for a in row] for row in tableau.stages[1:]]
    error = [float(Fraction(str(b)) - Fraction(c)) for b, c in zip(tableau.weights, _FOURTH, strict=True)]
    return stages, error, [float(Fraction(c)) for c in _MIDDLE]


@dataclass(frozen=True, eq=False)
class Attempt:
    """One attempted step: `before` and `state` (m, n, d) at its ends, its seven slopes, and `dt` (m, 1, 1).

    >>> H = torch.ones(1, 1, 1, dtype=torch.float64)
    >>> tried = Attempt.make(lambda H, node: -H, H, -H, torch.full((1, 1, 1), 0.5, dtype=torch.float64))
    >>> round(tried.state.item(), 6), round(tried.between(torch.tensor([0.5])).item(), 5)
    (0.606536, 0.77879)
    """

    before: Tensor
    state: Tensor
    slopes: tuple[Tensor, ...]
    dt: Tensor

    @classmethod
    def make(cls, field: Callable[[Tensor, float], Tensor], before: Tensor, slope: Tensor, dt: Tensor) -> Attempt:
        """Six evaluations of the field at fractions of the step, from a state (m, n, d) and the slope there."""
        slopes, state = [slope], before
        for row in _weights()[0]:
            state = combine(before, dt, row, slopes)
            slopes.append(field(state, sum(row)))
        return cls(before, state, tuple(slopes), dt)

    def rows(self, index: Tensor) -> Attempt:
        """The attempted step of some members."""
        slopes = tuple(slope.index_select(0, index) for slope in self.slopes)
        parts = (x.index_select(0, index) for x in (self.before, self.state))
        return replace(self, **dict(zip(("before", "state"), parts, strict=True)), slopes=slopes, dt=self.dt[index])

    def error(self, rtol: float, atol: float) -> Tensor:
        """Error in units of the tolerance, (m,): root mean square of error/(atol + rtol*|H|)."""
        error = combine(torch.zeros_like(self.before), self.dt, _weights()[1], self.slopes)
        return root_mean_square(error / (atol + rtol * torch.maximum(self.before.abs(), self.state.abs())))

    def between(self, x: Tensor) -> Tensor:
        """States at the fractions x (m,) of the step."""
        first, last, dt = self.slopes[0], self.slopes[-1], self.dt
        start, end, middle = self.before, self.state, combine(self.before, dt, _weights()[2], self.slopes)
        quartic = 2 * dt * (last - first) - 8 * (end + start) + 16 * middle
        cubic = dt * (5 * first - 3 * last) + 18 * start + 14 * end - 32 * middle
        square = dt * (last - 4 * first) - 11 * start - 5 * end + 16 * middle
        x = x.to(start.dtype)[:, None, None]
        return start + x * (dt * first + x * (square + x * (cubic + x * quartic)))


def root_mean_square(values: Tensor) -> Tensor:
    """sqrt(mean of squares) of every member, (m, n, d) to (m,), float64.

    >>> root_mean_square(torch.tensor([[[3.0], [4.0]], [[0.0], [2.0]]])).square()
    tensor([12.5000,  2.0000], dtype=torch.float64)
    """
    return (inner(values, values) / values[0].numel()).sqrt()


def inner(left: Tensor, right: Tensor) -> Tensor:
    """Sum of left*right of every member, (m, n, d) twice to (m,), float64.

    Summed in pairs, elementwise, so that the bits of a member do not depend on how many there are.
    """
    terms = (left.double() * right.double()).flatten(1)
    while (width := terms.shape[1]) > 1:
        half = width // 2
        folded = terms[:, :half] + terms[:, width - half :]
        terms = torch.cat([folded, terms[:, half : width - half]], 1) if width % 2 else folded
    return terms[:, 0]


# ---------------------------------------------------------------------- active members
# The active members of a batch, and their saved states.


class Saves:
    """Saved states in any order, each with the index of its time and its member."""

    def __init__(self) -> None:
        self._rows: list[Tensor] = []
        self._times: list[np.ndarray] = []
        self._members: list[np.ndarray] = []

    def add(self, times: np.ndarray, members: np.ndarray, states: Tensor) -> None:
        """Add states (q, n, d) with the indices of their times and members."""
        if len(times):
            self._rows.append(states)
            self._times.append(times)
            self._members.append(members)

    def states(self, count: int, members: int) -> Tensor:
        """All saved states, (count, members, n, d)."""
        rows = torch.cat(self._rows)
        order = np.lexsort((np.concatenate(self._members), np.concatenate(self._times)))
        return rows[index_like(order, rows)].view(count, members, *rows.shape[1:])


@dataclass(frozen=True, eq=False)
class Group:
    """The active members: their indices (m,), field, states and slopes (m, n, d)."""

    members: np.ndarray
    field: VectorField | CompiledMembers
    state: Tensor
    slope: Tensor

    @classmethod
    def make(
        cls, field: VectorField | CompiledMembers, starts: Tensor, members: np.ndarray, times: np.ndarray
    ) -> Group:
        """Some members at their start and its time (m,); one evaluation."""
        index = index_like(members, starts)
        chosen, state = field.members(index).prepared(), starts.index_select(0, index)
        return cls(members, chosen, state, chosen(like(times, state), state))

    def attempt(self, times: np.ndarray, steps: np.ndarray) -> Attempt:
        """A step of every member from its own time by its own length (m,)."""
        dt = torch.from_numpy(steps).to(self.state)[:, None, None]
        if self.field.is_autonomous:
            return Attempt.make(lambda H, node: self.field(None, H), self.state, self.slope, dt)
        t = like(times, self.state)[:, None, None].to(self.state.dtype)
        return Attempt.make(lambda H, node: self.field(t + node * dt, H), self.state, self.slope, dt)

    def selected(self, mask: np.ndarray) -> Group:
        """The members that continue."""
        if mask.all():
            return self
        index = index_like(np.flatnonzero(mask), self.state)
        parts = (x.index_select(0, index) for x in (self.state, self.slope))
        return Group(self.members[mask], self.field.members(index).prepared(), *parts)


def host(values: Tensor) -> np.ndarray:
    """The numbers of a tensor."""
    return values.detach().cpu().numpy()


def like(values: np.ndarray, model: Tensor) -> Tensor:
    """Host numbers as a float64 tensor on the device of another tensor."""
    return torch.from_numpy(values).to(model.device)


def index_like(numbers: np.ndarray, model: Tensor) -> Tensor:
    """Numbers of members or times as an index tensor on the device of another tensor."""
    return torch.from_numpy(np.asarray(numbers, dtype=np.int64)).to(model.device)


# ---------------------------------------------------------------------- adaptive steps
#: How many steps a member may try by default.
MAX_STEPS = 10_000
#: Factors on the step length: aimed below the tolerance, at most ten times longer, at most five times shorter.
SAFETY, LONGER, SHORTER = 0.9, 10.0, 0.2
#: The shortest step of a diverging state, as a share of the whole time.
SHORTEST = 1e-12
#: A state diverges where one such step multiplies it by more than 1 + this, at ten times the rate of the start.
_GROWTH, _FASTER = 1e-6, 10.0
#: Sources of a saved state other than a step: the start, or the last state of a failed member.
_START, _LEFT = -1, -2


@dataclass(frozen=True)
class Tolerances:
    """Tolerances of a step, the bound of a state, and the most attempts of a member."""

    rtol: float
    atol: float
    bound: float
    max_steps: int = MAX_STEPS


class AdaptiveIntegration(NamedTuple):
    """States (K, B, n, d) at all times, `RunStatus` codes (B,), when a member failed (B,), NaN where it did not."""

    states: Tensor
    codes: Tensor
    failed_at: Tensor
    stats: Stats


def integrate_adaptive(
    field: VectorField, H0: Tensor, times: Tensor, tolerances: Tolerances, asked: Compilation | None = None
) -> AdaptiveIntegration:
    """All members of a batch from H0 (*batch, n, d); times (K,) or (K, *batch) never fall, and the first is the start.

    As in torchdiffeq the steps do not land on the times: states there are interpolated.
    """
    starts = H0.reshape(-1, *H0.shape[-2:])
    columns = times.reshape(len(times), -1).double().expand(-1, len(starts))
    every = field.bind(H0) if field.uses_initial else field
    scheduled = None if asked is None else asked.of(every, H0)
    with torch.no_grad():
        search = _StepSearch(
            every if scheduled is None else CompiledMembers(every, scheduled),
            starts,
            columns.detach().cpu().numpy(),
            tolerances,
        )
        search.run()
    states, stats = search.saves.states(len(columns), len(starts)), search.stats
    wanted = H0.requires_grad or times.requires_grad or any(x.requires_grad for x in every.tensors())
    if wanted and torch.is_grad_enabled():
        states, evaluations = _repeat(every, starts, columns.to(H0.device), search, states)
        stats = stats + Stats(evaluations, evaluations * field.plan.products)
    codes = torch.from_numpy(search.codes).to(H0.device)
    failed_at = torch.from_numpy(np.where(search.codes > 0, search.time, np.nan)).to(H0.device, times.dtype)
    return AdaptiveIntegration(states, codes, failed_at, stats)


class _StepSearch:
    """The search for the steps and the status of every member; times stay on the host, (B,) in float64."""

    def __init__(
        self, field: VectorField | CompiledMembers, starts: Tensor, times: np.ndarray, tolerances: Tolerances
    ) -> None:
        self.field, self.starts, self.times, self.tolerances = field, starts, times, tolerances
        count = times.shape[1]
        self.time, self.step = times[0].copy(), np.zeros(count)
        self.rate, self.tries, self.accepted = np.zeros(count), np.zeros(count, int), np.zeros(count, int)
        self.broken, self.codes = np.zeros(count, int), np.zeros(count, int)
        self.next_save = np.zeros(count, int)
        #: Begin and length of the accepted steps of every member.
        self.steps: list[list[tuple[float, float]]] = [[] for _ in range(count)]
        #: The accepted step that contains each save, (K, B).
        self.source_step = np.full(times.shape, _START)
        self.saves, self.evaluations = Saves(), 0

    @property
    def stats(self) -> Stats:
        done = int(self.accepted.sum())
        products = self.evaluations * self.field.plan.products
        return Stats(self.evaluations, products, done, int(self.tries.sum()) - done)

    def run(self) -> None:
        with np.errstate(all="ignore"):
            group = self._begin()
            while group is not None and len(group.members):
                group = self._give_up(group)
                if len(group.members):
                    group = self._advance(group)

    # ------------------------------------------------------------------ the start
    def _begin(self) -> Group | None:
        """The members with a valid start that move, with their first step; the others are finished."""
        within = is_within(self.starts, self.tolerances.bound)
        undefined = first_is_nan([self.starts])
        codes = torch.where(undefined, RunStatus.NOT_A_NUMBER.code, RunStatus.BLOW_UP.code)
        self.codes = torch.where(within, RunStatus.OK.code, codes).cpu().numpy()
        everyone = np.arange(len(self.codes))
        waiting = self.times == self.times[0]
        for k, row in enumerate(waiting):
            there = everyone[row & (self.codes == 0)]
            self._save(k, there, self.starts[index_like(there, self.starts)])
        self._leave(everyone[self.codes > 0], self.starts)
        moving = everyone[~waiting[-1] & (self.codes == 0)]
        if not len(moving):
            return None
        group = Group.make(self.field, self.starts, moving, self.time[moving])
        self.evaluations += 1
        self._look_for_broken(moving, [group.state, group.slope])
        self.rate[moving] = _growth(group)
        self.step[moving] = self._first_steps(group)
        return group

    def _first_steps(self, group: Group) -> np.ndarray:
        """The rule of Hairer, Nørsett and Wanner (II.4), which needs one more evaluation."""
        scale = self.tolerances.atol + self.tolerances.rtol * group.state.abs()
        size, speed = (host(root_mean_square(x / scale)) for x in (group.state, group.slope))
        trial = np.where((size < 1e-5) | (speed < 1e-5), 1e-6, 0.01 * size / speed)
        dt = torch.from_numpy(trial).to(group.state)[:, None, None]
        ahead = group.field(like(self.time[group.members] + trial, dt), torch.addcmul(group.state, dt, group.slope))
        self.evaluations += 1
        bend = host(root_mean_square((ahead - group.slope) / scale)) / trial
        largest = np.where(bend > speed, bend, speed)
        flat = (speed <= 1e-15) & (bend <= 1e-15)
        return np.minimum(100 * trial, np.where(flat, np.maximum(1e-6, 1e-3 * trial), (0.01 / largest) ** 0.2))

    # ------------------------------------------------------------------ one attempt
    def _advance(self, group: Group) -> Group:
        who = group.members
        steps = self.step[who]
        attempt = group.attempt(self.time[who], steps)
        self.evaluations += EVALUATIONS
        self.tries[who] += 1
        error = attempt.error(self.tolerances.rtol, self.tolerances.atol)
        ratio, peak = host(torch.stack([error, attempt.state.abs().amax((-2, -1)).double()]))
        self.broken[who] = 0
        if not np.isfinite(ratio).all():
            self._look_for_broken(who, attempt.slopes)
        good = ratio <= 1
        begin, end = self.time[who], self.time[who] + steps
        arrives = good & (end >= self.times[-1, who])
        good, stay = self._judge(group, attempt, good, arrives, peak)
        self._pass_saves(attempt, who, good, begin, end)
        self._record(who, good, begin, steps)
        self.step[who] = steps * _factor(ratio)
        accepted = torch.from_numpy(good).to(group.state.device)[:, None, None]
        state = torch.where(accepted, attempt.state, group.state)
        slope = torch.where(accepted, attempt.slopes[-1], group.slope)
        return Group(who, group.field, state, slope).selected(stay & ~(good & arrives))

    def _judge(
        self, group: Group, attempt: Attempt, good: np.ndarray, arrives: np.ndarray, peak: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Accepted steps and the members that stay: a state beyond the bound is rejected and ends its member.

        The end of the last step may lie beyond the last time; the interpolated state is checked there.
        """
        if arrives.any():
            some = np.flatnonzero(arrives)
            begin, steps = self.time[group.members[some]], self.step[group.members[some]]
            fraction = (self.times[-1, group.members[some]] - begin) / ((begin + steps) - begin)
            last = attempt.rows(index_like(some, attempt.state)).between(like(fraction, attempt.state))
            peak[some] = host(last.abs().amax((-2, -1)).double())
        beyond = good & ~(peak <= self.tolerances.bound)
        failed = group.members[beyond]
        self.codes[failed] = RunStatus.BLOW_UP.code
        self._leave(failed, group.state, np.flatnonzero(beyond))
        return good & ~beyond, ~beyond

    def _pass_saves(
        self, attempt: Attempt, who: np.ndarray, good: np.ndarray, begin: np.ndarray, end: np.ndarray
    ) -> None:
        """Interpolate all saves in the accepted steps."""
        while True:
            number = np.minimum(self.next_save[who], len(self.times) - 1)
            due = good & (self.next_save[who] < len(self.times)) & (self.times[number, who] <= end)
            if not due.any():
                return
            some = np.flatnonzero(due)
            at, members = number[some], who[some]
            fraction = (self.times[at, members] - begin[some]) / (end[some] - begin[some])
            rows = attempt.rows(index_like(some, attempt.state))
            self.source_step[at, members] = self.accepted[members]
            self.saves.add(at, members, rows.between(like(fraction, rows.state)))
            self.next_save[members] += 1

    def _record(self, who: np.ndarray, good: np.ndarray, begin: np.ndarray, steps: np.ndarray) -> None:
        for k in np.flatnonzero(good):
            self.steps[who[k]].append((float(begin[k]), float(steps[k])))
        self.accepted[who[good]] += 1
        self.time[who[good]] = (begin + steps)[good]

    # ------------------------------------------------------------------ the end
    def _give_up(self, group: Group) -> Group:
        """End the members whose next step is too short or exceeds the attempts, with the reason."""
        who = group.members
        time, step = self.time[who], self.step[who]
        unresolved = ~(time + step > time)
        short = unresolved | (step <= SHORTEST * (self.times[-1, who] - self.times[0, who]))
        codes = np.where(self.tries[who] >= self.tolerances.max_steps, RunStatus.TOO_MANY_STEPS.code, 0)
        if short.any():
            rate = _growth(group)
            reach = np.fmax(step, np.spacing(np.abs(time)))
            faster = unresolved | (rate > _FASTER * np.maximum(self.rate[who], 0))
            runs_away = short & faster & (rate * reach > _GROWTH)
            codes[unresolved] = RunStatus.STEP_UNDERFLOW.code
            codes[runs_away] = RunStatus.BLOW_UP.code
            codes = np.where(short & (self.broken[who] > 0), self.broken[who], codes)
        if not codes.any():
            return group
        self.codes[who] = codes
        self._leave(who[codes > 0], group.state, np.flatnonzero(codes))
        return group.selected(codes == 0)

    def _look_for_broken(self, who: np.ndarray, values: list[Tensor] | tuple[Tensor, ...]) -> None:
        """Record the members with a value that is not finite, and whether NaN or infinity came first."""
        finite = torch.stack([torch.isfinite(value).all(-1).all(-1) for value in values]).all(0)
        codes = torch.where(first_is_nan(values), RunStatus.NOT_A_NUMBER.code, RunStatus.BLOW_UP.code)
        self.broken[who] = host(torch.where(finite, RunStatus.OK.code, codes))

    def _save(self, number: int, members: np.ndarray, states: Tensor) -> None:
        self.saves.add(np.full(len(members), number), members, states)
        self.next_save[members] = number + 1

    def _leave(self, members: np.ndarray, states: Tensor, rows: np.ndarray | None = None) -> None:
        """Fill the remaining saves of a member with its last state."""
        for member, row in zip(members, members if rows is None else rows, strict=True):
            missing = np.arange(self.next_save[member], len(self.times))
            self.source_step[missing, member] = _LEFT
            self.saves.add(missing, np.full(len(missing), member), states[row].expand(len(missing), -1, -1))


def _repeat(
    field: VectorField, starts: Tensor, times: Tensor, search: _StepSearch, states: Tensor
) -> tuple[Tensor, int]:
    """The accepted steps repeated with gradients: states (K, B, n, d) and the number of evaluations.

    Step lengths are constants. Steps behind the last save of a member are not repeated; the last state of a failed
    member is a constant.
    """
    source_steps, saves = search.source_step, Saves()
    for code, source in ((_START, starts.expand_as(states)), (_LEFT, states)):
        number, member = np.nonzero(source_steps == code)
        saves.add(number, member, source[index_like(number, states), index_like(member, states)])
    if times.requires_grad and not field.is_autonomous:
        raise NotApplicable(
            f"expected an autonomous system for a gradient in the times by dopri5, got {field.system.text}; "
            "take fixed steps"
        )
    shift = times[0] - times[0].detach()
    counts = source_steps.max(0) + 1
    moving = np.flatnonzero(counts > 0)
    if not len(moving):
        return saves.states(len(times), len(starts)), 0
    group = Group.make(field, starts, moving, search.times[0, moving])
    for k in range(int(counts.max())):
        group = group.selected(counts[group.members] > k)
        who = group.members
        begin, steps = (np.array(x) for x in zip(*(search.steps[member][k] for member in who), strict=True))
        attempt = group.attempt(begin, steps)
        number, row = np.nonzero(source_steps[:, who] == k)
        if len(number):
            at = times[index_like(number, states), index_like(who[row], states)] - shift[index_like(who[row], states)]
            length = like((begin + steps) - begin, times)
            fraction = (at - like(begin[row], times)) / length[index_like(row, states)]
            saves.add(number, who[row], attempt.rows(index_like(row, states)).between(fraction))
        group = Group(who, group.field, attempt.state, attempt.slopes[-1])
    return saves.states(len(times), len(starts)), 1 + EVALUATIONS * int(counts.max())


def _factor(ratio: np.ndarray) -> np.ndarray:
    """The factor of the next step length, for errors in units of the tolerance; NaN counts as far too large."""
    factor = np.clip(SAFETY / ratio**0.2, np.where(ratio < 1, 1.0, SHORTER), LONGER)
    return np.where(np.isnan(ratio), SHORTER, factor)


def _growth(group: Group) -> np.ndarray:
    """d log|H|/dt of every member, (m,), zero for a zero state."""
    rate = host(inner(group.state, group.slope)) / host(inner(group.state, group.state))
    return np.nan_to_num(rate, nan=0.0)
