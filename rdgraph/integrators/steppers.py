"""One step of a fixed-step method: Runge-Kutta methods driven by their tableau, and the Strang splitting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from rdgraph.integrators.fused_step import fused_step
from rdgraph.integrators.stage_sums import combine
from rdgraph.kernels.fused_switch import use_fused
from rdgraph.syntax.reader import PRIME

if TYPE_CHECKING:
    from rdgraph.lowering.vector_field import VectorField
    from rdgraph.methods.method import Method, StepFunction
    from rdgraph.methods.runge_kutta import Tableau


class StepResult(NamedTuple):
    """State after a step, and f at its beginning where the method has it."""

    state: Tensor
    slope: Tensor | None


class Stepper(Protocol):
    """One step for all members at once; dt and the time t are () or (*batch, 1, 1). Counts what it costs.

    Only equations in which the time occurs look at t.
    """

    evaluations: int

    @property
    def products(self) -> int:
        """Sparse products so far."""

    def advance(self, H: Tensor, dt: Tensor, t: Tensor | None = None) -> StepResult:
        """H(t + dt) from H(t), (*batch, n, d)."""

    def slope(self, H: Tensor, t: Tensor | None = None) -> Tensor:
        """f(t, H)."""

    def is_undefined(self, H: Tensor, dt: Tensor, t: Tensor | None = None) -> Tensor:
        """(*batch): whether the step from H breaks on NaN rather than on overflow."""


class Stretch(NamedTuple):
    """Several steps: lengths and times (N,) or (N, *batch, 1, 1), and who takes part, (N, *batch), None for all."""

    lengths: Tensor
    times: Tensor
    active: Tensor | None


@runtime_checkable
class Marching(Protocol):
    """A stepper that can take several steps at once."""

    def most_steps(self, H: Tensor) -> int:
        """How many steps of such states it takes in one call at most."""

    def march(
        self, H: Tensor, stretch: Stretch, bound: float, alive: Tensor, survived: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The states after several steps, who is alive, and how many steps each has survived, both (*batch).

        A member whose step leaves the bound stays where it was.
        """


class FlowMap(Protocol):
    """A map H(t) -> H(t + dt) that is no Runge-Kutta step; `products` counts its sparse products so far."""

    @property
    def products(self) -> int:
        """Sparse products so far."""

    def advance(self, H: Tensor, dt: Tensor) -> Tensor:
        """H(t + dt); entries that are not finite mean blow-up."""


class RungeKutta:
    """An explicit method: k_i = f(t + c_i dt, H + dt sum_j a_ij k_j), H + dt sum_i b_i k_i.

    >>> from rdgraph.methods.tableaux import methods
    >>> class Decay(torch.nn.Module):
    ...     def forward(self, t, H):
    ...         return -H
    >>> RungeKutta(Decay(), methods["heun"]).advance(torch.ones(1, 1), torch.tensor(0.5)).state.item()
    0.625
    """

    def __init__(self, field: VectorField, tableau: Tableau) -> None:
        self.field = field
        self.evaluations = 0
        self._weights = [float(weight) for weight in tableau.weights]
        while self._weights[-1] == 0:  # a last stage without weight serves only an error estimate
            self._weights.pop()
        self._rows = [[float(a) for a in row] for row in tableau.stages[: len(self._weights)]]
        self._nodes = [float(node) for node in tableau.nodes]
        self._is_timed = not getattr(field, "is_autonomous", True)

    @property
    def products(self) -> int:
        return self.evaluations * self.field.plan.products

    def slope(self, H: Tensor, t: Tensor | None = None) -> Tensor:
        self.evaluations += 1
        return self.field(t, H)

    def stages(self, H: Tensor, dt: Tensor, t: Tensor | None = None) -> list[Tensor]:
        """The slopes k_i."""
        slopes: list[Tensor] = []
        for node, row in zip(self._nodes, self._rows, strict=False):
            at = t + node * dt if self._is_timed and t is not None else None
            slopes.append(self.slope(combine(H, dt, row, slopes), at))
        return slopes

    def advance(self, H: Tensor, dt: Tensor, t: Tensor | None = None) -> StepResult:
        if (fused := self._fused(H, dt)) is not None:
            return fused
        slopes = self.stages(H, dt, t)
        return StepResult(combine(H, dt, self._weights, slopes), slopes[0])

    def _fused(self, H: Tensor, dt: Tensor) -> StepResult | None:
        """The step as one operation for autograd, where generated kernels compute a field that knows no time."""
        if self._is_timed or not torch.is_grad_enabled() or not use_fused(H):
            return None
        make_fused = getattr(self.field, "fused", None)
        field = None if make_fused is None else make_fused(None, H)
        found = None if field is None else fused_step(field, H, dt, self._rows, self._weights)
        if found is None:
            return None
        self.evaluations += len(self._rows)
        return StepResult(*found)

    def is_undefined(self, H: Tensor, dt: Tensor, t: Tensor | None = None) -> Tensor:
        return first_is_nan([H, *self.stages(H, dt, t)])


class Slope:
    """f(H) as step functions are given it, with `ahead`, for methods that tell fields from their velocities.

    >>> Slope(lambda H: H, ("u", "H", "H'")).ahead(torch.tensor([[1.0, 2.0, 3.0]]))
    tensor([[0., 3., 0.]])
    """

    def __init__(self, call: Callable[[Tensor], Tensor], fields: tuple[str, ...]) -> None:
        self.call, self.fields = call, fields

    def __call__(self, H: Tensor) -> Tensor:
        return self.call(H)

    def ahead(self, x: Tensor) -> Tensor:
        """At every field of second order what x has at its velocity; zero elsewhere."""
        blocks = dict(zip(self.fields, x.chunk(len(self.fields), -1), strict=True))
        none = torch.zeros_like(blocks[self.fields[0]])
        return torch.cat([blocks.get(name + PRIME, none) for name in self.fields], -1)


class OwnStep:
    """A step function (f, H, dt) -> H(t + dt) that has no tableau; it knows no time."""

    def __init__(self, field: VectorField, function: StepFunction) -> None:
        field.system.require_autonomous("a step function, which is not told the time")
        self.field, self.function = field, function
        self.evaluations = 0

    @property
    def products(self) -> int:
        return self.evaluations * self.field.plan.products

    def slope(self, H: Tensor, t: Tensor | None = None) -> Tensor:
        self.evaluations += 1
        return self.field(t, H)

    def advance(self, H: Tensor, dt: Tensor, t: Tensor | None = None) -> StepResult:
        return StepResult(self.function(Slope(self.slope, self.field.system.fields), H, dt), None)

    def is_undefined(self, H: Tensor, dt: Tensor, t: Tensor | None = None) -> Tensor:
        slopes: list[Tensor] = []

        def watched(state: Tensor) -> Tensor:
            slopes.append(self.slope(state))
            return slopes[-1]

        self.function(Slope(watched, self.field.system.fields), H, dt)
        return first_is_nan([H, *slopes])


class Splitting:
    """The Strang splitting as a stepper; its flows are closed forms, so that what is not finite means blow-up."""

    def __init__(self, field: VectorField, flow: FlowMap) -> None:
        self.field = field
        self.flow = flow
        self.evaluations = 0

    @property
    def products(self) -> int:
        return self.flow.products + self.evaluations * self.field.plan.products

    def slope(self, H: Tensor, t: Tensor | None = None) -> Tensor:
        self.evaluations += 1
        return self.field(t, H)

    def advance(self, H: Tensor, dt: Tensor, t: Tensor | None = None) -> StepResult:
        return StepResult(self.flow.advance(H, dt), None)

    def is_undefined(self, H: Tensor, dt: Tensor, t: Tensor | None = None) -> Tensor:
        return first_is_nan([H])


def fixed_stepper(field: VectorField, method: Method) -> RungeKutta | OwnStep:
    """The steps of a method with a tableau or a step function."""
    if method.step_function is not None:
        return OwnStep(field, method.step_function)
    assert method.tableau is not None
    return RungeKutta(field, method.tableau)


def first_is_nan(values: Sequence[Tensor]) -> Tensor:
    """(*batch): whether the first of the values (*batch, n, d) that is not finite holds NaN and nothing infinite.

    >>> inf, nan = torch.tensor([[torch.inf]]), torch.tensor([[torch.nan]])
    >>> bool(first_is_nan([nan, inf])), bool(first_is_nan([inf, nan]))
    (True, False)
    """
    undefined = torch.zeros(values[0].shape[:-2], dtype=torch.bool, device=values[0].device)
    broken = undefined
    for value in values:
        finite = torch.isfinite(value).all(-1).all(-1)
        infinite = torch.isinf(value).any(-1).any(-1)
        undefined = undefined | ~(broken | finite | infinite)
        broken = broken | ~finite
    return undefined
