"""Reactions and tuned networks under one budget: the same number of trials for everybody, validation chooses.

A cell is a contestant on a data set: published settings first, then random ones of a space, all splits, the worse
stopped early. The best mean validation accuracy chooses; test nodes are never used for selection.
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gread.datasets.node_data import NodeData
from gread.settings.config import Config
from gread.settings.presets import PUBLISHED, presets
from gread.training.trainer import choose_device
from gread.tuning.candidates import Candidate, PlannedRound, TrialResult
from gread.tuning.random_draws import draw_candidates
from gread.tuning.rounds import train_round
from gread.tuning.selection import best_by_test, chosen, nested_accuracies
from gread.tuning.space import Space, find_space
from rdgraph.errors import InvalidArgument
from rdgraph.vocabulary.methods import FIXED
from studies.benchmarks.result_files import RESULTS, Cell, ResultRow, checked, measure_table, say
from studies.cells.cell import SETS
from studies.search.tasks import SearchRequest, base_config

#: The column that says who was measured.
KEY = "contestant"
#: The sets of the second question, which are not in the paper.
OTHERS = ("chameleon_filtered", "squirrel_filtered", "minesweeper", "tolokers")
#: Trials of a cell: 500 in the paper.
TRIALS = {"texas": 200, "wisconsin": 200, "cornell_old": 200}
FEW = 60
#: Epochs of every trial of a cell: 200 in the paper.
EPOCHS = {"minesweeper": 500}
USUAL = 200
#: Seconds between two checkpoints of a cell; one that is interrupted leaves one, too.
EVERY = 120.0


@dataclass(frozen=True)
class Contestant:
    """A reaction, or another network, with the space that its settings are drawn from.

    `reaction` is what the presets call it, `line` the equation that is trained in its place.
    """

    name: str
    title: str
    model: str = "gread"
    space: str = "paper"
    reaction: str = ""
    line: str = ""


def _tanh(reaction: str, inner: str) -> Contestant:
    """The same equation with tanh around the reaction, a switch of the authors' code."""
    line = f"-alpha*L@H + beta*tanh({inner})"
    return Contestant(f"{reaction}-tanh", f"{reaction} inside tanh", reaction=reaction, line=line)


REACTIONS = tuple(Contestant(name, name, reaction=name) for name in ("BS", "F", "AC", "Z", "ST", "FB", "FB*"))
BOUNDED = (_tanh("F", "H*(1 - H)"), _tanh("AC", "H*(1 - H**2)"), _tanh("Z", "H*(H - H**2)"))
NETWORKS = tuple(
    Contestant(name, title, name, "tuned")
    for name, title in (
        ("gcn-tuned", "tuned GCN"), ("sage-tuned", "tuned GraphSAGE"), ("gat-tuned", "tuned GAT"), ("mlp", "MLP"),
        ("gcnii", "GCNII"), ("gprgnn", "GPR-GNN"),
    )
)  # fmt: skip
CONTESTANTS = {contestant.name: contestant for contestant in (*REACTIONS, *BOUNDED, *NETWORKS)}
#: The reaction that the paper and its authors' code stand for, and the network that others are compared with.
FIRST, TUNED = "BS", "gcn-tuned"
#: Who is measured on the other sets unless somebody is asked for: one reaction for all, to save time.
ON_OTHERS = (FIRST, *(contestant.name for contestant in NETWORKS))


def trials_of(dataset: str, asked: int | None = None) -> int:
    """Trials of a cell on a data set, unless another number is asked for."""
    return asked or TRIALS.get(dataset, FEW)


def epochs_of(dataset: str, asked: int | None = None) -> int:
    """Epochs of every trial on a data set, unless another number is asked for."""
    return asked or EPOCHS.get(dataset, USUAL)


# ---------------------------------------------------------------------- what is tried
def searched_space(contestant: Contestant, base: Config, epochs: int) -> Space:
    """The contestant's space for a number of epochs, without methods that choose their own steps, to save time.

    >>> space = searched_space(CONTESTANTS["BS"], Config(), 200)
    >>> next(s.distribution.values for s in space.searched if s.name == "method")
    ('euler', 'rk4')
    """
    space = find_space(contestant.space).of(base).restricted("method", FIXED)
    return replace(space, fixed={**space.fixed, "epochs": epochs})


def published_starts(contestant: Contestant, dataset: str) -> list[tuple[str, Config]]:
    """The published settings of a contestant on a data set by their names, without the length of their trainings."""
    names = [f"{kind}/{contestant.reaction}/{dataset}" for kind in ("paper", "authors")]
    if not contestant.reaction:
        names = [f"{PUBLISHED}/{contestant.model}/{dataset}"]
    known = {preset.name: preset.config for preset in presets()}
    return [(name, known[name]) for name in names if name in known]


def make_candidates(
    contestant: Contestant, dataset: str, trials: int, epochs: int, seed: int
) -> tuple[list[Candidate], dict[int, str]]:
    """The trials of a cell, published settings first, and the names of those; everything else is drawn."""
    reaction, model = (contestant.reaction or None), (None if contestant.reaction else contestant.model)
    base, _ = base_config(SearchRequest(dataset, reaction=reaction, model=model, space=contestant.space))
    own = {"reaction": contestant.line or contestant.reaction} if contestant.reaction else {}
    space = searched_space(contestant, base.updated(own), epochs)
    same = {"epochs": epochs, "select": "accuracy", "patience": 0}
    starts = published_starts(contestant, dataset)[:trials]
    found = [Candidate(k, config.updated({**own, **same})) for k, (_, config) in enumerate(starts)]
    found += draw_candidates(space, base.updated({**own, **same}), trials - len(found), seed, first=len(found))
    return found, {k: name for k, (name, _) in enumerate(starts)}


# ---------------------------------------------------------------------- one cell
def searched_row(
    contestant: Contestant, dataset: str, data: NodeData, device: str, *, trials: int, epochs: int, seed: int = 0,
    folder: Path | None = None,
) -> ResultRow:  # fmt: skip
    """Search a cell on all splits; one that was cut off goes on from what it left in a folder.

    Numbers are percent of the set's metric, accuracy or ROC-AUC. `mean`, `std` and `each` are those on the test nodes
    of the trial that the validation nodes choose, `val_mean` what it was chosen by; `nested` chooses on every split for
    itself; `by_test` is the best trial by test, which is no result. `started` are the published settings among the
    trials: their names, states and means. `share` is the part of all epochs that was trained, `test_to_train` how many
    test nodes there are per training node, `seconds` are those of the last process, where a cell was cut off.
    """
    began = time.monotonic()
    candidates, names = make_candidates(contestant, dataset, trials, epochs, seed)
    plan = PlannedRound.of(data, range(data.num_splits), seed, True, candidates)
    place = None if folder is None else folder / f"{contestant.name}-{dataset}-{trials}-{epochs}-{seed}"
    results = train_round(data, plan, device=device, checkpoint=place, every=EVERY, tell=say)
    if place is not None:
        shutil.rmtree(place, ignore_errors=True)
    best, top = chosen(results), best_by_test(results)
    if best is None or top is None:
        raise InvalidArgument(f"expected a trial that could be trained, got none: {results[0].note}")
    config = next(c.config for c in candidates if c.number == best.number)
    test, nested = 100 * np.array(best.test), 100 * np.array(nested_accuracies(results))
    sizes = [float(mask.sum()) for mask in (data.masks.test, data.masks.train)]
    return {
        "contestant": contestant.name, "dataset": dataset, "metric": data.meta.metric, "trials": trials,
        "states": dict(Counter(r.state for r in results)), "epochs": epochs, "chosen": best.number,
        "origin": names.get(best.number, "drawn"), "settings": config.sections(), "val_mean": 100 * best.val_accuracy,
        "mean": float(test.mean()), "std": float(test.std()), "each": [round(float(t), 4) for t in test],
        "nested": float(nested.mean()), "nested_std": float(nested.std()), "by_test": 100 * top.test_accuracy,
        "started": [_start(names[r.number], r) for r in results if r.number in names],
        "share": sum(r.epochs for r in results) / (trials * epochs), "test_to_train": sizes[0] / sizes[1],
        "seed": seed, "seconds": time.monotonic() - began,
    }  # fmt: skip


def _start(name: str, result: TrialResult) -> dict[str, Any]:
    """What became of published settings among the trials; one that was dropped has no accuracy to tell."""
    told = result.is_eligible
    val, test = (100 * a if told else None for a in (result.val_accuracy, result.test_accuracy))
    return {"name": name, "state": result.state, "epochs": result.epochs, "val_mean": val, "mean": test}


# ---------------------------------------------------------------------- many cells
def usual_cells(cells: Sequence[Cell]) -> list[Cell]:
    """Those of some cells that are measured unless a contestant is asked for.

    >>> usual_cells([("F", "cora"), ("F", "tolokers"), ("BS", "tolokers")])
    [('F', 'cora'), ('BS', 'tolokers')]
    """
    return [(name, dataset) for name, dataset in cells if dataset not in OTHERS or name in ON_OTHERS]


def searched(
    *, contestants: Sequence[str] = (), device: str = "auto", sets: Sequence[str] = (), trials: int | None = None,
    seed: int = 0, again: bool = False, seconds: float = float("inf"), folder: Path | None = None,
    out: Path = RESULTS / "searched.json",
) -> None:  # fmt: skip
    """Every reaction and tuned network under one budget, resumed where it stopped; writes the file after every cell."""
    device = choose_device(device)
    names = checked(contestants, tuple(CONTESTANTS), "contestant")
    sets = checked(sets, (*SETS, *OTHERS), "data set of this benchmark")

    def measure(name: str, dataset: str, data: NodeData) -> ResultRow:
        return searched_row(CONTESTANTS[name], dataset, data, device, trials=trials_of(dataset, trials),
                            epochs=epochs_of(dataset), seed=seed, folder=folder)  # fmt: skip

    measure_table("searched", KEY, names, sets, measure, searched_line, device=device, out=out, again=again,
                  seconds=seconds, select=list if contestants else usual_cells)  # fmt: skip


def searched_line(row: ResultRow) -> str:
    """A row in a line."""
    found = f"{row['mean']:.2f} ± {row['std']:.2f} ({row['origin']}), by test {row['by_test']:.2f}"
    return f"{found}, {row['trials']} trials, {row['seconds']:.1f} s"
