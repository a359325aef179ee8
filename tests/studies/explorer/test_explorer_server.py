"""The command and the server: what is written, what is answered, and to whom."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from typer.testing import CliRunner

from rdgraph.errors import FileError, InvalidArgument
from rdgraph.reports.preflight_report import preflight
from rdgraph.systems.catalogue import catalogue
from studies.cli.app import app
from studies.explorer.equation_bundle import make_bundle
from studies.explorer.page_text import SCRIPTS, catalogue_entries, small_graph
from studies.explorer.server import Explorer, make_server
from tests.paths import ROOT
from tests.studies.runs.test_browser import CHROMIUM, Browser


def ask(path: str, **words: object) -> dict[str, object]:
    answer = Explorer("<p>page</p>").answer(f"{path}?{urlencode(words)}")
    assert answer.status == 200
    return dict(json.loads(answer.body))


def test_the_server_answers_as_rdgraph_does() -> None:
    assert Explorer("<p>page</p>").answer("/").body == "<p>page</p>"
    assert Explorer("").answer("/etc/passwd").status == Explorer("").answer("/api/bundle?" + "x" * 30_000).status == 404
    told = ask("/api/preflight", equation="BS", T=40, step=1, method="euler", coefficients='{"alpha": 1, "beta": 1}')
    assert told["report"]["outcome"] == "unsafe"  # type: ignore[index]
    refused = ask("/api/bundle", equation="A*H")["error"]
    assert refused["at"] == 1  # type: ignore[index]
    assert "use A@H, not A*H" in refused["remedy"]  # type: ignore[index]
    for words in ({"T": "x", "step": 1}, {"T": 1, "step": 0}, {"T": 1, "step": 1, "coefficients": "[1]"}):
        assert "error" in ask("/api/preflight", equation="BS", method="euler", **words)


def test_the_command_writes_one_file(tmp_path: Path) -> None:
    edges = tmp_path / "edges.csv"
    edges.write_text("source,target\na,b\nb,c\n# remark\nc,a\nc,c\n", encoding="utf-8")
    out = tmp_path / "page.html"
    done = CliRunner().invoke(app, ["explore", "-alpha*L@H", "--graph", str(edges), "--out", str(out)])
    assert done.exit_code == 0, done.output
    page = out.read_text(encoding="utf-8")
    assert '"equation":"-alpha*L@H"' in page
    assert '"nodes":3,"edges":[[0,1],[0,2],[1,2]]' in page
    assert "src=" not in page
    assert "connect-src 'none'" in page


def test_the_scripts_are_small_files_of_short_lines() -> None:
    for path in (ROOT / "studies/explorer/page").glob("*.js"):
        lines = path.read_text(encoding="utf-8").splitlines()
        assert len(lines) < 400, path.name
        assert max(map(len, lines)) <= 120, path.name
        assert path.stem in SCRIPTS


def test_graphs_that_cannot_be_shown_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "edges.txt"
    for text, error in (
        ("", FileError),
        ("alone\n", FileError),
        ("\n".join(f"{i} {i + 1}" for i in range(500)), InvalidArgument),
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(error, match="expected"):
            small_graph(str(path))


def test_the_kept_bundles_are_those_of_the_catalogue() -> None:
    for entry, kept in zip(catalogue.entries.values(), catalogue_entries(), strict=True):
        system, bundle = entry.system, kept["bundle"]
        assert (bundle["text"], bundle["latex"], bundle["fields"]) == (str(system), system.latex(), list(system.fields))
        assert set(entry.parameters) <= set(bundle["coefficients"])
        assert set(kept["start"].get("coefficients", {})) <= set(bundle["coefficients"])
        for name in ("base", "amplitude"):
            assert len(kept["start"].get(name, system.fields)) == len(system.fields), entry.name


@pytest.mark.slow
@pytest.mark.parametrize("name", ["BS", "ST", "GRAND++", "Schnakenberg", "GraphCON", "SIS"])
def test_the_kept_bundles_are_what_is_worked_out(name: str) -> None:
    (kept,) = (entry["bundle"] for entry in catalogue_entries() if entry["name"] == name)
    made = json.loads(json.dumps(make_bundle(catalogue[name], seconds=30)))
    for kind, findings in made.pop(
        "existence"
    ).items():  # boxes have a clock of their own, on a busy machine they may fail
        lives, before = (
            [f for f in found if f["topic"] == "existence"] for found in (findings, kept["existence"][kind])
        )
        assert lives == before
    assert made == {key: value for key, value in kept.items() if key != "existence"}


@pytest.fixture
def address() -> Iterator[str]:
    with make_server("BS", "ring") as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join(10)


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine; apt-get install chromium")
def test_a_served_page_reads_with_the_real_parser(chromium: Browser, address: str) -> None:
    chromium.events.clear()
    chromium.call("Page.navigate", url=address)
    while not any(event.get("method") == "Page.loadEventFired" for event in chromium.events):
        chromium.events.append(chromium._read())
    chromium.evaluate("choose('-alpha*L@H + beta*H where beta < 0')")
    chromium.evaluate("""(async () => {
      const isDecided = () => byId("verdict-words").textContent.includes("decided by rdgraph");
      while (!isDecided()) await new Promise((done) => setTimeout(done, 50));
    })()""")
    assert chromium.evaluate("view.model.bundle.classes[0].words") == "low-pass"
    settings = "(({coefficients: values, T, step, method}) => ({values, T, step, method}))(view.settings)"
    asked = chromium.evaluate(settings)
    ours = preflight("-alpha*L@H + beta*H where beta < 0", **asked)
    assert chromium.evaluate("byId('verdict').dataset.status") == ours.outcome
    assert ours.verdict.removeprefix(ours.status).strip(": ") in chromium.evaluate("byId('verdict-words').textContent")
    assert chromium.evaluate("(async () => (await fetch('/api/nothing')).status)()") == 404
    assert [c for c in chromium.complaints() if "404" not in json.dumps(c)] == []
