"""`Flow`: how H(T) is reached inside a network, decided here and nowhere else.

Linear equations on a normalised operator go by one polynomial of A, whatever the method; other equations are stepped;
both leave the host alone and can be captured as a graph. Adaptive methods, splittings and operators that are not
normalised go through `rdgraph.solve`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from rdgraph import solve
from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.graphs.twin_quotient import Quotient
from rdgraph.integrators.flow_coefficients import Schedule, full_degree
from rdgraph.integrators.linear_part import linear_part
from rdgraph.integrators.polynomial_flow import TOLERANCE, LinearFlow, is_polynomial
from rdgraph.integrators.steppers import fixed_stepper
from rdgraph.methods.registry import find_method

if TYPE_CHECKING:
    from rdgraph.lowering.vector_field import VectorField
    from rdgraph.systems.system import System

#: Makes the field that a state implies, with attention computed from it where there is some.
MakeField = Callable[[Tensor], "VectorField"]

POLYNOMIAL, STEPS, SOLVE = "polynomial", "steps", "solve"
#: Polynomials up to this degree are taken whole; longer ones are cut where their coefficients no longer count.
WHOLE = 24
#: Room for coefficients that grow while the network is trained, in products; at least what derivatives need.
SPARE = 4
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
    """

    source: Tensor | None = None
    after: Callable[[int, Tensor], Tensor] | None = None
    change: Callable[[Tensor], Tensor] | None = None

    @property
    def is_stepped(self) -> bool:
        """Whether something happens at every step, so that there have to be steps."""
        return self.after is not None or self.change is not None


#: Nothing: the equation as it is.
NONE = Additions()


@dataclass(frozen=True)
class Flow:
    """H(0) -> H(T) for fields of a system, in one of three forms: polynomial, steps or solve.

    `schedule` says how the time is cut where the form has steps or a polynomial, `whole` is the degree of the whole
    polynomial, `is_live` says that the operator follows the state, `is_forced` that H0 in the equation is not the start
    but a source that is given.

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
    schedule: Schedule | None
    whole: int = 0
    is_live: bool = False
    is_forced: bool = False

    @staticmethod
    def check(method: str, time: float, step: float | None, is_live: bool = False) -> None:
        """What can be said of a method before any field is seen: its name, its step, attention that needs steps."""
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
        if whole and (record.is_exact or record.is_runge_kutta) and is_polynomial(field):
            schedule = Schedule.make(method, time, step)
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
        """The same with some room to grow, as a training needs it; short polynomials are taken whole."""
        if self.form != POLYNOMIAL or self.whole <= WHOLE:
            return self.whole
        room = max(SPARE, linear_part(field).order)
        return min(self.whole, -(-(self.needed(field, H0, time) + room) // SPARE) * SPARE)

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
        quotient: Quotient | None = None,
        watch: bool = False,
        added: Additions = NONE,
        segment: int = 0,
    ) -> tuple[Tensor, Tensor | None]:
        """H(T) for times (*batch), and with `watch` what the polynomial of every member leaves out (None elsewhere).

        With a `segment` > 0 a gradient keeps what so many steps or terms leave behind, and computes the rest again.
        """
        if self.form == POLYNOMIAL and self.schedule is not None:
            source = added.source if self.is_forced else None
            flow = LinearFlow(self.schedule, degree, quotient, segment)
            return flow.run(make_field(H0), H0, time, watch=watch, source=source)
        if self.schedule is not None:
            return self._stepped(make_field, H0, self.schedule, time, added, segment), None
        times = torch.stack([torch.zeros_like(time), time]) if time.ndim else torch.tensor([0.0, float(time)])
        return solve(make_field(H0), H0, times, self.method, step=self.step).final, None

    def states(self, make_field: MakeField, H0: Tensor, end: float, times: Tensor, added: Additions = NONE) -> Tensor:
        """H(t) (K, *batch, n, d) at rising times (K,) between 0 and `end`, by the method itself."""
        if self.is_live or self.is_forced or added.is_stepped:
            return torch.stack([self._until(make_field, H0, t.view(1), added) for t in times])
        step = self.step if find_method(self.method).takes_step else None
        return solve(make_field(H0), H0, [0.0, end], self.method, step=step, save_at=times).states

    def _until(self, make_field: MakeField, H0: Tensor, time: Tensor, added: Additions) -> Tensor:
        """H at one time (1,) that all members share, by a run that ends there; H0 at 0."""
        if not float(time) > 0:
            return H0
        part = replace(self, schedule=Schedule.make(self.method, float(time), self.step))
        degree = part.needed(make_field(H0), H0, time)
        return part.run(make_field, H0, time, degree, added=added)[0]

    def _stepped(
        self, make_field: MakeField, H0: Tensor, schedule: Schedule, time: Tensor, added: Additions, segment: int
    ) -> Tensor:
        """Steps of one kind, told the time where it occurs; a live field is made anew from every state."""
        start = H0 if added.source is None else added.source
        field: Any = _Live(self.system, make_field, start) if self.is_live else _bound(make_field(H0), start).prepared()
        field = field if added.change is None else _Changed(self.system, field, added.change)
        stepper = fixed_stepper(field, find_method(schedule.method))
        lengths = schedule.lengths(time.to(H0.dtype))

        def advance(H: Tensor, first: int, count: int) -> Tensor:
            for number in range(first, min(first + count, len(lengths))):
                begin = None
                if not self.system.is_autonomous:
                    begin = torch.full_like(time, number * schedule.step)[..., None, None]
                H = stepper.advance(H, lengths[number][..., None, None], begin).state
                H = H if added.after is None else added.after(number, H)
            return H

        if not segment or added.is_stepped or not torch.is_grad_enabled():
            # What is done beside the steps may count its calls, and is not done twice.
            return advance(H0, 0, len(lengths))
        H = H0
        for first in range(0, len(lengths), segment):
            # Random numbers come by counting, so that torch's generators need not be put back.
            H = checkpoint(advance, H, first, segment, use_reentrant=False, preserve_rng_state=False)
        return H


def _bound(field: VectorField, H0: Tensor) -> VectorField:
    return field.bind(H0) if field.uses_initial else field


class _Changed:
    """A field whose slopes are changed before they are used."""

    def __init__(self, system: System, field: Callable[[object, Tensor], Tensor], change: Callable[[Tensor], Tensor]):
        self.system, self.field, self.change = system, field, change

    @property
    def is_autonomous(self) -> bool:
        return self.system.is_autonomous

    def __call__(self, t: object, H: Tensor) -> Tensor:
        return self.change(self.field(t, H))


class _Live:
    """A field whose operator is computed from the state at every evaluation."""

    def __init__(self, system: System, make_field: MakeField, start: Tensor) -> None:
        self.system, self.make_field, self.start = system, make_field, start

    @property
    def is_autonomous(self) -> bool:
        return self.system.is_autonomous

    def __call__(self, t: object, H: Tensor) -> Tensor:
        return _bound(self.make_field(H), self.start)(t, H)
