"""Splines on equidistant knots in torch: the piece of an entry is computed arithmetically, without synchronisation.

`SOURCE` is this code as text, for generated modules, so it uses only torch.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from rdgraph.errors import InvalidArgument
from rdgraph.systems.system import System
from rdgraph.vocabulary.function_records import Monotone
from rdgraph.vocabulary.learned_functions import LearnedFunction, LearnedValues, cut_controls

# ---------------------------------------------------------------------- spline evaluation
#: The most entries of the matrices for sums over pieces; larger ones are split along the nodes.
MAX_ENTRIES = 2**26


def spline(x: torch.Tensor, pieces: torch.Tensor, lower: float, step: float) -> torch.Tensor:
    """The spline with the given pieces, at every entry of x (*batch, nodes, channels).

    >>> line = torch.tensor([-1.0, 0.0, 1.0], dtype=torch.float64)
    >>> spline(torch.tensor([[-7.0, 0.25]], dtype=torch.float64), spline_pieces(line), lower=-1.0, step=1.0)
    tensor([[-7.0000,  0.2500]], dtype=torch.float64)
    """
    position = x.to(pieces.dtype) * (1 / step) + (1 - lower / step)
    values: torch.Tensor = SplinePieces.apply(position, pieces)  # type: ignore[no-untyped-call]
    return values.to(x.dtype)


def spline_pieces(controls: torch.Tensor, per_channel: bool = False) -> torch.Tensor:
    """The cubics of the natural spline with control values: (*batch, 1, channels or 1, K + 1, 4).

    `controls` is (K,) or (*batch, K), with `per_channel` (channels, K) or (*batch, channels, K). The first and the last
    piece are the straight lines beyond the knots.
    """
    first, last, steps = controls[..., :1], controls[..., -1:], controls.diff(dim=-1)
    # From differences of neighbours: those of the values would be rounded by the size of the values.
    steps = torch.cat([steps[..., :1], steps, steps[..., -1:]], -1)
    before, here, after = steps[..., :-2], steps[..., 1:-1], steps[..., 2:]
    bend = here - before
    value = controls[..., :-1] + bend / 6
    inner = torch.stack([value, (before + here) / 2, bend / 2, ((after - here) - bend) / 6], -1)
    zero = torch.zeros_like(first)
    head = torch.stack([first - steps[..., :1], steps[..., :1], zero, zero], -1)
    tail = torch.stack([last, steps[..., -1:], zero, zero], -1)
    pieces = torch.cat([head, inner, tail], -2)
    lead = tuple(pieces.shape[:-2]) if per_channel else (*pieces.shape[:-2], 1)
    return pieces.reshape(*lead[:-1], 1, lead[-1], *pieces.shape[-2:])


class SplinePieces(torch.autograd.Function):
    """Piecewise cubics at a position: sum over p of pieces[..., k, p] (position - k)**p, with k its piece.

    position is (*batch, nodes, channels), pieces (*batch, 1, channels or 1, K + 1, 4). The first and the last piece go
    on for ever and are straight.
    """

    @staticmethod
    def forward(context: Any, position: torch.Tensor, pieces: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        context.save_for_backward(position, pieces)
        return cubic_at(*pieces_at(position, pieces))

    @staticmethod
    def backward(context: Any, slope: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:  # type: ignore[override]
        position, pieces = context.saved_tensors
        t, (_, one, two, three) = pieces_at(position, pieces)
        to_position = slope * cubic_at(t, (one, 2 * two, 3 * three))
        return to_position, sums_over_pieces(slope, position, pieces) if context.needs_input_grad[1] else None


def piece_of(position: torch.Tensor, count: int) -> torch.Tensor:
    """The piece of every position, clamped to the valid range; NaN gets an arbitrary one."""
    return position.clamp(0, count - 1).long().clamp(0, count - 1)


def pieces_at(position: torch.Tensor, pieces: torch.Tensor) -> tuple[torch.Tensor, Sequence[torch.Tensor]]:
    """The position within its piece, and the four coefficients there."""
    rows, count = pieces.shape[:-2], pieces.shape[-2]
    piece = piece_of(position, count)
    row = piece
    if rows.numel() > 1:
        row = piece + torch.arange(0, rows.numel() * count, count, device=position.device).reshape(rows)
    coefficients = pieces.reshape(-1, 4).index_select(0, row.flatten())
    return position - piece, coefficients.reshape(*row.shape, 4).unbind(-1)


def cubic_at(t: torch.Tensor, powers: Sequence[torch.Tensor]) -> torch.Tensor:
    """A polynomial by its coefficients, the constant one first."""
    value = powers[-1]
    for power in powers[-2::-1]:
        value = power + t * value
    return value


def sums_over_pieces(slope: torch.Tensor, position: torch.Tensor, pieces: torch.Tensor) -> torch.Tensor:
    """Slopes of the coefficients: sums over the entries of each piece as products of matrices, in one order."""
    rows, count = pieces.shape[:-2], pieces.shape[-2]
    position = position.expand(slope.shape)
    nodes = slope.shape[-2]
    parts = min(nodes, -(-slope.numel() * count // MAX_ENTRIES))
    if parts > 1:
        cut = zip(slope.tensor_split(parts, -2), position.tensor_split(parts, -2), strict=True)
        return torch.stack([sums_over_pieces(s, p, pieces) for s, p in cut]).sum(0)
    piece = piece_of(position, count)
    t = position - piece
    bent = t.clamp(0, 1)  # far out on the lines beyond the knots a cube would be infinite, and they have none
    powers = torch.stack([slope, slope * t, slope * bent**2, slope * bent**3], -1)
    hot = (piece[..., None] == torch.arange(count, device=position.device)).to(powers.dtype)
    width = slope.ndim
    sizes = (1,) * (width - len(rows)) + tuple(rows)
    over = [axis for axis in range(width) if sizes[axis] == 1]
    summed = [axis for axis in range(width) if sizes[axis] > 1]
    lead = [slope.shape[axis] for axis in summed]
    hot = hot.permute(*summed, *over, width).reshape(*lead, -1, count)
    powers = powers.permute(*summed, *over, width).reshape(*lead, -1, 4)
    return (hot.mT @ powers).reshape(*rows, count, 4)


_PARTS: tuple[Any, ...] = (spline, spline_pieces, SplinePieces, piece_of, pieces_at, cubic_at, sums_over_pieces)

#: The code above as text.
SOURCE = "\n\n".join(
    [
        "from collections.abc import Sequence\nfrom typing import Any\n",
        f"MAX_ENTRIES = {MAX_ENTRIES}\n",
        *(inspect.getsource(part) for part in _PARTS),
    ]
)


# ---------------------------------------------------------------------- control grid
# Control values on a grid, where differences are taken without rounding: declared properties hold for the stored
# numbers.
#
# Rounded control values a_j break a declaration by their own last place: with |a| = 1000 and h = 0.01 a slope is off by
# 0.006 in single precision. So they are whole multiples n_j of a power of two q, the largest of them below 2^22 in
# single and 2^51 in double precision. Whole numbers of that size are added and subtracted exactly, in any order, and
#
#     N_j = n_{j+1} - n_j  clipped to [-N, N], [0, N] or [-N, 0],  N = floor(c h (1 - 16 eps)/q),
#     n_j = the sums of N_j from the middle, clipped to [-B, B],   B = floor(b (1 - 16 eps)/q),
#
# has |a_{j+1} - a_j| < c h, the declared order and |a_j| < b as numbers, not up to rounding. Clipping values never
# increases their distances. The margin of 16 eps covers the rounding of c h and of a slope that is computed: its
# quadratic has coefficients of at most 2 c and seven operations, which makes less than 10 eps c.

#: The grid spacing in units of the last place of the largest value: one bit more for differences, one for clipping.
_WIDTH = 4
#: Relative, in units of eps.
_GRID_MARGIN = 16


def on_grid(declaration: LearnedFunction, controls: Tensor) -> Tensor:
    """Control values (..., K) on a grid near given ones that satisfy the declaration up to rounding; these do exactly.

    Derivatives pass through unchanged.

    >>> phi = LearnedFunction("phi", knots=3, range=(0, 2), lipschitz=1)
    >>> found = on_grid(phi, torch.tensor([1e6 + 0.9, 1e6 + 2, 1e6 + 3]))
    >>> found.diff().tolist()                                                 # of a grid that is 1/4 wide
    [0.75, 0.75]
    """
    d = declaration
    if d.lipschitz is None and d.monotone is None and d.bound is None and not d.odd:
        return controls
    values: Tensor = _OnGrid.apply(controls, declaration)  # type: ignore[no-untyped-call]
    return values


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
    """A limit reduced by the margin."""
    return limit * (1 - _GRID_MARGIN * torch.finfo(dtype).eps)


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
    """Cumulative sums, in the same order on every device."""
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
    """Values from slopes, with a given value at the middle knot."""
    half = (slopes.shape[-1] + 1) // 2
    left, right = slopes[..., :half], slopes[..., half:]
    below = middle - step * _sums(left.flip(-1)).flip(-1)
    above = middle + step * _sums(right)
    return torch.cat([below, middle.expand(*slopes.shape[:-1], 1), above], -1)


# ---------------------------------------------------------------------- learned shapes
# Control values of learned functions as tensors: their shapes, and the values a user may give.


@dataclass(frozen=True)
class LearnedShape:
    """The shapes of the control values of one learned function: (K,), or (channels, K), with or without the batch."""

    declaration: LearnedFunction
    batch: tuple[int, ...]

    @property
    def axes(self) -> int:
        return 2 if self.declaration.per_channel else 1

    def check(self, tensor: Tensor) -> None:
        """Raise unless a tensor has one of the shapes."""
        lead = tuple(tensor.shape[: tensor.ndim - self.axes])
        fits = tensor.ndim >= self.axes and tensor.shape[-1] == self.declaration.knots
        if not fits or lead not in ((), self.batch):
            axes = ("channels",) * self.declaration.per_channel + (str(self.declaration.knots),)
            shapes = [axes, (*map(str, self.batch), *axes)] if self.batch else [axes]
            words = " or ".join(f"({', '.join(s)}{',' if len(s) == 1 else ''})" for s in shapes)
            raise InvalidArgument(
                f"expected control values of {self.declaration.name} of shape {words}, got {tuple(tensor.shape)}; "
                "make them with LearnedValues"
            )

    def channels(self, tensor: Tensor) -> int | None:
        """The number of channels of the values; None if they fit any number."""
        return int(tensor.shape[-2]) if self.declaration.per_channel else None

    def view(self, tensor: Tensor) -> Tensor:
        """The spline pieces of the control values."""
        return spline_pieces(tensor, self.declaration.per_channel)

    def member(self, tensor: Tensor, index: tuple[int, ...]) -> Tensor:
        """The values of one member of the batch."""
        return tensor[index] if self.batch and tensor.ndim > self.axes else tensor

    def members(self, tensor: Tensor, index: Tensor) -> Tensor:
        """The values of some members, counted through the flattened batch; shared values unchanged."""
        if not self.batch or tensor.ndim <= self.axes:
            return tensor
        return tensor.reshape(-1, *tensor.shape[tensor.ndim - self.axes :]).index_select(0, index)


def learned_shapes(system: System, batch: tuple[int, ...]) -> dict[str, LearnedShape]:
    """The learned functions that need control values, by name."""
    return {name: LearnedShape(declared, batch) for name, declared in system.learned.items()}


def given_controls(declaration: LearnedFunction, value: Any) -> Any:
    """The values given for a learned function as control values.

    Tensors are used unchanged, since those of a training come from parameters that cannot violate a declaration;
    numbers and `LearnedValues` are compared with it.

    >>> given_controls(LearnedFunction("phi", knots=3, odd=True), [-1, 0, 1])
    array([-1.,  0.,  1.])
    """
    if isinstance(value, Tensor):
        return value
    if isinstance(value, LearnedValues):
        if value.declaration.key != declaration.key:
            raise InvalidArgument(
                f"expected values of {declaration}, got those of {value.declaration}; declare both alike"
            )
        return value.controls
    if callable(value):
        return LearnedValues.near(declaration, value).controls
    try:
        return LearnedValues(declaration, np.asarray(value, dtype=float)).controls
    except (TypeError, ValueError) as problem:
        if isinstance(problem, InvalidArgument):
            raise
        raise InvalidArgument(
            f"expected control values or a function for {declaration.name}, got {type(value).__name__}; "
            "give LearnedValues, numbers or a function of numpy"
        ) from None


def spline_call(declaration: LearnedFunction, argument: str, pieces: str) -> str:
    """The call of the spline in generated source.

    >>> spline_call(LearnedFunction("phi", knots=4), "H", "phi")
    'spline(H, phi, -3.0, 2.0)'
    """
    return f"spline({argument}, {pieces}, {float(declaration.range[0])!r}, {float(declaration.step)!r})"


# ---------------------------------------------------------------------- spline parameters
# The parameters of a learned function: free numbers that are mapped to control values with every declared property.
#
# With s_j the free slopes and m the value in the middle,
#
#     s_j = theta_j                        where no slopes are declared,
#     s_j = S_c(theta_j)                   where |phi'| <= c,
#     s_j = log(1 + e^theta_j)             where phi is nondecreasing,
#     s_j = c/(1 + e^-theta_j)             where it is both, and the negative of these where it is nonincreasing;
#     a   = m + h (sums of s_j from the middle),  m = 0 and s symmetric where phi is odd;
#     a   = S_b(a)                         where |phi| <= b, with s = 0 at both ends.
#
# S_c(x) = (2c/pi) atan(pi x/(2c)) lies in (-c, c), is odd and increasing, and has slopes of at most one: the last line
# keeps the order of the values, does not increase distances, and keeps equal ends equal. Rounding is corrected on a
# grid (see above). So the control values have every declared fact for every theta, and the function has it too
# (`rdgraph.vocabulary.learned_functions`).

#: The distance of initial values from the ends of the allowed range, where gradients vanish, as a share of it.
_START_MARGIN = 0.02
#: The least slope of a start where slopes have one sign.
_START_SLOPE = 0.1


def make_controls(declaration: LearnedFunction, parameters: Tensor) -> Tensor:
    """Control values (..., K) from free parameters (..., P); they satisfy every declared property.

    >>> phi = LearnedFunction("phi", knots=4, range=(-3, 3), odd=True, lipschitz=1)
    >>> make_controls(phi, torch.tensor([1e9, 0.0]))
    tensor([-1.0000, -1.0000,  1.0000,  1.0000])
    """
    if parameters.shape[-1:] != (declaration.parameters,):
        raise InvalidArgument(
            f"expected {declaration.parameters} parameters of {declaration.name} along the last axis, got the shape "
            f"{tuple(parameters.shape)}; see LearnedFunction.parameters"
        )
    slopes = _slopes(declaration, parameters if declaration.odd else parameters[..., 1:])
    step = float(declaration.step)
    if declaration.odd:
        values = odd_values(declaration.knots, slopes, step)
    else:
        values = values_around(parameters[..., :1], slopes, step)
    if declaration.bound is not None:
        values = _within(float(declaration.bound), values)
    return on_grid(declaration, values)


def _within(limit: float, x: Tensor) -> Tensor:
    """S(x) in (-limit, limit): odd, increasing, with the slope one at zero and smaller ones elsewhere."""
    width = 2 * limit / math.pi
    return width * torch.atan(x / width)


def _before(limit: float, values: np.ndarray) -> np.ndarray:
    """The inverse of S, a little inside the limit."""
    width = 2 * limit / math.pi
    return np.asarray(
        width * np.tan(np.clip(values, -(1 - _START_MARGIN) * limit, (1 - _START_MARGIN) * limit) / width)
    )


def _slopes(declaration: LearnedFunction, free: Tensor) -> Tensor:
    """The slopes mapped to the allowed range, with zero slopes at bounded ends."""
    sign = -1.0 if declaration.monotone is Monotone.NONINCREASING else 1.0
    limit = math.inf if declaration.lipschitz is None else float(declaration.lipschitz)
    match declaration.monotone is None, math.isinf(limit):
        case True, True:
            slopes = free
        case True, False:
            slopes = _within(limit, free)
        case False, True:
            slopes = sign * torch.logaddexp(free, torch.zeros_like(free))
        case _:
            slopes = sign * limit * torch.special.expit(free)
    if declaration.bound is None:
        return slopes
    return functional.pad(slopes, (0 if declaration.odd else 1, 1))


def parameters_of(values: LearnedValues) -> np.ndarray:
    """Free parameters (..., P) whose control values are the given ones, or near them at the ends of a range.

    >>> phi = LearnedFunction("phi", knots=6, lipschitz=2, bound=3)
    >>> line = LearnedValues.near(phi, lambda x: x / 2)
    >>> theta = torch.as_tensor(parameters_of(line))
    >>> bool(np.allclose(make_controls(phi, theta), line.controls, atol=1e-6))
    True
    """
    declaration, controls = values.declaration, values.controls
    if declaration.bound is not None:
        controls = _before(float(declaration.bound), controls)
    slopes = np.diff(controls, axis=-1) / float(declaration.step)
    count = declaration.free_slopes
    if declaration.odd:
        free = slopes[..., (declaration.knots - 1) // 2 :][..., :count]
        return _free(declaration, free)
    free = slopes if declaration.bound is None else slopes[..., 1:-1]
    middle = declaration.knots // 2
    return np.concatenate([controls[..., middle : middle + 1], _free(declaration, free)], -1)


def _free(declaration: LearnedFunction, slopes: np.ndarray) -> np.ndarray:
    """The inverse of the map to allowed slopes."""
    sign = -1.0 if declaration.monotone is Monotone.NONINCREASING else 1.0
    limit = math.inf if declaration.lipschitz is None else float(declaration.lipschitz)
    if declaration.monotone is None:
        if math.isinf(limit):
            return slopes
        return _before(limit, slopes)
    least = min(_START_SLOPE, limit / 2)
    if math.isinf(limit):
        held = np.maximum(sign * slopes, least)
        return held + np.log(-np.expm1(-held))
    share = np.clip(sign * slopes, least, limit * (1 - _START_MARGIN)) / limit
    return np.log(share) - np.log1p(-share)


def start_parameters(declaration: LearnedFunction) -> np.ndarray:
    """Initial parameters: phi = 0, or the gentlest line allowed where slopes have one sign: (P,).

    >>> start_parameters(LearnedFunction("phi", knots=4))
    array([0., 0., 0., 0.])
    """
    zero = np.zeros(declaration.knots)
    return parameters_of(LearnedValues(declaration, cut_controls(declaration, zero)))
