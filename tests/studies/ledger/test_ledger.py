"""The ledger: a planted wrong number is flagged, statuses against hand-made numbers, forms that read back, the page."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import typer.testing

from gread.comparison import reach
from gread.settings.presets import authors_cells, published_results
from rdgraph.errors import FileError, InvalidArgument, UnknownName
from rdgraph.reports.claims.claim_records import statements
from studies.cli import app as cli
from studies.ledger import assessment, kept_results, ledger_forms
from studies.ledger import entry as words
from studies.ledger.assessment import contradictions, make_ledger
from studies.ledger.entry import LedgerEntry, Measurement, PrintedNumber, status_tally
from studies.ledger.kept_results import READERS, stored_measurements, t_error
from studies.ledger.other_people import AUTHORS, find_cell, read_added
from studies.ledger.printed_numbers import measured_claims, printed_numbers
from studies.paper import homophily, paired_rows, significance
from studies.paper.degrees import SAMPLE, degree_rows
from studies.paper.forensics import STATED
from studies.registered_studies import STUDIES
from studies.results import results_folder
from tests.paths import ROOT

PRINTED = PrintedNumber("T8/x/y", "Table 8", "x", "y", "accuracy", 80.0, 3.0)


@pytest.fixture(scope="module")
def ledger() -> dict[str, LedgerEntry]:
    return {entry.printed.cell: entry for entry in make_ledger()}


def run(*arguments: str) -> str:
    done = typer.testing.CliRunner().invoke(cli.app, ["ledger", *arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


# ---------------------------------------------------------------------- what is in it
def test_every_published_number_and_claim_is_a_row(ledger: dict[str, LedgerEntry]) -> None:
    counts = {"results": 324, "ablation": 252, "depth": 12, "ttest": 9 * 3, "ranking": 35 * 5}
    for name, number in counts.items():
        lines = (ROOT / "gread" / "data" / f"published_{name}.csv").read_text(encoding="utf-8").splitlines()
        assert number % (len(lines) - 1) == 0, name
    data = (ROOT / "gread" / "data" / "published_datasets.csv").read_text(encoding="utf-8").splitlines()[1:]
    counted = sum(",loops," not in line for line in data)
    assert len(ledger) == sum(counts.values()) + counted + len(statements()) + len(measured_claims()) + 33
    assert all(ledger[f"T8/{p.method}/{p.dataset}"].printed.value == p.mean
               for p in published_results() if p.source.endswith("Table 8"))  # fmt: skip


def test_hashes_are_those_of_the_files(ledger: dict[str, LedgerEntry]) -> None:
    own = ledger["T8/GREAD-BS/cora"].own
    assert own is not None
    assert own.sha256 == hashlib.sha256((results_folder().parent / own.file).read_bytes()).hexdigest()
    assert all(entry.own is None or (entry.own.command and entry.own.sha256) for entry in ledger.values())


def test_missing_results_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No table is silently empty: the results of the package are complete, and a folder has at least one of them."""
    assert len(stored_measurements()) > 1_500
    with pytest.raises(FileError, match="no results file"):
        stored_measurements(tmp_path)
    for name in READERS:
        shutil.copyfile(results_folder() / name, tmp_path / name)
    monkeypatch.setattr(kept_results, "results_folder", lambda: tmp_path)
    assert {one.file for one in stored_measurements()} == {f"{tmp_path.name}/{name}" for name in READERS}
    monkeypatch.setattr(assessment, "results_folder", lambda: tmp_path)
    with pytest.raises(FileError, match=r"compared_notes\.csv"):
        make_ledger()
    (tmp_path / "degrees.json").unlink()
    with pytest.raises(FileError, match=r"degrees\.json"):
        stored_measurements()


def test_kept_claims_are_the_ones_that_there_are() -> None:
    kept = {one.cell: one for one in stored_measurements() if one.file.endswith("claims.json")}
    assert {name: one.detail["status"] for name, one in kept.items()} == {
        name: claim.expected for name, claim in statements().items()
    }
    assert {name: one.detail["source"] for name, one in kept.items()} == {n: c.source for n, c in statements().items()}


def test_degrees_of_the_synthetic_graphs(ledger: dict[str, LedgerEntry], tmp_path: Path) -> None:
    small = homophily.settings(False) | {"levels": [0.0], "source": SAMPLE}
    kept = json.loads((results_folder() / "degrees.json").read_text(encoding="utf-8"))["rows"]
    assert [row["quantity"] for row in degree_rows(small)] == [row["quantity"] for row in kept[:3]]
    assert len([entry for entry in ledger.values() if entry.printed.table == "Table 9"]) == len(kept) == 33
    assert ledger["T9/h=0.1/min_degree"].status == words.REPRODUCED
    assert ledger["T9/h=0/min_degree"].status == words.UNDECIDED  # all ours have 2, one of theirs has 1
    wrong = [{**row, "mean": 5.0 * row["mean"]} for row in kept if row["quantity"] == "max_degree"]
    (tmp_path / "degrees.json").write_text(json.dumps({"command": "c", "rows": wrong}), encoding="utf-8")
    planted = {entry.printed.cell: entry.status for entry in make_ledger(tmp_path)}
    assert {planted[f"T9/h={level}/max_degree"] for level in ("0", "0.5", "0.9")} == {words.ABOVE}


def test_sentences_about_experiments_are_decided_by_kept_verdicts(tmp_path: Path) -> None:
    studies = {name.replace("-", "_") for name in STUDIES}
    pages = {
        path.stem: json.loads(path.read_text("utf-8"))
        for path in results_folder().glob("*.json")
        if path.stem in studies
    }
    for claim in measured_claims().values():
        assert claim.study in studies
        said = [v["statement"] for v in pages.get(claim.study, {"verdicts": []})["verdicts"]]
        assert claim.study not in pages or any(claim.verdicts in statement for statement in said), claim.id
    drops = [
        {"statement": f"GREAD-{reaction} has no sudden drop (of 5 points or more).", "answer": answer, "evidence": "e"}
        for reaction, answer in (("BS", "holds"), ("F", "holds"))
    ]
    for last, status in (("holds", words.REPRODUCED), ("undecided", words.UNDECIDED), ("fails", words.NOT_REPRODUCED)):
        drops[1]["answer"] = last
        kept = {**pages["homophily"], "verdicts": drops}
        (tmp_path / "homophily.json").write_text(json.dumps(kept), encoding="utf-8")
        found = {entry.printed.cell: entry for entry in make_ledger(tmp_path)}
        assert found["E20"].status == status
        assert found["E21"].status == words.NOT_MEASURED
        told = dict(ledger_forms.known_of(found["E20"]))
        assert told["printed in"].startswith("GREAD, Section 4.3, Figure 6")
        assert "GREAD-F has no sudden drop" in told[f"verdict, {last}"]


def test_the_authors_code_stands_beside_ours(ledger: dict[str, LedgerEntry]) -> None:
    found = [one for entry in ledger.values() for one in entry.others if one.file.endswith("authors_cells.csv")]
    assert len(found) == len(authors_cells()) == 31
    beside = ledger["T8/GREAD-AC/texas"].row()["others"]
    assert {(one["who"], one["value"]) for one in beside} >= {(AUTHORS, 72.97), (AUTHORS, 61.08)}


# ---------------------------------------------------------------------- statuses
@pytest.mark.parametrize(
    ("value", "std", "is_open", "expected"),
    [
        (80.5, 3.0, False, words.REPRODUCED),
        (82.0, 3.0, False, words.NOISE),
        (84.0, 3.0, False, words.ABOVE),
        (76.0, 3.0, False, words.NOT_REPRODUCED),
        (76.0, 3.0, True, words.UNDERSPECIFIED),
        (76.0, None, False, words.UNDECIDED),
    ],
)
def test_statuses_of_planted_numbers(value: float, std: float | None, is_open: bool, expected: str) -> None:
    """Both deviations are 3 over ten splits: the error of the difference is sqrt(2), two of them 2.83 points."""
    assert Measurement("T8/x/y", value, std, 10, is_open=is_open).status(PRINTED) == expected


def test_a_planted_wrong_number_is_flagged(tmp_path: Path) -> None:
    cell = "T8/GREAD-BS/texas"
    for name in ("classification.json", "compared.json"):
        shutil.copyfile(results_folder() / name, tmp_path / name)
    before = {e.printed.cell: e for e in make_ledger(tmp_path)}
    found = json.loads((tmp_path / "classification.json").read_text(encoding="utf-8"))
    columns = found["results"]["columns"]
    mean, std = columns.index("mean"), columns.index("std")
    row = next(r for r in found["results"]["rows"] if r[:3] == ["paper", "GREAD-BS", "texas"])
    row[mean], row[std] = 88.92 - 20, 3.72
    (tmp_path / "classification.json").write_text(json.dumps(found), encoding="utf-8")
    after = {e.printed.cell: e for e in make_ledger(tmp_path)}
    assert after[cell].status == words.NOT_REPRODUCED
    assert after[cell].difference.difference == pytest.approx(-20)
    assert after[cell].own is not None
    assert after[cell].own.sha256 != before[cell].own.sha256  # type: ignore[union-attr]
    row[mean] = 88.92
    (tmp_path / "classification.json").write_text(json.dumps(found), encoding="utf-8")
    assert {e.printed.cell: e for e in make_ledger(tmp_path)}[cell].status == words.REPRODUCED
    assert after["T3/cora/nodes"].status == words.NOT_MEASURED


def test_a_results_file_of_another_form_is_refused(tmp_path: Path) -> None:
    (tmp_path / "compared.json").write_text('{"rows": [{"model": "gcn"}]}', encoding="utf-8")
    with pytest.raises(FileError, match=r"compared\.json"):
        make_ledger(tmp_path)


def test_the_papers_contradictions_are_computed(ledger: dict[str, LedgerEntry]) -> None:
    """Those that were found by reading: sums, settings that belong to another number, an exchange."""
    assert ledger["T7/Sheaf/accuracy"].contradiction == "the numbers of Table 8 give 74.96"
    assert ledger["T7/GREAD-AC/rank"].status == words.CONTRADICTED
    assert ledger["T7/GREAD-BS/rank"].contradiction == ""
    belongs = [cell for cell, one in contradictions().items() if "Table 8's number for" in one.text]
    assert len(belongs) == 13  # twelve best settings, and FB on Cora, whose number in Table 8 is that of OA
    for here, there in (("cora", "pubmed"), ("pubmed", "cora")):
        found = ledger[f"T8/MLP/{here}"]
        assert found.status == words.CONTRADICTED
        assert f"that of {there}" in found.contradiction
        assert "swapped" in found.contradiction
    assert sum("are swapped: ours" in entry.contradiction for entry in ledger.values()) == 2
    assert ledger["T3/cora/classes"].status == words.CONTRADICTED


def test_a_contradiction_does_not_hide_a_number_that_is_far_off(ledger: dict[str, LedgerEntry]) -> None:
    assert "37.2" in ledger["T8/GREAD-F/film"].contradiction
    assert ledger["T8/GREAD-F/film"].status == words.NOT_REPRODUCED
    assert "trainings diverged here" in ledger["T8/GREAD-F/film"].cause


def test_readings_that_differ_make_a_cell_underspecified(tmp_path: Path) -> None:
    columns = ["method", "reading", "layers", "dataset", "mean", "std", "splits", "paper"]
    printed = next(p for p in printed_numbers() if p.cell == "T23/GREAD-ST/cora/2")
    for far, expected in ((30.0, words.UNDERSPECIFIED), (printed.value + 0.1, words.REPRODUCED)):
        rows = [["GREAD-ST", reading, 2, "cora", mean, 1.0, 10, printed.value]
                for reading, mean in (("step 1", printed.value), ("T shared", far))]  # fmt: skip
        kept = {"command": "rdgraph study depth", "results": {"columns": columns, "rows": rows}}
        (tmp_path / "depth.json").write_text(json.dumps(kept), encoding="utf-8")
        found = {e.printed.cell: e for e in make_ledger(tmp_path)}["T23/GREAD-ST/cora/2"]
        assert found.status == expected
        assert found.own is not None
        assert found.own.value == printed.value


def test_kept_pages_of_studies_are_read(tmp_path: Path) -> None:
    def keep(name: str, **values: object) -> None:
        results = {"columns": list(values), "rows": [list(values.values())]}
        kept = {"command": f"rdgraph study {name}", "settings": {"splits": 10}, "results": results}
        (tmp_path / f"{name}.json").write_text(json.dumps(kept), encoding="utf-8")

    keep("classification", family="paper", method="GREAD-BS", dataset="cora", mean=88.6, std=0.7, splits=10)
    keep("ablation", reaction="BS", dataset="cora", option="OA", mean=60.0, std=1.0, splits=10)
    keep("significance", dataset="texas", own=88.71, own_std=3.2, other=76.1, other_std=6.0, runs=100, welch_t=18.4,
         paper_t=18.42, corrected_error=1.0)  # fmt: skip
    kept = json.loads((tmp_path / "classification.json").read_text(encoding="utf-8"))
    kept["results"]["rows"].append(["searched", "GREAD-BS", "cora", 77.0, 0.7, 10])
    (tmp_path / "classification.json").write_text(json.dumps(kept), encoding="utf-8")
    found = {e.printed.cell: e for e in make_ledger(tmp_path)}
    assert 77.0 not in {r.value for r in found["T8/GREAD-BS/cora"].readings}  # read from searched.json instead
    assert found["T8/GREAD-BS/cora"].status == words.REPRODUCED
    assert found["T20/GREAD-BS/cora/OA"].status == words.UNDERSPECIFIED  # the printed settings have SA
    assert [found[f"T24/{name}/texas"].status for name in ("GRAND", "GREAD-BS", "t")] == [words.REPRODUCED] * 3


def test_two_t_of_the_same_experiment_are_rarely_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten seeds on ten splits with a luck of their own, done twice: there are no 100 independent trainings."""
    monkeypatch.setattr(paired_rows, "share_ratio", lambda _: 0.0)  # these splits share no nodes
    monkeypatch.setattr(paired_rows, "load_set", lambda name: name)
    draw = np.random.default_rng(0)

    def table() -> dict[str, float]:
        luck = {method: draw.normal(mean, 3.0, 10) for method, mean in (("GREAD-BS", 84.0), ("GRAND", 80.0))}
        rows = [
            {"dataset": "texas", "method": method, "split": split, "seed": seed, "status": "ok",
             "test_accuracy": (luck[method][split] + draw.normal(0.0, 1.0)) / 100}
            for method in luck for split in range(10) for seed in range(10)
        ]  # fmt: skip
        return {
            name: value for name, value in significance.set_table(rows)[0].items() if isinstance(value, float | int)
        }

    apart, naive, trials = 0, 0, 60
    for _ in range(trials):
        ours, theirs = table(), table()
        gap, row = ours["welch_t"] - theirs["welch_t"], {**ours, "paper_t": theirs["welch_t"]}
        apart += abs(gap) > reach(1.0, 10) * t_error(row, 10)
        naive += abs(gap) > 2 * math.sqrt(2 + (ours["welch_t"] ** 2 + theirs["welch_t"] ** 2) / (4 * 99))
    assert apart <= 0.1 * trials
    assert naive > 0.3 * trials  # what the error of independent trainings would say


# ---------------------------------------------------------------------- what others measured
def test_a_number_of_somebody_else_stands_beside(tmp_path: Path) -> None:
    path = tmp_path / "lab.csv"
    path.write_text("cell,value,std,who,command\nT8/GREAD-BS/cora,88.4,0.9,A lab,python run.py\n", encoding="utf-8")
    entry = {e.printed.cell: e for e in make_ledger(added=read_added(path))}["T8/GREAD-BS/cora"]
    one = next(row for row in entry.row()["others"] if row["who"] == "A lab")
    assert (one["value"], one["status"], one["command"]) == (88.4, words.REPRODUCED, "python run.py")
    assert one["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    same = tmp_path / "lab.json"
    same.write_text(json.dumps([{"cell": "gread-bs/cora", "value": 88.4, "who": "A", "command": "c"}]), "utf-8")
    with pytest.raises(UnknownName, match="T24"):  # two tables have it
        read_added(same)


HEAD, CELL = "cell,value,std,splits,who,command\n", "T8/GREAD-BS/cora"


@pytest.mark.parametrize(("name", "text", "said"), [
    ("a.csv", "", "at least one row"),
    ("a.csv", f"cell,value\n{CELL},1\n", "got no who and no command in row 1"),
    ("a.csv", f"{HEAD}{CELL},88,1,10,a,b\n{CELL},much,1,10,a,b\n", "got 'much' for value in row 2"),
    ("a.csv", f"{HEAD}{CELL},nan,1,10,a,b\n", "got 'nan' for value"),
    ("a.csv", f"{HEAD}{CELL},88,-1,10,a,b\n", "got '-1' for std"),
    ("a.csv", f"{HEAD}{CELL},88,nan,10,a,b\n", "got 'nan' for std"),
    ("a.csv", f"{HEAD}{CELL},88,1,-3,a,b\n", "got '-3' for splits"),
    ("a.csv", f"{HEAD}{CELL},88,1,2.5,a,b\n", "got '2.5' for splits"),
    ("a.json", '["a"]', "got 'a' in place of columns in row 1"),
    ("a.json", "5", "got int in place of a list"),
    ("a.json", '{"rows": 5}', "got int in place of a list"),
    ("a.json", "{", "a file that cannot be read"),
    ("a.json", '[{"cell": "M1.4", "value": [1], "who": "a", "command": "b"}]', r"got \[1\] for value"),
])  # fmt: skip
def test_rows_of_somebody_else_that_make_no_sense(name: str, text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FileError, match=f"^expected .*{said}"):
        read_added(path)


def test_a_file_of_a_spreadsheet_is_read(ledger: dict[str, LedgerEntry], tmp_path: Path) -> None:
    printed = next(
        e.printed
        for e in ledger.values()
        if e.printed.cell.startswith("T8/GREAD-") and e.status == words.NOT_REPRODUCED
    )
    row = f"{HEAD}{printed.cell},{printed.value},0.9,,A lab,run\n"
    path = tmp_path / "lab.csv"
    path.write_bytes(b"\xef\xbb\xbf" + row.replace("\n", "\r\n").encode())
    (one,) = read_added(path)
    assert (one.value, one.std, one.count, one.who) == (printed.value, 0.9, 10, "A lab")
    assert one.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    (entry,) = [e for e in make_ledger(added=[one]) if e.printed.cell == printed.cell]
    assert f"A lab: {printed.value:.2f}, which agrees with the paper" in entry.cause


def test_cells_are_found_by_name() -> None:
    cells = [p.cell for p in printed_numbers()]
    assert find_cell("t8/gread-f/cora", cells) == "T8/GREAD-F/cora"
    with pytest.raises(UnknownName, match="GREAD-F"):
        find_cell("T8/GREAD-F/coar", cells)
    with pytest.raises(UnknownName, match=r"known: \w"):  # something is offered, however far it is
        find_cell("zzz", cells)


# ---------------------------------------------------------------------- forms
def test_csv_and_json_have_the_same_rows(ledger: dict[str, LedgerEntry]) -> None:
    entries = ledger_forms.chosen_entries(list(ledger.values()), None, "8")
    found = json.loads(ledger_forms.as_json(entries))
    lines = list(csv.DictReader(io.StringIO(ledger_forms.as_csv(entries))))
    assert found["tally"] == status_tally(entries)
    assert len(found["rows"]) == len(lines) == 315
    for row, line in zip(found["rows"], lines, strict=True):
        assert list(row) == list(line)
        for name, value in row.items():
            if name == "others":
                assert json.loads(line[name] or "[]") == value
            elif isinstance(value, int | float):
                assert float(line[name]) == value
            else:
                assert line[name] == (value or "")
    assert not any(math.isnan(v) for row in found["rows"] for v in row.values() if isinstance(v, float))


def test_rows_are_chosen_by_status_and_table(ledger: dict[str, LedgerEntry]) -> None:
    every = list(ledger.values())
    assert {e.status for e in ledger_forms.chosen_entries(every, "contradicted", None)} == {words.CONTRADICTED}
    assert {e.printed.table for e in ledger_forms.chosen_entries(every, None, "claims")} == {"Claims"}
    for status, table in (("n", None), (None, "99")):
        with pytest.raises(UnknownName):
            ledger_forms.chosen_entries(every, status, table)


def test_the_headline_counts_every_entry_once(ledger: dict[str, LedgerEntry]) -> None:
    entries = list(ledger.values())
    for chosen in (entries, entries[:7], ledger_forms.chosen_entries(entries, "undecided", None)):
        total, *counts = map(int, re.findall(r"\d+", ledger_forms.answer(chosen)))
        assert total == len(chosen) == sum(counts)


def test_the_command_line(tmp_path: Path) -> None:
    shutil.copyfile(results_folder() / "compared.json", tmp_path / "compared.json")
    place = ("--results", str(tmp_path))
    assert "930 numbers and claims" in run(*place)
    shown = run(*place, "show", "T8/GCN/cora")
    for text in ("published:", "ours:", "splits:", "settings:", "command:", "sha256"):
        assert text in shown
    row = json.loads(run(*place, "show", "T8/GCN/cora", "--json"))
    assert (row["cell"], row["file"]) == ("T8/GCN/cora", f"{tmp_path.name}/compared.json")
    assert json.loads(run(*place, "--json", "show", "T8/GCN/cora")) == row
    for words_given, said in ((("--results", "nowhere"), "folder of the results files"), (("--csv",), "one cell")):
        with pytest.raises(InvalidArgument, match=said):
            run(*words_given, "show", "T8/GCN/cora")
    rows = json.loads(run(*place, "--json", "--status", "not measured", "--table", "T8"))["rows"]
    assert rows
    assert {row["status"] for row in rows} == {words.NOT_MEASURED}
    page = tmp_path / "page.html"
    run(*place, "--table", "8", "--page", str(page))
    text = page.read_text(encoding="utf-8")
    assert "T8/GCN/cora" in text
    assert "http://" not in text.replace("http://www.w3.org", "")
    assert "https://" not in text


def test_what_a_page_shows_is_escaped(ledger: dict[str, LedgerEntry]) -> None:
    entry = ledger["T8/GCN/cora"]
    planted = replace(
        entry, others=(Measurement("T8/GCN/cora", 1.0, who="<b>me</b>", command="a", reading="<script>"),)
    )
    text = ledger_forms.as_page([planted])
    assert "&lt;b&gt;me&lt;/b&gt;" in text
    assert "<b>me" not in text


def test_the_page_of_the_documentation_is_the_output(ledger: dict[str, LedgerEntry]) -> None:
    found = (ROOT / "docs" / "measured" / "ledger.md").read_text(encoding="utf-8")
    assert found == ledger_forms.as_markdown(list(ledger.values())), (
        "rdgraph ledger --markdown > docs/measured/ledger.md"
    )


def test_the_study_of_causes_is_quoted(tmp_path: Path) -> None:
    shutil.copyfile(results_folder() / "classification.json", tmp_path / "classification.json")
    cell, printed = "T8/GREAD-AC/chameleon", 65.09
    row = {"completion": "tanh", "reaction": "AC", "dataset": "chameleon", "mean": printed, "std": 1.0, "splits": 10}
    kept = {
        "command": "rdgraph study forensics",
        "results": {"columns": list(row), "rows": [list(row.values())]},
        "verdicts": [
            {"statement": f"GREAD-AC{STATED}", "answer": "holds", "evidence": "explained by tanh; nearest is tanh"},
            {"statement": f"GREAD-F{STATED}", "answer": "undecided", "evidence": "not explained; nearest is tanh"},
        ],
    }
    (tmp_path / "forensics.json").write_text(json.dumps(kept), encoding="utf-8")
    entries = {e.printed.cell: e for e in make_ledger(tmp_path)}
    assert not any("the row is" in e.cause for name, e in entries.items() if name.startswith("T8/GREAD-F/"))
    found = entries[cell]
    assert found.status == words.NOT_REPRODUCED
    assert "the row is explained by tanh" in found.cause
    assert "agrees in other readings (tanh 65.09)" in found.cause
