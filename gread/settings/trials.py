"""`Trial`: one training of a configuration on one split with one seed; and which trials can share a batch."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from gread.settings.config import Config
from rdgraph.errors import InvalidArgument


@dataclass(frozen=True)
class Trial:
    """One training: a configuration, the number of a split, a seed.

    Args:
        config: The network and its training.
        split: The number of the split, from 0.
        seed: The random seed, from 0.

    Raises:
        InvalidArgument: For a split or a seed outside of 0..2^31 - 1.

    >>> import gread
    >>> config = gread.Config()
    >>> gread.Trial(config, split=3, seed=1).member_seed == gread.Trial(config, split=4, seed=1).member_seed
    False
    """

    config: Config = field(default_factory=Config)
    split: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        if not (0 <= self.seed < 2**31 and 0 <= self.split < 2**31):
            raise InvalidArgument(f"expected a seed and a split from 0, got {self.seed} and {self.split}")

    @property
    def member_seed(self) -> int:
        """The seed of the random streams of this training."""
        return (self.seed << 32) | self.split

    @property
    def shape(self) -> Hashable:
        """The settings that must agree for two trials to run in one batch."""
        return self.config.model.shape, self.config.training.shape

    @property
    def effort(self) -> int:
        """The approximate number of products with A in a pass, see `ModelSettings.effort`."""
        return self.config.model.effort


def read_trials(trials: Any) -> list[Trial]:
    """Trials as a list; the error for a configuration says how to create trials from it.

    >>> len(read_trials(make_trials(Config(), range(3))))
    3
    """
    listed: list[Trial] = list(trials) if isinstance(trials, Iterable) else []
    if not isinstance(trials, Iterable) or not all(isinstance(trial, Trial) for trial in listed):
        raise InvalidArgument(
            f"expected a list of trials, got {trials!r:.60}; make some from a configuration with make_trials"
        )
    return listed


def make_trials(config: Config, splits: Iterable[int], seeds: Iterable[int] = (0,)) -> list[Trial]:
    """Trials for every split with every seed.

    Args:
        config: The network and its training.
        splits: Numbers of splits.
        seeds: Seeds.

    Returns:
        The trials, splits fastest.

    >>> import gread
    >>> [(t.split, t.seed) for t in gread.make_trials(gread.Config(), range(2), range(2))]
    [(0, 0), (1, 0), (0, 1), (1, 1)]
    """
    chosen = list(splits)
    return [Trial(config, split, seed) for seed in seeds for split in chosen]


def grouped(trials: Sequence[Trial]) -> list[list[int]]:
    """The numbers of the trials, grouped by those that can share a batch, in the order of first appearance."""
    groups: dict[Hashable, list[int]] = {}
    shapes: dict[int, Hashable] = {}  # trials of many splits share their configurations
    for k, trial in enumerate(trials):
        known = id(trial.config)
        if known not in shapes:
            shapes[known] = trial.shape
        groups.setdefault(shapes[known], []).append(k)
    return list(groups.values())
