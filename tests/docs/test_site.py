"""The pages of the site: every public name is in the reference, the last look finds what it looks for."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from docs.building import made_pages
from docs.building.built_site import faults
from docs.building.reference_pages import DOORS, groups, plain_stars, summary, table
from tests import doors
from tests.paths import ROOT

CONTENTS = re.compile(r"```\{toctree\}\n(.*?)```", re.DOTALL)


def test_the_reference_has_every_door() -> None:
    assert sorted(DOORS) == sorted(doors.DOORS)


@pytest.mark.parametrize("package", DOORS)
def test_the_reference_has_every_public_name(package: str) -> None:
    named = [name for group in groups(package) for name in group.names]
    assert sorted(named) == sorted(set(importlib.import_module(package).__all__) - {"__version__"})


def test_the_reference_lists_every_group() -> None:
    listed = set(
        re.findall(r"^/generated/reference/(\w+)$", (ROOT / "docs/reference/reference.md").read_text(), re.MULTILINE)
    )
    pages = {group.address for package in DOORS for group in groups(package)}
    assert listed == pages | {"all_names", "commands", "rdgraph_errors", "rdgraph_testing"}


@pytest.mark.parametrize("package", DOORS)
def test_every_public_name_has_a_sentence_in_the_table(package: str) -> None:
    pytest.importorskip("sphinx", reason="`make docs` installs it")
    for group in groups(package):
        rows = table(group)
        for name in group.names:
            assert name in rows
            value = getattr(importlib.import_module(package), name)
            assert summary(package, name) or not callable(value), name


@pytest.mark.parametrize("folder", ["start/tutorials", "howto", "mathematics", "measured"])
def test_the_contents_of_a_folder_name_all_its_pages(folder: str) -> None:
    (block,) = CONTENTS.findall((ROOT / "docs" / folder / "index.md").read_text(encoding="utf-8"))
    lines = (line for line in block.splitlines() if line and not line.startswith((":", "../")))
    named = {re.sub(r".*<(\w+)>", r"\1", line) for line in lines}
    assert named == {page.stem for page in (ROOT / "docs" / folder).glob("*.md")} - {"index"}


def test_answers_in_the_index_of_measured_pages_are_those_of_the_pages() -> None:
    """Every number of an answer stands in the bold answer of its page, or, where there is none, on the page."""
    folder = ROOT / "docs/measured"
    number = re.compile(r"(?<![\w.,])-?\d+(?:,\d{3})*(?:\.\d+)?")
    rows = re.findall(
        r"^\| \[.*?\]\((\w+)\.md\).* \| (.+) \|$", (folder / "index.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert len(rows) > 20
    for name, answer in rows:
        page = (folder / f"{name}.md").read_text(encoding="utf-8")
        bold = re.search(r"^\*\*.+?\*\*", page, re.DOTALL | re.MULTILINE)
        assert set(number.findall(answer)) <= set(number.findall(bold[0] if bold else page)), name


def test_every_explanation_has_its_four_parts() -> None:
    for page in (ROOT / "docs/mathematics").glob("*.md"):
        if page.name not in ("index.md", "answers.md"):
            heads = re.findall(r"^## (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
            assert heads == ["Definition", "Theorem", "Method", "Example"], page.name


def test_the_last_look_finds_networks_dead_links_and_missing_pictures(tmp_path: Path) -> None:
    (tmp_path / "good.html").write_text('<a href="other.html#place">o</a><a href="https://example.org">w</a>')
    (tmp_path / "other.html").write_text('<p id="place"></p><link rel="canonical" href="https://example.org/o.html">')
    assert list(faults(tmp_path)) == []
    (tmp_path / "bad.html").write_text(
        '<script src="https://example.org/x.js"></script><a href="gone.html">g</a><a href="other.html#gone">p</a>'
    )
    (tmp_path / "bad.css").write_text('@font-face { src: url("https://example.org/f.woff") }')
    (tmp_path / "plot_nothing.html").write_text("<p></p>")
    found = sorted(faults(tmp_path))
    assert found == [
        "bad.css loads from a network",
        "bad.html leads to gone.html, which is not there",
        "bad.html leads to other.html#gone, a place that is not there",
        "bad.html loads https://example.org/x.js",
        "plot_nothing.html shows no picture of its program",
    ]


def test_docstrings_become_text_that_says_the_same() -> None:
    pytest.importorskip("sphinx", reason="`make docs` installs it")
    from docs.building.docstrings import escaped

    assert escaped("`p` is -alpha*L@H, |h| <= k_(i-1), row_sum") == (
        r"``p`` is -alpha\*L@H, \|h\| <= k\_(i-1), row_sum"
    )


def test_formulas_become_mathml() -> None:
    pytest.importorskip("sphinx", reason="`make docs` installs it")
    from sphinx.errors import SphinxError

    from docs.building.mathml import as_mathml

    assert as_mathml(r"\frac{1}{2}", as_block=False).startswith("<math xmlns=")
    with pytest.raises(SphinxError, match="expected a formula"):
        as_mathml(r"\nothing", as_block=False)


@pytest.mark.parametrize("has_explorer", [True, False])
def test_the_explorer_is_embedded_where_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_explorer: bool
) -> None:
    calls: list[tuple[str, ...]] = []
    monkeypatch.setattr(made_pages, "commands", lambda: {"ledger", "explore"} if has_explorer else {"ledger"})
    monkeypatch.setattr(made_pages, "rdgraph", lambda *words: calls.append(words))
    made_pages.write_made_pages(tmp_path / "extra", tmp_path / "generated")
    wanted = {"ledger_rows": ("ledger", "--page")} | ({"explore": ("explore", "--out")} if has_explorer else {})
    assert calls == [(*words, str(tmp_path / f"extra/{name}_page.html")) for name, words in wanted.items()]
    assert {page.stem for page in (tmp_path / "generated").iterdir()} == set(wanted)
    for name in wanted:
        assert f'src="../{name}_page.html"' in (tmp_path / f"generated/{name}.md").read_text(encoding="utf-8")


def test_stars_of_formulas_in_help_texts_are_no_emphasis() -> None:
    text = "# Head\n\n**Usage**:\n\n```console\n$ a*b*c\n```\n\n* `x*y`: as in alpha*L@H + beta*H**2.\n"
    expected = text.replace("alpha*L@H + beta*H**2", r"alpha\*L@H + beta\*H\*\*2")
    assert plain_stars(text) == expected
