"""`rdgraph predict`: ids from the file through to the predictions, on the same graph and on another one."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from gread.datasets.embedded import karate
from rdgraph.errors import FileError, InvalidArgument
from studies.cli import app as cli
from studies.training import study as training
from studies.training.data_source import TableReading
from studies.training.plan import read_plan
from studies.training.predictions import Predictions
from tests.studies.own_graph import club_files


def rdgraph(*words: object) -> Result:
    return CliRunner().invoke(cli.app, [str(word) for word in words])


def write_club(folder: Path, *, first: int = 0, last: int = 34, labels: bool = True) -> tuple[Path, Path]:
    """Some members of the karate club as two files: ids m0, m1, ..., an age, a colour with one missing cell."""
    data, rng = karate(), np.random.default_rng(first)
    edges = [f"m{a},m{b}" for a, b in data.graph.edge_index.T.tolist() if first <= a < b < last]
    rows = []
    for k in range(first, last):
        side = int(data.y[k])
        colour = "" if k == first + 3 else ("red", "blue")[side]
        rows.append(
            f"m{k},{('hi', 'officer')[side] + ',' if labels else ''}{30 + 20 * side + rng.normal():.2f},{colour}"
        )
    folder.mkdir(exist_ok=True)
    (folder / "edges.csv").write_text("\n".join(["source,target", *edges]))
    (folder / "nodes.csv").write_text("\n".join([f"id,{'label,' if labels else ''}age,colour", *rows]))
    return folder / "edges.csv", folder / "nodes.csv"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short training on the club, without its figures."""
    folder = tmp_path_factory.mktemp("predict")
    edges, nodes = write_club(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "draw_all", lambda *_: ([], []))
        done = rdgraph("train", "--edges", edges, "--nodes", nodes, "--missing", "mean", "--standardise", "--splits",
                       "0", "--epochs", 40, "--device", "cpu", "--out", folder / "run")  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "±" not in done.stdout
    assert "Test accuracy" in done.stdout
    assert "predictions.csv" in done.stdout
    return folder / "run"


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_training_writes_what_it_says_of_every_node(trained: Path) -> None:
    rows = rows_of(trained / "predictions.csv")
    assert list(rows[0]) == ["id", "class", "probability_hi", "probability_officer", "split"]
    assert [row["id"] for row in rows] == [f"m{k}" for k in range(34)]
    plan = read_plan(trained)
    parts = np.array([row["split"] for row in rows])
    for part in ("train", "val", "test"):
        assert np.array_equal(parts == part, getattr(plan.data.masks, part)[0])
    for row in rows:
        chances = {name: float(row[f"probability_{name}"]) for name in ("hi", "officer")}
        assert row["class"] == max(chances, key=chances.__getitem__)
        assert sum(chances.values()) == pytest.approx(1)
    assert "predictions.csv" in (trained / "report.html").read_text()


def test_the_same_graph_gives_the_same_file(trained: Path, tmp_path: Path) -> None:
    done = rdgraph("predict", trained, "--out", tmp_path / "again.csv")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "again.csv").read_bytes() == (trained / "predictions.csv").read_bytes()
    rows = rows_of(trained / "predictions.csv")
    truth = [("hi", "officer")[int(y)] for y in karate().y]
    test = [row["class"] == name for row, name in zip(rows, truth, strict=True) if row["split"] == "test"]
    assert f"{sum(test)} of {len(test)} test nodes" in done.stdout
    assert "known labels" not in done.stdout


def test_predictions_go_into_the_run_and_overwrite_nothing(trained: Path, tmp_path: Path) -> None:
    before = (trained / "predictions.csv").read_bytes()
    done = rdgraph("predict", trained)
    assert done.exit_code == 0, done.output
    assert "predictions.csv already has these predictions" in done.stdout
    edges, nodes = write_club(tmp_path / "later", last=20)
    done = rdgraph("predict", trained, "--edges", edges, "--nodes", nodes)
    assert f"wrote {trained / 'predictions-nodes.csv'}" in done.stdout
    assert (trained / "predictions.csv").read_bytes() == before
    edges, nodes = write_club(tmp_path / "last", last=18)
    done = rdgraph("predict", trained, "--edges", edges, "--nodes", nodes)
    assert isinstance(done.exception, FileError)
    assert "--overwrite" in str(done.exception)
    assert len(rows_of(trained / "predictions-nodes.csv")) == 20
    done = rdgraph("predict", trained, "--edges", edges, "--nodes", nodes, "--overwrite")
    assert done.exit_code == 0, done.output
    assert len(rows_of(trained / "predictions-nodes.csv")) == 18
    (trained / "predictions-nodes.csv").unlink()


def test_a_file_without_a_fitted_column_says_that_it_is_needed(trained: Path, tmp_path: Path) -> None:
    edges, nodes = write_club(tmp_path / "less", last=20)
    header, *lines = [line.rpartition(",")[0] for line in nodes.read_text().splitlines()]
    missing = nodes.read_text().splitlines()[0].rpartition(",")[2]
    nodes.write_text("\n".join([header, *lines]))
    done = rdgraph("predict", trained, "--edges", edges, "--nodes", nodes)
    assert isinstance(done.exception, FileError)
    assert f"expected a column '{missing}'" in str(done.exception)
    assert str(done.exception).endswith("add it: the network was trained with this column")


def said(parts: str, labels: str) -> Predictions:
    """Of nodes that are all said to be of class a."""
    words = {"t": "train", "v": "val", "e": "test", "-": ""}
    chances = np.tile([0.9, 0.1], (len(parts), 1))
    ids = tuple(map(str, range(len(parts))))
    return Predictions(ids, ("a", "b"), chances, tuple(words[p] for p in parts), tuple(labels.split(",")))


def test_labels_that_were_met_are_told_by_part() -> None:
    assert said("tttveee-", "a,a,a,b,a,b,a,").sentences() == [
        "8 nodes: 8 a.",
        "Correct on 2 of 3 test nodes (66.67 %), 0 of 1 validation nodes (0.00 %), 3 of 3 training nodes (100.00 %).",
    ]
    assert said("te-", "a,,b").sentences()[1:] == [
        "Correct on 1 of 1 training nodes (100.00 %), 0 of 1 nodes of no part (0.00 %)."
    ]
    assert said("--", "a,b").sentences()[1:] == ["Correct on 1 of 2 labelled nodes (50.00 %)."]
    assert said("te", ",").sentences() == ["2 nodes: 2 a."]


def test_a_class_that_the_network_does_not_know_is_a_miss() -> None:
    assert said("---", "a,c,d").sentences()[1:] == [
        "Correct on 1 of 3 labelled nodes (33.33 %).",
        "2 labels of classes unknown to the network count as wrong.",
    ]


def test_another_graph_without_labels_is_predicted_by_id(trained: Path, tmp_path: Path) -> None:
    edges, nodes = write_club(tmp_path / "other", last=20, labels=False)
    nodes.write_text(nodes.read_text().replace("red", "violet"))
    done = rdgraph("predict", trained, "--edges", edges, "--nodes", nodes, "--out", tmp_path / "new.csv")
    assert done.exit_code == 0, done.output
    strange = nodes.read_text().count("violet")
    assert f"'violet' ({strange} rows)" in done.stdout
    rows = rows_of(tmp_path / "new.csv")
    assert [row["id"] for row in rows] == [f"m{k}" for k in range(20)]
    assert {row["split"] for row in rows} == {""}
    assert "known labels" not in done.stdout
    truth = [("hi", "officer")[int(y)] for y in karate().y[:20]]
    assert sum(row["class"] == name for row, name in zip(rows, truth, strict=True)) >= 16


def test_features_of_another_graph_are_counted_in_units_of_the_first(trained: Path, tmp_path: Path) -> None:
    """A node alone in its file would have the standardised age 0 by statistics of its own, whatever its age is."""
    answers = []
    for age in (30, 50):
        (tmp_path / "n.csv").write_text(f"id,age,colour\na,{age},\nb,{age},\n")
        (tmp_path / "e.csv").write_text("source,target\na,b\n")
        done = rdgraph("predict", trained, "--edges", tmp_path / "e.csv", "--nodes", tmp_path / "n.csv",
                       "--out", tmp_path / "p.csv", "--overwrite")  # fmt: skip
        assert done.exit_code == 0, done.output
        answers.append(float(rows_of(tmp_path / "p.csv")[0]["probability_hi"]))
    assert answers[0] > answers[1] + 0.05


def test_the_command_of_the_report_has_the_choices(trained: Path) -> None:
    plan = read_plan(trained)
    assert plan.source.reading == TableReading(missing="mean", standardise=True)
    assert "--missing mean --standardise" in plan.command(trained)


@pytest.mark.parametrize(
    ("words", "error", "text"),
    [
        (("predict", "nowhere"), FileError, "there is no folder nowhere"),
        (("predict", "."), FileError, "no trained network"),
        (("predict", "RUN", "--edges", "e.csv"), InvalidArgument, "add --nodes FILE"),
        (("predict", "RUN", "--edges", "e.csv", "--nodes", "n.csv"), FileError, "n.csv: No such file"),
        (("train", "--dataset", "karate", "--features", "a"), InvalidArgument, "--features is for files"),
        (("train", "--dataset", "karate", "--missing", "zero"), LookupError, "choice for missing values, got 'zero'"),
    ],
)
def test_errors_say_what_is_missing(
    trained: Path, words: tuple[str, ...], error: type[Exception], text: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    done = rdgraph(*(trained if word == "RUN" else word for word in words))
    assert isinstance(done.exception, error)
    assert text in str(done.exception)


@pytest.mark.parametrize("cell", ["old", ""])
def test_predict_names_no_option_of_train(tmp_path: Path, cell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "draw_all", lambda *_: ([], []))
    edges, nodes = club_files(tmp_path)
    done = rdgraph("train", "--edges", edges, "--nodes", nodes, "--small", "--out", tmp_path / "run")
    assert done.exit_code == 0, done.output
    nodes.write_text(nodes.read_text().replace("2,a,2,2", f"2,a,{cell},2"))
    done = rdgraph("predict", tmp_path / "run", "--edges", edges, "--nodes", nodes)
    assert isinstance(done.exception, FileError)
    assert "line 4, column 'u': expected a finite number" in str(done.exception)
    assert not {"--missing", "--features", "--categories"} & set(str(done.exception).replace(",", " ").split())


@pytest.mark.parametrize(("labels", "text"), [("x,x", "got 'x' alone"), (",", "got no label at all")])
def test_a_file_of_one_class_is_refused(tmp_path: Path, labels: str, text: str) -> None:
    (tmp_path / "e.csv").write_text("source,target\na,b\n")
    one, other = labels.split(",")
    (tmp_path / "n.csv").write_text(f"id,label,f\na,{one},1\nb,{other},2\n")
    done = rdgraph("train", "--edges", tmp_path / "e.csv", "--nodes", tmp_path / "n.csv")
    assert isinstance(done.exception, InvalidArgument)
    assert text in str(done.exception)
