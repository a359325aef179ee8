"""`python -m tests.mutants --count 400 --jobs 2`: a random sample of changed programs, and how many the tests notice.

mutmut changes one operator, number, word or argument of a function at a time. A mutant is drawn in two steps: a module
of rdgraph, analysis or gread with a chance in proportion to its length, then one of its mutants. Each runs in a process
of its own with the unit tests of its folder: no slow tests, no property tests, no adversary. Named mutants can be tried
again: `python -m tests.mutants rdgraph/theory/lipschitz.py:NAME ...`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import Any

from tests.mutants.sample import draw, mutated, table, tests_of
from tests.mutants.trial import NOTICED, PACKAGES
from tests.paths import ROOT

TREES = ROOT / "mutants"


class Workshop:
    """Copies of the packages, one for each job; in each at most one module is mutated at a time."""

    def __init__(self, jobs: int) -> None:
        shutil.rmtree(TREES, ignore_errors=True)
        self._free: Queue[Path] = Queue()
        for job in range(jobs):
            tree = TREES / str(job)
            for package in PACKAGES:
                shutil.copytree(ROOT / package, tree / package, ignore=shutil.ignore_patterns("__pycache__"))
            self._free.put(tree)

    def outcome(self, module: str, chosen: Iterable[float | str]) -> dict[str, str]:
        """What became of mutants of a module, each given by its name or by a number in [0, 1) that chooses it."""
        code, names = mutated(module)
        if not names:
            return {}
        wanted = dict.fromkeys(pick if isinstance(pick, str) else names[int(pick * len(names))] for pick in chosen)
        tree = self._free.get()
        try:
            (tree / module).write_text(code, encoding="utf-8")
            command = [sys.executable, "-m", "tests.mutants.trial", str(tree), ",".join(tests_of(module)), *wanted]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
            (tree / module).write_text((ROOT / module).read_text(encoding="utf-8"), encoding="utf-8")
        finally:
            self._free.put(tree)
        if done.returncode:
            return dict.fromkeys(wanted, f"not tried: {(done.stderr or done.stdout).strip().splitlines()[-1]}")
        return dict(line.split(" ", 1) for line in done.stdout.splitlines())


def main(arguments: list[str] | None = None) -> None:
    """Draw the sample, try it, print the table and the survivors; `--least` is the share that must be noticed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="mutants to try, MODULE:NAME; a sample where none is named")
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--seed", type=int, default=20261118)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--least", type=float, default=0.85)
    parser.add_argument("--resume", action="store_true", help="keep what the file of results already holds")
    parser.add_argument("--out", type=Path, default=ROOT / "runs" / "mutants.json")
    options = parser.parse_args(arguments)
    sample: dict[str, list[Any]] = defaultdict(list)
    for name in options.names:
        sample[name.partition(":")[0]].append(name.partition(":")[2])
    sample = sample or dict(draw(options.count, options.seed))
    record: dict[str, Any] = {"seed": options.seed, "count": options.count, "outcome": {}}
    if options.resume:
        record = json.loads(options.out.read_text(encoding="utf-8"))
    outcome: dict[str, str] = record["outcome"]
    tried = {name.partition(":")[0] for name in outcome}
    workshop = Workshop(options.jobs)

    def attempt(module: str) -> None:
        for name, status in workshop.outcome(module, sample[module]).items():
            outcome[f"{module}:{name}"] = status
            print(f"{len(outcome)} {status}: {module}:{name}", flush=True)
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(record, indent=1), encoding="utf-8")

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(attempt, [module for module in sample if module not in tried]))
    survivors = [name for name, status in outcome.items() if status not in NOTICED]
    print(f"\n{table(outcome)}\n", *(f"{outcome[name]}: {name}" for name in survivors), sep="\n")
    if (share := 1 - len(survivors) / len(outcome)) < options.least:
        sys.exit(f"{share:.1%} of the mutants were noticed; at least {options.least:.0%} are required")


if __name__ == "__main__":
    main()
