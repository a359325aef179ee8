"""`python -m tests.mutants --count 220`: a random sample of changed programs, and how many the tests notice.

mutmut changes one operator, number, word or argument of a function at a time; the sample is drawn from all changes of
the modules that decide. Each is tried in a process of its own with the unit tests of its module alone: no property
tests, no adversary. Named mutants can be tried again: `python -m tests.mutants NAME ...`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from mutmut.mutation.file_mutation import mutate_file_contents
from mutmut.utils.format_utils import get_mutant_name

from tests.mutants.trial import NOTICED, Trials
from tests.paths import ROOT

_UNIT = "tests/rdgraph/reals"
#: The modules that are changed, and the tests that should notice.
MODULES = {
    "rdgraph/reals/judge.py": [f"{_UNIT}/test_rulings.py", f"{_UNIT}/test_judge.py"],
    "rdgraph/reals/domain.py": [
        f"{_UNIT}/test_rulings.py", f"{_UNIT}/test_ratio_cells.py", f"{_UNIT}/test_domain.py",
    ],
    "rdgraph/reals/smtlib.py": [f"{_UNIT}/test_smtlib.py"],
    "rdgraph/reals/rewriting.py": [f"{_UNIT}/test_rewriting.py"],
    "rdgraph/reals/enclosure.py": [f"{_UNIT}/test_enclosure.py"],
    "rdgraph/reals/maxima.py": [f"{_UNIT}/test_interval_extrema.py", f"{_UNIT}/test_domain.py"],
    "rdgraph/reals/polynomials.py": [f"{_UNIT}/test_ratio_cells.py", f"{_UNIT}/test_polynomials.py"],
    "rdgraph/reals/regions.py": [f"{_UNIT}/test_regions.py"],
    "rdgraph/theory/lipschitz.py": ["tests/rdgraph/theory/test_lipschitz_values.py"],
}  # fmt: skip
TREE = ROOT / "mutants"


def grown() -> dict[str, str]:
    """A copy of rdgraph with all mutants in it, none of them active; the name of each with its module.

    An earlier copy is used again where rdgraph has not changed since.
    """
    source = hashlib.sha256()
    for path in sorted((ROOT / "rdgraph").rglob("*.py")):
        source.update(path.read_bytes())
    kept = TREE / "names.json"
    if kept.exists() and (found := json.loads(kept.read_text(encoding="utf-8")))["source"] == source.hexdigest():
        return dict(found["names"])
    shutil.rmtree(TREE, ignore_errors=True)
    shutil.copytree(ROOT / "rdgraph", TREE / "rdgraph", ignore=shutil.ignore_patterns("__pycache__"))
    names: dict[str, str] = {}
    for module in MODULES:
        changed = mutate_file_contents(module, (ROOT / module).read_text(encoding="utf-8"))
        (TREE / module).write_text(changed.code, encoding="utf-8")
        names |= {get_mutant_name(Path(module), name): module for name in changed.mutant_names}
    kept.write_text(json.dumps({"source": source.hexdigest(), "names": names}), encoding="utf-8")
    return names


def table(modules: dict[str, str], outcome: dict[str, str]) -> str:
    """One row for each module: sampled, noticed, survived."""
    sampled = Counter(modules[name] for name in outcome)
    noticed = Counter(modules[name] for name, status in outcome.items() if status in NOTICED)
    rows = [(module, sampled[module], noticed[module]) for module in sorted(sampled)]
    rows.append(("all", sum(sampled.values()), sum(noticed.values())))
    lines = [f"| {name} | {n} | {k} | {n - k} |" for name, n, k in rows]
    return "\n".join(["| module | sampled | noticed | survived |", "|---|---:|---:|---:|", *lines])


def main(arguments: list[str] | None = None) -> None:
    """Draw the sample, try it, print the table and the survivors; `--least` is the share that must be noticed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="mutants to try; a sample where none is named")
    parser.add_argument("--count", type=int, default=220)
    parser.add_argument("--seed", type=int, default=20230723)
    parser.add_argument("--least", type=float, default=0.85)
    parser.add_argument("--resume", action="store_true", help="keep what the file of results already holds")
    parser.add_argument("--out", type=Path, default=ROOT / "runs" / "mutants.json")
    options = parser.parse_args(arguments)
    modules = grown()
    drawn = random.Random(options.seed).sample(sorted(modules), min(options.count, len(modules)))
    names = options.names or drawn
    record: dict[str, Any] = {"mutants": len(modules), "seed": options.seed, "seconds": 0.0, "outcome": {}}
    if options.resume:
        record |= json.loads(options.out.read_text(encoding="utf-8"))
    outcome: dict[str, str] = record["outcome"]
    trials, earlier = Trials(TREE, MODULES), record["seconds"]

    def tell(name: str, status: str) -> None:
        outcome[name] = status
        record["seconds"] = round(earlier + trials.seconds, 1)
        print(f"{len(outcome)} {status}: {name}", flush=True)
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(record, indent=1), encoding="utf-8")

    trials.run([(name, modules[name]) for name in names if options.names or name not in outcome], tell)
    survivors = [name for name, status in outcome.items() if status not in NOTICED]
    print(f"\n{len(outcome)} of {len(modules)} mutants, {record['seconds']:.0f} s of processor time\n")
    print(table(modules, outcome), *survivors, sep="\n")
    share = 1 - len(survivors) / len(outcome)
    if share < options.least:
        sys.exit(f"expected at least {options.least:.0%} of the mutants to be noticed, got {share:.1%}")


if __name__ == "__main__":
    main()
