"""Levenberg's and Marquardt's method for many small least-squares problems at once, and the effort of a search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Generic, TypeVar

import numpy as np

Array = np.ndarray
#: Arrays, or tensors.
Numbers = TypeVar("Numbers")
#: From rows and the indices of their problems: residuals (rows, m), or slopes (rows, m, unknowns).
Values = Callable[[Array, Array], Array]

#: Factors of the damping after a good and a bad step, and its bounds.
_LESS, _MORE = 0.2, 6.0
_MIN_DAMPING, _MAX_DAMPING = 1e-15, 1e10


@dataclass
class Effort:
    """The budget of a search and what it has cost, in units that are the same on every machine.

    >>> effort = Effort(5_000)
    >>> effort.spend(4_000), effort.is_spent
    (None, False)
    >>> effort.spend(1_500), effort.is_spent
    (None, True)
    """

    most: float = inf
    spent: float = 0.0

    @property
    def is_spent(self) -> bool:
        """Whether the budget is used up."""
        return self.spent >= self.most

    def spend(self, cost: float) -> None:
        self.spent += cost


@dataclass(frozen=True)
class Minimum(Generic[Numbers]):
    """The minimum of each problem: rows (problems, unknowns), sums of squares, and whether it converged."""

    rows: Numbers
    squares: Numbers
    settled: Numbers


def minimise(
    residuals: Values,
    derivatives: Values,
    rows: Array,
    free: Array | None = None,
    *,
    max_steps: int = 60,
    damping: float = 1e-3,
    longest: float = inf,
    rtol: float = 0.0,
    gain: float = 0.0,
    after: Callable[[int, Array], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Minimum[Array]:
    """Least squares from every row; entries that are not `free` stay fixed.

    A step that does not lower the sum of squares, or makes it non-finite, is undone and damped more. The length of a
    step is at most `longest` times (1 + |unknown|), since an unknown with almost no effect would move arbitrarily far.
    A problem has converged when a step is shorter than `rtol` of its unknowns or lowers the sum by less than the share
    `gain`. The search ends once `stop` returns True; `after` is called after every step with its number
    and the sums of squares.

    >>> line = np.array([1.0, 2.0, 3.0])
    >>> end = minimise(
    ...     lambda rows, which: rows * line - [2.0, 4.0, 6.1], lambda rows, which: line[None, :, None], np.ones((1, 1))
    ... )
    >>> round(float(end.rows[0, 0]), 3)
    2.021
    """
    rows = rows.astype(float)
    free = np.ones(rows.shape, dtype=bool) if free is None else np.broadcast_to(free, rows.shape)
    rest = residuals(rows, np.arange(len(rows)))
    squares = _squares(rest)
    dampings = np.full(len(rows), damping)
    failed = ~np.isfinite(squares)
    settled, stale = failed.copy(), ~failed
    products, slopes = np.zeros((*rows.shape, rows.shape[1])), np.zeros(rows.shape)
    for turn in range(max_steps if rows.shape[1] else 0):
        active = np.flatnonzero(~settled)
        if not len(active) or (stop is not None and stop()):
            break
        if len(fresh := active[stale[active]]):
            along = derivatives(rows[fresh], fresh) * free[fresh][:, None, :]
            products[fresh] = along.swapaxes(1, 2) @ along
            slopes[fresh] = (along * rest[fresh][..., None]).sum(1)
            stale[fresh] = False
        step = _step(products[active], slopes[active], dampings[active], free[active])
        step = step / np.maximum(np.abs(step) / (longest * (1 + np.abs(rows[active]))), 1.0).max(1, keepdims=True)
        tried = rows[active] + step
        tried_rest = residuals(tried, active)
        reached, before = _squares(tried_rest), squares[active]
        better = reached < before
        gained = (before - reached) / np.maximum(before, np.finfo(float).tiny)
        size = 1 + np.abs(rows[active]).max(1)
        rows[active[better]], rest[active[better]] = tried[better], tried_rest[better]
        squares[active[better]], stale[active] = reached[better], better
        dampings[active] = np.clip(dampings[active] * np.where(better, _LESS, _MORE), _MIN_DAMPING, 2 * _MAX_DAMPING)
        settled[active] = (np.abs(step).max(1) <= rtol * size) | (better & (gained < gain))
        settled[active] |= dampings[active] > _MAX_DAMPING
        if after is not None:
            after(turn, squares)
    return Minimum(rows, squares, settled & ~failed)


def _squares(rest: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(np.square(rest).sum(-1))


def _step(products: Array, slopes: Array, dampings: Array, free: Array) -> Array:
    scale = np.diagonal(products, axis1=1, axis2=2)
    scale = np.maximum(np.maximum(scale, 1e-12 * scale.max(1, keepdims=True)), np.finfo(float).tiny)
    roots = np.sqrt(np.where(free, scale, 1.0))
    # Scaled to a unit diagonal, so that the damping means the same for every unknown.
    matrix = products / (roots[:, :, None] * roots[:, None, :])
    matrix += (dampings[:, None] + ~free)[:, :, None] * np.eye(matrix.shape[1])
    right = (slopes / roots)[..., None]
    try:
        step = np.linalg.solve(matrix, right)
    except np.linalg.LinAlgError:
        step = np.linalg.pinv(matrix, hermitian=True) @ right
    return -step[..., 0] / roots
