"""Declarations of learned functions and their control values: text, refusals, splines, and what is declared of them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.interpolate import BSpline, CubicSpline

from rdgraph.errors import InvalidArgument
from rdgraph.vocabulary.learned_functions import LearnedFunction, LearnedValues, basis, cut_controls, knots_of

DECLARATIONS = [
    LearnedFunction("phi"),
    LearnedFunction("phi", knots=2, range=(0, 1)),
    LearnedFunction("phi", knots=7, odd=True),
    LearnedFunction("phi", knots=8, range=(-2, 2), odd=True, lipschitz=0.5),
    LearnedFunction("phi", knots=5, range=(-1, 4), monotone="nondecreasing"),
    LearnedFunction("phi", knots=6, monotone="nonincreasing", lipschitz=Fraction(1, 3)),
    LearnedFunction("phi", knots=4, bound=1),
    LearnedFunction("phi", knots=5, odd=True, bound=0.25),
    LearnedFunction("phi", knots=9, range=(-1, 1), monotone="nondecreasing", bound=2, lipschitz=3),
    LearnedFunction("phi", knots=10, odd=True, monotone="nonincreasing", bound=2, lipschitz=1, per_channel=True),
]


@pytest.mark.parametrize("declared", DECLARATIONS, ids=str)
def test_a_declaration_reads_back(declared: LearnedFunction) -> None:
    assert LearnedFunction.read(str(declared)) == declared
    assert LearnedFunction.of_key(declared.key) == declared
    assert hash(LearnedFunction.read(str(declared))) == hash(declared)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"knots": 1}, "2 to 512 knots"),
        ({"knots": 3, "bound": 1}, "4 to 512 knots"),
        ({"knots": True}, "knots"),
        ({"range": (1, -1)}, "smaller number first"),
        ({"range": 3}, "lower, upper"),
        ({"range": (-1, 2), "odd": True}, "symmetric about zero"),
        ({"monotone": "increasing"}, "nondecreasing"),
        ({"lipschitz": 0}, "lipschitz > 0"),
        ({"bound": -1}, "bound > 0"),
        ({"bound": float("nan")}, "finite"),
        ({"lipschitz": 2**0.5 * 1j}, "real"),
    ],
)
def test_a_declaration_that_cannot_hold_is_refused(given: dict, words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        LearnedFunction("phi", **given)


@pytest.mark.parametrize("text", ["phi", "phi odd", "phi learned knots", "phi learned knots=x", "phi learned odd odd",
                                  "phi learned range=3", "phi learned bound=a", "1 learned"])  # fmt: skip
def test_a_text_that_declares_nothing_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument):
        LearnedFunction.read(text)


@pytest.mark.parametrize(("knots", "ends"), [(2, (0, 1)), (3, (-1, 1)), (7, (-2, 1)), (12, (-3, 3))])
def test_it_is_the_natural_cubic_spline(knots: int, ends: tuple[int, int]) -> None:
    declared, rng = LearnedFunction("phi", knots=knots, range=ends), np.random.default_rng(knots)
    at, values = knots_of(declared), rng.normal(size=knots)
    ours, theirs = LearnedValues.through(declared, lambda x: values), CubicSpline(at, values, bc_type="natural")
    x = rng.uniform(*ends, 200)
    for order, mine in enumerate((ours, ours.slope, ours.curvature)):
        np.testing.assert_allclose(mine(x), theirs(x, order), atol=1e-9)
    beyond = np.array([ends[0] - 2.5, ends[1] + 7.0])
    edges = np.array(ends, dtype=float)
    np.testing.assert_allclose(ours(beyond), theirs(edges) + (beyond - edges) * theirs(edges, 1), atol=1e-9)


def test_the_basis_is_that_of_cubic_b_splines() -> None:
    declared, rng = LearnedFunction("phi", knots=6, range=(0, 5)), np.random.default_rng(0)
    controls = rng.normal(size=6)
    ghosts = np.concatenate([[2 * controls[0] - controls[1]], controls, [2 * controls[-1] - controls[-2]]])
    x = rng.uniform(0, 5, 50)
    np.testing.assert_allclose(basis(declared, x) @ controls, BSpline(np.arange(-3.0, 9.0), ghosts, 3)(x), atol=1e-12)


@pytest.mark.parametrize("declared", DECLARATIONS, ids=str)
def test_cut_values_have_what_is_declared(declared: LearnedFunction) -> None:
    rng = np.random.default_rng(1)
    for size in (0.1, 1.0, 30.0):
        check_facts(LearnedValues(declared, cut_controls(declared, size * rng.normal(size=(5, declared.knots)))))


def check_facts(values: LearnedValues, room: float = 1e-9) -> None:
    """Compare a function with its declaration at many points, the knots and far tails among them."""
    declared = values.declaration
    lower, upper = map(float, declared.range)
    x = np.concatenate([np.linspace(2 * lower - upper, 2 * upper - lower, 997), knots_of(declared), [-1e3, 1e3]])
    y, slope = values(x), values.slope(x)
    if declared.values is not None:
        assert np.abs(y).max() <= float(declared.values.upper) + room
    if declared.slope is not None:
        assert slope.min() >= float(declared.slope.lower) - room
        assert slope.max() <= float(declared.slope.upper) + room
    if declared.odd:
        np.testing.assert_allclose(values(-x), -y, atol=1e-9 * max(1.0, np.abs(y).max()))
    assert np.abs(slope).max(-1) <= values.lipschitz + room if y.ndim == 1 else True


@pytest.mark.parametrize(
    ("facts", "controls", "words"),
    [
        ({"odd": True}, [1, 0, 0, 1], "not odd"),
        ({"monotone": "nondecreasing"}, [0, 1, 0, 1], "fall"),
        ({"monotone": "nonincreasing"}, [0, 1, 1, 1], "rise"),
        ({"lipschitz": 1}, [0, 0, 5, 5], "the slope 2.5"),
        ({"bound": 1}, [0, 0, 2, 2], "the value 2"),
        ({"bound": 1}, [0, 1, 0, 0], "not level"),
        ({}, [0, np.nan, 0, 0], "not finite"),
    ],
)
def test_values_that_break_a_fact_are_refused(facts: dict, controls: list, words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        LearnedValues(LearnedFunction("phi", knots=4, **facts), np.array(controls, dtype=float))
