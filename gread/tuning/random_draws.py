"""Random trials of a space without a library of samplers, for machines without one, and for benchmarks."""

from __future__ import annotations

import math

import numpy as np

from gread.settings.config import Config
from gread.tuning.candidates import Candidate
from gread.tuning.space import Choice, Searched, Space, Value
from rdgraph.errors import RdgraphError


def draw_candidates(space: Space, base: Config, count: int, seed: int = 0, first: int = 0) -> list[Candidate]:
    """`count` random trials, each determined by the seed and its number.

    Inconsistent settings are redrawn.

    Args:
        space: The search space, for the network of `base`.
        base: The base configuration.
        count: The number of trials.
        seed: The random seed.
        first: The number of the first trial.

    Returns:
        The trials, with their numbers.

    >>> from gread.tuning.space import find_space
    >>> drawn = draw_candidates(find_space("small").of(Config()), Config(), 3)
    >>> [c.number for c in drawn], all(c.values["hidden"] in (16, 32, 64) for c in drawn)
    ([0, 1, 2], True)
    """
    return [
        _drawn(space, base, number, np.random.default_rng([seed, number])) for number in range(first, first + count)
    ]


def _drawn(space: Space, base: Config, number: int, rng: np.random.Generator, attempts: int = 100) -> Candidate:
    for attempt in range(attempts):
        values = space.draw(base, lambda searched: random_value(searched, rng))
        try:
            return Candidate(number, space.config(base, values), values)
        except RdgraphError:
            if attempt == attempts - 1:
                raise
    raise AssertionError("unreachable")


def random_value(searched: Searched, rng: np.random.Generator) -> Value:
    """One of the choices, or a number of the range: uniform or log-uniform, on its steps if it has some.

    >>> from gread.tuning.space import Range
    >>> random_value(Searched("layers", Range(2, 2)), np.random.default_rng(0))
    2
    """
    distribution = searched.distribution
    if isinstance(distribution, Choice):
        return distribution.values[int(rng.integers(len(distribution.values)))]
    low, high = distribution.low, distribution.high
    if distribution.log:
        # Whole numbers share the scale evenly: k represents the numbers from k - 1/2 to k + 1/2.
        ends = (low - 0.5, high + 0.5) if distribution.is_whole else (low, high)
        drawn = math.exp(rng.uniform(math.log(ends[0]), math.log(ends[1])))
        return min(max(round(drawn), int(low)), int(high)) if distribution.is_whole else min(max(drawn, low), high)
    step = distribution.step if distribution.step is not None else 1 if distribution.is_whole else None
    if step is None:
        return float(rng.uniform(low, high))
    value = low + step * int(rng.integers(math.floor((high - low) / step + 1e-9) + 1))
    return int(value) if distribution.is_whole else float(value)
