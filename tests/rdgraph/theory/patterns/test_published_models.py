"""Published thresholds and steady states of the models that everybody knows, each with its source."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import rdgraph as rd
from rdgraph.errors import NotApplicable

SCHNAKENBERG = "u' = a - u + u**2*v - Du*L@u; v' = b - u**2*v - Dv*L@v"
BRUSSELATOR = "u' = a - (b + 1)*u + u**2*v - Du*L@u; v' = b*u - u**2*v - Dv*L@v"
MIMURA_MURRAY = "u' = ((a + b*u - u**2)/c - v)*u - Du*L@u; v' = (u - (1 + delta*v))*v - Dv*L@v"
GIERER_MEINHARDT = "u' = a - b*u + u**2/v - Du*L@u; v' = u**2 - v - Dv*L@v"
FITZHUGH_NAGUMO = "u' = u - u**3/3 - v + c - Du*L@u; v' = epsilon*(u + a - b*v) - Dv*L@v"


# J. Schnakenberg, J. Theor. Biol. 81, 389 (1979); conditions as in J. D. Murray, Mathematical Biology II, section 2.3
def test_schnakenberg_has_one_steady_state_with_murrays_jacobian() -> None:
    states = rd.steady_states(SCHNAKENBERG)
    a, b = sp.symbols("a b")
    assert states.is_complete
    assert len(states) == 1
    assert sp.simplify(states[0].values["u"] - (a + b)) == 0
    assert sp.simplify(states[0].values["v"] - b / (a + b) ** 2) == 0
    symbol = rd.turing(SCHNAKENBERG, to=sp.oo).symbol.subs(sp.Symbol("lam"), 0)
    expected = sp.Matrix([[(b - a) / (a + b), (a + b) ** 2], [-2 * b / (a + b), -((a + b) ** 2)]])
    assert (symbol - expected).applyfunc(sp.simplify) == sp.zeros(2)


def test_schnakenberg_conditions_are_murrays() -> None:
    """With Du = 1, Dv = d: 0 < b - a < (a+b)^3, d (b-a) > (a+b)^3, (d (b-a) - (a+b)^3)^2 > 4 d (a+b)^4."""
    answer = rd.turing(SCHNAKENBERG, to=sp.oo)
    generator = np.random.default_rng(0)
    seen = set()
    for _ in range(120):
        a, b, d = (sp.Rational(int(x), 20) for x in generator.integers(1, [20, 40, 800]))
        cube = (a + b) ** 3
        murray = b - a < cube and d * (b - a) > cube and (d * (b - a) - cube) ** 2 > 4 * d * (a + b) ** 4
        assert answer.holds({"a": a, "b": b, "Du": 1, "Dv": d}) is bool(murray)
        seen.add(bool(murray))
    assert seen == {True, False}


# I. Prigogine, R. Lefever, J. Chem. Phys. 48, 1695 (1968): Hopf at B = 1 + A^2, Turing at B = (1 + A sqrt(Du/Dv))^2
@pytest.mark.parametrize(("a", "ratio"), [(2, 16), (3, 4), (sp.Rational(3, 2), 9), (2, 7)])
def test_brusselator_thresholds(a: sp.Expr, ratio: int) -> None:
    answer = rd.turing_threshold(BRUSSELATOR, "b", {"a": a, "Du": 1, "Dv": ratio}, to=sp.oo)
    turing, hopf = (1 + a / sp.sqrt(ratio)) ** 2, 1 + a**2
    assert answer.is_complete
    if turing < hopf:
        assert [sp.simplify(t.value - x) for t, x in zip(answer, (turing, hopf), strict=True)] == [0, 0]
        assert [t.unstable_side for t in answer] == ["above", "both"]
        # the critical wave number is k^2 = A/sqrt(Du Dv)
        assert answer[0].lam == pytest.approx(float(a / sp.sqrt(ratio)), rel=1e-6)
    else:
        assert len(answer) == 0


def test_brusselator_oscillates_beyond_one_plus_a_squared() -> None:
    answer = rd.turing(BRUSSELATOR)
    assert not answer.holds({"a": 2, "b": 4.99, "Du": 1, "Dv": 1}, "hopf")
    assert answer.holds({"a": 2, "b": 5.01, "Du": 1, "Dv": 1}, "hopf")
    assert rd.dispersion(BRUSSELATOR, {"a": 2, "b": 5.01, "Du": 1, "Dv": 1}).kind == "hopf"


# H. Nakao, A. S. Mikhailov, Nature Physics 6, 544 (2010): a = 35, b = 16, c = 9, d = 2/5, fixed point (5, 10), and the
# critical ratio of diffusivities is about 15.5
MIMURA = {"a": 35, "b": 16, "c": 9, "delta": 0.4}


def test_mimura_murray_on_networks() -> None:
    states = rd.steady_states(MIMURA_MURRAY, MIMURA)
    assert states.is_complete
    assert len(states) == 6
    assert states[0].values == {"u": 5, "v": 10}
    ratio = rd.patterns.critical_ratio(MIMURA_MURRAY, MIMURA)
    assert (ratio.activator, ratio.inhibitor) == ("u", "v")
    assert float(ratio) == pytest.approx(15.5, abs=0.02)
    answer = rd.turing_threshold(MIMURA_MURRAY, "Dv", {**MIMURA, "Du": sp.Rational(12, 100)}, to=sp.oo)
    assert len(answer) == 1
    assert answer[0].unstable_side == "above"
    assert sp.simplify(answer[0].value - ratio.value * sp.Rational(12, 100)) == 0


def test_on_a_graph_the_threshold_is_the_best_of_its_modes() -> None:
    modes = np.arange(60) * 0.5
    found = rd.turing_threshold(MIMURA_MURRAY, "Dv", {**MIMURA, "Du": 0.12}, operator=modes)
    jacobian = np.array([[10 / 3, -5.0], [10.0, -4.0]])

    def largest(diffusivity: float) -> float:
        matrices = jacobian - modes[:, None, None] * np.diag([0.12, diffusivity])
        return float(np.linalg.eigvals(matrices).real.max())

    assert len(found) == 1
    assert found[0].unstable_side == "above"
    value = float(found[0].value)
    assert largest(value * (1 - 1e-6)) < 0 < largest(value * (1 + 1e-6))
    assert value > 0.12 * float(rd.patterns.critical_ratio(MIMURA_MURRAY, MIMURA))


# A. Gierer, H. Meinhardt, Kybernetik 12, 30 (1972), in the dimensionless form of Murray II, section 2.2, without
# saturation: u = (a + 1)/b, v = u^2, and the activator excites itself by b (1 - a)/(1 + a)
def test_gierer_meinhardt() -> None:
    a, b = sp.symbols("a b")
    states = rd.steady_states(GIERER_MEINHARDT)
    assert states.is_complete
    assert len(states) == 1
    assert sp.simplify(states[0].values["u"] - (a + 1) / b) == 0
    answer = rd.turing(GIERER_MEINHARDT, to=sp.oo)
    jacobian = answer.symbol.subs(sp.Symbol("lam"), 0)
    assert sp.simplify(jacobian[0, 0] - b * (1 - a) / (1 + a)) == 0
    assert sp.simplify(jacobian.det() - b) == 0
    assert answer.outcome == "possible"
    # f_u = 9/11, det J = 1: the larger root of (9 d/11 - 1)^2 = 4 d
    ratio = rd.patterns.critical_ratio(GIERER_MEINHARDT, {"a": 0.1, "b": 1})
    assert float(ratio) == pytest.approx(max(np.roots([81 / 121, -18 / 11 - 4, 1]).real), rel=1e-12)


# R. FitzHugh, Biophys. J. 1, 445 (1961): a = 0.7, b = 0.8, eps = 0.08 rests at (-1.199, -0.624) without current, and
# oscillates with the current 0.5
def test_fitzhugh_nagumo_rests_and_fires() -> None:
    values = {"a": 0.7, "b": 0.8, "epsilon": 0.08, "Du": 1, "Dv": 1}
    system = rd.parse(FITZHUGH_NAGUMO, assume=["c real"])
    rest = rd.steady_states(system, {**values, "c": 0})
    assert rest.is_complete
    assert len(rest) == 1
    assert rest[0].numbers() == pytest.approx({"u": -1.19941, "v": -0.62426}, abs=1e-5)
    assert rd.dispersion(system, {**values, "c": 0}).kind == "stable"
    assert rd.dispersion(system, {**values, "c": 0.5}).kind == "hopf"


# ---------------------------------------------------------------------- what cannot be
def test_equal_diffusivities_make_no_patterns() -> None:
    text = SCHNAKENBERG.replace("Dv", "Du")
    assert rd.turing(text).outcome == "impossible"
    assert rd.turing(text, to=sp.oo).outcome == "impossible"


@pytest.mark.parametrize("text", ["+ Du*L@u; v' = b*u - u**2*v - Dv*L@v", "- Du*L@u; v' = b*u - u**2*v"])
def test_fields_that_do_not_diffuse_have_no_critical_ratio(text: str) -> None:
    with pytest.raises(NotApplicable, match="diffus"):
        rd.patterns.critical_ratio(f"u' = a - (b + 1)*u + u**2*v {text}", {"a": 2, "b": 2.25})


def test_two_inhibitors_have_no_critical_ratio() -> None:
    with pytest.raises(NotApplicable, match="no field activates itself"):
        rd.patterns.critical_ratio("u' = -u + v - Du*L@u; v' = -u - v - Dv*L@v")


@pytest.mark.parametrize("name", ["F", "AC", "Z", "ST"])
def test_one_field_grows_fastest_where_all_nodes_agree(name: str) -> None:
    answer = rd.turing(name)
    assert answer.outcome == "impossible"
    assert "largest at lam = 0" in answer.reason
    assert answer.sets["anti-diffusion"].outcome == "impossible"


def test_blurring_sharpening_has_a_band_by_anti_diffusion_alone() -> None:
    answer = rd.turing("BS")
    alpha, beta = sp.symbols("alpha beta")
    assert answer.outcome == "impossible"
    assert answer.sets["anti-diffusion"].outcome == "possible"
    assert answer.sets["anti-diffusion"].relations["transport amplifies"] == (beta - alpha > 0)
    relation = rd.dispersion("BS", {"alpha": 1, "beta": 4})
    assert relation.kind == "long-wave"
    assert [(b.lower, b.upper) for b in relation.unstable] == [(0, sp.Rational(3, 4))]
    assert relation.fastest is not None
    assert relation.fastest.lam == pytest.approx(3 / 8, abs=1e-7)
    assert rd.dispersion("BS", {"alpha": 4, "beta": 1}).kind == "marginal"


def test_the_one_critical_value_is_a_number() -> None:
    answer = rd.turing_threshold(
        "Brusselator", "b", {"a": 2, "Du": 1, "Dv": 16}
    )  # (1 + a*sqrt(Du/Dv))**2 at lam = a/sqrt(Du*Dv) = 1/2, within (0, 2]
    assert answer.value == sp.Rational(9, 4)
    assert float(answer) == 2.25
    assert "for lam in (0, 2]" in str(answer)
    beyond = {"a": 2, "Du": 0.01, "Dv": 0.16}  # the classical mode, lam = 50, is not one of a normalised operator
    assert rd.turing_threshold("Brusselator", "b", beyond, to=sp.oo).value == sp.Rational(9, 4)
    assert len(rd.turing_threshold("Brusselator", "b", beyond)) == 0


def test_the_fastest_mode_is_a_number() -> None:
    fastest = rd.dispersion("BS", {"alpha": 0.5, "beta": 1}).fastest
    assert float(fastest) == fastest.lam == pytest.approx(0.25)
    assert fastest.growth == pytest.approx(0.0625)
