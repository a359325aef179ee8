"""Every compared network on the nine data sets: `python -m studies.benchmarks.compared --device cuda`.

A cell takes the published settings where there are some. Else a small grid is searched with halving: learning rate,
weight decay and dropout, and the time where the network has one; of sheaf networks, whose settings differ much from
set to set, all that are published for one of their kind. The configuration with the best mean validation
accuracy is taken; test nodes are not looked at until then. Writes docs/compared.json after every cell, and goes on
where it was left; `python -m studies.benchmarks.compared_page` turns it into docs/compared.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import product
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

from gread.datasets.node_data import NodeData
from gread.models.parameter_count import count_parameters
from gread.settings.config import Config
from gread.settings.model_records import find_model, models
from gread.settings.presets import PUBLISHED, Preset, find_published, presets
from gread.training.trainer import choose_device
from gread.tuning.candidates import Candidate, PlannedRound, TrialResult
from gread.tuning.rounds import train_round
from gread.tuning.selection import chosen
from rdgraph.errors import InvalidArgument
from studies.benchmarks.cell_file import (
    checked,
    joined_cells,
    measure_cells,
    missing_cells,
    present,
    read_cells,
    write_cells,
)
from studies.benchmarks.speed_rows import environment
from studies.runs.boundary import run_program

#: The column that says who was measured.
KEY = "model"
DOCS = Path(__file__).resolve().parents[2] / "docs"
SETS = ("texas", "wisconsin", "cornell_old", "film", "squirrel", "chameleon", "cora", "citeseer", "pubmed")
#: What is tried where nobody published settings: all combinations, with these epochs.
GRID = {"learning_rate": (0.01, 0.05), "weight_decay": (5e-6, 5e-4, 5e-3), "dropout": (0.2, 0.6)}
#: Beside them, parts and multiples of the time of networks with one: around their defaults, around what is published.
TIMES, NEAR_TIMES = (0.25, 1.0, 4.0), (0.25, 1.0)
SEARCH_EPOCHS = 300
#: The three large sets have less of it, and no times; rows of before that have the whole grid tell so by `tried`.
LARGE, LARGE_GRID = ("film", "squirrel", "pubmed"), {"learning_rate": (0.01, 0.05), "dropout": (0.2, 0.6)}
#: Networks of one kind that share their settings: what is published for one of them anywhere is tried, and no grid.
KIN = ("sheaf", "sheaf-diagonal", "sheaf-general")


@dataclass(frozen=True)
class ComparedRow:
    """One cell: test accuracy in percent over the splits, with the settings it was reached with and their origin.

    `seconds` is the whole of it, all configurations that were tried and their set-up included.
    """

    model: str
    dataset: str
    mean: float
    std: float
    val_mean: float
    each: tuple[float, ...]
    state: str
    tried: int
    origin: str
    settings: dict[str, dict[str, Any]]
    parameters: int
    epochs: int
    seconds: float
    published: float | None
    published_std: float | None


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


def measure(model: str, dataset: str, data: NodeData, device: str) -> ComparedRow:
    """Train a cell on all splits, with one seed."""
    found, origin = configurations(model, dataset)
    began = time.monotonic()
    results = tried(data, found, device)
    best = chosen(results)
    if best is None:
        raise InvalidArgument(f"expected a configuration of {model} that can be trained on {dataset}, got none")
    each, config = [100 * accuracy for accuracy in best.test], found[best.number]
    paper = find_published(find_model(model).published, dataset)
    return ComparedRow(
        model, dataset, fmean(each), pstdev(each), 100 * best.val_accuracy, tuple(round(a, 4) for a in each),
        best.state, len(found), origin, config.sections(), _parameters(config, data), best.epochs,
        time.monotonic() - began, paper.mean if paper else None, paper.std if paper else None,
    )  # fmt: skip


def tried(data: NodeData, configs: Sequence[Config], device: str) -> list[TrialResult]:
    """What became of configurations on all splits; several are halved."""
    candidates = [Candidate(number, config, {}) for number, config in enumerate(configs)]
    plan = PlannedRound.of(data, range(data.num_splits), 0, len(configs) > 1, candidates)
    return train_round(data, plan, device=device)


def _parameters(config: Config, data: NodeData) -> int:
    return count_parameters(config.model, data.graph, features=data.num_features, classes=data.num_classes)


def told(row: ComparedRow) -> str:
    """A row in a line."""
    return f"{row.mean:.2f} ± {row.std:.2f}, published {row.published}, {row.seconds:.1f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description="The compared networks on the nine data sets")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--model", action="append", dest="models", metavar="NAME")
    parser.add_argument("--set", action="append", dest="sets", metavar="NAME")
    parser.add_argument("--skip", action="append", default=[], metavar="NAME", help="networks to leave out")
    parser.add_argument("--again", action="store_true", help="measure the chosen cells anew")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no cell after so many seconds")
    parser.add_argument("--out", type=Path, default=DOCS / "compared.json")
    parser.add_argument("--join", type=Path, nargs="+", metavar="FILE", help="measure nothing, put files into one")
    given = parser.parse_args()
    if given.join:
        write_cells(given.out, joined_cells(present(given.join), KEY))
        return
    device = choose_device(given.device)
    checked([*(given.models or ()), *given.skip], tuple(models), "model")
    names = given.models or [name for name in models if name != "gread"]
    found = read_cells(given.out)
    sets = given.sets or SETS
    if given.again:
        found["rows"] = [r for r in found["rows"] if not (r[KEY] in names and r["dataset"] in sets)]
    found["command"] = "python -m studies.benchmarks.compared --device cuda"
    found["environment"] = environment(device)
    names = [name for name in names if name not in given.skip]
    cells = missing_cells(found, KEY, names, sets)
    measure_cells(cells, partial(measure, device=device), told, given.out, found, given.seconds)


if __name__ == "__main__":
    run_program(main)
