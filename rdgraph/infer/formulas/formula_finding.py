"""`find_formula`: a short formula of the language for a function that was sampled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from rdgraph.errors import InvalidArgument, UnknownName
from rdgraph.infer.fit.observations import check_seed
from rdgraph.infer.formulas.constant_fits import Target, covariance, polished, samples
from rdgraph.infer.formulas.formula_archive import Archive, Candidate
from rdgraph.infer.formulas.found_formula import Formula, FormulaSearch, FrontRow, lettered
from rdgraph.infer.formulas.function_slopes import FUNCTIONS_USED, SLOPES
from rdgraph.infer.formulas.genetic_search import Breeder, Effort, GeneticSearch, split_sum
from rdgraph.infer.formulas.prefix_terms import Word, evaluate, to_text, weighted_sum
from rdgraph.infer.formulas.simple_numbers import rounded
from rdgraph.infer.formulas.term_library import plain_form, search_library, signs_moved

# ---------------------------------------------------------------------- shape search
# Terms with constants inside: each shape from a grid of constants, alone and beside a line, polished.

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


# ---------------------------------------------------------------------- formula finding
#: Differences of Schwarz's criterion below this say little (Kass and Raftery 1995, Section 3.2: 2 to 6 is positive).
LITTLE = 6.0
#: What a unit of size costs in the criterion: twice the logarithm of a prior that makes every unit four times less
#: likely. There are so many formulas of a size that some large ones fit noise well.
UNIT_COST = 2 * float(np.log(4))
#: The 95 % quantile of chi squared with one degree of freedom, in which a constant may be moved.
_RISE = 3.841
_LEVEL = 0.95


def find_formula(
    x: Any,
    y: Any,
    *,
    weights: Any = None,
    noise: float | None = None,
    tolerance: float = 0.01,
    max_size: int = 24,
    functions: Sequence[str] = FUNCTIONS_USED,
    nested: bool = False,
    taken: Sequence[str] = ("alpha",),
    effort: Effort | None = None,
    seed: int = 0,
) -> FormulaSearch:
    """A short formula for samples of a function, by sparse regression and a genetic search.

    Size counts signs: a letter, a number or an operation 1, a division, a power, a function or a fitted constant 2.

    Args:
        x: where the function was sampled, (points,) or (sets, points).
        y: its values; several sets have the formula in common and constants of their own. Or a function of x.
        weights: of the squared errors, such as the density with which points are met.
        noise: the standard deviation of the values, where they are noisy. Then the smallest formula is chosen whose
            criterion, squares/noise^2 + constants*log(samples) + 2*log(4)*size, is at most 6 above the lowest:
            Schwarz's, with a prior in which every further unit of size is four times less likely.
        tolerance: without noise, the smallest formula is chosen whose root mean square error is at most this share of
            the root mean square of the values.
        max_size: of a formula.
        functions: of the language that may occur.
        nested: whether functions of functions may occur; they fit much and say little.
        taken: letters that the constants may not be called by.
        effort: how many sums in how many generations are bred.
        seed: of the search; the same seed finds the same.

    Returns:
        The formula, or None where there is none within the tolerance, and the front of error against size.

    Raises:
        InvalidArgument: samples that are not finite, or do not fit together.
        UnknownName: a function that formulas are not made of.

    >>> import numpy as np
    >>> x = np.linspace(-1.5, 1.5, 60)
    >>> y = 1.3*x*(1 - x**2) + 0.01*np.random.default_rng(0).standard_normal(60)
    >>> found = find_formula(x, y, noise=0.01, functions=[])
    >>> found.formula.text
    'beta*(H - H**3)'
    """
    values = y(np.asarray(x, dtype=float)) if callable(y) else y
    target = samples(x, values, weights=weights, noise=noise)
    check_search(functions, max_size, seed, tolerance=tolerance)
    archive = searched(target, functions, max_size, tolerance, effort or Effort(), seed, nested=nested)
    return chosen(target, archive, tolerance, taken)


def check_search(functions: Sequence[str], max_size: int, seed: int, **positive: float) -> None:
    """Refuse functions that formulas are not made of, sizes below one, no seeds, and numbers that are not positive."""
    check_seed(seed)
    for name in functions:
        if name not in SLOPES:
            raise UnknownName("function of formulas", name, SLOPES)
    if max_size < 1:
        raise InvalidArgument(f"expected max_size >= 1, got {max_size}")
    for word, value in positive.items():
        if not value > 0:
            raise InvalidArgument(f"expected {word} > 0, got {value}")


def searched(
    target: Target,
    functions: Sequence[str],
    max_size: int,
    tolerance: float,
    effort: Effort,
    seed: int,
    *,
    nested: bool,
) -> Archive:
    """The best formulas of every size."""
    archive = Archive(max_size)
    if not np.any(target.y):
        archive.add(Candidate(("0",), np.zeros((target.sets, 0)), 0.0))
        return archive
    search_library(target, functions, archive)
    search_shapes(target, functions, archive)
    floor = target.noise or tolerance * target.scale
    breeder = Breeder(functions, target.sets, np.random.default_rng(seed), nested)
    GeneticSearch(target, archive, breeder, effort, floor).run()
    return finished(target, archive)


def finished(target: Target, archive: Archive) -> Archive:
    """The same formulas, polished to their ends and spelled in one way."""
    found = Archive(archive.max_size, archive.keep)
    for candidate in archive:
        spelled = candidate if candidate.word == ("0",) else _spelled(candidate)
        end = polished(target, spelled.word, spelled.constants, 60)
        found.add(Candidate(spelled.word, end.constants, end.total))
    return found


def _spelled(candidate: Candidate) -> Candidate:
    """Terms in the one spelling, the largest positive factor first."""
    genes, constants, parts = split_sum(candidate), candidate.constants, []
    for gene in genes:
        count = gene.constants.shape[1]
        word, inner = plain_form(gene.word, gene.constants)
        word, factor, inner = signs_moved(word, constants[:, 0], inner)
        parts.append((word, factor, inner))
        constants = constants[:, 1 + count :]
    parts.sort(key=lambda part: (not (part[1] > 0).all(), len(part[0])))
    joined = [column for _, factor, inner in parts for column in (factor[:, None], inner)]
    return Candidate(weighted_sum([word for word, *_ in parts]), np.concatenate(joined, 1), candidate.squares)


def chosen(target: Target, archive: Archive, tolerance: float, taken: Sequence[str]) -> FormulaSearch:
    """The formula that the rule takes from the front, its constants rounded where they may be."""
    front = archive.front()
    criterion = _criterion(target, tolerance)
    scores = [criterion(candidate) for candidate in front]
    rows = tuple(_row(target, c, score, taken) for c, score in zip(front, scores, strict=True))
    border = min(scores) + LITTLE if target.noise else 1.0
    best = next((c for c, score in zip(front, scores, strict=True) if score <= border), None)
    formula = None if best is None else _formula(target, best, tolerance, taken)
    return FormulaSearch(formula, rows, rule_words(target.noise, tolerance), archive.max_size, tolerance, target.scale)


def _row(target: Target, candidate: Candidate, score: float, taken: Sequence[str]) -> FrontRow:
    """A row of the front: numbers where there is one set, else letters with their ranges over the sets."""
    error = float(np.sqrt(candidate.squares / target.count))
    if target.sets == 1:
        text = to_text(candidate.word, [f"{value:.4g}" for value in candidate.constants[0]])
        return FrontRow(candidate.size, error, candidate.parameters, text, score)
    letters = lettered(candidate.word, candidate.constants, taken, numbered=True)
    ranges = letters.ranges(candidate.constants)
    return FrontRow(candidate.size, error, candidate.parameters, letters.text, score, ranges)


def rule_words(noise: float | None, tolerance: float) -> str:
    """The rule of the choice in words."""
    if noise is None:
        return f"the smallest formula whose root mean square error is at most {100 * tolerance:g} % of the values'"
    return f"the smallest formula whose criterion is at most {LITTLE:g} above the lowest"


def _criterion(target: Target, tolerance: float) -> Callable[[Candidate], float]:
    if target.noise is None:
        return lambda c: float(np.sqrt(c.squares / target.count)) / (tolerance * target.scale)
    variance, weight = target.noise**2, float(np.log(target.count))
    return lambda c: c.squares / variance + c.parameters * weight + UNIT_COST * c.size


def _formula(target: Target, best: Candidate, tolerance: float, taken: Sequence[str]) -> Formula:
    if target.noise is None:
        most, rise = target.count * (tolerance * target.scale) ** 2, np.inf
    else:
        most, rise = np.inf, _RISE * target.noise**2 * target.sets
    simple, notes = rounded(target, best, most, rise)
    names = lettered(simple.word, simple.constants, taken)
    return Formula(
        lettered=names,
        word=simple.word,
        constants=simple.constants,
        intervals=intervals_of(target, simple),
        level=_LEVEL,
        size=simple.size,
        error=float(np.sqrt(simple.squares / target.count)),
        relative_error=float(np.sqrt(simple.squares / target.count)) / target.scale,
        rounded=tuple(notes),
    )


def intervals_of(target: Target, candidate: Candidate) -> Array:
    """Ends (sets, count, 2) by the slopes at the minimum; the noise is what is given, else what the formula leaves."""
    from scipy.stats import norm, t

    freedom = max(target.count - candidate.parameters, 1)
    sigma = target.noise or np.sqrt(candidate.squares / freedom)
    reach = norm.ppf(0.5 + _LEVEL / 2) if target.noise else t.ppf(0.5 + _LEVEL / 2, freedom)
    if not candidate.constants.size:
        return np.zeros((*candidate.constants.shape, 2))
    spread = np.sqrt(np.diagonal(covariance(target, candidate.word, candidate.constants), axis1=1, axis2=2))
    half = reach * sigma * spread
    return np.stack([candidate.constants - half, candidate.constants + half], -1)
