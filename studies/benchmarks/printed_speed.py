"""How long the paper's table takes: `python -m studies.benchmarks.printed_speed --device cuda --out FILE`.

The printed settings of seven reactions on nine data sets and ten splits, 630 trainings, set by set, those of a set
beside each other as the study `classification` trains them. A first pass with one epoch compiles the kernels, which
happens once on a machine; the second is the whole, with a clock at every part: reading the data, planning the batches,
set-up, recording, and the epochs that were not hidden behind them.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gread import load_dataset
from gread.settings.trials import make_trials
from rdgraph.files import write_text
from studies.benchmarks.search_speed import SPLITS, measure_search
from studies.benchmarks.speed_rows import command, environment
from studies.cells.cell import shrunk
from studies.cells.nine_sets import REACTIONS, SETS, published_config

#: Seconds that all of it may take once kernels are compiled.
TARGET = 60.0
#: The parts of the time of a row.
PARTS = ("loading", "planning", "setup", "recording", "running")


def measure_set(name: str, device: str, epochs: int = 0, reactions: Sequence[str] = REACTIONS) -> dict[str, Any]:
    """The printed settings on a data set, all splits, and seconds by part; 0 epochs are the printed ones."""
    began = time.perf_counter()
    data = load_dataset(name)
    loading = time.perf_counter() - began
    splits = range(min(SPLITS, data.num_splits))
    configs = [shrunk(published_config("paper", reaction, name), epochs, 0) for reaction in reactions]
    found = measure_search(data, [trial for config in configs for trial in make_trials(config, splits)], device)
    row = {"dataset": name, "loading": loading, **asdict(found)}
    return row | {"seconds": sum(row[part] for part in PARTS)}


def measure(sets: Sequence[str], device: str, epochs: int = 0) -> dict[str, Any]:
    """All sets twice: shortly, so that kernels are there, then as they are."""
    first = []
    for name in sets:
        first.append(measure_set(name, device, 1))
        print(name, f"{first[-1]['seconds']:.1f} s with one epoch", file=sys.stderr, flush=True)
    rows = []
    for name in sets:
        rows.append(measure_set(name, device, epochs))
        print(name, json.dumps(rows[-1]), file=sys.stderr, flush=True)
    before = [sum(row[part] for row in of for part in PARTS[:-1]) for of in (first, rows)]
    return {
        "environment": environment(device), "trainings": sum(row["trainings"] for row in rows), "rows": rows,
        "seconds": sum(row["seconds"] for row in rows), "compiling": max(0.0, before[0] - before[1]), "target": TARGET,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="Seconds of the paper's table")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--set", action="append", dest="sets", metavar="NAME")
    parser.add_argument("--epochs", type=int, default=0, help="of every training; those of the paper by default")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    found = measure(given.sets or SETS, given.device, given.epochs)
    found["command"] = command("studies.benchmarks.printed_speed", sys.argv[1:])
    write_text(given.out, json.dumps(found, indent=1) + "\n")
    print(f"{found['trainings']} trainings in {found['seconds']:.1f} s, {found['compiling']:.1f} s of compiling before")


if __name__ == "__main__":
    main()
