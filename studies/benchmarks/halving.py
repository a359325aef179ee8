"""Does halving choose what a whole search chooses?

Every search is trained whole, once, and its learning curves are kept. What is dropped at a rung depends on the curves
alone, and what stays goes on as it would have, so any rule can then be replayed on them; for the first search of every
set the halved search is trained as well, and has to agree with its replay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gread.datasets.loading import load_dataset
from gread.datasets.node_data import NodeData
from gread.settings.config import Config
from gread.training.trainer import choose_device, train
from gread.tuning.candidates import Candidate, PlannedRound
from gread.tuning.random_draws import draw_candidates
from gread.tuning.rounds import train_round
from gread.tuning.selection import chosen
from gread.tuning.space import find_space
from gread.tuning.successive_halving import Rungs
from studies.benchmarks.result_files import RESULTS, checked, head, read_json, say, write_json
from studies.benchmarks.searched import CONTESTANTS, make_candidates

SETS, SEARCHES, TRIALS, SPLITS, EPOCHS = ("texas", "wisconsin"), 10, 27, 3, 200
#: What the means of equal accuracies may differ by; those of one hit more or less differ by 0.004.
TIE = 1e-6
#: Searches that are drawn from the trials of all searches of a set, for a share that chance moves less.
RESAMPLED = 1000
#: A GCN of 16 channels, which a CPU trains in minutes; or a contestant of `searched`.
SMALL = "gcn-16"
#: Rules other than the default one.
RULES: Mapping[str, Rungs] = {
    "default": Rungs(),
    "a third after 10, 30 and 90 %": Rungs(((0.1, 1 / 3), (0.3, 1 / 9), (0.9, 1 / 27))),
    "a half after 10, 20, 40 and 80 %": Rungs(((0.1, 1 / 2), (0.2, 1 / 4), (0.4, 1 / 8), (0.8, 1 / 16))),
    "a third after 20 and 60 %": Rungs(((0.2, 1 / 3), (0.6, 1 / 9))),
    "a seventh after 20 %": Rungs(((0.2, 1 / 7),)),
}


@dataclass(frozen=True)
class Curves:
    """A whole search: validation accuracies (trials, splits, epochs)."""

    val: np.ndarray

    @property
    def best(self) -> np.ndarray:
        """The mean over the splits of the best accuracy so far (trials, epochs)."""
        return np.maximum.accumulate(np.nan_to_num(self.val.astype(np.float64)), -1).mean(1)


@dataclass(frozen=True)
class Replayed:
    """A rule on a whole search: the trial that it chooses, whether none has a better mean, and what it trains.

    `gap` is what the chosen trial is below the best one, in points, `share` the part of all epochs that is trained.
    """

    trial: int
    agrees: bool
    gap: float
    share: float


def replay(curves: Curves, rungs: Rungs) -> Replayed:
    """What halving would have done with these trials; a trial with exactly the best mean counts as the winner.

    Means are equal up to `TIE`: the accuracies of single splits are rounded, their hits were equal.

    >>> val = np.array([[[0.5] * 20 + [0.9] * 80], [[0.6] * 100], [[0.4] * 100]])
    >>> replay(Curves(val), Rungs(((0.2, 1 / 3),)))
    Replayed(trial=1, agrees=False, gap=30.0, share=0.4666666666666667)
    """
    best = curves.best
    count, epochs = best.shape
    alive, before, work = list(range(count)), 0, 0
    for end in rungs.ends(epochs):
        work += len(alive) * (end - before)
        before = end
        if end < epochs:
            ranked = sorted(alive, key=lambda k: (-best[k, end - 1], k))
            alive = ranked[: rungs.survivors(count, end, epochs)]
    final = best[:, -1]
    taken = max(alive, key=lambda k: (final[k], -k))
    gap = float(final.max() - final[taken])
    return Replayed(taken, gap < TIE, round(100 * gap, 4), work / (count * epochs))


# ---------------------------------------------------------------------- searches
def trials_of(network: str, dataset: str, trials: int, seed: int) -> list[Candidate]:
    """The trials of one search."""
    if network != SMALL:
        return make_candidates(CONTESTANTS[network], dataset, trials, EPOCHS, seed)[0]
    base = Config.of("gcn", hidden=16, epochs=EPOCHS)
    return draw_candidates(find_space("small").of(base).without({"hidden"}), base, trials, seed)


def whole_search(data: NodeData, candidates: Sequence[Candidate], splits: int, device: str) -> Curves:
    """Train all trials to their ends."""
    trials = [t for c in candidates for t in c.trainings(range(splits), 0)]
    done = train(data, trials, device=device, keep_best=False)
    return Curves(done.history[..., 2].reshape(len(candidates), splits, -1))


def kept_curves(path: Path | None, make: Callable[[], Curves]) -> Curves:
    """The curves of a file, or those that are made now and kept there."""
    if path is not None and path.exists():
        return Curves(np.load(path))
    curves = make()
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, curves.val)
    return curves


def halved_search(data: NodeData, candidates: Sequence[Candidate], splits: int, device: str) -> int:
    """The trial that halving chooses when it is trained."""
    best = chosen(train_round(data, PlannedRound.of(data, range(splits), 0, True, candidates), device=device))
    assert best is not None  # every trial of the space can be trained
    return best.number


def measure(
    network: str, dataset: str, seeds: Iterable[int], device: str, *, trials: int, splits: int, folder: Path | None
) -> tuple[list[dict[str, Any]], list[Curves]]:
    """Rows and curves of whole searches with every seed; the first search is also trained with halving."""
    data, rows, curves = load_dataset(dataset, offline=True), list[dict[str, Any]](), list[Curves]()
    for seed in seeds:
        candidates = trials_of(network, dataset, trials, seed)
        path = None if folder is None else folder / f"{dataset}-{network}-{trials}-{splits}-{seed}.npy"
        curves.append(kept_curves(path, partial(whole_search, data, candidates, splits, device)))
        results = {name: vars(replay(curves[-1], rule)) for name, rule in RULES.items()}
        row: dict[str, Any] = {
            "dataset": dataset, "network": network, "seed": seed, "trials": trials, "splits": splits,
            "epochs": curves[-1].val.shape[-1], "rules": results,
        }  # fmt: skip
        if not rows:
            row["trained"] = halved_search(data, candidates, splits, device)
        rows.append(row)
        say(f"{dataset} {seed}: {results['default']}")
    return rows, curves


def resampled(curves: Sequence[Curves], rungs: Rungs, trials: int, seed: int = 0) -> dict[str, float]:
    """The share of searches that agree, and the mean gap, over searches with trials drawn from those of all searches.

    >>> same = Curves(np.full((3, 1, 100), 0.5))
    >>> resampled([same, same], Rungs(), 3)
    {'agree': 1.0, 'gap': 0.0}
    """
    pool, rng = np.concatenate([c.val for c in curves]), np.random.default_rng(seed)
    found = [replay(Curves(pool[rng.choice(len(pool), trials, replace=False)]), rungs) for _ in range(RESAMPLED)]
    return {"agree": float(np.mean([r.agrees for r in found])), "gap": round(float(np.mean([r.gap for r in found])), 4)}


def subject(row: Mapping[str, Any]) -> str:
    """What was searched."""
    return f"{row['network']} on {row['dataset']}"


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, dict[str, float]]]:
    """By subject and rule: searches, how many agree, the mean gap in points, the mean share of the epochs."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for name in dict.fromkeys(map(subject, rows)):
        own = [row["rules"] for row in rows if subject(row) == name]
        found[name] = {
            rule: {
                "searches": len(own), "agree": sum(r[rule]["agrees"] for r in own),
                "gap": round(float(np.mean([r[rule]["gap"] for r in own])), 4),
                "share": round(float(np.mean([r[rule]["share"] for r in own])), 4),
            }
            for rule in RULES
        }  # fmt: skip
    return found


def halving(
    *, device: str = "cpu", network: str = SMALL, sets: Sequence[str] = SETS, searches: int = SEARCHES,
    trials: int = TRIALS, splits: int = SPLITS, curves: Path | None = None,
    out: Path = RESULTS / "halving.json",
) -> None:  # fmt: skip
    """How often halving chooses what a whole search chooses; curves that lie in `--curves` are not trained again."""
    device = choose_device(device)
    checked([network], (SMALL, *CONTESTANTS), "contestant")
    found = read_json(out, {"rows": [], "runs": {}})
    for dataset in sets:
        new, made = measure(network, dataset, range(searches), device, trials=trials, splits=splits, folder=curves)
        name = subject(new[0])
        rows = [*(row for row in found["rows"] if subject(row) != name), *new]
        shares = {rule: resampled(made, rungs, trials) for rule, rungs in RULES.items()}
        origin = head("python -m studies.benchmarks halving", device)
        runs = found["runs"] | {name: {"environment": origin.pop("environment"), "resampled": shares}}
        found = origin | {"summary": summary(rows), "runs": runs, "rows": rows}
        write_json(out, found)
