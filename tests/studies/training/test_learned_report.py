"""A training with a learned function as a run folder: the command, the figure of phi, the file that is read again."""

from __future__ import annotations

import csv
import tomllib
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from gread.datasets.embedded import karate
from gread.settings.config import Config
from gread.settings.trials import make_trials
from gread.training.trainer import Trained, train
from rdgraph.errors import FileError, InvalidArgument
from studies.cli import app as cli
from studies.training.choices import with_learned
from studies.training.learned_tables import density_of, function_curves, read_functions, write_functions

BASE = {"hidden": 4, "epochs": 3, "adjacency": "original", "method": "rk4", "step": 0.5}
EQUATION = "-alpha*L@H + phi(H) + psi(A@H) where psi learned knots=4 per_channel"


@pytest.fixture(scope="module")
def done() -> Trained:
    return train(karate(), make_trials(Config().updated(BASE | {"reaction": EQUATION}), range(2)), device="cpu")


def test_every_function_is_drawn_with_its_states(done: Trained) -> None:
    drawing = function_curves(done, [0, 1])
    assert drawing is not None
    drawn = {(row["function"], row.get("split")) for row in drawing.rows}
    assert drawn == {("phi", 0), ("phi", 1), ("phi", None), ("psi", 0), ("psi", 1)}  # psi is of A@H: no density
    curve = {row["x"]: row["value"] for row in drawing.rows if row["function"] == "phi" and row.get("split") == 1}
    places = np.array(list(curve))
    np.testing.assert_allclose(list(curve.values()), done.network(1).functions()["phi"](places), atol=1e-12)
    density = np.array([(row["x"], row["density"]) for row in drawing.rows if "density" in row])
    assert np.trapezoid(density[:, 1], density[:, 0]) == pytest.approx(1.0, abs=0.1)


def test_functions_are_written_and_read(done: Trained, tmp_path: Path) -> None:
    assert write_functions(tmp_path, done, [0, 1])
    found = read_functions(tmp_path)
    for name, values in found.items():
        for k, own in enumerate(values):
            np.testing.assert_array_equal(own.controls, done.network(k).functions()[name].controls)
    (tmp_path / "functions.json").write_text('{"phi": {}}')
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(FileError, match="no learned functions"):
            read_functions(folder)


def test_a_training_without_a_learned_function_has_none(tmp_path: Path) -> None:
    plain = train(karate(), make_trials(Config().updated(BASE), range(1)), device="cpu")
    assert function_curves(plain, [0]) is None
    assert not write_functions(tmp_path, plain, [0])


def test_a_density_of_equal_states_is_finite() -> None:
    middle, density = density_of(np.ones(7))
    assert np.isfinite(middle).all()
    assert np.isfinite(density).all()


def test_declarations_of_the_command_line_join_those_of_the_equation() -> None:
    assert with_learned("BS", []) == "BS"
    joined = with_learned("phi(H) - k*H where k scalar", ["phi: odd, bound=1"])
    assert joined == "phi(H) - k*H where k scalar, phi learned knots=12 range=-3:3 odd bound=1"
    for reaction, declared in ((None, ["phi: odd"]), ("phi(H)", ["phi odd"]), ("phi(H)", ["phi: even"])):
        with pytest.raises(InvalidArgument):
            with_learned(reaction, declared)


@pytest.mark.slow
def test_the_command_trains_a_learned_function_to_a_written_report(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    words = ["train", "--dataset", "karate", "--equation", "-alpha*L@H + phi(H)", "--learned", "phi: knots=6, odd",
             "--splits", "0,1", "--epochs", "3", "--out", folder, "--set", "hidden=4"]  # fmt: skip
    run = CliRunner(env={"NO_COLOR": "1"}).invoke(cli.app, [str(word) for word in words])
    assert run.exit_code == 0, run.output
    written = tomllib.loads((folder / "config.toml").read_text())
    assert "phi learned knots=6 range=-3:3 odd" in written["reaction"]
    assert "Learned functions at the best epochs" in (folder / "report.html").read_text()
    with (folder / "figures" / "functions.csv").open(encoding="utf-8") as file:
        assert {row["split"] for row in csv.DictReader(file)} == {"0", "1", ""}
    assert [own.declaration.knots for own in read_functions(folder)["phi"]] == [6, 6]
