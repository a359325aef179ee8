"""A report in a real browser: no error, every figure drawn, tables sort, nothing is wider than a phone.

Chromium is driven over the DevTools protocol through a pair of pipes, so no port is opened and nothing is installed.
"""

from __future__ import annotations

import base64
import fcntl
import json
import math
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from studies.runs.index import write_index
from studies.runs.study import Study, execute
from studies.runs.study_run import StudyRun

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    "--headless", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-extensions", "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
)  # fmt: skip
SECONDS = 60

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine; apt-get install chromium")


class Browser:
    """One page of a headless Chromium; `events` holds everything it told of since the last `open`."""

    def __init__(self, profile: Path) -> None:
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for pair in (os.pipe(), os.pipe()) for end in _moved(pair)]
        theirs_in, self._out, self._in, theirs_out = ends

        def place_pipes() -> None:
            os.dup2(theirs_in, 3)
            os.dup2(theirs_out, 4)

        sandbox = ("--no-sandbox",) if os.geteuid() == 0 else ()
        self._process = subprocess.Popen(
            [str(CHROMIUM), *FLAGS, *sandbox, f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=place_pipes, pass_fds=(3, 4), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(theirs_in)
        os.close(theirs_out)
        self._buffer = b""
        self._count = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._count:
                assert "error" not in answer, answer
                return dict(answer["result"])
            self.events.append(answer)

    def _read(self) -> dict[str, Any]:
        deadline = time.monotonic() + SECONDS
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0.0, deadline - time.monotonic()))
            piece = os.read(self._in, 1 << 16) if ready else b""
            assert piece, "Chromium ended, or did not answer in time"
            self._buffer += piece
        text, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(text))

    def open(self, path: Path, width: int = 1280, scheme: str = "light") -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600
        )
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.events.clear()
        self.call("Page.navigate", url=path.resolve().as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._read())

    def evaluate(self, expression: str) -> Any:
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        text = {"Enter": "\r"}.get(key, "")
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, text=text, windowsVirtualKeyCode=13)

    def complaints(self) -> list[Any]:
        """Exceptions, errors in the log and on the console."""
        found = []
        for event in self.events:
            match event:
                case {"method": "Runtime.exceptionThrown" | "Log.entryAdded", "params": params}:
                    found.append(params)
                case {"method": "Runtime.consoleAPICalled", "params": {"type": "error" | "warning"} as params}:
                    found.append(params)
        return found

    def requests(self) -> list[str]:
        wanted = [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]
        return [url for url in wanted if not url.startswith("data:")]

    def screenshot(self, path: Path) -> None:
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(answer["data"]))

    def close(self) -> None:
        self._process.kill()
        self._process.wait(SECONDS)
        os.close(self._out)
        os.close(self._in)


def _moved(pair: tuple[int, int]) -> Iterator[int]:
    """The two ends; each is closed once its caller has copied it."""
    for end in pair:
        yield end
        os.close(end)


def body(run: StudyRun) -> None:
    figure = Figure(figsize=(8, 2))
    figure.subplots().plot([0, 1])
    values = [0.5, math.nan, -math.inf, 10.0, 9.0, math.inf, 1e-9]
    wide = {f"a_long_column_{k}": k for k in range(12)}
    rows = [{"name": f"row {k}", "value": v, **wide} for k, v in enumerate(values)]
    run.say("Words", "A long_unbroken_" + "word_" * 40)
    run.figure("line", figure, "A line.", rows)
    run.figure("second", figure, "The line again.", rows)
    run.table("numbers", rows, "Numbers.")
    run.verdict("A statement of some length about the numbers.", "fails", "Evidence that is longer than the statement.")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    study = Study("toy", "A toy", "Does it show?", body)
    return execute(study, tmp_path_factory.mktemp("runs") / "toy")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    found = Browser(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


def column(browser: Browser, number: int) -> list[str]:
    cells = f"document.querySelectorAll('#table-numbers tbody tr td:nth-child({number})')"
    return list(browser.evaluate(f"[...{cells}].map((cell) => cell.textContent)"))


def heading(number: int) -> str:
    return f"document.querySelector('#table-numbers th:nth-child({number})')"


def test_no_error_no_request_and_every_figure(browser: Browser, report: Path) -> None:
    browser.open(report)
    assert browser.evaluate("[...document.images].map((i) => i.complete && i.naturalWidth)") == [1280, 1280]
    assert browser.complaints() == []
    assert browser.requests() == [report.resolve().as_uri()]


def test_the_browser_would_hear_an_error(browser: Browser, report: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    text = report.read_text(encoding="utf-8").replace('"use strict";', '"use strict"; console.error("no"); missing();')
    bad.write_text(text, encoding="utf-8")
    browser.open(bad)
    assert len(browser.complaints()) == 2


def test_a_click_sorts_the_table(browser: Browser, report: Path) -> None:
    browser.open(report)
    start = column(browser, 2)
    assert start == ["0.50", "-", "-∞", "10.00", "9.00", "∞", "1e-09"]
    browser.evaluate(f"{heading(2)}.querySelector('button').click()")
    assert column(browser, 2) == ["-∞", "1e-09", "0.50", "9.00", "10.00", "∞", "-"]
    assert column(browser, 1)[0] == "row 2"
    assert browser.evaluate(f"{heading(2)}.getAttribute('aria-sort')") == "ascending"
    browser.evaluate(f"{heading(2)}.querySelector('button').click()")
    assert column(browser, 2) == ["∞", "10.00", "9.00", "0.50", "1e-09", "-∞", "-"]
    browser.evaluate(f"{heading(1)}.querySelector('button').focus()")
    browser.press("Enter")
    assert column(browser, 2) == start
    assert browser.evaluate(f"{heading(2)}.getAttribute('aria-sort')") is None
    assert browser.complaints() == []


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_window(browser: Browser, report: Path, width: int) -> None:
    browser.open(report, width)
    assert browser.evaluate("[window.innerWidth, document.documentElement.scrollWidth <= window.innerWidth]") == [
        width,
        True,
    ]
    assert browser.evaluate("Math.max(...[...document.images].map((i) => i.getBoundingClientRect().right))") < width
    box = "document.querySelector('#table-numbers').parentElement"
    assert browser.evaluate(f"{box}.scrollWidth > {box}.clientWidth")


def test_dark_and_light(browser: Browser, report: Path) -> None:
    colours = {}
    for scheme in ("light", "dark"):
        browser.open(report, scheme=scheme)
        style = "getComputedStyle(document.querySelector('{}')).backgroundColor"
        colours[scheme] = [browser.evaluate(style.format(place)) for place in ("body", ".card")]
    assert colours == {"light": ["rgb(255, 255, 255)"] * 2, "dark": ["rgb(20, 24, 29)", "rgb(255, 255, 255)"]}


def test_the_index_shows_the_report(browser: Browser, report: Path) -> None:
    browser.open(write_index(report.parent.parent), 390)
    assert browser.evaluate("[...document.images].map((i) => i.naturalWidth)") == [1280]
    assert browser.evaluate("[window.innerWidth, document.documentElement.scrollWidth]") == [390, 390]
    assert browser.complaints() == []
    address = browser.evaluate("document.querySelector('h2 a').href")
    assert address == report.resolve().as_uri()
