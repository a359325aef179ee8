"""`strang` for several fields: exact diffusion of every field between halves of the reaction between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from rdgraph.errors import NotApplicable
from rdgraph.integrators.closed_reactions import make_reaction
from rdgraph.integrators.exponential_steps import ExactPart
from rdgraph.integrators.linear_part import Linear, diffusion_part
from rdgraph.integrators.prepared_flow import PreparedFlow
from rdgraph.integrators.scaled_operator import operator_base
from rdgraph.integrators.steppers import RungeKutta
from rdgraph.lowering.field_blocks import side_by_side
from rdgraph.methods.tableaux import methods
from rdgraph.syntax.tree import names_in
from rdgraph.systems.single_operator import in_one_operator
from rdgraph.systems.system import System

if TYPE_CHECKING:
    from rdgraph.lowering.vector_field import VectorField

Reaction = Callable[[Tensor, Tensor], Tensor]
#: Steps of rk4 in half a reaction, where there is no closed flow.
SUBSTEPS = 4


class FieldStrang:
    """Half a reaction, the whole diffusion, half a reaction: order 2.

    Fields that do not know each other, and whose reactions have closed flows, are split as each alone; otherwise the
    reaction at every node is solved by a few steps of rk4 (`is_closed` says which). `products` counts sparse products.
    """

    def __init__(self, field: VectorField, H: Tensor, rtol: float | None = None) -> None:
        self.products = 0
        self.reaction, self.diffusion, self.is_closed = _closed_parts(field, H, rtol) or _stepped_parts(field, H, rtol)

    def advance(self, H: Tensor, dt: Tensor) -> Tensor:
        """H after a step dt, () or (*batch, 1, 1)."""
        H = self.reaction(H, dt / 2)
        propagator = self.diffusion.over(dt, H)
        self.products += propagator.products
        return self.reaction(propagator(H)[0], dt / 2)


Parts = tuple[Reaction, PreparedFlow, bool]


def _stepped_parts(field: VectorField, H: Tensor, rtol: float | None) -> Parts:
    """p(X) of every field, and the rest by rk4; the rest must not couple nodes, nor depend on the time."""
    exact = ExactPart(field, H, rtol)
    if exact.parts.remainder_products or not field.is_autonomous or field.uses_initial:
        raise NotApplicable(
            f"expected reactions at every node alone for strang, without time and starts, got {field.system.text}; use "
            "imex, rk4 or dopri5"
        )
    stepper = RungeKutta(_Remainder(exact), methods["rk4"])  # type: ignore[arg-type]

    def reaction(h: Tensor, t: Tensor) -> Tensor:
        for _ in range(SUBSTEPS):
            h = stepper.advance(h, t / SUBSTEPS).state
        return h

    return reaction, exact.flow, False


class _Remainder:
    """What a field does beside its own linear part, as a field."""

    def __init__(self, exact: ExactPart) -> None:
        self.exact = exact

    def __call__(self, t: Tensor | None, H: Tensor) -> Tensor:
        return self.exact.remainder(t, H)


def _closed_parts(field: VectorField, H: Tensor, rtol: float | None) -> Parts | None:
    """The parts of fields that do not know each other, where the theory of one field has them all."""
    try:
        alone = [field.with_system(system) for system in _uncoupled(field.system)]
        reactions, linear = [make_reaction(each) for each in alone], [diffusion_part(each) for each in alone]
    except NotApplicable:
        return None
    has_degrees = field.operator.degree is not None
    letters = {in_one_operator(x.system, has_degrees=has_degrees).letter for x in alone if _diffuses(x.system)}
    if len(letters) > 1:  # A and L = D - A: one polynomial does not serve both
        return None
    base = operator_base(field.operator, *letters) if letters else linear[0].base
    width, count = field.blocks.width(H), max(len(each.generator) for each in linear)

    def reaction(h: Tensor, t: Tensor) -> Tensor:
        blocks = h.chunk(len(reactions), -1)
        return torch.cat([flow(block, t) for flow, block in zip(reactions, blocks, strict=True)], -1)

    generator = tuple(side_by_side([_power(each, k) for each in linear], width) for k in range(count))
    return reaction, PreparedFlow(Linear(base, generator), rtol), True


def _diffuses(system: System) -> bool:
    """Whether an operator occurs in it."""
    return bool({"A", "L"} & set(system.letters))


def _power(linear: Linear, k: int) -> Tensor:
    return linear.generator[k] if k < len(linear.generator) else torch.zeros_like(linear.generator[0])


def _uncoupled(system: System) -> list[System]:
    """One system for each equation; raises where an equation has letters of another field, or is no single one."""
    for equation in system.equations:
        others = set(system.fields) - {equation.field}
        if equation.order > 1 or any(name.name in others for name in names_in(equation.expression)):
            raise NotApplicable(f"expected fields that do not know each other, got {system.text}; use imex")
    return [replace(system, equations=(equation,), name=None) for equation in system.equations]
