"""A training of several fields as a run folder: the command, its files, and a row of panels for each field."""

from __future__ import annotations

import csv
import tomllib
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import rdgraph as rd
from gread.datasets.embedded import karate
from gread.models.trained_network import Network
from gread.settings.config import Config
from gread.settings.trials import make_trials
from gread.training.trainer import Trained, train
from rdgraph.errors import NotApplicable, UnknownName
from studies.cli import app as cli
from studies.runs.chart_figures import dots_figure
from studies.training import training_figures
from studies.training.plan import Request, make_plan

PAIR = "u' = -Du*L@u + beta*(A@u - A@A@u) - gamma*v; v' = -Dv*L@v + delta*(u - v)"
BASE = {"hidden": 4, "epochs": 3, "adjacency": "original", "method": "rk4", "step": 0.5}


@pytest.fixture(scope="module")
def done() -> Trained:
    return train(karate(), make_trials(Config().updated(BASE | {"reaction": PAIR}), range(2)), device="cpu")


def column(path: Path, name: str) -> set[str]:
    """The different entries of a column of a csv file."""
    with path.open(encoding="utf-8") as file:
        return {row[name] for row in csv.DictReader(file)}


@pytest.mark.slow
def test_the_command_trains_two_fields_to_a_written_report(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    words = ["train", "--dataset", "karate", "--reaction", PAIR, "--splits", "0,1", "--epochs", "3", "--out", folder,
             "--set", "hidden=4", "--set", "readout=u", "--set", "step=0.5", "--method", "rk4"]  # fmt: skip
    run = CliRunner(env={"NO_COLOR": "1"}).invoke(cli.app, [str(word) for word in words])
    assert run.exit_code == 0, run.output
    assert (folder / "state").read_text() == "done\n"
    written = tomllib.loads((folder / "config.toml").read_text())
    assert (written["reaction"], written["model"]["readout"], written["model"]["velocity"]) == (PAIR, "u", "zero")
    assert column(folder / "figures" / "coefficients.csv", "coefficient") == {"Du", "Dv", "beta", "gamma", "delta"}
    assert column(folder / "figures" / "states.csv", "field") == {"u", "v"}
    page = (folder / "report.html").read_text()
    assert '"title":"u\': Du' in page
    assert '"title":"v\': Dv' in page
    assert "Filter response: " in page
    data, network = karate(), Network.load(folder / "network")
    assert network.logits(data.x, data.graph).shape == (34, 2)
    again = CliRunner(env={"NO_COLOR": "1"}).invoke(cli.app, ["train", "--resume", "--out", str(folder)])
    assert again.exit_code == 0, again.output


def test_plans_of_what_cannot_be_trained_are_refused() -> None:
    with pytest.raises(NotApplicable, match="white noise"):
        make_plan(Request("karate", reaction="u' = -L@u + sigma*xi"))
    with pytest.raises(UnknownName, match="expected a readout, got 'w'"):
        make_plan(Request("karate", reaction=PAIR, settings={"readout": "w"}))


def test_coefficients_stand_in_the_row_of_their_equation(done: Trained) -> None:
    drawing = training_figures.coefficient_values(done, [0, 1])
    assert drawing is not None
    panels = drawing.drawn.panels
    assert [p.title.partition(",")[0] for p in panels] == ["u': Du", "u': beta", "u': gamma", "v': Dv", "v': delta"]
    assert [p.lines[0].style for p in panels] == ["dots", "line", "dots", "dots", "dots"]
    counts = panels[1].lines[0].y
    assert counts.sum() == sum(row["coefficient"] == "beta" for row in drawing.rows)
    beta = [row["value"] for row in drawing.rows if (row["coefficient"], row["split"]) == ("beta", 1)]
    assert beta == pytest.approx(done.network(1).coefficients()["beta"].tolist())
    shared = rd.parse("u' = c*u - Du*L@u; v' = c*v")
    assert training_figures.coefficient_lines(shared) == {"u'": ["Du", "c"]}
    assert training_figures.coefficient_lines(rd.parse("u' = -L@u; v' = u")) == {}


def test_states_have_a_row_for_each_field(done: Trained) -> None:
    network, data = done.network(0), karate()
    drawing = training_figures.embedded_states(network, data)
    figure = dots_figure(drawing.drawn)
    assert [panel.get_title() for panel in figure.axes] == [f"{f}, t = {t:g}" for f in "uv" for t in (0, 0.5, 1)]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == list(data.meta.classes)
    assert len(drawing.rows) == 2 * 3 * 34
    both = network.states(data.x, data.graph, [1.0])
    assert torch.equal(both[..., 4:], network.states(data.x, data.graph, [1.0], "v"))


def test_there_is_no_one_filter_for_several_fields(done: Trained) -> None:
    with pytest.raises(NotApplicable, match="no single gain"):
        training_figures.gains(done.network(0))
