"""`exact`: linear systems with a generator p(X) are not stepped but evaluated, H(t) = exp(t p(X)) H0 plus the forcing.

One polynomial in X serves every save time; its degree is known before the first product, from a bound of the error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from rdgraph.integrators.linear_part import linear_part
from rdgraph.integrators.propagator import Propagator
from rdgraph.integrators.solution import Stats

if TYPE_CHECKING:
    from rdgraph.lowering.vector_field import VectorField


def exact_states(
    field: VectorField, H0: Tensor, times: Tensor, *, rtol: float | None = None, atol: float | None = None
) -> tuple[Tensor, Stats]:
    """H(t) at `times` (K,) or (K, *batch), from H0 at times[0]: states (K, *batch, n, d) and what they cost.

    For a field p(X)H + s(X)H0 that is g(X)H0 with g(x) = exp(t p(x)) + t s(x) phi1(t p(x)); any other constant forcing
    F goes through H0 + t phi1(t p(X)) f(H0). Symmetric operators get a Chebyshev series on the interval of their
    spectrum, all others a power series on the disc of their norm. Column by column, before rounding,

        |error| <= rtol * gain * |H0| + atol,    gain = max |g| on the interval [-radius, radius] of the real axis,

    in the 2-norm (symmetric), maximum norm (row) or 1-norm (column, free) of the column; the radius is 1 for
    normalised operators. Where nothing grows, the root mean square of |g| takes the place of the maximum, since the
    state shrinks, too. A power series is held to this bound in the root mean square over the unit circle; the worst
    case over all operators is twice as much. With another forcing, gain*|H0| becomes
    max(1, max exp(t p))*|H0| + max |t phi1(t p)|*|F|.

    Rounding adds up to about 64 eps of the dtype. Where cancellation would add more, or where the gain is large
    (above 1e4 for rtol < 1e-8, 2e6 otherwise), the time is cut into equal parts (`Stats.accepted` counts them): the
    gain above becomes max(1, gain), and the error on a graph whose spectrum does not reach the fastest frequency
    stays small. rtol defaults to 1e-10 for float64 and to 1e-6 otherwise, atol to 0. A member whose exponential
    overflows gets infinite states; the others do not notice.

    Several fields, h' = P(X)h + S(X)h0 with F x F matrices P(x) and S(x), are a packed state (*batch, n, F*d): g(x) is
    then the matrix exp(t P(x)) + t phi1(t P(x)) S(x) and g(X)h0 = sum_k C_k b_k(X) h0 with F x F coefficients, one
    product over all fields for each k. The bound holds channel by channel, |H0| being the norm over nodes and fields
    and |g| at most the operator norm in it. The degree follows in advance: in any norm |C_k| <= 2 M rho^-k where
    |g| <= M on the Bernstein ellipse rho, and M comes from the logarithmic norm (`MatrixFilters.log_bound`).

    Differentiable in coefficients, times, edge weights and H0. Where a derivative with respect to coefficients or times
    is recorded, deg p more products hold it to a like tolerance.

    >>> import rdgraph as rd
    >>> op = rd.Graph.from_edges([[0, 1], [1, 0]]).operator("symmetric", dtype=torch.float64)
    >>> field = rd.lower("diffusion", op, {"alpha": 1.0})
    >>> states, stats = exact_states(field, torch.tensor([[2.0], [0.0]], dtype=torch.float64), torch.tensor([0.0, 1.0]))
    >>> states[1].ravel(), stats.products
    (tensor([1.1353, 0.8647], dtype=torch.float64), 10)
    """
    linear = linear_part(field)
    elapsed = spread(times - times[0], H0)
    moving = [k for k in range(len(elapsed)) if bool((elapsed[k] != 0).any())]
    states = [H0] * len(elapsed)
    if not moving:
        return torch.stack(states), Stats()
    rate = _Rate(field) if linear.source != () else None
    propagator = Propagator.make(linear, elapsed[moving], H0, rtol=rtol, atol=atol, forced=rate)
    for k, state in zip(moving, propagator(H0), strict=True):
        states[k] = state
    calls = rate.calls if rate else 0
    products = propagator.products + calls * field.plan.products
    return torch.stack(states), Stats(calls, products, len(propagator.segments))


def spread(elapsed: Tensor, H: Tensor) -> Tensor:
    """Times (K,) or (K, *batch) shaped (K, *batch or ones, 1, 1), in float64 on the device of H."""
    shape = (*elapsed.shape, *(1,) * (H.ndim + 1 - elapsed.ndim)) if elapsed.ndim == 1 else (*elapsed.shape, 1, 1)
    return elapsed.to(device=H.device, dtype=torch.float64).reshape(shape)


class _Rate:
    """The rate of change f(H), counted: p(X)H plus a forcing that is constant in time."""

    def __init__(self, field: VectorField) -> None:
        self.field, self.calls = field, 0

    def __call__(self, H: Tensor) -> Tensor:
        self.calls += 1
        return self.field(0.0, H)
