"""The winner's curse, measured: the chosen equation trained anew, with fresh seeds, on fresh splits, and on other sets.

The best of many validation accuracies is partly luck. Trainings that the choice did not see tell how much: the same
splits with other seeds, and splits that are drawn anew. Another equation that nobody chose goes along as a yardstick.
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
#: Where the seeds of fresh splits begin, far from those of data sets.
SPLIT_SEED = 7_919


@dataclass(frozen=True)
class Retrained:
    """A retrained equation: accuracies by split (the mean over seeds), as shares of 1, where it did not diverge.

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
# The validation accuracy of an equation is taken as a constant, plus one number for each term that it has, plus noise;
# least squares give the numbers. Equations are compared after the same number of epochs, the first rung, which all of
# them reached: those that were dropped there count as well, else only good ones would be seen.

#: A term that fewer equations have is left out, and the share of the intervals.
LEAST, LEVEL = 3, 0.95


@dataclass(frozen=True)
class TermEffect:
    """How much a term adds to the mean validation accuracy, other terms held; shares of 1.

    `low` and `high` end the 95 % interval by Student's t; `share` is the part of the whole variance that is lost where
    the term is left out, `p` the probability of so much by chance (F with 1 and n - k degrees of freedom), without a
    correction for the number of terms.
    """

    term: str
    equations: int
    effect: float
    low: float
    high: float
    share: float
    p: float


def early_accuracy(result: TrialResult) -> float:
    """The mean validation accuracy after the first rung, or at the end where there was none."""
    return result.rungs[0][1] if result.rungs else result.val_accuracy


def term_effects(pairs: Sequence[tuple[TrialResult, Line]]) -> list[TermEffect]:
    """The effects of all terms that are in enough equations, the largest first.

    Terms whose columns are sums of others' have no effect of their own, and are left out.

    >>> from gread.discovery.term_grammar import Term
    >>> a, b = Term("H"), Term("A@H")
    >>> made = lambda k, *terms: (
    ...     TrialResult(k, "complete", 9, (0.5 + 0.2 * (a in terms) + 0.01 * (k % 2),), (0.0,)),
    ...     Line(terms, ("alpha", "beta"), "scalar"),
    ... )
    >>> found = term_effects([made(k, *terms) for k, terms in enumerate([(a,), (b,), (a, b), (a,), (b,), (a, b)] * 3)])
    >>> found[0].term, round(found[0].effect, 2), found[0].low < 0.2 < found[0].high
    ('H', 0.2, True)
    """
    from scipy.stats import f, t

    known = [(early_accuracy(result), line) for result, line in pairs if result.val]
    counts = Counter(str(term) for _, line in known for term in line.terms)
    names = [name for name, count in counts.items() if LEAST <= count <= len(known) - LEAST]
    values = np.array([value for value, _ in known])
    columns = [np.ones(len(known))]
    kept: list[str] = []
    for name in names:
        column = np.array([float(name in {str(term) for term in line.terms}) for _, line in known])
        if np.linalg.matrix_rank(np.stack([*columns, column])) == len(columns) + 1:
            columns.append(column)
            kept.append(name)
    design = np.stack(columns, axis=1) if known else np.zeros((0, 1))
    freedom = len(known) - design.shape[1]
    if not kept or freedom < 1:
        return []
    inverse = np.linalg.inv(design.T @ design)
    weights = inverse @ design.T @ values
    noise = float(((values - design @ weights) ** 2).sum()) / freedom
    whole = float(((values - values.mean()) ** 2).sum())
    reach = float(t.ppf((1 + LEVEL) / 2, freedom))
    found = []
    for k, name in enumerate(kept, start=1):
        error, effect = math.sqrt(noise * inverse[k, k]), float(weights[k])
        lost = effect**2 / float(inverse[k, k])
        p = float(f.sf(lost / noise, 1, freedom)) if noise > 0 else float(effect == 0)
        share = lost / whole if whole > 0 else 0.0
        ends = effect - reach * error, effect + reach * error
        found.append(TermEffect(name, counts[name], effect, *ends, share, p))
    return sorted(found, key=lambda one: -one.effect)
