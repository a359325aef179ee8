"""The page of the ledger in a real browser: no error, no request, filters, and nothing wider than a phone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from studies.ledger import ledger_forms
from studies.ledger.assessment import make_ledger
from studies.ledger.entry import NOT_REPRODUCED
from tests.studies.runs.test_browser import CHROMIUM, Browser

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine; apt-get install chromium"),
]
SHOWN = "[...document.querySelectorAll('table.ledger tbody tr')].filter((row) => !row.hidden).length"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    found = Browser(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


def test_the_page_filters_sorts_and_fits(browser: Browser, tmp_path: Path) -> None:
    entries = make_ledger()
    page = tmp_path / "ledger.html"
    page.write_text(ledger_forms.as_page(entries), encoding="utf-8")
    browser.open(page, width=400)
    assert browser.complaints() == []
    assert browser.requests() == [page.resolve().as_uri()]
    assert browser.evaluate("document.documentElement.scrollWidth") <= 400
    assert browser.evaluate(SHOWN) == len(entries)
    browser.evaluate(f"document.querySelector('button[data-status=\"{NOT_REPRODUCED}\"]').click()")
    assert browser.evaluate(SHOWN) == sum(entry.status == NOT_REPRODUCED for entry in entries)
    choose = "const t = document.getElementById('table'); t.value = 'Claims'; t.dispatchEvent(new Event('change'))"
    browser.evaluate(f"{{ {choose} }}")
    claims = [entry for entry in entries if entry.printed.table == "Claims" and entry.status == NOT_REPRODUCED]
    assert browser.evaluate(SHOWN) == len(claims) > 0
    browser.evaluate("document.querySelector('table.ledger tr:not([hidden]) details').open = true")
    assert browser.evaluate("document.documentElement.scrollWidth") <= 400
