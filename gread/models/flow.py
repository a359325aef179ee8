"""`Flow`: how H(T) is reached inside a network, decided here and nowhere else.

Linear equations on a normalised operator go by one polynomial of A, whatever the method: that of its steps, or, where
the method is adaptive and so near the exact flow as its tolerance says, that of the exact flow itself. Other equations
are stepped; both leave the host alone and can be captured as a graph, and members of one batch may have methods, steps
and times of their own. Adaptive methods of other equations, splittings and operators that are not normalised go through
`rdgraph.solve`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from rdgraph import solve
from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.run.solvers.flow_coefficients import full_degree
from rdgraph.run.solvers.linear_part import linear_part
from rdgraph.run.solvers.polynomial_flow import TOLERANCE, LinearFlow, Piece, Shortcut, is_polynomial
from rdgraph.run.solvers.schedules import Schedule, Schedules
from rdgraph.run.solvers.solution import Solution
from rdgraph.run.solvers.steppers import fixed_stepper
from rdgraph.vocabulary.methods import find_method

if TYPE_CHECKING:
    from gread.models.state_layout import StateLayout
    from gread.settings.gread_settings import GreadSettings
    from rdgraph.run.lowering.vector_field import VectorField
    from rdgraph.systems.system import System

#: Makes the field that a state implies, with attention computed from it where there is some.
MakeField = Callable[[Tensor], "VectorField"]
#: How a member is integrated: method, time and step.
Manner = tuple[str, float, float | None]

POLYNOMIAL, STEPS, SOLVE = "polynomial", "steps", "solve"
#: Polynomials up to this degree are taken whole; longer ones are cut where their coefficients no longer count.
WHOLE = 24
#: Room for coefficients that grow while the network is trained, in products; at least what derivatives need.
SPARE = 4
#: Degrees that differ by less than this are taken together.
QUANTUM = 8
#: Evaluations that a run by `solve` is reckoned with, when its memory is estimated.
RECKONED = 448
#: Evaluations that a step of a method without a tableau is reckoned with.
STAGES = 7


@dataclass(frozen=True, eq=False)
class Additions:
    """What a network adds to its equation on the way to H(T).

    Args:
        source: What H0 means in the equation, where it is not the start.
        after: What becomes of a state after the step of that number, such as dropout.
        change: What becomes of the slope f(t, H), such as a norm over the nodes.
        at: At which state in place of H the slope is taken, such as one clamped to an interval.
    """

    source: Tensor | None = None
    after: Callable[[int, Tensor], Tensor] | None = None
    change: Callable[[Tensor], Tensor] | None = None
    at: Callable[[Tensor], Tensor] | None = None

    @property
    def is_stepped(self) -> bool:
        """Whether something happens at every step, so that there have to be steps."""
        return self.after is not None or self.change is not None


#: Gradients beyond this size come from a pole that a state is about to hit.
STEEPEST = 1e6
#: Nothing: the equation as it is.
NONE = Additions()


def bounding(model: GreadSettings, layout: StateLayout) -> Additions:
    """What bounds the slopes of a network whose settings ask for it: tanh, at clamped states where poles are near.

    A slope without a value, which clamped states have where no interval is proved to avoid the poles, is 0.
    """
    region = model.region
    if not region.is_saturated:
        return NONE
    if not region.is_clamped:
        return Additions(change=torch.tanh)
    return Additions(change=lambda f: torch.tanh(f.nan_to_num()), at=lambda H: with_finite_gradient(layout.clamped(H)))


class _FiniteGradient(torch.autograd.Function):
    """x itself; of a gradient what a pole made infinite, undefined or huge is left out."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (gradient,) = gradients
        return torch.where(gradient.abs() <= STEEPEST, gradient, 0.0)


def with_finite_gradient(x: Tensor) -> Tensor:
    """x, to which entries of a gradient that are not finite, or beyond `STEEPEST`, are not passed on.

    >>> x = torch.tensor([0.0, 4.0], requires_grad=True)
    >>> with_finite_gradient(x).sqrt().sum().backward()
    >>> x.grad
    tensor([0.0000, 0.2500])
    """
    if not x.requires_grad or torch.compiler.is_compiling():
        return x
    return _FiniteGradient.apply(x)  # type: ignore[no-any-return, no-untyped-call]


@dataclass(frozen=True)
class Flow:
    """H(0) -> H(T) for fields of a system, in one of three forms: polynomial, steps or solve.

    `schedule` says how the time is cut where the form has steps or a polynomial, `whole` is the degree of the whole
    polynomial, the highest of all members, `is_live` says that the operator follows the state, `is_forced` that H0 in
    the equation is not the start but a source that is given.

    >>> import rdgraph as rd
    >>> field = rd.lower("BS", rd.generators.path(4).operator("row"), {"alpha": 1.0, "beta": 0.5})
    >>> flow = Flow.choose(field, "euler", 1.5, 0.5)
    >>> flow.form, flow.whole, flow.is_capturable
    ('polynomial', 6, True)
    >>> H0 = torch.eye(4)
    >>> H, _ = flow.run(lambda H: field, H0, torch.tensor(1.5), degree=6)
    >>> torch.allclose(H, rd.solve(field, H0, [0.0, 1.5], "euler", step=0.5).final, atol=1e-6)
    True
    """

    system: System
    form: str
    method: str
    step: float | None
    schedule: Schedule | Schedules | None
    whole: int = 0
    is_live: bool = False
    is_forced: bool = False

    @staticmethod
    def check(method: str, time: float, step: float | None, is_live: bool = False) -> None:
        """Raise for a wrong method, before any field is known: its name, its step, attention that needs steps."""
        record = find_method(method)
        if record.is_fixed:
            Schedule.make(method, time, step)
        elif is_live:
            raise NotApplicable(
                f"expected a method with steps for attention that follows the state, and for what is done between "
                f"steps, got {method}; take euler or rk4"
            )
        elif record.takes_step and step is None:
            raise InvalidArgument(f"expected a step for the method {method}, got none; pass step=0.5")

    @classmethod
    def choose(
        cls, field: VectorField, method: str, time: float, step: float | None, is_live: bool = False,
        added: Additions = NONE,
    ) -> Flow:  # fmt: skip
        """The cheapest form that is right for a field."""
        cls.check(method, time, step, is_live or added.is_stepped)
        record = find_method(method)
        is_forced = added.source is not None and field.uses_initial
        whole = not (is_live or added.is_stepped or (is_forced and not field.system.is_single))
        if whole and has_polynomial(method) and is_polynomial(field):
            schedule = _polynomial_schedule(method, time, step)
            degree = full_degree(linear_part(field), schedule)
            return cls(field.system, POLYNOMIAL, method, step, schedule, degree, is_forced=is_forced)
        if record.is_fixed:
            schedule = Schedule.make(method, time, step)
            return cls(field.system, STEPS, method, step, schedule, is_live=is_live, is_forced=is_forced)
        if is_forced:
            raise NotApplicable(
                f"expected a method with steps where H0 in the equation is not the start, got {method}; take euler or "
                "rk4"
            )
        return cls(field.system, SOLVE, method, step if record.takes_step else None, None)

    @classmethod
    def choose_each(
        cls, field: VectorField, manners: Sequence[Manner], is_live: bool = False, added: Additions = NONE
    ) -> Flow:
        """The flow of members that each have their method, time and step; one form has to be right for all."""
        first = cls.choose(field, *manners[0], is_live, added)
        others = dict.fromkeys(manners)
        for manner in others:
            cls.check(*manner, is_live or added.is_stepped)
        if first.form == SOLVE:
            if len({(method, step) for method, _, step in others}) > 1:
                raise InvalidArgument(f"expected one method and one step for {field.system}, got several")
            return first
        made = {manner: first._scheduled(*manner) for manner in others}
        schedule = Schedules.of([made[manner] for manner in manners])
        if first.form == STEPS:
            return replace(first, method=schedule.method, schedule=schedule)
        return replace(first, schedule=schedule, whole=full_degree(linear_part(field), schedule))

    def _scheduled(self, method: str, time: float, step: float | None) -> Schedule:
        """How a member of a flow of this form cuts its time."""
        return (_polynomial_schedule if self.form == POLYNOMIAL else Schedule.make)(method, time, step)

    @property
    def is_capturable(self) -> bool:
        """Whether nothing is asked of the host on the way."""
        return self.form != SOLVE

    @property
    def evaluations(self) -> int:
        """How often the field is evaluated, which a gradient keeps; a guess for `solve`, 0 for a polynomial."""
        if self.form == STEPS and self.schedule is not None:
            tableau = find_method(self.method).tableau
            return self.schedule.steps * (STAGES if tableau is None else len(tableau.weights))
        return RECKONED if self.form == SOLVE else 0

    @staticmethod
    def start_dtype(method: str, dtype: torch.dtype) -> torch.dtype:
        """The precision that a start of this one is taken in: an adaptive method needs room below its tolerance."""
        return torch.promote_types(dtype, torch.float32) if find_method(method).is_adaptive else dtype

    # ------------------------------------------------------------------ how long the polynomial is
    def needed(self, field: VectorField, H0: Tensor, time: Tensor, rtol: float = TOLERANCE) -> int:
        """How many products the polynomial of a field takes now; 0 for other forms."""
        if self.form != POLYNOMIAL or self.schedule is None:
            return 0
        return LinearFlow.needed(field, H0, self.schedule, time, rtol, is_forced=self.is_forced)

    def degree(self, field: VectorField, H0: Tensor, time: Tensor) -> int:
        """The largest degree that a member's polynomial needs, with room to grow in training; short ones are whole."""
        return max(self.degrees(field, H0, time), default=self.whole)

    def degrees(self, field: VectorField, H0: Tensor, time: Tensor) -> list[int]:
        """The degree every member's polynomial needs, with room to grow; empty where all are taken whole."""
        if self.form != POLYNOMIAL or self.schedule is None or self.whole <= WHOLE:
            return []
        room = max(SPARE, linear_part(field).order)
        needed = LinearFlow.needed_each(field, H0, self.schedule, time, TOLERANCE, is_forced=self.is_forced)
        return [min(self.whole, -(-(count + room) // SPARE) * SPARE) for count in needed]

    def is_cut(self, degree: int) -> bool:
        """Whether that many products leave something out, so that it has to be watched."""
        return degree < self.whole

    # ------------------------------------------------------------------ the run
    def run(
        self,
        make_field: MakeField,
        H0: Tensor,
        time: Tensor,
        degree: int,
        *,
        shortcut: Shortcut | None = None,
        watch: bool = False,
        added: Additions = NONE,
        pieces: Sequence[Piece] = (),
        segment: int = 0,
    ) -> tuple[Tensor, Tensor | None]:
        """H(T) for times (*batch), and with `watch` what the polynomial of every member leaves out (None elsewhere).

        With `pieces` some members take fewer products than `degree`. With a `segment` > 0 a gradient keeps what so many
        steps or terms leave behind, and computes the rest again.
        """
        if self.form == POLYNOMIAL and self.schedule is not None:
            source = added.source if self.is_forced else None
            flow = LinearFlow(self.schedule, degree, shortcut, pieces, segment)
            return flow.run(make_field(H0), H0, time, watch=watch, source=source)
        if self.schedule is not None:
            return self._stepped(make_field, H0, self.schedule, time, added, segment), None
        times = torch.stack([torch.zeros_like(time), time]) if time.ndim else torch.tensor([0.0, float(time)])
        return _reached(solve(make_field(H0), H0, times, self.method, step=self.step))[-1], None

    def states(self, make_field: MakeField, H0: Tensor, end: float, times: Tensor, added: Additions = NONE) -> Tensor:
        """H(t) (K, *batch, n, d) at rising times (K,) between 0 and `end`, by the method itself."""
        if self.is_live or self.is_forced or added.is_stepped:
            return torch.stack([self._until(make_field, H0, t.view(1), added) for t in times])
        step = self.step if find_method(self.method).takes_step else None
        return _reached(solve(make_field(H0), H0, [0.0, end], self.method, step=step, save_at=times))

    def _until(self, make_field: MakeField, H0: Tensor, time: Tensor, added: Additions) -> Tensor:
        """H at one time (1,) that all members share, by a run that ends there; H0 at 0."""
        if not float(time) > 0:
            return H0
        part = replace(self, schedule=self._scheduled(self.method, float(time), self.step))
        degree = part.needed(make_field(H0), H0, time)
        return part.run(make_field, H0, time, degree, added=added)[0]

    def _stepped(
        self, make_field: MakeField, H0: Tensor, schedule: Schedule | Schedules, time: Tensor, added: Additions,
        segment: int,
    ) -> Tensor:  # fmt: skip
        """Steps of one kind, told the time where it occurs; a live field is made anew from every state.

        A member that has ended is held. What is computed for it starts at H0, where it has been, and is not used.
        """
        start = H0 if added.source is None else added.source
        field: Any = _Live(self.system, make_field, start) if self.is_live else _bound(make_field(H0), start).prepared()
        field = field if added.change is None else _Changed(self.system, field, added.change, added.at)
        stepper = fixed_stepper(field, find_method(schedule.method))
        lengths = schedule.lengths(time.to(H0.dtype))

        def advance(H: Tensor, first: int, count: int) -> Tensor:
            for number in range(first, min(first + count, len(lengths))):
                begin = None if self.system.is_autonomous else schedule.begins(number, time)[..., None, None]
                going = schedule.going(number, H0.device)
                goes = None if going is None else going[..., None, None]
                at = H if goes is None else torch.where(goes, H, H0)
                state = stepper.advance(at, lengths[number][..., None, None], begin).state
                state = state if added.after is None else added.after(number, state)
                H = state if goes is None else torch.where(goes, state, H)
            return H

        if not segment or added.is_stepped or not torch.is_grad_enabled():
            # What is done beside the steps may count its calls, and is not done twice.
            return advance(H0, 0, len(lengths))
        H = H0
        for first in range(0, len(lengths), segment):
            # Random numbers come by counting, so that torch's generators need not be put back.
            H = checkpoint(advance, H, first, segment, use_reentrant=False, preserve_rng_state=False)
        return H


def _reached(solution: Solution) -> Tensor:
    """The saved states (K, *batch, n, d), without a number from where on a member's run had failed.

    What `solve` then holds is the last good state, which is not that of the flow at those times.
    """
    failed = solution.failed_at
    times = solution.times.reshape(len(solution.times), *solution.times.shape[1:] or (1,) * failed.ndim)
    late = times.to(failed) > failed
    return torch.where(late[..., None, None], torch.nan, solution.states)


def has_polynomial(method: str) -> bool:
    """Whether the flow of a linear equation by this method is a polynomial of A, or as near to one as it is to H(T).

    >>> [has_polynomial(method) for method in ("euler", "exact", "dopri5", "strang")]
    [True, True, True, False]
    """
    record = find_method(method)
    return record.is_exact or record.is_runge_kutta or record.is_adaptive


def _polynomial_schedule(method: str, time: float, step: float | None) -> Schedule:
    """How the time of a polynomial is cut: an adaptive method stands for the exact flow, which it approximates."""
    if not has_polynomial(method):
        raise InvalidArgument(f"expected a method whose flows are polynomials, got {method}; take euler, rk4 or exact")
    return Schedule("exact") if find_method(method).is_adaptive else Schedule.make(method, time, step)


def _bound(field: VectorField, H0: Tensor) -> VectorField:
    return field.bind(H0) if field.uses_initial else field


class _Changed:
    """A field whose slopes are changed before they are used."""

    def __init__(
        self, system: System, field: Callable[[object, Tensor], Tensor], change: Callable[[Tensor], Tensor],
        at: Callable[[Tensor], Tensor] | None,
    ) -> None:  # fmt: skip
        self.system, self.field, self.change, self.at = system, field, change, at

    @property
    def is_autonomous(self) -> bool:
        return self.system.is_autonomous

    def __call__(self, t: object, H: Tensor) -> Tensor:
        return self.change(self.field(t, H if self.at is None else self.at(H)))


class _Live:
    """A field whose operator is computed from the state at every evaluation."""

    def __init__(self, system: System, make_field: MakeField, start: Tensor) -> None:
        self.system, self.make_field, self.start = system, make_field, start

    @property
    def is_autonomous(self) -> bool:
        return self.system.is_autonomous

    def __call__(self, t: object, H: Tensor) -> Tensor:
        return _bound(self.make_field(H), self.start)(t, H)


def pieces_of(degrees: Sequence[int], quantum: int = QUANTUM) -> tuple[Piece, ...]:
    """Consecutive members with degrees that are alike up to a quantum; none where one piece is all.

    A piece has the highest degree of its members and of those before it, so members are best in rising order.

    >>> pieces_of([4, 6, 20, 16, 20]), pieces_of([20, 4]), pieces_of([4, 6, 20], 1)
    (((0, 2, 8), (2, 5, 20)), (), ((0, 1, 4), (1, 2, 6), (2, 3, 20)))
    """
    most = max(degrees, default=0)
    levels = [min(most, -(-highest // quantum) * quantum) for highest in accumulate(degrees, max)]
    starts = [k for k, level in enumerate(levels) if k == 0 or level != levels[k - 1]]
    if len(starts) < 2:
        return ()
    return tuple((a, b, levels[a]) for a, b in pairwise([*starts, len(levels)]))
