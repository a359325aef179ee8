"""Searches on Ray: the numbers of the local engine to the bit, on one node, and on two of which one is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gread.tuning.searching import JOURNAL, UNRECORDED
from tests.paths import ROOT

pytest.importorskip("ray")
PROGRAM = ROOT / "tests" / "gread" / "tuning" / "ray_program.py"

#: A node that has died is noticed within two seconds, not ten.
QUICK_CHECKS = {
    "RAY_health_check_initial_delay_ms": "1000", "RAY_health_check_period_ms": "500",
    "RAY_health_check_timeout_ms": "2000", "RAY_health_check_failure_threshold": "3",
}  # fmt: skip


def environment() -> dict[str, str]:
    quiet = {"RAY_USAGE_STATS_ENABLED": "0", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    return {name: value for name, value in os.environ.items() if not name.startswith("RAY_")} | quiet


def result_of(*words: str, **variables: str) -> dict[str, Any]:
    """What the program found; sockets are its own, so that no test of this process has any."""
    done = subprocess.run(
        [sys.executable, PROGRAM, *words], cwd=ROOT, env=environment() | variables, capture_output=True, text=True,
        timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    return dict(json.loads(done.stdout.splitlines()[-1]))


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Searches of every kind, here and on one node of Ray."""
    return result_of("same", "pieces", "halving", "rounds", "tpe", HOME=str(tmp_path_factory.mktemp("home")))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "states"),
    [("rounds", {"complete"}), ("tpe", {"complete"}), ("pieces", {"complete"}), ("halving", {"pruned", "complete"})],
)
def test_ray_gives_the_results_of_the_local_engine(beside: dict[str, Any], kind: str, states: set[str]) -> None:
    assert beside["same"][kind]
    assert set(beside[f"states {kind}"]) == states


@pytest.mark.slow
def test_ray_tells_of_progress_and_errors_and_leaves_nothing_behind(beside: dict[str, Any]) -> None:
    assert beside["slots"] == 2
    assert beside["told"] == 6
    assert 0 < beside["best"] <= 1
    assert beside["error"] == "expected a letter, got 'c' (known: a, b)"
    assert not beside["home"], "something was left in the user's folder"


@pytest.mark.deep
@pytest.mark.slow
def test_work_of_a_killed_node_is_done_on_another() -> None:
    found = result_of("killed", RAY_AUTH_MODE="disabled", **QUICK_CHECKS)
    assert (found["slots"], found["nodes"]) == (2, 2)
    assert found["squares"] == [[k, k * k] for k in range(4)]
    assert len(found["attempts"]) == 5  # one of four pieces was begun twice
    assert found["killed in search"]
    assert found["same"]
    assert found["left"] == 1


KILLED = """
import sys, time
from gread import Config, karate, search
from rdgraph.run.engines.ray_engine import RayEngine

options = dict(trials=16, round_size=2, base=Config.of("mlp", hidden=8), fixed={"epochs": 60, "hidden": 8},
               splits=[0, 1], device="cpu", space="small")
engine = RayEngine(num_cpus=1, object_store_memory=80 * 2**20) if sys.argv[2] == "ray" else "local"
found = search(karate(), folder=sys.argv[1], engine=engine, progress=lambda p: print(p.trials, flush=True), **options)
print([r.record() for r in found.results])
"""


def searched_here(folder: Path) -> list[str]:
    """What the program prints with the local engine."""
    done = subprocess.run(
        [sys.executable, "-c", KILLED, folder, "local"], cwd=ROOT, env=environment(), capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> str:
    return searched_here(tmp_path_factory.mktemp("whole"))[-1]


@pytest.mark.deep
@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_driver_that_is_stopped_goes_on_with_what_was_told(tmp_path: Path, whole: str, how: signal.Signals) -> None:
    """Also with the other engine: a folder does not know which one filled it."""
    driver = subprocess.Popen(
        [sys.executable, "-c", KILLED, tmp_path, "ray"], cwd=ROOT, env=environment(), stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert driver.stdout is not None
    for line in driver.stdout:
        if float(line) >= 4:
            driver.send_signal(how)
            break
    assert driver.wait(timeout=120) != 0
    driver.stdout.close()
    before = (tmp_path / JOURNAL).read_text()
    assert before.count('"result"') >= 4
    lines = searched_here(tmp_path)
    assert float(lines[0]) >= 4
    assert lines[-1] == whole
    assert not (tmp_path / UNRECORDED).exists()
