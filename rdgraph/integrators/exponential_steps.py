"""Steps that take the linear part of every field exactly: `imex` for what is stiff, and the same with noise."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from rdgraph.integrators.brownian_path import BrownianPath
from rdgraph.integrators.linear_part import Linear
from rdgraph.integrators.prepared_flow import PreparedFlow
from rdgraph.integrators.scaled_operator import operator_base
from rdgraph.integrators.steppers import StepResult, first_is_nan
from rdgraph.lowering.split_field import SplitField

if TYPE_CHECKING:
    from rdgraph.lowering.vector_field import VectorField


class ExactPart:
    """The flow of p(X) over steps: exp(dt p(X)), and with a constant forcing r the states H + dt phi1(dt p(X))(pH + r).

    All fields go through one polynomial in X, with coefficients of their own. `products` counts sparse products.
    """

    def __init__(self, field: VectorField, H: Tensor, rtol: float | None = None) -> None:
        self.parts = SplitField(field)
        self.base = operator_base(field.operator, self.parts.letter)
        generator = self.parts.generator(field.blocks.width(H))
        self.flow = PreparedFlow(Linear(self.base, generator), rtol)
        forced = Linear(self.base, generator, None)
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

    Strong order 1/2, and 1 where g does not depend on H; weak order 1. Stable for every step where the rest is tame.
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
