"""Terms with constants inside: each shape from a grid of constants, alone and beside a line, polished."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from rdgraph.distillation.constant_fits import polished
from rdgraph.distillation.formula_archive import Archive, Candidate
from rdgraph.distillation.function_slopes import SLOPES
from rdgraph.distillation.prefix_terms import Word, evaluate, weighted_sum
from rdgraph.distillation.sampled_target import Target

Array = np.ndarray
#: {f} stands for each function. Constants are as many as there are c.
SHAPES: tuple[str, ...] = (
    "* x * - 1 x - x c",
    "* square x - x c",
    "* x - x c",
    "* x - 1 * c square x",
    "* x - 1 * c x",
    "/ x + 1 * c square x",
    "/ x + 1 * c abs x",
    "/ x + c x",
    "/ square x + c square x",
    "/ 1 + 1 * c square x",
    "exp * c square x",
    "* x exp * c square x",
    "* x exp * c x",
    "{f} * c x",
    "{f} - x c",
    "{f} - * c x c",
    "* x {f} * c x",
    "* x {f} - x c",
)
#: What stands beside a shape: nothing, the letter, a constant.
BESIDE: tuple[tuple[Word, ...], ...] = ((), (("x",),), (("1",),))
#: Magnitudes that constants are started from, of either sign.
_GRID = (0.25, 0.5, 1.0, 2.0, 4.0)
_STEPS = 15


def shapes(functions: Sequence[str]) -> list[Word]:
    """The terms of `SHAPES` in the given functions."""
    known = [shape for shape in SHAPES if all(name in functions or name not in SLOPES for name in shape.split())]
    return [tuple(shape.format(f=name).split()) for shape in known for name in (functions if "{f}" in shape else [""])]


def search_shapes(target: Target, functions: Sequence[str], archive: Archive) -> None:
    """Every shape alone and beside what `BESIDE` names, each from the best point of the grid."""
    nothing = np.zeros((target.sets, 0))
    others = {word: target.measure(evaluate(word, nothing, target.x)) for pair in BESIDE for word in pair}
    for shape in shapes(functions):
        points, columns = _grid_columns(target, shape)
        for beside in BESIDE:
            words = [shape, *beside]
            factors, squares = _solved(target, columns, [others[word] for word in beside])
            if not np.isfinite(squares).any():
                continue
            best = int(np.nanargmin(np.where(np.isfinite(squares), squares, np.inf)))
            inner = np.repeat(points[best : best + 1], target.sets, 0)
            constants = np.concatenate([factors[best, :, :1], inner, factors[best, :, 1:]], 1)
            word = weighted_sum(words)
            end = polished(target, word, constants, _STEPS, 1e-6)
            archive.add(Candidate(word, end.constants, end.total))


def _grid_columns(target: Target, shape: Word) -> tuple[Array, Array]:
    """Constants (points, count) of the grid, and the rows (points, sets, rows) that the shape makes with each."""
    signed = [sign * size for size in _GRID for sign in (1, -1)]
    points = np.array(list(product(signed, repeat=shape.count("c"))))
    repeated, x = np.repeat(points, target.sets, 0), np.tile(target.x, (len(points), 1))
    with np.errstate(all="ignore"):
        values = evaluate(shape, repeated, x).reshape(len(points), *target.x.shape)
        return points, target.measure(values)


def _solved(target: Target, columns: Array, others: Sequence[Array]) -> tuple[Array, Array]:
    """Factors (points, sets, terms) and squares (points,) by least squares, infinite where a column is not finite."""
    with np.errstate(all="ignore"):
        beside = [np.broadcast_to(column, columns.shape) for column in others]
        matrix = np.stack([columns, *beside], -1)
        bad = ~(np.abs(matrix) < 1e8).all((1, 2, 3))
        matrix = np.where(bad[:, None, None, None], 0.0, matrix)
        products = np.einsum("psra,psrb->psab", matrix, matrix)
        right = np.einsum("psra,sr->psa", matrix, target.y)
        scale = np.sqrt(np.diagonal(products, axis1=2, axis2=3)) + 1e-150
        scaled = products / (scale[..., :, None] * scale[..., None, :]) + 1e-10 * np.eye(matrix.shape[-1])
        factors = np.linalg.solve(scaled, (right / scale)[..., None])[..., 0] / scale
        left = target.y - np.einsum("psra,psa->psr", matrix, factors)
        squares = np.square(left).sum((1, 2))
    return factors, np.where(bad, np.inf, squares)
