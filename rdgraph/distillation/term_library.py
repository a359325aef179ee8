"""Sparse regression over a library of terms: every choice of a few of them, by exact least squares."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from rdgraph.distillation.formula_archive import Archive, Candidate
from rdgraph.distillation.prefix_terms import Word, evaluate, size_of, weighted_sum
from rdgraph.distillation.sampled_target import Target

Array = np.ndarray
#: Terms without constants of their own: powers, and the factored forms that reactions have.
POLYNOMIALS: tuple[Word, ...] = (
    ("1",),
    ("x",),
    ("square", "x"),
    ("cube", "x"),
    ("square", "square", "x"),
    ("*", "x", "square", "square", "x"),
    ("*", "x", "-", "1", "x"),
    ("*", "x", "+", "1", "x"),
    ("*", "x", "-", "1", "square", "x"),
    ("*", "square", "x", "-", "1", "x"),
)
MOST_TERMS = 4
#: A share of the diagonal that is added to it, so that terms that are the same on all points do no harm.
_RIDGE = 1e-12
#: Columns below this size are nothing: a term can vanish for one set of points and not for another.
_NOTHING = 1e-100


def library(functions: Sequence[str]) -> list[Word]:
    """All terms: powers, factored forms, each function, and x times each."""
    return [*POLYNOMIALS, *((name, "x") for name in functions), *(("*", "x", name, "x") for name in functions)]


def solve_subsets(gram: Array, along: Array, total: Array, subsets: Array) -> tuple[Array, Array]:
    """Coefficients (choices, sets, terms) and squares (choices, sets) of every choice of columns at once.

    `gram` (sets, columns, columns) and `along` (sets, columns) are the products of the columns with each other and with
    the rows, `total` (sets,) the squares of the rows.
    """
    chosen = gram[:, subsets[:, :, None], subsets[:, None, :]].swapaxes(0, 1)
    right = along[:, subsets].swapaxes(0, 1)
    size = np.sqrt(np.diagonal(chosen, axis1=2, axis2=3))
    scale = np.where(size > _NOTHING, size, 1.0)
    matrix = chosen / (scale[..., :, None] * scale[..., None, :]) + _RIDGE * np.eye(subsets.shape[1])
    coefficients = np.linalg.solve(matrix, (right / scale)[..., None])[..., 0] / scale
    explained = 2 * (coefficients * right).sum(-1) - np.einsum("csa,csab,csb->cs", coefficients, chosen, coefficients)
    return coefficients, np.maximum(total - explained, 0.0)


def products_of(target: Target, columns: Array) -> tuple[Array, Array, Array]:
    """What `solve_subsets` needs of columns (sets, columns, rows)."""
    return columns @ columns.swapaxes(1, 2), (columns @ target.y[..., None])[..., 0], np.square(target.y).sum(-1)


def search_library(target: Target, functions: Sequence[str], archive: Archive) -> None:
    """Every choice of up to four terms of the library, the best of each size kept."""
    words = [word for word in library(functions) if size_of(word) <= archive.max_size]
    nothing = np.zeros((target.sets, 0))
    columns = np.stack([target.measure(evaluate(word, nothing, target.x)) for word in words], 1)
    usable = np.isfinite(columns).all((0, 2)) & (np.abs(columns).max((0, 2)) < 1e8)
    words, columns = [word for word, good in zip(words, usable, strict=True) if good], columns[:, usable]
    gram, along, total = products_of(target, columns)
    for count in range(1, MOST_TERMS + 1):
        subsets = np.array(list(combinations(range(len(words)), count)))
        if not len(subsets):
            return
        coefficients, squares = solve_subsets(gram, along, total, subsets)
        sizes = size_sums(np.array([size_of(word) for word in words]), subsets, [word == ("1",) for word in words])
        for place in best_of_each(sizes, squares.sum(-1), archive.keep):
            word = weighted_sum([words[k] for k in subsets[place]])
            archive.add(Candidate(word, coefficients[place], float(squares[place].sum())))


def size_sums(sizes: Array, subsets: Array, is_one: Sequence[bool]) -> Array:
    """The sizes of the weighted sums of every choice: each term with its constant and its sign, and a plus between."""
    with_constants = sizes + np.where(is_one, 1, 3)
    return with_constants[subsets].sum(-1) + subsets.shape[1] - 1


def best_of_each(sizes: Array, squares: Array, keep: int) -> Array:
    """The places of the few smallest squares of every size."""
    order = np.lexsort((squares, sizes))
    sorted_sizes = sizes[order]
    first = np.searchsorted(sorted_sizes, sorted_sizes)
    return order[np.arange(len(order)) - first < keep]
