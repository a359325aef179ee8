"""Pictures in one line: what is drawn are the numbers asked for; `rd.plot` finds them by name."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from matplotlib.animation import FuncAnimation
from matplotlib.figure import Figure

import rdgraph as rd
from analysis import plots
from rdgraph import plot as door
from rdgraph.errors import InvalidArgument, MissingDependency, NotApplicable

NAMES = ("animate", "energy", "phase", "response", "state")


def test_the_door_has_every_picture() -> None:
    assert set(NAMES) <= set(dir(rd.plot))
    assert rd.plot.energy is plots.energy
    with pytest.raises(AttributeError, match="did you mean response"):
        _ = rd.plot.respons
    with pytest.raises(AttributeError, match="known: animate, energy"):
        _ = rd.plot.unheard_of


def test_a_picture_that_cannot_be_loaded_says_where_it_should_be(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import EntryPoint

    broken = EntryPoint("broken", "no_such_module:draw", door.GROUP)
    monkeypatch.setattr(door, "offered", lambda: {"broken": broken})
    with pytest.raises(MissingDependency, match="the picture broken at no_such_module:draw"):
        _ = door.broken


def test_a_response_is_the_exponential() -> None:
    figure = plots.response("diffusion", T=2.0)
    assert isinstance(figure, Figure)
    lam, gain = figure.axes[0].lines[0].get_data()
    np.testing.assert_allclose(gain, np.exp(-0.5 * 2.0 * np.asarray(lam)), rtol=1e-9)
    with pytest.raises(NotApplicable):
        plots.response("F")


def test_an_energy_is_that_of_the_exact_flow() -> None:
    ring = rd.generators.ring(6)
    H0 = np.cos(np.pi * np.arange(6))  # the mode of lam = 2 on a ring of even length
    times, values = plots.energy("diffusion", graph=ring, H0=H0, T=1.0).axes[0].lines[0].get_data()
    start = 2 / 6 * 6 * 4.0  # six edges with differences of 2, each counted twice
    np.testing.assert_allclose(values, start * np.exp(-2 * 0.5 * 2 * np.asarray(times)), rtol=1e-5)
    figure = plots.energy("BS", "diffusion", graph=ring, T=1.0, normalised=True)
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["BS", "diffusion"]
    with pytest.raises(InvalidArgument, match=r"expected a start \(6, channels\)"):
        plots.energy("BS", graph=ring, H0=np.zeros(5))


def test_a_phase_diagram_sweeps_what_has_no_number() -> None:
    figure = plots.phase("-a*L@H + b*A@H - c*H", values={"a": 1.0}, points=6, T=5.0)
    assert (figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()) == ("b", "c")


def test_states_are_colours_of_nodes() -> None:
    graph = rd.generators.path(3)
    H = torch.tensor([[1.0, 5.0], [2.0, 6.0], [3.0, 7.0]])
    positions = [[0, 0], [1, 0], [2, 0]]
    nodes = plots.state(H, graph, channel=1, positions=positions).axes[0].collections[-1]
    assert nodes.get_array().tolist() == [5.0, 6.0, 7.0]
    assert nodes.get_offsets().tolist() == positions
    with pytest.raises(InvalidArgument, match=r"expected a channel in 0\.\.1, got 2"):
        plots.state(H, graph, channel=2)
    with pytest.raises(InvalidArgument, match=r"expected positions \(3, 2\)"):
        plots.state(H, graph, positions=[[0, 0]])


def test_a_run_is_animated_state_by_state() -> None:
    graph = rd.generators.grid(3, 3)
    field = rd.lower(rd.parse("diffusion"), graph.operator("symmetric"), {"alpha": 1.0})
    run = rd.solve(field, torch.eye(9)[:, :1], t=[0.0, 1.0], save_at=[0.0, 0.5, 1.0])
    film = plots.animate(run, graph)
    assert isinstance(film, FuncAnimation)
    assert film.to_jshtml().count("data:image/png") == 3
    with pytest.raises(InvalidArgument, match="of one member"):
        plots.animate(np.zeros((2, 5, 9, 1)), graph)


def test_phases_of_a_reaction_are_drawn_as_those_of_a_linear_system() -> None:
    figure = rd.plot.phase("AC", points=3, T=5.0)
    assert figure.axes[0].get_xlabel() == "alpha"
    assert any("settles at 1" in text.get_text() for legend in figure.legends for text in legend.get_texts()) or any(
        "settles at 1" in label for axes in figure.axes for label in axes.get_legend_handles_labels()[1]
    )
