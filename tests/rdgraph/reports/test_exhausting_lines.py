"""No line takes more than a minute of computing, or two gibibytes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest

from rdgraph.errors import NotApplicable
from rdgraph.reals.budget import PAGE_SECONDS
from rdgraph.reports.summary import analyse
from tests.paths import ROOT
from tests.rdgraph.reports.exhausting_lines import exhausting_lines

LINES = exhausting_lines()
SECONDS = 60
#: All lines take an hour; `make test-deep` has them, other runs every sixteenth.
SHARE = 1 if os.environ.get("HYPOTHESIS_PROFILE") == "deep" else 16

#: Runs in an interpreter that the system ends beyond the limits, in C code too.
BOUNDED = f"""
import json, resource, sys, time
import rdgraph as rd
from rdgraph.errors import NotApplicable, Undecided

page, line = sys.argv[1:]
rd.analyse("tanh(H) - H**3 - L@H")
start = time.process_time()
pages = int(open("/proc/self/statm").read().split()[0])
space = pages * resource.getpagesize() + 2**31
resource.setrlimit(resource.RLIMIT_AS, (space, space))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_CPU, (int(start) + {SECONDS}, int(start) + {SECONDS + 5}))
try:
    if page == "analyse":
        answer = len(rd.analyse(line).to_dict())
    else:
        answer = rd.preflight(line, T=3, method="euler", step=0.1).outcome
except (NotApplicable, Undecided) as reason:
    answer = str(reason)
print(json.dumps([answer, time.process_time() - start]))
"""


def bounded(page: str, line: str) -> tuple[object, float]:
    """The answer and its seconds; fails where the interpreter was ended."""
    done = subprocess.run(
        [sys.executable, "-c", BOUNDED, page, line], cwd=ROOT, text=True, capture_output=True, check=False, timeout=1200
    )
    assert done.returncode == 0, done.stderr[-500:]
    answer, seconds = json.loads(done.stdout.splitlines()[-1])
    return answer, seconds


@pytest.mark.slow_cases(2)
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits of processes are those of Linux")
@pytest.mark.parametrize("page", ["analyse", "preflight"])
@pytest.mark.parametrize("name", list(LINES)[::SHARE])
def test_a_line_stays_within_a_minute_and_two_gibibytes(name: str, page: str) -> None:
    answer, seconds = bounded(page, LINES[name])
    assert answer
    assert seconds < SECONDS


@pytest.mark.parametrize("name", ["power 32**2", "power 32**3", "power 32**5", "power of a sum"])
def test_what_is_too_large_is_refused_at_once_with_the_size(name: str) -> None:
    start = time.process_time()
    with pytest.raises(NotApplicable, match=r"the degree \d+ exceeds 200"):
        analyse(LINES[name])
    assert time.process_time() - start < 1


def test_answers_after_the_time_of_the_page_are_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page comes all the same, and says so of every answer that is missing."""
    monkeypatch.setattr("rdgraph.reports.summary.PAGE_SECONDS", 1.0)
    start = time.process_time()
    found = analyse(LINES["continued fraction 10"])
    assert time.process_time() - start < 5
    assert found.answers["linear"] is False
    assert found.answers["existence"] == "undecided"
    assert "ran out" in found.notes["step_limit_euler"]


#: What a reader of the equation knows, read off its normal form.
READ = {"text", "latex", "linear", "has_source", "fields"}


def test_the_questions_are_named_before_they_are_asked() -> None:
    asked: list[str] = []
    found = analyse("-L@H", tell=asked.append)
    assert asked[0] == "normal form"
    assert {key.replace("_", " ") for key in found.answers.keys() - READ} <= set(asked)
    assert PAGE_SECONDS < SECONDS
    pair: list[str] = []
    found = analyse("u' = -L@u + 2*v; v' = -u", tell=pair.append)
    by_group = {"starts": "existence", "steady_states": "steady states and Turing's conditions",
                "turing": "steady states and Turing's conditions", "nonnegative": "invariant box"}  # fmt: skip
    assert {by_group.get(key, key.replace("_", " ")) for key in found.answers.keys() - READ} <= set(pair)
