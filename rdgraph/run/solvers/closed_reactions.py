"""Closed flows of entrywise reactions: h' = a h + b h^m (Fisher, Allen-Cahn) and h' = k h^2 (1 - h) (Zeldovich).

The formulas are those of `rdgraph.theory.reaction_flows`, arranged so that nothing overflows, no limit divides zero by
zero, and a flow that has passed its pole is infinite instead of coming back on the other side.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import sympy as sp
import torch
from torch import Tensor

from rdgraph.errors import NotApplicable
from rdgraph.language.normal_form import H
from rdgraph.run.solvers.matrix_functions import phi1
from rdgraph.theory.reaction_flows import reaction_flow

if TYPE_CHECKING:
    from rdgraph.run.lowering.vector_field import VectorField

_MOST_STEPS = 64
_CLOSE = 6e-3


def make_reaction(field: VectorField) -> Callable[[Tensor, Tensor], Tensor]:
    """The flow (h, t) -> h(t) of the system on states that diffusion does not change; elementwise.

    Raises NotApplicable, with the reason, if no closed flow is known. t is () or broadcasts against h.
    """
    structure = field.system.structure
    if structure.has_source:
        raise NotApplicable(f"expected a reaction of H alone, got the source H0 in {field.system}; use dopri5 or rk4")
    reaction_flow(field.system)
    rate = sp.Poly(sp.expand(sum(structure.generator.values(), sp.S.Zero) * H + structure.reaction), H)
    powers = {degree: field.value(coefficient) for (degree,), coefficient in rate.terms()}
    zero = field.value(sp.S.Zero)

    def reaction(h: Tensor, t: Tensor) -> Tensor:
        wide = torch.promote_types(h.dtype, torch.float32)
        values = {m: value.to(wide) for m, value in powers.items()}
        x, time = h.to(wide), t.to(device=h.device, dtype=wide)
        if set(powers) == {2, 3}:
            return zeldovich(x, values[2], time).to(h.dtype)
        order = max(2, *powers)
        linear = values.get(1, zero.to(wide))
        return bernoulli(x, linear, values.get(order, zero.to(wide)), order, time).to(h.dtype)

    return reaction


def bernoulli(h: Tensor, a: Tensor, b: Tensor, order: int, t: Tensor) -> Tensor:
    """Flow of h' = a h + b h^m with m = order >= 2; infinite from the blow-up on.

    With n = m - 1, z = n a t and x = -(b/a) h^n, which is 1 at an equilibrium, it is h/((1 - x) exp(-z) + x)^(1/n); for
    small z the same with phi1 in the place of the quotient. Exponents are never positive.

    >>> half, one = torch.tensor(0.5), torch.tensor(1.0)
    >>> bernoulli(half, one, -one, 2, torch.tensor([0.0, 1.0, 1000.0]))
    tensor([0.5000, 0.7311, 1.0000])
    """
    n = order - 1
    z = n * a * t
    rising, plain = z >= 0, z.abs() > 0.5
    exponent = torch.where(rising, -z, z).clamp(min=-_longest(h))
    decay = torch.exp(exponent)
    # The state is scaled to |y| <= 1 by a constant, so that its powers stay finite.
    size = h.detach().abs().clamp(min=1)
    y = h / size
    share, unit = -b / torch.where(plain, a, 1.0) * y**n, size**-n
    far = torch.where(rising, (unit - share) * decay + share, unit - share + share * decay)
    near = torch.where(rising, decay, 1.0) * unit - b * (n * t) * phi1(exponent) * y**n
    below = torch.where(plain, far, near)
    blown = below <= 0
    value = y * torch.where(rising, 1.0, torch.exp(exponent / n)) / _root(torch.where(blown, 1.0, below), n)
    return torch.where(blown, torch.sign(h) * torch.inf, value)


def zeldovich(h: Tensor, k: Tensor, t: Tensor) -> Tensor:
    """Flow of h' = k h^2 (1 - h); infinite from the blow-up on.

    With y = (1 - h)/h the equation is y + ln|y| = y0 + ln|y0| - k t. Its logarithm u = ln(y/y0) solves the equation

        h0 (u + k t) + (1 - h0)(exp(u) - 1) = 0,    and then h = h0/(h0 + (1 - h0) exp(u)),

    which has neither the overflow nor the branches of Lambert's W: Newton's method stays on the branch it starts on.

    >>> zeldovich(torch.tensor([0.0, 0.5, 1.0, 2.0, -1.0]), torch.tensor(1.0), torch.tensor(2.0))
    tensor([ 0.0000,  0.7822,  1.0000,  1.0448, -0.2567])
    """
    s = (k * t).expand_as(h) if (k * t).ndim <= h.ndim else k * t
    inverse = torch.where(h == 0, 1.0, 1 / torch.where(h == 0, 1.0, h)).detach()
    outside = (h < 0) | (h > 1)
    blown = outside & (s < 0) & (-s >= -inverse - torch.log1p(-inverse))
    x, s = torch.where(blown, 0.5, h), torch.where(blown, 0.0, s)
    u = _log_ratio(x.detach(), s.detach())
    for _ in range(2):  # twice: value, first and second derivatives are then those of the solution
        u = u - _newton(u, x, s)[0]
    below = x + (1 - x) * torch.exp(u.clamp(max=_longest(h)))
    blown = blown | (below <= 0)
    return torch.where(blown, torch.sign(h) * torch.inf, x / torch.where(blown, 1.0, below))


@torch.no_grad()
def _log_ratio(h: Tensor, s: Tensor) -> Tensor:
    """The root u of h (u + s) + (1 - h)(exp(u) - 1) that is 0 for s = 0, up to two more steps of Newton's method.

    The left side is convex for h < 1 and concave for h > 1; the starts lie where Newton's steps do not overshoot. Every
    entry stops separately, so that its bits do not depend on the others.
    """
    forward, inside = s >= 0, (h >= 0) & (h <= 1)
    grown = torch.log1p((h * -s / (1 - h)).clamp(min=0))
    start = torch.where(forward, 0.0, torch.minimum(-s, torch.where(h < 1, grown, torch.inf)))
    above = torch.where(forward, -s - (h - 1) / torch.where(h > 1, h, 1.0), -s)
    below = torch.where(forward, torch.log1p((-h / (1 - h) * s).clamp(min=0)), 0.0)
    u = torch.where(inside, start, torch.where(h > 1, above, below))
    moving = torch.ones_like(u, dtype=torch.bool)
    for _ in range(_MOST_STEPS):
        step, slope = _newton(u, h, s)
        u = torch.where(moving, u - step, u)
        # The second derivative is slope - h. Once e = step*second/(2 slope) is small, the error is e times the step and
        # every further step squares e: two more of them finish.
        moving = moving & (((step * (slope - h)).abs() > _CLOSE * slope.abs()) | (step.abs() > 1))
        if not bool(moving.any()):
            break
    return u


def _newton(u: Tensor, h: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
    """Newton's step for h (u + s) + (1 - h)(exp(u) - 1), and the derivative; at h = 1, where u may be large, finite."""
    power = u.clamp(max=_longest(u))
    slope = h + (1 - h) * torch.exp(power)
    return (h * (u + s) + (1 - h) * torch.expm1(power)) / slope, slope


def _longest(like: Tensor) -> float:
    """An exponent whose exponential and its inverse are well within the range of the dtype."""
    return 0.85 * math.log(torch.finfo(like.dtype).max)


def _root(x: Tensor, n: int) -> Tensor:
    """x^(1/n) for x > 0, in functions whose bits do not depend on the position of an entry, unlike torch's power."""
    match n:
        case 1:
            return x
        case 2:
            return torch.sqrt(x)
    return torch.exp(torch.log(x) / n)
