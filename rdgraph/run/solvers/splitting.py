"""`strang`: exact diffusion composed with the closed flow of the reaction, order 2 for every step size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from rdgraph.errors import NotApplicable
from rdgraph.language.tree import names_in
from rdgraph.run.lowering.field_blocks import side_by_side
from rdgraph.run.lowering.split_field import SplitField
from rdgraph.run.solvers.closed_reactions import make_reaction
from rdgraph.run.solvers.linear_part import Linear, diffusion_part
from rdgraph.run.solvers.noise import BrownianPath
from rdgraph.run.solvers.operator_filters import operator_base
from rdgraph.run.solvers.propagator import PreparedFlow
from rdgraph.run.solvers.steppers import RungeKutta, StepResult, first_is_nan
from rdgraph.systems.single_operator import in_one_operator
from rdgraph.systems.system import System
from rdgraph.vocabulary.methods import methods

if TYPE_CHECKING:
    from rdgraph.run.lowering.vector_field import VectorField


# ---------------------------------------------------------------------- exponential steps
# Steps that take the linear part of every field exactly: `imex` for stiff systems, also with noise.


class ExactPart:
    """The flow of p(X) over steps: exp(dt p(X)), and with a constant forcing r the states H + dt phi1(dt p(X))(pH + r).

    All fields go through one polynomial in X, with different coefficients. `products` counts sparse products.
    """

    def __init__(self, field: VectorField, H: Tensor, rtol: float | None = None) -> None:
        self.parts = SplitField(field)
        self.base = operator_base(field.operator, self.parts.letter)
        generator = self.parts.generator(field.blocks.width(H))
        self.flow = PreparedFlow(Linear.scalar(self.base, generator), rtol)
        forced = Linear.scalar(self.base, generator, None)
        self.forced = {share: PreparedFlow(forced, rtol, self.rate) for share in (0.5, 1.0)}
        self.products = 0

    def rate(self, H: Tensor) -> Tensor:
        """p(X)H."""
        self.products += self.parts.degree
        return self.parts.linear(H)

    def remainder(self, t: Tensor | None, H: Tensor) -> Tensor:
        """r(t, H)."""
        self.products += self.parts.remainder_products
        return self.parts.remainder(t, H)

    def decayed(self, x: Tensor, dt: Tensor) -> Tensor:
        """exp(dt p(X))x."""
        propagator = self.flow.over(dt, x)
        self.products += propagator.products
        return propagator(x)[0]

    def moved(self, H: Tensor, dt: Tensor, rate: Tensor, forcing: Tensor, share: float = 1.0) -> Tensor:
        """H after a share of the step dt of h' = p(X)h + forcing; `rate` is p(X)H."""
        if not self.parts.degree and not any(self.parts.stages.generators):
            return torch.addcmul(H, forcing, share * dt)

        def slope(x: Tensor) -> Tensor:
            return (rate if x is H else self.rate(x)) + forcing

        propagator = replace(self.forced[share].over(share * dt, H), rate=slope)
        self.products += propagator.products
        return propagator(H)[0]


class Imex:
    """The exponential midpoint rule for h' = p(X)h + r(t, h): order 2, exact for linear fields, keeps fixed points.

        a  = H + dt/2 phi1(dt/2 p)(pH + r(t, H)),    H(t + dt) = H + dt phi1(dt p)(pH + r(t + dt/2, a))

    (Hochbruck and Ostermann, "Exponential integrators", Acta Numerica 2010, have the theory.) The step is limited by
    the rest r alone, not by the diffusion.
    """

    def __init__(self, field: VectorField, H: Tensor, rtol: float | None = None) -> None:
        self.field = field
        self.exact = ExactPart(field, H, rtol)
        self.evaluations = 0

    @property
    def products(self) -> int:
        return self.exact.products

    def slope(self, H: Tensor, t: Tensor | None = None) -> Tensor:
        self.evaluations += 1
        return self.exact.rate(H) + self.exact.remainder(t, H)

    def advance(self, H: Tensor, dt: Tensor, t: Tensor | None = None) -> StepResult:
        self.evaluations += 2
        rate, first = self.exact.rate(H), self.exact.remainder(t, H)
        middle = self.exact.moved(H, dt, rate, first, 0.5)
        later = None if t is None else t + dt / 2
        second = self.exact.remainder(later, middle)
        return StepResult(self.exact.moved(H, dt, rate, second), rate + first)

    def is_undefined(self, H: Tensor, dt: Tensor, t: Tensor | None = None) -> Tensor:
        slope = self.slope(H, t)
        middle = torch.addcmul(H, slope, dt / 2)
        return first_is_nan([H, slope, self.slope(middle, None if t is None else t + dt / 2)])


class ExponentialEulerMaruyama:
    """H + dt phi1(dt p)(pH + r(t, H)) + exp(dt/2 p) g(t, H) dW: diffusion is exact, reaction and noise are explicit.

    Strong order 1/2, and 1 where g does not depend on H; weak order 1. Stable for every step if the rest is not stiff.
    """

    def __init__(self, field: VectorField, path: BrownianPath, H: Tensor, rtol: float | None = None) -> None:
        self.field, self.path = field, path
        self.exact = ExactPart(field, H, rtol)
        self.evaluations = self.number = 0

    @property
    def products(self) -> int:
        return self.exact.products + self.number * self.field.noise_products

    def slope(self, H: Tensor, t: Tensor | None = None) -> Tensor:
        self.evaluations += 1
        return self.exact.rate(H) + self.exact.remainder(t, H)

    def advance(self, H: Tensor, dt: Tensor, t: Tensor | None = None) -> StepResult:
        self.evaluations += 1
        rate, forcing = self.exact.rate(H), self.exact.remainder(t, H)
        kick = self.field.diffusion(t, H) * self.path.increment(self.number, dt, H)
        self.number += 1
        moved = self.exact.moved(H, dt, rate, forcing)
        return StepResult(moved + self.exact.decayed(kick, dt / 2), rate + forcing)

    def is_undefined(self, H: Tensor, dt: Tensor, t: Tensor | None = None) -> Tensor:
        return first_is_nan([H, self.slope(H, t), self.field.diffusion(t, H)])


# ---------------------------------------------------------------------- strang splitting
Reaction = Callable[[Tensor, Tensor], Tensor]
#: Steps of rk4 in half a reaction without a closed flow.
SUBSTEPS = 4


class Strang:
    """Steps of f = [p(X) - p(1)]H + [p(1)H + r(H)]: half a reaction, the whole diffusion, half a reaction; order 2.

    If each part is solved exactly (`is_closed`), a box invariant for both parts is invariant for every step: [0, 1]
    (Fisher, Zeldovich) and [-1, 1] (Allen-Cahn) on row-stochastic operators. (Where L = D - A and X = L, diffusion
    rests at p(0).) `products` counts the sparse products of all steps so far.
    """

    def __init__(self, reaction: Reaction, diffusion: PreparedFlow, is_closed: bool = True) -> None:
        self.reaction, self.diffusion, self.is_closed = reaction, diffusion, is_closed
        self.products = 0

    def advance(self, H: Tensor, dt: Tensor) -> Tensor:
        """H after a step dt, () or (*batch, 1, 1); entries that pass their blow-up become infinite or NaN."""
        H = self.reaction(H, dt / 2)
        propagator = self.diffusion.over(dt, H)
        self.products += propagator.products
        return self.reaction(propagator(H)[0], dt / 2)


def make_strang(field: VectorField, *, rtol: float | None = None) -> Strang:
    """The stepper of a field whose reaction has a closed flow and whose diffusion is a polynomial in one operator.

    `rtol` is the accuracy of each diffusion step, as in `exact_states`. Raises `NotApplicable` with the reason.

    >>> import torch, rdgraph as rd
    >>> op = rd.Graph.from_edges([[0, 1], [1, 0]]).operator("row", dtype=torch.float64)
    >>> strang = make_strang(rd.lower("F", op, {"alpha": 1.0, "beta": 1.0}))
    >>> strang.advance(torch.tensor([[0.5], [0.5]], dtype=torch.float64), torch.tensor(1.0)).ravel()
    tensor([0.7311, 0.7311], dtype=torch.float64)
    """
    return Strang(make_reaction(field), PreparedFlow(diffusion_part(field), rtol))


# ---------------------------------------------------------------------- field splitting
# `strang` for several fields: exact diffusion of every field between halves of the reaction between them.


def make_field_strang(field: VectorField, H: Tensor, rtol: float | None = None) -> Strang:
    """The stepper of several fields for states like H.

    Uncoupled fields whose reactions have closed flows are split one by one; otherwise the reaction at every node is
    solved by a few steps of rk4.
    """
    return _closed_strang(field, H, rtol) or _stepped_strang(field, H, rtol)


def _stepped_strang(field: VectorField, H: Tensor, rtol: float | None) -> Strang:
    """The splitting with the rest by rk4, which must not couple nodes nor depend on the time."""
    exact = ExactPart(field, H, rtol)
    if exact.parts.remainder_products or not field.is_autonomous or field.uses_initial:
        raise NotApplicable(
            f"expected reactions at every node alone for strang, without time and starts, got {field.system.text}; use "
            "imex, rk4 or dopri5"
        )
    stepper = RungeKutta(exact.remainder, methods["rk4"])  # type: ignore[arg-type]

    def reaction(h: Tensor, t: Tensor) -> Tensor:
        for _ in range(SUBSTEPS):
            h = stepper.advance(h, t / SUBSTEPS).state
        return h

    return Strang(reaction, exact.flow, is_closed=False)


def _closed_strang(field: VectorField, H: Tensor, rtol: float | None) -> Strang | None:
    """The splitting of uncoupled fields with closed flows and one operator; None for others."""
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
    return Strang(reaction, PreparedFlow(Linear.scalar(base, generator), rtol))


def _diffuses(system: System) -> bool:
    """Whether an operator occurs in it."""
    return bool({"A", "L"} & set(system.letters))


def _power(linear: Linear, k: int) -> Tensor:
    numbers = [matrix[0][0] for matrix in linear.generator]
    return numbers[k] if k < len(numbers) else torch.zeros_like(numbers[0])


def _uncoupled(system: System) -> list[System]:
    """One system for each equation; raises where an equation names another field or is of higher order."""
    for equation in system.equations:
        others = set(system.fields) - {equation.field}
        if equation.order > 1 or any(name.name in others for name in names_in(equation.expression)):
            raise NotApplicable(f"expected uncoupled fields, got {system.text}; use imex")
    return [replace(system, equations=(equation,), name=None) for equation in system.equations]
