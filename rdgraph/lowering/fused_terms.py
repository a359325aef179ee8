"""Which equations run as generated kernels: c_0*(A@H) + sum_m c_m*phi_m(H, H0), the c the same for all nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sympy as sp
import torch
from torch import Tensor

from rdgraph.algebra.factored_form import Entrywise, terms_of
from rdgraph.algebra.normal_form import H
from rdgraph.errors import NotApplicable
from rdgraph.kernels.entry_text import EntryText
from rdgraph.lowering.entry_program import entry_program
from rdgraph.lowering.generated_function import GeneratedFunction
from rdgraph.syntax.tree import Kind

#: What the arguments of the generated function may be.
_ARGUMENTS = {"H", "H0", "A"}


@dataclass(frozen=True)
class FusedTerms:
    """The coefficients c_0, c_1, ... of the product and of the entrywise terms, and the text of the terms.

    A coefficient has a place among those of the generated function `field`, or is a number that this has not named.
    """

    places: tuple[int | None, ...]
    numbers: tuple[float, ...]
    text: EntryText

    @property
    def order(self) -> tuple[int, ...]:
        """For every coefficient of `field` the first term that has it."""
        used = {place for place in self.places if place is not None}
        return tuple(self.places.index(place) for place in range(len(used)))

    @property
    def uses_start(self) -> bool:
        """Whether H0 occurs."""
        return self.text.gradients[1] is not None

    def wants_scale(self, values: Sequence[Tensor]) -> bool:
        """Whether the coefficient of the product, from those of `field`, wants a gradient."""
        place = self.places[0]
        return place is not None and values[place].requires_grad

    def stack(self, values: Sequence[Tensor], one: Tensor, batch: tuple[int, ...]) -> Tensor:
        """The coefficients as one tensor (terms, 1 or B, 1, 1 or d), from those of `field`; `one` is 1 as a tensor."""
        found = [
            _flat(number * one if place is None else values[place], batch)
            for place, number in zip(self.places, self.numbers, strict=True)
        ]
        return torch.stack(torch.broadcast_tensors(*found))


def fused_terms(form: sp.Expr, field: GeneratedFunction, kinds: Mapping[str, Kind]) -> FusedTerms | None:
    """The terms of the factored form of a single field, whose generated function is `field`; None where it has others.

    Linear equations have nothing to gain: their product takes every term along as it is.

    >>> from rdgraph.lowering.lowering_stages import lowered
    >>> from rdgraph.systems.parser import parse
    >>> lowered(parse("F"), False, "row").fused.places
    (0, 1, 2)
    >>> lowered(parse("-L@H + beta*tanh(A@H)"), False, "row").fused is None
    True
    """
    terms = terms_of(form)
    products = [term for term in terms if term.word]
    others = [term for term in terms if not term.word]
    is_one = len(products) == 1 and products[0].word == ("A",) and products[0].atom == H
    is_even = all(kinds[s.name] in (Kind.SCALAR, Kind.CHANNEL) for t in terms for s in t.coefficient.free_symbols)
    is_bent = any(isinstance(term.atom, Entrywise) for term in others)
    if not (is_one and is_even and is_bent and set(field.arguments) <= _ARGUMENTS):
        return None
    coefficients = [term.coefficient for term in (*products, *others)]
    if not set(field.coefficients) <= set(coefficients):
        return None
    try:
        text = entry_program([term.atom for term in others])
    except NotApplicable:
        return None
    places = {coefficient: place for place, coefficient in enumerate(field.coefficients)}
    numbers = tuple(float(c) if c.is_number else 0.0 for c in coefficients)
    return FusedTerms(tuple(places.get(c) for c in coefficients), numbers, text)


def _flat(coefficient: Tensor, batch: tuple[int, ...]) -> Tensor:
    """A coefficient that broadcasts against (*batch, n, d), with one value for all nodes, as (1 or B, 1, 1 or d)."""
    width = coefficient.shape[-1] if coefficient.ndim else 1
    if coefficient.ndim <= 2 or all(size == 1 for size in coefficient.shape[:-2]):
        return coefficient.reshape(1, 1, width)
    return coefficient.expand(*batch, 1, width).reshape(-1, 1, width)
