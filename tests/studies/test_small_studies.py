"""The studies grid and response: numbers by another route, the small modes on the command line, published settings."""

from __future__ import annotations

import csv
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer.testing
from matplotlib.figure import Figure
from PIL import Image
from scipy.linalg import expm

import rdgraph as rd
from analysis.gain_curves import response_curves
from gread.settings.config import Config
from gread.settings.presets import Preset, paper_presets
from studies.cli import app as cli
from studies.grid import study as grid
from studies.grid import study as grid_pictures
from studies.registered_studies import find_study
from studies.response import study as response_rows
from studies.runs.study import execute
from studies.runs.tables import read_rows
from tests.paths import ROOT
from tests.report_pages import code_names

SIDE = 5


def start(*words: str) -> subprocess.Popen[str]:
    """The command line as a process."""
    command = [sys.executable, "-m", "studies.cli.app", *words]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=240)
    return process.returncode, out, err


# ---------------------------------------------------------------------- grid
@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The grid study on 5 x 5 nodes, which draws nothing, and beside it a second run with the same seed."""
    chosen = {**grid.settings(small=True), "rows": SIDE, "columns": SIDE}
    place = tmp_path_factory.mktemp("grid")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grid, "settings", lambda small: chosen)
        patch.setattr(grid_pictures, "still", lambda *_: Figure(figsize=(1, 1)))
        patch.setattr(grid_pictures, "write_animation", lambda path, *_: path.touch())
        for name in ("first", "second"):
            execute(find_study("grid"), place / name, small=True, seed=4)
    return place / "first"


def laplacian() -> np.ndarray:
    """The symmetric Laplacian of the 5 x 5 grid, written out."""
    node = np.arange(SIDE * SIDE).reshape(SIDE, SIDE)
    W = np.zeros((SIDE * SIDE, SIDE * SIDE))
    for a, b in ((node[1:], node[:-1]), (node[:, 1:], node[:, :-1])):
        W[a.ravel(), b.ravel()] = W[b.ravel(), a.ravel()] = 1
    root = np.sqrt(W.sum(1))
    return np.eye(len(W)) - W / root / root[:, None]


def test_the_fields_are_the_flows(tiny: Path) -> None:
    rows = read_rows(tiny / "parts/fields.csv")
    L = laplacian()
    A = np.eye(len(L)) - L
    generators = {"diffusion": -L, "BS": -L + 1.5 * (A - A @ A)}
    values = {
        (flow, t): np.array([row["value"] for row in rows if row["flow"] == flow and row["t"] == t], dtype=float)
        for flow in generators
        for t in (0.0, 5.0, 25.0, 50.0)
    }
    for (flow, t), found in values.items():
        expected = expm(t * generators[flow]) @ values["BS", 0.0]
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9)
    assert len(rows) == 2 * 4 * SIDE * SIDE
    assert 0 <= values["BS", 0.0].min() < values["BS", 0.0].max() <= 1


def test_the_measures_are_the_formulas(tiny: Path) -> None:
    fields = read_rows(tiny / "parts/fields.csv")
    H = np.array([row["value"] for row in fields if row["flow"] == "BS" and row["t"] == 5.0], dtype=float)
    (row,) = [r for r in read_rows(tiny / "results.csv") if r["beta"] == 1.5 and r["t"] == 5.0]
    image = H.reshape(SIDE, SIDE)
    squares = (np.diff(image, axis=0) ** 2).sum() + (np.diff(image, axis=1) ** 2).sum()
    assert row["energy"] == pytest.approx(2 * squares / H.size, rel=1e-8)
    assert row["laplacian_energy"] == pytest.approx(H @ laplacian() @ H, rel=1e-8)
    assert row["normalised_energy"] == pytest.approx(H @ laplacian() @ H / (H @ H), rel=1e-8)
    kernel = np.linalg.eigh(laplacian())[1][:, 0]
    assert row["kernel_distance"] == pytest.approx(np.linalg.norm(H - kernel * (kernel @ H)) / np.linalg.norm(H))
    assert (row["least"], row["largest"]) == (pytest.approx(H.min()), pytest.approx(H.max()))


def test_the_border_between_decay_and_growth(tiny: Path) -> None:
    rates = read_rows(tiny / "rates.csv")
    second = np.linalg.eigvalsh(laplacian())[1]
    (border,) = [row for row in rates if row["energy_limit"] == "bounded, > 0"]
    assert border["beta"] == pytest.approx(1 / (1 - second))
    assert border["winning_lam"] == pytest.approx(second)
    for row in rates:
        assert np.sign(row["rate"]) == np.sign(row["beta"] - border["beta"])
        assert row["energy_limit"] == ("bounded, > 0" if row is border else "∞" if row["rate"] > 0 else "0")
    # The measured energy follows: its late rate is twice the rate of the winning mode.
    energies = read_rows(tiny / "parts/energies.csv")
    late = {(r["beta"], r["t"]): r["laplacian_energy"] for r in energies}
    for row in rates:
        if row is not border and abs(float(row["rate"])) > 0.05:
            measured = np.log(float(late[row["beta"], 50.0]) / float(late[row["beta"], 40.0])) / 20
            assert measured == pytest.approx(row["rate"], rel=0.05), row


def test_the_same_seed_gives_the_same_tables(tiny: Path) -> None:
    names = sorted(p.relative_to(tiny) for p in tiny.rglob("*.csv"))
    assert len(names) == 9
    for name in names:
        assert (tiny / name).read_bytes() == (tiny.parent / "second" / name).read_bytes()


@pytest.mark.slow
def test_grid_on_the_command_line(tmp_path: Path) -> None:
    folder = tmp_path / "grid"
    done = typer.testing.CliRunner().invoke(cli.app, ["study", "grid", "--small", "--out", str(folder)])
    assert done.exit_code == 0, done.output
    *_, counted, last = done.stdout.splitlines()
    assert counted.startswith("4 verdicts: ")
    assert last == f"wrote {folder / 'report.html'}"
    assert (folder / "state").read_text() == "done\n"
    with Image.open(folder / "figures/flow.gif") as picture:
        assert picture.n_frames == grid.settings(small=True)["frames"]
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page.count("data:image/gif;base64,") == 1
    assert page.count("data:image/png;base64,") == 2
    assert code_names(folder) == []
    assert "winning λ" in page
    for answer in ("holds", "holds if β(1 - λ₂) = α", "holds if β(1 - λ₂) &gt; α", "fails"):
        assert f'">{answer}</td>' in page


# ---------------------------------------------------------------------- response
def test_published_settings_name_their_source() -> None:
    found = paper_presets()
    assert len(found) == 63
    assert {s.reaction for s in found} == {"BS", "F", "AC", "Z", "ST", "FB", "FB*"} <= set(rd.catalogue)
    assert len({s.dataset for s in found}) == 9
    assert all(s.source.startswith("GREAD (Choi et al., ICML 2023)") for s in found)
    assert {s.config.gread.method for s in found} == {"euler", "rk4"}
    models = {(s.reaction, s.dataset): s.config.gread for s in found}
    chosen = {pair: (model.step, model.time, model.method) for pair, model in models.items()}
    assert chosen["BS", "squirrel"] == (0.75, 5.7, "euler")
    assert chosen["FB*", "pubmed"] == (1.0, 1.4, "rk4")


def test_comparison_of_one_euler_step() -> None:
    # alpha = beta = tau = T = 1: the flow's gain is exp(-lam^2), Euler's 1 - lam^2, above one from sqrt 2 on.
    config = Config().updated({"step": 1.0, "time": 1.0, "method": "euler"})
    setting = Preset("none", "BS", "none", config, "this test")
    methods = (("exact", None), ("euler", 1.0), ("rk4", 1.0))
    curves = response_curves(
        rd.catalogue["BS"], T=1.0, values={"alpha": 1.0, "beta": 1.0}, methods=methods, points=2001
    )
    row = response_rows.compare("BS", setting, 1.0, 1.0, curves)
    assert row["from"] == pytest.approx(np.sqrt(2), abs=1e-3)
    assert (row["to"], row["at"], row["euler_gain"]) == (2.0, 2.0, pytest.approx(3.0))
    assert row["flow_gain"] == pytest.approx(np.exp(-4))
    assert row["euler_width"] == pytest.approx(2 - np.sqrt(2), abs=2e-3)
    assert row["rk4_gain"] == pytest.approx(1 - 4 + 8 - 64 / 6 + 256 / 24)
    z = -(np.linspace(0, 2, 2001) ** 2)
    assert row["euler_error"] == pytest.approx(np.abs(1 + z - np.exp(z)).max())
    quiet: dict[str, Any] = {"alpha": 0.1, "beta": 0.1}
    still = response_rows.compare(
        "BS", setting, 0.1, 0.1, response_curves(rd.catalogue["BS"], T=1.0, values=quiet, methods=methods)
    )
    assert (still["euler_width"], still["rk4_width"]) == (0.0, 0.0)
    assert np.isnan(still["euler_gain"])


@pytest.mark.slow
def test_response_on_the_command_line_interrupted_and_resumed(tmp_path: Path) -> None:
    folder = tmp_path / "response"
    process = start("study", "response", "--small", "--out", str(folder))
    deadline = time.monotonic() + 120
    while not (folder / "parts/comparison.csv").exists() and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    code, _, err = finish(process)
    assert (code, err.replace("\n", " ").strip().endswith("the same command resumes it")) == (130, True), err
    assert "Traceback" not in err
    assert (folder / "state").read_text() == "interrupted\n"
    assert "This run was interrupted" in (folder / "report.html").read_text(encoding="utf-8")
    kept = (folder / "parts/comparison.csv").stat().st_mtime_ns
    done = typer.testing.CliRunner().invoke(cli.app, ["study", "response", "--small", "--out", str(folder)])
    assert done.exit_code == 0, done.output
    *_, counted, last = done.stdout.splitlines()
    assert counted.startswith("2 verdicts: ")
    assert last == f"wrote {folder / 'report.html'}"
    assert (folder / "parts/comparison.csv").stat().st_mtime_ns == kept
    assert (folder / "state").read_text() == "done\n"
    check_response(folder)


def check_response(folder: Path) -> None:
    pictures = {p.stem for p in (folder / "figures").glob("*.png")}
    assert pictures == {"BS", "ST", "FB", "FB-released", "FBstar", "FBstar-released", "others"}
    assert {p.stem for p in (folder / "figures").glob("*.csv")} == pictures
    drawn = {row["system"] for name in pictures for row in read_rows_of(folder, name)}
    linear = {"diffusion", "BS", "ST", "FB", "FB*", "FB-released", "FB*-released", "GRAND-l", "APPNP", "SGC"}
    assert drawn == linear
    results = read_rows(folder / "results.csv")
    assert len(results) == 6 * 2 * 4
    (row,) = [r for r in results if (r["system"], r["dataset"], r["beta"]) == ("BS", "chameleon", 1.0)]
    lam = float(row["at"])
    p = 0.5 * lam - lam**2  # one step of 1.5 and one of 0.21 make T = 1.71
    assert row["euler_gain"] == pytest.approx(abs((1 + 1.5 * p) * (1 + 0.21 * p)))
    assert float(row["euler_gain"]) > 1 > float(row["flow_gain"]) == pytest.approx(np.exp(1.71 * p))
    assert (row["solver"], row["to"]) == ("euler", 2.0)
    wrong = read_rows(folder / "amplified.csv")
    assert wrong == [r for r in results if r["euler_width"] > 0]
    assert row in wrong


def read_rows_of(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / f"figures/{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


# ---------------------------------------------------------------------- the command
def test_the_list_of_studies() -> None:
    shown = typer.testing.CliRunner(env={"COLUMNS": "200"}).invoke(cli.app, ["study"])
    assert shown.exit_code == 0
    for name in ("grid", "oversmoothing", "response", "discretisation"):
        assert name in shown.stdout


@pytest.mark.parametrize(
    ("words", "needle"),
    [
        (("gird",), "did you mean 'grid'"),
        (("response", "--out", "{}/file"), "cannot write"),
        (("response", "--out", "{}/new", "--seed", "-1"), "must be 0 or more"),
    ],
)
def test_bad_input_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: Any, needle: str
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(sys, "argv", ["rdgraph", "study", *(word.format(tmp_path) for word in words)])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 2
    assert needle in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
