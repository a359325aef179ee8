"""How H(T) is reached inside a network: one polynomial, steps, or `rdgraph.solve`, whichever the equation allows.

Linear equations on a normalised operator go by one polynomial of A, whatever the method; other equations are stepped;
both leave the host alone and can be captured as a graph. Adaptive methods, splittings and operators that are not
normalised go through `solve`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from rdgraph import solve
from rdgraph.errors import NotApplicable
from rdgraph.integrators.flow_coefficients import Schedule, full_degree
from rdgraph.integrators.linear_part import linear_part
from rdgraph.integrators.polynomial_flow import LinearFlow, is_polynomial
from rdgraph.integrators.steppers import fixed_stepper
from rdgraph.methods.registry import find_method

if TYPE_CHECKING:
    from rdgraph.lowering.vector_field import VectorField

#: Polynomials up to this degree are taken whole; longer ones are cut where their coefficients no longer count.
WHOLE = 24
#: Room for coefficients that grow while the network is trained, in products; at least what derivatives need.
SPARE = 4


@dataclass(frozen=True)
class Route:
    """How a kind of field is integrated: `name` is polynomial, steps or solve; `capturable` says whether as a graph.

    `whole` is the degree of the whole polynomial.
    """

    name: str
    schedule: Schedule | None
    whole: int = 0

    @property
    def capturable(self) -> bool:
        return self.name != "solve"

    @classmethod
    def choose(cls, field: VectorField, method: str, time: float, step: float | None, live: bool) -> Route:
        """The best route for a field; `live` where the operator follows the state."""
        record = find_method(method)
        if not live and (record.is_exact or record.is_runge_kutta) and is_polynomial(field):
            schedule = Schedule.make(method, time, step)
            return cls("polynomial", schedule, full_degree(linear_part(field), schedule))
        if record.is_fixed:
            return cls("steps", Schedule.make(method, time, step))
        if live:
            raise NotApplicable(
                f"expected a method with steps for attention that follows the state, got {method}; take euler or rk4"
            )
        return cls("solve", None)

    def degree(self, field: VectorField, H0: Tensor, time: Tensor) -> int:
        """How many products the polynomial of a field takes now, with some room to grow; 0 for other routes."""
        if self.name != "polynomial" or self.schedule is None:
            return 0
        if self.whole <= WHOLE:
            return self.whole
        room = max(SPARE, linear_part(field).order)
        needed = LinearFlow.needed(field, H0, self.schedule, time)
        return min(self.whole, -(-(needed + room) // SPARE) * SPARE)

    def is_cut(self, degree: int) -> bool:
        """Whether that many products leave something out, so that it has to be watched."""
        return degree < self.whole


def run_steps(
    make_field: Callable[[Tensor], VectorField], H0: Tensor, schedule: Schedule, time: Tensor, live: bool
) -> Tensor:
    """H(T) by Runge-Kutta steps, time (*batch); a live field is made anew from every state."""
    held = None if live else _bound(make_field(H0), H0).prepared()
    record = find_method(schedule.method)
    H = H0
    for length in schedule.lengths(time.to(H0.dtype)):
        stepper = fixed_stepper(held if held is not None else _Live(make_field, H0), record)  # type: ignore[arg-type]
        H = stepper.advance(H, length[..., None, None]).state
    return H


def run_solve(field: VectorField, H0: Tensor, method: str, time: Tensor, step: float | None) -> Tensor:
    """H(T) by `rdgraph.solve`; members have times of their own."""
    times = torch.stack([torch.zeros_like(time), time]) if time.ndim else torch.tensor([0.0, float(time)])
    return solve(field, H0, times, method, step=step if find_method(method).takes_step else None).final


def _bound(field: VectorField, H0: Tensor) -> VectorField:
    return field.bind(H0) if field.uses_initial else field


class _Live:
    """A field whose operator is computed from the state at every evaluation."""

    def __init__(self, make_field: Callable[[Tensor], VectorField], H0: Tensor) -> None:
        self.make_field, self.start = make_field, H0

    def __call__(self, t: object, H: Tensor) -> Tensor:
        return _bound(self.make_field(H), self.start)(t, H)
