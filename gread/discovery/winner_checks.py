"""The winner's curse: retrains the chosen equation with fresh seeds, on fresh splits, and on other data sets.

The best of many validation accuracies is partly luck. Trainings that were not used for selection show how much: the
same splits with other seeds, and newly drawn splits. An equation that was not selected serves as a reference.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gread.datasets.node_data import NodeData
from gread.discovery.term_grammar import Line
from gread.settings.config import Config
from gread.settings.trials import make_trials
from gread.training.trainer import Progress, train
from gread.tuning.candidates import TrialResult

# ---------------------------------------------------------------------- winner checks
#: Fresh seeds and fresh splits, by default.
SEEDS, SPLITS = 3, 10
#: The first seed of fresh splits, different from those of data sets.
SPLIT_SEED = 7_919


@dataclass(frozen=True)
class Retrained:
    """A retrained equation: (validation, test) `accuracies` by split, means over the seeds, as shares of 1."""

    name: str
    accuracies: Mapping[int, tuple[float, float]]
    trainings: int
    diverged: int

    @property
    def val(self) -> float:
        """The mean validation accuracy; nan without any."""
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
    """Train configurations by name to the last epoch, on splits with seeds; nothing is dropped or selected.

    >>> from gread import karate
    >>> quick = Config().updated({"epochs": 20, "hidden": 8})
    >>> [result] = retrained(karate(), {"BS": quick}, [0, 1], [1], device="cpu")
    >>> result.name, sorted(result.accuracies), result.trainings
    ('BS', [0, 1], 2)
    """
    trials = [(name, trial) for name, config in configs.items() for trial in make_trials(config, splits, seeds)]
    run = train(data, [trial for _, trial in trials], device=device, tell=tell, keep_best=False, progress=progress)
    accuracies: dict[str, dict[int, list[tuple[float, float]]]] = {name: {} for name in configs}
    diverged = dict.fromkeys(configs, 0)
    for k, (name, trial) in enumerate(trials):
        pair = float(run.val_accuracy[k]), float(run.test_accuracy[k])
        accuracies[name].setdefault(trial.split, []).append(pair)
        diverged[name] += run.status[k] != "ok"
    return [
        Retrained(
            name,
            {split: (_mean([v for v, _ in pairs]), _mean([t for _, t in pairs])) for split, pairs in by_split.items()},
            len(splits) * len(seeds),
            diverged[name],
        )
        for name, by_split in accuracies.items()
    ]


def fresh_splits(data: NodeData, count: int = SPLITS, seed: int = 0) -> NodeData:
    """The same data with new random splits, drawn class by class in the proportions of the original splits.

    >>> from gread import karate
    >>> fresh_splits(karate(), 4).num_splits
    4
    """
    sizes = np.array([mask.sum() for mask in (data.masks.train, data.masks.val, data.masks.test)], dtype=float)
    train_share, val_share, _ = sizes / sizes.sum()
    return data.stratified(count, train=float(train_share), val=float(val_share), seed=SPLIT_SEED + seed)


# ---------------------------------------------------------------------- term effects
# Which terms help: an analysis of variance over the terms of equations, with intervals.
#
# The validation accuracy of an equation is modelled as a constant, plus one number for each of its terms, plus noise,
# fitted by least squares. Equations are compared at the first rung, which all of them reached: those dropped there
# count as well, otherwise only good ones would be compared.

#: The least number of equations with a term for its effect to be estimated, and the level of the intervals.
LEAST, LEVEL = 3, 0.95


@dataclass(frozen=True)
class TermEffect:
    """The effect of a term on the mean validation accuracy, with the other terms fixed; shares of 1.

    `low` and `high` are the ends of the 95 % interval by Student's t; `share` is the part of the total variance that
    the term explains, `p` the p value of its F test with 1 and n - k degrees of freedom, not corrected for the number
    of terms.
    """

    term: str
    equations: int
    effect: float
    low: float
    high: float
    share: float
    p: float


def early_accuracy(result: TrialResult) -> float:
    """The mean validation accuracy after the first rung, or at the end if there was no rung."""
    return result.rungs[0][1] if result.rungs else result.val_accuracy


def term_effects(pairs: Sequence[tuple[TrialResult, Line]]) -> list[TermEffect]:
    """The effects of all terms that are in enough equations, the largest first.

    Terms whose columns depend linearly on those of earlier ones are excluded.

    >>> from gread.discovery.term_grammar import Term
    >>> a, b = Term("H"), Term("A@H")
    >>> pair = lambda k, *terms: (
    ...     TrialResult(k, "complete", 9, (0.5 + 0.2 * (a in terms) + 0.01 * (k % 2),), (0.0,)),
    ...     Line(terms, ("alpha", "beta"), "scalar"),
    ... )
    >>> found = term_effects([pair(k, *terms) for k, terms in enumerate([(a,), (b,), (a, b), (a,), (b,), (a, b)] * 3)])
    >>> found[0].term, round(found[0].effect, 2), found[0].low < 0.2 < found[0].high
    ('H', 0.2, True)
    """
    from scipy.stats import f, t

    known = [(early_accuracy(result), line) for result, line in pairs if result.val]
    counts = Counter(str(term) for _, line in known for term in line.terms)
    names = [name for name, count in counts.items() if LEAST <= count <= len(known) - LEAST]
    values = np.array([value for value, _ in known])
    columns = [np.ones(len(known))]
    estimated: list[str] = []
    for name in names:
        column = np.array([float(name in {str(term) for term in line.terms}) for _, line in known])
        if np.linalg.matrix_rank(np.stack([*columns, column])) == len(columns) + 1:
            columns.append(column)
            estimated.append(name)
    design = np.stack(columns, axis=1) if known else np.zeros((0, 1))
    freedom = len(known) - design.shape[1]
    if not estimated or freedom < 1:
        return []
    inverse = np.linalg.inv(design.T @ design)
    weights = inverse @ design.T @ values
    noise = float(((values - design @ weights) ** 2).sum()) / freedom
    total = float(((values - values.mean()) ** 2).sum())
    reach = float(t.ppf((1 + LEVEL) / 2, freedom))
    effects = []
    for k, name in enumerate(estimated, start=1):
        error, effect = math.sqrt(noise * inverse[k, k]), float(weights[k])
        explained = effect**2 / float(inverse[k, k])
        p = float(f.sf(explained / noise, 1, freedom)) if noise > 0 else float(effect == 0)
        share = explained / total if total > 0 else 0.0
        ends = effect - reach * error, effect + reach * error
        effects.append(TermEffect(name, counts[name], effect, *ends, share, p))
    return sorted(effects, key=lambda one: -one.effect)
