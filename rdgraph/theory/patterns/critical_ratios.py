"""The critical ratio of two diffusivities: how much faster the inhibitor must spread than the activator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sympy as sp

from rdgraph.answers import Answer, Status
from rdgraph.errors import InvalidArgument, NotApplicable, Undecided
from rdgraph.language.answer_symbols import lam, public
from rdgraph.reals.branches import STEPS
from rdgraph.reals.budget import within_budget
from rdgraph.reals.domain import POSITIVE
from rdgraph.reals.enclosure import sign_of
from rdgraph.systems.parser import reads_system
from rdgraph.systems.system import System
from rdgraph.theory.patterns.kinetics import Kinetics, system_kinetics
from rdgraph.theory.patterns.state_choice import state_at
from rdgraph.theory.patterns.states import EXACT, SteadyState, shown
from rdgraph.wording import html_table

# ---------------------------------------------------------------------- rate kinks
# Kinks of rates at constant states, as relu and abs have them at zero: there is no linearisation there.


def check_slopes(kinetics: Kinetics, state: SteadyState | None, matrix: sp.Matrix) -> None:
    """Refuse a state, or without one all of them, where a rate has no slope, or may have none for some coefficients."""
    if matrix.has(sp.zoo, sp.nan, sp.oo):
        raise NotApplicable(f"no linearisation: a rate has no slope at {state or 'states equal in all nodes'}")
    for kink in sorted(kinetics.matrix.atoms(*STEPS), key=str):
        if state is None:
            at_it = [sp.Eq(e, 0, evaluate=False) for e in (*kinetics.rates, kink.args[0]) if e != 0]
            is_apart = kinetics.domain.where(*at_it).is_empty()
        else:
            is_apart = sp.simplify(kink.args[0].xreplace(dict(state.point))).is_nonzero is True
        if not is_apart:
            where = state or "all steady states"
            raise NotApplicable(f"no linearisation at {where} for all coefficients: the slope {kink} may jump there")


# ---------------------------------------------------------------------- critical ratio
@dataclass(frozen=True, repr=False)
class CriticalRatio(Answer):
    """Patterns form on (0, oo) exactly where diffusivity(inhibitor)/diffusivity(activator) > value."""

    value: sp.Expr
    activator: str
    inhibitor: str
    state: SteadyState | None

    @property
    def status(self) -> Status:
        """proved where the steady state is exact, bounded where it is enclosed."""
        return Status.PROVED if self.state is None or self.state.how == EXACT else Status.BOUNDED

    @property
    def reason(self) -> str:
        """Where the ratio comes from."""
        return "the larger root d of (d J_ii + J_kk)^2 = 4 d det J, with the Jacobian J at the steady state"

    def __float__(self) -> float:
        return float(self.value)

    def __str__(self) -> str:
        return (
            f"{self.inhibitor} must spread more than {shown(self.value)} times as fast as {self.activator}"
            f" ({float(self.value):.6g}), for lam in (0, oo)"
        )

    def _repr_html_(self) -> str:
        return html_table("critical ratio of diffusivities", [(f"{self.inhibitor}/{self.activator}", str(self))])

    def to_dict(self) -> dict[str, Any]:
        """The ratio as text and number."""
        return {
            "value": str(self.value), "status": str(self.status), "number": float(self.value),
            "activator": self.activator, "inhibitor": self.inhibitor,
            "state": None if self.state is None else self.state.to_dict(),
        }  # fmt: skip


@reads_system
@within_budget()
def critical_ratio(
    system: System, values: Mapping[str, Any] | None = None, state: int | Mapping[str, Any] = 0
) -> CriticalRatio:
    """The ratio of the diffusivities of two fields beyond which patterns form, for lam of any size.

    With the Jacobian J at the steady state, activator i and inhibitor k, it is the larger root d of
    (d J_ii + J_kk)^2 = 4 d det J. The diffusivities themselves need no values.

    Args:
        system: two fields that diffuse, each by a multiple of its own L@u.
        values: numbers for the coefficients of the reaction.
        state: which of `steady_states(system, values)`, or the values of the fields.

    Returns:
        The ratio, exact where the steady state is.

    Raises:
        NotApplicable: not two diffusing fields, or no ratio makes patterns.
        InvalidArgument: values are missing, or there is no such state.

    >>> import rdgraph as rd
    >>> s = rd.parse("u' = a - (b + 1)*u + u**2*v - Du*L@u; v' = b*u - u**2*v - Dv*L@v")
    >>> rd.patterns.critical_ratio(s, {"a": 2, "b": 2.25}).value
    16
    """
    return ratio_of(system_kinetics(system).at(values), state)


def ratio_of(kinetics: Kinetics, state: int | Mapping[str, Any] = 0) -> CriticalRatio:
    """The critical ratio of a kinetics."""
    if kinetics.matrix.has(sp.nan):
        raise NotApplicable("no linearisation: a rate has a kink at every state that is the same in all nodes")
    moved = -kinetics.transport / lam
    if len(kinetics.fields) != 2 or not moved.is_diagonal() or moved.applyfunc(sp.cancel).has(lam, *kinetics.letters):
        raise NotApplicable("expected two fields, each with a diffusion of its own, as in -Du*L@u and -Dv*L@v")
    for name, entry in zip(kinetics.fields, moved.diagonal(), strict=True):
        if kinetics.domain.sign(entry) is not POSITIVE:
            raise NotApplicable(
                f"expected two fields that diffuse, as in -Du*L@u with Du > 0, got {name} with the diffusivity "
                f"{public(entry)}, which is not proved to be positive; assume it, or give it a number"
            )
    steady = None if kinetics.is_linear else state_at(kinetics, state)
    jacobian = kinetics.jacobian if steady is None else kinetics.jacobian.xreplace(dict(steady.point))
    check_slopes(kinetics, steady, jacobian)
    left = jacobian.free_symbols
    if left:
        raise InvalidArgument(
            f"expected values for the coefficients of the reaction, got none for {sorted(map(str, left))}"
        )
    trace, determinant = jacobian.trace(), jacobian.det()
    if sign_of(sp.sympify(trace)) != -1 or sign_of(sp.sympify(determinant)) != 1:
        raise NotApplicable(
            "the steady state is not proved to be stable where all nodes agree, so no ratio is critical"
        )
    signs = [sign_of(sp.sympify(jacobian[i, i])) for i in range(2)]
    if None in signs:
        raise Undecided("whether a field activates itself could not be told")
    if 1 not in signs:
        raise NotApplicable("no ratio of diffusivities makes patterns: no field activates itself")
    active = signs.index(1)
    a, cross = jacobian[active, active], jacobian[0, 1] * jacobian[1, 0]
    value = (determinant - cross + 2 * sp.sqrt(-determinant * cross)) / a**2
    return CriticalRatio(_tidy(value), kinetics.fields[active], kinetics.fields[1 - active], steady)


def _tidy(value: sp.Expr) -> sp.Expr:
    return sp.radsimp(sp.sqrtdenest(value)) if not value.has(sp.CRootOf) else value
