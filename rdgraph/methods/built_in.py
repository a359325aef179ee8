"""The integrators that the package brings along."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rdgraph.methods.method import (
    ADAPTIVE_OPTIONS,
    FLOW_OPTIONS,
    NOISE_OPTIONS,
    SPLIT_NOISE_OPTIONS,
    SPLIT_OPTIONS,
    Method,
)
from rdgraph.methods.runge_kutta import make_tableau

_DOPRI_ROWS: list[list[object]] = [
    [],
    ["1/5"],
    ["3/40", "9/40"],
    ["44/45", "-56/15", "32/9"],
    ["19372/6561", "-25360/2187", "64448/6561", "-212/729"],
    ["9017/3168", "-355/33", "46732/5247", "49/176", "-5103/18656"],
    ["35/384", 0, "500/1113", "125/192", "-2187/6784", "11/84"],
]
_DOPRI_WEIGHTS = ["35/384", 0, "500/1113", "125/192", "-2187/6784", "11/84", 0]


def built_in_methods() -> tuple[Method, ...]:
    """Their records, in the order in which they are listed."""
    return (
        _fixed("euler", [[]], [1], 1, "explicit Euler", adjoint="euler"),
        _fixed("midpoint", [[], ["1/2"]], [0, 1], 2, "explicit midpoint", adjoint="midpoint"),
        _fixed("heun", [[], [1]], ["1/2", "1/2"], 2, "Heun's explicit trapezoidal rule", adjoint="heun2"),
        _fixed(
            "rk4", [[], ["1/3"], ["-1/3", 1], [1, -1, 1]], ["1/8", "3/8", "3/8", "1/8"], 4,
            "Kutta's 3/8 rule, what torchdiffeq calls rk4", adjoint="rk4",
        ),
        _fixed(
            "rk4-classical", [[], ["1/2"], [0, "1/2"], [0, 0, 1]], ["1/6", "1/3", "1/3", "1/6"], 4,
            "the classical fourth-order method",
        ),
        Method("semi-implicit-euler", "Euler, fields of second order by their new velocity; explicit for all others", 1,
               step_function=_with_new_velocity),
        Method("strang", "exact diffusion between halves of the exact reaction", 2, applies="closed",
               options=SPLIT_OPTIONS),
        Method("imex", "exact linear diffusion of every field, explicit reaction: the exponential midpoint rule", 2,
               options=SPLIT_OPTIONS),
        Method("exact", "the flow of a linear system, evaluated", applies="linear", options=FLOW_OPTIONS),
        Method(
            "dopri5", "Dormand-Prince with steps that follow the error; formulas take its fifth-order weights", 5,
            make_tableau("dopri5", _DOPRI_ROWS, _DOPRI_WEIGHTS, 5, "fifth-order weights, with a fixed step"),
            is_adaptive=True, options=ADAPTIVE_OPTIONS, adjoint="dopri5",
        ),
        Method("euler-maruyama", "explicit Euler with the noise of the step; strong order 1/2, additive noise 1", 1,
               applies="noise", options=NOISE_OPTIONS),
        Method("exponential-euler-maruyama", "exact linear diffusion, explicit reaction and noise; the same orders", 1,
               applies="noise", options=SPLIT_NOISE_OPTIONS),
    )  # fmt: skip


def _with_new_velocity(f: Any, H: Any, dt: Any) -> Any:
    """V' = V + dt*dV/dt, then H' = H + dt*V', for all fields at once; `f.ahead` puts velocities at their fields."""
    slope = f(H)
    return H + dt * (slope + dt * f.ahead(slope))


def _fixed(
    name: str, stages: Sequence[Sequence[object]], weights: Sequence[object], order: int, note: str,
    adjoint: str | None = None,
) -> Method:  # fmt: skip
    return Method(name, note, order, make_tableau(name, stages, weights, order, note), adjoint=adjoint)
