"""The page in a real browser: what a person sees, types, drags, sends and takes along."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from rdgraph.systems.catalogue import catalogue
from tests.studies.runs.test_browser import Browser

FRAMES = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 30))))"
KEYS = {"ArrowRight": 39, "ArrowUp": 38, "Tab": 9, "Enter": 13}


PNG = """new Promise((done) => pngOf(%s, (blob) => {
  const reader = new FileReader();
  reader.onload = () => done(reader.result);
  reader.readAsDataURL(blob);
}))"""


def settle(browser: Browser) -> None:
    """Until what was changed is drawn, the phase diagram too."""
    browser.evaluate(FRAMES)
    wanted = "view.cells !== null || !view.model.kinetics || view.settings.axes.length < 2"
    browser.evaluate(f"(async () => {{ while (!({wanted})) await {FRAMES}; }})()")


def look(browser: Browser, equation: str) -> None:
    browser.evaluate(f"choose({json.dumps(equation)})")
    settle(browser)


def press(browser: Browser, key: str) -> None:
    for kind in ("keyDown", "keyUp"):
        browser.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=KEYS[key])


def text(browser: Browser, place: str) -> Any:
    return browser.evaluate(f"byId({json.dumps(place)}).textContent")


def test_it_opens_without_an_error_or_a_request(opened: Browser, page: Path) -> None:
    settle(opened)
    assert opened.complaints() == []
    assert opened.requests() == [page.resolve().as_uri()]
    assert text(opened, "verdict-words").startswith("safe")
    assert "band-pass if beta > alpha" in text(opened, "response-words")
    assert "(proved)" in text(opened, "response-words")
    assert opened.evaluate("document.querySelectorAll('.picture svg').length") == 5
    assert opened.evaluate("document.querySelector('math mtable') !== null")


@pytest.mark.slow
def test_it_opens_playing_or_where_motion_is_not_wanted_at_the_end(chromium: Browser, page: Path) -> None:
    chromium.open(page)
    chromium.evaluate(f"(async () => {{ while (!(view.settings.t > 0)) await {FRAMES}; }})()")
    assert text(chromium, "play") == "Pause"
    chromium.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": "reduce"}])
    chromium.evaluate("play(false); rewind(); begin(true)")
    chromium.evaluate(f"(async () => {{ while (view.settings.t < view.settings.T) await {FRAMES}; }})()")
    assert chromium.evaluate("view.isPlaying") is False
    assert chromium.complaints() == []


@pytest.mark.slow
def test_conditions_have_numbers_where_all_coefficients_are_known(opened: Browser) -> None:
    look(opened, "F")
    opened.evaluate("view.settings.normalisation = 'symmetric'; refresh()")
    settle(opened)
    shown = opened.evaluate("shown(1 + view.settings.coefficients.alpha*(view.small.rowSum - 1)/"
                            "view.settings.coefficients.beta)")  # fmt: skip
    assert f"H0 lies in [0, {shown}]" in text(opened, "verdict-words")
    look(opened, "BS")
    assert "peak at λ = 0.2" in text(opened, "response-words")


@pytest.mark.slow
def test_free_text_is_read_and_marked_as_not_proved(opened: Browser) -> None:
    look(opened, "-alpha*L@H + k*H where k scalar")
    assert opened.complaints() == []
    assert "computed in the page, not proved" in text(opened, "response-words")
    assert text(opened, "verdict-words").startswith("unsafe because the error of euler is")
    assert text(opened, "verdict-words").endswith("(computed in the page, not proved)")
    opened.evaluate("view.settings.step = 0.01; refresh()")
    settle(opened)
    assert opened.evaluate("byId('verdict').dataset.status") == "undecided"
    assert "existence" in text(opened, "verdict-words")
    assert opened.evaluate("[...document.querySelectorAll('#coefficients label')].map((l) => l.textContent)") == [
        "α",
        "k",
    ]
    look(opened, "A*H")
    assert "column 2" in text(opened, "equation-error")
    assert opened.evaluate("document.querySelector('main').classList.contains('stale')")
    assert opened.evaluate("byId('equation').getAttribute('aria-invalid')") == "true"
    assert opened.evaluate("view.model.text") == "-alpha*L@H + k*H where k scalar"


@pytest.mark.slow
def test_nothing_is_called_proved_outside_the_assumptions(opened: Browser) -> None:
    for name, letter, value, words in (("BS", "alpha", -0.5, "alpha > 0"), ("Nagumo", "a", 2, "a < 1")):
        look(opened, name)
        opened.evaluate(f"view.settings.coefficients.{letter} = {value}; refresh()")
        settle(opened)
        assert f"proved for {words}" in text(opened, "about")
        for place in ("response-words", "phase-words", "findings", "verdict-words"):
            assert "proved" not in text(opened, place).replace("not proved", ""), place
        opened.evaluate(f"view.settings.coefficients.{letter} = 0.5; refresh()")
        settle(opened)
        assert "proved" in text(opened, "findings").replace("not proved", "")
        assert "proved for" not in text(opened, "about")


@pytest.mark.slow
@pytest.mark.parametrize("width", [400, 1280])
def test_nothing_is_wider_than_the_window(chromium: Browser, page: Path, width: int) -> None:
    chromium.open(page, width)
    for equation in ("BS", "Gray-Scott"):
        look(chromium, equation)
        chromium.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        assert chromium.evaluate("[innerWidth, document.documentElement.scrollWidth <= innerWidth]") == [width, True]


@pytest.mark.slow
def test_everything_has_a_name_and_the_keyboard_is_enough(opened: Browser) -> None:
    settle(opened)
    nameless = """[...document.querySelectorAll("input, select, button, canvas, [role=img]")].filter((e) =>
      !e.labels?.length && !e.getAttribute("aria-label") && !e.textContent.trim()).map((e) => e.outerHTML)"""
    assert opened.evaluate(nameless) == []
    assert opened.evaluate("byId('verdict-words').getAttribute('aria-live')") == "polite"
    before = opened.evaluate("({...view.settings.coefficients})")
    opened.evaluate("byId('phase').focus()")
    press(opened, "ArrowRight")
    press(opened, "ArrowUp")
    settle(opened)
    after = opened.evaluate("view.settings.coefficients")
    assert after == pytest.approx({"alpha": before["alpha"] + 2 / 50, "beta": before["beta"] + 3 / 50})
    assert float(opened.evaluate("byId('c-alpha-number').value")) == pytest.approx(after["alpha"])
    opened.evaluate("byId('step-slider').focus()")
    press(opened, "ArrowRight")
    settle(opened)
    assert opened.evaluate("view.settings.step") > 0.5


@pytest.mark.slow
def test_the_dot_is_dragged(opened: Browser) -> None:
    settle(opened)
    opened.evaluate("byId('phase').scrollIntoView()")
    box = opened.evaluate(
        "(({left, top, width, height}) => ({left, top, width, height}))(byId('phase').getBoundingClientRect())"
    )
    for kind, (x, y) in (("mousePressed", (0.5, 0.5)), ("mouseMoved", (0.9, 0.8)), ("mouseReleased", (0.9, 0.8))):
        opened.call("Input.dispatchMouseEvent", type=kind, x=box["left"] + x * box["width"],
                    y=box["top"] + y * box["height"], button="left", buttons=1, clickCount=1)  # fmt: skip
    settle(opened)
    alpha, beta = opened.evaluate("[view.settings.coefficients.alpha, view.settings.coefficients.beta]")
    assert alpha > 1.5 > 1.0 > beta
    assert "low-pass, no growth (proved)" in text(opened, "phase-words")
    assert "low-pass if beta <= alpha" in text(opened, "response-words")


@pytest.mark.slow
def test_a_view_is_sent_by_its_address(chromium: Browser, page: Path) -> None:
    chromium.open(page)
    look(chromium, "Schnakenberg")
    chromium.evaluate(
        "view.settings.coefficients.a = 0.12; view.settings.seed = 12; view.settings.method = 'heun'; refresh()"
    )
    settle(chromium)
    address = chromium.evaluate("toHash(view)")
    chromium.open(page)
    chromium.evaluate(f"location.hash = {json.dumps(address)}")
    settle(chromium)
    settle(chromium)
    assert chromium.evaluate("toHash(view)") == address
    assert chromium.evaluate("[view.entry.name, view.settings.coefficients.a]") == ["Schnakenberg", 0.12]
    chromium.evaluate("location.hash = '#e=BS&c.alpha=nonsense&T=-3&step=0&method=none&axes=x,y&seed=1e99'")
    settle(chromium)
    settle(chromium)
    assert chromium.evaluate("[view.settings.coefficients.alpha, view.settings.T, view.settings.method]") == [
        0.6,
        3.5,
        "euler",
    ]
    assert chromium.complaints() == []


@pytest.mark.slow
def test_an_address_that_cannot_be_read_is_told_and_leaves_a_view(
    chromium: Browser, page: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "bad.html"
    words = "location.hash = '#e=A*H'; listen();"
    copy.write_text(page.read_text(encoding="utf-8").replace("\nlisten();", f"\n{words}"), encoding="utf-8")
    chromium.open(copy)
    settle(chromium)
    assert "column 2" in text(chromium, "equation-error")
    assert chromium.evaluate("[byId('equation').value, view.entry.name, byId('play').disabled]") == ["A*H", "BS", False]
    assert chromium.complaints() == []


@pytest.mark.slow
def test_a_run_plays_pauses_and_is_scrubbed(opened: Browser) -> None:
    look(opened, "BS")
    opened.evaluate("byId('play').click()")
    opened.evaluate(f"(async () => {{ while (view.settings.t < 0.2) await {FRAMES}; }})()")
    assert text(opened, "play") == "Pause"
    opened.evaluate("byId('play').click()")
    paused = opened.evaluate("view.settings.t")
    assert opened.evaluate("byId('play').getAttribute('aria-pressed')") == "false"
    opened.evaluate("byId('time').value = 1000; byId('time').dispatchEvent(new Event('input'))")
    opened.evaluate(f"(async () => {{ while (view.settings.t < 3.5) await {FRAMES}; }})()")
    assert opened.evaluate("[view.settings.t, view.runs.grid.isDone]") == [3.5, True]
    opened.evaluate("byId('time').value = 0; byId('time').dispatchEvent(new Event('input'))")
    assert opened.evaluate("view.runs.grid.at(view.settings.t).t") == 0 < paused
    assert opened.evaluate("[...view.runs.grid.frames.map((f) => f.t)]") == [0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5]


@pytest.mark.slow
def test_pictures_and_numbers_are_exported(opened: Browser) -> None:
    settle(opened)
    for what in ("response", "dispersion", "energy", "phase", "graph", "grid"):
        ElementTree.fromstring(opened.evaluate(f"svgText({what!r})"))
        rows = opened.evaluate(f"csvOf({what!r})").splitlines()
        assert len({row.count(",") for row in rows if '"' not in row or what != "phase"}) == 1, what
        png = opened.evaluate(PNG % repr(what))
        assert base64.b64decode(png.partition(",")[2])[:8] == b"\x89PNG\r\n\x1a\n"
    assert opened.evaluate("csvOf('response')").splitlines()[0] == "lam,exact,euler"
    assert opened.complaints() == []


@pytest.mark.slow
def test_every_system_of_the_catalogue_is_shown(opened: Browser) -> None:
    for name in catalogue:
        opened.evaluate(f"choose({json.dumps(name)})")
        opened.evaluate(FRAMES)
        opened.evaluate("view.runs.grid.advanceTo(3 * view.settings.step, 1000)")
        assert opened.complaints() == [], name
        assert opened.evaluate("view.entry.name") == name
        assert text(opened, "verdict-words"), name
        assert opened.evaluate("view.runs.grid.failed") is None, name


@pytest.mark.slow
def test_patterns_are_drawn_while_they_run(opened: Browser) -> None:
    """Frame by frame, with the count of frames a second in words."""
    shown = "byId('rate').textContent"
    for name in ("Gray-Scott", "Schnakenberg", "Brusselator"):
        look(opened, name)
        opened.evaluate(f"{shown} = ''; play(true)")
        opened.evaluate(f"(async () => {{ while (!{shown}) await {FRAMES}; }})()")
        opened.evaluate("play(false)")
        assert "frames a second" in text(opened, "rate")
        assert 0 < opened.evaluate("view.settings.t") <= opened.evaluate("view.settings.T"), name
        assert opened.evaluate("view.runs.grid.graph.nodes") == 128 * 128
