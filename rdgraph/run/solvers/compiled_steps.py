"""Steps in compiled C: when they are used, for the fixed-step loop and dopri5.

Whether a run is compiled depends on its size and the requested settings, never on a cache: the same call has
the same bits every time. Where something is not supported the torch path is taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from rdgraph.errors import InvalidArgument
from rdgraph.run.lowering.compiled_field import CompiledField, StepNumbers, compile_field, is_lowered, why_not_compiled
from rdgraph.run.solvers.steppers import RungeKutta, StepResult, Stretch

if TYPE_CHECKING:
    from rdgraph.run.lowering.product_plan import ProductPlan
    from rdgraph.run.lowering.vector_field import VectorField
    from rdgraph.vocabulary.methods import Tableau

#: The cost of an evaluation in torch, in seconds: fixed, and per edge, channel and member.
_CALL, _ENTRY = 2e-4, 1.5e-8
#: A run that would take longer than this in torch, in seconds, is compiled.
WORTH = 0.5
#: Beyond this many channels torch mixes them faster.
MIXED_CHANNELS = 16
#: Assumed number of evaluations of a run with adaptive steps.
ADAPTIVE_EVALUATIONS = 100
#: The most entries computed in one call, so that a run can be interrupted in between.
MOST_ENTRIES = 1 << 26


@dataclass(frozen=True, eq=False)
class Compilation:
    """Whether to compile a run of `evaluations` evaluations: yes, no, or if it pays (None)."""

    wanted: bool | None
    evaluations: int
    times: Tensor

    def of(self, field: VectorField, H: Tensor) -> CompiledField | None:
        """The compiled field for states like H, or None if the torch path is used."""
        if self.wanted is False or (self.wanted is None and not (is_lowered(field) and self._pays(field, H))):
            return None
        reason = why_not_compiled(field, H, self.times)
        if reason and not self.wanted:
            return None
        if reason:
            raise InvalidArgument(f"this run cannot be compiled: {reason}; leave compiled= out")
        try:
            return compile_field(field, field.blocks.width(H))
        except InvalidArgument:  # a function without source in C, or more channels than a row has room for
            if self.wanted:
                raise
            return None

    def _pays(self, field: VectorField, H: Tensor) -> bool:
        if field.plan.mixes and field.blocks.width(H) > MIXED_CHANNELS:
            return False
        entries = field.operator.num_edges * H.shape[-1] * max(1, H.shape[:-2].numel())
        return self.evaluations * (_CALL + _ENTRY * entries) > WORTH


class CompiledRungeKutta(RungeKutta):
    """An explicit method whose steps are taken in C."""

    def __init__(self, field: VectorField, compiled: CompiledField, tableau: Tableau) -> None:
        super().__init__(field, tableau)
        self.compiled = compiled
        self._numbers = StepNumbers.make(self._rows, self._weights)

    def slope(self, H: Tensor, t: Tensor | None = None) -> Tensor:
        self.evaluations += 1
        return self.compiled(t, H)

    def advance(self, H: Tensor, dt: Tensor, t: Tensor | None = None) -> StepResult:
        members = max(1, H.shape[:-2].numel())
        alive, survived = np.ones(members, np.uint8), np.zeros(members, np.int64)
        lengths = _numbers(dt[None])
        times = np.zeros_like(lengths) if t is None else _numbers(t[None])
        state, first = self.compiled.march(H, self._numbers, times, lengths, alive=alive, survived=survived)
        self.evaluations += self._numbers.stages
        return StepResult(state, first)

    def most_steps(self, H: Tensor) -> int:
        """The most steps of such states in one call."""
        return max(1, MOST_ENTRIES // max(1, H.numel() * self._numbers.stages))

    def march(
        self, H: Tensor, stretch: Stretch, bound: float, alive: Tensor, survived: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Several steps in one call; see `Marching`."""
        lengths, active = _numbers(stretch.lengths), stretch.active
        living = alive.reshape(-1).to(torch.uint8).numpy().copy()
        steps = survived.reshape(-1).numpy().copy()
        moving = (
            None if active is None else np.ascontiguousarray(active.reshape(len(lengths), -1).numpy(), dtype=np.uint8)
        )
        state, _ = self.compiled.march(
            H, self._numbers, _numbers(stretch.times), lengths, active=moving, bound=bound, alive=living, survived=steps
        )
        self.evaluations += len(lengths) * self._numbers.stages
        return (
            state,
            torch.from_numpy(living).bool().reshape(alive.shape),
            torch.from_numpy(steps).reshape(survived.shape),
        )


def _numbers(lengths: Tensor) -> np.ndarray:
    """Step lengths (N,) or (N, *batch, 1, 1) as float64 (N,) or (N, B), contiguous."""
    flat = lengths.detach().double().reshape(len(lengths), -1).numpy()
    return np.ascontiguousarray(flat[:, 0] if lengths.ndim == 1 else flat)


class CompiledMembers:
    """A field that is recompiled for the active members."""

    def __init__(self, field: VectorField, compiled: CompiledField | None) -> None:
        self.field, self.compiled = field, compiled

    @property
    def plan(self) -> ProductPlan:
        return self.field.plan

    @property
    def is_autonomous(self) -> bool:
        return self.field.is_autonomous

    def __call__(self, t: Any, H: Tensor) -> Tensor:
        if self.compiled is None:
            self.compiled = compile_field(self.field, self.field.blocks.width(H))
        return self.compiled(t, H)

    def members(self, index: Tensor) -> CompiledMembers:
        """The field of some members, counted through the flattened batch."""
        return CompiledMembers(self.field.members(index), None)

    def prepared(self) -> CompiledMembers:
        """The field itself: compiled fields have computed their coefficients."""
        return self
