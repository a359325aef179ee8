"""Constants of formulas by least squares, the best formulas of every size, and rounding to simple numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np

from rdgraph.errors import InvalidArgument
from rdgraph.infer.fit.damped_steps import minimise
from rdgraph.infer.formulas.prefix_terms import Word, end_of, evaluate, size_of, with_slopes
from rdgraph.wording import fraction_text

# ---------------------------------------------------------------------- sampled target
# What a formula is fitted to: samples of a function, or rows that are linear in its values.

Array = np.ndarray
#: From values (..., sets, points) to rows (..., sets, rows), linear.
Measure = Callable[[Array], Array]


@dataclass(frozen=True)
class Target:
    """Rows y (sets, rows) to be reproduced by `measure` from the values of f at x (sets, points).

    Each set is a separate function, for instance of one split of a training: the sets share the formula, not its
    constants.
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
        """The number of rows that are fitted."""
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
        raise InvalidArgument("x and y must be arrays of numbers") from None
    if values.ndim != 2 or values.shape[1] < 2 or points.shape not in (values.shape, (1, values.shape[1])):
        raise InvalidArgument(
            f"expected x and y of the same shape (points,) or (sets, points), got {points.shape} and {values.shape}"
        )
    if not (np.isfinite(points).all() and np.isfinite(values).all()):
        raise InvalidArgument("expected finite samples, got NaN or infinity; leave these out")
    if noise is not None and not noise > 0:
        raise InvalidArgument(f"expected a positive noise, got {noise}; omit it for data without noise")
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
    """The constants at the nearest minimum of the squares."""

    def every(rows: Array, which: Array) -> Array:
        """The constants of all sets, since a target measures them together."""
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
    """The derivatives of the rows in the constants (sets, rows, count), 0 where they are not finite."""
    with np.errstate(all="ignore"):
        _, along = with_slopes(word, constants, target.x)
        return np.nan_to_num(np.moveaxis(target.measure(along), 0, -1), posinf=0.0, neginf=0.0)


def covariance(target: Target, word: Word, constants: Array) -> Array:
    """The inverse of the normal equations (sets, count, count), to be multiplied by the variance of the noise."""
    slopes = slopes_of(target, word, constants)
    return np.linalg.pinv(slopes.swapaxes(1, 2) @ slopes, hermitian=True, rcond=1e-13)


# ---------------------------------------------------------------------- formula archive

#: Relative difference up to which squares are those of two spellings of one formula.
SAME = 1e-5


@dataclass(frozen=True, eq=False)
class Candidate:
    """A formula with its constants (sets, count) and the sum of squares over all sets."""

    word: Word
    constants: Array
    squares: float

    @property
    def size(self) -> int:
        return size_of(self.word)

    @property
    def parameters(self) -> int:
        """The number of fitted constants over all sets."""
        return int(self.constants.size)


@dataclass
class Archive:
    """The `keep` best formulas of every size up to `max_size`, one of each shape."""

    max_size: int
    keep: int = 4
    by_size: dict[int, list[Candidate]] = field(default_factory=dict)

    def takes(self, size: int, squares: float) -> bool:
        """Whether the archive would keep a formula of this size and sum of squares among the best of its size."""
        held = self.by_size.get(size, [])
        return size <= self.max_size and np.isfinite(squares) and (len(held) < self.keep or squares < held[-1].squares)

    def add(self, candidate: Candidate) -> bool:
        """Add a formula if it is among the best of its size; returns whether it is."""
        if not self.takes(candidate.size, candidate.squares):
            return False
        held = self.by_size.setdefault(candidate.size, [])
        same = next((c for c in held if c.word == candidate.word), None)
        if same is not None:
            if same.squares <= candidate.squares:
                return False
            held.remove(same)
        # Of two with the same squares up to rounding the first one is kept: the library has the usual spelling.
        better = (k for k, other in enumerate(held) if candidate.squares < (1 - SAME) * other.squares)
        held.insert(next(better, len(held)), candidate)
        del held[self.keep :]
        return True

    def __iter__(self) -> Iterator[Candidate]:
        """All formulas of the archive, from small to large."""
        for size in sorted(self.by_size):
            yield from self.by_size[size]

    def front(self, gain: float = 1e-3) -> list[Candidate]:
        """From small to large, each with squares smaller by the share `gain` than all before it."""
        front: list[Candidate] = []
        for size in sorted(self.by_size):
            best = self.by_size[size][0]
            if not front or best.squares < (1 - gain) * front[-1].squares:
                front.append(best)
        return front


# ---------------------------------------------------------------------- simple numbers
# A constant inside a term, such as the location of a zero, becomes a number of the formula if an integer or a half
# fits. The factors of the terms stay named coefficients, since they are fitted again elsewhere; a simple number in
# their interval is printed next to them.

#: Simple denominators, the simplest first; and by how much a number may change, relative.
DENOMINATORS = (1, 2, 3, 4, 5, 10)
_INSIDE = (1, 2)
_FARTHEST = 0.1


@dataclass(frozen=True)
class Rounding:
    """A constant that was rounded: its index, its fitted value in every set, and the number."""

    index: int
    fitted: tuple[float, ...]
    number: str

    @property
    def was(self) -> str:
        """The fitted value in words: a number, or the smallest and the largest of several sets.

        >>> Rounding(0, (0.98,), "1").was, Rounding(0, (0.98, 1.04, 1.01), "1").was
        ('0.98', '0.98 to 1.04')
        """
        first, last = f"{min(self.fitted):.4g}", f"{max(self.fitted):.4g}"
        return first if first == last else f"{first} to {last}"


def simple_numbers(value: float, denominators: Sequence[int] = DENOMINATORS) -> list[Fraction]:
    """Simple numbers near a value, the simplest first.

    >>> simple_numbers(0.98), simple_numbers(0.34)[0]
    ([Fraction(1, 1)], Fraction(1, 3))
    """
    numbers: list[Fraction] = []
    for denominator in denominators:
        near = Fraction(round(value * denominator), denominator)
        if near and abs(near) <= 100 and abs(float(near) - value) <= _FARTHEST * abs(value) and near not in numbers:
            numbers.append(near)
    return numbers


def rounded(target: Target, candidate: Candidate, most_squares: float, rise: float) -> tuple[Candidate, list[Rounding]]:
    """The formula with constants rounded to simple numbers one by one, the others fitted again each time.

    A number is accepted if the squares stay below `most_squares` and rise by at most `rise` for it.
    """
    notes: list[Rounding] = []
    factors = factor_places(candidate.word)
    places = list(range(candidate.constants.shape[1]))
    order = sorted((k for k in places if k not in factors), key=lambda k: _distance(candidate.constants[:, k]))
    for index in order:
        position = places.index(index)
        fitted = candidate.constants[:, position]
        for number in simple_numbers(float(fitted.mean()), _INSIDE):
            tried = _with_number(target, candidate, position, fraction_text(number))
            if tried.squares <= min(most_squares, candidate.squares + rise):
                candidate = tried
                places.remove(index)
                notes.append(Rounding(index, tuple(fitted.tolist()), fraction_text(number)))
                break
    return candidate, sorted(notes, key=lambda note: note.index)


def simple_within(low: float, high: float) -> str | None:
    """The simplest number in a narrow interval; None if there is none.

    >>> simple_within(1.28, 1.31), simple_within(0.1, 3.0)
    ('1.3', None)
    """
    middle = (low + high) / 2
    if not np.isfinite(middle) or high - low > 2 * _FARTHEST * abs(middle):
        return None
    return next((fraction_text(n) for n in simple_numbers(middle) if low <= n <= high), None)


def factor_places(word: Word) -> set[int]:
    """The indices of the constants of a weighted sum that are the factors of its terms.

    >>> factor_places(("+", "*", "c", "tanh", "*", "c", "x", "c"))
    {0, 2}
    """
    places, number, rest = set(), 0, word
    while rest:
        start = 1 if rest[0] == "+" else 0
        stop = end_of(rest, start)
        if rest[start] == "c" or rest[start : start + 2] == ("*", "c"):
            places.add(number)
        number += rest[start:stop].count("c")
        rest = rest[stop:] if start else ()
    return places


def _distance(values: Array) -> float:
    mean = float(values.mean())
    near = simple_numbers(mean, _INSIDE)
    return abs(float(near[0]) / mean - 1) if near else np.inf


def _with_number(target: Target, candidate: Candidate, position: int, number: str) -> Candidate:
    word = replaced(candidate.word, position, number)
    constants = np.delete(candidate.constants, position, axis=1)
    end = polished(target, word, constants)
    return Candidate(word, end.constants, end.total)


def replaced(word: Word, position: int, number: str) -> Word:
    """The expression with a number in place of one of its constants.

    >>> replaced(("*", "c", "-", "c", "x"), 1, "1")
    ('*', 'c', '-', '1', 'x')
    """
    places = [k for k, sign in enumerate(word) if sign == "c"]
    return (*word[: places[position]], number, *word[places[position] + 1 :])
