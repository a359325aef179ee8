"""What a start costs: processor time of commands as a share of `import sympy`, and the libraries they leave alone."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys

import pytest

from tests.paths import ROOT

#: Processor time of each command, at most, as a multiple of that of `python -c "import sympy"`, which takes 0.6 s to
#: 0.7 s where 0.35 s are wanted for the help, 0.6 s for a listing and 2 s for the answers about BS. These take 2.3 s
#: since cvc5 confirms z3's answers in them.
SHARES = {"--help": 0.75, "models": 0.9, "data list": 0.95, "presets": 0.9, "analyse BS": 4.6}
#: Runs of each, of which one must be as quick as that: a busy machine makes a run longer, never shorter.
RUNS = 4
#: Libraries that each start must not load: a listing proves, trains and draws nothing.
HEAVY = {"sympy", "numpy", "scipy", "torch", "matplotlib", "networkx", "sklearn", "pandas"}
LEFT_ALONE = {
    "--help": HEAVY, "models": HEAVY, "data list": HEAVY, "presets": HEAVY, "study": HEAVY,
    "analyse BS": {"torch", "scipy", "matplotlib", "networkx"},
}  # fmt: skip
COMMAND, SYMPY = (sys.executable, "-m", "studies.cli.app"), (sys.executable, "-c", "import sympy")


def processor_seconds(*words: str) -> float:
    """User and system time of a program that ends well, its children included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    known = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    subprocess.run(words, cwd=ROOT, env=known, check=True, capture_output=True, timeout=120)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize("line", SHARES)
def test_a_command_starts_quickly(line: str) -> None:
    """Each run beside one of sympy, so that both meet the same machine."""
    pairs = ((processor_seconds(*COMMAND, *line.split()), processor_seconds(*SYMPY)) for _ in range(RUNS))
    assert any(seconds <= SHARES[line] * sympy for seconds, sympy in pairs)


@pytest.mark.parametrize("line", LEFT_ALONE)
def test_a_command_loads_what_it_needs(line: str) -> None:
    """As `main` does it, with the names of the loaded libraries behind what the command prints."""
    program = (
        "import json, sys\nfrom studies.cli.app import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print()\nprint(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    )
    known = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", program, *line.split()], cwd=ROOT, env=known, check=True, capture_output=True, text=True,
        timeout=120,
    )  # fmt: skip
    loaded = set(json.loads(done.stdout.splitlines()[-1]))
    assert "studies" in loaded
    assert loaded & LEFT_ALONE[line] == set()


def test_importing_rdgraph_loads_the_standard_library_alone() -> None:
    program = (
        "import sys; before = set(sys.modules); import rdgraph; "
        "print(*sorted({name.partition('.')[0] for name in set(sys.modules) - before} - sys.stdlib_module_names))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.split() == ["rdgraph"]
