"""The parameters of a learned function: free numbers, from which control values with every declared fact are made.

With s_j the free slopes and m the value in the middle,

    s_j = theta_j                        where nothing is declared of the slopes,
    s_j = S_c(theta_j)                   where |phi'| <= c,
    s_j = log(1 + e^theta_j)             where phi is nondecreasing,
    s_j = c/(1 + e^-theta_j)             where it is both, and the negative of these where it is nonincreasing;
    a   = m + h (sums of s_j from the middle),  m = 0 and s symmetric where phi is odd;
    a   = S_b(a)                         where |phi| <= b, with s = 0 at both ends.

S_c(x) = (2c/pi) atan(pi x/(2c)) lies in (-c, c), is odd and increasing, and has slopes of at most one: the last
line keeps the order of the values, brings neighbours no farther apart, and keeps equal ends equal. What rounding takes
away of this is given back on a grid (`rdgraph.lowering.control_grid`). So the control values have every declared fact
for every theta, and the function has it too (`rdgraph.syntax.learned_function`).
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from rdgraph.errors import InvalidArgument
from rdgraph.lowering.control_grid import odd_values, on_grid, values_around
from rdgraph.syntax.function_record import Monotone
from rdgraph.syntax.learned_function import LearnedFunction
from rdgraph.syntax.learned_values import LearnedValues, cut_controls

#: The share of what is allowed that starting values keep away from its ends, where nothing would be learned.
_MARGIN = 0.02
#: The least slope of a start where slopes have one sign.
_START_SLOPE = 0.1


def make_controls(declaration: LearnedFunction, parameters: Tensor) -> Tensor:
    """Control values (..., K) from free parameters (..., P); every declared fact holds for them.

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
    return np.asarray(width * np.tan(np.clip(values, -(1 - _MARGIN) * limit, (1 - _MARGIN) * limit) / width))


def _slopes(declaration: LearnedFunction, free: Tensor) -> Tensor:
    """The free slopes in what is allowed, and the level ones at ends with a bound."""
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
    """Free parameters (..., P) whose control values are the given ones, or near them where those lie at an end.

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
    share = np.clip(sign * slopes, least, limit * (1 - _MARGIN)) / limit
    return np.log(share) - np.log1p(-share)


def start_parameters(declaration: LearnedFunction) -> np.ndarray:
    """Where learning begins: phi = 0, or the gentlest line allowed where slopes have one sign: (P,).

    >>> start_parameters(LearnedFunction("phi", knots=4))
    array([0., 0., 0., 0.])
    """
    zero = np.zeros(declaration.knots)
    return parameters_of(LearnedValues(declaration, cut_controls(declaration, zero)))
