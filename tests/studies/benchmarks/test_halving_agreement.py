"""Halving against whole searches: the replay on curves is what training does, and agreement is counted right."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gread.datasets.embedded import karate
from gread.settings.config import Config
from gread.tuning.candidates import PlannedRound
from gread.tuning.halving import Rungs
from gread.tuning.random_draws import draw_candidates
from gread.tuning.rounds import train_round
from gread.tuning.selection import chosen
from gread.tuning.space import find_space
from studies.benchmarks import halving_agreement
from studies.benchmarks.halving_agreement import RULES, SETS, Curves, replay, summary, whole_search


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
    found = summary(rows)["gcn-16 on texas"]
    assert found["a seventh after 20 %"]["agree"] == 1
    assert found["a seventh after 20 %"]["gap"] == pytest.approx(10.0)
    assert {rule["searches"] for rule in found.values()} == {2}


def test_curves_are_kept_and_read_again(tmp_path: Path) -> None:
    curves = planted((0.1, 0.2))
    first = halving_agreement.kept_curves(tmp_path / "deep" / "a.npy", lambda: curves)
    again = halving_agreement.kept_curves(tmp_path / "deep" / "a.npy", pytest.fail)
    np.testing.assert_array_equal(first.val, again.val)


def test_the_default_rule_reaches_what_the_page_says() -> None:
    """docs/halving.json: nine of ten searches on two sets, at a third of the epochs or less."""
    path = halving_agreement.DOCS / "halving.json"
    found = json.loads(path.read_text(encoding="utf-8"))
    assert found["summary"] == summary(found["rows"])
    for dataset in SETS:
        own = found["summary"][f"{halving_agreement.SMALL} on {dataset}"]["default"]
        assert own["agree"] >= 0.9 * own["searches"]
        assert own["share"] <= 1 / 3
        trained = [row for row in found["rows"] if row["dataset"] == dataset and "trained" in row]
        assert trained
        assert all(row["trained"] == row["rules"]["default"]["trial"] for row in trained)
