"""`Flow`: how a network computes H(T); all of this choice is made here.

For linear equations on a normalised operator every method is one polynomial of A: that of its steps, or for adaptive
methods that of the exact flow, which they approximate to their tolerance. Other equations are stepped. Neither
synchronises with the host, so both can be captured as a CUDA graph, and members of one batch may have different
methods, steps and times. Adaptive methods for other equations, splittings and operators that are not normalised use
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

#: Returns the field for a state, with the attention computed from it.
MakeField = Callable[[Tensor], "VectorField"]
#: How a member is integrated: method, time and step.
Integration = tuple[str, float, float | None]

POLYNOMIAL, STEPS, SOLVE = "polynomial", "steps", "solve"
#: Polynomials up to this degree are computed whole; longer ones are truncated where coefficients become negligible.
WHOLE = 24
#: Additional products for coefficients that grow in training; at least what derivatives need.
SPARE = 4
#: Degrees that differ by less than this are computed together.
QUANTUM = 8
#: The assumed evaluations of a run by `solve` in memory estimates.
RECKONED = 448
#: The assumed evaluations of a step of a method without a tableau.
STAGES = 7


@dataclass(frozen=True, eq=False)
class Additions:
    """What a network adds to its equation during the flow.

    Args:
        source: The value of H0 in the equation, if it is not the initial state.
        after: A function of the step number and the state after it, such as dropout.
        change: A function of the slope f(t, H), such as a norm over the nodes.
        at: The state at which the slope is evaluated instead of H, such as H clamped to an interval.
    """

    source: Tensor | None = None
    after: Callable[[int, Tensor], Tensor] | None = None
    change: Callable[[Tensor], Tensor] | None = None
    at: Callable[[Tensor], Tensor] | None = None

    @property
    def is_stepped(self) -> bool:
        """Whether something happens at every step, so that the method must have steps."""
        return self.after is not None or self.change is not None


#: Gradients beyond this size come from a state that is close to a pole.
STEEPEST = 1e6
#: No additions: the plain equation.
NONE = Additions()


def bounding(model: GreadSettings, layout: StateLayout) -> Additions:
    """The additions that bound the slopes of a network: tanh, at clamped states if the equation has poles.

    An undefined slope, possible at clamped states if no interval is proved to avoid the poles, becomes 0.
    """
    region = model.region
    if not region.is_saturated:
        return NONE
    if not region.is_clamped:
        return Additions(change=torch.tanh)
    return Additions(change=lambda f: torch.tanh(f.nan_to_num()), at=lambda H: with_finite_gradient(layout.clamped(H)))


class _FiniteGradient(torch.autograd.Function):
    """The identity; entries of the gradient that a pole made infinite, undefined or huge become 0."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (gradient,) = gradients
        return torch.where(gradient.abs() <= STEEPEST, gradient, 0.0)


def with_finite_gradient(x: Tensor) -> Tensor:
    """x, with entries of its gradient that are not finite, or exceed `STEEPEST`, set to 0.

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
    """The map H(0) -> H(T) for fields of a system, in one of three forms: polynomial, steps or solve.

    `schedule` divides the time for steps or a polynomial, `whole` is the full degree of the polynomial, the highest of
    all members, `is_live` says that the operator follows the state, `is_forced` that H0 in the equation is not the
    initial state but a given source.

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
        """Raise for an invalid method before the field is known: its name, its step, attention that needs steps."""
        record = find_method(method)
        if record.is_fixed:
            Schedule.make(method, time, step)
        elif is_live:
            raise NotApplicable(
                f"expected a method with steps for attention that follows the state, or for operations between steps, "
                f"got {method}; use euler or rk4"
            )
        elif record.takes_step and step is None:
            raise InvalidArgument(f"expected a step for the method {method}, got none; pass step=0.5")

    @classmethod
    def choose(
        cls, field: VectorField, method: str, time: float, step: float | None, is_live: bool = False,
        added: Additions = NONE,
    ) -> Flow:  # fmt: skip
        """The cheapest correct form for a field."""
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
                f"expected a method with steps, since H0 in the equation is not the initial state, got {method}; use "
                "euler or rk4"
            )
        return cls(field.system, SOLVE, method, step if record.takes_step else None, None)

    @classmethod
    def choose_each(
        cls, field: VectorField, each: Sequence[Integration], is_live: bool = False, added: Additions = NONE
    ) -> Flow:
        """The flow of members with separate methods, times and steps, which must share one form."""
        first = cls.choose(field, *each[0], is_live, added)
        different = dict.fromkeys(each)
        for integration in different:
            cls.check(*integration, is_live or added.is_stepped)
        if first.form == SOLVE:
            if len({(method, step) for method, _, step in different}) > 1:
                raise InvalidArgument(f"expected one method and one step for {field.system}, got several")
            return first
        schedules = {integration: first._scheduled(*integration) for integration in different}
        schedule = Schedules.of([schedules[integration] for integration in each])
        if first.form == STEPS:
            return replace(first, method=schedule.method, schedule=schedule)
        return replace(first, schedule=schedule, whole=full_degree(linear_part(field), schedule))

    def _scheduled(self, method: str, time: float, step: float | None) -> Schedule:
        """The schedule of a member of this flow."""
        return (_polynomial_schedule if self.form == POLYNOMIAL else Schedule.make)(method, time, step)

    @property
    def is_capturable(self) -> bool:
        """Whether the flow never synchronises with the host."""
        return self.form != SOLVE

    @property
    def evaluations(self) -> int:
        """The number of evaluations of the field; an estimate for `solve`, 0 for a polynomial."""
        if self.form == STEPS and self.schedule is not None:
            tableau = find_method(self.method).tableau
            return self.schedule.steps * (STAGES if tableau is None else len(tableau.weights))
        return RECKONED if self.form == SOLVE else 0

    @staticmethod
    def start_dtype(method: str, dtype: torch.dtype) -> torch.dtype:
        """The precision for an initial state of `dtype`: an adaptive method needs digits below its tolerance."""
        return torch.promote_types(dtype, torch.float32) if find_method(method).is_adaptive else dtype

    # ------------------------------------------------------------------ degrees of polynomials
    def needed(self, field: VectorField, H0: Tensor, time: Tensor, rtol: float = TOLERANCE) -> int:
        """The number of products that the polynomial of a field needs now; 0 for other forms."""
        if self.form != POLYNOMIAL or self.schedule is None:
            return 0
        return LinearFlow.needed(field, H0, self.schedule, time, rtol, is_forced=self.is_forced)

    def degree(self, field: VectorField, H0: Tensor, time: Tensor) -> int:
        """The largest degree that a member's polynomial needs, with some spare; short polynomials are whole."""
        return max(self.degrees(field, H0, time), default=self.whole)

    def degrees(self, field: VectorField, H0: Tensor, time: Tensor) -> list[int]:
        """The degree that every member's polynomial needs, with some spare; empty if all are whole."""
        if self.form != POLYNOMIAL or self.schedule is None or self.whole <= WHOLE:
            return []
        spare = max(SPARE, linear_part(field).order)
        needed = LinearFlow.needed_each(field, H0, self.schedule, time, TOLERANCE, is_forced=self.is_forced)
        return [min(self.whole, -(-(count + spare) // SPARE) * SPARE) for count in needed]

    def is_cut(self, degree: int) -> bool:
        """Whether a polynomial of this degree is truncated, so that its tail must be watched."""
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
        """H(T) for times (*batch), and with `watch` the truncation of every member's polynomial (else None).

        With `pieces` some members use fewer products than `degree`. With a `segment` > 0 the gradient keeps one state
        per `segment` steps or terms and recomputes the others.
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
        """H(t) (K, *batch, n, d) at increasing times (K,) between 0 and `end`, by the same method."""
        if self.is_live or self.is_forced or added.is_stepped:
            return torch.stack([self._until(make_field, H0, t.view(1), added) for t in times])
        step = self.step if find_method(self.method).takes_step else None
        return _reached(solve(make_field(H0), H0, [0.0, end], self.method, step=step, save_at=times))

    def _until(self, make_field: MakeField, H0: Tensor, time: Tensor, added: Additions) -> Tensor:
        """H at one time (1,) shared by all members, by a run that ends there; H0 at time 0."""
        if not float(time) > 0:
            return H0
        part = replace(self, schedule=self._scheduled(self.method, float(time), self.step))
        degree = part.needed(make_field(H0), H0, time)
        return part.run(make_field, H0, time, degree, added=added)[0]

    def _stepped(
        self, make_field: MakeField, H0: Tensor, schedule: Schedule | Schedules, time: Tensor, added: Additions,
        segment: int,
    ) -> Tensor:  # fmt: skip
        """H(T) by steps, with the time if it occurs in the equation; a live field is recomputed from every state.

        The state of a finished member is kept; the unused steps computed for it start at H0, where they are defined.
        """
        start = H0 if added.source is None else added.source
        field: Any = _Live(self.system, make_field, start) if self.is_live else _bound(make_field(H0), start).prepared()
        field = field if added.change is None else _Changed(self.system, field, added.change, added.at)
        stepper = fixed_stepper(field, find_method(schedule.method))
        lengths = schedule.lengths(time.to(H0.dtype))

        def advance(H: Tensor, first: int, count: int) -> Tensor:
            for number in range(first, min(first + count, len(lengths))):
                begin = None if self.system.is_autonomous else schedule.begins(number, time)[..., None, None]
                unfinished = schedule.going(number, H0.device)
                active = None if unfinished is None else unfinished[..., None, None]
                at = H if active is None else torch.where(active, H, H0)
                state = stepper.advance(at, lengths[number][..., None, None], begin).state
                state = state if added.after is None else added.after(number, state)
                H = state if active is None else torch.where(active, state, H)
            return H

        if not segment or added.is_stepped or not torch.is_grad_enabled():
            # Operations between steps may count their calls, so they must not be repeated.
            return advance(H0, 0, len(lengths))
        H = H0
        for first in range(0, len(lengths), segment):
            # Random numbers come from counters, so torch's generators need not be restored.
            H = checkpoint(advance, H, first, segment, use_reentrant=False, preserve_rng_state=False)
        return H


def _reached(solution: Solution) -> Tensor:
    """The saved states (K, *batch, n, d), nan after the failure of a member's run.

    `solve` then repeats the last sound state, which is not that of the flow at those times.
    """
    failed = solution.failed_at
    times = solution.times.reshape(len(solution.times), *solution.times.shape[1:] or (1,) * failed.ndim)
    late = times.to(failed) > failed
    return torch.where(late[..., None, None], torch.nan, solution.states)


def has_polynomial(method: str) -> bool:
    """Whether this method solves a linear equation by a polynomial of A, exactly or up to its tolerance.

    >>> [has_polynomial(method) for method in ("euler", "exact", "dopri5", "strang")]
    [True, True, True, False]
    """
    record = find_method(method)
    return record.is_exact or record.is_runge_kutta or record.is_adaptive


def _polynomial_schedule(method: str, time: float, step: float | None) -> Schedule:
    """The schedule of a polynomial; adaptive methods are replaced by the exact flow, which they approximate."""
    if not has_polynomial(method):
        raise InvalidArgument(f"expected a method whose flows are polynomials, got {method}; use euler, rk4 or exact")
    return Schedule("exact") if find_method(method).is_adaptive else Schedule.make(method, time, step)


def _bound(field: VectorField, H0: Tensor) -> VectorField:
    return field.bind(H0) if field.uses_initial else field


class _Changed:
    """A field whose slopes are transformed before they are used."""

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
    """Pieces of consecutive members with degrees equal up to a quantum; empty if there is only one.

    A piece has the highest degree of its members and of those before it, so members should be in increasing order.

    >>> pieces_of([4, 6, 20, 16, 20]), pieces_of([20, 4]), pieces_of([4, 6, 20], 1)
    (((0, 2, 8), (2, 5, 20)), (), ((0, 1, 4), (1, 2, 6), (2, 3, 20)))
    """
    most = max(degrees, default=0)
    levels = [min(most, -(-highest // quantum) * quantum) for highest in accumulate(degrees, max)]
    starts = [k for k, level in enumerate(levels) if k == 0 or level != levels[k - 1]]
    if len(starts) < 2:
        return ()
    return tuple((a, b, levels[a]) for a, b in pairwise([*starts, len(levels)]))


# ---------------------------------------------------------------------- flow memory
# The states kept for the gradient of a flow, and the segments in which it can be computed with less memory.

#: Lengths of segments to try, the longest first.
LENGTHS = (8, 4, 3, 2, 1)


def kept_states(flow: Flow, degree: int, segment: int, *, soft: bool, single: bool) -> int:
    """The number of states kept at a time for the gradient of a flow.

    Args:
        flow: The flow.
        degree: The degree of its polynomial.
        segment: The steps or terms between two kept states; 0 keeps all.
        soft: Whether the weights of A need a gradient.
        single: Whether the system has one field; polynomials of several are not divided into segments.
    """
    if flow.form == POLYNOMIAL:
        size = segment if segment and single else degree
        boundaries = 2 * (degree // size) if soft and 0 < size < degree else 0
        return min(size, degree) * (1 + soft) + boundaries
    steps = 1 if flow.schedule is None else flow.schedule.steps
    if flow.form != STEPS or not segment or segment >= steps:
        return 6 * flow.evaluations
    return 6 * flow.evaluations * segment // steps + steps // segment


def segment_lengths(flow: Flow, degree: int) -> list[int]:
    """Possible lengths of segments for the gradient, the longest first; empty if it cannot be divided."""
    whole = degree if flow.form == POLYNOMIAL else 0 if flow.schedule is None else flow.schedule.steps
    return [size for size in LENGTHS if size < whole] if flow.form != SOLVE else []
