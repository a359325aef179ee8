"""Test accuracies compared with published ones: BS as its authors released it, and every compared network.

Cells with the settings that the paper prints are measured once, by the study of the main tables.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from itertools import product
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

from gread import load_dataset
from gread.comparison import AGREES, Estimate, Gap
from gread.datasets.node_data import NodeData
from gread.models.batched_model import count_parameters
from gread.settings.config import Config
from gread.settings.model_records import find_model, models
from gread.settings.presets import PUBLISHED, AuthorsRun, Preset, Published, authors_runs, find_published, presets
from gread.settings.trials import make_trials
from gread.training.trainer import Trained, choose_device, train
from gread.tuning.candidates import Candidate, PlannedRound
from gread.tuning.rounds import train_round
from gread.tuning.selection import chosen
from rdgraph.errors import InvalidArgument
from studies.benchmarks.result_files import RESULTS, ResultRow, checked, head, measure_table, read_json, say, write_json
from studies.cells.cell import SETS

#: The presets of the authors' released settings, by data set.
RELEASED = {preset.dataset: preset for preset in presets() if preset.name.startswith("authors/")}
#: The column with the name of the network.
KEY = "model"
#: Settings tried where none are published: all combinations, with these epochs.
GRID = {"learning_rate": (0.01, 0.05), "weight_decay": (5e-6, 5e-4, 5e-3), "dropout": (0.2, 0.6)}
#: Multiples of the time of networks that have one: of their default, and of the published one.
TIMES, NEAR_TIMES = (0.25, 1.0, 4.0), (0.25, 1.0)
SEARCH_EPOCHS = 300
#: The three large sets have a smaller grid and no times; the column `tried` of older rows shows the whole grid.
LARGE, LARGE_GRID = ("film", "squirrel", "pubmed"), {"learning_rate": (0.01, 0.05), "dropout": (0.2, 0.6)}
#: Networks of one kind share their settings: those published for any of them are tried, without a grid.
KIN = ("sheaf", "sheaf-diagonal", "sheaf-general")


# ---------------------------------------------------------------------- the authors' settings


def gap_to(row: Mapping[str, Any], other: str) -> Gap:
    """Difference of a measured cell from another's mean, which is in the columns `other` and `other`_std.

    >>> gap = gap_to({"mean": 86.0, "std": 9.0, "splits": 10, "paper": 85.0, "paper_std": 12.0}, "paper")
    >>> gap.difference, gap.error
    (1.0, 5.0)
    """
    return Gap.between(Estimate(row["mean"], row["std"], row["splits"]), row[other], row[f"{other}_std"])


def verdict(gap: Gap) -> str:
    """Whether a difference agrees, is above, below, or undecided.

    >>> verdict(Gap(-1.0, 0.6, 0.1)), verdict(Gap(-1.3, 0.6, 0.04)), verdict(Gap(2.0, 0.6, 0.01))
    ('agrees', 'below', 'above')
    """
    return "agrees" if gap.word in AGREES else gap.word


def printed(name: str, row: Published | AuthorsRun | None) -> ResultRow:
    """A mean from elsewhere and its deviation, as columns of that name.

    >>> printed("paper", None)
    {'paper': None, 'paper_std': None}
    """
    return {name: row.mean if row else None, f"{name}_std": row.std if row else None}


def row_of(preset: Preset, done: Trained, splits: int) -> ResultRow:
    """A trained cell as a row: test accuracies in percent over splits and seeds.

    The standard deviation, of the population, is the mean over the seeds of the one over the splits.
    """
    each = 100 * done.test_accuracy.reshape(-1, splits)
    paper = find_published(f"GREAD-{preset.reaction}", preset.dataset)
    own = authors_runs().get(preset.dataset) if preset.name.startswith("authors/") else None
    return {
        "preset": preset.name.partition("/")[0], "reaction": preset.reaction, "dataset": preset.dataset,
        "mean": float(each.mean()), "std": float(each.std(axis=1).mean()),
        "val_mean": float(100 * done.val_accuracy.mean()),
        "by_seed": [round(float(m), 4) for m in each.mean(axis=1)], "splits": splits,
        "diverged": sum(s != "ok" for s in done.status), "seconds": done.seconds, **printed("paper", paper),
        **printed("authors", own),
    }  # fmt: skip


def accuracy(
    *, command: str, seeds: int = 10, device: str = "auto", sets: Sequence[str] = (),
    out: Path = RESULTS / "accuracy.json",
) -> None:  # fmt: skip
    """Accuracy of BS with the authors' released settings: a row per data set, with the paper's and their code's."""
    device = choose_device(device)
    for dataset in checked(sets, sorted(RELEASED), "data set with released settings"):
        preset, data = RELEASED[dataset], load_dataset(dataset)
        trials = make_trials(preset.config, range(data.num_splits), range(seeds))
        row = row_of(preset, train(data, trials, device=device, keep_best=False), data.num_splits)
        score = f"{row['mean']:.2f} ± {row['std']:.2f}  ({row['seconds']:.1f} s)"
        say(f"{row['preset']} {row['reaction']} {row['dataset']}: {score}")
        found = read_json(out, {})
        rows = [old for old in found.get(row["preset"], {}).get("rows", []) if old["dataset"] != dataset]
        found[row["preset"]] = head(command, device) | {"seeds": seeds, "rows": [*rows, row]}
        write_json(out, found)


# ---------------------------------------------------------------------- compared networks


def configurations(model: str, dataset: str) -> tuple[list[Config], str]:
    """The published configuration of a network on a data set with its source, or those of the grid."""
    for preset in presets():
        if preset.name == f"{PUBLISHED}/{model}/{dataset}":
            return [preset.config], preset.source
    if model in KIN:
        known = published_settings(*KIN)
        made = [Config.of(model, **_named(preset.config)) for preset in known]
        return made, f"searched on the validation nodes: {', '.join(preset.name for preset in known)}"
    near = nearest(model)
    base = replace(Config.of(model), training=replace(Config().training, epochs=SEARCH_EPOCHS))
    base = base if near is None else near.config
    found = _named(base)
    whole = LARGE_GRID if dataset in LARGE else GRID
    grid = {name: values for name, values in whole.items() if name in found}
    if whole is GRID and "time" in found and found["method"] != "semi-implicit-euler":  # whose steps are the layers
        grid["time"] = tuple(found["time"] * part for part in (TIMES if near is None else NEAR_TIMES))
    made = [base.updated(dict(zip(grid, values, strict=True))) for values in product(*grid.values())]
    start = "the defaults" if near is None else near.name
    return made, f"searched on the validation nodes: {', '.join(grid)} around {start}"


def _named(config: Config) -> dict[str, Any]:
    """The settings of the network and of its training by name."""
    return {f.name: getattr(part, f.name) for part in (config.model, config.training) for f in fields(part)}


def published_settings(*names: str) -> list[Preset]:
    """What is published for networks on any of the nine data sets."""
    found = [preset for preset in presets() if preset.dataset in SETS]
    return [preset for name in names for preset in found if preset.name.startswith(f"{PUBLISHED}/{name}/")]


def nearest(model: str) -> Preset | None:
    """Published settings of the same network on another of the nine data sets, the first; None where there are none."""
    return next(iter(published_settings(model)), None)


def compared_row(model: str, dataset: str, data: NodeData, device: str) -> ResultRow:
    """Train a cell on all splits, with one seed: test accuracies in percent, the settings and their origin.

    `seconds` is the whole of it, all configurations that were tried and their set-up included.
    """
    found, origin = configurations(model, dataset)
    began = time.monotonic()
    results = tried(data, found, device)
    best = chosen(results)
    if best is None:
        raise InvalidArgument(f"expected a configuration of {model} that can be trained on {dataset}, got none")
    each, config = [100 * accuracy for accuracy in best.test], found[best.number]
    paper = find_published(find_model(model).published, dataset)
    return {
        "model": model, "dataset": dataset, "mean": fmean(each), "std": pstdev(each),
        "val_mean": 100 * best.val_accuracy, "each": [round(a, 4) for a in each], "state": best.state,
        "tried": len(found), "origin": origin, "settings": config.sections(),
        "parameters": _parameters(config, data), "epochs": best.epochs, "seconds": time.monotonic() - began,
        **printed("published", paper),
    }  # fmt: skip


def _parameters(config: Config, data: NodeData) -> int:
    return count_parameters(config.model, data.graph, features=data.num_features, classes=data.num_classes)


def tried(data: NodeData, configs: Sequence[Config], device: str) -> Any:
    """What became of configurations on all splits; several are halved."""
    candidates = [Candidate(number, config, {}) for number, config in enumerate(configs)]
    plan = PlannedRound.of(data, range(data.num_splits), 0, len(configs) > 1, candidates)
    return train_round(data, plan, device=device)


def compared(
    *, contestants: Sequence[str] = (), device: str = "auto", sets: Sequence[str] = (), skip: Sequence[str] = (),
    again: bool = False, seconds: float = float("inf"), out: Path = RESULTS / "compared.json",
) -> None:  # fmt: skip
    """Every compared network on the nine data sets, resumed where it stopped.

    A cell takes the published settings where there are some. Else a small grid is searched with halving: learning rate,
    weight decay and dropout, and the time where the network has one; of sheaf networks, whose settings differ much from
    set to set, all that are published for one of their kind. The configuration with the best mean validation accuracy
    is taken; test nodes are not looked at until then. Writes the file after every cell.
    """
    device, sets = choose_device(device), sets or SETS
    checked([*contestants, *skip], tuple(models), "model")
    asked = [name for name in contestants or models if name not in skip and (contestants or name != "gread")]
    measure_table("compared", KEY, asked, sets, partial(compared_row, device=device), compared_line, device=device,
                  out=out, again=again, seconds=seconds)  # fmt: skip


def compared_line(row: ResultRow) -> str:
    """A row in a line."""
    return f"{row['mean']:.2f} ± {row['std']:.2f}, published {row['published']}, {row['seconds']:.1f} s"
