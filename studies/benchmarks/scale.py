"""How a search scales: the same search in one process and on Ray, and the times of its driver and of a card.

The search runs in this process and on Ray with one and two workers, whose results must be equal to the bit; a round
costs this process some time, and a card the time that was measured for its set.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from gread.datasets.embedded import digits, karate
from gread.settings.config import Config
from gread.tuning.candidates import COMPLETE, PlannedRound, TrialResult
from gread.tuning.rounds import RoundWork
from gread.tuning.searching import Found, search
from rdgraph.errors import InvalidArgument
from rdgraph.run.engines.engine import Engine, LocalEngine, Reporter
from studies.benchmarks.result_files import head, write_json
from studies.results import read_result

#: Trials and splits of one round of the paper's search.
TRIALS, SPLITS = 50, 10
EPOCHS = 200
WORKERS = (1, 2)
#: What is taken from studies/results/training_speed.json: a set, and the beginning of what its row says.
SPEEDS = {"texas": "texas, 3000 members", "cora": "cora, rk4", "pubmed": "pubmed, rk4"}
STORE = 100 * 2**20


def throughput_search(engine: Engine, trials: int, folder: Path) -> Found:
    """Rounds of two trials on two splits of the digits."""
    fixed = {"epochs": 40, "hidden": 16}
    return search(
        digits(), trials=trials, space="small", base=Config.of("gcn"), fixed=fixed, splits=[0, 1], round_size=2,
        device="cpu", engine=engine, folder=folder,
    )  # fmt: skip


def timed_search(engine: Engine, trials: int) -> tuple[float, Found]:
    """Seconds of the search, after a short one that starts the workers."""
    with TemporaryDirectory() as folder:
        throughput_search(engine, 2 * max(WORKERS), Path(folder) / "warm")
        began = time.perf_counter()
        found = throughput_search(engine, trials, Path(folder) / "timed")
        return time.perf_counter() - began, found


def throughput_rows(trials: int) -> list[dict[str, Any]]:
    """Here, and on Ray with one worker and with two; other results than here are an error."""
    from rdgraph.run.engines.ray_engine import RayEngine

    seconds, expected = timed_search(LocalEngine(), trials)
    rows: list[dict[str, Any]] = [{"engine": "local", "workers": 1, "seconds": seconds}]
    for workers in WORKERS:
        engine = RayEngine(num_cpus=workers, object_store_memory=STORE)
        try:
            seconds, found = timed_search(engine, trials)
        finally:
            engine.close()
        if found.results != expected.results:
            raise InvalidArgument(f"expected the same results with {workers} workers on Ray, got others")
        rows.append({"engine": "ray", "workers": workers, "seconds": seconds})
    one = next(row["seconds"] for row in rows if row["engine"] == "ray" and row["workers"] == 1)
    return [row | {"trainings_per_second": 2 * trials / row["seconds"], "ratio": one / row["seconds"]} for row in rows]


def answered(planned: PlannedRound, reporter: Reporter) -> list[TrialResult]:
    """Made-up results, without training."""
    each = (0.5,) * len(planned.splits)
    return [TrialResult(candidate.number, COMPLETE, 1, each, each) for candidate in planned.candidates]


@dataclass(frozen=True, eq=False)
class Untrained:
    """An engine whose workers answer at once, so that what is left is the work of the driver."""

    inner: Engine
    name = "untrained"

    @property
    def slots(self) -> int:
        return self.inner.slots

    def device(self, asked: str) -> str:
        return self.inner.device(asked)

    def run(self, work: Any, items: Iterable[Any], **options: Any) -> Iterator[tuple[Any, Any]]:
        return self.inner.run(answered if isinstance(work, RoundWork) else work, items, **options)

    def close(self) -> None:
        self.inner.close()


def driver_seconds(rounds: int) -> float:
    """Processor time of this process for a round of 50 trials on 10 splits, whose results come from Ray."""
    from rdgraph.run.engines.ray_engine import RayEngine

    engine = Untrained(RayEngine(num_cpus=1, object_store_memory=STORE))

    def spent(count: int, folder: Path) -> float:
        began = time.process_time()
        search(
            karate(), trials=TRIALS * count, space="small", base=Config.of("mlp"), fixed={"epochs": 1, "hidden": 4},
            splits=range(SPLITS), round_size=TRIALS, device="cpu", engine=engine, folder=folder,
        )  # fmt: skip
        return time.process_time() - began

    try:
        with TemporaryDirectory() as folder:
            spent(1, Path(folder) / "warm")
            few, many = (spent(count, Path(folder) / str(count)) for count in (1, 1 + rounds))
    finally:
        engine.close()
    return (many - few) / rounds


def card_seconds(found: Mapping[str, Any]) -> dict[str, float]:
    """Seconds of one H200 for a round of each set, from the rows of studies/results/training_speed.json."""
    seconds = {}
    for name, begin in SPEEDS.items():
        row = next(row for row in found["gpu"]["rows"] if row["what"].startswith(begin))
        is_sweep = row["topic"] == "sweep"
        rate = row["ratio"] if is_sweep else SPLITS / (row["seconds"] * EPOCHS)
        seconds[name] = TRIALS * SPLITS / rate
    return seconds


def scale(*, command: str, out: Path, trials: int = 24, rounds: int = 10) -> None:
    """How a search scales with workers, and how many cards its driver can keep busy."""
    load = os.getloadavg()[0]
    rows, driver = throughput_rows(trials), driver_seconds(rounds)
    cards = card_seconds(read_result("training_speed"))
    import ray

    found = head(command, "cpu")
    found["environment"] |= {
        "ray": ray.__version__, "processors": os.cpu_count(), "threads": torch.get_num_threads(),
        "load_before": round(load, 2),
    }  # fmt: skip
    write_json(out, found | {
        "trials": trials, "throughput": rows, "driver_seconds_per_round": driver, "card_seconds_per_round": cards,
    })  # fmt: skip
    print(f"wrote {out}; the page by python -m studies.benchmarks pages scale")
