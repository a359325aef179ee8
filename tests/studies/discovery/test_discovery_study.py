"""A search over equations as a run folder: what it holds, what the report says, and that it is only read when done."""

from __future__ import annotations

import csv
import re
import tomllib
from pathlib import Path
from urllib.parse import unquote

import pytest
from typer.testing import CliRunner

import rdgraph as rd
from gread import discover, karate
from gread.discovery.term_grammar import Line, Term
from gread.settings.config import Config
from studies.cli.app import app
from studies.discovery.discovery_rows import (
    choice_rows,
    cloud_rows,
    explorer_address,
    front_rows,
    proofs,
    read_retrained,
    retrained_rows,
)
from studies.discovery.discovery_task import DiscoveryRequest, make_discovery_task
from studies.discovery.study import front_chart
from tests.studies.own_graph import club_files
from tests.studies.runs.test_browser import CHROMIUM, Browser

OPTIONS = [
    "discover", "--dataset", "karate", "--terms", "small", "--size", "1", "--budget", "10", "--epochs", "20",
    "--set", "hidden=4", "--set", "adjacency=original", "--splits", "0,1,2", "--fresh", "1", "--round", "10",
    "--sampler", "random", "--device", "cpu",
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("discover") / "run"
    done = CliRunner().invoke(app, [*OPTIONS, "--transfer", "karate", "--out", str(place)])
    assert done.exit_code == 0, done.output
    assert "10 equations trained" in done.output
    for what in ("reactions of the paper", "fresh seeds", "fresh splits", "the choice and BS on karate"):
        assert f"{what}: " in done.output, what  # no training is silent
    return place


@pytest.mark.slow
def test_the_folder_holds_equations_the_choice_and_the_report(folder: Path) -> None:
    rows = list(csv.DictReader((folder / "equations.csv").read_text().splitlines()))
    states = [row["state"] for row in rows]
    assert sum(state in ("finished", "dropped", "diverged") for state in states) == 10
    trained = [row for row in rows if row["state"] == "finished"]
    best = max(trained, key=lambda row: (float(row["val_accuracy"]), -int(row["number"])))
    chosen = Config.load(folder / "best.toml").gread
    assert chosen.system == rd.parse(f"{best['trained']} where {best['declared']}")
    text = (folder / "report.html").read_text()
    assert best["trained"].replace("*", "*") in text
    assert "of 10 equations" in text
    for part in ("winners_curse", "transfer_results", "proofs", "merges", "safety", "reactions", "choices"):
        assert (folder / f"{part}.csv").exists() or part == "merges", part
    assert (folder / "state").read_text().strip() == "done"


@pytest.mark.slow
def test_links_open_the_explorer_on_the_equation(folder: Path) -> None:
    text = (folder / "report.html").read_text()
    links = re.findall(r'<a href="(explore\.html#[^"]+)">open</a>', text)
    rows = list(csv.DictReader((folder / "best_equations.csv").read_text().splitlines()))
    assert len(links) == len(rows) >= 3
    for link, row in zip(links, rows, strict=True):
        shown = unquote(link.partition("#e=")[2].partition("&")[0])
        assert rd.parse(shown).text == rd.parse(row["equation"]).text
    assert "<html" in (folder / "explore.html").read_text()[:400].lower()


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine; apt-get install chromium")
def test_a_click_in_the_report_opens_the_explorer_on_the_equation(folder: Path, tmp_path: Path) -> None:
    browser = Browser(tmp_path)
    try:
        browser.open(folder / "report.html")
        assert browser.complaints() == []
        address = browser.evaluate("document.querySelectorAll('a[href^=\"explore.html\"]')[1].href")
        browser.call("Page.navigate", url=address)
        shown = "typeof view !== 'undefined' && view && view.model ? view.model.text : ''"
        wait = (
            f"(async () => {{ for (let k = 0; k < 200 && !({shown}); k++) await new Promise((d) => setTimeout(d, 50)); "
        )
        equation = browser.evaluate(f"{wait} return {shown}; }})()")
        assert browser.complaints() == []
    finally:
        browser.close()
    rows = list(csv.DictReader((folder / "best_equations.csv").read_text().splitlines()))
    assert rd.parse(equation).text == rd.parse(rows[1]["equation"]).text


@pytest.mark.slow
def test_a_finished_run_is_only_read(folder: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file() and path.name != ".lock"}
    done = CliRunner().invoke(app, [*OPTIONS, "--transfer", "karate", "--out", str(folder)])
    assert done.exit_code == 0, done.output
    assert before == {path: path.stat().st_mtime_ns for path in before}
    other = CliRunner().invoke(app, [*OPTIONS, "--transfer", "karate", "--seed", "1", "--out", str(folder)])
    assert other.exit_code != 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "no data set is given"),
        (["--dataset", "karate", "--terms", "smal"], "grammar of terms"),
        (["--dataset", "karate", "--terms", "small", "--size", "9"], "a size between 1 and 4"),
        (["--dataset", "karate", "--sampler", "tpee"], "did you mean 'tpe'"),
        (["--dataset", "karate", "--set", "hiden=4"], "hidden"),
        (["--dataset", "karate", "--budget", "1", "--transfer", "karat"], "did you mean 'karate'"),
    ],
)
def test_wrong_words_are_told_before_any_training(words: list[str], told: str) -> None:
    done = CliRunner().invoke(app, ["discover", *words])
    assert done.exit_code != 0
    assert told in str(done.exception or done.output)


def test_proofs_say_what_is_known_and_why_the_rest_is_not() -> None:
    line = Line((Term("L@H"), Term("H**3", "-")), ("alpha", "beta"), "channel")
    found = proofs(line.system, {"alpha": -0.5, "beta": 0.25})
    assert found["existence"].startswith("global")
    assert "nonlinear" in found["symbol"]
    assert found["Lipschitz_bound"] == "3*R**2*|beta| + 2*|alpha| on |h| <= R"
    linear = proofs(rd.parse("-alpha*L@H"))
    assert linear["filter_class"] == "low-pass"


def test_the_address_of_the_explorer_reads_back() -> None:
    line = Line((Term("L@H"), Term("H**3", "-")), ("alpha", "beta"), "channel")
    address = explorer_address(line, {"alpha": -0.5})
    assert unquote(address.partition("#e=")[2].partition("&")[0]) == line.text
    assert address.endswith("&c.alpha=-0.5")


def test_parts_of_a_run_read_back() -> None:
    from gread.discovery.winner_checks import Retrained

    known = Retrained("BS", {0: (0.5, 0.25), 3: (0.75, 1.0)}, 4, 1)
    assert read_retrained(retrained_rows([known])) == {"BS": known}


def test_equations_for_a_graph_of_ones_own(tmp_path: Path) -> None:
    edges, nodes = club_files(tmp_path)
    task = make_discovery_task(DiscoveryRequest(terms="small", edges=edges, nodes=nodes))
    assert (task.dataset, task.plan.data.num_nodes, task.default_folder().name) == ("club", 34, "club-small-3")
    assert f"rdgraph discover --edges {edges} --nodes {nodes} --terms small" in task.command(tmp_path)
    head = tomllib.loads(task.run_config.toml())
    assert (head["dataset"], head["nodes"]) == ("club", str(nodes))


@pytest.mark.parametrize("splits", [[0], [0, 1]])
def test_one_split_has_no_interval_in_the_tables(splits: list[int]) -> None:
    fixed = {"epochs": 4, "hidden": 4}
    found = discover(karate(), terms="small", size=1, budget=3, fixed=fixed, splits=splits, device="cpu")
    front = front_rows(found)
    assert all((row["low"] == row["high"] == "") == (len(splits) == 1) for row in [*front, *choice_rows(found)])
    test = front_chart(cloud_rows(found), front).panels[0].lines[2]
    assert (test.low is not None) == (len(splits) > 1)
