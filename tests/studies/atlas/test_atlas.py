"""The atlas: regimes by closed conditions, regions, and its small mode."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import typer.testing

from studies.atlas.study import EXPECTED, MEASURED, PREDICTED, middles, predicted_regimes, read_courses, settings
from studies.cli import app as cli
from studies.runs.tables import Row, read_rows
from studies.stability.plane import Axis, PlaneCase, read_values
from studies.stability.plane_rows import COLOURS, PlanePrediction
from tests.report_pages import code_names


def test_regimes_of_the_brusselator_are_the_textbook_ones() -> None:
    """Hopf: b > 1 + a^2; a mode grows without oscillation where det P(lam) < 0, at the ring's own eigenvalues."""
    values = read_values("a=1.5, b=2, Du=0.5, Dv=4")
    case = PlaneCase(
        "B", settings(True)["systems"][0], "ring:12", "none", values, Axis("a", 1.0, 2.6, 9), Axis("b", 1.03, 4.97, 9)
    )
    found = predicted_regimes(PlanePrediction(case))
    lam = 2 - 2 * np.cos(2 * np.pi * np.arange(1, 7) / 12)
    for a, b, word in zip(case.values["a"], case.values["b"], found, strict=True):
        trace, det = b - 1 - a**2 - 4.5 * lam, (b - 1 - 0.5 * lam) * (-(a**2) - 4 * lam) + a**2 * b
        real = bool(((det < 0) | ((trace > 0) & (trace**2 >= 4 * det))).any())
        if b > 1 + a**2:
            spirals = (b - 1 - a**2) ** 2 < 4 * a**2
            expected = ("Turing-Hopf" if real else "Hopf") if spirals else "unstable at 0"
        else:
            expected = "Turing" if real else "stable"
        assert word == expected, (a, b)
    assert {"stable", "Turing", "Turing-Hopf"} <= set(found) <= set(PREDICTED)


def test_every_regime_has_a_colour_and_an_expectation() -> None:
    assert set(PREDICTED) | set(MEASURED) <= set(COLOURS)
    assert {word for words in EXPECTED.values() for word in words} <= set(MEASURED)


def test_the_middle_of_a_region_is_far_from_the_others() -> None:
    words = ["a"] * 15 + ["b"] * 10
    rows: list[Row] = [{"predicted": word, "measured": word} for word in words]
    found = middles(rows, (5, 5))
    assert found == {("a", "a"): 6, ("b", "b"): 15}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("atlas") / "run"
    words = ["study", "atlas", "--small", "--set", "points=5", "--out", str(folder)]
    done = typer.testing.CliRunner().invoke(cli.app, words)
    assert done.exit_code == 0, done.output
    *_, counted, last = done.stdout.splitlines()
    assert counted.startswith("9 verdicts: ")
    assert last == f"wrote {folder / 'report.html'}"
    return folder


@pytest.mark.slow
def test_the_small_atlas(small: Path) -> None:
    for name in ("brusselator", "schnakenberg"):
        rows = read_rows(small / f"parts/regimes-{name}.csv")
        away = [row for row in rows if row["away"]]
        assert len(rows) == 25
        assert away
        assert all(row["agrees"] for row in away)
        stable = [row for row in away if row["predicted"] == "stable"]
        assert stable
        assert {row["measured"] for row in stable} == {"uniform"}
        courses = read_courses(read_rows(small / f"parts/courses-{name}.csv"))
        for member, times, values in courses.values():
            assert values.shape == (len(times), 12)
            spread = values[-1].max() - values[-1].min()
            patterned = rows[member]["measured"] in ("pattern", "oscillation death", "oscillating pattern")
            assert (spread > 0.01 * np.abs(values[-1]).mean()) == patterned
    answers = [v["answer"] for v in json.loads((small / "report.json").read_text(encoding="utf-8"))["verdicts"]]
    assert set(answers[:2]) == {"holds"}
    assert (small / "figures/atlas-brusselator.png").is_file()
    assert code_names(small) == []
