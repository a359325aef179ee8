"""The winner's curse, measured: the chosen equation trained anew, with fresh seeds, on fresh splits, and on other sets.

The best of many validation accuracies is partly luck. Trainings that the choice did not see tell how much: the same
splits with other seeds, and splits that are drawn anew. Another equation that nobody chose goes along as a yardstick.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gread.datasets.node_data import NodeData
from gread.settings.config import Config
from gread.settings.trials import make_trials
from gread.training.trainer import Progress, train

#: Fresh seeds and fresh splits, by default.
SEEDS, SPLITS = 3, 10
#: Where the seeds of fresh splits begin, far from those of data sets.
SPLIT_SEED = 7_919


@dataclass(frozen=True)
class Retrained:
    """An equation trained anew: accuracies by split (the mean over seeds), as shares of 1, where it did not diverge.

    `accuracies` are (validation, test) by the number of the split.
    """

    name: str
    accuracies: Mapping[int, tuple[float, float]]
    trainings: int
    diverged: int

    @property
    def val(self) -> float:
        """The mean validation accuracy; nan where there is none."""
        return _mean([val for val, _ in self.accuracies.values()])

    @property
    def test(self) -> float:
        return _mean([test for _, test in self.accuracies.values()])


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan


def retrained(
    data: NodeData,
    configs: Mapping[str, Config],
    splits: Sequence[int],
    seeds: Sequence[int],
    *,
    device: str,
    tell: Callable[[str], object] = warnings.warn,
    progress: Callable[[Progress], None] | None = None,
) -> list[Retrained]:
    """Configurations by name, trained to their ends on splits with seeds; nothing is dropped or chosen.

    >>> from gread import karate
    >>> quick = Config().updated({"epochs": 20, "hidden": 8})
    >>> [found] = retrained(karate(), {"BS": quick}, [0, 1], [1], device="cpu")
    >>> found.name, sorted(found.accuracies), found.trainings
    ('BS', [0, 1], 2)
    """
    trials = [(name, trial) for name, config in configs.items() for trial in make_trials(config, splits, seeds)]
    done = train(data, [trial for _, trial in trials], device=device, tell=tell, keep_best=False, progress=progress)
    found: dict[str, dict[int, list[tuple[float, float]]]] = {name: {} for name in configs}
    diverged = dict.fromkeys(configs, 0)
    for k, (name, trial) in enumerate(trials):
        pair = float(done.val_accuracy[k]), float(done.test_accuracy[k])
        found[name].setdefault(trial.split, []).append(pair)
        diverged[name] += done.status[k] != "ok"
    return [
        Retrained(
            name,
            {split: (_mean([v for v, _ in pairs]), _mean([t for _, t in pairs])) for split, pairs in by_split.items()},
            len(splits) * len(seeds),
            diverged[name],
        )
        for name, by_split in found.items()
    ]


def fresh_splits(data: NodeData, count: int = SPLITS, seed: int = 0) -> NodeData:
    """The same data with splits drawn anew, class by class, in the shares of its own splits.

    >>> from gread import karate
    >>> fresh_splits(karate(), 4).num_splits
    4
    """
    sizes = np.array([mask.sum() for mask in (data.masks.train, data.masks.val, data.masks.test)], dtype=float)
    train_share, val_share, _ = sizes / sizes.sum()
    return data.stratified(count, train=float(train_share), val=float(val_share), seed=SPLIT_SEED + seed)
