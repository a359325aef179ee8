"""`python -m tests.mutants --count 220`: a random sample of changed programs, and how many the tests notice.

The modules and the tests are those of `[tool.mutmut]` in pyproject.toml. Every function of these modules has one mutant for
every operator, number, word and argument that mutmut knows how to change; the sample is drawn from all of them.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

from mutmut.mutation.file_mutation import mutate_file_contents
from mutmut.stats import status_by_exit_code
from mutmut.utils.format_utils import get_mutant_name

from tests.paths import ROOT

#: Ways to notice a mutant: a test fails, or does not come to an end.
NOTICED = ("killed", "timeout", "segfault")


def mutants() -> dict[str, str]:
    """The name of every mutant, with the module it belongs to."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mutmut"]
    found: dict[str, str] = {}
    for module in settings["only_mutate"]:
        changed = mutate_file_contents(module, (ROOT / module).read_text(encoding="utf-8"))
        found |= {get_mutant_name(Path(module), name): module for name in changed.mutant_names}
    return found


def tried(names: list[str]) -> None:
    """Run mutmut on the named mutants, one process at a time."""
    command = [Path(sys.executable).parent / "mutmut", "run", "--max-children", "1", *names]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"OMP_NUM_THREADS": "1"}
    subprocess.run(command, cwd=ROOT, env=environment, check=True)


def statuses(modules: dict[str, str]) -> dict[str, str]:
    """What became of each of the named mutants, from the files that mutmut leaves."""
    codes: dict[str, Any] = {}
    for module in set(modules.values()):
        codes |= json.loads((ROOT / "mutants" / f"{module}.meta").read_text(encoding="utf-8"))["exit_code_by_key"]
    return {name: status_by_exit_code[codes[name]] for name in modules}


def table(modules: dict[str, str], outcome: dict[str, str]) -> str:
    """One row for each module: sampled, noticed, survived."""
    sampled = Counter(modules.values())
    noticed = Counter(modules[name] for name, status in outcome.items() if status in NOTICED)
    rows = [(module, sampled[module], noticed[module]) for module in sorted(sampled)]
    rows.append(("all", sum(sampled.values()), sum(noticed.values())))
    lines = [f"| {name} | {n} | {k} | {n - k} |" for name, n, k in rows]
    return "\n".join(["| module | sampled | noticed | survived |", "|---|---:|---:|---:|", *lines])


def main(arguments: list[str] | None = None) -> None:
    """Draw the sample, try it, print the table and the survivors; `--least` is the share that must be noticed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=220)
    parser.add_argument("--seed", type=int, default=20230723)
    parser.add_argument("--least", type=float, default=0.85)
    parser.add_argument("--out", type=Path, default=ROOT / "runs" / "mutants.json")
    options = parser.parse_args(arguments)
    everything = mutants()
    sample = sorted(random.Random(options.seed).sample(sorted(everything), min(options.count, len(everything))))
    tried(sample)
    modules = {name: everything[name] for name in sample}
    outcome = statuses(modules)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    record = {"mutants": len(everything), "seed": options.seed, "outcome": outcome}
    options.out.write_text(json.dumps(record, indent=1), encoding="utf-8")
    survivors = [name for name, status in outcome.items() if status not in NOTICED]
    print(f"{len(sample)} of {len(everything)} mutants\n\n{table(modules, outcome)}\n")
    print("\n".join(f"{outcome[name]}: {name}" for name in survivors))
    share = 1 - len(survivors) / len(sample)
    if share < options.least:
        sys.exit(f"expected at least {options.least:.0%} of the mutants to be noticed, got {share:.1%}")


if __name__ == "__main__":
    main()
