"""Formulas for samples: the generating formula is found with its constants, or none is reported."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import curve_fit

import rdgraph as rd
from rdgraph.errors import InvalidArgument, UnknownName
from rdgraph.infer.formulas.constant_fits import polished, samples
from rdgraph.infer.formulas.formula_search import Effort

QUICK = Effort(population=40, generations=4)
SOME = ("tanh", "exp", "relu", "sin")
X = np.linspace(-2, 2, 120)


def noisy(values: np.ndarray, share: float = 0.01, seed: int = 0) -> tuple[np.ndarray, float]:
    noise = share * float(values.std())
    return values + noise * np.random.default_rng(seed).standard_normal(values.shape), noise


@pytest.mark.parametrize(
    ("values", "text", "constants"),
    [
        (1.3 * X * (1 - X), "beta*H*(1 - H)", {"beta": 1.3}),
        (0.7 * np.tanh(2.23 * X), "beta*tanh(gamma*H)", {"beta": 0.7, "gamma": 2.23}),
        pytest.param(
            0.83 * np.exp(-1.37 * X**2), "beta*exp(-gamma*H**2)", {"beta": 0.83, "gamma": 1.37}, marks=pytest.mark.slow
        ),
        pytest.param(
            -0.5 * X + 0.9 * np.maximum(X, 0),
            "beta*relu(H) - gamma*H",
            {"beta": 0.9, "gamma": 0.5},
            marks=pytest.mark.slow,
        ),
    ],
)
def test_what_made_the_samples_is_found(values: np.ndarray, text: str, constants: dict[str, float]) -> None:
    seen, noise = noisy(values)
    formula = rd.infer.find_formula(X, seen, noise=noise, effort=QUICK, functions=SOME, seed=1).formula
    assert formula is not None
    assert formula.text == text
    assert formula.values() == pytest.approx(constants, rel=0.02)
    for k, (name, sign) in enumerate(zip(formula.names, formula.lettered.signs, strict=True)):
        low, high = sorted(sign * formula.intervals[0, k])
        assert low - (high - low) < constants[name] < high + (high - low)
    np.testing.assert_allclose(formula(X), values, atol=6 * noise)


def test_intervals_are_those_of_scipy() -> None:
    seen, noise = noisy(0.7 * np.tanh(2.23 * X), seed=4)
    formula = rd.infer.find_formula(X, seen, noise=noise, effort=QUICK, functions=("tanh",)).formula
    assert formula is not None
    values, matrix = curve_fit(
        lambda x, a, b: a * np.tanh(b * x), X, seen, p0=[1, 2], sigma=np.full(X.size, noise), absolute_sigma=True
    )
    np.testing.assert_allclose(formula.constants[0], values, rtol=1e-5)
    half = 1.959964 * np.sqrt(np.diag(matrix))
    np.testing.assert_allclose(formula.intervals[0, :, 1] - formula.constants[0], half, rtol=1e-3)


def test_sets_share_the_formula_and_not_its_constants() -> None:
    values = np.stack([1.3 * np.sin(1.9 * X), -0.4 * np.sin(2.3 * X), 0.8 * np.sin(1.6 * X)])
    formula = rd.infer.find_formula(X, values, tolerance=1e-3, effort=QUICK, functions=("sin",)).formula
    assert formula is not None
    assert formula.text == "beta*sin(gamma*H)"
    assert formula.lettered.statements == ["beta real"]
    np.testing.assert_allclose(formula.constants[:, 0], [1.3, -0.4, 0.8], rtol=1e-3)
    np.testing.assert_allclose(formula(X), values, atol=2e-3)


def test_the_lack_of_a_formula_is_reported() -> None:
    wild = np.sign(np.sin(9 * X)) * np.abs(X)
    found = rd.infer.find_formula(X, wild, max_size=8, effort=QUICK, functions=())
    assert found.formula is None
    assert found.answer.startswith("no formula of size <= 8 within 1 %; the nearest leaves")
    errors = [row.error for row in found.front]
    assert errors == sorted(errors, reverse=True)
    assert [row.size for row in found.front] == sorted(row.size for row in found.front)


def two_lines() -> np.ndarray:
    """Two sets on X: lines whose constants differ in sign, and what no short formula follows."""
    return np.stack([X + 0.5, -0.6 * X - 0.2]) + 0.3 * np.sign(np.sin(9 * X))


def test_an_error_over_several_sets_names_the_constants() -> None:
    values = two_lines()
    found = rd.infer.find_formula(X, values, max_size=7, effort=QUICK, functions=())
    assert found.formula is None
    best = found.front[-1]
    assert best.text == "beta + gamma*H"
    fits = np.array([np.polyfit(X, own, 1)[::-1] for own in values])
    lost = values - fits[:, :1] - fits[:, 1:] * X
    assert best.error == pytest.approx(np.sqrt(np.mean(lost**2)))
    for name, column in zip(("beta", "gamma"), fits.T, strict=True):
        assert best.ranges[name] == pytest.approx((column.min(), column.max()))
        assert f"{name} from {column.min():.4g} to {column.max():.4g}" in found.answer
    assert f"leaves {100 * best.error / found.scale:.2g} % with constants of every set: beta + gamma*H" in found.answer
    assert "constants of every trial: " in found.answer_for("trial")
    for mean in fits.mean(0):
        assert not any(f"{abs(mean):.4g}" in text for text in (str(found), found._repr_html_()))


def test_an_error_over_one_set_shows_the_numbers() -> None:
    values = two_lines()[1]
    found = rd.infer.find_formula(X, values, max_size=7, effort=QUICK, functions=())
    slope, level = np.polyfit(X, values, 1)
    assert found.answer.endswith(f" %: {level:.4g} - {-slope:.4g}*H")
    assert not any(row.ranges for row in found.front)
    assert "every set" not in str(found)


def test_a_found_formula_of_several_sets_is_printed_with_ranges() -> None:
    values = np.stack([-1.5 * X + 0.5 * X**3, -2.5 * X - 0.25 * X**3])
    found = rd.infer.find_formula(X, values, effort=QUICK, functions=())
    assert found.formula is not None
    assert str(found.formula).splitlines() == [
        "-beta*H + gamma*H**3",
        "beta from 1.5 to 2.5 over the sets",
        "gamma from -0.25 to 0.5 over the sets",
    ]


@pytest.mark.slow
def test_the_same_seed_finds_the_same_and_a_function_is_sampled() -> None:
    both = [rd.infer.find_formula(X, lambda x: x / (2 + x**2), effort=QUICK, functions=(), seed=2) for _ in range(2)]
    assert str(both[0]) == str(both[1])
    assert rd.infer.find_formula(X, 0 * X).formula is not None


@pytest.mark.slow
def test_weights_say_where_a_formula_must_be_good() -> None:
    values = np.where(X > 0, X, 5 * np.sin(7 * X))
    formula = rd.infer.find_formula(X, values, weights=np.where(X > 0, 1.0, 0.0), effort=QUICK, functions=()).formula
    assert formula is not None
    np.testing.assert_allclose(formula(X)[X > 0], X[X > 0], atol=0.02)


def test_constants_come_down_from_afar() -> None:
    target = samples(X, 0.7 * np.tanh(2.2 * X - 0.5))
    end = polished(target, ("*", "c", "tanh", "-", "*", "c", "x", "c"), np.array([[1.0, 1.0, 0.0]]), 60)
    np.testing.assert_allclose(end.constants, [[0.7, 2.2, 0.5]], rtol=1e-6)


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="same shape"):
        rd.infer.find_formula(X, X[:-1])
    with pytest.raises(InvalidArgument, match="x and y must be arrays of numbers"):
        rd.infer.find_formula("x", "y")
    with pytest.raises(InvalidArgument, match="finite"):
        rd.infer.find_formula(X, np.where(X > 0, np.nan, X))
    with pytest.raises(InvalidArgument, match="weights >= 0"):
        rd.infer.find_formula(X, X, weights=-np.ones_like(X))
    with pytest.raises(InvalidArgument, match="tolerance > 0"):
        rd.infer.find_formula(X, X, tolerance=0)
    with pytest.raises(InvalidArgument, match="a whole number from 0 as seed, got 'one'"):
        rd.infer.find_formula(X, X, seed="one")
    with pytest.raises(InvalidArgument, match="positive noise"):
        rd.infer.find_formula(X, X, noise=-1.0)
    with pytest.raises(UnknownName, match="gelu"):
        rd.infer.find_formula(X, X, functions=["gelu"])


def test_a_term_may_vanish_on_one_set_of_points() -> None:
    x = np.stack([np.linspace(-2, -0.1, 60), np.linspace(0.1, 2, 60)])
    made = np.maximum(x, 0) - 0.5 * x**3
    formula = rd.infer.find_formula(x, made, functions=("relu",), effort=QUICK).formula
    assert formula is not None
    assert formula.relative_error < 1e-6
    for k, points in enumerate(x):
        np.testing.assert_allclose(formula(points)[k], made[k], atol=1e-6)
