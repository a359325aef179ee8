"""How fast a search trains, and how long the paper's table takes: whole trainings, with everything counted.

Trials are drawn from the paper's space and trained on all splits as a search trains them: of many shapes, methods,
steps and times, in as few batches as that takes. Kernels are compiled once on a machine: that, and the start of the
process, are what a first pass over the same batches with one epoch takes longer, and reported separately.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from scipy.interpolate import make_interp_spline

from gread import load_dataset
from gread.datasets.node_data import NodeData
from gread.models.resolution import resolve_trials
from gread.settings.config import Config
from gread.settings.trials import Trial, grouped, make_trials
from gread.training.batch_queue import make_plan, most_members, run_batches
from gread.training.checkpoint import Saver
from gread.training.ensemble import Ensemble
from gread.training.planner import Costs
from gread.tuning.random_draws import draw_candidates
from gread.tuning.space import find_space
from gread.tuning.successive_halving import Rungs, halving_options
from studies.benchmarks.result_files import head, read_json, say, write_json
from studies.cells.cell import REACTIONS, SETS, published_config, shrunk
from studies.search.tasks import SearchRequest, base_config

#: Epochs of a training of the paper, its trials for each reaction and data set, and splits.
EPOCHS, TRIALS, SPLITS = 200, 500, 10
#: Trainings per second to reach, and the share of what members reach alone.
TARGETS, TARGET_SHARE, TARGET_HOURS = {"texas": 250.0, "cora": 8.0, "pubmed": 1.5}, 0.6, 6.0
#: Trials and epochs that are measured unless others are asked for; rates are those of whole trainings.
MEASURED = {
    "texas": (TRIALS, EPOCHS), "wisconsin": (TRIALS, 50), "cornell_old": (TRIALS, 50), "cora": (200, 20),
    "citeseer": (200, 20), "chameleon": (100, 20), "film": (60, 20), "squirrel": (40, 20), "pubmed": (40, 20),
}  # fmt: skip
#: Methods of the trials; the paper's space has dopri5 too.
METHODS = ("euler", "rk4")
#: Bytes of an epoch, as the planner reckons them, that fill a GPU.
FULL = 2e10
#: Seconds of epochs that a rate is taken from.
SAMPLED = 0.5
#: Seconds that the paper's table may take once kernels are compiled, and the parts of its time.
TABLE_TARGET = 60.0
PARTS = ("loading", "planning", "setup", "recording", "running")


# ---------------------------------------------------------------------- searches


@dataclass(frozen=True)
class SearchTimes:
    """A search that was measured: trainings, batches, and seconds for planning, set-up, recording and epochs.

    `epochs` of the `whole` number were run. Batches run while others are set up and recorded, so that of a shorter run
    all but the planning counts in proportion: the seconds of a whole search are then an upper bound, as it is set up
    once.
    """

    trainings: int
    shapes: int
    batches: int
    planning: float
    setup: float
    recording: float
    running: float
    epochs: int
    whole: int = EPOCHS

    @property
    def seconds(self) -> float:
        """Seconds of the whole search, at most."""
        return self.planning + (self.setup + self.recording + self.running) * self.whole / self.epochs

    @property
    def rate(self) -> float:
        """Whole trainings per second, with everything counted; at least where fewer epochs were run."""
        return self.trainings / self.seconds


def measure_search(data: NodeData | Sequence[NodeData], trials: Sequence[Trial], device: str) -> SearchTimes:
    """Train trials as a search does, to the end of their epochs, with a clock at every part; on one data set, or on one
    each."""
    options = halving_options(device)
    started = time.perf_counter()
    chosen, _ = resolve_trials(trials)
    plan = make_plan([data] if isinstance(data, NodeData) else data, chosen, options)
    planned = time.perf_counter()
    spent = {"setup": 0.0, "recording": 0.0}

    def begin(number: int) -> tuple[Ensemble, Saver]:
        began = time.perf_counter()
        ensemble = plan.ensemble(number, options)
        made = time.perf_counter()
        ensemble.record()
        spent["setup"] += made - began
        spent["recording"] += time.perf_counter() - made
        return ensemble, Saver(None, number, ensemble, plan.data(number), math.inf, print)

    def finish(number: int, ensemble: Ensemble, saver: Saver) -> None:
        ensemble.outcome()

    run_batches(plan.queue(begin), device, lambda number, ensemble: None, finish, print)
    running = time.perf_counter() - planned - sum(spent.values())
    epochs = chosen[0].config.training.epochs
    return SearchTimes(
        len(chosen), len(grouped(chosen)), len(plan.batches), planned - started, spent["setup"], spent["recording"],
        running, epochs,
    )  # fmt: skip


def rate_alone(data: NodeData, config: Config, device: str, full: float = FULL) -> dict[str, Any]:
    """Trainings per second of one configuration whose splits and seeds fill the GPU; without set-up and recording."""
    options = halving_options(device)
    costs = Costs.of(data, device)
    beside, product = costs.member(config.model)
    wanted = max(1, round(full / (beside + product * config.model.effort)))
    count = min(wanted, most_members(data, resolve_trials([Trial(config)])[0][0], **options))
    splits = range(data.num_splits)
    trials = make_trials(config, splits, range(-(-count // len(splits))))[:count]
    ensemble = Ensemble(data, trials, **options)
    ensemble.record()
    ensemble.advance(1)
    done, began = 0, time.perf_counter()
    while time.perf_counter() - began < SAMPLED and ensemble.epoch < ensemble.epochs:
        ensemble.advance(5)
        done = ensemble.epoch - 1  # waits for the device
    each = (time.perf_counter() - began) / max(1, done)
    return {
        "hidden": config.model.hidden, "adjacency": config.gread.adjacency, "method": config.gread.method,
        "products": ensemble.model.degree, "members": count, "seconds_per_epoch": each,
        "rate": count / (each * EPOCHS),
    }  # fmt: skip


def evenly(configs: Sequence[Config], costs: Costs, samples: int) -> list[Config]:
    """Some of the configurations, one from the midst of every part of them in the order of their costs.

    Few cost most of the time, so that a plain sample says little about the whole.
    """

    def cost(config: Config) -> float:
        beside, product = costs.member(config.model)
        return beside + product * config.model.effort

    ordered, count = sorted(configs, key=cost), min(samples, len(configs))
    return [ordered[(2 * k + 1) * len(ordered) // (2 * count)] for k in range(count)]


def search_row(
    name: str, device: str, trials: int, epochs: int, samples: int, methods: Sequence[str] = METHODS
) -> dict[str, Any]:
    """The search on a data set, and a sample of its members alone."""
    data = load_dataset(name)
    base, _ = base_config(SearchRequest(dataset=name, reaction="BS", space="paper"))
    space = find_space("paper").restricted("method", methods).of(base)
    configs = [candidate.config for candidate in draw_candidates(space, base, trials)]
    splits = range(min(SPLITS, data.num_splits))
    first, found = (
        measure_search(data, [t for c in short for t in make_trials(c, splits)], device)
        for short in ([config.updated({"epochs": count}) for config in configs] for count in (1, epochs))
    )
    parts = [one.planning + one.setup + one.recording for one in (first, found)]
    compiling = max(0.0, parts[0] - parts[1])
    for one in (first, found):
        say(f"{name} {json.dumps(asdict(one) | {'rate': one.rate})}")
    alone: list[dict[str, Any]] = []
    for config in evenly(configs, Costs.of(data, device), samples):
        alone.append(rate_alone(data, config, device))
        say(f"{name} {json.dumps(alone[-1])}")
        if device.startswith("cuda"):
            torch.cuda.empty_cache()
    ideal = len(alone) / sum(1 / one["rate"] for one in alone) if alone else None
    halved = Rungs().work([EPOCHS] * trials) / (EPOCHS * trials)
    return {
        "trials": trials, "methods": list(methods), "search": asdict(found),
        "rate": found.rate, "compiling": compiling,
        "rate_with_compiling": found.trainings / (found.seconds + compiling),
        "rate_alone": ideal, "share": found.rate / ideal if ideal else None,
        "alone": alone,
        "target": TARGETS.get(name), "target_share": TARGET_SHARE, "work_with_halving": halved,
        "nodes": data.num_nodes, "entries": int(data.graph.edge_index.shape[1]),
    }  # fmt: skip


def paper_hours(found: dict[str, Any]) -> dict[str, Any] | None:
    """GPU hours of the paper's 315,000 trainings on nine data sets, from the rates of those that were measured, three
    at least.

    Seconds per training of the other sets lie on the lines between the measured ones, in the logarithms of the number
    of nodes and entries of the adjacency together, and beyond the last one on its continuation; all reactions are
    reckoned like BS.
    """
    known = [name for name in SETS if name in found]
    if not set(TARGETS) <= set(known):
        return None
    points = sorted((math.log(found[n]["nodes"] + found[n]["entries"]), math.log(1 / found[n]["rate"])) for n in known)
    lines, seconds = make_interp_spline(*zip(*points, strict=True), k=1), {}
    for name in SETS:
        if name in known:
            seconds[name] = 1 / found[name]["rate"]
            continue
        data = load_dataset(name)
        seconds[name] = math.exp(lines(math.log(data.num_nodes + data.graph.edge_index.shape[1])))
    total = sum(seconds.values()) * len(REACTIONS) * TRIALS * SPLITS / 3600
    halved = Rungs().work([EPOCHS] * TRIALS) / (EPOCHS * TRIALS)
    return {
        "seconds_per_training": seconds, "trainings": len(SETS) * len(REACTIONS) * TRIALS * SPLITS, "hours": total,
        "hours_with_halving": total * halved, "target": TARGET_HOURS, "measured": known,
    }  # fmt: skip


def search_speed(
    *, command: str, out: Path, device: str = "cpu", dataset: str = "texas", trials: int | None = None,
    epochs: int | None = None, samples: int = 24, methods: Sequence[str] = METHODS,
) -> None:  # fmt: skip
    """How fast a search trains, compared with what its members reach alone.

    A sample of the trials, even in their costs, each trained alone with as many splits and seeds as fill the GPU.
    Planning, set-up and recording are measured separately and included.
    """
    usual_trials, usual_epochs = MEASURED.get(dataset, (TRIALS, EPOCHS))
    row = search_row(
        dataset, device, trials or usual_trials, epochs or usual_epochs, samples, methods=methods
    ) | head(command, device)  # fmt: skip
    found = read_json(out, {}) | {dataset: row}
    if (hours := paper_hours(found)) is not None:
        found["paper"] = hours
    write_json(out, found)
    brief = {name: row[name] for name in ("rate", "rate_with_compiling", "rate_alone", "share")}
    print(dataset, json.dumps(brief | {"search": row["search"]}))


# ---------------------------------------------------------------------- the paper's table
def measure_sets(sets: Sequence[str], device: str, epochs: int = 0) -> dict[str, Any]:
    """The printed settings on data sets, all splits, and seconds by part; 0 epochs are the printed ones."""
    began = time.perf_counter()
    datas = {name: load_dataset(name) for name in sets}
    loading = time.perf_counter() - began
    trials: list[Trial] = []
    each: list[NodeData] = []
    for name, data in datas.items():
        for reaction in REACTIONS:
            config = shrunk(published_config("paper", reaction, name), epochs, 0)
            trials += make_trials(config, range(min(SPLITS, data.num_splits)))
        each += [data] * (len(trials) - len(each))
    found = measure_search(each, trials, device)
    row = {"dataset": sets[0] if len(sets) == 1 else "all together", "loading": loading, **asdict(found)}
    return row | {"seconds": sum(row[part] for part in PARTS)}


def table_seconds(sets: Sequence[str], device: str, epochs: int = 0) -> dict[str, Any]:
    """All sets shortly, one by one, so that kernels are there, then as they are, at once."""

    def measured(names: Sequence[str], count: int) -> dict[str, Any]:
        row = measure_sets(names, device, count)
        say(json.dumps(row))
        return row

    first = [measured([name], 1) for name in sets]
    whole = measured(sets, epochs)
    before = [sum(row[part] for row in of for part in PARTS[:-1]) for of in (first, [whole])]
    return {
        "trainings": whole["trainings"], "rows": [whole], "seconds": whole["seconds"],
        "compiling": max(0.0, before[0] - before[1]), "target": TABLE_TARGET,
    }  # fmt: skip


def printed_speed(
    *, command: str, out: Path, device: str = "cuda", sets: Sequence[str] = SETS, epochs: int = 0
) -> None:
    """How long the paper's table takes.

    The printed settings of seven reactions on nine data sets and ten splits, 630 trainings side by side, as the study
    `classification` trains them. A first pass with one epoch, set by set, compiles the kernels; the second is the
    whole, with a clock at every part: reading the data, planning the batches, set-up, recording, and the epochs that
    were not hidden behind them.
    """
    found = head(command, device) | table_seconds(sets, device, epochs)
    write_json(out, found)
    print(f"{found['trainings']} trainings in {found['seconds']:.1f} s, {found['compiling']:.1f} s of compiling before")
