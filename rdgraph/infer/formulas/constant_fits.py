"""The constants of a formula by least squares, all sets of a target at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from rdgraph.errors import InvalidArgument
from rdgraph.infer.fit.damped_steps import minimise
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
@dataclass(frozen=True)
class ConstantFit:
    """Constants (sets, count) with the sum of squares of each set, infinite where the formula has no value."""

    constants: Array
    squares: Array

    @property
    def total(self) -> float:
        return float(self.squares.sum())


def polished(target: Target, word: Word, constants: Array, steps: int = 30, gain: float = 1e-10) -> ConstantFit:
    """The constants from where they stand down to the nearest least squares."""

    def every(rows: Array, which: Array) -> Array:
        """The constants of all sets: a target measures them together."""
        whole = constants.astype(float)
        whole[which] = rows
        return whole

    def rest(rows: Array, which: Array) -> Array:
        with np.errstate(all="ignore"):
            return (target.measure(evaluate(word, every(rows, which), target.x)) - target.y)[which]

    def slopes(rows: Array, which: Array) -> Array:
        return slopes_of(target, word, every(rows, which))[which]

    end = minimise(rest, slopes, constants, max_steps=steps, gain=gain)
    return ConstantFit(end.rows, np.where(np.isfinite(end.squares), end.squares, np.inf))


def slopes_of(target: Target, word: Word, constants: Array) -> Array:
    """How the rows follow the constants (sets, rows, count), 0 where they have no finite slope."""
    with np.errstate(all="ignore"):
        _, along = with_slopes(word, constants, target.x)
        return np.nan_to_num(np.moveaxis(target.measure(along), 0, -1), posinf=0.0, neginf=0.0)


def covariance(target: Target, word: Word, constants: Array) -> Array:
    """The inverse of the normal equations (sets, count, count), to be multiplied by the variance of the noise."""
    slopes = slopes_of(target, word, constants)
    return np.linalg.pinv(slopes.swapaxes(1, 2) @ slopes, hermitian=True, rcond=1e-13)
