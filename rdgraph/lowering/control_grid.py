"""Control values on a grid, where differences are taken without rounding: declared facts hold for the numbers stored.

Rounded control values a_j break a declaration by their own last place: with |a| = 1000 and h = 0.01 a slope is off by
0.006 in single precision. So they are whole multiples n_j of a power of two q, the largest of them below 2^22 in single
and 2^51 in double precision. Whole numbers of that size are added and subtracted exactly, in any order, and

    N_j = n_{j+1} - n_j  cut to [-N, N], [0, N] or [-N, 0],  N = floor(c h (1 - 16 eps)/q),
    n_j = the sums of N_j from the middle, cut to [-B, B],   B = floor(b (1 - 16 eps)/q),

has |a_{j+1} - a_j| < c h, the declared order and |a_j| < b as numbers, not up to rounding. Cutting values brings none
farther apart. The margin of 16 eps covers the rounding of c h and of a slope that is computed: its quadratic has
coefficients of at most 2 c and seven operations, which makes less than 10 eps c.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from rdgraph.syntax.function_record import Monotone
from rdgraph.syntax.learned_function import LearnedFunction

#: How wide the grid is, in units of the last place of the largest value: differences need a bit more, cuts another.
_WIDTH = 4
#: Relative, in units of eps.
_MARGIN = 16


def on_grid(declaration: LearnedFunction, controls: Tensor) -> Tensor:
    """Control values (..., K) next to given ones, which have what is declared up to rounding; these have it exactly.

    Derivatives go through as if nothing was done.

    >>> phi = LearnedFunction("phi", knots=3, range=(0, 2), lipschitz=1)
    >>> found = on_grid(phi, torch.tensor([1e6 + 0.9, 1e6 + 2, 1e6 + 3]))
    >>> found.diff().tolist()                                                 # of a grid that is 1/4 wide
    [0.75, 0.75]
    """
    d = declaration
    if d.lipschitz is None and d.monotone is None and d.bound is None and not d.odd:
        return controls
    found: Tensor = _OnGrid.apply(controls, declaration)  # type: ignore[no-untyped-call]
    return found


class _OnGrid(torch.autograd.Function):
    """Forward the values on the grid, backward the identity."""

    @staticmethod
    def forward(_context: Any, controls: Tensor, declaration: LearnedFunction) -> Tensor:  # type: ignore[override]
        return _rounded(declaration, controls)

    @staticmethod
    def backward(_context: Any, slope: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        return slope, None


def _rounded(declaration: LearnedFunction, controls: Tensor) -> Tensor:
    limits, bound = torch.finfo(controls.dtype), declaration.bound
    largest = controls.abs().amax(-1, keepdim=True).clamp_min(limits.tiny / limits.eps**2)
    unit = _WIDTH * (torch.nextafter(largest, torch.full_like(largest, torch.inf)) - largest)
    places = (controls / unit).round()
    if declaration.odd:
        places = ((places - places.flip(-1)) / 2).trunc()
    steps = places.diff(dim=-1)
    steps = _cut_steps(declaration, steps, unit)
    if bound is not None:
        steps = functional.pad(steps[..., 1:-1], (1, 1))
    if declaration.odd:
        places = odd_values(declaration.knots, steps[..., (declaration.knots - 1) // 2 :], 1.0)
    else:
        middle = declaration.knots // 2
        places = values_around(places[..., middle : middle + 1], steps, 1.0)
    if bound is not None:
        most = (_inside(float(bound), controls.dtype) / unit).floor()
        places = torch.minimum(torch.maximum(places, -most), most)
    return places * unit


def _inside(limit: float, dtype: torch.dtype) -> float:
    """A limit less the margin."""
    return limit * (1 - _MARGIN * torch.finfo(dtype).eps)


def _cut_steps(declaration: LearnedFunction, steps: Tensor, unit: Tensor) -> Tensor:
    """Whole steps between neighbours with the declared sign and size."""
    if declaration.lipschitz is not None:
        most = (_inside(float(declaration.lipschitz * declaration.step), steps.dtype) / unit).floor()
        steps = torch.minimum(torch.maximum(steps, -most), most)
    match declaration.monotone:
        case Monotone.NONDECREASING:
            return steps.clamp_min(0.0)
        case Monotone.NONINCREASING:
            return steps.clamp_max(0.0)
    return steps


def _sums(x: Tensor) -> Tensor:
    """The sums of the first entries, in one order on every device."""
    lower = torch.ones(x.shape[-1], x.shape[-1], dtype=x.dtype, device=x.device).tril()
    return (x[..., None, :] * lower).sum(-1)


def odd_values(knots: int, slopes: Tensor, step: float) -> Tensor:
    """Values from slopes to the right of zero; with an even number of knots zero lies halfway along the first."""
    right = step * _sums(slopes)
    if knots % 2:
        return torch.cat([-right.flip(-1), torch.zeros_like(right[..., :1]), right], -1)
    right = right - 0.5 * step * slopes[..., :1]
    return torch.cat([-right.flip(-1), right], -1)


def values_around(middle: Tensor, slopes: Tensor, step: float) -> Tensor:
    """Values from slopes, with the given one at the knot in the middle."""
    half = (slopes.shape[-1] + 1) // 2
    left, right = slopes[..., :half], slopes[..., half:]
    below = middle - step * _sums(left.flip(-1)).flip(-1)
    above = middle + step * _sums(right)
    return torch.cat([below, middle.expand(*slopes.shape[:-1], 1), above], -1)
