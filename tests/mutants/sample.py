"""The sample of mutants: which modules are changed, which tests should notice, and the table of what they noticed."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path

from mutmut.mutation.file_mutation import mutate_file_contents
from mutmut.utils.format_utils import get_mutant_name

from tests.mutants.trial import NOTICED
from tests.paths import ROOT

PACKAGES = ("rdgraph", "analysis", "gread")
#: Kernels are compiled from their source text, which a mutant does not change.
COMPILED = ("triton_", "entry_kernels")


def modules() -> dict[str, int]:
    """Every module that is changed, with its length in bytes."""
    paths = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return {
        path.relative_to(ROOT).as_posix(): path.stat().st_size
        for path in paths
        if path.name != "__init__.py" and not path.name.startswith(COMPILED)
    }


def tests_of(module: str) -> list[str]:
    """Test files in the folder of a module's tests, those named after the module first.

    >>> tests_of("rdgraph/theory/lipschitz.py")[0]
    'tests/rdgraph/theory/test_lipschitz.py'
    """
    path = Path(module)
    folder = ROOT / "tests" / path.parent
    while not any(folder.glob("test_*.py")):
        folder = folder.parent
    words = set(path.stem.split("_"))
    named = {file: len(words & set(file.stem.split("_"))) / len(words) for file in folder.glob("test_*.py")}
    ordered = sorted(named, key=lambda file: (path.stem not in file.stem, -named[file], file.name))
    return [file.relative_to(ROOT).as_posix() for file in ordered]


def mutated(module: str) -> tuple[str, list[str]]:
    """A module with all its mutants in it, none of them active, and their names."""
    changed = mutate_file_contents(module, (ROOT / module).read_text(encoding="utf-8"))
    return changed.code, [get_mutant_name(Path(module), name) for name in changed.mutant_names]


def draw(count: int, seed: int) -> dict[str, list[float]]:
    """The sample: for each module that was drawn, numbers in [0, 1) that choose its mutants.

    >>> sample = draw(400, 1)
    >>> sum(map(len, sample.values())), draw(400, 1) == sample
    (400, True)
    """
    generator, lengths = random.Random(seed), modules()
    sample: dict[str, list[float]] = defaultdict(list)
    for module in generator.choices(list(lengths), weights=list(lengths.values()), k=count):
        sample[module].append(generator.random())
    return dict(sample)


def table(outcome: Mapping[str, str]) -> str:
    """One row for each folder: sampled, noticed, survived, and the share that was noticed.

    >>> print(table({"rdgraph/a/b.py:x": "killed", "rdgraph/a/c.py:y": "survived"}).splitlines()[2])
    | `rdgraph/a` | 2 | 1 | 1 | 50 % |
    """
    sampled = Counter(name.rpartition("/")[0] for name in outcome)
    noticed = Counter(name.rpartition("/")[0] for name, status in outcome.items() if status in NOTICED)
    rows = [(f"`{folder}`", sampled[folder], noticed[folder]) for folder in sorted(sampled)]
    rows.append(("all", sum(sampled.values()), sum(noticed.values())))
    lines = [f"| {name} | {n} | {k} | {n - k} | {k / n:.0%} |".replace("%", " %") for name, n, k in rows if n]
    return "\n".join(["| folder | sampled | noticed | survived | share |", "|---|---:|---:|---:|---:|", *lines])
