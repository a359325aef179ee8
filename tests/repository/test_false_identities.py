"""False answers that the adversary must refute: equivalences, combinations, sums, states, energies, spectra, flows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.adversary import graphs, suite
from tests.adversary.answers import (
    Classes,
    Conservation,
    Energy,
    Equivalence,
    Existence,
    Finding,
    Flow,
    Formula,
    Identifiability,
    Increase,
    Preflight,
    State,
    States,
)
from tests.adversary.energy import ALONG
from tests.adversary.outcome import Question
from tests.adversary.systems import Drawn, Field
from tests.repository.drawn_system import drawn
from tests.repository.false_answers import ALLEN_CAHN, BLUR, DIFFUSION, FISHER, SOURCE, TANH, bound, witness

EDGE = {"nodes": 2, "edges": ((0, 1),)}


@pytest.mark.parametrize(
    ("text", "other", "given", "right", "wrong"),
    [
        ("L@H", "H - A@H", (), Equivalence("proved"), None),
        ("relu(H)", "(H + abs(H))/2", (), Equivalence("proved"), None),
        ("relu(H)", "abs(H)", (), None, Equivalence("proved")),
        ("M*M*H", "M*H", (), Equivalence("proved"), None),
        ("beta*H", "alpha*H", (), Equivalence("holds if", (("alpha = beta",),)),
         Equivalence("holds if", (("alpha = 2*beta",),))),
        ("(beta - alpha)*H where beta < alpha", "0*H", (), None, Equivalence("holds if", (("alpha = beta",),))),
        ("beta*H", "2*H", ("beta = 2",), Equivalence("proved"), None),
        ("A@A@H", "A@H", ("A@A = A",), Equivalence("proved"), None),
        ("A@A@H", "A@H", (), None, Equivalence("proved")),
        ("beta*H where beta > 2", "2*H", (),
         Equivalence("refuted", letters=(("H", "[[1], [0]]"), ("beta", "3")), **EDGE),
         Equivalence("refuted", letters=(("H", "[[1], [0]]"), ("beta", "1/2")), **EDGE)),
        ("M*H", "H", (), Equivalence("refuted", letters=(("H", "[[1], [1]]"), ("M", "[[1], [0]]")), **EDGE),
         Equivalence("refuted", letters=(("H", "[[1], [1]]"), ("M", "[[2], [0]]")), **EDGE)),
        ("A@H", "H", (), Equivalence("refuted", letters=(("A", "[[0, 1], [1, 0]]"), ("H", "[[1], [0]]")), **EDGE),
         Equivalence("refuted", letters=(("A", "[[0, 1], [1, 0]]"), ("H", "[[1], [1]]")), **EDGE)),
    ],
)  # fmt: skip
def test_wrong_verdicts_witnesses_and_conditions_are_refuted(
    text: str, other: str, given: tuple[str, ...], right: Equivalence | None, wrong: Equivalence | None
) -> None:
    question = {"other": other, "given": given, "rescale_time": False}
    assert right is None or witness(text, "equivalent", right, **question) is None
    assert wrong is None or witness(text, "equivalent", wrong, **question)


def test_the_speed_may_differ_only_by_a_positive_factor() -> None:
    faster = {"other": "2*L@H", "given": (), "rescale_time": True}
    assert witness("L@H", "equivalent", Equivalence("holds if", (("time_factor = 1/2",),)), **faster) is None
    assert witness("L@H", "equivalent", Equivalence("holds if", (("time_factor = 2",),)), **faster)
    backwards = {"other": "-L@H", "given": (), "rescale_time": True}
    assert witness("L@H", "equivalent", Equivalence("proved"), **backwards)
    assert witness("L@H", "equivalent", Equivalence("proved"), **faster) is None


def test_contradicting_hypotheses_allow_a_proof_and_no_witness() -> None:
    question = {"other": "2*H", "given": ("beta = -1",), "rescale_time": False}
    told = Equivalence("refuted", letters=(("H", "[[1], [0]]"), ("beta", "-1")), **EDGE)
    stated = "beta*H where beta > 0"
    assert witness(stated, "equivalent", Equivalence("proved"), **question) is None
    assert "violates the assumptions" in str(witness(stated, "equivalent", told, **question))
    # Without the statement the hypothesis takes the place of the default sign.
    assert witness("beta*H", "equivalent", Equivalence("proved"), **question)
    assert witness("beta*H", "equivalent", told, **question) is None


EXPONENTIALS = "3*L@H + beta*(exp(beta + H) - exp(beta)*exp(H)) - c*H**2"


def test_differences_of_large_numbers_are_computed_with_more_digits() -> None:
    values = {"beta": 2.0, "c": 0.0518}
    field = Field(Drawn(EXPONENTIALS, (("beta", "scalar"), ("c", "scalar"))), graphs.cycle(4), "row", values)
    state = np.full((4, 1), 62.9)
    assert abs(field(state) + 0.0518 * 62.9**2).max() > 1e3
    assert field.precisely(state) == pytest.approx(-0.0518 * 62.9**2)
    zero = State("0", "0", (), "unstable for some lam")
    assert witness(EXPONENTIALS, "steady_states", States((zero,), True), 3, values=values) is None
    assert (
        witness(EXPONENTIALS, "steady_states", States((), True), 3, values=values) is None
    )  # touches, without crossing
    text = "-alpha*L@H - a*(exp(c + H) - exp(c)*exp(H))"
    assert (
        witness(text, "energy_law", Energy(None, None, "never increases, on every undirected regular graph"), 6) is None
    )
    assert witness(
        "alpha*L@H - exp(H)", "energy_law", Energy(None, None, "never increases, on every undirected regular graph")
    )


@pytest.mark.slow
def test_rounding_refutes_nothing() -> None:
    text = "delta*H - exp(a + H) + exp(a)*exp(H)"
    assert witness(text, "one_sided", bound("delta"), 10, normalisation="symmetric") is None
    assert witness(text, "existence", Existence("global", ""), 10) is None
    assert witness(text, "identify", Identifiability(("delta",), ("delta",), ("a",)), 5) is None


@pytest.mark.parametrize(
    ("text", "right", "wrong"),
    [
        ("-alpha*L@H + beta*L@H", (("alpha - beta",), (), ()), (("alpha", "beta"), ("alpha", "beta"), ())),
        ("-alpha*L@H + beta*L@H", (("alpha - beta",), (), ()), (("alpha + beta",), (), ())),
        (FISHER, (("alpha", "beta"), ("alpha", "beta"), ()), (("alpha", "beta"), ("alpha",), ())),
        (FISHER, (("alpha + beta", "beta"), ("alpha", "beta"), ()), (("alpha", "2*alpha"), ("alpha", "beta"), ())),
        ("alpha*H + (gamma - gamma)*H0", (("alpha",), ("alpha",), ("gamma",)), (("alpha",), ("alpha",), ("alpha",))),
        ("relu(c*H) - c*relu(H) + a*H", (("a",), ("a",), ("c",)), (("a", "c"), ("a", "c"), ())),
    ],
)
def test_wrong_combinations_are_refuted(text: str, right: Any, wrong: Any) -> None:
    assert witness(text, "identify", Identifiability(*right)) is None
    assert witness(text, "identify", Identifiability(*wrong))


def test_sums_that_drift_and_sums_that_were_missed_are_refuted() -> None:
    undirected = Conservation((("symmetric", "sqrt(d)"),))
    assert witness(DIFFUSION, "conserved", undirected) is None
    assert witness(DIFFUSION, "conserved", Conservation((("symmetric", "d"),)))
    assert witness(DIFFUSION, "conserved", Conservation((("column", "1"),)))  # an isolated node decays
    assert witness(FISHER, "conserved", undirected)
    assert witness(DIFFUSION, "conserved", Conservation(()))
    assert witness("relu(H) + relu(-H) - abs(H) + L@H", "conserved", Conservation(()))
    assert witness(FISHER, "conserved", Conservation(())) is None


ZERO, ONE = State("0", "0", (), "unstable"), State("1", "1", (), "stable")


@pytest.mark.parametrize(
    ("text", "values", "right", "wrong"),
    [
        (FISHER, None, States((ONE, ZERO), True), States((ONE,), True)),
        (FISHER, None, States((ONE,), False), States((State("1", "1", (), "unstable"),), False)),
        (FISHER, None, States((ZERO,), False), States((State("0", "0", (), "stable"),), False)),
        (FISHER, None, States((ONE,), False), States((State("1.01", "1.01"),), False)),
        ("-alpha*L@H + beta*H**2*(1 - H)", None, States((ZERO, ONE), True),
         States((State("0", "0", (), "stable"), ONE), True)),
        (TANH, {"alpha": 1.0, "beta": 0.5},
         States((State("1.9150080", "1.9150081"), State("0", "0"), State("-1.9150081", "-1.9150080")), True),
         States((State("0", "0", (), "unstable"),), True)),
        (TANH, None, States((State("0", "0", (), "stable iff 1 - beta < 0"),), False),
         States((State("0", "0", (), "stable iff 2 - beta < 0"),), False)),
        ("-alpha*L@H + relu(H) - beta*H", None, States((State("0", "0", (), "stable iff 1 - beta < 0"),), False),
         States((State("0", "0", (), "stable iff 0.5 - beta < 0"),), False)),
        ("alpha*L@H - 3*(relu(H) - relu(-H))", None, States((State("0", "0", (), "stable iff 2*alpha - 3 < 0"),), True),
         States((State("0", "0", (), "stable"),), True)),
        ("-L@H - 3*abs(H) - 2*H", {}, States((State("0", "0", (), "unstable"),), True),
         States((State("0", "0", (), "stable"),), True)),
        ("-L@H - abs(H) - 2*H", {}, States((State("0", "0", (), "stable"),), True),
         States((State("0", "0", (), "unstable"),), True)),
        ("2*L@H - relu(H) - 2*H", {}, States((State("0", "0", (), "stability undecided"),), True),
         States((State("0", "0", (), "stable"),), True)),
        ("-alpha*L@H + beta - H**2", None,
         States((State("sqrt(beta)", "sqrt(beta)", ("beta >= 0",), "stable"),), False),
         States((State("-sqrt(beta)", "-sqrt(beta)", ("beta >= 0",), "stable"),), False)),
    ],
)  # fmt: skip
def test_wrong_steady_states_are_refuted(text: str, values: Any, right: States, wrong: States) -> None:
    assert witness(text, "steady_states", right, values=values) is None
    assert witness(text, "steady_states", wrong, 8, values=values)


ROOTS = ("-beta*sqrt(-gamma)/gamma", "beta*sqrt(-gamma)/gamma")


@pytest.mark.parametrize(
    ("text", "right", "wrong"),
    [
        ("-beta**2*1/H - gamma*H where gamma real",
         States(tuple(State(r, r, ("gamma < 0",)) for r in ROOTS), True),
         States(tuple(State(r, r, (f"Ne({r}, 0)",)) for r in ROOTS[:1]), True)),
        ("-beta**2*1/H - gamma*H where gamma real",
         States(tuple(State(r, r, ("gamma < 0",)) for r in ROOTS), True),
         States(tuple(State(r, r, ("Ne(gamma, 0)",)) for r in ROOTS), True)),
        ("beta*H**2/H - gamma*H where gamma real",
         States((State("H", "H", ("Eq(beta - gamma, 0)", "Ne(H, 0)"), "", True),), True),
         States((State("0", "0"), State("H", "H", ("Eq(beta - gamma, 0)", "Ne(H, 0)"), "", True)), True)),
        ("beta*H - gamma*H**2 where gamma real",
         States((State("0", "0"), State("beta/gamma", "beta/gamma", ("Ne(gamma, 0)",))), True),
         States((State("0", "0"), State("beta/gamma", "beta/gamma")), True)),
        ("beta*H**2/(1 + H**2) where beta real",
         States((State("0", "0"), State("H", "H", ("Eq(beta, 0)",), "", True)), True),
         States((State("0", "0"),), True)),
        ("abs(H) - gamma where gamma real",
         States((State("gamma", "gamma", ("gamma >= 0",)), State("-gamma", "-gamma", ("gamma >= 0",))), True),
         States((State("gamma", "gamma", ("gamma >= 0",)),), True)),
        ("beta*sqrt(H) - gamma where gamma real",
         States((State("gamma**2/beta**2", "gamma**2/beta**2", ("gamma >= 0",)),), True),
         States((State("gamma**2/beta**2", "gamma**2/beta**2"),), True)),
    ],
)  # fmt: skip
def test_states_without_their_conditions_are_refuted(text: str, right: States, wrong: States) -> None:
    question = Question("state_conditions", "steady_states", {"values": None})
    assert not any(suite.check(drawn(text), question, right, 1, i) for i in range(3))
    assert any(suite.check(drawn(text), question, wrong, 1, i) for i in range(3))


@pytest.mark.parametrize(
    ("text", "right", "wrong"),
    [
        (DIFFUSION, Energy("-2*alpha*lam**2", None, "never increases, on every graph"),
         Energy("-2*alpha*lam", None, "")),
        (SOURCE, Energy("-2*alpha*lam**2", "2*beta*lam", ""), Energy("-2*alpha*lam**2", None, "")),
        ("alpha*L@H", Energy("2*alpha*lam**2", None, "increases on every graph with an edge"),
         Energy("2*alpha*lam**2", None, "never increases, on every graph")),
        (DIFFUSION, Energy("-2*alpha*lam**2", None, ""),
         Energy("-2*alpha*lam**2", None, "increases on every graph with an edge")),
        (DIFFUSION, Energy("-2*alpha*lam**2", None, ""), Energy("-2*alpha*lam**2", None, "increases on some graph")),
        (BLUR, Energy("2*(beta - alpha)*lam**2 - 2*beta*lam**3", None, ""),
         Energy("2*(beta - alpha)*lam**2 - 2*beta*lam**3", None, "increases on every graph with an edge")),
        (ALLEN_CAHN, Energy(None, None, "increases on some undirected regular graph"),
         Energy(None, None, "increases on every undirected regular graph with an edge")),
        ("alpha*L@H", Energy(None, None, "", None, Increase(2, (("alpha", 1.0),), (1.0, -1.0), None, 16.0)),
         Energy(None, None, "", None, Increase(2, (("alpha", 1.0),), (1.0, -1.0), None, 15.0))),
        (DIFFUSION, Energy(None, None, ""),
         Energy(None, None, "", None, Increase(2, (("alpha", -1.0),), (1.0, -1.0), None, 16.0))),
        ("-alpha*L@H + beta*(H0 - H)", Energy(None, None, f"never increases, {ALONG}, on every graph"),
         Energy(None, None, f"increases on every graph with an edge, {ALONG}")),
        (SOURCE, Energy(None, None, ""), Energy(None, None, f"never increases, {ALONG}, on every graph")),
        ("A@H@W", Energy(None, None, ""), Energy(None, None, "", is_gradient=True)),
        (TANH, Energy(None, None, "never increases, on every undirected regular graph, iff 1 - beta <= 0", "1 - beta"),
         Energy(None, None, "never increases, on every undirected regular graph, iff 1/2 - beta <= 0", "1/2 - beta")),
        (TANH, Energy(None, None, "never increases, on every undirected regular graph, if 2 - beta <= 0", "2 - beta"),
         Energy(None, None, "never increases, on every undirected regular graph")),
        ("-alpha*L@H - beta*H**3", Energy(None, None, "never increases, on every undirected regular graph"),
         Energy(None, None, "increases on some undirected regular graph, from some state, whatever the coefficients")),
        ("(beta - alpha)*L@H",
         Energy("2*(beta - alpha)*lam**2", None, "never increases, on every graph, iff a <= 0", "beta - alpha"),
         Energy("2*(beta - alpha)*lam**2", None, "never increases, on every graph, iff a <= 0", "beta - 2*alpha")),
    ],
)  # fmt: skip
def test_wrong_energy_laws_are_refuted(text: str, right: Energy, wrong: Energy) -> None:
    assert witness(text, "energy_law", right) is None
    assert witness(text, "energy_law", wrong, 8)


@pytest.mark.parametrize(
    ("text", "name", "right", "wrong", "arguments"),
    [
        (BLUR, "symbol", "lam*(beta - alpha) - beta*lam**2", "lam*(beta - alpha)", {}),
        (BLUR, "growth_rate", "Piecewise((0, alpha >= beta), ((alpha - beta)**2/(4*beta), True))", "0", {}),
        (BLUR, "fastest_frequency", "Piecewise((0, alpha >= beta), ((beta - alpha)/(2*beta), True))", "0", {}),
        (DIFFUSION, "response", "exp(-alpha*lam)", "exp(-2*alpha*lam)", {"T": 1.0, "method": "exact", "step": None}),
        (DIFFUSION, "response", "(1 - alpha*lam/2)**2", "1 - alpha*lam", {"T": 1.0, "method": "euler", "step": 0.5}),
        (SOURCE, "response",
         "Piecewise((1 + beta, Eq(lam, 0)), (exp(-alpha*lam) + beta*(1 - exp(-alpha*lam))/(alpha*lam), True))",
         "exp(-alpha*lam)", {"T": 1.0, "method": "exact", "step": None}),
    ],
)  # fmt: skip
def test_wrong_spectral_formulas_are_refuted(text: str, name: str, right: str, wrong: str, arguments: Any) -> None:
    assert witness(text, name, Formula(right), **arguments) is None
    assert witness(text, name, Formula(wrong), **arguments)


@pytest.mark.parametrize(
    "wrong",
    [
        (("True", "low-pass", None),),
        (("beta <= alpha", "low-pass", None), ("beta > alpha", "high-pass", None)),
        (("beta <= alpha", "low-pass", None), ("beta > alpha", "band-pass", "(beta - alpha)/beta")),
        (("beta < alpha/2", "low-pass", None), ("beta > alpha", "band-pass", None)),
    ],
)
def test_wrong_filter_classes_are_refuted(wrong: Any) -> None:
    right = (("beta <= alpha", "low-pass", None), ("beta > alpha", "band-pass", "(beta - alpha)/(2*beta)"))
    assert witness(BLUR, "classify", Classes(right)) is None
    assert witness(BLUR, "classify", Classes(wrong))


def test_wrong_flows_are_refuted() -> None:
    right = "h0*exp(beta*t)/(h0*exp(beta*t) - h0 + 1)"
    assert witness(FISHER, "reaction_flow", Flow((("True", right),))) is None
    assert witness(FISHER, "reaction_flow", Flow((("True", "h0*exp(beta*t)"),)))
    assert witness(FISHER, "reaction_flow", Flow((("h0 > 0", right),)))


def test_unsafe_runs_that_are_called_safe_are_refuted() -> None:
    run_of = {"normalisation": "symmetric", "T": 5.0, "method": "euler", "values": {"alpha": 1.0}}
    safe = Preflight("safe", "", (Finding("fidelity", "ok", ""),))
    assert witness(DIFFUSION, "preflight", safe, **run_of, step=0.05) is None
    assert witness(DIFFUSION, "preflight", safe, **run_of, step=2.0)
    boxed = {"normalisation": "row", "T": 5.0, "method": "euler", "values": {"alpha": 1.0, "beta": 2.0}}
    kept = Preflight("safe if", "", (Finding("step", "if", "", ("0", "1"), "1/3", "box"),))
    assert witness(FISHER, "preflight", kept, **boxed, step=0.3) is None
    assert witness(FISHER, "preflight", kept, **boxed, step=1.0)
    damped = {"normalisation": "row", "T": 5.0, "method": "euler", "values": {"alpha": 1.0, "beta": 0.5}}
    for limit, step, is_right in (("2/3", 0.6, True), ("2", 1.8, False), ("4", 3.5, False)):
        slopes = Preflight("safe", "", (Finding("step", "ok", "", None, limit, "slopes"),))
        assert (witness("-alpha*L@H + beta*tanh(H) - H", "preflight", slopes, **damped, step=step) is None) is is_right
    lives = Preflight("safe", "", (Finding("existence", "ok", "solutions exist for all time"),))
    assert witness(FISHER, "preflight", lives, **{**boxed, "method": "exact"}, step=None)
    grows = Preflight("unsafe", "", (Finding("growth", "problem", ""),))
    assert witness(DIFFUSION, "preflight", grows, **run_of, step=0.05)
