"""`rdgraph data` as a user meets it, and the study of the data sets."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from gread.datasets.embedded import karate
from gread.datasets.facts import count
from gread.datasets.published_comparison import Comparison, Printed
from gread.datasets.sources import entry
from rdgraph.errors import FileError, InvalidArgument, RdgraphError, UnknownName
from studies.cli import app as cli
from studies.cli import data_commands, data_pages
from studies.cli.fitted_table import FittedTable
from studies.datasets import local_checks as data_checks
from studies.datasets import local_sets
from studies.datasets import study as dataset_figures
from studies.datasets import study as datasets
from studies.datasets.local_sets import LocalSets, all_names
from studies.registered_studies import find_study
from studies.runs.study import execute
from studies.runs.tables import read_rows

needs_files = pytest.mark.skipif(
    not os.environ.get("RDGRAPH_DATA"), reason="needs the public files: set RDGRAPH_DATA to their folder"
)


@pytest.fixture(autouse=True)
def _wide_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_commands.console, "_width", 240)


def rdgraph(*words: object) -> Any:
    return CliRunner(env={"NO_COLOR": "1"}).invoke(cli.app, ["data", *map(str, words)])


def answer(*words: object) -> Any:
    run = rdgraph(*words, "--json")
    assert run.exit_code == 0, run.output
    return json.loads(run.stdout)


def plant(root: Path, name: str, content: bytes = b"junk") -> None:
    """Files of the right names and a wrong content."""
    for file in entry(name).all_files:
        path = root / file.key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


# ---------------------------------------------------------------------- list
def test_list_says_what_is_is_available(tmp_path: Path) -> None:
    rows = {row["name"]: row for row in answer("list", "--root", tmp_path)}
    assert tuple(rows) == all_names()
    assert {name for name, row in rows.items() if row["state"] == "available"} == {"digits", "karate"}
    assert rows["cora"]["state"] == "to be fetched"
    assert (rows["cora"]["nodes"], rows["cora"]["from"]) == (2708, "planetoid")
    assert (rows["karate"]["nodes"], rows["digits"]["nodes"], rows["karate"]["from"]) == (34, 1797, "embedded")
    assert rows["texas"]["bytes"] == sum(file.bytes or 0 for file in entry("texas").all_files)
    shown = rdgraph("list", "--root", tmp_path).stdout
    assert all(name in shown for name in all_names())


def test_list_counts_the_files_of_a_set_half_here(tmp_path: Path) -> None:
    plant(tmp_path, "texas")
    next(iter(tmp_path.rglob("out1_graph_edges.txt"))).unlink()
    rows = {row["name"]: row for row in answer("list", "--root", tmp_path)}
    assert rows["texas"]["state"] == "11 of 12 files"
    assert not LocalSets(tmp_path).is_available("texas")


def test_a_set_whose_library_is_missing_is_not_is_available(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(local_sets, "is_installed", lambda library: library != "sklearn")
    described = LocalSets(tmp_path).describe("digits")
    assert (described["state"], described["nodes"]) == ("pip install 'rdgraph[gread]'", 0)
    assert LocalSets(tmp_path).is_available("karate")


# ---------------------------------------------------------------------- table
def test_table_of_an_embedded_set(tmp_path: Path) -> None:
    found = answer("table", "Karate", "--root", tmp_path)
    assert found["not_is_available"] == []
    (club,) = found["sets"]
    assert (club["nodes"], club["edges"], club["classes"], club["coverage"]) == (34, 78, 2, "whole graph")
    assert club["edge_homophily"] == pytest.approx(67 / 78)
    assert (club["twins"]["twins"], club["twins"]["groups"]) == (7, 2)
    assert club["paper"] == []
    shown = rdgraph("table", "karate", "--root", tmp_path).stdout
    assert "0.859" in shown
    assert "ComparedMeans the paper's table" not in shown


def test_table_without_names_leaves_out_what_is_not_here(tmp_path: Path) -> None:
    found = answer("table", "--root", tmp_path)
    assert [row["name"] for row in found["sets"]] == ["digits", "karate"]
    assert "cora" in found["not_is_available"]
    assert "not available: texas" in rdgraph("table", "--root", tmp_path).stdout


def test_table_as_markdown(tmp_path: Path) -> None:
    lines = rdgraph("table", "karate", "--markdown", "--root", tmp_path).stdout.splitlines()
    assert "| set | nodes | edges | loops | features | classes | edge hom. | node hom. | adjusted | splits |" in lines
    assert any(line.startswith("| karate | 34 | 78 | 0 | 34 | 2 | 0.859 |") for line in lines)


@pytest.mark.parametrize(
    ("words", "error", "needle"),
    [
        (("table", "kora"), UnknownName, "did you mean 'cora'"),
        (("table", "cora"), InvalidArgument, "rdgraph data fetch cora"),
        (("check", "cora", "texas"), InvalidArgument, "rdgraph data fetch cora texas"),
        (("fetch", "texas", "--offline"), RdgraphError, "rdgraph data fetch texas"),
    ],
)
def test_errors_say_what_to_do(tmp_path: Path, words: tuple[str, ...], error: type[Exception], needle: str) -> None:
    run = rdgraph(*words, "--root", tmp_path)
    assert isinstance(run.exception, error)
    assert needle in str(run.exception)


def test_a_variable_that_names_no_folder_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RDGRAPH_DATA", str(tmp_path / "nowhere"))
    run = rdgraph("list")
    assert isinstance(run.exception, FileError)
    assert "nowhere" in str(run.exception)


def test_fetch_of_an_embedded_set_needs_nothing(tmp_path: Path) -> None:
    run = rdgraph("fetch", "karate", "--root", tmp_path)
    assert (run.exit_code, run.stdout) == (0, "karate: needs no files\n")
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------- check
def test_check_of_embedded_sets_is_good(tmp_path: Path) -> None:
    found = answer("check", "--root", tmp_path)
    assert found["bad"] == 0
    assert {c["name"] for c in found["checks"]} <= {"karate", "digits"}
    assert "test nodes with a twin in training: 21.4%" in next(
        c["text"] for c in found["checks"] if c["what"] == "twins"
    )


def test_a_file_with_other_content_fails_the_check(tmp_path: Path) -> None:
    plant(tmp_path, "cornell")
    run = rdgraph("check", "cornell", "--root", tmp_path, "--json")
    assert run.exit_code == 1
    found = json.loads(run.stdout)
    assert [(c["what"], c["status"]) for c in found["checks"]] == [("file", "bad")]
    assert "heterophilous-graphs/data/cornell.npz" in found["checks"][0]["text"]
    assert rdgraph("check", "cornell", "--root", tmp_path).exit_code == 1


def test_counts_that_differ_from_the_catalogue_fail_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = count(karate())
    monkeypatch.setattr(LocalSets, "facts", lambda *_: facts)
    monkeypatch.setattr(data_checks, "_files", lambda *_: iter(()))
    found = next(data_checks.check(LocalSets(), "texas"))
    assert (found.what, found.status) == ("counts", data_checks.BAD)
    assert "nodes: expected 183, got 34" in found.text


# ---------------------------------------------------------------------- pages and figures
def test_marks_stand_at_the_figures_that_differ() -> None:
    wrong = Comparison("karate", "homophily", Printed("0.11", ""), 0.8, False, "because")
    right = Comparison("karate", "nodes", Printed("34", ""), 34, True)
    cells = dict(zip(data_pages.SIZES, data_pages.size_cells(count(karate()), [wrong, right]), strict=True))
    assert [heading for heading, cell in cells.items() if cell.endswith("*")] == ["node hom."]
    assert data_pages.summary([wrong, right]).startswith("of the paper's 2 numbers 1 agree and 1 differ (*), 0 ")


def test_rows_of_the_gallery() -> None:
    degrees = np.array([0, 1, 1, 3, 3, 3, 8, 2])
    rows = dataset_figures.degree_rows("a", degrees)
    for row in rows:
        assert row["share"] == (degrees >= row["value"]).mean()
    assert [row["value"] for row in rows] == [1, 2, 3, 8]
    shares = np.array([0.0, 0.04, 0.5, 1.0, np.nan])
    bars = dataset_figures.alike_rows("a", shares)
    assert len(bars) == dataset_figures.BINS
    assert {row["value"]: row["share"] for row in bars if row["share"]} == {0.0: 0.5, 0.5: 0.25, 0.95: 0.25}


# ---------------------------------------------------------------------- the study
@pytest.mark.slow
def test_the_small_study_on_the_command_line(tmp_path: Path) -> None:
    run = CliRunner().invoke(cli.app, ["study", "datasets", "--small", "--out", str(tmp_path / "run")])
    assert run.exit_code == 0, run.output
    facts = read_rows(tmp_path / "run/results.csv")
    assert [(row["set"], row["nodes"]) for row in facts] == [("karate", 34), ("digits", 1797)]
    told = json.loads((tmp_path / "run/report.json").read_text())
    assert told["state"] == "done"
    assert [v["answer"] for v in told["verdicts"]] == ["holds"]
    for name in ("degrees", "alike"):
        assert (tmp_path / f"run/figures/{name}.png").stat().st_size > 10_000
    assert not (tmp_path / "run/paper.csv").exists()


@needs_files
def test_the_study_names_what_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sets = ["texas", "chameleon", "cora", "citeseer", "questions"]
    monkeypatch.setattr(datasets, "settings", lambda small: {"sets": sets})
    page = execute(find_study("datasets"), tmp_path / "run").read_text(encoding="utf-8")
    assert "Not available: questions" in page
    told = json.loads((tmp_path / "run/report.json").read_text())
    assert [v["answer"] for v in told["verdicts"]] == ["fails"] * 4
    evidence = " ".join(v["evidence"] for v in told["verdicts"])
    for words in ("48/32/20: texas", "citeseer (differs by split, 2,120 of 3,327)", "chameleon 46.9 %", "swapped"):
        assert words in evidence
    assert {row["answer"] for row in read_rows(tmp_path / "run/paper.csv")} == {"agrees", "differs"}


@needs_files
def test_check_of_the_public_files() -> None:
    found = answer("check", "texas", "cornell_old", "citeseer")
    assert found["bad"] == 0
    texts = {(c["name"], c["what"]): c["text"] for c in found["checks"]}
    assert texts["cornell_old", "copy"] == (
        "every node has the features and label it has in texas; new_data/cornell/out1_node_feature_label.txt is byte "
        "for byte new_data/texas/out1_node_feature_label.txt"
    )
    assert texts["citeseer", "labels"] == "15 nodes have no label, 15 of them no features either, 0 of them no edge"
    assert "splits" not in {what for name, what in texts if name == "texas"}


@needs_files
def test_a_damaged_set_does_not_hinder_the_check_of_others(tmp_path: Path) -> None:
    for file in entry("texas").all_files:
        (tmp_path / file.key).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file.key).write_bytes(Path(os.environ["RDGRAPH_DATA"], file.key).read_bytes())
    plant(tmp_path, "cornell_old")
    assert answer("check", "texas", "texas", "--root", tmp_path)["bad"] == 0
    run = rdgraph("check", "texas", "cornell_old", "--root", tmp_path, "--json")
    assert run.exit_code == 1
    found = json.loads(run.stdout)
    assert {c["name"] for c in found["checks"] if c["status"] == "bad"} == {"cornell_old"}
    assert found["bad"] == len(entry("cornell_old").all_files)
    assert "copy" not in {c["what"] for c in found["checks"]}


@needs_files
def test_table_marks_and_explains_on_the_public_files() -> None:
    shown = rdgraph("table", "cora", "wisconsin").stdout
    assert "2,708*" in shown
    assert "450*" in shown
    assert "is citeseer's, and citeseer has this one's: swapped" in shown  # citeseer is looked up, not shown
    assert "10 numbers 4 agree and 6 differ (*), 0 without" in shown


# ---------------------------------------------------------------------- narrow terminals
ROWS = [
    ["texas", "183", "279", "16", "1,703", "5", "0.061", "0.057*", "-0.294", "48/32/20"],
    ["[bold]cora", "2,708", "5,278", "0", "1,433", "7*", "0.810", "0.825*", "0.771", "48/32/20"],
]


@pytest.mark.parametrize("width", [200, 80, 60, 40, 24])
def test_no_figure_is_lost_on_a_narrow_terminal(width: int) -> None:
    """Every cell stands there whole, whatever the number of tables it takes, and no line is too long."""
    text = io.StringIO()
    table = FittedTable("Sizes", data_pages.SIZES, ROWS)
    Console(file=text, width=width, no_color=True).print(table)
    lines = text.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    words = {word for line in lines for word in line.split()}
    assert {cell for row in ROWS for cell in row} <= words
    groups = table.cut(width)
    assert [k for group in groups for k in group[1:]] == list(range(1, len(data_pages.SIZES)))
    assert all(group[0] == 0 for group in groups)
    assert (len(groups) == 1) == (width == 200)


def test_a_terminal_too_narrow_for_one_column_folds_it() -> None:
    text = io.StringIO()
    Console(file=text, width=14).print(FittedTable("Sizes", ("set", "nodes"), [["karate", "123,456,789"]]))
    assert "".join(c for c in text.getvalue() if c.isdigit()) == "123456789"


def test_long_texts_are_folded_beside_whole_figures() -> None:
    reason = "counts the whole graph; the masks of every split cover its largest component, 2,485 nodes"
    text = io.StringIO()
    page = data_pages.rich_page(
        [("Paper", data_pages.PAPER, [["cora", "nodes", "2,708", "2,485", reason]])], ["[note]"]
    )
    Console(file=text, width=80).print(page)
    shown = " ".join(text.getvalue().split())
    assert "cora nodes 2,708 2,485 counts the whole graph;" in shown
    assert shown.endswith("[note]")


def test_the_table_of_public_sets_keeps_its_numbers_at_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_commands.console, "_width", 80)
    shown = rdgraph("table", "karate").stdout
    facts = count(LocalSets().read("karate"))
    words = set(shown.split())
    assert {f"{facts.nodes:,}", f"{facts.edges:,}", f"{facts.node_homophily:.3f}"} <= words
