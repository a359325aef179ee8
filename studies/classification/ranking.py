"""Average ranks, average accuracies and medals over data sets, from any table of means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

#: Points of accuracy below which two means are the same number: a test node more or less on one of ten splits moves a
#: mean by more, and the rounding of a sum by less.
SAME = 0.001


@dataclass(frozen=True)
class Standing:
    """A method's average rank and accuracy over the sets, and how often it is first, second and third."""

    method: str
    rank: float
    accuracy: float
    gold: int
    silver: int
    bronze: int


def standings(means: Mapping[tuple[str, str], float], sets: Sequence[str]) -> list[Standing]:
    """All methods that have a number on every set, by their average rank; equal numbers share a rank and a medal.

    >>> found = standings({("a", "x"): 2.0, ("b", "x"): 1.0, ("c", "x"): 1.0}, ["x"])
    >>> [(s.method, s.rank, s.gold, s.silver, s.bronze) for s in found]
    [('a', 1.0, 1, 0, 0), ('b', 2.5, 0, 1, 0), ('c', 2.5, 0, 1, 0)]
    """
    methods = [m for m in dict.fromkeys(m for m, _ in means) if all((m, s) in means for s in sets)]
    if not methods or not sets:
        return []
    from scipy.stats import rankdata

    table = np.array([[means[m, s] for s in sets] for m in methods])
    levels = np.apply_along_axis(_levels, 0, table)
    ranks = rankdata(-levels, axis=0)
    places = rankdata(-levels, axis=0, method="min")
    found = [
        Standing(m, float(ranks[k].mean()), float(table[k].mean()), *(int((places[k] == p).sum()) for p in (1, 2, 3)))
        for k, m in enumerate(methods)
    ]
    return sorted(found, key=lambda s: (s.rank, -s.accuracy))


def _levels(values: np.ndarray) -> np.ndarray:
    """Whole numbers in the order of `values`, the same for neighbours that are less than `SAME` apart.

    >>> _levels(np.array([83.51351, 70.0, 83.513514]))
    array([1, 0, 1])
    """
    order = np.argsort(values)
    levels = np.empty(values.size, dtype=int)
    levels[order] = np.cumsum(np.diff(values[order], prepend=values[order[0]]) >= SAME)
    return levels


def better_by_signs(own: Sequence[float], other: Sequence[float]) -> float:
    """The one-sided p of Wilcoxon's signed-rank test that `own` is larger, over data sets; 1 where all are the same.

    Sets on which the two are less than `SAME` apart do not count.

    >>> better_by_signs([2, 3, 4, 5, 6, 7, 8, 9, 10], [1, 2, 3, 4, 5, 6, 7, 8, 9.5]) < 0.01
    True
    """
    gaps = np.asarray(own, dtype=float) - np.asarray(other, dtype=float)
    gaps = gaps[np.abs(gaps) >= SAME]
    if not gaps.size:
        return 1.0
    from scipy.stats import wilcoxon

    return float(wilcoxon(gaps, alternative="greater").pvalue)
