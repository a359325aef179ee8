"""The constants of a formula by least squares: Levenberg's and Marquardt's method, all sets of a target at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rdgraph.distillation.prefix_terms import Word, evaluate, with_slopes
from rdgraph.distillation.sampled_target import Target

Array = np.ndarray
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
