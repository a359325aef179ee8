"""One page and one browser for the tests of the explorer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from studies.explorer.page_text import page_text
from tests.studies.runs.test_browser import CHROMIUM, Browser


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the catalogue."""
    path = tmp_path_factory.mktemp("explorer") / "page.html"
    path.write_text(page_text("BS"), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser, where there is one."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine; apt-get install chromium")
    found = Browser(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


@pytest.fixture
def opened(chromium: Browser, page: Path) -> Browser:
    """The browser with the page open at its first view, paused at its start."""
    chromium.open(page)
    frames = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
    chromium.evaluate(f"{frames}.then(() => {{ play(false); rewind(); }})")
    return chromium
