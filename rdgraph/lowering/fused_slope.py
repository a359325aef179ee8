"""c_0*(A@H) + sum_m c_m*phi_m(H, H0) with its gradients, in a few kernels forth and back.

Forth: one kernel for the terms, one product that adds them. Back: one kernel for everything that is entrywise and for
the sums over the nodes, one transposed product that adds the gradient of the terms, one sampled product for weights
that want a gradient. H is kept, and A@H where its coefficient wants a gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rdgraph.kernels import operations as ops
from rdgraph.kernels.row_order import Rows
from rdgraph.lowering.fused_terms import FusedTerms
from rdgraph.lowering.generated_function import GeneratedFunction

if TYPE_CHECKING:
    from rdgraph.kernels.entry_kernels import EntryKernels


@dataclass(eq=False)
class HeldTranspose:
    """Weights in the order of the transpose, kept as long as they are asked for of the same, unchanged weights."""

    source: Tensor | None = None
    version: int = 0
    found: Tensor | None = None

    def weights(self, pattern: list[Tensor], weights: Tensor) -> Tensor:
        """The weights (1 or B, E) in that order."""
        is_same = self.source is not None and self.source.data_ptr() == weights.data_ptr()
        if self.found is None or not is_same or self.version != weights._version:
            self.source, self.version = weights.detach(), weights._version
            self.found = ops.transposed_weights(pattern, self.source)
        return self.found


@dataclass(frozen=True, eq=False)
class SlopeCall:
    """What an evaluation takes beside the tensors that may want a gradient.

    Args:
        terms: The coefficients and the text of the terms.
        pattern: The tensors of A's pattern, as `rdgraph.kernels.operations` has them.
        function: The generated function, and `code`, which computes the same from torch's own operations.
        one: 1 as a tensor.
        wants_scale: Whether the coefficient of the product wants a gradient.
        held: What evaluations share: the weights in the order of the transpose.
    """

    terms: FusedTerms
    pattern: list[Tensor]
    function: GeneratedFunction
    code: Callable[..., Tensor]
    one: Tensor
    wants_scale: bool
    held: HeldTranspose | None = None

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

    def gradients(
        self, g: Tensor, H: Tensor, H0: Tensor | None, product: Tensor | None, weights: Tensor, stack: Tensor,
        partial: Tensor | None, wanted: Sequence[bool],
    ) -> tuple[Tensor | None, ...]:  # fmt: skip
        """What g sends to the weights, to H and to H0, where wanted; `partial` takes what it sends to the stack."""
        wants_weights, wants_state, wants_start = wanted
        entry, grad_start, scaled = self.kernels.gradient(
            g, H, H0, product, stack, partial, wants_start=wants_start, wants_scaled=wants_weights
        )
        grad_weights = None if scaled is None else self.sampled(scaled, H, weights)
        grad_state = None
        if wants_state:
            source, scale = (g, stack[0]) if scaled is None else (scaled, None)
            grad_state = self.pulled(weights, source, scale, entry)
        return grad_weights, grad_state, grad_start

    def partial_sums(self, H: Tensor, count: int) -> Tensor:
        """Room for what so many evaluations send to the stack."""
        return self.kernels.partial_sums(H, count)

    def stack_gradient(self, partial: Tensor | None, stack: Tensor) -> Tensor | None:
        """What all of them send to it."""
        from rdgraph.kernels.entry_kernels import stack_gradient

        return None if partial is None else stack_gradient(partial, stack)

    def pulled(self, weights: Tensor, g: Tensor, scale: Tensor | None, entry: Tensor) -> Tensor:
        """scale*(A'@g) + entry."""
        from rdgraph.kernels import triton_spmm as fused

        held = HeldTranspose() if self.held is None else self.held
        back = held.weights(self.pattern, weights)
        return fused.spmm(self._rows(1), back, g, scale, [(self.one, entry)], out=entry)

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
        call, wanted = ctx.call, ctx.needs_input_grad[1:]
        if torch.is_grad_enabled():
            return None, *differentiable(call.eager, [weights, H, H0, stack], wanted, g)
        partial = call.partial_sums(H, 1) if wanted[3] else None
        sums = None if partial is None else partial[0]
        found = call.gradients(g.contiguous(), H, H0, product, weights, stack, sums, wanted[:3])
        return None, *found, call.stack_gradient(partial, stack)


def differentiable(
    function: Callable[..., Any], inputs: Sequence[Tensor | None], wanted: Sequence[bool], g: Any
) -> list[Tensor | None]:
    """The gradients of a function of some inputs, as expressions that can be differentiated again."""
    with torch.enable_grad():
        # Aliases: one input may be made of another, and what it passes on to that is not counted here.
        own = [None if x is None else x.view_as(x) for x in inputs]
        asked = [x for x, want in zip(own, wanted, strict=True) if want and x is not None]
        found = iter(torch.autograd.grad(function(*own), asked, g, create_graph=True, allow_unused=True))
    return [next(found) if want else None for want in wanted]


@dataclass(frozen=True, eq=False)
class FusedField:
    """A field at one time by generated kernels: the call, and what `FusedSlope` takes beside the state."""

    call: SlopeCall
    weights: Tensor
    start: Tensor | None
    stack: Tensor

    def slope(self, H: Tensor) -> Tensor:
        """The slope (*batch, n, d)."""
        if self.is_tracked(H):
            slope: Tensor = FusedSlope.apply(  # type: ignore[no-untyped-call]
                self.call, self.weights, flat(H), self.start, self.stack
            )
            return slope.view(H.shape)
        return self.call.value(self.weights, flat(H), self.start, self.stack).view(H.shape)

    def is_tracked(self, H: Tensor) -> bool:
        """Whether a gradient is wanted of something."""
        known = (H, self.weights, self.stack, *(() if self.start is None else (self.start,)))
        return torch.is_grad_enabled() and any(x.requires_grad for x in known)


def flat(x: Tensor) -> Tensor:
    """(*batch, n, d) as (B, n, d), contiguous."""
    return x.reshape(-1, *x.shape[-2:]).contiguous()
