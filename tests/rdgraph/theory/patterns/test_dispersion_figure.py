"""What is drawn of a dispersion relation: the numbers of the curves, bands, markers and titles in the figure."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp
from matplotlib.patches import Rectangle

import rdgraph as rd
from rdgraph.errors import InvalidArgument
from rdgraph.theory.patterns.dispersion import dispersion_curves, dispersion_figure, drawn_end

SCHNAKENBERG = "u' = a - u + u**2*v - Du*L@u; v' = b - u**2*v - Dv*L@v"
VALUES = {"a": 0.1, "b": 0.9, "Du": 0.02, "Dv": 1}


def ring(nodes: int, directed: bool = False) -> np.ndarray:
    step = np.roll(np.eye(nodes), 1, axis=1)
    return np.eye(nodes) - (step if directed else (step + step.T) / 2)


def test_curves_bands_and_modes_are_those_of_the_relation() -> None:
    relation = rd.dispersion(SCHNAKENBERG, VALUES, operator=ring(8))
    above, below = relation.plot().axes
    lines = {line.get_label(): line for line in above.get_lines()}
    curve = lines["fastest growing eigenvalue of P(λ)"]
    assert np.allclose(curve.get_ydata(), relation.growth(np.asarray(curve.get_xdata())))
    turning = below.get_lines()[0]
    assert np.allclose(turning.get_ydata(), relation.frequency(np.asarray(turning.get_xdata())))
    modes = lines["modes of the graph"]
    assert np.allclose(modes.get_ydata(), relation.modes.growth)
    assert lines["fastest λ"].get_xdata()[0] == relation.fastest.lam
    (band,) = [patch for patch in above.patches if isinstance(patch, Rectangle)]
    assert (band.get_x(), band.get_x() + band.get_width()) == pytest.approx(relation.unstable[0].ends)
    assert "u = 1, v = 0.9" in above.get_title()
    assert "turing" in above.get_title()


def test_several_states_stand_side_by_side() -> None:
    values = {"a": 0.3, "eps": 0.5, "Du": 1, "Dv": 2}
    text = "u' = u - u**3 - v - Du*L@u; v' = eps*(u - a*v) - Dv*L@v where eps scalar"
    relations = [rd.dispersion(text, values, k) for k in range(len(rd.steady_states(text, values)))]
    figure = relations[0].plot(*relations[1:])
    assert len(figure.axes) == 2 * len(relations)
    rows = dispersion_curves(relations)
    assert {row["state"] for row in rows} == set(range(len(relations)))
    last = [row for row in rows if row["state"] == len(relations) - 1]
    assert [row["growth"] for row in last] == pytest.approx(
        list(relations[-1].growth(np.array([row["lam"] for row in last])))
    )


def test_directed_modes_lie_off_the_curve() -> None:
    relation = rd.dispersion(SCHNAKENBERG, VALUES, operator=ring(8, directed=True))
    modes = [row for row in dispersion_curves([relation]) if row["part"] == "mode"]
    assert any(abs(row["lam_imaginary"]) > 0.5 for row in modes)
    assert [row["growth"] for row in modes] == pytest.approx(list(relation.modes.growth))
    assert "real part" in str([line.get_label() for line in relation.plot().axes[0].get_lines()])


def test_ranges_without_end_are_drawn_as_far_as_something_happens() -> None:
    relation = rd.dispersion(SCHNAKENBERG, VALUES, to=sp.oo)
    assert drawn_end(relation) == pytest.approx(1.5 * max(x for band in relation.unstable for x in band.ends))
    assert drawn_end(rd.dispersion("u' = -L@u - u; v' = -v", {}, to=sp.oo)) == 2.0
    with pytest.raises(InvalidArgument, match="at least one"):
        dispersion_figure([])
