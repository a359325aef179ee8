"""c_0*(A@H) + sum_m c_m*phi_m(H, H0) with its gradients, in a few kernels forth and back.

Forth: one kernel for the terms, one product that adds them. Back: one kernel for everything that is entrywise and for
the sums over the nodes, one transposed product that adds the gradient of the terms, one sampled product for weights
that want a gradient. H is kept, and A@H where its coefficient wants a gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rdgraph.kernels import operations as ops
from rdgraph.kernels.row_order import Rows
from rdgraph.lowering.fused_terms import FusedTerms
from rdgraph.lowering.generated_function import GeneratedFunction

if TYPE_CHECKING:
    from rdgraph.graphs.operator import Operator
    from rdgraph.kernels.entry_kernels import EntryKernels


@dataclass(frozen=True, eq=False)
class SlopeCall:
    """What an evaluation takes beside the tensors that may want a gradient.

    Args:
        terms: The coefficients and the text of the terms.
        pattern: The tensors of A's pattern, as `rdgraph.kernels.operations` has them.
        function: The generated function, and `code`, which computes the same from torch's own operations.
        one: 1 as a tensor.
        wants_scale: Whether the coefficient of the product wants a gradient.
        held: What evaluations between two backward passes share: the weights in the order of the transpose.
    """

    terms: FusedTerms
    pattern: list[Tensor]
    function: GeneratedFunction
    code: Callable[..., Tensor]
    one: Tensor
    wants_scale: bool
    held: dict[str, Tensor] | None = None

    @property
    def kernels(self) -> EntryKernels:
        from rdgraph.kernels.entry_kernels import entry_kernels

        return entry_kernels(self.terms.text)

    def value(self, weights: Tensor, H: Tensor, H0: Tensor | None, stack: Tensor) -> Tensor:
        """The slope (B, n, d); weights (1 or B, E), stack (rows, 1 or B, 1, 1 or d)."""
        from rdgraph.kernels import triton_spmm as fused

        entry = self.kernels.value(H, H0, stack)
        return fused.spmm(self._rows(0), weights, H, stack[0], [(self.one, entry)], out=entry)

    def value_and_product(self, weights: Tensor, H: Tensor, H0: Tensor | None, stack: Tensor) -> tuple[Tensor, Tensor]:
        """A@H, and the slope."""
        from rdgraph.kernels import triton_spmm as fused

        return fused.pull(self._rows(0), weights, H, stack[0], [(self.one, self.kernels.value(H, H0, stack))])

    def pulled(self, weights: Tensor, g: Tensor, scale: Tensor | None, entry: Tensor) -> Tensor:
        """scale*(A'@g) + entry."""
        from rdgraph.kernels import triton_spmm as fused

        held = {} if self.held is None else self.held
        if "weights" not in held:
            held["weights"] = ops.transposed_weights(self.pattern, weights)
        return fused.spmm(self._rows(1), held["weights"], g, scale, [(self.one, entry)], out=entry)

    def sampled(self, g: Tensor, H: Tensor, weights: Tensor) -> Tensor:
        """The gradient of the weights."""
        from rdgraph.kernels import triton_sddmm

        return triton_sddmm.sddmm(self._rows(0), g, H, len(weights) == 1).to(weights.dtype)

    def eager(self, weights: Tensor, H: Tensor, H0: Tensor | None, stack: Tensor) -> Tensor:
        """The same by torch's operations, which can be differentiated as often as one likes."""

        def product(x: Tensor, scale: Tensor | None = None, *terms: tuple[Tensor, Tensor]) -> Tensor:
            factors, values = [k for k, _ in terms], [y.contiguous() for _, y in terms]
            return ops.spmm(self.pattern, weights, x.contiguous(), scale, None, factors, values)

        given = {"H": H, "H0": H0, "A": product}
        arguments = [given[name] for name in self.function.arguments]
        return self.code(None, *arguments, *(stack[row] for row in self.terms.order))

    def _rows(self, side: int) -> Rows:
        """The rows of A, or those of its transpose."""
        return Rows.from_tensors(ops.parts(self.pattern)[side])


class FusedSlope(torch.autograd.Function):
    """The slope for autograd: call, weights (1 or B, E), H and H0 (B, n, d), stack (rows, 1 or B, 1, 1 or d)."""

    @staticmethod
    def forward(
        ctx: Any, call: SlopeCall, weights: Tensor, H: Tensor, H0: Tensor | None, stack: Tensor
    ) -> Tensor:  # fmt: skip
        product = None
        if call.wants_scale and ctx.needs_input_grad[4]:
            product, slope = call.value_and_product(weights, H, H0, stack)
        else:
            slope = call.value(weights, H, H0, stack)
        ctx.call = call
        ctx.save_for_backward(weights, H, H0, stack, product)
        return slope

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Any, ...]:
        weights, H, H0, stack, product = ctx.saved_tensors
        call, (_, wants_weights, wants_state, wants_start, wants_stack) = ctx.call, ctx.needs_input_grad
        if torch.is_grad_enabled():
            return None, *_differentiable(call, [weights, H, H0, stack], ctx.needs_input_grad[1:], g)
        g = g.contiguous()
        entry, grad_start, scaled, grad_stack = call.kernels.gradient(
            g, H, H0, product, stack, wants_start=wants_start, wants_scaled=wants_weights, wants_stack=wants_stack
        )
        grad_weights = call.sampled(scaled, H, weights) if wants_weights else None
        grad_state = None
        if wants_state:
            source, scale = (g, stack[0]) if scaled is None else (scaled, None)
            grad_state = call.pulled(weights, source, scale, entry)
        return None, grad_weights, grad_state, grad_start, grad_stack


def _differentiable(
    call: SlopeCall, inputs: list[Tensor | None], wanted: tuple[bool, ...], g: Tensor
) -> list[Tensor | None]:
    """The gradients as expressions that can be differentiated again."""
    with torch.enable_grad():
        # Aliases: H may itself be made of H0, and what H passes on to it is not counted here.
        own = [None if x is None else x.view_as(x) for x in inputs]
        weights, H, H0, stack = own
        assert weights is not None
        assert H is not None
        assert stack is not None
        slope = call.eager(weights, H, H0, stack)
        asked = [x for x, want in zip(own, wanted, strict=True) if want and x is not None]
        found = iter(torch.autograd.grad(slope, asked, g, create_graph=True, allow_unused=True))
    return [next(found) if want else None for want in wanted]


def fused_slope(call: SlopeCall, operator: Operator, H: Tensor, H0: Tensor | None, stack: Tensor) -> Tensor:
    """The slope (*batch, n, d) of states on an operator."""
    weights = operator.flat_weights(tuple(H.shape[:-2]))
    flat = [None if x is None else x.reshape(-1, *x.shape[-2:]).contiguous() for x in (H, H0)]
    if torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in (weights, H, H0, stack)):
        slope: Tensor = FusedSlope.apply(call, weights, *flat, stack)  # type: ignore[no-untyped-call]
        return slope.view(H.shape)
    state, start = flat
    assert state is not None
    return call.value(weights, state, start, stack).view(H.shape)
