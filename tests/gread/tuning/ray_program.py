"""A program of the tests: a search here and on Ray, as json; what a node does that is killed is done on another one."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from threading import Thread
from typing import Any

from gread import Config, karate, search
from gread.tuning.searching import SearchProgress
from rdgraph.errors import UnknownName
from rdgraph.run.engines.engine import Engine, Reporter
from rdgraph.run.engines.ray_engine import RayEngine

STORE = 80 * 2**20
OPTIONS: dict[str, Any] = {
    "base": Config.of("gcn", hidden=8), "fixed": {"epochs": 20, "hidden": 8, "layers": 2}, "splits": [0, 1],
    "device": "cpu", "space": "wide",
}  # fmt: skip
#: What is searched, by name: rounds at once, rounds cut into pieces, rounds that wait for each other, rungs.
KINDS: dict[str, dict[str, Any]] = {
    "rounds": {"trials": 6, "round_size": 2},
    "pieces": {"trials": 5, "round_size": 5, "fixed": {"epochs": 20, "layers": 2}, "space": "small"},
    "tpe": {"trials": 6, "round_size": 3, "sampler": "tpe", "fixed": {"epochs": 20, "layers": 2}, "space": "small"},
    "halving": {"trials": 4, "round_size": 4, "halving": True, "fixed": {"epochs": 40, "hidden": 8, "layers": 2}},
}


def searched(kind: str, engine: str | Engine = "local", **options: Any) -> list[Any]:
    found = search(karate(), engine=engine, **(OPTIONS | KINDS[kind] | options))
    return [[r.record() for r in found.results], [c.record() for c in found.candidates]]


def refuse(item: str, reporter: Reporter) -> None:
    raise UnknownName("letter", item, ["a", "b"])


def same_here_and_on_ray(kinds: list[str]) -> dict[str, Any]:
    """Whether the results of Ray are those of this process, and how an error comes back."""
    engine, heard = RayEngine(num_cpus=2, object_store_memory=STORE), list[SearchProgress]()
    found: dict[str, Any] = {"same": {}, "slots": engine.slots}
    for kind in kinds:
        here = searched(kind)
        found["same"][kind] = json.dumps(here) == json.dumps(searched(kind, engine, progress=heard.append))
        found[f"states {kind}"] = [r["state"] for r in here[0]]
    found |= {"told": heard[-1].trials, "best": heard[-1].best, "home": Path("~/.ray").expanduser().exists()}
    try:
        list(engine.run(refuse, ["c"]))
    except UnknownName as problem:
        found["error"] = str(problem)
    engine.close()
    return found


def noted(item: int, reporter: Reporter) -> int:
    """Leaves a note of every attempt, and takes a while."""
    import ray

    folder = Path(os.environ["NOTES"])
    number = len(list(folder.glob(f"{item}-*")))
    (folder / f"{item}-{number}-{ray.get_runtime_context().get_node_id()}").touch()
    time.sleep(2.0)
    return item * item


def killed() -> dict[str, Any]:
    """Two nodes, of which one is killed with work on it; then one more, killed in the midst of a search."""
    from ray.cluster_utils import Cluster

    os.environ["NOTES"] = notes = tempfile.mkdtemp()
    args = {"num_cpus": 1, "object_store_memory": STORE, "include_dashboard": False, "node_ip_address": "127.0.0.2"}
    cluster = Cluster(initialize_head=True, head_node_args=args)
    del args["include_dashboard"]
    second = cluster.add_node(**args)
    cluster.wait_for_nodes()
    engine = RayEngine(cluster.address)
    found: dict[str, Any] = {"slots": engine.slots, "nodes": engine.nodes}

    def kill_at_work() -> None:
        while not list(Path(notes).glob(f"*-{second.node_id}")):
            time.sleep(0.1)
        cluster.remove_node(second, allow_graceful=False)

    killer = Thread(target=kill_at_work)
    killer.start()
    squares = sorted(engine.run(noted, range(4)))
    killer.join()
    found |= {"squares": squares, "attempts": sorted(p.name.rpartition("-")[0] for p in Path(notes).iterdir())}
    third, is_killed = cluster.add_node(**args), False
    cluster.wait_for_nodes()

    def hear(now: SearchProgress) -> None:
        nonlocal is_killed
        if not is_killed and now.trials >= 2:
            cluster.remove_node(third, allow_graceful=False)
            is_killed = True

    options: dict[str, Any] = {"trials": 8, "fixed": {"epochs": 200, "hidden": 8, "layers": 2}}
    here = searched("rounds", **options)
    there = searched("rounds", engine, progress=hear, folder=tempfile.mkdtemp(), **options)
    until = time.monotonic() + 60
    while engine.nodes > 1 and time.monotonic() < until:  # the head hears of a node's death by its missing heartbeat
        time.sleep(0.5)
    found |= {"same": json.dumps(here) == json.dumps(there), "killed in search": is_killed, "left": engine.nodes}
    engine.close()
    cluster.shutdown()
    return found


if __name__ == "__main__":
    result = killed() if sys.argv[1] == "killed" else same_here_and_on_ray(sys.argv[2:])
    sys.stdout.write("\n" + json.dumps(result) + "\n")
