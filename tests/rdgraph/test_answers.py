"""Every question returns an `Answer`: one status, a sentence, plain values for json, a truth value for yes and no."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
import sympy as sp

import rdgraph as rd
from rdgraph.answers import Answer, AnswersByName, Status, certainty, refused, undecided
from rdgraph.reals.basis import BOUNDED

ALPHA, BETA = sp.symbols("alpha beta")
PAIR = "u' = a - u + u**2*v - Du*L@u; v' = b - u**2*v - Dv*L@v"
NUMBERS = {"a": 0.1, "b": 0.9, "Du": 0.01, "Dv": 1}

#: A question, whether it is decided, and its value.
QUESTIONS: dict[str, tuple[Any, Status, Any]] = {
    "a constant": (lambda: rd.lipschitz_global("BS"), Status.PROVED, 2 * ALPHA + 2 * BETA),
    "no constant": (lambda: rd.lipschitz_global("F"), Status.PROVED, None),
    "an upper bound": (lambda: rd.theory.lipschitz_local("-alpha*L@H + beta*(A@H)**2"), Status.BOUNDED, ...),
    "a step": (lambda: rd.step_limit("BS"), Status.PROVED, 1 / (ALPHA + BETA)),
    "a life": (lambda: rd.existence("AC"), Status.PROVED, "global"),
    "a blow-up": (lambda: rd.existence("F"), Status.PROVED, "local"),
    "an open life": (lambda: rd.existence("-alpha*L@H + beta/H"), Status.UNDECIDED, None),
    "a box": (lambda: rd.invariant_box("F", "row"), Status.PROVED, (0, 1)),
    "no box": (lambda: rd.invariant_box("BS", "row"), Status.PROVED, None),
    "a rectangle": (lambda: rd.invariant_box("u' = -u; v' = -v", "row", {"u": (0, 1)}), Status.PROVED, ...),
    "classes": (lambda: rd.classify("FB"), Status.PROVED, ...),
    "weights": (lambda: rd.theory.conserved("diffusion"), Status.PROVED, ...),
    "no weights": (lambda: rd.theory.conserved("F"), Status.PROVED, None),
    "an energy law": (lambda: rd.theory.energy_law("diffusion"), Status.PROVED, ...),
    "a flow": (lambda: rd.theory.reaction_flow("F"), Status.PROVED, ...),
    "a method": (lambda: rd.theory.choose_method("BS"), Status.PROVED, "exact"),
    "equal": (lambda: rd.equivalent("L@H", "H - A@H"), Status.PROVED, True),
    "different": (lambda: rd.equivalent("A@H", "H"), Status.PROVED, False),
    "identifiable": (lambda: rd.theory.identify("FB"), Status.PROVED, ...),
    "states": (lambda: rd.steady_states("F"), Status.PROVED, ...),
    "a dispersion": (lambda: rd.dispersion(PAIR, NUMBERS), ..., "turing"),
    "patterns": (lambda: rd.turing("F"), Status.PROVED, "impossible"),
    "a preflight": (lambda: rd.preflight("BS", T=4, values={"alpha": 1, "beta": 0.5}), ..., "safe"),
    "a claim": (lambda: rd.verify("M1.1")[0], Status.PROVED, True),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_question_returns_an_answer(name: str) -> None:
    ask, status, value = QUESTIONS[name]
    answer = ask()
    assert isinstance(answer, Answer)
    assert isinstance(answer.status, Status)
    assert status is ... or answer.status is status
    assert value is ... or answer.value == value
    for text in (str(answer), repr(answer)):
        assert f"{type(answer).__name__}(" not in text, "a person reads a sentence, not a dump of fields"
        assert text
    assert answer._repr_html_().startswith("<table>")
    plain = answer.to_dict()
    assert plain == json.loads(json.dumps(plain))
    with pytest.raises(FrozenInstanceError):
        answer.reason = "another"


def test_undecided_is_never_certain() -> None:
    assert [status.is_certain for status in Status] == [True, True, False, False, False]
    assert certainty("a theorem") is Status.PROVED
    assert certainty(f"a theorem; {BOUNDED}") is Status.BOUNDED


def test_the_sentence_has_the_answer_first() -> None:
    answer = Answer(sp.Symbol("a"), Status.PROVED, "by its slope", assumes="A is symmetric", conditions=["b > 0"])
    assert str(answer) == "a where b > 0, assuming that A is symmetric (proved: by its slope)"
    assert str(refused("no symbol")) == "not applicable: no symbol"
    assert str(undecided("undecided: time ran out")) == "undecided: time ran out"
    assert answer._repr_latex_() == "$a$"
    assert undecided("time ran out")._repr_latex_() is None


def test_only_yes_and_no_are_true_or_false() -> None:
    assert rd.existence("AC")
    assert not rd.existence("F")
    assert not rd.existence("-alpha*L@H + beta/H")
    assert not rd.equivalent("A@H", "H")
    assert not Answer(True, Status.MEASURED)
    for answer in (rd.lipschitz_global("F"), rd.step_limit("BS"), rd.invariant_box("F", "row"), undecided("time")):
        with pytest.raises(TypeError, match=r"ask for \.value"):
            bool(answer)


def test_plain_answers_are_values() -> None:
    one, other = (Answer({"row": 1}, Status.PROVED, "why") for _ in range(2))
    assert one == other
    assert hash(one) == hash(other)
    assert one != Answer({"row": 1}, Status.MEASURED, "why")


def test_answers_by_name_are_as_certain_as_the_worst() -> None:
    both = AnswersByName({"row": Answer(2, Status.PROVED, "by A"), "none": undecided("time ran out")})
    assert both.status is Status.UNDECIDED
    assert both.value == {"row": 2, "none": None}
    assert both["row"].status is Status.PROVED
    assert "time ran out" in str(both)
    assert both.to_dict()["none"]["status"] == "undecided"


def test_an_analysis_maps_questions_to_answers() -> None:
    found = rd.analyse("BS", ["row"])
    assert all(isinstance(answer, Answer) for answer in found.values())
    assert found["existence"].value == "global"
    assert found["lipschitz_global"]["row"].value == 2 * ALPHA + 2 * BETA
    assert found["filter"].status is Status.PROVED
    assert {"invariant_box", "step_limit_euler", "conserved", "energy_law", "identifiable", "method"} <= set(found)
    with pytest.raises(rd.errors.UnknownName, match="existence"):
        found["existense"]


def test_what_does_not_apply_is_refused() -> None:
    assert rd.analyse("F", ["row"])["symbol"].status is Status.REFUSED
    pair = rd.analyse("u' = -L@u + 2*v; v' = -u", ["row"])
    assert pair["energy_law"].status is Status.REFUSED
    assert pair["existence"].status is Status.PROVED
    assert "lipschitz_global" in pair
