"""Steps of systems with white noise, dH = f(H) dt + g(H) dW in the sense of Ito."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from rdgraph.integrators.brownian_path import BrownianPath
from rdgraph.integrators.steppers import StepResult, first_is_nan

if TYPE_CHECKING:
    from rdgraph.lowering.vector_field import VectorField


class EulerMaruyama:
    """H + f(t, H) dt + g(t, H) dW: strong order 1/2, and 1 where g does not depend on H; weak order 1.

    Steps are taken in their order, and counted.
    """

    def __init__(self, field: VectorField, path: BrownianPath) -> None:
        self.field, self.path = field, path
        self.evaluations = self.number = 0

    @property
    def products(self) -> int:
        return self.evaluations * self.field.plan.products + self.number * self.field.noise_products

    def slope(self, H: Tensor, t: Tensor | None = None) -> Tensor:
        self.evaluations += 1
        return self.field(t, H)

    def advance(self, H: Tensor, dt: Tensor, t: Tensor | None = None) -> StepResult:
        drift = self.slope(H, t)
        return StepResult(torch.addcmul(H, drift, dt) + self.kick(H, dt, t), drift)

    def kick(self, H: Tensor, dt: Tensor, t: Tensor | None) -> Tensor:
        """g(t, H) dW of the next step."""
        increment = self.path.increment(self.number, dt, H)
        self.number += 1
        return self.field.diffusion(t, H) * increment

    def is_undefined(self, H: Tensor, dt: Tensor, t: Tensor | None = None) -> Tensor:
        return first_is_nan([H, self.slope(H, t), self.field.diffusion(t, H)])
