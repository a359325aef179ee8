"""Existence: conditions and times of blow-up, what is proved global, what is undecided, and the reasons."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import sympy as sp

import rdgraph as rd
from rdgraph.errors import Undecided
from rdgraph.language.answer_symbols import h
from rdgraph.reals.domain import Domain
from rdgraph.theory.blowup import fate
from rdgraph.theory.global_existence import Existence, existence_by_growth
from tests.rdgraph.theory.existence_answers import applies, existence, texts


# ---------------------------------------------------------------------- answers that were wrong or missing
@pytest.mark.slow
def test_zeros_that_are_real_for_some_coefficients_only() -> None:
    answer = existence("H**3 - gamma*H**2 + delta*H")
    inside = {"gamma": 3.0, "delta": 2.0}
    assert [any(applies(u, {**inside, "h0": x}) for u in answer.blow_ups) for x in (0.5, 1.5, 2.5, -0.5)] == [
        False, False, True, True,
    ]  # fmt: skip
    assert any(applies(u, {"gamma": 1.0, "delta": 1.0, "h0": 0.5}) for u in answer.blow_ups)


def test_signs_of_coefficients_enter_the_condition() -> None:
    assert texts(existence("beta*H**2 where beta nonnegative")) == [
        "from beta > 0 and h0 > 0: blows up at t = 1/(beta*h0)"
    ]
    answer = existence("beta*H**3 - gamma*H where beta real")
    assert [u.condition for u in answer.blow_ups] == [
        sp.And(sp.Symbol("beta") > 0, sp.Symbol("h0") > sp.sqrt(sp.Symbol("gamma") / sp.Symbol("beta"))),
        sp.And(sp.Symbol("beta") > 0, sp.Symbol("h0") < -sp.sqrt(sp.Symbol("gamma") / sp.Symbol("beta"))),
    ]


def test_masks_are_zero_or_one() -> None:
    assert existence("-alpha*L@H + M*H**3 - H**3").outcome == "global"
    answer = existence("-alpha*L@H + M*H**2 - beta*H")
    assert texts(answer) == ["from M = 1 and h0 > beta: blows up at t = log(h0/(-beta + h0))/beta"]
    assert "M equal in all nodes" in answer.reason


def test_a_blow_up_has_its_assumptions() -> None:
    answer = existence("-alpha*L@H + k*H**2 - H where k node")
    assert answer.outcome == "local"
    assert "k equal in all nodes" in answer.reason
    assert "no node is isolated" in answer.reason
    assert "W the identity" in existence("-L@H + H@W + H**2").reason
    assert "isolated node" in existence("L@(H**2)").reason
    assert existence("H**2").reason.startswith("in every entry")


STATUS = {
    "beta*(H-1)*(H-a)*H where a<=1": "local", "-alpha*L@H - exp(-H)": "local", "exp(H) - H**2": "local",
    "-alpha*L@H + sqrt(1 + H**2)": "global", "-L@H + H*sqrt(1 + H**2)": "local", "-L@H + softplus(H)**2": "local",
    "-L@H - relu(H)**2 + relu(-H)**2": "global", "-L@H + relu(-H)**2": "global", "-L@H - relu(-H)**2": "local",
    "-H**3 + A@(H**2)": "global", "-H**3 + H*(A@H)": "global", "H**3 + A@(H**2)": "local", "H*(A@H)": "local",
    "-M*H**3 + A@(H**2)": "local", "H*(A@H)/(1 + H**2)": "global", "(A@H)**2/(1 + (A@H)**2)": "global",
    "H@W - H**3": "global", "k*H - H**3 where k node, k real": "global", "(A@H0)*H - H0**2*H**3": "global",
    "(A@H0)*H**3": "local", "-L@H + sqrt(abs(H))": "global", "-L@H + H*sqrt(abs(H))": "undecided",
    "-L@H + sqrt(H)": "undecided", "H/M": "undecided", "-alpha*L@H + H**2*sin(H)": "undecided",
    "(alpha - beta)*H**3 where alpha <= beta": "global", "(alpha - beta)*H**3": "local", "exp(tanh(A@H))": "global",
    "H**2*sigmoid(-H)": "global", "exp(A@H)": "local", "-exp(H) + exp(-H)": "global", "-L@(H**3)": "undecided",
}  # fmt: skip


@pytest.mark.parametrize("text", STATUS)
def test_status(text: str) -> None:
    answer = existence(text)
    assert answer.outcome == STATUS[text], answer.reason
    assert bool(answer.blow_ups) == (answer.outcome == "local")


def test_a_field_without_lipschitz_constant_says_so() -> None:
    assert "unique" in existence("-L@H + sqrt(abs(H))").reason


def test_an_answer_that_takes_too_long_is_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(*_: Any) -> None:
        raise Undecided("time ran out after 10 s")

    module = sys.modules["rdgraph.theory.global_existence"]
    monkeypatch.setattr(module, "_energy_estimate", endless)
    monkeypatch.setattr(module, "fate", endless)
    assert existence("-L@H + 17*H**2") == Existence(None, "time ran out after 10 s")
    monkeypatch.undo()
    assert existence("-L@H + 17*H**2").outcome == "local"  # what ran out of time is not remembered


# ---------------------------------------------------------------------- examples, reasons, bounds of growth
def test_an_equation_that_depends_on_its_start_shows_an_example() -> None:
    answer = fate(h**5 - h * sp.Symbol("h0", real=True) ** 2 - 1, Domain())
    assert {u.way for u in answer.blow_ups} == {1, -1}


def test_what_rests_on_interval_arithmetic_says_so() -> None:
    reason = "bounded by interval arithmetic"
    assert reason in rd.existence(rd.parse("exp(0.3)*H**2 - H")).reason
    assert reason not in rd.existence(rd.parse("2*H**2 - H")).reason


def test_an_example_is_called_one() -> None:
    (answer,) = rd.existence(rd.parse("-1.5*L@H - alpha*(H0 - H) + c*(1 - H)**2*H where c <= alpha")).blow_ups[:1]
    assert answer.example
    assert str(answer).startswith("for example from alpha = 1")
    assert not any(b.example for b in rd.existence(rd.parse("F")).blow_ups)


@pytest.mark.parametrize("gate", ["sigmoid(L@H)", "softplus(L@H)"])
def test_functions_of_numbers_alone_do_not_hide_a_blow_up(gate: str) -> None:
    """On constant states L@H = 0, and the rate has sigmoid(0), which is no number to floating-point code."""
    answer = rd.existence(rd.parse(f"alpha*{gate}*H + beta*H**2"))
    assert answer.outcome == "local"
    assert answer.blow_ups[0].time is not None


@pytest.mark.parametrize(
    ("text", "expected"), [("AC", "global"), ("-alpha*L@H + beta*tanh(H)", "global"), ("BS", "global")]
)
def test_bounds_of_growth_alone_prove_what_existence_does(text: str, expected: str) -> None:
    answer = existence_by_growth(rd.parse(text))
    assert answer is not None
    assert (answer.outcome, answer.reason) == (expected, rd.existence(rd.parse(text)).reason)


@pytest.mark.parametrize("text", ["F", "beta*H**2", "exp(H)", "sqrt(H)"])
def test_bounds_of_growth_say_nothing_where_they_prove_nothing(text: str) -> None:
    assert existence_by_growth(rd.parse(text)) is None
