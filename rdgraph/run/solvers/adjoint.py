"""Gradients by the adjoint method, through torchdiffeq: dopri5 and the fixed steps, integrated backwards.

Members go one by one, so that no member's steps depend on its neighbours. torchdiffeq stops by an exception and loses
what it had; here a failing member is integrated once more up to the last time it reached. For dopri5 the failing
members are known before: `adaptive` finds them all at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from rdgraph.errors import NotApplicable
from rdgraph.run.solvers.adaptive_steps import Tolerances, integrate_adaptive
from rdgraph.run.solvers.solution import RunStatus, Stats
from rdgraph.run.solvers.steppers import first_is_nan

if TYPE_CHECKING:
    from rdgraph.run.lowering.vector_field import VectorField
    from rdgraph.vocabulary.methods import Method

#: A state that multiplies by more than 1 + this within one unit in the last place of the time is blowing up.
_GROWTH = 1e-6


@dataclass(frozen=True)
class AdjointSettings:
    """How to integrate every member: `method` is one that has an adjoint, `step` () or (*batch) is for fixed steps."""

    method: Method
    tolerances: Tolerances
    step: Tensor | None = None
    interpolation: str = "linear"

    @property
    def options(self) -> dict[str, Any]:
        """Further options for torchdiffeq's solver: step size and interpolation of fixed-step methods."""
        if self.method.is_adaptive:
            return {}
        return {"step_size": None if self.step is None else float(self.step), "interp": self.interpolation}

    def of_member(self, index: int) -> AdjointSettings:
        """The settings with the step of one member."""
        return self if self.step is None or not self.step.ndim else replace(self, step=self.step.flatten()[index])


class Member(NamedTuple):
    """One member's states (K, n, d), its status and the time of its last state (NaN where ok)."""

    states: Tensor
    status: RunStatus
    failed_at: float
    stats: Stats


class _Halt(Exception):
    """Ends the integration of a member inside torchdiffeq; not an error."""

    def __init__(self, status: RunStatus) -> None:
        super().__init__(status)
        self.status = status


class _Watched(nn.Module):
    """The field as torchdiffeq calls it: counts evaluations, keeps the last slopes, and halts when the state fails."""

    def __init__(self, field: VectorField, settings: AdjointSettings) -> None:
        super().__init__()
        self.field = field
        self.settings = settings
        self.evaluations = self.accepted = self.rejected = 0
        self.reached: Tensor | None = None
        self.watching = True
        self._recent: deque[Tensor] = deque(maxlen=7)
        if settings.method.is_adaptive:  # fixed steps are neither, and torchdiffeq warns of callbacks without use
            self.callback_accept_step, self.callback_reject_step = self._accept, self._reject

    def forward(self, t: Tensor, H: Tensor) -> Tensor:
        slope = self.field(t, H)
        if self.watching:
            self.evaluations += 1
            self._recent.append(slope.detach())
        return slope

    def callback_step(self, t0: Tensor, H: Tensor, dt: Tensor) -> None:
        """Check before every step whether it may be taken."""
        if not self.watching:
            return
        known = H.detach()
        self.judge(known)
        self.reached = t0.detach()
        if not self.settings.method.is_adaptive:
            self.accepted += 1
            return
        if self.accepted + self.rejected >= self.settings.tolerances.max_steps:
            raise _Halt(RunStatus.TOO_MANY_STEPS)
        if not bool(t0 + dt > t0):
            raise _Halt(self._broken(known) or self._underflow(known, float(t0)))

    def judge(self, H: Tensor) -> None:
        """Raise `_Halt` unless a state is finite and within the bound."""
        if not bool(H.abs().max() <= self.settings.tolerances.bound):
            raise _Halt(self._broken(H) or RunStatus.BLOW_UP)

    def _accept(self, t0: Tensor, H: Tensor, dt: Tensor) -> None:
        self.accepted += self.watching

    def _reject(self, t0: Tensor, H: Tensor, dt: Tensor) -> None:
        self.rejected += self.watching

    def _broken(self, H: Tensor) -> RunStatus | None:
        """The status of the first value that is not finite; None if there is none."""
        values = [H, *self._recent] if self.reached is None else [*self._recent, H]
        if all(bool(torch.isfinite(value).all()) for value in values):
            return None
        return RunStatus.NOT_A_NUMBER if bool(first_is_nan(values)) else RunStatus.BLOW_UP

    def _underflow(self, H: Tensor, time: float) -> RunStatus:
        """The status of a step below the resolution of time: blow-up, or an equation too stiff or rough."""
        with torch.no_grad():
            slope = self.field(time, H).double()
        size = float((H.double() ** 2).sum())
        growth = float((H.double() * slope).sum()) / size if size else 0.0
        return RunStatus.BLOW_UP if growth * float(np.spacing(abs(time))) > _GROWTH else RunStatus.STEP_UNDERFLOW

    def finish(self, H: Tensor) -> None:
        """Check the last state like the others; the backward pass of the adjoint is not checked."""
        self.judge(H)
        self.watching = False
        self._recent.clear()

    @property
    def stats(self) -> Stats:
        products = self.evaluations * self.field.plan.products
        return Stats(self.evaluations, products, self.accepted, self.rejected)


def integrate_members(field: VectorField, H0: Tensor, times: Tensor, settings: AdjointSettings) -> list[Member]:
    """Every member of the batch separately; times (K,) or (K, *batch), of which the first is the start."""
    columns = times.reshape(len(times), -1)
    starts = H0.reshape(-1, *H0.shape[-2:])
    failed = _failing(field, H0, times, settings.tolerances) if settings.method.is_adaptive else {}
    members = []
    for index, single in enumerate(_singles(field)):
        if index in failed:
            members.append(failed[index])
            continue
        member_times = columns[:, index if times.ndim > 1 else 0]
        bound = single.bind(starts[index]) if single.uses_initial else single
        members.append(_integrate(bound, starts[index], member_times, settings.of_member(index)))
    return members


@torch.no_grad()
def _failing(field: VectorField, H0: Tensor, times: Tensor, tolerances: Tolerances) -> dict[int, Member]:
    """The members that dopri5 cannot finish; the first of them carries the cost of finding out."""
    course = integrate_adaptive(field, H0, times, tolerances)
    failed: dict[int, Member] = {}
    for index in course.codes.nonzero().flatten().tolist():
        status = tuple(RunStatus)[int(course.codes[index])]
        cost = Stats() if failed else course.stats
        failed[index] = Member(course.states[:, index], status, float(course.failed_at[index]), cost)
    return failed


def _singles(field: VectorField) -> Iterator[VectorField]:
    if not field.batch:
        yield field
        return
    for index in range(int(np.prod(field.batch))):
        yield field.rebatched(index)


def _integrate(field: VectorField, H0: Tensor, times: Tensor, settings: AdjointSettings) -> Member:
    """One member: integrated to the end, or frozen where it failed.

    The backward pass from a state about to blow up would give NaN, so that a failed member is constant.
    """
    watched = _Watched(field, settings)
    try:
        watched.judge(H0.detach())
        return Member(_run(watched, H0, times), RunStatus.OK, float("nan"), watched.stats)
    except _Halt as halt:
        status = halt.status
    reached = times[0].detach() if watched.reached is None else watched.reached
    precise = times.double() if settings.method.is_adaptive else times
    reached_times = precise[precise.detach() <= reached]
    unbounded = replace(settings.tolerances, bound=float("inf"))
    # The last state has a value; a cubic through its slope, which may be infinite, has none.
    again = _Watched(field, replace(settings, tolerances=unbounded, interpolation="linear"))
    with torch.no_grad():
        states = _run(again, H0, torch.cat([reached_times, reached.to(precise)[None]]))
    frozen = states[-1].detach().expand(len(times) - len(reached_times), *H0.shape)
    return Member(torch.cat([states[:-1], frozen]), status, float(reached), watched.stats + again.stats)


class _OnceDifferentiable(torch.autograd.Function):
    """The identity. The gradient of the adjoint method is not recorded, so a second one would silently be zero."""

    @staticmethod
    def forward(ctx: Any, states: Tensor) -> Tensor:
        return states.view_as(states)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        if torch.is_grad_enabled():
            raise NotApplicable(
                "expected first derivatives alone with adjoint=True, got a gradient that is to be differentiated again "
                "(create_graph=True); take adjoint=False"
            )
        return g


def _run(watched: _Watched, H0: Tensor, times: Tensor) -> Tensor:
    """States at the times, which may repeat, unlike in torchdiffeq. Halts where the member fails."""
    import torchdiffeq

    known = times.detach()
    rises = torch.cat([known.new_ones(1, dtype=torch.bool), known.diff() > 0])
    if not bool(rises[1:].any()):
        return H0.expand(len(times), *H0.shape)
    settings = watched.settings
    solved = torchdiffeq.odeint_adjoint(
        watched, H0, times[rises].to(H0.device), method=settings.method.adjoint, options=settings.options,
        rtol=settings.tolerances.rtol, atol=settings.tolerances.atol, adjoint_params=watched.field.tensors(),
    )  # fmt: skip
    states = _OnceDifferentiable.apply(solved)  # type: ignore[no-untyped-call]
    watched.finish(states[-1].detach())
    return states[rises.cumsum(0) - 1]
