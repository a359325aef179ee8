"""Turing's conditions and thresholds: sides, exactness, agreement with the dispersion relation."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import sympy as sp

import rdgraph as rd
from rdgraph.errors import InvalidArgument, NotApplicable, Undecided
from rdgraph.theory.patterns import steady_states, turing_analysis
from rdgraph.theory.patterns.states import SteadyStates
from rdgraph.theory.patterns.steady_states import solve_states

SCHNAKENBERG = "u' = a - u + u**2*v - Du*L@u; v' = b - u**2*v - Dv*L@v"
LINEAR = "u' = a*u - b*v - Du*L@u; v' = c*u - gamma*v - Dv*L@v"
NAGUMO = "u' = u - u**3/3 - v + c - Du*L@u; v' = epsilon*(u + a - b*v) - Dv*L@v"


@pytest.mark.parametrize("to", [2, 8])
@pytest.mark.parametrize("text", [LINEAR, SCHNAKENBERG])
@pytest.mark.slow
def test_conditions_hold_exactly_where_the_dispersion_relation_says_so(text: str, to: int) -> None:
    answer = rd.turing(text, to=to)
    source = random.Random(4)
    seen = set()
    for _ in range(15):
        values = {name: sp.Rational(source.randint(1, 10), 10) for name in rd.parse(text).coefficients}
        values |= {"a": sp.Rational(source.randint(1, 4), 10), "Du": sp.Rational(source.randint(1, 12), 200), "Dv": 2}
        kind = rd.dispersion(text, values, to=to).kind
        seen.add(kind)
        assert answer.holds(values) is (kind == "turing"), (values, kind)
        assert answer.holds(values, "hopf") is (kind in ("hopf", "turing-hopf")), (values, kind)
        assert answer.holds(values, "turing-hopf") is (kind == "turing-hopf"), (values, kind)
    assert {"turing", "stable"} <= seen


def test_steady_states_are_solved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def counted(*given: Any) -> SteadyStates:
        asked.append(given)
        return solve_states(*given)

    for module in (steady_states, turing_analysis):
        monkeypatch.setattr(module, "solve_states", counted)
    assert rd.turing(SCHNAKENBERG, to=sp.oo).outcome == "possible"
    assert len(asked) == 1


def test_examples_of_the_judge_are_examples() -> None:
    answer = rd.turing(SCHNAKENBERG)
    for name in ("turing", "hopf", "turing-hopf"):
        assert answer.sets[name].outcome == "possible"
        values = {"Du": 1, "Dv": 1, **answer.sets[name].point}
        assert answer.holds(values, name)
    assert rd.dispersion(SCHNAKENBERG, answer.turing.point).kind == "turing"


def test_conditions_in_the_letters_of_the_fields_where_there_is_no_closed_form() -> None:
    answer = rd.turing(NAGUMO)
    assert answer.state is None
    assert answer.at_every_state
    assert answer.outcome == "possible"
    values = {"a": 0.1, "b": 0.9, "c": 0.1, "epsilon": 1.2, "Du": 0.05, "Dv": 1.5}
    assert answer.holds(values)
    assert not answer.holds({**values, "Dv": 0.05})
    assert rd.dispersion(NAGUMO, values).kind == "turing"


def test_an_inhibitor_that_does_not_spread_makes_no_patterns() -> None:
    assert rd.turing("u' = a*u - b*v - Du*L@u; v' = c*u - gamma*v").outcome == "impossible"
    still = rd.turing("u' = a*u - b*v; v' = c*u - gamma*v - Dv*L@v")
    assert still.outcome == "possible"
    assert list(still.conditions)[-1] == "determinant at the end of the range"


@pytest.mark.slow
def test_three_fields_have_hurwitz_conditions() -> None:
    text = "u' = a*u - b*v - Du*L@u; v' = c*u - v - Dv*L@v + w; w' = u - gamma*w - L@w"
    answer = rd.turing(text)
    assert [name for name in answer.conditions if name.startswith("Hurwitz")] == [
        f"Hurwitz {k} at lam = 0" for k in (1, 2, 3)
    ]
    source = random.Random(9)
    seen = set()
    for _ in range(20):
        values = {name: sp.Rational(source.randint(1, 10), 4) for name in ("b", "c", "gamma", "Dv")}
        values |= {"a": sp.Rational(source.randint(1, 4), 5), "Du": sp.Rational(source.randint(0, 10) + 1, 100)}
        kind = rd.dispersion(text, values).kind
        seen.add(kind)
        grows = answer.holds(values) or answer.holds(values, "wave")
        assert grows is (kind in ("turing", "wave", "turing-wave")), (values, kind)
    assert "turing" in seen


def test_one_field_has_no_oscillations() -> None:
    with pytest.raises(NotApplicable, match="does not oscillate"):
        _ = rd.turing("F").hopf
    assert not rd.turing("F").holds({"alpha": 1, "beta": 1})


def test_cross_diffusion_is_damped_or_not() -> None:
    text = "u' = a*u - b*v - L@u - c*L@v; v' = u - v - gamma*L@u - L@v"
    answer = rd.turing(text)
    gamma, c = sp.symbols("gamma c")
    assert any(sp.simplify(r.lhs - (1 - c * gamma)) == 0 for r in answer.conditions.values() if r not in (True, False))
    assert rd.dispersion(text, {"a": 0.1, "b": 3, "c": 2, "gamma": 2}).kind == "anti-diffusion"


# ---------------------------------------------------------------------- thresholds
@pytest.mark.slow
def test_every_region_is_what_it_is_called() -> None:
    """Thresholds of each coefficient of Schnakenberg's model; a value from every region, by dense eigenvalues."""
    values = {"a": 0.1, "b": 0.9, "Du": 0.02, "Dv": 1}
    grid = np.linspace(0, 2, 1201)
    for name in values:
        answer = rd.turing_threshold(SCHNAKENBERG, name, values)
        assert answer.is_complete
        assert answer.regions[0][0] == 0
        assert answer.regions[-1][1] == sp.oo
        for low, high, kind in answer.regions:
            for part in (0.05, 0.5, 0.95):
                value = float(low) + part * (float(high) - float(low)) if high != sp.oo else float(low) * (1.05 + part)
                at = {**values, name: value}
                u, v = at["a"] + at["b"], at["b"] / (at["a"] + at["b"]) ** 2
                local = np.array([[-1 + 2 * u * v, u**2], [-2 * u * v, -(u**2)]])
                growth = np.linalg.eigvals(local - grid[:, None, None] * np.diag([at["Du"], at["Dv"]])).real.max(axis=1)
                assert (kind == "turing") is bool(growth[0] < 0 < growth.max()), (name, value, kind)
                assert (kind == "stable") is bool(growth.max() < 0), (name, value, kind)
        for threshold in answer:
            assert threshold.is_exact
            assert (threshold.below == "turing") != (threshold.above == "turing")
            assert threshold.unstable_side in ("above", "below", "both")


def test_the_side_is_below_where_growth_of_the_coefficient_calms() -> None:
    answer = rd.turing_threshold(SCHNAKENBERG, "Du", {"a": 0.1, "b": 0.9, "Dv": 1})
    assert len(answer) == 1
    assert answer[0].unstable_side == "below"
    assert answer[0].above == "stable"
    # det P(lam) = 1 + lam*(Du - 0.8) + Du*lam^2 has its last zero in (0, 2] at lam = 2: 6 Du = 0.6
    assert answer[0].value == sp.Rational(1, 10)
    assert answer[0].lam == 2


def test_thresholds_at_irrational_steady_states_are_proved_to_lie_in_a_narrow_interval() -> None:
    values = {"a": 0.1, "b": 0.9, "c": 0.1, "epsilon": 1.2, "Du": 0.05}
    found = rd.turing_threshold(NAGUMO, "Dv", values)
    assert len(found) == 1
    assert not found[0].is_exact
    assert found[0].unstable_side == "above"
    critical = float(found[0].value)
    u = rd.steady_states(NAGUMO, {**values, "Dv": 1})[0].numbers()["u"]
    grid = np.linspace(0, 2, 20001)

    def largest(diffusivity: float) -> float:
        local = np.array([[1 - u**2, -1.0], [1.2, -1.08]])
        return float(np.linalg.eigvals(local - grid[:, None, None] * np.diag([0.05, diffusivity])).real.max())

    assert largest(critical * (1 - 1e-5)) < 0 < largest(critical * (1 + 1e-5))


def test_the_answer_without_thresholds() -> None:
    answer = rd.turing_threshold("u' = -u + v - Du*L@u; v' = -u - v - Dv*L@v", "Dv", {"Du": 1})
    assert len(answer) == 0
    assert "stable throughout" in str(answer)
    assert answer.regions == ((0, sp.oo, "stable"),)


def test_thresholds_on_a_directed_graph() -> None:
    ring = np.eye(8) - np.roll(np.eye(8), 1, axis=1)
    values = {"a": 0.1, "b": 0.9, "Du": 0.01}
    found = rd.turing_threshold(SCHNAKENBERG, "Dv", values, operator=ring)
    local = np.array([[0.8, 1.0], [-1.8, -1.0]])

    def largest(diffusivity: float) -> float:
        whole = np.kron(local, np.eye(8)) - np.kron(np.diag([0.01, diffusivity]), ring)
        return float(np.linalg.eigvals(whole).real.max())

    assert not found.is_complete
    assert len(found) >= 1
    for threshold in found:
        below, above = (largest(float(threshold.value) * x) > 0 for x in (1 - 1e-6, 1 + 1e-6))
        assert (below, above) == {"above": (False, True), "below": (True, False), "both": (True, True)}[
            threshold.unstable_side
        ]


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="among"):
        rd.turing_threshold(SCHNAKENBERG, "k", {"a": 1})
    with pytest.raises(InvalidArgument, match="values for all"):
        rd.turing_threshold(SCHNAKENBERG, "Dv", {"a": 1})
    with pytest.raises(InvalidArgument, match="one of"):
        rd.turing(LINEAR).holds({}, "waves")
    with pytest.raises(InvalidArgument, match="none for"):
        rd.turing(LINEAR).holds({"a": 1})
    with pytest.raises(NotApplicable, match="two fields"):
        rd.patterns.critical_ratio("u' = -u - L@u", {})


def test_answers_can_be_read_and_written() -> None:
    result = rd.turing_threshold(SCHNAKENBERG, "Du", {"a": 0.1, "b": 0.9, "Dv": 1})
    assert "Du = 1/10 (at lam = 2): turing below, stable above" in str(result)
    assert result.to_dict()["thresholds"][0]["unstable_side"] == "below"
    assert "<table>" in result._repr_html_()
    assert "Thresholds of Du" in repr(result)
    answer = rd.turing(SCHNAKENBERG)
    assert "steady state: u = a + b" in str(answer)
    assert "<table>" in answer._repr_html_()
    assert answer.to_dict()["sets"]["turing"]["outcome"] == "possible"
    ratio = rd.patterns.critical_ratio(SCHNAKENBERG, {"a": 0.1, "b": 0.9})
    assert ratio.to_dict()["activator"] == "u"
    assert "times as fast" in str(ratio)
    assert "<table>" in ratio._repr_html_()


def test_a_threshold_outside_of_algebra_says_why_it_is_undecided() -> None:
    with pytest.raises(Undecided, match=r"`turing_threshold` failed: .*polynomials"):
        rd.turing_threshold("u' = exp(a)*u - v - Du*L@u; v' = u - v - Dv*L@v", "a", {"Du": 1, "Dv": 20})


def test_names_in_errors_are_words() -> None:
    for coefficient, values in (("c", {}), ("a", {"Du": 1})):
        with pytest.raises(InvalidArgument) as problem:
            rd.turing_threshold(SCHNAKENBERG, coefficient, values)
        assert not set("[]'") & set(str(problem.value).replace(f"'{coefficient}'", ""))
