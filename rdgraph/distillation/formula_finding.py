"""`find_formula`: a short formula of the language for a function that was sampled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rdgraph.distillation.constant_fits import covariance, polished
from rdgraph.distillation.formula_archive import Archive, Candidate
from rdgraph.distillation.formula_letters import lettered
from rdgraph.distillation.found_formula import Formula, FormulaSearch, FrontRow
from rdgraph.distillation.function_slopes import FUNCTIONS_USED, SLOPES
from rdgraph.distillation.genetic_search import Effort, GeneticSearch, split_sum
from rdgraph.distillation.prefix_terms import to_text, weighted_sum
from rdgraph.distillation.sampled_target import Target, samples
from rdgraph.distillation.shape_search import search_shapes
from rdgraph.distillation.simple_numbers import rounded
from rdgraph.distillation.term_breeding import Breeder
from rdgraph.distillation.term_forms import plain_form, signs_moved
from rdgraph.distillation.term_library import search_library
from rdgraph.errors import InvalidArgument, UnknownName
from rdgraph.inverse.observations import check_seed

Array = np.ndarray
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
