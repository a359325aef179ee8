"""How fast ensembles are trained: `python -m studies.benchmarks.training_speed --device cuda`.

Ten splits of every data set with the authors' settings of BS, a large sweep on Texas, and where the time goes. On a CPU
one epoch on Cora beside the same computation with gather-scatter products and torchdiffeq.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gread import load_dataset
from gread.models.gread_model import GREAD
from gread.settings.presets import authors_runs, find_preset
from gread.settings.trials import Trial, make_trials
from gread.training.ensemble import Ensemble
from rdgraph.errors import InvalidArgument
from rdgraph.graphs.twin_quotient import Quotient
from studies.benchmarks.gather_scatter_network import peer_epoch
from studies.benchmarks.speed_rows import SpeedRow, command, environment
from studies.benchmarks.timing import copy_bandwidth
from studies.runs.boundary import run_program

SETS = ("texas", "wisconsin", "cornell_old", "film", "squirrel", "chameleon", "cora", "citeseer", "pubmed")
EPOCHS = 200
#: Milliseconds per epoch for ten splits to reach, and seconds for all sets.
TARGETS = {"texas": 0.5, "cora": 12.0, "squirrel": 25.0, "pubmed": 20.0}
TARGET_EXACT, TARGET_TOTAL, TARGET_RATE, TARGET_CPU = 6.0, 20.0, 270.0, 4.0
#: Members of the sweep: configurations times splits.
CONFIGURATIONS, SPLITS = 300, 10
#: Kernels by what they do; the first that fits.
KINDS = (
    ("sparse products", ("_spmm_kernel",)),
    ("gradient of edge weights", ("_sample_kernel", "_sddmm_kernel")),
    ("gradient of coefficients", ("_moments_kernel", "_gain_kernel", "_pull_kernel", "_inner_kernel")),
    ("dense products", ("gemm", "cutlass")),
    ("Adam", ("_adam_kernel",)),
    ("dropout, softmax", ("_dropout_kernel", "_softmax_kernel")),
)


# ---------------------------------------------------------------------- on a GPU
def epoch_seconds(ensemble: Ensemble, epochs: int) -> float:
    """Seconds per epoch on the device; the first epoch, which compiles and captures, is not counted."""
    ensemble.advance(1)
    torch.cuda.synchronize()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    ensemble.advance(epochs)
    end.record()
    torch.cuda.synchronize()
    return float(start.elapsed_time(end)) / 1e3 / epochs


def set_rows(device: str, epochs: int) -> Iterator[tuple[SpeedRow, dict[str, Any]]]:
    """One row per data set, with what the epoch consists of."""
    bandwidth = copy_bandwidth(device)
    total = 0.0
    for name in SETS:
        data, config = load_dataset(name), find_preset("authors", "BS", name).config
        ensemble = Ensemble(data, make_trials(config, range(SPLITS)), device=device)
        seconds = epoch_seconds(ensemble, epochs - 1)
        total += seconds * EPOCHS
        peer = authors_runs()[name].ms_per_epoch * SPLITS
        target = f">= {peer / TARGETS[name]:.1f}" if name in TARGETS else ""
        what = f"{name}, {config.gread.method}, {ensemble.model.degree} products"
        about = parts(ensemble) | {"floor": floor(ensemble, bandwidth), "epoch": seconds}
        yield (
            SpeedRow.against(
                "training", what, seconds, f"the authors' code {peer:.0f} ms", peer / (seconds * 1e3), target
            ),
            about,
        )
        del ensemble
        torch.cuda.empty_cache()
    peer = sum(authors_runs()[name].ms_per_epoch for name in SETS) * SPLITS * EPOCHS / 1e3
    what = f"all nine sets, {SPLITS} splits, {EPOCHS} epochs"
    yield (
        SpeedRow.against(
            "training", what, total, f"the authors' code {peer:.0f} s", peer / total, f">= {peer / TARGET_TOTAL:.1f}"
        ),
        {},
    )


def exact_row(device: str, epochs: int) -> SpeedRow:
    """Cora with the exact flow instead of RK4."""
    config = find_preset("authors", "BS", "cora").config.updated({"method": "exact"})
    ensemble = Ensemble(load_dataset("cora"), make_trials(config, range(SPLITS)), device=device)
    seconds = epoch_seconds(ensemble, epochs - 1)
    what = f"cora, exact, {ensemble.model.degree} products"
    return SpeedRow.against(
        "training", what, seconds, f"a budget of {TARGET_EXACT:g} ms", seconds * 1e3 / TARGET_EXACT, "<= 1"
    )


def sweep_trials(count: int) -> list[Trial]:
    """Configurations that differ in learning rate, decay, both dropouts and time, each on ten splits of Texas."""
    base = find_preset("authors", "BS", "texas").config
    random = np.random.default_rng(0)
    trials: list[Trial] = []
    for _ in range(count):
        config = base.updated(
            {
                "learning_rate": float(10 ** random.uniform(-3, -1.5)),
                "weight_decay": float(10 ** random.uniform(-4, -1.5)),
                "input_dropout": float(random.uniform(0.3, 0.7)),
                "dropout": float(random.uniform(0.1, 0.6)),
                "time": float(random.uniform(1.05, 1.95)),
            }
        )
        trials += make_trials(config, range(SPLITS))
    return trials


def sweep_row(device: str) -> tuple[SpeedRow, dict[str, Any]]:
    """Whole trainings per second of many configurations at once, everything counted from the first capture on."""
    trials = sweep_trials(CONFIGURATIONS)
    ensemble = Ensemble(load_dataset("texas"), trials, device=device, keep_best=False)
    ensemble._one()
    torch.cuda.synchronize()
    started = time.perf_counter()
    ensemble.advance(EPOCHS - 1)
    ensemble.outcome()
    seconds = (time.perf_counter() - started) * EPOCHS / (EPOCHS - 1)
    rate = len(trials) / seconds
    peak = torch.cuda.max_memory_allocated() / 2**30
    what = f"texas, {len(trials)} members of {CONFIGURATIONS} configurations, {EPOCHS} epochs, {peak:.0f} GiB"
    about = parts(ensemble) | {"floor": floor(ensemble, copy_bandwidth(device)), "epoch": seconds / EPOCHS}
    return SpeedRow.against(
        "sweep", what, seconds, f"{rate:.0f} trainings per second", rate, f">= {TARGET_RATE:g}"
    ), about


def parts(ensemble: Ensemble) -> dict[str, Any]:
    """Seconds of one epoch by the kind of kernel, and the number of launches, by torch's profiler."""
    from torch.profiler import ProfilerActivity, profile

    before = ensemble.snapshot()
    ensemble.state["step"].zero_()
    ensemble._epoch()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        ensemble._epoch()
        torch.cuda.synchronize()
    found: dict[str, float] = {}
    launches = 0
    for event in seen.key_averages():
        kind = next((k for k, words in KINDS if any(w in event.key for w in words)), "everything else")
        found[kind] = found.get(kind, 0.0) + event.device_time_total / 1e6
        launches += event.count
    ensemble.restore(before)
    return {"parts": found, "launches": launches}


def floor(ensemble: Ensemble, bandwidth: float) -> float:
    """Seconds an epoch takes at least if every gathered row came from memory, and every parameter moved as Adam asks.

    Three polynomials of products (training, gradient, evaluation), and the sampled products of the edge weights.
    """
    model, problem = ensemble.model, ensemble.problem
    if not isinstance(model, GREAD):
        raise InvalidArgument("expected networks around an equation, got others")
    operator = model.shortcut.operator if isinstance(model.shortcut, Quotient) else model.operator
    row = 4 * model.config.hidden * ensemble.members
    soft = model.config.adjacency != "original"
    gathered = ensemble.model.degree * operator.num_edges * row * (3 + 2 * soft)
    entries = problem.features.values[0].numel() * row * 3
    weights = sum(p.numel() for p in ensemble.parameters.values()) * 4 * 7
    return (gathered + entries + weights) / bandwidth


def cpu_row(repeats: int = 7) -> SpeedRow:
    """One epoch on Cora, one split, the authors' settings; both programs take turns in one run."""
    data, config = load_dataset("cora"), find_preset("authors", "BS", "cora").config
    ensemble = Ensemble(data, make_trials(config, [0]), device="cpu")
    peer = peer_epoch(data, config)
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(repeats + 1):
        for own, call in zip(times, (ensemble._epoch, peer), strict=True):
            started = time.perf_counter()
            call()
            if turn:
                own.append(time.perf_counter() - started)
    ours, theirs = (float(np.median(own)) for own in times)
    return SpeedRow.against(
        "cpu training", f"cora, one split, rk4, {ensemble.model.degree} products, one epoch", ours,
        f"gather-scatter and torchdiffeq {theirs * 1e3:.0f} ms", theirs / ours, f">= {TARGET_CPU:g}",
    )  # fmt: skip


def measure(device: str, epochs: int) -> dict[str, Any]:
    """All rows of a device, and what their epochs consist of."""
    if device == "cpu":
        return {"rows": [asdict(cpu_row())], "epochs": {}}
    rows, about = [], {}
    for row, detail in set_rows(device, epochs):
        print(row.what, f"{row.seconds * 1e3:.3f} ms", file=sys.stderr, flush=True)
        rows.append(asdict(row))
        if detail:
            about[row.what] = detail
    rows.append(asdict(exact_row(device, epochs)))
    sweep, detail = sweep_row(device)
    rows.append(asdict(sweep))
    about[sweep.what] = detail
    return {"rows": rows, "epochs": about, "copy_bandwidth": copy_bandwidth(device)}


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of training")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    head = {"command": command("studies.benchmarks.training_speed", sys.argv[1:]),
            "environment": environment(given.device)}  # fmt: skip
    found = json.loads(given.out.read_text(encoding="utf-8")) if given.out.exists() else {}
    found["cpu" if given.device == "cpu" else "gpu"] = head | measure(given.device, given.epochs)
    given.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    run_program(main)
