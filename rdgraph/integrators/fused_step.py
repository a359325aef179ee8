"""A whole Runge-Kutta step of a field by generated kernels, whose gradient goes back through the stages by itself.

Autograd would add up what every stage sends to the state and to the slopes before it, one addition at a time; here each
of these sums is one kernel. A gradient keeps the states of the stages, and their products where the coefficient of the
product wants a gradient, as evaluations one by one do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rdgraph.integrators.stage_sums import combine, is_even
from rdgraph.lowering.fused_slope import FusedField, SlopeCall, differentiable, flat


@dataclass(frozen=True, eq=False)
class StepCall:
    """The evaluation of the field, and the tableau: rows of the stages, weights of the slopes."""

    slope: SlopeCall
    rows: Sequence[Sequence[float]]
    weights: Sequence[float]

    def eager(
        self, dt: Tensor, weights: Tensor, H: Tensor, H0: Tensor | None, stack: Tensor
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """State and first slope by torch's operations, which can be differentiated as often as one likes."""
        slopes: list[Tensor] = []
        for row in self.rows:
            slopes.append(self.slope.eager(weights, combine(H, dt, row, slopes), H0, stack))
        return combine(H, dt, self.weights, slopes), slopes[0]

    def sources(self, stage: int) -> list[tuple[float, int]]:
        """Where the slope of a stage went, as weights and numbers of later stages; the last number is the end's."""
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
        from rdgraph.kernels.triton_combine import weighted_sum

        lengths, weights, H0, stack, *kept = ctx.saved_tensors
        call, count, wanted = ctx.call, len(kept) // 2, ctx.needs_input_grad[2:]
        states, products = kept[:count], kept[count:]
        g = torch.zeros_like(states[0]) if g is None else g
        if torch.is_grad_enabled():
            sent = [g, torch.zeros_like(g) if first is None else first]
            inputs = [weights, states[0], H0, stack]
            return None, None, *differentiable(lambda *own: call.eager(_step(lengths), *own), inputs, wanted, sent)
        # What comes in at every stage's state, and at the end.
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
    """H(t + dt) and f(H) by generated kernels; None where no gradient is wanted, and stages are taken one by one."""
    if not field.is_tracked(H) or not is_even(H, dt, [H] * len(rows)):
        return None
    call = StepCall(field.call, rows, weights)
    state, slope = FusedStep.apply(  # type: ignore[no-untyped-call]
        call, dt.reshape(-1), field.weights, flat(H), field.start, field.stack
    )
    return state.view(H.shape), slope.view(H.shape)


def _step(lengths: Tensor) -> Tensor:
    """Lengths (1 or B,) as they broadcast against (B, n, d)."""
    return lengths.view(-1, 1, 1)


def _added(old: Tensor | None, new: Tensor | None) -> Tensor | None:
    """The sum of what was there and what comes, in the place of the first."""
    return new if old is None or new is None else old.add_(new)
