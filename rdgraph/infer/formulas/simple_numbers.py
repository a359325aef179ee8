"""Constants of a formula as simple numbers, where the error allows it.

A constant inside a term, such as the place of a zero, becomes a number of the formula where it can be an integer or a
half. The factors before the terms stay letters, for they are what is fitted again elsewhere; a simple number that their
interval holds is named beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from rdgraph.infer.formulas.constant_fits import Target, polished
from rdgraph.infer.formulas.formula_archive import Candidate
from rdgraph.infer.formulas.prefix_terms import Word, end_of

Array = np.ndarray
#: Denominators that are simple, the simplest first; and how far a number may be moved, relative.
DENOMINATORS = (1, 2, 3, 4, 5, 10)
_INSIDE = (1, 2)
_FARTHEST = 0.1


@dataclass(frozen=True)
class Rounding:
    """A constant that became a number: its place among the constants, what it was in every set, and the number."""

    place: int
    fitted: tuple[float, ...]
    number: str

    @property
    def was(self) -> str:
        """What was fitted: a number, or the smallest and the largest of several sets.

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
    found: list[Fraction] = []
    for denominator in denominators:
        near = Fraction(round(value * denominator), denominator)
        if near and abs(near) <= 100 and abs(float(near) - value) <= _FARTHEST * abs(value) and near not in found:
            found.append(near)
    return found


def rounded(target: Target, candidate: Candidate, most_squares: float, rise: float) -> tuple[Candidate, list[Rounding]]:
    """The formula with constants that became simple numbers, one after the other, all others fitted again.

    A number is taken where the squares stay below `most_squares` and rise by at most `rise` for it.
    """
    notes: list[Rounding] = []
    factors = factor_places(candidate.word)
    places = list(range(candidate.constants.shape[1]))
    order = sorted((k for k in places if k not in factors), key=lambda k: _distance(candidate.constants[:, k]))
    for place in order:
        position = places.index(place)
        fitted = candidate.constants[:, position]
        for number in simple_numbers(float(fitted.mean()), _INSIDE):
            tried = _with_number(target, candidate, position, number_text(number))
            if tried.squares <= min(most_squares, candidate.squares + rise):
                candidate = tried
                places.remove(place)
                notes.append(Rounding(place, tuple(fitted.tolist()), number_text(number)))
                break
    return candidate, sorted(notes, key=lambda note: note.place)


def number_text(number: Fraction) -> str:
    """A number as a decimal where it ends, else as a fraction.

    >>> number_text(Fraction(1, 2)), number_text(Fraction(1, 3))
    ('0.5', '1/3')
    """
    text = f"{float(number):.6g}"
    return text if Fraction(text) == number else str(number)


def simple_within(low: float, high: float) -> str | None:
    """The simplest number in an interval that is not wide; None where there is none.

    >>> simple_within(1.28, 1.31), simple_within(0.1, 3.0)
    ('1.3', None)
    """
    middle = (low + high) / 2
    if not np.isfinite(middle) or high - low > 2 * _FARTHEST * abs(middle):
        return None
    return next((number_text(n) for n in simple_numbers(middle) if low <= n <= high), None)


def factor_places(word: Word) -> set[int]:
    """Which of the constants of a weighted sum are the factors before its terms.

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
