"""The speed of many equations: what is drawn, what is counted, and the file that rows are added to."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

import rdgraph as rd
from gread.datasets.embedded import karate
from gread.discovery.equation_batches import EquationResult
from rdgraph.errors import InvalidArgument
from studies.benchmarks import discover_speed
from studies.benchmarks.discover_speed import CURVED, LINEAR, draw_equations, read_equations, work_done


def test_lines_are_drawn_once_and_half_of_a_mixed_draw_is_not_linear() -> None:
    lines = draw_equations(60, "mixed")
    assert len(set(lines)) == 60
    assert lines != draw_equations(60, "mixed", seed=1)
    is_linear = [not any(term in line for term in CURVED) for line in lines]
    assert sum(is_linear) == 30
    for line, linear in list(zip(lines, is_linear, strict=True))[:12]:
        assert rd.parse(line).structure.is_polynomial_in_operator == linear
    assert not any(term in line for line in draw_equations(60, "linear") for term in CURVED)
    with pytest.raises(InvalidArgument, match="among linear, mixed"):
        draw_equations(2, "odd")


def test_no_more_lines_are_drawn_than_there_are() -> None:
    words = len(LINEAR) - 1
    there = sum(math.comb(words, k) * 2**k for k in (1, 2, 3))
    assert len(set(draw_equations(there, "linear"))) == there
    with pytest.raises(InvalidArgument, match=f"at most {there} equations"):
        draw_equations(there + 1, "linear")


def test_equations_may_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_text("# two lines\n-alpha*L@H\n\n  -alpha*L@H + beta*H0\n")
    assert read_equations(str(path), "mixed") == ["-alpha*L@H", "-alpha*L@H + beta*H0"]
    assert len(read_equations("3", "linear")) == 3


def test_what_was_cut_off_does_not_count() -> None:
    given = Namespace(rungs=[15], epochs=60)
    found = [
        EquationResult("a", "finished", 60), EquationResult("b", "dropped", 20), EquationResult("c", "dropped", 37),
        EquationResult("d", "refused"),
    ]  # fmt: skip
    assert work_done(found, given) == 0.5


def test_a_row_has_the_rate_of_the_whole_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discover_speed, "load_dataset", lambda name: karate())
    calls: list[dict[str, Any]] = []

    monkeypatch.setattr(discover_speed, "environment", lambda device: {"device": device})  # it asks another program

    def run(line: list[str], **options: Any) -> subprocess.CompletedProcess[bytes]:
        assert line[:3] == [sys.executable, "-m", "studies.benchmarks.discover_speed"]
        calls.append(options["env"])
        discover_speed.main(line[3:])
        return subprocess.CompletedProcess(line, 0)

    monkeypatch.setattr("subprocess.run", run)
    out = tmp_path / "speed.json"
    words = ["--equations", "3", "--splits", "1", "--epochs", "3", "--hidden", "8", "--out", str(out)]
    for kind in ("linear", "mixed"):
        discover_speed.main([*words, "--kind", kind])
    first, second = json.loads(out.read_text())
    assert (first["kind"], first["target"], second["target"]) == ("linear", 1500.0, 300.0)
    assert first["rate"] == pytest.approx(60 * 3 / first["seconds"])
    assert first["states"] == {"finished": 3}
    assert not first["met"]
    assert first["best"]["equation"].startswith("-alpha*L@H")
    assert first["command"].endswith("--out speed.json --kind linear")
    assert calls[0]["TRITON_CACHE_DIR"] != calls[1]["TRITON_CACHE_DIR"]
    with pytest.raises(SystemExit):
        discover_speed.read_words(["--kind", "linear"])
