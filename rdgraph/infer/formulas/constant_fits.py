"""The constants of a formula by least squares: Levenberg's and Marquardt's method, all sets of a target at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from rdgraph.errors import InvalidArgument
from rdgraph.infer.formulas.prefix_terms import Word, evaluate, with_slopes

# ---------------------------------------------------------------------- sampled target
# What a formula is held against: samples of a function, or rows that are linear in its values.

Array = np.ndarray
#: From values (..., sets, points) to rows (..., sets, rows), linear.
Measure = Callable[[Array], Array]


@dataclass(frozen=True)
class Target:
    """Rows y (sets, rows) that `measure` should make of the values of f at x (sets, points).

    A set is a function of its own, as of one split of a training: all have the formula in common, not its constants.
    `noise` is the standard deviation of the rows where it is known.
    """

    x: Array
    y: Array
    measure: Measure = field(repr=False)
    noise: float | None = None

    @property
    def sets(self) -> int:
        return int(self.y.shape[0])

    @property
    def count(self) -> int:
        """How many rows there are."""
        return int(self.y.size)

    @cached_property
    def scale(self) -> float:
        """The root of the mean square of the rows, 1 where all are zero."""
        return float(np.sqrt(np.square(self.y).mean())) or 1.0


def samples(x: object, y: object, *, weights: object = None, noise: float | None = None) -> Target:
    """Samples of one function (points,), or of one for each set (sets, points); weights multiply the squared errors.

    >>> target = samples([0, 1, 2], [0, 2, 4])
    >>> target.sets, target.count
    (1, 3)
    """
    try:
        points, values = (np.atleast_2d(np.asarray(part, dtype=float)) for part in (x, y))
    except (TypeError, ValueError):
        raise InvalidArgument("expected numbers for x and y, got something else; give arrays") from None
    if values.ndim != 2 or values.shape[1] < 2 or points.shape not in (values.shape, (1, values.shape[1])):
        raise InvalidArgument(
            f"expected x and y of the same shape (points,) or (sets, points), got {points.shape} and {values.shape}"
        )
    if not (np.isfinite(points).all() and np.isfinite(values).all()):
        raise InvalidArgument("expected finite samples, got NaN or infinity; leave these out")
    if noise is not None and not noise > 0:
        raise InvalidArgument(f"expected a positive noise, got {noise}; leave it out where there is none")
    points = np.broadcast_to(points, values.shape)
    if weights is None:
        return Target(points, values, _itself, noise)
    given = np.asarray(weights, dtype=float)
    if given.shape not in (values.shape, values.shape[1:]) or not (given >= 0).all() or not given.any():
        raise InvalidArgument(f"expected weights >= 0 of the shape of y, not all zero, got the shape {given.shape}")
    roots = np.sqrt(given / given.mean())
    return Target(points, values * roots, lambda f: f * roots, noise)


def _itself(values: Array) -> Array:
    return values


# ---------------------------------------------------------------------- constant fits
_FIRST_DAMPING, _LESS, _MORE, _MAX_DAMPING = 1e-3, 0.2, 6.0, 1e10


@dataclass(frozen=True)
class ConstantFit:
    """Constants (sets, count) with the sum of squares of each set, infinite where the formula has no value."""

    constants: Array
    squares: Array

    @property
    def total(self) -> float:
        return float(self.squares.sum())


def squares_of(target: Target, word: Word, constants: Array) -> Array:
    """The sum of squares of every set (sets,)."""
    with np.errstate(all="ignore"):
        left = target.y - target.measure(evaluate(word, constants, target.x))
        squares = np.square(left).sum(-1)
    return np.where(np.isfinite(squares), squares, np.inf)


def polished(target: Target, word: Word, constants: Array, steps: int = 30, gain: float = 1e-10) -> ConstantFit:
    """The constants from where they stand down to the nearest least squares."""
    constants = constants.astype(float).copy()
    squares = squares_of(target, word, constants)
    if not constants.shape[1]:
        return ConstantFit(constants, squares)
    damping = np.full(target.sets, _FIRST_DAMPING)
    active = np.isfinite(squares)
    for _ in range(steps):
        if not active.any():
            break
        products, slopes = _normal_equations(target, word, constants)
        tried = constants + np.where(active[:, None], _step(products, slopes, damping), 0.0)
        found = squares_of(target, word, tried)
        better = (found < squares) & active
        gained = np.where(better, (squares - found) / np.maximum(squares, np.finfo(float).tiny), 1.0)
        constants = np.where(better[:, None], tried, constants)
        squares = np.where(better, found, squares)
        damping = np.where(better, np.maximum(_LESS * damping, 1e-15), _MORE * damping)
        active &= ~(better & (gained < gain)) & (damping < _MAX_DAMPING)
    return ConstantFit(constants, squares)


def covariance(target: Target, word: Word, constants: Array) -> Array:
    """The inverse of the normal equations (sets, count, count), to be multiplied by the variance of the noise."""
    products, _ = _normal_equations(target, word, constants)
    return np.linalg.pinv(products, hermitian=True, rcond=1e-13)


def _normal_equations(target: Target, word: Word, constants: Array) -> tuple[Array, Array]:
    with np.errstate(all="ignore"):
        values, along = with_slopes(word, constants, target.x)
        left = np.nan_to_num(target.y - target.measure(values), posinf=0.0, neginf=0.0)
        matrix = np.nan_to_num(target.measure(along), posinf=0.0, neginf=0.0)
        products = np.einsum("asm,bsm->sab", matrix, matrix)
        slopes = np.einsum("asm,sm->sa", matrix, left)
    return np.nan_to_num(products), np.nan_to_num(slopes)


def _step(products: Array, slopes: Array, damping: Array) -> Array:
    diagonal = np.diagonal(products, axis1=1, axis2=2)
    scale = np.sqrt(np.maximum(diagonal, 1e-12 * diagonal.max(-1, keepdims=True)) + np.finfo(float).tiny)
    matrix = products / (scale[:, :, None] * scale[:, None, :])
    matrix = matrix + damping[:, None, None] * np.eye(products.shape[1])
    try:
        return np.linalg.solve(matrix, (slopes / scale)[..., None])[..., 0] / scale
    except np.linalg.LinAlgError:
        return np.zeros_like(slopes)
