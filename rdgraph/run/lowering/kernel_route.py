"""`KernelRoute`: generated kernels of a lowered field, and when they are used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rdgraph.graphs.kernels.devices import can_fuse, use_fused
from rdgraph.graphs.operator import Operator
from rdgraph.run.lowering.fused_slope import FusedField, FusedTerms, HeldTranspose, SlopeCall, flat
from rdgraph.run.lowering.lowering_stages import Lowered
from rdgraph.run.lowering.torch_source import GeneratedFunction


@dataclass(frozen=True, eq=False)
class KernelRoute:
    """The part of a field that generated kernels compute, independent of the values of its coefficients.

    Args:
        terms: The coefficients and the text of the terms.
        function: The generated function, and `code`, which computes the same from torch's own operations.

    >>> from rdgraph import lower, generators
    >>> field = lower("F", generators.ring(4).operator("row"), {"alpha": 1.0, "beta": 0.5})
    >>> KernelRoute.of(field._stages).is_open(torch.ones(4, 2), field.start)
    False
    """

    terms: FusedTerms
    function: GeneratedFunction
    code: Callable[..., Tensor]

    @classmethod
    def of(cls, stages: Lowered) -> KernelRoute | None:
        """The kernel route of a system; None where kernels cannot be generated for its terms."""
        return None if stages.fused is None else cls(stages.fused, stages.field, stages.code["field"])

    def is_open(self, H: Tensor, start: Callable[[], Tensor]) -> bool:
        """Whether the kernels run for a state like this; `start` gives the start of a field that depends on it."""
        return use_fused(H) and not (self.terms.uses_start and start().shape != H.shape)

    def stacked(
        self, values: Sequence[Tensor], one: Tensor, batch: tuple[int, ...], device: torch.device
    ) -> Tensor | None:
        """The coefficients as the kernels read them, computed once; None where kernels are not used."""
        return self.terms.stack(values, one, batch) if can_fuse(device) else None

    def field(
        self, operator: Operator, values: Sequence[Tensor], one: Tensor, H: Tensor, start: Callable[[], Tensor],
        leaves: Sequence[Tensor], stack: Tensor | None = None, held: HeldTranspose | None = None,
    ) -> FusedField:  # fmt: skip
        """The field for states like H with the values of its coefficients.

        `leaves` are the tensors of the field that need a gradient; `stack` and `held` are what many evaluations
        share.
        """
        batch = tuple(H.shape[:-2])
        stack = self.terms.stack(values, one, batch) if stack is None else stack
        tracked = torch.is_grad_enabled() and bool(H.requires_grad or stack.requires_grad or leaves)
        wants_scale = self.terms.wants_scale(values)
        call = SlopeCall(self.terms, operator._tensors(tracked), self.function, self.code, one, wants_scale, held)
        return FusedField(call, operator.flat_weights(batch), flat(start()) if self.terms.uses_start else None, stack)
