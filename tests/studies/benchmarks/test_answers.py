"""Programs that answer a question: formulas, intervals, halving, conformance; small forms, and what counts as right."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import rdgraph as rd
from gread.datasets.embedded import karate
from gread.settings.config import Config
from gread.tuning.candidates import PlannedRound
from gread.tuning.random_draws import draw_candidates
from gread.tuning.rounds import train_round
from gread.tuning.selection import chosen
from gread.tuning.space import find_space
from gread.tuning.successive_halving import Rungs
from rdgraph.infer.fit.fitted_values import Fit
from rdgraph.infer.formulas.formula_finding import lettered
from rdgraph.infer.formulas.prefix_terms import Word
from studies.benchmarks import conforming, coverage, formulas, halving
from studies.benchmarks.conforming import (
    RECIPES,
    correct_variants,
    fault_row,
    faults,
    our_layers,
    seeded_faults,
    table_row,
    torch_geometric_layers,
    variant_row,
)
from studies.benchmarks.coverage import covered, networks, problems_of
from studies.benchmarks.formulas import REACTIONS, drawn, is_recovered
from studies.benchmarks.halving import RULES, Curves, replay, whole_search
from studies.results import read_result

EMPTY = rd.infer.Distillation("-alpha*L@H + phi(H)", "phi", None, None, (), 0.01, 1.25, 20, (np.zeros(1), np.zeros(1)))


# ---------------------------------------------------------------------- formulas
def found(word: Word, constants: list[float], alpha: float) -> rd.infer.Distillation:
    letters = lettered(word, np.array([constants]), ["alpha"])
    values = {"alpha": alpha, **letters.values(np.array(constants))}
    made = Fit.__new__(Fit)
    object.__setattr__(made, "values", values)
    return replace(EMPTY, fit=made, letters=letters)


@pytest.mark.parametrize(
    ("word", "constants", "alpha", "expected"),
    [
        (("*", "c", "*", "x", "-", "1", "x"), [1.23], 0.3, True),
        (("+", "*", "c", "x", "*", "c", "square", "x"), [1.2, -1.23], 0.31, True),
        (("+", "*", "c", "x", "*", "c", "square", "x"), [1.2, -1.3], 0.3, False),
        (("*", "c", "*", "x", "-", "1", "x"), [1.2], 0.35, False),
        (("*", "c", "tanh", "*", "x", "-", "1", "x"), [1.2], 0.3, False),
        (("+", "*", "c", "x", "+", "*", "c", "square", "x", "c"), [1.2, -1.2, 0.001], 0.3, False),
    ],
)
def test_only_the_true_formula_counts(word: Word, constants: list[float], alpha: float, expected: bool) -> None:
    truth = {"alpha": 0.3, "beta": 1.2}
    assert is_recovered(REACTIONS[0], truth, found(word, constants, alpha))[0] is expected


def test_a_sine_is_told_by_amplitude_and_frequency() -> None:
    truth = {"alpha": 0.3, "beta": 1.0, "omega": 1.7}
    word = ("*", "c", "sin", "*", "c", "x")
    assert is_recovered(REACTIONS[4], truth, found(word, [1.01, 1.69], 0.3))[0]
    assert not is_recovered(REACTIONS[4], truth, found(word, [1.01, 1.9], 0.3))[0]
    assert not is_recovered(REACTIONS[4], truth, EMPTY)[0]


def test_a_draw_is_noisy_and_the_same_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formulas, "TIMES", 5)
    monkeypatch.setattr(formulas, "END", 0.4)
    one, same = drawn(REACTIONS[1], 3), drawn(REACTIONS[1], 3)
    np.testing.assert_array_equal(one.states, same.states)
    assert one.states.shape == (5, 30, 1)
    assert not np.array_equal(one.states, drawn(REACTIONS[1], 4).states)
    rows = [{"case": "Fisher", "recovered": k > 0, "worst_error": 0.01 * k} for k in range(3)]
    assert formulas.summary(rows) == {"Fisher": {"recovered": 2, "draws": 3, "worst_error": 0.02}}


# ---------------------------------------------------------------------- intervals
def test_a_moved_truth_is_not_covered() -> None:
    case, graph = coverage.FITTED[2], networks()["grid"]
    problems, truth = problems_of(case, graph, 1.0, 4, seed=0)
    inside, rows = covered(problems, truth, torch.arange(4), 0)
    assert inside.sum() >= 6
    assert (rows - truth).abs().max() < 0.3
    outside, _ = covered(problems, truth + 1.0, torch.arange(4), 0)
    assert not outside.any()


def test_cells_that_other_files_have_are_not_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cell = {"share": 1.0, "repeats": 4, "inside": {"beta": 3}, "relative_error": {"beta": 0.1}, "truth": {"beta": 1.0}}
    measured: list[str] = []

    def measure(case: Any, *given: Any) -> dict[str, Any]:
        measured.append(case.name)
        return cell

    monkeypatch.setattr(coverage, "measure", measure)
    others = [tmp_path / "a.json", tmp_path / "b.json"]
    for path, name in zip(others, ("SIS", "BS"), strict=True):
        coverage.fit_coverage(repeats=4, shares=[1.0], equations=[name], out=path)
    assert measured == ["SIS"] * 3 + ["BS"] * 3
    out = tmp_path / "all.json"
    coverage.fit_coverage(repeats=4, shares=[1.0], equations=["SIS"], files=others, out=out)
    assert len(measured) == 6
    found = coverage.read_json(out, None)
    assert found["summary"]["all"] == coverage.summary(found["cells"])["all"]
    assert (found["summary"]["SIS"]["coverage"], found["summary"]["all"]["intervals"]) == (0.75, 24)


# ---------------------------------------------------------------------- halving


def planted(*finals: tuple[float, float]) -> Curves:
    """Trials of two splits that have the first accuracy for 50 of 200 epochs, then the second."""
    return Curves(np.array([[[early] * 50 + [late] * 150] * 2 for early, late in finals]))


def test_a_late_winner_is_lost_and_the_gap_is_told() -> None:
    curves = planted(*[(0.6, 0.7)] * 7, (0.5, 0.9))
    found = replay(curves, Rungs(((0.2, 0.5),)))
    assert (found.trial, found.agrees, found.gap) == (0, False, 20.0)
    assert found.share == pytest.approx(0.2 + 0.8 / 2)
    assert replay(curves, Rungs(((0.3, 0.5),))).agrees


def test_a_trial_with_exactly_the_best_mean_is_a_winner_as_well() -> None:
    found = replay(planted((0.5, 0.8), (0.6, 0.8), (0.4, 0.7)), Rungs(((0.2, 1 / 3),)))
    assert (found.trial, found.agrees, found.gap) == (1, True, 0.0)


def test_the_best_so_far_counts_and_a_training_that_diverged_keeps_it() -> None:
    val = np.array([[[0.9] * 20 + [np.nan] * 180], [[0.8] * 200]])
    assert replay(Curves(val), Rungs()).trial == 0


@pytest.mark.slow
def test_a_replay_drops_and_chooses_what_training_does() -> None:
    data, base = karate(), Config.of("gcn", epochs=100, hidden=4)
    candidates = draw_candidates(find_space("small").of(base).without({"hidden"}), base, 9, seed=1)
    curves = whole_search(data, candidates, 2, "cpu")
    results = train_round(data, PlannedRound.of(data, range(2), 0, True, candidates), device="cpu")
    found = replay(curves, Rungs())
    assert chosen(results).number == found.trial
    assert sum(r.epochs for r in results) == pytest.approx(found.share * 9 * 100)
    for k, result in enumerate(results):
        assert result.val_accuracy == pytest.approx(curves.best[k, result.epochs - 1])


def test_searches_are_counted_by_set_and_rule() -> None:
    rows = []
    for seed, curves in enumerate((planted((0.6, 0.7), (0.5, 0.9), (0.4, 0.4)), planted((0.6, 0.7), (0.5, 0.6)))):
        told = {name: vars(replay(curves, rule)) for name, rule in RULES.items()}
        rows.append({"network": "gcn-16", "dataset": "texas", "seed": seed, "rules": told})
    found = halving.summary(rows)["gcn-16 on texas"]
    assert found["a seventh after 20 %"]["agree"] == 1
    assert found["a seventh after 20 %"]["gap"] == pytest.approx(10.0)
    assert {rule["searches"] for rule in found.values()} == {2}


def test_curves_are_kept_and_read_again(tmp_path: Path) -> None:
    curves = planted((0.1, 0.2))
    first = halving.kept_curves(tmp_path / "deep" / "a.npy", lambda: curves)
    again = halving.kept_curves(tmp_path / "deep" / "a.npy", pytest.fail)
    np.testing.assert_array_equal(first.val, again.val)


def test_the_default_rule_reaches_what_the_page_says() -> None:
    """studies/results/halving.json: nine of ten searches on two sets, at a third of the epochs or less."""
    found = read_result("halving")
    assert found["summary"] == halving.summary(found["rows"])
    for dataset in halving.SETS:
        own = found["summary"][f"{halving.SMALL} on {dataset}"]["default"]
        assert own["agree"] >= 0.9 * own["searches"]
        assert own["share"] <= 1 / 3
        trained = [row for row in found["rows"] if row["dataset"] == dataset and "trained" in row]
        assert trained
        assert all(row["trained"] == row["rules"]["default"]["trial"] for row in trained)


# ---------------------------------------------------------------------- conformance
def test_the_kept_campaign_reaches_its_targets() -> None:
    """200 faults of ten layers, 95 % named in the first three hints, no false alarm on 200 variants, 10 s a check."""
    found = read_result("conform_faults")
    told = found["summary"]
    assert told == conforming.summary(found["faults"], found["variants"])
    assert isinstance(told, dict)
    assert told["layers"] >= 10
    assert told["faults"] >= 200
    assert told["named"] >= 0.95 * told["faults"]
    assert told["variants"] >= 200
    assert told["false_alarms"] == 0
    assert told["most_seconds"] <= 10


def test_every_fault_is_another_program() -> None:
    for recipe in RECIPES:
        found = list(faults(recipe))
        texts = [fault.text for fault in found]
        assert len(set(texts)) == len(texts)
        assert all(ast.unparse(fault.tree) for fault in found)


def test_a_fault_and_a_variant() -> None:
    recipe, fault = next((r, f) for r, f in seeded_faults() if r.name == "bs" and f.kind == "sign")
    row = fault_row(recipe, fault)
    assert row["caught"]
    assert row["named"]
    assert variant_row(*next(v for v in correct_variants() if v[0].name == "bs" and v[4]))["conforms"]


@pytest.mark.slow
def test_a_sample_of_faults_and_variants() -> None:
    every = list(seeded_faults())
    assert len(read_result("conform_faults")["faults"]) == len(every)
    for recipe, fault in every[::23]:
        row = fault_row(recipe, fault)
        assert (row["caught"], row["named"]) == (True, True), row
    assert all(variant_row(*variant)["conforms"] for variant in list(correct_variants())[::27])


def test_the_verdicts_on_published_layers() -> None:
    pytest.importorskip("torch_geometric")
    rows = read_result("conform")["rows"]
    assert isinstance(rows, list)
    names = [p.name for p in (*torch_geometric_layers(), *our_layers())]
    assert [row["layer"] for row in rows] == names
    published = next(p for p in torch_geometric_layers() if p.name == "GCNConv")
    row = table_row(published, "torch-geometric")
    assert row["verdicts"]["simple"]["conforms"]
    assert not row["verdicts"]["all"]["conforms"]
    assert "added where a node has none" in row["verdicts"]["all"]["hints"][0]
    old = next(r for r in rows if r["layer"] == "GCNConv")
    assert [v["conforms"] for v in old["verdicts"].values()] == [True, False]
