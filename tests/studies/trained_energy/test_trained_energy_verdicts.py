"""The study of energies in trained networks: verdicts that follow the numbers, curves and the table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

from studies.oversmoothing.rows import Answer
from studies.runs.uncertainty import decide, interval
from studies.trained_energy.networks import STAGES, EnergyTable, Subject, make_subjects
from studies.trained_energy.study import (
    BOUNDED,
    beta_curves,
    bounded,
    conserves,
    deeper,
    delays,
    families,
    family_curves,
    keeps,
    kept_energies,
    make_line,
    summary_rows,
    vanishes,
    verdicts,
)
from tests.studies.trained_energy.tiny_energies import REACTIONS, SUBJECTS


# ---------------------------------------------------------------------- verdicts
def test_the_answer_names_the_reactions_that_keep_their_energy() -> None:
    found = [Answer(f"{name}{BOUNDED}", word, "", "") for name, word in (("ST", "holds"), ("F", "fails"))]
    assert kept_energies(found).endswith("on most graphs: holds for ST; fails for F.")
    assert kept_energies([]) == ""


def table_of(energies: Callable[[Subject, str], Any], graphs: int = 20, layers: int = 9) -> EnergyTable:
    """A table whose energies (layers, graphs) are given by subject and stage."""
    arrays = {}
    for subject in SUBJECTS:
        for stage in STAGES:
            energy = np.broadcast_to(np.asarray(energies(subject, stage), dtype=float), (layers, graphs))
            arrays[subject.name, subject.kind, stage] = dict.fromkeys(("energy", "normalised", "mad", "rank"), energy)
    row = {
        "status": "ok", "best_epoch": 3, "test_accuracy": 0.75, "alpha": 0.5, "beta_least": 0.1, "beta_largest": 0.2,
    }  # fmt: skip
    return EnergyTable(SUBJECTS, arrays, {(s.name, s.kind): [dict(row) for _ in range(graphs)] for s in SUBJECTS})


def decay(rate: float, layers: int = 9) -> np.ndarray:
    """100*rate^k at layer k, a column for every graph."""
    return 100 * rate ** np.arange(layers)[:, None]


@pytest.mark.parametrize(("count", "total"), [(0, 5), (3, 20), (15, 20), (20, 20), (1, 1)])
def test_intervals_are_clopper_and_pearson(count: int, total: int) -> None:
    expected = binomtest(count, total).proportion_ci(0.95, "exact")
    assert interval(count, total) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_decisions_need_more_than_a_few_graphs() -> None:
    assert [decide(np.arange(20) < k) for k in (5, 6, 14, 15)] == ["fails", "undecided", "undecided", "holds"]
    assert decide(np.ones(5, dtype=bool)) == "undecided"
    assert decide(np.ones(6, dtype=bool)) == "holds"
    assert decide(np.ones(0, dtype=bool)) == "undecided"


def test_vanishing_energy() -> None:
    slow = decay(0.5)
    assert vanishes("GCN", table_of(lambda s, stage: decay(0.1))).answer == "holds"
    assert vanishes("GCN", table_of(lambda s, stage: slow)).answer == "fails"
    mixed = table_of(lambda s, stage: np.where(np.arange(20) < 10, decay(0.1), slow))
    assert vanishes("GCN", mixed).answer == "undecided"
    trained_alone = vanishes("GAT", table_of(lambda s, stage: decay(0.1) if stage == "end" else slow))
    assert trained_alone.answer == "holds"
    assert "trained: 20 of 20 graphs" in trained_alone.evidence
    assert "untrained: 0 of 20 graphs" in trained_alone.evidence
    assert "median E_5/E_0 1e-05, last layer 1e-08" in trained_alone.evidence
    dead = vanishes("GCN", table_of(lambda s, stage: np.r_[100.0, np.zeros(8)][:, None]))
    assert dead.answer == "holds"
    assert "exactly zero by then on 20" in dead.evidence
    assert "exactly zero by then on 0" in trained_alone.evidence


@pytest.mark.parametrize(("grand", "gcn", "answer"), [(0.5, 0.1, "holds"), (0.1, 0.5, "fails"), (1.1, 0.5, "fails")])
def test_delay_of_grand(grand: float, gcn: float, answer: str) -> None:
    table = table_of(lambda s, stage: decay(grand if s.name == "GRAND" else gcn))
    assert delays(table).answer == answer


@pytest.mark.parametrize(("rate", "answer"), [(1.0, "holds"), (0.5, "holds"), (0.3, "fails"), (3.0, "fails")])
def test_bounded_energy(rate: float, answer: str) -> None:
    found = bounded("BS", table_of(lambda s, stage: decay(rate if s.kind == "VC" else 0.4)))
    assert found.answer == answer
    share = f"{rate**8:.2g}"
    assert f"Median E_T/E_0 {share}; plain diffusion {0.4**8:.2g}" in found.evidence
    more = 20 if rate > 0.4 else 0
    assert f"which is less on {more} of 20 graphs" in found.evidence


def test_networks_that_are_lost_are_not_bounded() -> None:
    lost = np.where(np.arange(20) < 19, np.nan, 100.0) * np.ones((9, 1))
    lost[0] = 100.0
    found = bounded("AC", table_of(lambda s, stage: lost if stage == "end" and s.name == "AC" else decay(1.0)))
    assert found.answer == "fails"
    assert "trained: 1 of 20 graphs" in found.evidence
    assert "0 fell below, 0 rose above, 19 diverged" in found.evidence
    assert "best epoch: 20 of 20 graphs" in found.evidence


def test_a_dip_below_on_the_way_counts() -> None:
    dip = np.full((9, 1), 100.0)
    dip[4] = 0.01
    assert bounded("ST", table_of(lambda s, stage: dip)).answer == "fails"


def test_vector_against_scalar() -> None:
    more = table_of(lambda s, stage: decay(0.9 if s.kind == "VC" else 0.8))
    less = table_of(lambda s, stage: decay(0.7 if s.kind == "VC" else 0.8))
    assert conserves("ST", more).answer == "holds"
    assert conserves("ST", less).answer == "fails"
    gone = table_of(lambda s, stage: np.r_[np.ones(8), np.nan][:, None] if s.kind == "VC" else decay(0.8))
    found = conserves("F", gone)
    assert found.answer == "undecided"
    assert "trained: more on no graph; diverged: 0 SC, 20 VC" in found.evidence


def test_depth_of_h2gcn() -> None:
    assert deeper(table_of(lambda s, stage: decay(2.0)), 4).answer == "fails"
    assert deeper(table_of(lambda s, stage: np.nan), 4).answer == "undecided"


def test_every_statement_has_an_answer() -> None:
    found = verdicts(table_of(lambda s, stage: decay(0.9)), 4)
    assert len(found) == 2 + 1 + 7 + 1 + 4
    assert len({answer.statement for answer in found}) == 15
    assert all(answer.evidence and answer.summary for answer in found)


def test_other_networks_are_asked_for_their_energy() -> None:
    """A network that the paper does not speak of, and the statements about those that are not there."""
    subjects = make_subjects({"models": ["mlp", "gcn"], "reactions": []})
    energy = {n: decay(0.9) * np.ones((9, 20)) for n in ("energy", "normalised", "mad", "rank")}
    table = EnergyTable(subjects, {(s.name, s.kind, stage): energy for s in subjects for stage in STAGES}, {})
    found = verdicts(table, 4)
    assert [answer.statement.partition(":")[0] for answer in found] == ["GCN", "MLP"]
    assert found[1].answer == "holds"
    assert "at layer 8" in found[1].evidence
    gone = keeps(Subject("MLP"), EnergyTable(subjects, {("MLP", "-", s): {"energy": decay(0.1)} for s in STAGES}, {}))
    assert gone.answer == "undecided"
    assert "trained: 0 of 1 graphs" in gone.evidence


# ---------------------------------------------------------------------- curves and table
def test_lines_are_medians_of_the_networks_that_are_left() -> None:
    energy = np.arange(20.0) + 10 * np.arange(9.0)[:, None]
    energy[5:, 0] = np.nan
    line = make_line(table_of(lambda s, stage: energy), Subject("BS", "VC"), "end", "BS", "linear")
    assert line.mean[0] == 9.5
    assert line.mean[5] == 60.0
    assert line.alive.tolist() == 5 * [20] + 4 * [19]
    assert (line.low[0], line.high[0]) == pytest.approx((1.9, 17.1))
    assert line.members - line.alive[-1] == 1


def test_figures_compare_what_they_say() -> None:
    table = table_of(lambda s, stage: decay(0.9 if stage == "end" else 0.8) * (2 if s.kind == "SC" else 1))
    family = family_curves(table)
    assert len(family) == 2 * (5 + 4 + 3)
    assert {c.group for c in family} == set(families(table)) == {
        "compared methods", "GREAD, linear reactions (VC)", "GREAD, classical reactions (VC)",
    }  # fmt: skip
    for curve in family:
        assert curve.mean[1] == pytest.approx(90 if curve.dash == 0 else 80)
        assert curve.name.endswith(" trained" if curve.dash == 0 else " untrained")
    pairs = beta_curves(table)
    assert len(pairs) == 7 * 4
    for k, name in enumerate(REACTIONS):
        own = pairs[4 * k : 4 * k + 4]
        assert {c.group for c in own} == {name}
        assert [c.name for c in own] == ["SC, trained", "VC, trained", "SC, untrained", "VC, untrained"]
        assert [c.mean[1] for c in own] == pytest.approx([180, 90, 160, 80])


def test_the_table_has_medians_and_accuracies() -> None:
    table = table_of(lambda s, stage: decay(0.5))
    table.results["BS", "VC"][0].update(status="diverged in epoch 1", best_epoch=0, test_accuracy=0.0)
    rows = [row for row in summary_rows(table) if (row["network"], row["beta"]) == ("BS", "VC")]
    assert [row["stage"] for row in rows] == list(STAGES)
    assert (rows[2]["E_0"], rows[2]["E_5"], rows[2]["E_T/E_0"]) == (100.0, 3.125, pytest.approx(0.5**8, rel=1e-5))
    assert (rows[2]["failed"], rows[2]["accuracy"], rows[2]["std"]) == (1, 75.0, 0.0)
