"""The report page and the index over reports: what they say, that nothing leaves the page, that text stays text."""

from __future__ import annotations

import base64
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from rdgraph.errors import RdgraphError
from studies.runs.index import write_index
from studies.runs.report import Passage, Picture, ReportVerdict, shown
from studies.runs.study import Study, execute
from studies.runs.study_run import StudyRun
from tests.paths import ROOT

EVIL = '<script>alert("&")</script>'
ROWS = [
    {"name": "b", "value": 2.0, "count": 10},
    {"name": "a", "value": float("nan"), "count": 9},
    {"name": EVIL, "value": float("inf"), "count": 100},
]


class Walk(HTMLParser):
    """Tags with their attributes, in order, and whether every element was closed."""

    VOID = ("meta", "link", "img", "br", "hr", "input")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def body(run: StudyRun) -> None:
    figure = Figure(figsize=(2, 1))
    figure.subplots().plot([0, 1])
    run.say("Results in words", f"First {EVIL}.\n\nSecond paragraph.")
    run.figure("line", figure, f"A caption with {EVIL}.", [{"x": 1.0}])
    run.table("numbers", ROWS, "Numbers.")
    run.table("empty", [], "No rows.")
    run.figure("again", figure, "The same.", [{"x": 1.0}])
    run.verdict("It holds.", "holds", EVIL)
    run.verdict("It depends.", "holds if β < α", "seen")


def toy(title: str = "A toy & more") -> Study:
    return Study("toy", title, "Is 1 < 2?", body)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("runs") / "toy"
    execute(toy(), place, seed=3)
    return place


@pytest.fixture(scope="module")
def page(folder: Path) -> str:
    return (folder / "report.html").read_text(encoding="utf-8")


def test_sections_stand_in_order(page: str) -> None:
    found = re.findall(r"<h2[^>]*>(.*?)</h2>", page)
    assert found == ["Answer", "Results", "Verdicts", "Rerun"]
    assert "<title>A toy &amp; more</title>" in page
    assert "Is 1 &lt; 2?" in page
    assert "rdgraph study toy --seed 3 --out " in page
    assert re.findall(r"<b>((?:Figure|Table) \d)\.</b>", page) == ["Figure 1", "Table 1", "Table 2", "Figure 2"]


def test_the_answer_comes_first(tmp_path: Path) -> None:
    def answering(run: StudyRun) -> None:
        body(run)
        run.answer(f"It is 42 {EVIL}.", "again")
        run.verdict("It fails.", "fails", "seen")

    page = execute(Study("answers", "Answers", "What is it?", answering), tmp_path / "run").read_text(encoding="utf-8")
    assert EVIL not in page
    marks = ('id="answer"', "It is 42", '1 holds</span>, <span class="answer if">1 holds if ...</span>',
             'id="figure-again"', 'id="results"', 'id="figure-line"', 'id="table-verdicts"', 'id="command"',
             '<details id="settings">')  # fmt: skip
    places = [page.index(mark) for mark in marks]
    assert places == sorted(places)
    assert page.count('id="figure-again"') == 1
    assert re.findall(r"<b>(Figure \d)\.</b>", page) == ["Figure 2", "Figure 1"]
    index = write_index(tmp_path).read_text(encoding="utf-8")
    assert index.index("What is it?") < index.index("It is 42")


def test_text_stays_text(page: str) -> None:
    assert EVIL not in page
    assert page.count("&lt;script&gt;alert(") == 5  # passage, alternative text and caption, cell, evidence
    assert len(Walk(page).all("script")) == 1


def test_nothing_is_fetched(page: str) -> None:
    walk = Walk(page)
    assert all(image["src"].startswith("data:image/png;base64,") for image in walk.all("img"))  # type: ignore[union-attr]
    assert [link["href"] for link in walk.all("link")] == ["data:,"]
    assert all("src" not in script for script in walk.all("script"))
    assert not re.search(r"https?://|url\(|@import", page)
    policy = next(m["content"] for m in walk.all("meta") if m.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'; img-src data:;")


def test_pictures_are_the_files(page: str, folder: Path) -> None:
    sources = [image["src"] or "" for image in Walk(page).all("img")]
    decoded = [base64.b64decode(source.partition(",")[2]) for source in sources]
    assert decoded == [(folder / f"figures/{name}.png").read_bytes() for name in ("line", "again")]
    assert decoded[0].startswith(b"\x89PNG")


def test_links_lead_to_files(page: str, folder: Path) -> None:
    targets = [link["href"] or "" for link in Walk(page).all("a")]
    files = [t for t in targets if not t.startswith("#")]
    assert len(files) == 8
    assert all((folder / target).is_file() for target in files)
    ids = {attributes.get("id") for _, attributes in Walk(page).tags}
    assert all(t[1:] in ids for t in targets if t.startswith("#"))


def test_cells_carry_their_numbers(page: str) -> None:
    table = page[page.index('id="table-numbers"') :]
    assert re.findall(r'data-value="([^"]*)"', table)[:6] == ["2.0", "10", "nan", "9", "inf", "100"]
    assert '<td class="number" data-value="inf">∞</td>' in table
    assert '<td class="number" data-value="nan">-</td>' in table  # sorted as what it is, shown as a dash
    assert ">nan<" not in page
    assert [("number" in th) for th in re.findall(r"<th scope[^>]*>", table)[:3]] == [False, True, True]


def test_values_as_a_reader_wants_them() -> None:
    assert [shown(v) for v in (1, 1.0, 123456.0, -0.00012346, float("nan"), -float("inf"), "x", True)] == [
        "1", "1", "1.235e+05", "-0.0001235", "-", "-∞", "x", "yes",
    ]  # fmt: skip


def test_parts_of_a_page() -> None:
    assert Passage("", " one\n two \n\n\n three ").paragraphs == ["one two", "three"]
    assert ReportVerdict("", "holds if x", "").sort == "if"
    assert Picture("m", Path("figures/m.gif"), "").files == ["figures/m.gif"]


# ---------------------------------------------------------------------- index
def test_index_over_reports(folder: Path) -> None:
    execute(toy("Another"), folder.parent / "another one", seed=3, small=True)
    path = write_index(folder.parent)
    text = path.read_text(encoding="utf-8")
    walk = Walk(text)
    links = [link["href"] for link in walk.all("a")]
    assert links == ["another%20one/report.html"] * 2 + ["toy/report.html"] * 2
    assert re.findall(r"<h2><a[^>]*>(.*?)</a>", text) == ["Another", "A toy &amp; more"]
    assert text.count("small mode") == 1
    assert text.count("holds if β &lt; α") == 2
    assert len(walk.all("img")) == 2
    (folder / "state").write_text("running\n")
    assert "state-running" in write_index(folder.parent).read_text(encoding="utf-8").partition("</style>")[2]


def test_index_needs_runs(tmp_path: Path) -> None:
    with pytest.raises(RdgraphError, match="no runs below"):
        write_index(tmp_path)
    assert list(tmp_path.iterdir()) == []
    done = subprocess.run(
        [sys.executable, "-m", "studies.runs.index", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: FileError\nthere are no runs below")
