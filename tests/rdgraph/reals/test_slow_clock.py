"""Answers do not depend on the speed of the machine: the same questions under a clock that runs four times as fast."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.paths import ROOT

PROGRAM = Path(__file__).with_name("slow_clock.py")


def answers(factor: int, count: int) -> dict[str, str]:
    run = subprocess.run(
        [sys.executable, str(PROGRAM), str(factor), str(count)], capture_output=True, text=True, cwd=ROOT, check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0"}, timeout=1800,
    )  # fmt: skip
    return dict(json.loads(run.stdout))


@pytest.mark.parametrize(
    "count", [40, pytest.param(200, marks=[pytest.mark.slow, pytest.mark.deep])], ids=["40 questions", "200 questions"]
)
def test_a_clock_four_times_as_fast_gives_the_same_answers(count: int) -> None:
    with ThreadPoolExecutor(2) as pool:
        usual, fast = pool.map(answers, (1, 4), (count, count))
    assert len(usual) == count
    assert len({question.split(":")[0] for question in usual}) >= 10
    assert {question: answer for question, answer in fast.items() if answer != usual[question]} == {}
    assert not any("time ran out" in answer for answer in usual.values())
