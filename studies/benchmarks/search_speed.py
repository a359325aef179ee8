"""How fast a search trains: `python -m studies.benchmarks.search_speed --device cuda --dataset texas --out FILE`.

Trials are drawn from the paper's space and trained on all splits as a search trains them: of many shapes, methods,
steps and times, in as few batches as that takes. Beside it stands what its members would reach if every one of them had
a card full of its like: a sample of the trials, even in their costs, each trained alone with as many splits and seeds
as fill the card. Planning, set-up and recording are told separately and included. Kernels are compiled once on a
machine: that, and the start of the process, are what a first pass over the same batches with one epoch takes longer,
and told beside.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gread import load_dataset
from gread.datasets.node_data import NodeData
from gread.models.resolution import resolve_trials
from gread.settings.config import Config
from gread.settings.trials import Trial, grouped, make_trials
from gread.training.batch_plan import make_plan, most_members
from gread.training.batch_queue import run_batches
from gread.training.checkpoint import Saver
from gread.training.ensemble import Ensemble
from gread.training.planner import Costs
from gread.tuning.halving import Rungs, halving_options
from gread.tuning.space import Choice, Searched, Space, Value, find_space
from studies.benchmarks.speed_rows import command, environment
from studies.benchmarks.training_speed import SETS
from studies.runs.boundary import run_program
from studies.search.tasks import SearchRequest, base_config

#: Epochs of a training of the paper, its trials for each reaction and data set, splits, and reactions.
EPOCHS, TRIALS, SPLITS, REACTIONS = 200, 500, 10, 7
#: Trainings per second to reach, and the share of what members reach alone.
TARGETS, TARGET_SHARE, TARGET_HOURS = {"texas": 250.0, "cora": 8.0, "pubmed": 1.5}, 0.6, 6.0
#: Trials and epochs that are measured unless others are asked for; rates are those of whole trainings.
MEASURED = {
    "texas": (TRIALS, EPOCHS), "wisconsin": (TRIALS, 50), "cornell_old": (TRIALS, 50), "cora": (200, 20),
    "citeseer": (200, 20), "chameleon": (100, 20), "film": (60, 20), "squirrel": (40, 20), "pubmed": (40, 20),
}  # fmt: skip
#: Methods of the trials; the paper's space has dopri5 too.
METHODS = ("euler", "rk4")
#: Bytes of an epoch, as the planner reckons them, that fill a card.
FULL = 2e10
#: Seconds of epochs that a rate is taken from.
SAMPLED = 0.5


def draw_configs(space: Space, base: Config, count: int, seed: int = 0) -> list[Config]:
    """Trials of a space, every setting drawn for itself: of lists one value, of ranges a number."""
    random = np.random.default_rng(seed)

    def suggest(searched: Searched) -> Value:
        distribution = searched.distribution
        if isinstance(distribution, Choice):
            return distribution.values[int(random.integers(len(distribution.values)))]
        low, high = distribution.low, distribution.high
        if distribution.is_whole and not distribution.log:
            return int(random.integers(int(low), int(high) + 1))
        drawn = math.exp(random.uniform(math.log(low), math.log(high))) if distribution.log else None
        number = float(random.uniform(low, high)) if drawn is None else drawn
        return round(number) if distribution.is_whole else number

    own = space.of(base)
    return [own.config(base, own.draw(base, suggest)) for _ in range(count)]


@dataclass(frozen=True)
class Measured:
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


def measure_search(data: NodeData | Sequence[NodeData], trials: Sequence[Trial], device: str) -> Measured:
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
    return Measured(
        len(chosen), len(grouped(chosen)), len(plan.batches), planned - started, spent["setup"], spent["recording"],
        running, epochs,
    )  # fmt: skip


def rate_alone(data: NodeData, config: Config, device: str, full: float = FULL) -> dict[str, Any]:
    """Trainings per second of one configuration whose splits and seeds fill the card; without set-up and recording."""
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


def measure(
    name: str,
    device: str,
    trials: int,
    epochs: int,
    samples: int,
    full: float = FULL,
    methods: Sequence[str] = METHODS,
) -> dict[str, Any]:
    """The search on a data set, and a sample of its members alone."""
    data = load_dataset(name)
    base, _ = base_config(SearchRequest(dataset=name, reaction="BS", space="paper"))
    configs = draw_configs(find_space("paper").restricted("method", methods), base, trials)
    splits = range(min(SPLITS, data.num_splits))
    first, found = (
        measure_search(data, [t for c in short for t in make_trials(c, splits)], device)
        for short in ([config.updated({"epochs": count}) for config in configs] for count in (1, epochs))
    )
    parts = [one.planning + one.setup + one.recording for one in (first, found)]
    compiling = max(0.0, parts[0] - parts[1])
    for one in (first, found):
        print(name, json.dumps(asdict(one) | {"rate": one.rate}), file=sys.stderr, flush=True)
    alone: list[dict[str, Any]] = []
    for config in evenly(configs, Costs.of(data, device), samples):
        alone.append(rate_alone(data, config, device, full))
        print(name, json.dumps(alone[-1]), file=sys.stderr, flush=True)
        if device.startswith("cuda"):
            torch.cuda.empty_cache()
    ideal = len(alone) / sum(1 / one["rate"] for one in alone) if alone else None
    halved = Rungs().work([EPOCHS] * trials) / (EPOCHS * trials)
    return {
        "environment": environment(device), "trials": trials, "methods": list(methods), "search": asdict(found),
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
    seconds = {}
    for name in SETS:
        if name in known:
            seconds[name] = 1 / found[name]["rate"]
            continue
        data = load_dataset(name)
        seconds[name] = math.exp(on_lines(points, math.log(data.num_nodes + data.graph.edge_index.shape[1])))
    total = sum(seconds.values()) * REACTIONS * TRIALS * SPLITS / 3600
    halved = Rungs().work([EPOCHS] * TRIALS) / (EPOCHS * TRIALS)
    return {
        "seconds_per_training": seconds, "trainings": len(SETS) * REACTIONS * TRIALS * SPLITS, "hours": total,
        "hours_with_halving": total * halved, "target": TARGET_HOURS, "measured": known,
    }  # fmt: skip


def on_lines(points: Sequence[tuple[float, float]], x: float) -> float:
    """The value at x of the lines through points with rising first numbers; the outer ones go on.

    >>> on_lines([(0.0, 0.0), (1.0, 2.0), (2.0, 2.0)], 0.5), on_lines([(0.0, 0.0), (1.0, 2.0)], 3.0)
    (1.0, 6.0)
    """
    place = min(max(1, sum(x > left for left, _ in points)), len(points) - 1)
    (x0, y0), (x1, y1) = points[place - 1], points[place]
    return y0 + (y1 - y0) * (x - x0) / (x1 - x0)


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of a search")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dataset", default="texas")
    parser.add_argument("--trials", type=int)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--samples", type=int, default=24, help="trials that are trained alone; 0 for none")
    parser.add_argument("--methods", nargs="+", default=METHODS, help="of the trials, such as euler rk4 dopri5")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    trials, epochs = MEASURED.get(given.dataset, (TRIALS, EPOCHS))
    row = measure(
        given.dataset, given.device, given.trials or trials, given.epochs or epochs, given.samples,
        methods=given.methods,
    )  # fmt: skip
    row["command"] = command("studies.benchmarks.search_speed", sys.argv[1:])
    found = json.loads(given.out.read_text(encoding="utf-8")) if given.out.exists() else {}
    found[given.dataset] = row
    if (hours := paper_hours(found)) is not None:
        found["paper"] = hours
    given.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    brief = {name: row[name] for name in ("rate", "rate_with_compiling", "rate_alone", "share")}
    print(given.dataset, json.dumps(brief | {"search": row["search"]}))


if __name__ == "__main__":
    run_program(main)
