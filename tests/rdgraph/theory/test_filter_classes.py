"""Classes of filters and growth, against brute force."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import rdgraph as rd
from rdgraph.errors import NotApplicable, Undecided
from rdgraph.language.answer_symbols import public
from rdgraph.systems.system import System
from rdgraph.testing import systems
from tests.property_examples import examples
from tests.rdgraph.theory.filter_cases import (
    LAM,
    gains,
)

# ---------------------------------------------------------------------- filter classes
CLASSIFIED: dict[str, System] = {
    "BS": rd.parse("BS"),
    "BS real": rd.parse("BS", assume="beta real"),
    "BS negative": rd.parse("BS", assume="beta<0"),
    "BS bounded": rd.parse("BS", assume="beta <= alpha"),
    "BS between": rd.parse("BS", assume="alpha <= beta <= 2*alpha"),
    "FB": rd.parse("FB"),
    "FB real": rd.parse("FB", assume="beta real"),
    "FB* real": rd.parse("FB*", assume="beta real"),
    "released real": rd.parse("FB-released", assume="beta real"),
    "ST": rd.parse("ST"),
    "APPNP": rd.parse("APPNP"),
    "one coefficient": rd.parse("-L@H + beta*L@L@H", assume="beta real"),
    "no coefficient": rd.parse("L@H - L@L@H"),
    "cubic": rd.parse("-alpha*L@H + beta*A**3@H"),
    "cubic real": rd.parse("-alpha*L@H + beta*L**3@H", assume="beta real"),
    "cubic inner": rd.parse("-alpha*L@(L - I)@(L - 2*I)@H + beta*L@H", assume="beta real"),
    "cubic half": rd.parse("alpha*(L - I)**3@H - beta*L@H"),
    "quartic": rd.parse("-alpha*L**4@H + beta*L**2@H"),
    "quartic real": rd.parse("-alpha*L**2@H + beta*A**4@H", assume="beta real"),
    "three": rd.parse("-alpha*L@H + beta*L@H - gamma*L@L@H"),
    "three real": rd.parse("-alpha*L@H + beta*L@H - gamma*L@L@H", assume=["beta real", "gamma real"]),
    "three flat": rd.parse("-alpha*L@H + beta*L@H + gamma*L@H"),
    "real base": rd.parse("alpha*L@H - beta*L@L@H", assume=["alpha real", "beta real"]),
    "nonnegative": rd.parse("alpha*L@H - beta*L@L@H", assume=["alpha nonnegative", "beta nonnegative"]),
}


@cache
def classes(name: str) -> tuple[Any, ...]:
    return rd.classify(CLASSIFIED[name])


def exact_values(system: System, generator: np.random.Generator, grid: int) -> dict[str, sp.Rational] | None:
    """Coefficients on a coarse rational grid, which hits the borders between classes often."""
    values = {}
    for name in system.coefficients:
        sign = system.assumptions.sign(name)
        low = {"real": -grid, "negative": -grid, "nonpositive": -grid, "nonnegative": 0}.get(sign, 1)
        high = {"negative": -1, "nonpositive": 0}.get(sign, grid)
        values[name] = sp.Rational(int(generator.integers(low, high + 1)), int(generator.choice([1, 2, 3, 4])))
    for relation in system.assumptions.relations:
        gap = (system.algebra.normal(relation.upper) - system.algebra.normal(relation.lower)).subs(
            {system.algebra.symbols[n]: v for n, v in values.items()}
        )
        if gap < 0 or (relation.strict and gap == 0):
            return None
    return values


GRID = np.arange(1, 2 * 1009, dtype=np.int64)


def brute_force_class(p: sp.Expr) -> str:
    """From the signs of p' at 0, 2 and the points k/1009, in exact integer arithmetic."""
    slope = sp.Poly(sp.diff(p, LAM), LAM)
    common = sp.ilcm(*(c.q for c in slope.all_coeffs()), 1)
    total = np.zeros_like(GRID)
    for power, c in zip(range(len(slope.all_coeffs()) - 1, -1, -1), slope.all_coeffs(), strict=True):
        total += int(c * common) * GRID**power * 1009 ** (4 - power)
    ends = [int(sp.sign(slope.eval(x))) for x in (0, 2)]
    signs = [x for x in (ends[0], *map(int, np.sign(total)), ends[1]) if x]
    changes = tuple(x for i, x in enumerate(signs) if i == 0 or signs[i - 1] != x)
    answer = {(): "all-pass", (1,): "high-pass", (-1,): "low-pass", (1, -1): "band-pass", (-1, 1): "band-stop"}
    return answer.get(changes, "multi-band")


def holds(condition: sp.Basic, values: dict[str, sp.Rational]) -> bool:
    decided = condition.subs({sp.Symbol(n): v for n, v in values.items()})
    assert decided in (sp.true, sp.false), decided
    return bool(decided)


@pytest.mark.slow
@pytest.mark.parametrize("name", CLASSIFIED)
def test_filter_classes_against_brute_force(name: str) -> None:
    system, generator = CLASSIFIED[name], np.random.default_rng(5)
    p = system.symbol()
    rounds = 120 if system.coefficients else 1
    for _ in range(rounds):
        values = exact_values(system, generator, 6)
        if values is None:
            continue
        true = [c for c in classes(name) if holds(c.condition, values)]
        assert len(true) == 1, (values, true)
        numeric = p.subs(values)
        assert true[0].kind == brute_force_class(numeric), (values, str(true[0]))
        if true[0].at is not None:
            point = true[0].at.subs(values)
            assert sp.diff(numeric, LAM).subs(LAM, point) == 0
            assert 0 < point < 2
        elif true[0].kind in ("band-pass", "band-stop"):
            assert sp.degree(p, LAM) > 2


@pytest.mark.parametrize("name", [n for n in CLASSIFIED if n != "no coefficient"])
def test_every_class_occurs(name: str) -> None:
    """No class with a condition that nothing meets."""
    system, generator = CLASSIFIED[name], np.random.default_rng(6)
    points = [v for _ in range(400) if (v := exact_values(system, generator, 6)) is not None]
    for answer in classes(name):
        assert any(holds(answer.condition, v) for v in points), str(answer)


@pytest.mark.parametrize(
    ("name", "beta_over_alpha", "kind"),
    [
        ("BS real", "1", "low-pass"), ("BS real", "1.0001", "band-pass"), ("BS real", "-1/3", "low-pass"),
        ("BS real", "-0.3334", "band-stop"), ("BS real", "0", "low-pass"), ("BS real", "-1", "band-stop"),
        ("FB", "1", "all-pass"), ("FB", "1.0001", "high-pass"), ("FB", "0.9999", "low-pass"),
        ("released real", "-1", "all-pass"), ("released real", "-1.001", "high-pass"),
        ("released real", "-0.999", "low-pass"),
    ],
)  # fmt: skip
def test_classes_on_both_sides_of_each_border(name: str, beta_over_alpha: str, kind: str) -> None:
    for alpha in (sp.Rational(1), sp.Rational(7, 3)):
        values = {"alpha": alpha, "beta": alpha * sp.Rational(beta_over_alpha)}
        assert [c.kind for c in classes(name) if holds(c.condition, values)] == [kind]


def test_band_edges_of_blurring_sharpening() -> None:
    band = next(c for c in classes("BS") if c.kind == "band-pass")
    alpha, beta = sp.symbols("alpha beta")
    assert sp.simplify(band.at - (beta - alpha) / (2 * beta)) == 0
    stop = next(c for c in classes("BS negative") if c.kind == "band-stop")
    assert sp.simplify(stop.at - (sp.Rational(1, 2) - alpha / (2 * beta))) == 0


def test_a_source_that_could_turn_the_class_is_not_classified() -> None:
    for text in ("-alpha*L@H + beta*A@H0", "-alpha*L@H - beta*H0"):
        with pytest.raises(Undecided, match="source"):
            rd.classify(rd.parse(text))


@pytest.mark.parametrize("beta", [0.1, 1.0, 4.0])
def test_class_of_a_source_system_is_that_of_its_response(beta: float) -> None:
    assert [c.kind for c in classes("ST")] == ["low-pass"]
    grid = np.linspace(0, 2, 201)
    gain = gains(rd.theory.response(rd.parse("ST"), T=2), grid, {"alpha": 0.8, "beta": beta})
    assert (np.diff(gain) < 0).all()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("alpha*L@L@H0", "high-pass"), ("alpha*A@A@H0", "band-stop"), ("-alpha*H + beta*L@H0", "high-pass"),
        ("alpha*H + beta*(2*I - L)@H0", "low-pass"), ("-H + alpha*(2*L - L@L)@H0", "band-pass"),
        ("alpha*H + beta*H0", "all-pass"), ("alpha*H + beta*L@(L - I)@(L - I)@H0", "multi-band"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("end", [0.05, 1.0, 6.0])
def test_the_class_is_that_of_the_source_where_the_rest_is_alike(text: str, kind: str, end: float) -> None:
    (answer,) = rd.classify(text)
    assert (answer.kind, answer.condition) == (kind, sp.true)
    names = {(): "all-pass", (1,): "high-pass", (-1,): "low-pass", (1, -1): "band-pass", (-1, 1): "band-stop"}
    for alpha, beta in ((0.1, 2.0), (1.5, 0.3)):
        gain = np.abs(gains(rd.theory.response(text, T=end), np.linspace(0, 2, 401), {"alpha": alpha, "beta": beta}))
        signs = [int(x) for x in np.sign(np.round(np.diff(gain), 13)) if x]
        turns = tuple(x for k, x in enumerate(signs) if k == 0 or signs[k - 1] != x)
        assert names.get(turns, "multi-band") == kind


def test_a_source_of_both_signs_has_no_class_for_all_times() -> None:
    """With -L@L@H0 the gain |1 - T lam^2| falls for short times and rises for long ones."""
    grid = np.linspace(0, 2, 401)
    slopes = [np.diff(np.abs(gains(rd.theory.response("-L@L@H0", T=end), grid, {}))) for end in (0.1, 10.0)]
    assert (slopes[0] < 0).all()
    assert (slopes[1][200:] > 0).all()
    for text in ("-L@L@H0", "alpha*L@L@H0 where alpha real", "H + alpha*A@H0", "-alpha*L@H + beta*L@H0"):
        with pytest.raises(Undecided, match="q >= 0"):
            rd.classify(text)


# ---------------------------------------------------------------------- growth
GROWING = [
    "BS", "BS real", "BS negative", "BS between", "FB", "FB real", "FB* real", "released real", "one coefficient",
    "cubic", "cubic real", "cubic inner", "cubic half", "quartic",
]  # fmt: skip


@cache
def growth(name: str) -> tuple[sp.Expr, sp.Expr]:
    return rd.theory.growth_rate(CLASSIFIED[name]), rd.theory.fastest_frequency(CLASSIFIED[name])


@pytest.mark.parametrize("name", GROWING)
def test_growth_and_fastest_frequency_against_a_grid(name: str) -> None:
    system, generator = CLASSIFIED[name], np.random.default_rng(7)
    rate, point = growth(name)
    grid = np.linspace(0, 2, 20_001)
    for _ in range(60):
        values = exact_values(system, generator, 5)
        if values is None:
            continue
        numeric = sp.lambdify(LAM, system.symbol().subs(values))
        best = np.max(numeric(grid) * np.ones_like(grid))
        assert float(rate.subs(values)) == pytest.approx(best, rel=1e-6, abs=1e-6), values
        where = float(point.subs(values))
        assert 0 <= where <= 2
        assert float(numeric(where)) == pytest.approx(best, rel=1e-6, abs=1e-6), values


@pytest.mark.slow
@pytest.mark.parametrize("name", ["three", "three real", "three flat", "real base", "nonnegative"])
def test_growth_rate_without_one_ratio(name: str) -> None:
    system, generator = CLASSIFIED[name], np.random.default_rng(8)
    rate = rd.theory.growth_rate(system)
    grid = np.linspace(0, 2, 20_001)
    for _ in range(60):
        values = exact_values(system, generator, 5)
        assert values is not None
        best = np.max(sp.lambdify(LAM, system.symbol().subs(values))(grid) * np.ones_like(grid))
        assert float(rate.subs(values)) == pytest.approx(best, rel=1e-6, abs=1e-6), values


@pytest.mark.parametrize("name", ["three", "real base"])
def test_the_fastest_of_several_ratios_is_undecided(name: str) -> None:
    with pytest.raises(Undecided, match="several ratios"):
        rd.theory.fastest_frequency(CLASSIFIED[name])


def test_roots_without_closed_form_are_undecided() -> None:
    with pytest.raises(Undecided, match="no closed form"):
        rd.theory.growth_rate(CLASSIFIED["quartic real"])


def test_no_fastest_frequency_where_all_are_equal() -> None:
    with pytest.raises(NotApplicable, match="same rate"):
        rd.theory.fastest_frequency(rd.parse("beta*H"))


@pytest.mark.slow
@settings(max_examples=examples(60))
@given(systems(linear=True, kinds=("scalar",)), st.integers(0, 2**20))
def test_growth_rate_of_random_systems(system: System, seed: int) -> None:
    try:
        rate = rd.theory.growth_rate(system)
    except Undecided:
        assume(False)
    values = exact_values(system, np.random.default_rng(seed), 5)
    assume(values is not None)
    grid = np.linspace(0, 2, 4001)
    best = np.max(sp.lambdify(LAM, system.symbol().subs(values))(grid) * np.ones_like(grid))
    assert float(rate.subs(values)) == pytest.approx(best, rel=1e-5, abs=1e-5)


@settings(max_examples=examples(60))
@given(systems(linear=True, kinds=("scalar",)), st.integers(0, 2**20))
def test_classes_of_random_systems(system: System, seed: int) -> None:
    try:
        answer = rd.classify(system)
    except Undecided:
        assume(False)
    values = exact_values(system, np.random.default_rng(seed), 5)
    assume(values is not None)
    true = [c.kind for c in answer if holds(c.condition, values)]
    p, q = (x.subs(values) for x in (system.symbol(), public(system.source_symbol)))
    assert true == [brute_force_class(p if p.has(LAM) else q)], values


def test_generator_symbol_keeps_the_signs() -> None:
    assert all(x.is_nonnegative for x in rd.parse("BS").generator_symbol.free_symbols)


def test_classes_leave_out_where_a_coefficient_is_divided_by_zero() -> None:
    answer = rd.classify("H - 1/epsilon*L@H where epsilon real")
    assert [str(c) for c in answer] == ["high-pass if epsilon < 0", "low-pass if epsilon > 0"]
    (only,) = rd.classify("c*H - c/epsilon*L@H where epsilon nonpositive, c < 3")
    assert str(only) == "high-pass if epsilon < 0"


@pytest.mark.parametrize(
    "text",
    [
        "q**2*L@L@H + mu*(I + A)@H where q scalar",
        "-L@L@H - b*L@H - rho*(2*I - L)@H where rho scalar, b real",
        "-a*L@H + a*b*L@L@H where a scalar, b scalar",
        "-a*L@H + b**3*L@L@H where a scalar, b real",
    ],
)
def test_coefficients_of_different_degrees_have_no_common_factor(text: str) -> None:
    """The class depends on more than the ratio of the coefficients: against the sampled slope of the symbol."""
    system = rd.parse(text)
    lam, answer = sp.Symbol("lam"), rd.classify(text)
    letters = sorted(rd.theory.symbol(system).free_symbols - {lam}, key=str)
    assert len(letters) == 2
    rng, places = np.random.default_rng(0), np.linspace(0, 2, 4001)
    slope = sp.lambdify([lam, *letters], sp.diff(rd.theory.symbol(system), lam))
    names = {(1,): "high-pass", (-1,): "low-pass", (1, -1): "band-pass", (-1, 1): "band-stop"}
    for _ in range(200):
        signs = [-1 if "real" in text and str(x) == "b" and rng.random() < 0.5 else 1 for x in letters]
        values = [float(s * np.exp(rng.uniform(-3, 3))) for s in signs]
        here = np.sign(slope(places, *values))
        runs = tuple(int(x) for k, x in enumerate(here) if x and (k == 0 or x != here[k - 1]))
        reason = [
            c.kind
            for c in answer
            if c.condition == sp.true or c.condition.subs(dict(zip(letters, values, strict=True)))
        ]
        assert reason == [names[runs]], values
