"""What notebooks show: tables of answers, escaped, and systems as their equations."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import torch

import rdgraph as rd
from rdgraph.wording import html_table


class Cells(HTMLParser):
    """The texts of a table, and the tags that occur."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


TABLE = {"table", "caption", "tr", "th", "td", "p"}


def test_everything_is_escaped() -> None:
    cells = Cells(html_table("<b>", [("<script>", "a & b", "<i>")], footer="<u>"))
    assert cells.tags == TABLE
    assert cells.texts == ["<b>", "<script>", "a & b", "<i>", "<u>"]


def test_a_system_prints_as_its_equation() -> None:
    system = rd.parse("-alpha*L@H + beta*H0", {"beta": "channel"})
    assert repr(system) == "dH/dt = -alpha*L@H + beta*H0 where beta channel"
    assert f"{[system]}" == "[dH/dt = -alpha*L@H + beta*H0 where beta channel]"


def test_reports_analyses_claims_and_solutions_are_tables() -> None:
    report = rd.preflight("BS", T=2, values={"alpha": 1, "beta": 0.5})
    cells = Cells(report._repr_html_())
    assert cells.tags == TABLE
    assert f"verdict: {report.verdict}" in cells.texts
    assert [f.topic for f in report.findings] == [t for t in cells.texts if t in {f.topic for f in report.findings}]

    analysis = rd.analyse("diffusion")
    cells = Cells(analysis._repr_html_())
    assert cells.tags == TABLE - {"p"}
    assert {"symbol", "-alpha*lam", "method", analysis.method.reason} <= set(cells.texts)

    claim = replace(rd.verify("M1.1")[0], title="a < b")
    cells = Cells(claim._repr_html_())
    assert cells.tags == TABLE - {"p"}
    assert f"{claim.id}: a < b" in cells.texts

    field = rd.lower("BS", rd.generators.ring(4).operator(dtype=torch.float64), {"alpha": 1.0, "beta": 1.0})
    solution = rd.solve(field, torch.ones(4, 1, dtype=torch.float64), [0.0, 1.0])
    cells = Cells(solution._repr_html_())
    assert cells.tags == TABLE - {"p"}
    assert {"exact", solution.reason, "ok", "(2, 4, 1)"} <= set(cells.texts)
