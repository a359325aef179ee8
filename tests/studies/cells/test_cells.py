"""Cells of trainings against single trainings, tests of means against scipy's and the formulas, and their words."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gread.comparison import Estimate, Gap, row_answer, tally
from gread.datasets.embedded import karate
from gread.datasets.node_data import NodeData
from gread.datasets.synthetic import csbm
from gread.settings.config import Config
from gread.settings.published_tables import published_ablations, published_depths, published_ranking, published_tests
from gread.settings.trials import Trial, make_trials
from gread.training.trainer import Trained, train
from rdgraph.errors import FileError, InvalidArgument, NotApplicable
from studies.cells import cell as cells
from studies.cells.cell import BOUNDED, REACTIONS, SETS, Cell, Variation, published_config, train_cell, train_cells
from studies.paper.families import better_by_signs, standings
from studies.runs.report_only import rebuild_report
from studies.runs.study import Study, execute
from studies.runs.study_run import StudyRun
from studies.runs.tables import MutableRow

TINY = Config().updated({"hidden": 4, "epochs": 3})


def test_a_cell_is_its_trainings() -> None:
    both = Cell("two", ("karate",), (Variation({"name": "a"}, TINY), Variation({"name": "b"}, TINY)), 2, 2)
    rows = train_cell(both, lambda _: karate(), "cpu")
    alone = train(karate(), make_trials(TINY, range(2), range(2)), device="cpu")
    assert [(r["name"], r["seed"], r["split"]) for r in rows] == [
        (name, seed, split) for name in "ab" for seed in (0, 1) for split in (0, 1)
    ]
    np.testing.assert_allclose([float(r["test_accuracy"]) for r in rows], [*alone.test_accuracy] * 2)
    np.testing.assert_allclose([float(r["val_accuracy"]) for r in rows], [*alone.val_accuracy] * 2)


def test_a_cell_of_several_graphs_keeps_their_names() -> None:
    rows = train_cell(Cell("g", ("x", "y"), (Variation({"k": 1}, TINY),), 1), lambda _: karate(), "cpu")
    assert [r["dataset"] for r in rows] == ["x", "y"]
    assert rows[0]["test_accuracy"] == rows[1]["test_accuracy"]
    with pytest.raises(InvalidArgument, match="expected graphs"):
        Cell("none", (), (Variation({}, TINY),))


def test_a_cell_that_fails_is_told_of_and_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def fake(cell: Cell, *_: object) -> list[MutableRow]:
        tried.append(cell.name)
        if cell.name == "bad" and len(tried) < 3:
            raise NotApplicable("expected a linear equation, got another")
        return [{"dataset": "x", "split": 0, "seed": 0, "test_accuracy": 0.5}]

    monkeypatch.setattr(cells, "train_cell", fake)
    both = [Cell(name, ("x",), (Variation({}, TINY),)) for name in ("good", "bad")]
    counts: list[int] = []

    def body(run: StudyRun) -> None:
        counts.append(len(train_cells(run, both).rows))

    study = Study("some-cells", "Cells", "Are they trained?", body)
    page = execute(study, tmp_path / "run").read_text(encoding="utf-8")
    told = "1 of 2 cells could not be trained. bad: expected a linear equation"
    assert told in page
    for _ in range(2):  # told again, and once more from what that wrote
        assert told in rebuild_report(study, tmp_path / "run").read_text(encoding="utf-8")
    page = execute(study, tmp_path / "run").read_text(encoding="utf-8")
    assert "could not be trained" not in page
    assert (tried, counts) == (["good", "bad", "bad"], [1, 1, 1, 2])
    assert "could not be trained" not in rebuild_report(study, tmp_path / "run").read_text(encoding="utf-8")
    (tmp_path / "run" / "parts" / "bad.csv").unlink()
    with pytest.raises(FileError, match="1 part, the first of them bad"):
        rebuild_report(study, tmp_path / "run")


def numbered_cells() -> list[Cell]:
    return [
        Cell("first", ("x",), (Variation({"k": 0}, TINY),), 2),
        Cell("other", ("y",), (Variation({"k": 1}, TINY),), 2),
        Cell("wide", ("x",), (Variation({"k": 2}, TINY.updated({"hidden": 6, "epochs": 5})),), 3),
        Cell("there", ("x",), (Variation({"k": 3}, TINY),), 1),
    ]


def graph_named(name: str) -> NodeData:
    """Graphs of different sizes."""
    return {"x": karate, "y": lambda: csbm(n=30, features=5)}[name]()


@pytest.mark.slow
def test_cells_are_trained_beside_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a card: the same numbers as cell by cell, on whatever graphs; one that cannot be trained takes no other
    with it."""
    sizes: list[int] = []

    def counted(data: object, trials: list[Trial], **options: Any) -> Trained:
        sizes.append(len(trials))
        return train(data, trials, **options)  # type: ignore[arg-type]

    def refused(data: object, trials: list[Trial], **options: Any) -> Trained:
        if len(trials) > 3:
            sizes.append(len(trials))
            raise RuntimeError("out of memory")
        return counted(data, trials, **options)

    wanted = numbered_cells()
    bad = Cell("bad", ("y",), (Variation({"k": 4}, TINY.updated({"reaction": "cos(t)*H", "method": "exact"})),), 1)
    found: dict[str, list[MutableRow]] = {}

    def body(run: StudyRun) -> None:
        found[run.folder.name] = train_cells(run, cells_of_run[run.folder.name], graph_named).rows

    cells_of_run = {"alone": wanted, "beside": wanted, "with": [*wanted, bad], "refused": [*wanted, bad]}
    study = Study("some-cells", "Cells", "Are they trained?", body)
    monkeypatch.setattr(cells, "train", counted)
    execute(study, tmp_path / "alone")
    assert sizes == [2, 2, 3, 1]
    monkeypatch.setattr(cells, "is_side_by_side", lambda device: True)
    shutil.copytree(tmp_path / "alone", tmp_path / "beside")
    for name in ("first", "other", "wide"):
        (tmp_path / "beside" / "parts" / f"{name}.csv").unlink()
    sizes.clear()
    execute(study, tmp_path / "beside")
    assert sizes == [7]
    assert [row["k"] for row in found["beside"]] == [row["k"] for row in found["alone"]]
    for one, other in zip(found["alone"], found["beside"], strict=True):
        assert (one["split"], one["best_epoch"]) == (other["split"], other["best_epoch"])
        assert one["test_accuracy"] == pytest.approx(other["test_accuracy"], abs=1e-6)
    sizes.clear()
    page = execute(study, tmp_path / "with").read_text(encoding="utf-8")
    assert "1 of 5 cells could not be trained. bad" in page
    assert len(found["with"]) == len(found["alone"])
    assert sizes == [9, 1]  # the others were done before it failed
    sizes.clear()
    monkeypatch.setattr(cells, "train", refused)
    execute(study, tmp_path / "refused")
    assert sizes == [9, 2, 2, 3, 1, 1]  # together once, then each alone
    assert found["refused"] == found["alone"]
    monkeypatch.setattr(cells, "train", counted)
    monkeypatch.setattr(cells, "TOGETHER", 4)
    sizes.clear()
    execute(study, tmp_path / "beside" / "with")
    assert sizes == [4, 4, 1]


def test_cells_that_are_done_are_kept_and_the_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is cut off has the cells that were done; the next one goes on with all that it began with."""
    asked: list[tuple[int, bool]] = []

    def cut(data: object, trials: list[Trial], **options: Any) -> Trained:
        finished = options.pop("finished")

        def once(*given: Any) -> None:
            finished(*given)
            raise KeyboardInterrupt

        return train(data, trials, finished=once, **options)  # type: ignore[arg-type]

    def whole(data: object, trials: list[Trial], **options: Any) -> Trained:
        asked.append((len(trials), (options["checkpoint"] / "batches.json").exists()))
        return train(data, trials, **options)  # type: ignore[arg-type]

    rows: list[MutableRow] = []
    study = Study(
        "some-cells", "Cells", "Are they trained?",
        lambda run: rows.extend(train_cells(run, numbered_cells(), graph_named).rows),
    )  # fmt: skip
    monkeypatch.setattr(cells, "is_side_by_side", lambda device: True)
    monkeypatch.setattr(cells, "train", cut)
    with pytest.raises(KeyboardInterrupt):
        execute(study, tmp_path / "run")
    parts = {path.stem for path in (tmp_path / "run" / "parts").iterdir()}
    assert 0 < len(parts) < 4
    monkeypatch.setattr(cells, "train", whole)
    execute(study, tmp_path / "run")
    assert asked == [(8, True)]
    assert [row["k"] for row in rows] == [0] * 2 + [1] * 2 + [2] * 3 + [3]
    assert not (tmp_path / "run" / cells.CHECKPOINTS).exists()


# ---------------------------------------------------------------------- words
def test_a_wrong_number_is_flagged() -> None:
    own = Estimate(88.0, 1.5, 10)
    assert Gap.between(own, 88.4, 1.2).word == "reproduced"
    assert Gap.between(own, 82.0, 1.2).word == "above"
    assert Gap.between(own, 93.0, None).word == "below"
    assert Gap.between(Estimate(80.0, 6.0, 10), 84.0, 6.0).word == "within noise"
    right = [Gap.between(own, 88.0 + d, 1.5) for d in (-0.3, 0.1, 0.4)]
    assert row_answer(right) == "holds"
    assert row_answer([*right, Gap.between(own, 95.0, 1.5)]) == "fails"
    assert tally(gap.word for gap in right) == "3 reproduced"


# ---------------------------------------------------------------------- published facts
def test_published_tables_are_whole() -> None:
    assert {(row.setting, row.reaction, row.dataset) for row in published_ablations()} == {
        (option, reaction, dataset) for option in ("OA", "SA", "SC", "VC") for reaction in REACTIONS for dataset in SETS
    }
    assert len(published_ablations()) == 252
    assert len(published_depths()) == 12
    assert [row.dataset for row in published_tests()] == list(SETS)
    assert len(published_ranking()) == 35
    sources = {row.source for table in (published_ablations(), published_depths(), published_tests()) for row in table}
    assert all("Table " in source and "_" not in source for source in sources)


def test_reactions_inside_tanh_are_bounded_forms_of_the_printed_ones() -> None:
    import sympy as sp

    from rdgraph import parse

    for name, text in BOUNDED.items():
        printed, bounded = (parse(t).text for t in (name, text))
        inner = printed.partition("beta*")[2]
        assert bounded.partition("beta*")[2].startswith("tanh(")
        H = sp.Symbol("H")
        value = {k: sp.sympify(t, {"H": H}) for k, t in (("p", inner), ("b", bounded.partition("beta*")[2]))}
        assert sp.simplify(value["b"] - sp.tanh(value["p"])) == 0
    assert published_config("paper", "AC", "cornell").model == published_config("paper", "AC", "cornell_old").model


def test_numbers_that_differ_by_rounding_share_a_rank() -> None:
    means = {("a", "x"): 83.51351351, ("b", "x"): 83.51352767, ("c", "x"): 83.5}  # 309 of 370 nodes, summed in two ways
    found = {s.method: s for s in standings(means, ["x"])}
    assert (found["a"].rank, found["b"].rank, found["c"].rank) == (1.5, 1.5, 3.0)
    assert (found["a"].gold, found["b"].gold, found["c"].bronze) == (1, 1, 1)
    own, other = [1.0, 2.0, 3.0, 4.0], [1.0 + 1e-6, 1.0, 2.0, 3.0]
    assert better_by_signs(own, other) == better_by_signs(own[1:], other[1:])
    assert better_by_signs([1.0], [1.0 + 1e-6]) == 1.0


def test_ranks_and_medals() -> None:
    means = {("a", "x"): 3.0, ("b", "x"): 2.0, ("c", "x"): 1.0, ("a", "y"): 1.0, ("b", "y"): 3.0, ("c", "y"): 3.0,
             ("d", "x"): 9.0}  # fmt: skip
    found = {s.method: s for s in standings(means, ["x", "y"])}
    assert set(found) == {"a", "b", "c"}  # d has no number on y
    assert (found["a"].rank, found["b"].rank, found["c"].rank) == (2.0, 1.75, 2.25)
    assert (found["b"].gold, found["b"].silver, found["a"].bronze, found["c"].gold) == (1, 1, 1, 1)
