"""The studies of the paper's tables: the small modes, resuming, and verdicts on rows that were planted."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gread.settings.presets import published_results
from gread.settings.published_tables import published_ablations, published_depths
from rdgraph.errors import FileError
from studies.cells import cell as cells
from studies.cells.cell import REACTIONS, SETS, published_config
from studies.paper import ablation, classification, complexity, depth, embeddings, paired_rows, runtime, wellposedness
from studies.paper.ablation import BETAS, best_options, options_of
from studies.paper.classification import (
    Others,
    best_verdicts,
    lead,
    ranking_verdict,
    reading_verdicts,
    row_verdicts,
    twin_verdicts,
)
from studies.paper.families import family_configs, make_cells, measured_baselines, searched_rows, standings
from studies.registered_studies import find_study
from studies.results import read_result
from studies.runs.kept_page import keep
from studies.runs.study import execute
from studies.runs.tables import MutableRow, read_rows
from tests.studies.paper.page_words import SAID
from tests.studies.paper.planted import planted_rows

NAMES = (
    "classification", "ablation", "sensitivity", "depth", "homophily", "significance", "runtime", "embeddings",
    "complexity", "wellposedness",
)  # fmt: skip
#: Seconds of the processor that a small mode may take; on a quiet machine that is the time on the clock.
MOST_SECONDS = 30.0
#: Bytes of a page.
MOST_BYTES = 1_000_000


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.slow
def test_the_small_mode_answers_and_resumes(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    began = time.process_time()
    report = execute(find_study(name), tmp_path / name, small=True)
    assert time.process_time() - began < MOST_SECONDS
    outline = json.loads((tmp_path / name / "report.json").read_text(encoding="utf-8"))
    assert outline["state"] == "done"
    assert len(outline["answer"]) > 40
    assert outline["figures"]
    page = report.read_text(encoding="utf-8")
    assert (
        page.index('id="answer"') < page.index('class="sentence"') < page.index("<figure") < page.index('id="results"')
    )
    assert "<math " in page
    assert len(page.encode()) < MOST_BYTES
    for words in SAID.get(name, ((), ()))[0]:
        assert words in page
    for words in SAID.get(name, ((), ()))[1]:
        assert words not in page
    assert (tmp_path / name / "results.parquet").is_file()
    results = (tmp_path / name / "results.csv").read_bytes()

    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("trained again")

    monkeypatch.setattr(cells, "train", never)
    monkeypatch.setattr(runtime, "epoch_times", never)
    monkeypatch.setattr(embeddings, "train_first_splits", never)
    monkeypatch.setattr(complexity, "run_seconds", never)
    monkeypatch.setattr(wellposedness, "train_first_splits", never)
    execute(find_study(name), tmp_path / name, small=True)
    assert (tmp_path / name / "results.csv").read_bytes() == results
    if name not in ("runtime", "embeddings", "complexity", "wellposedness"):
        import pyarrow.parquet

        table = pyarrow.parquet.read_table(tmp_path / name / "trials.parquet")
        parts = [row for path in (tmp_path / name / "parts").glob("*.csv") for row in read_rows(path)]
        assert table.num_rows == len(parts)
    (tmp_path / "docs").mkdir()
    kept = keep(tmp_path / name, tmp_path, tmp_path / "docs").read_text(encoding="utf-8")
    assert outline["answer"] in kept
    assert (tmp_path / "docs" / "figures" / f"{name}.png").is_file()


# ---------------------------------------------------------------------- classification
def printed_rows(shift: dict[tuple[str, str], float]) -> list[MutableRow]:
    """The paper's own seven rows as if they had been trained here, some of them moved."""
    return [
        row
        for p in published_results()
        if p.method.startswith("GREAD-")
        for row in planted_rows(
            p.mean + shift.get((p.method, p.dataset), 0.0), p.std or 1.0, p.dataset, family="paper", method=p.method
        )
    ]


def test_the_kept_answer_is_that_of_the_kept_numbers() -> None:
    kept = read_result("classification")
    rows = [dict(zip(kept["results"]["columns"], row, strict=True)) for row in kept["results"]["rows"]]
    assert kept["answer"] == classification.answer(rows)


def test_the_printed_table_reproduces_itself_and_a_planted_number_is_flagged() -> None:
    found = classification.measured(printed_rows({}), SETS)
    assert len(found.gaps) == 63
    assert {gap.word for gap in found.gaps.values()} == {"reproduced"}
    assert {answer for _, answer, _ in row_verdicts(found, classification.SHEET.entries["with"])} == {"holds"}
    reproduced = classification.answer(classification.cell_table(printed_rows({}), SETS))
    assert reproduced.startswith("With the paper's settings, 63 of 63 accuracies")
    assert "diverged" not in reproduced
    for row in classification.wide_table(found):
        assert len(row) == 2 + len(SETS) + 1
        for dataset in SETS:
            ours, theirs = str(row[dataset]).split(" / ")
            assert float(ours.split(" ± ")[0]) == pytest.approx(float(theirs.split(" ± ")[0]), abs=0.011)
        ours, theirs = str(row["average"]).split(" / ")
        assert float(ours) == pytest.approx(float(theirs), abs=0.011)
    moved = classification.measured(printed_rows({("GREAD-ST", "cora"): -8.0}), SETS)
    table = classification.cell_table(printed_rows({("GREAD-ST", "cora"): -8.0}), SETS)
    (flagged,) = [row for row in table if row["verdict"] not in ("reproduced", "within noise")]
    assert (flagged["method"], flagged["dataset"], flagged["verdict"]) == ("GREAD-ST", "cora", "below")
    assert classification.answer(table).startswith("With the paper's settings, 62 of 63 accuracies")
    above = classification.cell_table(printed_rows({("GREAD-ST", "cora"): 8.0}), SETS)
    assert classification.answer(above).startswith("With the paper's settings, 62 of 63 accuracies")  # it is not within
    lost = [{**row, "diverged": int(row is flagged)} for row in table]
    assert "diverged in 1 of them, 1 of which are below; over the other 62" in classification.answer(lost)
    assert classification.answer(lost).endswith("the mean difference is +0.00 points.")
    answers = {statement: answer for statement, answer, _ in row_verdicts(moved, classification.SHEET.entries["with"])}
    assert answers.pop("GREAD-ST in Table 8 is reproduced with the paper's settings.") == "fails"
    assert set(answers.values()) == {"holds"}


@pytest.mark.parametrize(("shift", "answer", "words"), [
    (1.0, "holds", "place 1 of 2 with the average rank 1.00 and 9 gold"),
    (0.0, "undecided", "place 1 of 2, shared with Other, with the average rank 1.50"),
    (-1.0, "fails", "place 2 of 2 with the average rank 2.00 and 0 gold, 9 silver"),
    ([1.0] * 5 + [-1.0] * 4, "undecided", "place 1 of 2 with the average rank 1.44 and 5 gold"),
    ([1.0] * 4 + [-1.0] * 5, "undecided", "place 2 of 2 with the average rank 1.56 and 4 gold"),
])  # fmt: skip
def test_the_top_of_the_ranking_may_be_shared_or_within_noise(
    shift: float | list[float], answer: str, words: str
) -> None:
    found = classification.measured(printed_rows({}), SETS)
    shifts = dict(zip(SETS, shift if isinstance(shift, list) else [shift] * len(SETS), strict=True))
    others = {("Other", s): found.estimates["paper", "GREAD-BS", s].mean - shifts[s] + 1e-5 for s in SETS}
    own = {("GREAD-BS", s): found.estimates["paper", "GREAD-BS", s].mean for s in SETS}
    (verdict,) = ranking_verdict(found, standings({**own, **others}, SETS), others)
    assert verdict[1] == answer
    assert words in verdict[2]
    assert "Table 7 prints the average rank 1.56 and 5 gold, 4 silver, 0 bronze" in verdict[2]


def ratio(dataset: str) -> float:
    """n_test/n_train of the public splits."""
    return 20 / 48


def test_a_rival_of_the_same_splits_is_tested_in_pairs() -> None:
    """The same means: significant where the differences hardly vary over the splits, not where they do."""
    found = classification.measured(printed_rows({}), SETS)
    own = found.each["paper", "GREAD-BS", "texas"]
    for spread, is_sure in ((0.1, True), (5.0, False)):
        theirs = {k: value + 2.0 + spread * (-1) ** k for k, value in own.items()}
        others = Others({("GCN", "texas"): float(np.mean(list(theirs.values())))}, {("GCN", "texas"): theirs}, "here")
        difference, p = lead(found, others, "GREAD-BS", "GCN", "texas", 20 / 48)
        assert difference == pytest.approx(-2.0)
        assert (p < 0.05) == is_sure
    unpaired = lead(found, Others(others.means, {}, "as printed"), "GREAD-BS", "GCN", "texas", 20 / 48)
    assert unpaired[0] == pytest.approx(-2.0)
    assert unpaired[1] > 0.3


def test_statements_about_the_whole_table() -> None:
    means = {(p.method, p.dataset): p.mean for p in published_results() if not p.method.startswith("GREAD-")}
    others = Others(means, {}, "as printed")
    printed = best_verdicts(classification.measured(printed_rows({}), SETS), others, ratio)
    assert [answer for _, answer, _ in printed] == ["holds", "holds", "holds"]  # the paper is right about its own table
    low = printed_rows({("GREAD-BS", s): -12.0 for s in SETS} | {(f"GREAD-{r}", "cora"): -9.0 for r in REACTIONS})
    lower = best_verdicts(classification.measured(low, SETS), others, ratio)
    assert [answer for _, answer, _ in lower] == ["fails", "fails", "fails"]


def test_readings_and_twins() -> None:
    rows = printed_rows({("GREAD-FB", s): -10.0 for s in SETS})
    rows += [{**row, "family": "released"} for row in printed_rows({}) if row["method"] == "GREAD-FB"]
    rows += planted_rows(40.0, 2.0, "chameleon_filtered", family="paper", method="GREAD-BS")
    found = classification.measured(rows, SETS)
    ((statement, answer, evidence),) = reading_verdicts(found)
    assert (statement, answer) == ("GREAD-FB as released comes nearer to Table 8 than as printed.", "holds")
    assert "nearer on 9 of 9 sets" in evidence
    ((statement, answer, _),) = twin_verdicts(found, ratio)
    assert (statement, answer) == ("GREAD-BS is less accurate on chameleon_filtered than on chameleon.", "holds")


def test_every_reading_has_its_configurations(tmp_path: Path) -> None:
    full = make_cells(classification.settings(False))
    assert len(full) == 63 + 9 + 18 + 27 + 21
    assert len({cell.name for cell in full}) == len(full)
    texas = family_configs("paper", "texas", REACTIONS)
    assert texas["FB"].model.reaction == "FB"  # type: ignore[attr-defined]
    assert family_configs("tanh", "texas", REACTIONS).keys() == {"F", "AC", "Z"}
    for read in (measured_baselines, lambda path: searched_rows(REACTIONS, SETS, path)):
        with pytest.raises(FileError):
            read(tmp_path / "none.json")
    row = {"model": "gcn", "dataset": "cora", "mean": 87.0, "each": [86.0, 88.0]}
    (tmp_path / "some.json").write_text(json.dumps({"rows": [row], "command": "measured"}))
    found = {"contestant": "BS", "dataset": "cora", "metric": "accuracy", "val_mean": 90.0, "each": [88.0, 89.0]}
    kept = [found, {**found, "contestant": "mlp"}, {**found, "metric": "roc_auc"}]
    (tmp_path / "found.json").write_text(json.dumps({"rows": kept}))
    rows = searched_rows(REACTIONS, SETS, tmp_path / "found.json")
    assert [(r["family"], r["method"], r["split"], r["test_accuracy"]) for r in rows] == [
        ("searched", "GREAD-BS", 0, 0.88), ("searched", "GREAD-BS", 1, 0.89)
    ]  # fmt: skip
    measured = measured_baselines(tmp_path / "some.json")
    assert measured.means == {("GCN", "cora"): 87.0}
    assert measured.each == {("GCN", "cora"): {0: 86.0, 1: 88.0}}


# ---------------------------------------------------------------------- ablation
def ablation_rows(moves: dict[str, float]) -> list[MutableRow]:
    """Every option at 80 percent, moved by its adjacency and its beta."""
    rows: list[MutableRow] = []
    for reaction in REACTIONS:
        for dataset in SETS:
            for adjacency, beta in dict.fromkeys(options_of(reaction, dataset).values()):
                mean = 60 + moves.get(adjacency, 0.0) + moves.get(beta, 0.0)
                std = 1 + abs(mean - 60) / 100  # so that differences are not the same on all splits
                rows += planted_rows(mean, std, dataset, reaction=reaction, adjacency=adjacency, beta=beta)
    return rows


def test_kind_and_sign_of_beta_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paired_rows, "share_ratio", lambda _: 20 / 48)
    monkeypatch.setattr(paired_rows, "load_set", lambda name: name)
    # A free sign brings four points, a vector nothing: VC against SC alone would praise the vector.
    rows = ablation_rows({"VC": 4.0, "SC±": 4.0, "SA": -2.0})
    effects = ablation.effect_table(ablation.by_option(rows))
    assert len(effects) == 6 * 63
    means = {e: np.mean([float(r["difference"]) for r in effects if r["effect"] == e]) for e in ablation.EFFECTS}
    assert means == pytest.approx(
        {"SA - OA": -2.0, "VC - SC": 4.0, "VC+ - SC": 0.0, "VC - SC±": 0.0, "SC± - SC": 4.0, "VC - VC+": 4.0}, abs=1e-6
    )
    answers = [answer for _, answer, _ in ablation.effect_verdicts(effects)]
    assert answers[:3] == ["fails", "fails", "holds"]
    assert answers[5:] == ["holds", "holds"]


def test_printed_options_reproduce_themselves() -> None:
    printed = {(p.reaction, p.dataset, p.setting): p for p in published_ablations()}
    options: ablation.Options = {key: planted_rows(p.mean, p.std or 1.0, p.dataset) for key, p in printed.items()}
    assert {answer for _, answer, _ in ablation.table_verdicts(options)} == {"holds"}
    options["BS", "cora", "SA"] = planted_rows(70.0, 1.0, "cora")
    assert [answer for _, answer, _ in ablation.table_verdicts(options)] == ["holds", "fails", "holds", "holds"]
    assert best_options(published_config("paper", "BS", "cora"))[0] == "SA"
    assert set(BETAS) == {"SC", "SC±", "VC+", "VC"}


# ---------------------------------------------------------------------- depth
def test_depths_beside_the_printed_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paired_rows, "share_ratio", lambda _: 20 / 48)
    monkeypatch.setattr(paired_rows, "load_set", lambda name: name)
    rows = [
        row
        for p in published_depths()
        for row in planted_rows(p.mean, p.std, "cora", method=p.method, reading=depth.SHARE, layers=p.layers)
    ]
    answers = {s: a for s, a, _ in depth.table_verdicts(depth.point_table(rows))}
    assert set(answers.values()) == {"holds"}
    assert len(answers) == 2
    ((_, answer, _),) = depth.pair_verdicts(depth.pair_table(rows))
    assert answer == "undecided"  # the printed differences are below a point, with deviations of one
    deep = [
        row
        for layers, mean in ((2, 88.0), (256, 30.0))
        for row in planted_rows(mean, 1.0, "cora", method="GREAD-FB*", reading=depth.EXACT, layers=layers)
    ]
    ((_, answer, evidence),) = depth.deep_verdicts(deep, "cora")
    assert (answer, "30.00 at 256 against 88.00 at 2" in evidence) == ("fails", True)


def test_grand_plus_takes_the_settings_of_the_same_set() -> None:
    own = published_config("paper", "ST", "cora")
    other = depth.grand_plus(own)
    assert (other.model.model, other.model.reaction) == ("grand-pp", "GRAND++")  # type: ignore[attr-defined]
    assert (other.model.hidden, other.training) == (own.model.hidden, own.training)
    assert depth.layered(other, depth.UNIT, 8).model.time == 8.0  # type: ignore[attr-defined]


# ---------------------------------------------------------------------- embeddings
def test_purity_counts_neighbours_of_the_same_class() -> None:
    draw = np.random.default_rng(0)
    labels = np.repeat([0, 1], 30)
    apart = draw.normal(size=(60, 3)) + 50 * labels[:, None]
    assert embeddings.purity(apart, labels, np.arange(60)) == 1.0
    mixed = embeddings.purity(draw.normal(size=(60, 3)), labels, np.arange(60))
    assert 0.3 < mixed < 0.7
    hidden = np.where(np.arange(60) < 5, -1, labels)  # nodes without a label neither ask nor answer
    assert embeddings.purity(apart, hidden, np.arange(60)) == 1.0


def test_states_that_draw_together_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paired_rows, "share_ratio", lambda _: 20 / 48)
    monkeypatch.setattr(paired_rows, "load_set", lambda name: name)
    rows: list[MutableRow] = [
        {"dataset": d, "split": k, "share": share, "time": 3 * share, "purity": p + 0.001 * k * (1 + share)}
        for d, ends in (("cora", (0.6, 0.9)), ("film", (0.4, 0.25)), ("texas", (0.5, 0.5)))
        for share, p in zip((0.0, 1.0), ends, strict=True)
        for k in range(10)
    ]
    tests = embeddings.purity_tests(rows)
    assert [answer for _, answer, _ in embeddings.verdicts(tests)] == ["holds", "fails", "undecided"]
    assert "rises significantly on 1 of 3 sets and falls on 1" in embeddings.answer(tests)


# ---------------------------------------------------------------------- complexity
def planted_times(power: float, reaction: str, against: str) -> list[MutableRow]:
    """Seconds that grow with that power, up to a percent."""
    return [
        {"reaction": reaction, "against": against, "value": d, "nodes": 10, "seconds": d**power,
         "least": 0.99 * d**power, "most": 1.01 * d**power}
        for d in (64, 128, 256)
    ]  # fmt: skip


def test_growth_is_decided_only_by_a_device_at_work() -> None:
    for power, answer in ((1.0, "fails"), (3.0, "holds"), (0.1, "undecided")):
        rows = planted_times(power, "AC", complexity.CHANNELS)
        ((_, found, _),) = complexity.growth_verdicts(complexity.exponent_table(rows))
        assert found == answer
    for power, answer in ((1.0, "holds"), (2.0, "fails"), (0.2, "undecided")):
        rows = planted_times(power, "BS", complexity.EDGES)
        assert next(complexity.growth_verdicts(complexity.exponent_table(rows)))[1] == answer
    noisy = [row | {"least": 0.6 * float(row["seconds"])} for row in planted_times(1.0, "AC", complexity.CHANNELS)]
    assert next(complexity.growth_verdicts(complexity.exponent_table(noisy)))[1] == "undecided"
    for power, words in ((1.0, "with the power 1.00 of dim at most"), (0.1, "hidden by overhead")):
        rows = planted_times(power, "AC", complexity.CHANNELS)
        assert words in complexity.answer(complexity.product_rows(["AC"]), complexity.exponent_table(rows))


@pytest.mark.gpu
def test_a_recorded_run_is_timed_on_a_gpu() -> None:
    """Sixteen times the steps take about sixteen times as long; other programs on the card may disturb some tries."""

    def ratio() -> float:
        (_, few), (_, many) = (complexity.run_seconds("BS", 3000, 64, 256, steps, 5, "cuda") for steps in (4, 64))
        assert min(few) > 0
        return float(min(many) / min(few))

    assert any(8 < ratio() < 32 for _ in range(8))


def test_products_are_those_of_the_equation() -> None:
    counts = complexity.product_rows(REACTIONS)
    assert {str(row["reaction"]): row["products"] for row in counts} == {name: 1 + (name == "BS") for name in REACTIONS}
    assert {answer for _, answer, _ in complexity.product_verdicts(counts)} == {"holds"}
    ((_, answer, _),) = complexity.square_verdicts(complexity.square_rows(["karate"]))
    assert answer == "holds"


# ---------------------------------------------------------------------- well-posedness
def test_proofs_follow_the_signs_of_beta() -> None:
    for reaction, beta, proved in (
        ("BS", [-2.0, 3.0], True), ("AC", [0.1], True), ("AC", [0.1, -0.1], False), ("Z", [0.3, 0.0], True),
        ("F", [0.3], False),
    ):  # fmt: skip
        assert wellposedness.lives(reaction, "row", np.array(beta)) is proved, reaction


def test_the_bound_of_the_slope_holds_for_the_matrix() -> None:
    from rdgraph import parse
    from rdgraph.graphs.normalisation import dense_operator
    from rdgraph.theory.rate_bounds import rate_bound

    draw = np.random.default_rng(0)
    W = np.triu(draw.random((12, 12)) < 0.4, 1).astype(float)
    A = dense_operator(W + W.T + np.eye(12), "row")
    L = np.eye(12) - A
    matrices = {"BS": lambda a, b: -a * L + b * (A - A @ A), "FB": lambda a, b: (b - a) * L, "ST": lambda a, b: -a * L}
    for reaction, matrix in matrices.items():
        alpha, beta = draw.uniform(0, 1, 5), draw.uniform(-1, 1, 5)
        bound = wellposedness.bound_values(rate_bound(parse(reaction), "row"), alpha, beta, 1.0)
        norms = [np.abs(matrix(a, b)).sum(1).max() for a, b in zip(alpha, beta, strict=True)]
        assert (np.array(norms) <= bound + 1e-9).all()


def test_a_network_without_a_proof_is_undecided() -> None:
    base = {"dataset": "x", "KT": 1.0, "least_beta": -1.0, "largest_beta": 1.0, "largest_entry": 1.0, "time": 1.0}
    rows: list[MutableRow] = [
        {**base, "reaction": r, "split": k, "outcome": word}
        for r, words in (("BS", ("proved", "proved")), ("F", ("proved", "not proved")), ("Z", ("proved", "diverged")))
        for k, word in enumerate(words)
    ]
    assert [answer for _, answer, _ in wellposedness.network_verdicts(rows)] == ["holds", "undecided", "undecided"]
    assert "4 of 6 trained networks: 2 of 2 with a linear reaction, 2 of 4" in wellposedness.answer(rows)
