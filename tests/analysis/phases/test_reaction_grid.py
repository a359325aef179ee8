"""Phase diagrams of reactions: proved fates against a scalar integrator of scipy's and against runs on a graph."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp

import rdgraph as rd
from analysis.phases.reaction_grid import (
    BLOWS_UP,
    DEPENDS,
    GROWS,
    OPEN,
    PATTERN,
    reaction_diagram,
    reaction_fates,
    reaction_figure,
)
from rdgraph.errors import InvalidArgument, NotApplicable

RING = rd.generators.ring(7).operator("row", dtype=torch.float64)
AXES = (np.array([0.1, 1.0]), np.array([-1.5, -0.3, 0.4, 1.5]))


def fate(text: str, alpha: float, beta: float, start: tuple[float, float]) -> str:
    return reaction_fates(text, RING, ("alpha", "beta"), np.array([alpha]), np.array([beta]), {}, start)[0][0].name


@pytest.mark.parametrize(
    "name", ["F", pytest.param("AC", marks=pytest.mark.slow), pytest.param("Z", marks=pytest.mark.slow)]
)
def test_the_reactions_of_the_paper_settle_as_predicted(name: str) -> None:
    found = reaction_diagram(name, RING, *AXES)
    assert found.agreement == 1.0
    assert found.is_predicted.all()
    assert (found.predicted[AXES[1] > 0] == "settles at 1").all()
    assert (found.predicted[AXES[1] < 0] == "settles at 0").all()


@pytest.mark.parametrize(
    ("text", "beta", "start", "expected"),
    [
        ("F", 1.0, (-2.0, -0.5), BLOWS_UP),
        ("F", 1.0, (-0.5, 0.5), DEPENDS),
        ("F", -1.0, (1.1, 2.0), BLOWS_UP),
        ("AC", 1.0, (-0.9, 0.9), DEPENDS),
        ("AC", 1.0, (-3.0, -0.1), "settles at -1"),
        ("Z", -1.0, (0.1, 0.9), "settles at 0"),
        ("-alpha*L@H + beta*tanh(H)", 1.0, (0.1, 0.9), GROWS),
        ("-alpha*L@H + beta*exp(H)", 1.0, (0.1, 0.9), BLOWS_UP),
        ("-alpha*L@H + beta*H*tanh(1 - H)", 1.0, (0.1, 4.0), "settles at 1"),
        ("alpha*L@H + beta*H*(1 - H)", 1.0, (0.1, 0.9), OPEN),
    ],
)
def test_fates(text: str, beta: float, start: tuple[float, float], expected: str) -> None:
    assert fate(text, 0.5, beta, start) == expected


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("-alpha*L@H + beta*tanh(H) - H", lambda h, b: b * math.tanh(h) - h),
        ("-alpha*L@H + sin(H) + beta", lambda h, b: math.sin(h) + b),
        ("-alpha*L@H + beta*H**2/(1 + H**2) - 0.4*H", lambda h, b: b * h**2 / (1 + h**2) - 0.4 * h),
        ("-alpha*L@H + 1 - beta*softplus(H)", lambda h, b: 1 - b * math.log1p(math.exp(h))),
    ],
)
@pytest.mark.parametrize("beta", [0.25, 0.75, 1.9])
def test_goals_are_those_of_an_integrator(text: str, rate: object, beta: float) -> None:
    for start in ((0.2, 0.6), (-2.5, -1.0)):
        ends = [
            solve_ivp(lambda t, h: [rate(h[0], beta)], (0, 400), [x], rtol=1e-9, atol=1e-11).y[0, -1] for x in start
        ]
        found = reaction_fates(text, RING, ("alpha", "beta"), np.ones(1), np.array([beta]), {}, start)[0][0]
        if found.name == DEPENDS:
            assert abs(ends[0] - ends[1]) > 1e-3
        elif found.name == GROWS:
            assert min(map(abs, ends)) > 20
        else:
            assert np.allclose(ends, found.goal, atol=1e-4)


@pytest.mark.slow
def test_competing_states_can_keep_a_pattern() -> None:
    found = reaction_diagram("AC", RING, np.array([0.01, 2.0]), np.array([1.5]), start=(-0.9, 0.9))
    assert (found.predicted == DEPENDS).all()
    assert found.simulated[0, 0] == PATTERN
    assert math.isnan(found.agreement)


@pytest.mark.slow
def test_the_picture_and_its_numbers() -> None:
    found = reaction_diagram("-alpha*L@H + tanh(H) - beta*H", RING, np.array([0.5, 1.0]), np.linspace(0.1, 1.5, 8))
    assert len(found.rows()) == 16
    assert set(found.rows()[0]) == {"alpha", "beta", "predicted", "simulated"}
    assert len(reaction_figure(found).axes) == 2


def test_what_is_refused() -> None:
    symmetric = rd.generators.star(5).operator("symmetric", dtype=torch.float64)
    with pytest.raises(NotApplicable, match="row normalisation"):
        reaction_diagram("F", symmetric, *AXES)
    with pytest.raises(NotApplicable, match="reaction in every entry"):
        reaction_diagram("-alpha*L@H + beta*tanh(A@H)", RING, *AXES)
    with pytest.raises(InvalidArgument, match="interval of finite numbers"):
        reaction_diagram("F", RING, *AXES, start=(1.0, 0.0))
    with pytest.raises(InvalidArgument, match="two of the coefficients"):
        reaction_diagram("-alpha*L@H + beta*H*(gamma - H)", RING, *AXES)
