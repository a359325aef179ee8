"""`Method`: what is known of one integrator, as data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rdgraph.methods.runge_kutta import Tableau

#: What a method makes of a step: `f` is the field, H the state, dt the step; the result is H(t + dt). `f.ahead(x)` has
#: at every field of second order what x has at its velocity, and zero elsewhere.
StepFunction = Callable[[Callable[[Any], Any], Any, Any], Any]
#: Settings of `solve` that belong to one kind of method or another.
FIXED_OPTIONS, SPLIT_OPTIONS = ("step", "interpolation"), ("step", "interpolation", "rtol")
FLOW_OPTIONS, ADAPTIVE_OPTIONS = ("rtol", "atol"), ("rtol", "atol", "max_steps")
NOISE_OPTIONS, SPLIT_NOISE_OPTIONS = ("step", "seed", "path_parts"), ("step", "seed", "path_parts", "rtol")


@dataclass(frozen=True)
class Method:
    """What is known of an integrator.

    `tableau` and `step_function` are the two forms of a step; the exact flow and the splitting have neither. `applies`
    is "all", "linear" (a generator p(A) and a forcing), "closed" (entrywise reactions with a closed flow) or "noise"
    (white noise, without which a method of this kind has nothing to do). `order` is that of smooth systems, and the
    weak one for noise. `options` are the settings of `solve` that it listens to, `adjoint` is torchdiffeq's name for
    it, None where it has none.

    >>> from rdgraph.methods.registry import find_method
    >>> find_method("rk4").order, find_method("exact").applies, find_method("dopri5").is_adaptive
    (4, 'linear', True)
    """

    name: str
    note: str
    order: int | None = None
    tableau: Tableau | None = None
    step_function: StepFunction | None = None
    applies: str = "all"
    is_adaptive: bool = False
    options: tuple[str, ...] = FIXED_OPTIONS
    adjoint: str | None = None

    @property
    def is_runge_kutta(self) -> bool:
        """A tableau is driven by a fixed step."""
        return self.tableau is not None and not self.is_adaptive

    @property
    def is_fixed(self) -> bool:
        """A fixed step from evaluations of the field alone: a tableau or a step function."""
        return self.is_runge_kutta or self.step_function is not None

    @property
    def takes_step(self) -> bool:
        """Whether it is given a step."""
        return "step" in self.options

    @property
    def is_exact(self) -> bool:
        """Whether it evaluates the flow itself, without steps."""
        return self.applies == "linear" and not self.takes_step and not self.is_adaptive

    @property
    def is_splitting(self) -> bool:
        """Whether it composes flows of parts of the equation."""
        return self.applies == "closed"

    @property
    def is_stochastic(self) -> bool:
        """Whether it is for systems with white noise, and for no others."""
        return self.applies == "noise"
