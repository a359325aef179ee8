"""The benchmark of intervals: noise of the right size is covered, a truth that was moved is not."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import torch

from studies.benchmarks import fit_coverage, fit_coverage_page
from studies.benchmarks.fit_coverage import CASES, covered, measure, networks, problems_of, summary


def test_a_moved_truth_is_not_covered() -> None:
    case, graph = CASES[2], networks()["grid"]
    problems, truth = problems_of(case, graph, 1.0, 4, seed=0)
    inside, rows = covered(problems, truth, torch.arange(4), 0)
    assert inside.sum() >= 6
    assert (rows - truth).abs().max() < 0.3
    outside, _ = covered(problems, truth + 1.0, torch.arange(4), 0)
    assert not outside.any()


def test_counts_are_summed_by_equation() -> None:
    cell = measure(CASES[2], networks()["grid"], 0.2, 2)
    assert cell["inside"].keys() == {"alpha", "beta"}
    found = summary({"BS grid 0.2": cell, "SIS grid 1": {"inside": {"beta": 3, "gamma": 1}, "repeats": 4}})
    assert found["SIS"]["coverage"] == 0.5
    assert found["SIS"]["intervals"] == 8
    assert found["all"]["intervals"] == 12
    assert "Fisher" not in found


def test_the_page_is_that_of_the_measured_numbers() -> None:
    found = json.loads(fit_coverage_page.SOURCE.read_text(encoding="utf-8"))
    assert found["summary"] == summary(found["cells"])
    assert (fit_coverage_page.DOCS / "fit_coverage.md").read_text(encoding="utf-8") == fit_coverage_page.page(found)


def test_files_of_several_processes_become_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cell = {"share": 1.0, "repeats": 4, "inside": {"beta": 3}, "relative_error": {"beta": 0.1}, "truth": {"beta": 1.0}}
    for key in ("SIS grid 1", "BS grid 1"):
        fit_coverage.keep(tmp_path / f"{key[0]}.json", {key: cell}, 4)
    words = ["fit_coverage", "--repeats", "4", "--out", str(tmp_path / "all.json"), "--join"]
    monkeypatch.setattr(sys, "argv", [*words, *map(str, sorted(tmp_path.glob("?.json")))])
    fit_coverage.main()
    found = json.loads((tmp_path / "all.json").read_text(encoding="utf-8"))
    assert found["summary"]["all"]["intervals"] == 8
    assert set(found["cells"]) == {"SIS grid 1", "BS grid 1"}
