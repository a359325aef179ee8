"""How long the paper's table takes: `python -m studies.benchmarks.printed_speed --device cuda --out FILE`.

The printed settings of seven reactions on nine data sets and ten splits, 630 trainings beside each other, as the study
`classification` trains them. A first pass with one epoch, set by set, compiles the kernels, which happens once on a
machine; the second is the whole, with a clock at every part: reading the data, planning the batches, set-up, recording,
and the epochs that were not hidden behind them. `--by-set` then trains the sets one after the other too.
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
from gread.datasets.node_data import NodeData
from gread.settings.trials import Trial, make_trials
from rdgraph.files import write_text
from studies.benchmarks.search_speed import SPLITS, measure_search
from studies.benchmarks.speed_rows import command, environment
from studies.cells.cell import shrunk
from studies.cells.nine_sets import REACTIONS, SETS, published_config
from studies.runs.boundary import run_program

#: Seconds that all of it may take once kernels are compiled.
TARGET = 60.0
#: The parts of the time of a row.
PARTS = ("loading", "planning", "setup", "recording", "running")
SUMMED = (*PARTS, "seconds", "trainings")


def measure_sets(
    sets: Sequence[str], device: str, epochs: int = 0, reactions: Sequence[str] = REACTIONS
) -> dict[str, Any]:
    """The printed settings on data sets, all splits, and seconds by part; 0 epochs are the printed ones."""
    began = time.perf_counter()
    datas = {name: load_dataset(name) for name in sets}
    loading = time.perf_counter() - began
    trials: list[Trial] = []
    each: list[NodeData] = []
    for name, data in datas.items():
        for reaction in reactions:
            config = shrunk(published_config("paper", reaction, name), epochs, 0)
            trials += make_trials(config, range(min(SPLITS, data.num_splits)))
        each += [data] * (len(trials) - len(each))
    found = measure_search(each, trials, device)
    row = {"dataset": sets[0] if len(sets) == 1 else "all together", "loading": loading, **asdict(found)}
    return row | {"seconds": sum(row[part] for part in PARTS)}


def measure(sets: Sequence[str], device: str, epochs: int = 0, *, by_set: bool = False) -> dict[str, Any]:
    """All sets shortly, so that kernels are there, then as they are: at once, and where asked for one by one."""

    def told(names: Sequence[str], count: int) -> dict[str, Any]:
        row = measure_sets(names, device, count)
        print(json.dumps(row), file=sys.stderr, flush=True)
        return row

    first = [told([name], 1) for name in sets]
    whole = told(sets, epochs)
    rows = [told([name], epochs) for name in sets] if by_set else []
    rows += [{"dataset": "one after the other"} | {p: sum(r[p] for r in rows) for p in SUMMED}] if rows else []
    before = [sum(row[part] for row in of for part in PARTS[:-1]) for of in (first, [whole])]
    return {
        "environment": environment(device), "trainings": whole["trainings"], "rows": [*rows, whole],
        "seconds": whole["seconds"], "compiling": max(0.0, before[0] - before[1]), "target": TARGET,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="Seconds of the paper's table")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--set", action="append", dest="sets", metavar="NAME")
    parser.add_argument("--epochs", type=int, default=0, help="of every training; those of the paper by default")
    parser.add_argument("--by-set", action="store_true", help="train the sets one after the other too")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    found = measure(given.sets or SETS, given.device, given.epochs, by_set=given.by_set)
    found["command"] = command("studies.benchmarks.printed_speed", sys.argv[1:])
    write_text(given.out, json.dumps(found, indent=1) + "\n")
    print(f"{found['trainings']} trainings in {found['seconds']:.1f} s, {found['compiling']:.1f} s of compiling before")


if __name__ == "__main__":
    run_program(main)
