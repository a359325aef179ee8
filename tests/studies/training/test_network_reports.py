"""Trainings of networks by name: plans, folders, published rows, figures, and the references beside every result."""

from __future__ import annotations

import math
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gread.datasets.embedded import karate
from gread.models.label_propagation import accuracies, best_propagation, majority_class
from gread.models.trained_network import Network
from gread.settings.config import Config
from gread.settings.trials import make_trials
from gread.training.trainer import train
from rdgraph.errors import InvalidArgument, UnknownName
from studies.cli import app as cli
from studies.runs.tables import read_rows
from studies.training import reference_answers
from studies.training import study as training
from studies.training.plan import Request, make_plan, read_plan
from studies.training.reference_answers import (
    CONVOLUTION,
    MAJORITY,
    PERCEPTRON,
    PROPAGATION,
    compare,
    reference_config,
    reference_rows,
)
from studies.training.training_summary import Summary, summarise, summary_rows, verdicts


# ---------------------------------------------------------------------- plans
def test_a_plan_of_a_network_by_name() -> None:
    plan = make_plan(Request("karate", model="gcn", settings={"layers": 3, "epochs": 2}))
    assert (plan.subject, plan.title, plan.reaction, plan.has_equation) == ("gcn", "GCN", "", False)
    assert plan.config == Config.of("gcn", layers=3, epochs=2)
    assert "reaction" not in plan.run_config.head
    assert plan.published is None
    assert training.default_folder(plan, base=Path("none")) == Path("none/karate-gcn-1")
    assert training.about_method(plan).startswith("GCN (Kipf and Welling, ICLR 2017): H' = relu")


def test_a_network_around_an_equation_takes_a_reaction() -> None:
    own = make_plan(Request("karate", model="grand"))
    assert (own.title, own.subject, own.reaction) == ("GRAND", "grand", "diffusion")
    other = make_plan(Request("karate", model="grand", reaction="BS"))
    assert other.title == "GRAND with BS"
    with pytest.raises(InvalidArgument, match="gcn has none"):
        make_plan(Request("karate", model="gcn", reaction="BS"))
    with pytest.raises(UnknownName, match="did you mean 'gat'"):
        make_plan(Request("karate", model="gatt"))
    with pytest.raises(UnknownName, match="expected a setting of gcn, got 'reaktion'"):
        make_plan(Request("karate", model="gcn", settings={"reaktion": 1}))


def test_published_settings_and_numbers_of_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    from studies.training import data_source

    named = karate()
    object.__setattr__(named.meta, "name", "cora")
    monkeypatch.setattr(data_source, "load_dataset", lambda *_, **__: named)
    plan = make_plan(Request("cora", model="gcn", preset="published"))
    assert plan.preset.name == "published/gcn/cora"
    assert plan.published is not None
    assert plan.published.method == "GCN"
    assert make_plan(Request("cora", preset="published")).preset.name == "paper/BS/cora"
    assert make_plan(Request("cora", preset="published")).published.method == "GREAD-BS"  # type: ignore[union-attr]
    with pytest.raises(InvalidArgument, match="quick is for GREAD"):
        make_plan(Request("cora", model="gcn", preset="quick"))


def test_a_file_names_its_network(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(Config.of("gat", heads=2).toml(), encoding="utf-8")
    assert make_plan(Request("karate", preset=str(file))).subject == "gat"
    assert make_plan(Request("karate", preset=str(file), model="gat")).config == Config.of("gat", heads=2)
    with pytest.raises(InvalidArgument, match="settings of gat, not of gcn"):
        make_plan(Request("karate", preset=str(file), model="gcn"))
    file.write_text("[model]\nhidden = 3\n", encoding="utf-8")
    assert make_plan(Request("karate", preset=str(file), model="gcn")).config == Config.of("gcn", hidden=3)


# ---------------------------------------------------------------------- a run
@pytest.mark.slow
@pytest.mark.parametrize("model", ["gcn", "h2gcn"])
def test_a_run_of_a_network_by_name(tmp_path: Path, model: str) -> None:
    words = ["train", "--small", "--model", model, "--set", "hidden=4", "--epochs", "3", "--out", str(tmp_path / "run")]
    done = CliRunner().invoke(cli.app, words)
    assert done.exit_code == 0, done.output
    folder = tmp_path / "run"
    assert {p.stem for p in (folder / "figures").glob("*.png")} == {"learning", "confusion", "states"}
    assert tomllib.loads((folder / "config.toml").read_text())["model"]["name"] == model
    plan = read_plan(folder)
    assert plan.subject == model
    network, data = Network.load(folder / "network"), karate()
    right = (network.logits(data.x, data.graph).argmax(-1).numpy() == data.y)[data.masks.test[0]].mean()
    assert right == pytest.approx(read_rows(folder / "results.csv")[0]["test_accuracy"])
    assert [row["method"] for row in read_rows(folder / "summary.csv")][1:] == [
        PROPAGATION, MAJORITY, *([] if model == "gcn" else ["GCN"]),
    ]  # fmt: skip  # features are names: no MLP
    again = CliRunner().invoke(cli.app, ["train", "--resume", "--out", str(folder)])
    assert again.exit_code == 0, again.output
    assert again.stdout == done.stdout
    spread = read_rows(folder / "summary.csv")[1]
    assert f"Label propagation scores {spread['mean']:.2f} ± {spread['std']:.2f} %" in done.stdout


# ---------------------------------------------------------------------- references
def test_references_are_computed_on_the_same_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    short = Config.of("mlp", epochs=5), "five epochs"
    monkeypatch.setattr(reference_answers, "reference_config", lambda *_: short)
    plan = make_plan(Request("digits", model="gcn", splits="1,3", settings={"epochs": 4}))
    rows, data = reference_rows(plan), plan.data
    assert [(row["method"], row["split"]) for row in rows] == [
        (method, split) for method in (PROPAGATION, MAJORITY, PERCEPTRON) for split in (1, 3)
    ]
    for row in rows[:2]:
        assert row["test_accuracy"] == accuracies(data, row["split"], best_propagation(data, row["split"]).scores).test
    assert rows[2]["test_accuracy"] == accuracies(data, 1, majority_class(data, 1)).test
    done = train(data, make_trials(short[0], [1, 3]), device="cpu")
    assert [row["test_accuracy"] for row in rows[4:]] == pytest.approx(done.test_accuracy.tolist())


def test_an_mlp_that_knows_nothing_of_other_nodes_is_no_reference() -> None:
    plan = make_plan(Request("karate", model="gcn", splits="0", settings={"epochs": 1}))
    assert {row["method"] for row in reference_rows(plan)} == {PROPAGATION, MAJORITY}


def test_an_mlp_is_trained_to_its_end() -> None:
    """All its epochs, though the network has four."""
    plan = make_plan(Request("karate", model="gcn", splits="0", settings={"epochs": 4}))
    assert reference_config(plan, PERCEPTRON) == (Config.of("mlp"), "the defaults, 200 epochs")
    config, words = reference_config(replace(plan, preset=replace(plan.preset, dataset="texas")), PERCEPTRON)
    assert (config.training.epochs, config.training.patience) == (1500, 100)
    assert words == "published/mlp/texas, early stopping after 100 epochs"


def test_an_mlp_is_not_compared_with_itself() -> None:
    plan = make_plan(Request("digits", model="mlp", splits="0", settings={"epochs": 1}))
    assert {row["method"] for row in reference_rows(plan)} == {PROPAGATION, MAJORITY, CONVOLUTION}


def test_a_gcn_of_as_many_epochs_is_a_reference() -> None:
    plan = make_plan(Request("karate", splits="0", settings={"epochs": 3}))
    heard: set[str] = set()
    rows = reference_rows(plan, lambda progress, title: heard.add(title))
    assert {row["method"] for row in rows} == {PROPAGATION, MAJORITY, CONVOLUTION}
    assert heard == {CONVOLUTION}
    assert reference_config(plan, CONVOLUTION)[0] == Config.of("gcn", epochs=3)


#: n_test/n_train of the public splits.
RATIO = 20 / 48


def rows_of(values: list[float], **names: str) -> list[dict[str, object]]:
    return [{**names, "split": k, "seed": 0, "test_accuracy": value, "status": "ok"} for k, value in enumerate(values)]


def test_a_user_sees_when_label_propagation_beats_the_network() -> None:
    own = rows_of([0.70, 0.71, 0.69])
    references = [*rows_of([0.80, 0.80, 0.80], method=PROPAGATION), *rows_of([0.30, 0.31, 0.30], method=MAJORITY)]
    found = Summary.of(own, None, references, ratio=RATIO)
    spread, majority = found.references
    assert spread.is_better
    assert not majority.is_better
    assert "80.00 ± 0.00 %" in found.sentences()[1]
    assert "10.00 points below (standard error 0.87)" in found.sentences()[1]
    assert "30.33 ± 0.47 %" in found.sentences()[2]
    assert "39.67 points above" in found.sentences()[2]
    assert [v.answer for v in verdicts(found)] == ["fails", "holds"]
    assert verdicts(found)[0].statement == "The network is more accurate than label propagation on the same splits."


@pytest.mark.parametrize(
    ("theirs", "sentence"),
    [
        ([0.75, 0.66, 0.72], "1.00 points below (standard error 4.58), not significant"),
        ([0.73, 0.64, 0.70], "1.00 points above (standard error 4.58), not significant"),
        ([0.70, 0.71, 0.69], "as much as the network"),
    ],
)
def test_what_the_splits_do_not_decide_is_said_either_way(theirs: list[float], sentence: str) -> None:
    (close,) = compare(rows_of([0.70, 0.71, 0.69]), rows_of(theirs, method=PROPAGATION), RATIO)
    assert not close.is_better
    assert close.verdict().answer == "undecided"
    assert sentence in close.sentence()


def test_one_split_decides_nothing() -> None:
    (one,) = compare(rows_of([0.5]), rows_of([0.75], method=PROPAGATION), RATIO)
    assert "25.00 points below" in one.sentence()
    assert "one split" in one.sentence()
    (none,) = compare(rows_of([math.nan]), rows_of([0.75], method=PROPAGATION), RATIO)
    assert none.sentence() == "Label propagation scores 75.00 % on the same splits."


def test_sentence_and_verdict_of_a_network_that_was_cut_off_agree() -> None:
    cut, own, theirs = "trained for only 2 of 9 epochs", rows_of([0.5, 0.5, 0.51]), [0.75, 0.75, 0.75]
    (one,) = compare(own, rows_of(theirs, method=PROPAGATION), RATIO, cut)
    assert not one.is_better
    assert one.verdict().answer == "undecided"
    assert one.sentence().endswith(f"undecided: the network was {cut}.")
    (whole,) = compare(own, rows_of(theirs, method=PROPAGATION), RATIO)
    assert whole.is_better
    assert whole.verdict().answer == "fails"


def test_the_table_has_the_references() -> None:
    plan = make_plan(Request("karate", model="gat"))
    summary = summarise(plan, rows_of([0.5, 0.6]), rows_of([0.4, 0.4], method=MAJORITY))
    rows = summary_rows(plan, summary)
    assert [(row["who"], row["method"], row["mean"]) for row in rows] == [
        ("here", "GAT, preset defaults", 55.0), ("baseline", MAJORITY, 40.0),
    ]  # fmt: skip


# ---------------------------------------------------------------------- presets
def test_presets_of_a_network() -> None:
    found = CliRunner().invoke(cli.app, ["presets", "--model", "gcn"])
    assert found.exit_code == 0
    assert "published/gcn/cora" in found.stdout
    assert "paper/BS" not in found.stdout
    wrong = CliRunner().invoke(cli.app, ["presets", "--model", "gatt"])
    assert "did you mean 'gat'" in str(wrong.exception)
