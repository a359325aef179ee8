"""The benchmark of intervals: noise of the right size is covered, a truth that was moved is not."""

from __future__ import annotations

import torch

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
