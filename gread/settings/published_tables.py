"""The other tables of the GREAD paper as data: ablations, depths, the t-test, the ranking; each with its source."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from gread.settings.presets import read_records


@dataclass(frozen=True)
class PublishedAblation:
    """An accuracy in percent of a reaction with one option of an ablation (adjacency: OA, SA; beta: SC, VC)."""

    ablation: str
    setting: str
    reaction: str
    dataset: str
    mean: float
    std: float | None
    source: str


@dataclass(frozen=True)
class PublishedDepth:
    """An accuracy in percent of a method with that many layers."""

    method: str
    dataset: str
    layers: int
    mean: float
    std: float
    source: str


@dataclass(frozen=True)
class PublishedTest:
    """Accuracies in percent of GRAND (`other`) and GREAD-BS (`own`) over 100 trainings, and Welch's t as printed."""

    dataset: str
    other_mean: float
    other_std: float
    own_mean: float
    own_std: float
    t: float
    source: str


@dataclass(frozen=True)
class PublishedRank:
    """A method's average rank and accuracy over the nine data sets, and its first, second and third places."""

    method: str
    rank: float
    accuracy: float
    gold: int
    silver: int
    bronze: int
    source: str


@cache
def published_ablations() -> tuple[PublishedAblation, ...]:
    """252 accuracies: two ablations, two options, seven reactions, nine data sets.

    >>> row = published_ablations()[0]
    >>> row.setting, row.reaction, row.dataset, row.mean, row.std
    ('OA', 'BS', 'cornell_old', 85.14, None)
    """
    return tuple(read_records("published_ablation.csv", PublishedAblation))


@cache
def published_depths() -> tuple[PublishedDepth, ...]:
    """Accuracies of GRAND++ and GREAD-ST on Cora with 2 to 64 layers.

    >>> [row.layers for row in published_depths() if row.method == "GRAND++"]
    [2, 4, 8, 16, 32, 64]
    """
    return tuple(read_records("published_depth.csv", PublishedDepth))


@cache
def published_tests() -> tuple[PublishedTest, ...]:
    """The t-test of GRAND and GREAD-BS on nine data sets.

    >>> published_tests()[0].dataset, published_tests()[0].t
    ('texas', 18.42)
    """
    return tuple(read_records("published_ttest.csv", PublishedTest))


@cache
def published_ranking() -> tuple[PublishedRank, ...]:
    """Average rank, average accuracy and medals of 35 methods.

    >>> published_ranking()[0].method, published_ranking()[0].rank
    ('GREAD-BS', 1.56)
    """
    return tuple(read_records("published_ranking.csv", PublishedRank))
