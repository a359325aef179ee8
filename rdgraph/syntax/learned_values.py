"""`LearnedValues`: a learned function with numbers: its control values, what it takes at a point, and its slopes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdgraph.errors import InvalidArgument
from rdgraph.syntax.function_record import Monotone
from rdgraph.syntax.learned_function import LearnedFunction

Array = NDArray[np.float64]

#: How far rounding may take control values beyond what was declared, relative to their size.
_ROUNDING = 1e-5

#: From four neighbouring control values to the powers of the place between the middle two.
_POWERS = np.array([[1, 4, 1, 0], [-3, 0, 3, 0], [3, -6, 3, 0], [-1, 3, -3, 1]]) / 6


@dataclass(frozen=True, eq=False)
class LearnedValues:
    """A learned function at given control values, of shape (..., K); those in front are functions beside each other.

    >>> phi = LearnedFunction("phi", knots=5, range=(-2, 2))
    >>> square = LearnedValues.through(phi, lambda x: x**2)
    >>> [round(float(y), 12) for y in square(np.array([-1.0, 1.0, 4.0]))]
    [1.0, 1.0, 10.857142857143]
    """

    declaration: LearnedFunction
    controls: Array

    def __post_init__(self) -> None:
        controls = np.asarray(self.controls, dtype=float)
        if controls.ndim < 1 or controls.shape[-1] != self.declaration.knots:
            raise InvalidArgument(
                f"expected {self.declaration.knots} control values of {self.declaration.name} along the last axis, "
                f"got the shape {controls.shape}; see LearnedValues.through"
            )
        object.__setattr__(self, "controls", controls)
        if problem := broken_fact(self.declaration, controls):
            raise InvalidArgument(
                f"expected control values with what is declared of {self.declaration.name}, got {problem}; "
                "make them with LearnedValues.near"
            )

    @classmethod
    def through(cls, declaration: LearnedFunction, function: Callable[[Array], Any]) -> LearnedValues:
        """The spline that takes the values of a function at the knots; what is declared must hold for it."""
        return cls(declaration, controls_at(knots_of(declaration), declaration, function))

    @classmethod
    def near(cls, declaration: LearnedFunction, function: Callable[[Array], Any]) -> LearnedValues:
        """The spline through the values of a function at the knots, with slopes and values cut to what is declared.

        >>> phi = LearnedFunction("phi", knots=9, range=(-2, 2), odd=True, lipschitz=1)
        >>> steep = LearnedValues.near(phi, lambda x: 3 * x + 1)
        >>> [round(float(y), 12) for y in steep([-2.0, 0.0, 5.0])]
        [-2.0, 0.0, 5.0]
        """
        return cls(declaration, cut_controls(declaration, controls_at(knots_of(declaration), declaration, function)))

    # ------------------------------------------------------------------ values
    def __call__(self, x: Any) -> Array:
        """phi(x); with axes in front, every function at every point: (..., *x.shape)."""
        return self._evaluated(x, 0)

    def slope(self, x: Any) -> Array:
        """phi'(x)."""
        return self._evaluated(x, 1)

    def curvature(self, x: Any) -> Array:
        """phi''(x), zero in the tails."""
        return self._evaluated(x, 2)

    def _evaluated(self, x: Any, order: int) -> Array:
        points = np.asarray(x, dtype=float)
        matrix = basis(self.declaration, points.ravel(), order)
        found: Array = self.controls @ matrix.T
        return found.reshape((*self.controls.shape[:-1], *points.shape))

    @property
    def knots(self) -> Array:
        """Where the pieces meet."""
        return knots_of(self.declaration)

    @property
    def lipschitz(self) -> Array:
        """The steepest slope between control values, which no slope of the function exceeds: (...,)."""
        found: Array = np.abs(np.diff(self.controls, axis=-1)).max(-1) / float(self.declaration.step)
        return found


def knots_of(declaration: LearnedFunction) -> Array:
    """The knots x_0, ..., x_{K-1}."""
    lower, upper = map(float, declaration.range)
    return np.linspace(lower, upper, declaration.knots)


def basis(declaration: LearnedFunction, x: Any, order: int = 0) -> Array:
    """The matrix (points, K) that takes control values to phi(x), or to a derivative of the given order.

    >>> phi = LearnedFunction("phi", knots=5, range=(-2, 2))
    >>> bool(np.allclose(basis(phi, [-9.0, 0.3, 7.0]).sum(1), 1.0))
    True
    """
    points = np.asarray(x, dtype=float)
    lower, step, count = float(declaration.range[0]), float(declaration.step), declaration.knots
    place = (points - lower) / step
    inside = np.clip(np.nan_to_num(place), 0, count - 1)
    piece = np.minimum(np.floor(inside).astype(int), count - 2)
    t, beyond = inside - piece, place - inside
    powers = _derived(t, order) @ _POWERS
    if order == 0:
        powers += beyond[:, None] * (_derived(t, 1) @ _POWERS)
    matrix = np.zeros((len(points), count + 2))
    np.add.at(matrix, (np.arange(len(points))[:, None], piece[:, None] + np.arange(4)), powers)
    folded = matrix[:, 1:-1]
    folded[:, [0, 1]] += matrix[:, :1] * [2, -1]
    folded[:, [-1, -2]] += matrix[:, -1:] * [2, -1]
    return folded / step**order


def _derived(t: Array, order: int) -> Array:
    """The powers 1, t, t**2, t**3, derived so many times."""
    match order:
        case 0:
            rows = [np.ones_like(t), t, t**2, t**3]
        case 1:
            rows = [np.zeros_like(t), np.ones_like(t), 2 * t, 3 * t**2]
        case 2:
            rows = [np.zeros_like(t), np.zeros_like(t), 2 * np.ones_like(t), 6 * t]
        case _:
            raise InvalidArgument(f"expected a derivative of order 0, 1 or 2, got {order}; the spline has no others")
    return np.stack(rows, -1)


def controls_at(points: Array, declaration: LearnedFunction, function: Callable[[Array], Any]) -> Array:
    """Control values of the spline nearest to a function at some points; through it at the knots."""
    values = np.broadcast_to(np.asarray(function(points), dtype=float), points.shape)
    return np.linalg.lstsq(basis(declaration, points), values, rcond=None)[0]


def cut_controls(declaration: LearnedFunction, controls: Array) -> Array:
    """Control values near given ones that have everything that is declared.

    Slopes are cut to those allowed and put together again from the middle, then values are cut to the bound, which
    makes no slope steeper and turns none round.
    """
    slopes, step = np.diff(controls, axis=-1) / float(declaration.step), float(declaration.step)
    if declaration.odd:
        slopes = (slopes + slopes[..., ::-1]) / 2
    if declaration.slope is not None:
        slopes = np.clip(slopes, float(declaration.slope.lower), float(declaration.slope.upper))
    if declaration.bound is not None:
        slopes[..., [0, -1]] = 0.0
    sums = np.concatenate([np.zeros_like(controls[..., :1]), np.cumsum(slopes, -1) * step], -1)
    if declaration.odd:
        cut = sums - sums[..., -1:] / 2
        cut = (cut - cut[..., ::-1]) / 2
    else:
        middle = declaration.knots // 2
        cut = sums + (controls - sums)[..., middle : middle + 1]
    return cut if declaration.bound is None else np.clip(cut, -float(declaration.bound), float(declaration.bound))


def broken_fact(declaration: LearnedFunction, controls: Array) -> str:
    """Which declared fact the control values break, beyond rounding; empty where they have all of them."""
    room = _ROUNDING * max(1.0, float(np.abs(controls).max(initial=0.0)))
    steps, step = np.diff(controls, axis=-1), float(declaration.step)
    if not np.isfinite(controls).all():
        return "control values that are not finite"
    if declaration.odd and np.abs(controls + controls[..., ::-1]).max(initial=0.0) > room:
        return "values that are not odd"
    signs = {Monotone.NONDECREASING: (steps.min(initial=0.0) < -room, "fall"),
             Monotone.NONINCREASING: (steps.max(initial=0.0) > room, "rise")}  # fmt: skip
    if declaration.monotone is not None and signs[Monotone(declaration.monotone)][0]:
        return f"values that {signs[Monotone(declaration.monotone)][1]} somewhere"
    if declaration.lipschitz is not None:
        steepest = float(np.abs(steps).max(initial=0.0))
        if steepest > float(declaration.lipschitz) * step + room:
            return f"the slope {steepest / step:.6g}, beyond {declaration.lipschitz}"
    if declaration.bound is not None:
        largest = float(np.abs(controls).max(initial=0.0))
        if largest > float(declaration.bound) + room:
            return f"the value {largest:.6g}, beyond {declaration.bound}"
        if np.abs(steps[..., [0, -1]]).max(initial=0.0) > room:
            return "tails that are not level, so that no bound holds there"
    return ""
