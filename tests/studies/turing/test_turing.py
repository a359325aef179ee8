"""The study of Turing patterns: published thresholds by hand, growth rates, and its small mode."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import typer.testing
from PIL import Image

from studies.cli import app as cli
from studies.runs.tables import read_rows
from studies.turing.study import exact_threshold, published, threshold_rows
from tests.report_pages import code_names


def test_the_published_threshold_by_hand() -> None:
    """(sigma f_u + g_v)^2 = 4 sigma det J with f_u = 10/3, g_v = -4, det J = 110/3: sigma^2 - 15.6 sigma + 1.44 = 0."""
    (entry,) = published()
    assert "Nature Physics 6, 544-550 (2010)" in entry["source"]
    assert float(exact_threshold(entry)) == pytest.approx(7.8 + np.sqrt(59.4), rel=1e-12)
    assert entry["printed"] == round(7.8 + np.sqrt(59.4), 1)


@pytest.mark.slow
def test_a_network_has_its_threshold_above_the_one_of_all_frequencies() -> None:
    (entry,) = published()
    every, network = threshold_rows(entry, "barabasi-albert:60:5", [3])
    assert float(network["threshold"]) > float(every["threshold"])
    lam, eps, sigma = float(network["lam"]), 0.12, float(network["threshold"])
    matrix = np.array([[10 / 3 - eps * lam, -5.0], [10.0, -4 - sigma * eps * lam]])
    assert np.linalg.eigvals(matrix).real.max() == pytest.approx(0, abs=1e-8)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small mode on the command line, with a smaller plane still."""
    folder = tmp_path_factory.mktemp("turing") / "run"
    words = ["study", "turing", "--small", "--set", "points=6", "--set", "frames=3", "--out", str(folder)]
    done = typer.testing.CliRunner().invoke(cli.app, words)
    assert done.exit_code == 0, done.output
    *_, counted, last = done.stdout.splitlines()
    assert counted.startswith("7 verdicts: ")
    assert last == f"wrote {folder / 'report.html'}"
    return folder


@pytest.mark.slow
def test_prediction_and_simulation_agree(small: Path) -> None:
    for name in ("schnakenberg", "mimura-murray"):
        rows = read_rows(small / f"parts/plane-{name}.csv")
        assert len(rows) == 36
        away = [row for row in rows if row["away"]]
        assert len(away) >= 18
        assert all(row["agrees"] for row in away)
        assert {row["predicted"] for row in away} >= {"stable", "Turing"}
        assert (small / f"disagreements-{name}.csv").read_text() == ""
        modes = read_rows(small / f"growth-{name}.csv")
        assert len(modes) >= 3
        assert max(float(row["difference"]) for row in modes) < 0.01
        assert all(float(row["predicted"]) > 0 for row in modes)


@pytest.mark.slow
def test_a_pattern_is_left_and_the_verdicts_say_so(small: Path) -> None:
    verdicts = json.loads((small / "report.json").read_text(encoding="utf-8"))["verdicts"]
    assert [verdict["answer"] for verdict in verdicts] == ["holds"] * 7
    assert "39/5" in verdicts[-1]["evidence"]
    values = np.array([float(row["u"]) for row in read_rows(small / "parts/pattern-schnakenberg.csv")])
    assert values.max() > 1.5 > 1.0 > values.min()
    with Image.open(small / "figures/growth-schnakenberg.gif") as picture:
        assert picture.n_frames == 4  # and one at 0.9 T
    assert code_names(small) == []
    assert "--set points=6" in (small / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_eigenvalues_are_marked_in_the_dispersion(small: Path) -> None:
    rows = read_rows(small / "parts/dispersion-schnakenberg.csv")
    marks = sorted({float(row["lam"]) for row in rows if row["is_eigenvalue"]})
    side = 2 - 2 * np.cos(2 * np.pi * np.arange(6) / 6)
    every = np.unique((side[:, None] + side).round(9))
    np.testing.assert_allclose(marks, every, atol=1e-9)
    border = sorted({float(row["sigma"]) for row in rows})[1]
    at_border = max(
        float(row["rate"]) for row in rows if row["sigma"] == border and row["is_eigenvalue"] and row["lam"]
    )
    assert at_border == pytest.approx(0, abs=1e-8)
