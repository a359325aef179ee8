"""Forensics: completions change what they say, explanations of planted rows, class 0, the authors' cells."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gread.datasets.embedded import karate
from gread.settings.presets import authors_cells, find_published
from gread.settings.trials import Trial
from gread.training.trainer import train
from studies.cells.cell import REACTIONS, SETS, Variation, published_config, shrunk
from studies.paper import forensics
from studies.paper import forensics as ways
from studies.paper.forensics import (
    authors_table,
    authors_verdict,
    cell_table,
    class_zero,
    explained,
    explanations,
    gaps_of,
    row_verdict,
)
from studies.registered_studies import find_study
from studies.runs.study import execute
from studies.runs.tables import MutableRow, read_rows
from tests.studies.paper.planted import planted_rows


def planted(completion: str, shift: dict[str, float], default: float = 0.0) -> list[MutableRow]:
    """AC on the nine sets: the printed mean, shifted."""
    rows = []
    for dataset in SETS:
        paper = find_published("GREAD-AC", dataset)
        assert paper is not None
        mean = paper.mean + shift.get(dataset, default)
        rows += planted_rows(mean, 1.0, dataset, completion=completion, reaction="AC")
    return rows


def test_too_few_sets_say_nothing() -> None:
    few = [row for row in planted(ways.PRINTED, dict.fromkeys(SETS, -20.0)) if row["dataset"] in SETS[:3]]
    found = explained("AC", gaps_of(few), ())
    assert (found["answer"], row_verdict(found)[1]) == ("open, with 3 of 9 sets", "undecided")
    assert "Rows open, for lack of sets: 1 (AC)." in forensics.answer([found], [])


@pytest.mark.parametrize(
    ("reached", "answer"), [(9, "explained by tanh"), (7, "explained by tanh"), (6, "not explained")]
)
def test_seven_of_nine_sets_explain_a_row(reached: int, answer: str) -> None:
    far = dict.fromkeys(SETS[reached:], -20.0)
    rows = planted(ways.PRINTED, {}, -20.0) + planted("tanh", far) + planted("ReLU", {}, -19.0)
    found = explained("AC", gaps_of(rows), ("ReLU", "tanh", "row features"))
    assert (found["answer"], found["nearest"], found["within"], found["as_printed"]) == (answer, "tanh", reached, 0)
    statement, verdict, evidence = row_verdict(found)
    assert verdict == ("holds" if reached >= 7 else "fails")
    kept = {"statement": statement, "answer": verdict, "evidence": evidence}
    assert explanations({"verdicts": [kept]}) == {"GREAD-AC": answer}


def test_a_row_that_is_reached_is_not_explained_by_anything_else() -> None:
    found = explained("AC", gaps_of(planted(ways.PRINTED, {"film": -20.0}) + planted("tanh", {})), ("tanh",))
    assert (found["answer"], found["nearest"], found["within"]) == ("reached as printed", ways.PRINTED, 8)


def test_a_completion_that_changes_nothing_on_a_set_has_the_printed_number() -> None:
    part = [row for row in planted("tanh", {}) if row["dataset"] in SETS[:3]]
    found = explained("AC", gaps_of(planted(ways.PRINTED, dict.fromkeys(SETS[:3], -20.0)) + part), ("tanh",))
    assert (found["answer"], found["within"], found["as_printed"]) == ("explained by tanh", 9, 6)


def test_completions_change_one_thing_and_cover_what_is_open() -> None:
    changed = set()
    for reaction in REACTIONS:
        for dataset in SETS:
            base = published_config("paper", reaction, dataset)
            for name in ways.TRAINED:
                other = ways.completed(base, reaction, name)
                one, two = base.sections(), other.sections()
                different = {k for part in one for k in one[part].keys() | two[part].keys()
                             if one[part].get(k) != two[part].get(k)}  # fmt: skip
                assert len(different) <= (2 if name == "no hidden layers" else 1), (name, different)
                changed |= {name} if different else set()
    assert changed == set(ways.TRAINED)


def test_rules_are_read_from_the_learning_curves() -> None:
    config = shrunk(published_config("paper", "BS", "texas"), 6, 4)
    one = Variation({"completion": ways.PRINTED, "reaction": "BS"}, config)
    done = train(karate(), [Trial(config, split, 0) for split in range(2)], device="cpu", keep_best=False)
    rows = ways.ruled_rows([("karate", one)] * 2, done)
    curves = done.history[:, :, 3]
    by_rule = {rule: [r["test_accuracy"] for r in rows if r["completion"] == rule] for rule in ways.RULES}
    np.testing.assert_allclose(by_rule["last epoch"], curves[:, -1])
    np.testing.assert_allclose(by_rule["selection on test"], curves.max(axis=1))
    assert len(rows) == 6


def test_the_authors_cells_are_trained_as_they_were() -> None:
    cells = ways.authors_part(authors_cells(), {"authors_sets": SETS, "epochs": 0, "hidden": 0})
    assert len(cells) == len({cell.name for cell in cells}) == 31
    assert {cell.splits for cell in cells} == {5}
    configs = {cell.name: cell.variations[0].config.gread for cell in cells}
    assert configs["authors-FB-texas-free"].reaction == "FB-released"
    assert "tanh" in configs["authors-AC-texas-free-tanh"].reaction
    assert configs["authors-AC-texas-free-row"].row_features
    assert configs["authors-AC-cora-sigmoid"].beta_link == "sigmoid"


def test_a_training_that_diverges_at_once_counts_as_class_zero() -> None:
    data = karate()
    expected = float(np.mean(data.y[np.asarray(data.masks.test[1], dtype=bool)] == 0))
    assert class_zero("film", 1, lambda _: data) == expected
    rows = planted_rows(0.0, 0.0, "film", splits=5, completion="authors-F-film-free", reaction="F")
    failed = [{**row, "status": "diverged at epoch 1", "best_epoch": 0} for row in rows]
    shares = [100 * class_zero("film", split, lambda _: data) for split in range(5)]
    (found,) = authors_table(failed, lambda _: data)
    assert found["mean"] == pytest.approx(np.mean(shares), abs=1e-3)
    assert found["at_once"] == 5
    (late,) = authors_table([{**row, "status": "diverged at epoch 9"} for row in rows], lambda _: data)
    assert (late["mean"], late["at_once"]) == (0.0, 0)


def test_agreement_with_the_authors_code_is_counted() -> None:
    rows = [row for cell in authors_cells()
            for row in planted_rows(cell.mean, cell.std, cell.dataset, splits=5, reaction=cell.reaction,
                                    completion=ways.authors_name(cell))]  # fmt: skip
    table = authors_table(rows)
    assert authors_verdict(table)[1] == "holds"
    for count, answer in ((3, "holds"), (4, "fails")):
        spoilt = [{**row, "verdict": "below"} if k < count else row for k, row in enumerate(table)]
        assert authors_verdict(spoilt)[1] == answer
    assert authors_verdict(table[:30])[1] == "undecided"


def test_the_small_mode_runs_and_resumes(tmp_path: Path) -> None:
    study = find_study("forensics")
    changes = {"reactions": ["FB"], "completions": ["released reaction"]}
    folder = execute(study, tmp_path / "run", small=True, changes=changes).parent
    names = sorted(path.name for path in (folder / "parts").iterdir())
    assert names == ["as_printed-FB-karate.csv", "released_reaction-FB-karate.csv"]
    (folder / "parts" / names[1]).unlink()
    before = (folder / "results.csv").read_bytes()
    execute(study, tmp_path / "run", small=True, changes=changes)
    assert (folder / "results.csv").read_bytes() == before
    found = {row["completion"] for row in read_rows(folder / "results.csv")}
    assert found == {ways.PRINTED, *ways.RULES, "released reaction"}


def test_every_completion_of_a_cell_is_in_the_table() -> None:
    table = cell_table(planted(ways.PRINTED, {}) + planted("tanh", {}, -20.0))
    assert [row["verdict"] for row in table] == ["reproduced"] * 9 + ["below"] * 9
