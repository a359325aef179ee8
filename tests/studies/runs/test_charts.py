"""Charts and maps of a report: numbers that go in come out, a page without its script, and what a reader can do."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from rdgraph.errors import InvalidArgument
from studies.runs.chart import STEPS, Bar, Bars, Chart, DotPanel, FieldMap, Line, MovingDots, Panel
from studies.runs.chart_figures import bars_figure, chart_figure, map_figure
from studies.runs.report import fewer_colours, with_code
from studies.runs.study import Study, execute
from studies.runs.study_run import StudyRun
from tests.studies.runs.test_browser import CHROMIUM, Browser
from tests.studies.runs.test_report import EVIL, Walk

X = np.array([0.5, 1.0, 2.0])
FIRST = Line("BS", X, np.array([70.0, 71.5, math.nan]), np.array([1.0, math.nan, 2.0]))
SECOND = Line(EVIL, X, np.array([60.0, 61.0, 62.0]), low=X, high=10 * X)
NAMED = Line("here", np.array([-0.12, 0.88]), np.array([1.0, 2.0]), style="dots")
OTHER = Line("paper", np.array([0.12, 1.12]), np.array([3.0, 4.0]), style="dots")
CHART = Chart(
    [Panel("cora", [FIRST, SECOND], {"BS": 65.0, "limit": 80.0}), Panel("named", [NAMED, OTHER], names=["F", "AC"])],
    "end time T", columns=2,
)  # fmt: skip
MAP = FieldMap(["a", EVIL], ["x", "y"], np.array([[1.0, -20.0], [math.nan, 0.04]]), np.eye(2) > 0, "differences")
GAINS = Chart([Panel("gains", [Line("gain", X, np.array([-200.0, 0.5, 30.0]))])], "x", "gain", y_scale="symlog")
PLACES = np.array([[[0.0, 0.0], [1.0, 2.0]], [[2.0, 1.0], [4.0, 4.0]]])
DOTS = MovingDots([DotPanel("karate", [0.0, 1.5], PLACES, np.array([0, -1]), [7, 9])])


# ---------------------------------------------------------------------- numbers
def test_numbers_of_a_chart_are_those_that_went_in() -> None:
    rows = CHART.numbers()
    own = [row for row in rows if (row["panel"], row["curve"]) == ("cora", "BS")]
    assert [row["x"] for row in own] == X.tolist()
    np.testing.assert_array_equal([row["y"] for row in own], FIRST.y)
    np.testing.assert_array_equal([row["error"] for row in own], FIRST.error)
    assert [row["high"] for row in rows if row["curve"] == EVIL] == (10 * X).tolist()
    assert {(row["curve"], row["y"]) for row in rows if "limit" in str(row["curve"])} == {
        ("BS, limit", 65.0),
        ("limit, limit", 80.0),
    }
    assert CHART.labels == ["BS", EVIL, "here", "paper", "limit"]


def test_a_line_is_read_from_rows_in_order() -> None:
    rows = [{"t": 2.0, "mean": 5.0, "least": 4.0, "most": 6.0}, {"t": 1.0, "mean": 3.0, "least": 1.0, "most": 9.0}]
    line = Line.of("energy", rows, "t", "mean", low="least", high="most", look=3)
    assert (line.x.tolist(), line.y.tolist(), line.look, line.error) == ([1.0, 2.0], [3.0, 5.0], 3, None)
    assert line.low is not None
    assert line.high is not None
    assert (line.low.tolist(), line.high.tolist()) == ([1.0, 4.0], [9.0, 6.0])


def test_a_panel_may_have_axes_of_its_own() -> None:
    own = Panel("own", [FIRST], x_label="size", y_label="error", y_scale="log")
    chart = Chart([own, Panel("shared", [FIRST])], "time", "accuracy", columns=2)
    assert [p["x_label"] for p in json.loads(chart.json())["panels"]] == ["size", "time"]
    assert [p["y_scale"] for p in json.loads(chart.json())["panels"]] == ["log", "linear"]
    first, second = chart_figure(chart).axes
    assert (first.get_xlabel(), first.get_ylabel(), first.get_yscale()) == ("size", "error", "log")
    assert (second.get_xlabel(), second.get_yscale()) == ("time", "linear")


def test_large_maps_carry_no_numbers() -> None:
    wide = FieldMap(["a"], [str(k) for k in range(40)], np.ones((1, 40)), np.ones((1, 40)), "")
    assert not map_figure(wide).axes[0].texts
    assert map_figure(wide).get_figwidth() < 20


def test_a_line_may_choose_its_look() -> None:
    chart = Chart([Panel("", [FIRST, Line("dashed", X, X, look=7), Line("third", X, X)])], "x")
    assert chart.looks == {"BS": 0, "dashed": 7, "third": 2}
    first, second, third = (container.lines[0] for container in chart_figure(chart).axes[0].containers)
    assert first.get_color() == second.get_color() != third.get_color()
    assert first.get_linestyle() == third.get_linestyle() != second.get_linestyle()
    assert first.get_markerfacecolor() == first.get_color()
    assert second.get_markerfacecolor() == "white"


def test_json_of_a_chart_is_safe_and_has_no_nan() -> None:
    text = CHART.json()
    assert "</script" not in text
    found = json.loads(text)
    assert found["panels"][0]["lines"][0]["y"] == [70.0, 71.5, None]
    assert found["panels"][0]["lines"][0]["error"] == [1.0, None, 2.0]
    assert found["panels"][0]["lines"][1]["label"] == EVIL
    assert "error" not in found["panels"][0]["lines"][1]
    long = Chart([Panel("", [Line("", X, np.full(3, 1 / 3))])], "x")
    assert json.loads(long.json())["panels"][0]["lines"][0]["y"] == [0.333333] * 3


def test_fields_have_their_numbers_and_colours() -> None:
    (one, two), (none, small) = MAP.cells()
    assert (one["text"], two["text"], none["text"], small["text"]) == ("+1.0", "-20.0", "", "+0.0")
    assert one["sure"]
    assert not two["sure"]
    assert two["ink"] == "#ffffff"  # beyond the limit: the darkest colour
    assert one["ink"] == "#000000"
    assert one["note"] == "a, x: +1.0 points of accuracy"
    assert none["back"] == ""
    reached = FieldMap(["a"], ["x"], np.full((1, 1), -15.0), np.zeros((1, 1)), "")
    assert reached.cells()[0][0]["back"] == two["back"]
    assert [row["value"] for row in MAP.numbers()] == [1.0, -20.0, 0.04]


def test_dots_keep_their_shape_on_one_scale() -> None:
    places = np.array(DOTS.panels[0].spec()["places"]).reshape(2, 2, 2)
    assert places.min() == 0
    assert places.max() == STEPS
    np.testing.assert_allclose(np.diff(places, axis=0) / STEPS, np.diff(PLACES, axis=0) / 4.0, atol=2 / STEPS)
    assert len(DOTS.numbers()) == 4


def test_bars_lie_on_one_axis() -> None:
    plain, logarithmic = (Bars([Bar("a", 1.0, 0.5, 2.0, "x"), Bar("b", 4.0)], "ms", is_log) for is_log in (False, True))
    first, second = plain.lines()
    assert (first["width"], first["left"], first["right"], second["width"]) == (25.0, 12.5, 50.0, 100.0)
    assert (first["colour"], second["colour"], second["left"]) == (0, 1, None)
    assert "from 0.5 to 2 ms" in first["note"]
    first, second = logarithmic.lines()
    assert second["width"] == 100.0
    assert first["right"] - first["width"] == pytest.approx(first["width"] - first["left"], abs=0.02)  # factors of two
    axis = bars_figure(plain).axes[0]
    assert [bar.get_width() for bar in axis.patches] == [1.0, 4.0]
    assert [row["value"] for row in plain.numbers()] == [1.0, 4.0]
    figure = bars_figure(logarithmic)
    figure.draw_without_rendering()
    axis = figure.axes[0]
    low, high = axis.get_xlim()
    named = [
        tick.get_text() for x, tick in zip(axis.get_xticks(), axis.get_xticklabels(), strict=True) if low <= x <= high
    ]
    assert named == ["0.5", "1", "2"]
    assert axis.get_ylim() == (1.6, -0.6)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Bars([], "ms"),
        lambda: Bars([Bar("a", -1.0)], "ms"),
        lambda: Bars([Bar("a", 0.0)], "ms", is_log=True),
        lambda: Line("a", X, X[:2]),
        lambda: Line("a", X, X, low=X),
        lambda: Line("a", X, X, style="bars"),
        lambda: Chart([], "x"),
        lambda: Chart([Panel("", [])], "x", y_scale="cubic"),
        lambda: FieldMap(["a"], ["x", "y"], np.zeros((2, 1)), np.zeros((2, 1)), ""),
        lambda: DotPanel("", [0.0], PLACES, np.array([0, 1]), [0, 1]),
        lambda: DotPanel("", [0.0, 1.0], np.full((2, 2, 2), np.nan), np.array([0, 1]), [0, 1]),
    ],
)
def test_what_cannot_be_drawn_is_refused(make: Any) -> None:
    with pytest.raises(InvalidArgument, match="expected"):
        make()


def test_figures_of_files_draw_the_same_numbers() -> None:
    first, second = chart_figure(CHART).axes
    drawn = {line.get_label(): line for line in first.get_lines()}
    assert "limit" in drawn
    levels = [line for line in first.get_lines() if len(set(line.get_ydata())) == 1 and line.get_linestyle() == ":"]
    assert sorted(float(line.get_ydata()[0]) for line in levels) == [65.0, 80.0]
    np.testing.assert_array_equal(first.containers[0].lines[0].get_ydata(), FIRST.y)
    assert [label.get_text() for label in second.get_xticklabels()] == ["F", "AC"]
    assert [text.get_text() for text in map_figure(MAP).axes[0].texts] == ["+1.0", "-20.0", "+0.0"]


def test_backticks_are_code_and_nothing_else_is() -> None:
    assert str(with_code("`a<b>` and <i>")) == "<code>a&lt;b&gt;</code> and &lt;i&gt;"


# ---------------------------------------------------------------------- the page
def body(run: StudyRun) -> None:
    run.figure("curves", CHART, "Curves.")
    run.figure("gains", GAINS, "Gains.")
    run.figure("map", MAP, "A map.")
    run.figure("dots", DOTS, "Dots.")
    run.figure("bars", Bars([Bar(EVIL, 1.0), Bar("b", 2.0, 1.0, 3.0, "group")], "ms"), "Bars.")
    run.equation("-alpha*L@H + beta*H*(1 - H**2)", "mine")
    run.equation("Schnakenberg")
    run.answer("It is 3.", "curves")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return execute(Study("toy", "A toy", "Does it show?", body), tmp_path_factory.mktemp("runs") / "toy")


def test_the_page_holds_charts_maps_and_maths(report: Path) -> None:
    page = report.read_text(encoding="utf-8")
    walk = Walk(page)
    assert [tag for tag in walk.all("script") if tag.get("type") == "application/json"] != []
    assert len(walk.all("math")) == 2
    assert len(walk.all("img")) == 3  # charts and dots have an image behind them, the map is a table
    assert EVIL not in page
    assert '<code id="formula-1">-alpha*L@H + beta*H*(1 - H**2)</code>' in page
    assert "Schnakenberg" in page
    held = re.findall(r'<script type="application/json">(.*?)</script>', page, flags=re.DOTALL)
    assert [json.loads(text) for text in held] == [json.loads(drawn.json()) for drawn in (CHART, GAINS, DOTS)]


def test_files_beside_the_page_are_whole(report: Path) -> None:
    rows = read_rows_of(report.parent / "figures/curves.csv")
    assert len(rows) == len(CHART.numbers())
    picture = report.parent / "figures/curves.png"
    small = fewer_colours(picture)
    assert len(small) < picture.stat().st_size
    with Image.open(picture) as image:
        assert image.size[0] > 600


def read_rows_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()[1:]


# ---------------------------------------------------------------------- in a browser
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine; apt-get install chromium")
TIP = "document.querySelector('#figure-curves .panel .tip').innerText"
PANEL = "document.querySelector('#figure-curves .panel svg')"
SHOWN = "getComputedStyle(document.querySelector('{}')).display"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    found = Browser(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


def hover(browser: Browser, share: float) -> str:
    """What stands in the tip where one points at a share of the width of the first panel."""
    browser.evaluate(f"{PANEL}.scrollIntoView()")
    left, top, width = browser.evaluate(f"(r => [r.left, r.top, r.width])({PANEL}.getBoundingClientRect())")
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=left + share * width, y=top + 60)
    return str(browser.evaluate(TIP))


@needs_browser
def test_values_are_read_by_pointing_and_lines_taken_away(browser: Browser, report: Path) -> None:
    browser.open(report)
    assert browser.complaints() == []
    assert browser.requests() == [report.resolve().as_uri()]
    said = hover(browser, 0.98)
    assert "end time T 2" in said
    assert f"{EVIL}: 62 (2 to 20)" in said
    assert "BS: " not in said.replace("BS (dotted): 65", "")  # there is no point of BS at 2
    assert said.index("limit (dotted): 80") < said.index("BS (dotted): 65") < said.index(EVIL)
    assert "BS: 70 (standard error 1)" in hover(browser, 0.1)
    browser.evaluate("document.querySelector('#figure-curves .keys button').click()")
    assert "BS" not in hover(browser, 0.1)
    browser.evaluate(f"{PANEL}.focus()")
    browser.press("ArrowRight")
    assert "end time T 1" in browser.evaluate(TIP)
    browser.press("Escape")
    assert browser.evaluate(TIP) == ""


@needs_browser
@pytest.mark.slow
def test_large_values_of_both_signs_share_an_axis(browser: Browser, report: Path) -> None:
    browser.open(report)
    texts = "[...document.querySelectorAll('#figure-gains text[text-anchor=end]')]"
    places = dict(browser.evaluate(f"{texts}.map(t => [t.textContent, Number(t.getAttribute('y'))])"))
    ticks = ["-100", "-10", "-1", "0", "1", "10"]
    gaps = np.diff([places[tick] for tick in ticks])
    assert (gaps < 0).all()
    np.testing.assert_allclose(gaps, gaps[0], rtol=1e-6)  # a power of ten is as long as the part between 0 and 1


@needs_browser
@pytest.mark.slow
def test_dots_beside_each_other_are_read_together(browser: Browser, report: Path) -> None:
    browser.open(report)
    second = "document.querySelectorAll('#figure-curves .panel svg')[1]"
    browser.evaluate(f"{second}.focus()")
    browser.press("End")
    said = browser.evaluate("document.querySelectorAll('#figure-curves .panel .tip')[1].innerText")
    assert said.split("\n") == ["AC", "paper: 4", "here: 2"]


@needs_browser
@pytest.mark.slow
def test_without_a_script_and_in_print_there_is_an_image(browser: Browser, report: Path) -> None:
    browser.open(report)
    card, plot = (SHOWN.format(f"#figure-curves .{name}") for name in ("card", "plot"))
    assert [browser.evaluate(card), browser.evaluate(plot)] == ["none", "block"]
    browser.call("Emulation.setEmulatedMedia", media="print")
    assert [browser.evaluate(card), browser.evaluate(plot)] == ["block", "none"]
    browser.call("Emulation.setEmulatedMedia", media="")
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    browser.open(report)
    assert [browser.evaluate(card), browser.evaluate(plot)] == ["block", "none"]
    browser.call("Emulation.setScriptExecutionDisabled", value=False)


@needs_browser
@pytest.mark.slow
@pytest.mark.parametrize("width", [400, 1200])
def test_panels_fit_the_window(browser: Browser, report: Path, width: int) -> None:
    browser.open(report, width)
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    lefts = browser.evaluate(
        "[...document.querySelectorAll('#figure-curves .panel')].map(p => p.getBoundingClientRect().left)"
    )
    assert (lefts[0] == lefts[1]) == (width == 400)
    sizes = browser.evaluate(
        "[...document.querySelectorAll('#figure-curves text')].map(t => t.getBoundingClientRect().height)"
    )
    assert min(sizes) > 10
    assert browser.evaluate("[...document.querySelectorAll('math')].every(m => m.getBoundingClientRect().height > 12)")


@needs_browser
@pytest.mark.slow
def test_dots_move_with_the_slider(browser: Browser, report: Path) -> None:
    browser.open(report)
    title = "document.querySelector('#figure-dots .panel b').textContent"
    picture = "document.querySelector('#figure-dots canvas').toDataURL()"
    first = browser.evaluate(picture)
    assert browser.evaluate(title) == "karate, t = 0"
    browser.evaluate(
        "{const s = document.querySelector('#figure-dots input'); s.value = 1; s.dispatchEvent(new Event('input'))}"
    )
    assert browser.evaluate(title) == "karate, t = 1.5"
    assert browser.evaluate(picture) != first
    assert browser.complaints() == []
