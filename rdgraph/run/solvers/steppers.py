"""One step of a fixed-step method: Runge-Kutta methods driven by their tableau, and the Strang splitting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from rdgraph.graphs.kernels.devices import use_fused
from rdgraph.language.reader import PRIME
from rdgraph.run.lowering.fused_slope import FusedField, SlopeCall, differentiable, flat

if TYPE_CHECKING:
    from rdgraph.run.lowering.vector_field import VectorField
    from rdgraph.vocabulary.methods import Method, StepFunction, Tableau


# ---------------------------------------------------------------------- stage sums
# H + dt*sum_i w_i k_i, the sums of Runge-Kutta methods: one kernel forward and one backward on a GPU, torch elsewhere.

#: The most slopes of one kernel.
MOST_SLOPES = 8


def combine(H: Tensor, dt: Tensor, weights: Sequence[float], slopes: Sequence[Tensor]) -> Tensor:
    """H + dt * sum of weight*slope; dt is () or (*batch, 1, 1).

    >>> H, slope = torch.ones(2, 1), torch.full((2, 1), 2.0)
    >>> combine(H, torch.tensor(0.5), [1.0, 0.0], [slope, slope]).ravel()
    tensor([2., 2.])
    """
    terms = [(weight, slope) for weight, slope in zip(weights, slopes, strict=True) if weight != 0]
    if not terms:
        return H
    if use_fused(H) and is_even(H, dt, [slope for _, slope in terms]):
        factors, values = zip(*terms, strict=True)
        out: Tensor = FusedSum.apply(dt.reshape(-1), factors, H, *values)  # type: ignore[no-untyped-call]
        return out
    scale, total = terms[0]
    for weight, slope in terms[1:]:
        total = torch.add(total, slope, alpha=weight / scale)
    return torch.addcmul(H, total, dt, value=scale)


def is_even(H: Tensor, dt: Tensor, slopes: Sequence[Tensor]) -> bool:
    """Whether all tensors have one shape and precision, and the step has no gradient."""
    alike = all(x.shape == H.shape and x.dtype == H.dtype for x in slopes) and dt.dtype == H.dtype
    each = dt.ndim == 0 or dt.shape in ((1,) * H.ndim, (*H.shape[:-2], 1, 1))
    return alike and each and not dt.requires_grad and dt.device == H.device and len(slopes) <= MOST_SLOPES


class FusedSum(torch.autograd.Function):
    """The sum for autograd: lengths (1 or B,), weights, H and slopes (*batch, n, d)."""

    @staticmethod
    def forward(ctx: Any, lengths: Tensor, weights: tuple[float, ...], H: Tensor, *slopes: Tensor) -> Tensor:
        from rdgraph.graphs.kernels.triton_combine import weighted_sum

        ctx.weights = weights
        ctx.save_for_backward(lengths)
        return weighted_sum(H.contiguous(), [slope.contiguous() for slope in slopes], lengths, weights)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Any, ...]:
        from rdgraph.graphs.kernels.triton_combine import weighted_parts

        (lengths,), wanted = ctx.saved_tensors, ctx.needs_input_grad[3:]
        factors = [weight for weight, want in zip(ctx.weights, wanted, strict=True) if want]
        if torch.is_grad_enabled():
            step = lengths if len(lengths) == 1 else lengths.view(*g.shape[:-2], 1, 1)
            parts = iter([weight * step * g for weight in factors])
        else:
            parts = iter(weighted_parts(g.contiguous(), lengths, factors) if factors else [])
        grad_state = g if ctx.needs_input_grad[2] else None
        return None, None, grad_state, *(next(parts) if want else None for want in wanted)


# ---------------------------------------------------------------------- fused step
# A whole Runge-Kutta step of a field by generated kernels, whose gradient goes back through the stages explicitly.
#
# Autograd would accumulate the gradients of the state and of earlier slopes one addition at a time; here each of these
# sums is one kernel. A gradient saves the states of the stages, and their products if the coefficient of the product
# needs a gradient, as separate evaluations do.


@dataclass(frozen=True, eq=False)
class StepCall:
    """The evaluation of the field, and the tableau: rows of the stages, weights of the slopes."""

    slope: SlopeCall
    rows: Sequence[Sequence[float]]
    weights: Sequence[float]

    def eager(
        self, dt: Tensor, weights: Tensor, H: Tensor, H0: Tensor | None, stack: Tensor
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """State and first slope by torch's operations, which can be differentiated repeatedly."""
        slopes: list[Tensor] = []
        for row in self.rows:
            slopes.append(self.slope.eager(weights, combine(H, dt, row, slopes), H0, stack))
        return combine(H, dt, self.weights, slopes), slopes[0]

    def sources(self, stage: int) -> list[tuple[float, int]]:
        """The uses of the slope of a stage: weights and indices of later stages; the last index is the final sum."""
        later = [(row[stage], number) for number, row in enumerate(self.rows) if number > stage]
        return [(weight, number) for weight, number in (*later, (self.weights[stage], len(self.rows))) if weight != 0]


class FusedStep(torch.autograd.Function):
    """State after the step and first slope: call, lengths (1 or B,), and the tensors of `FusedSlope`."""

    @staticmethod
    def forward(
        ctx: Any, call: StepCall, lengths: Tensor, weights: Tensor, H: Tensor, H0: Tensor | None, stack: Tensor
    ) -> tuple[Tensor, Tensor]:
        dt = _step(lengths)
        keeps = call.slope.wants_scale and ctx.needs_input_grad[5]
        states, slopes, products = list[Tensor](), list[Tensor](), list[Tensor | None]()
        for row in call.rows:
            states.append(combine(H, dt, row, slopes))
            product, slope = None, None
            if keeps:
                product, slope = call.slope.value_and_product(weights, states[-1], H0, stack)
            else:
                slope = call.slope.value(weights, states[-1], H0, stack)
            products.append(product)
            slopes.append(slope)
        ctx.call = call
        ctx.save_for_backward(lengths, weights, H0, stack, *states, *products)
        ctx.set_materialize_grads(False)
        return combine(H, dt, call.weights, slopes), slopes[0]

    @staticmethod
    def backward(ctx: Any, g: Tensor | None, first: Tensor | None) -> tuple[Any, ...]:
        from rdgraph.graphs.kernels.triton_combine import weighted_sum

        lengths, weights, H0, stack, *saved = ctx.saved_tensors
        call, count, wanted = ctx.call, len(saved) // 2, ctx.needs_input_grad[2:]
        states, products = saved[:count], saved[count:]
        g = torch.zeros_like(states[0]) if g is None else g
        if torch.is_grad_enabled():
            sent = [g, torch.zeros_like(g) if first is None else first]
            inputs = [weights, states[0], H0, stack]
            return (
                None,
                None,
                *differentiable(lambda *tensors: call.eager(_step(lengths), *tensors), inputs, wanted, sent),
            )
        # The gradients of every stage's state, and of the end.
        arrived: list[Tensor] = [g] * count + [g.contiguous()]
        wants_weights, wants_state, wants_start, wants_stack = wanted
        partial = call.slope.partial_sums(states[0], count) if wants_stack else None
        to_weights, to_start = None, None
        for stage in reversed(range(count)):
            sources = call.sources(stage)
            slope = weighted_sum(None, [arrived[k] for _, k in sources], lengths, [weight for weight, _ in sources])
            slope = slope if first is None or stage else slope + first
            grad_weights, arrived[stage], grad_start = call.slope.gradients(
                slope, states[stage], H0, products[stage], weights, stack,
                None if partial is None else partial[stage], (wants_weights, True, wants_start),
            )  # fmt: skip
            to_weights, to_start = _added(to_weights, grad_weights), _added(to_start, grad_start)
        to_state = weighted_sum(arrived[-1], arrived[:-1], None, [1.0] * count) if wants_state else None
        return None, None, to_weights, to_state, to_start, call.slope.stack_gradient(partial, stack)


def fused_step(
    field: FusedField, H: Tensor, dt: Tensor, rows: Sequence[Sequence[float]], weights: Sequence[float]
) -> tuple[Tensor, Tensor] | None:
    """H(t + dt) and f(H) by generated kernels; None if no gradient is needed: stages are then evaluated one by one."""
    if not field.is_tracked(H) or not is_even(H, dt, [H] * len(rows)):
        return None
    call = StepCall(field.call, rows, weights)
    state, slope = FusedStep.apply(  # type: ignore[no-untyped-call]
        call, dt.reshape(-1), field.weights, flat(H), field.start, field.stack
    )
    return state.view(H.shape), slope.view(H.shape)


def _step(lengths: Tensor) -> Tensor:
    """Lengths (1 or B,) shaped to broadcast against (B, n, d)."""
    return lengths.view(-1, 1, 1)


def _added(old: Tensor | None, new: Tensor | None) -> Tensor | None:
    """The sum of both, in place of the first; the second if the first is None."""
    return new if old is None or new is None else old.add_(new)


# ---------------------------------------------------------------------- steppers
class StepResult(NamedTuple):
    """State after a step, and f at its beginning if the method computes it."""

    state: Tensor
    slope: Tensor | None


class Stepper(Protocol):
    """One step for all members at once; dt and the time t are () or (*batch, 1, 1). Counts its evaluations.

    The time is used only by equations in which it occurs.
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
    """Several steps: lengths and times (N,) or (N, *batch, 1, 1), and the active members, (N, *batch), None for all."""

    lengths: Tensor
    times: Tensor
    active: Tensor | None


@runtime_checkable
class Marching(Protocol):
    """A stepper that can take several steps at once."""

    def most_steps(self, H: Tensor) -> int:
        """The most steps of such states in one call."""

    def march(
        self, H: Tensor, stretch: Stretch, bound: float, alive: Tensor, survived: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The states after several steps, which members are alive, and the steps each has survived, both (*batch).

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

    >>> from rdgraph.vocabulary.methods import methods
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
        """The step as one operation for autograd, if generated kernels compute an autonomous field."""
        if self._is_timed or not torch.is_grad_enabled() or not use_fused(H):
            return None
        make_fused = getattr(self.field, "fused", None)
        field = None if make_fused is None else make_fused(None, H)
        step = None if field is None else fused_step(field, H, dt, self._rows, self._weights)
        if step is None:
            return None
        self.evaluations += len(self._rows)
        return StepResult(*step)

    def is_undefined(self, H: Tensor, dt: Tensor, t: Tensor | None = None) -> Tensor:
        return first_is_nan([H, *self.stages(H, dt, t)])


class Slope:
    """f(H) as passed to step functions, with `ahead` for methods that separate fields from their velocities.

    >>> Slope(lambda H: H, ("u", "H", "H'")).ahead(torch.tensor([[1.0, 2.0, 3.0]]))
    tensor([[0., 3., 0.]])
    """

    def __init__(self, call: Callable[[Tensor], Tensor], fields: tuple[str, ...]) -> None:
        self.call, self.fields = call, fields

    def __call__(self, H: Tensor) -> Tensor:
        return self.call(H)

    def ahead(self, x: Tensor) -> Tensor:
        """The velocities in x, each in the place of its field of second order; zero elsewhere."""
        blocks = dict(zip(self.fields, x.chunk(len(self.fields), -1), strict=True))
        none = torch.zeros_like(blocks[self.fields[0]])
        return torch.cat([blocks.get(name + PRIME, none) for name in self.fields], -1)


class OwnStep:
    """A step function (f, H, dt) -> H(t + dt) that has no tableau and does not get the time."""

    def __init__(self, field: VectorField, function: StepFunction) -> None:
        field.system.require_autonomous("a step function, which does not get the time")
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
