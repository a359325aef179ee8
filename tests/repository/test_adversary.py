"""Three hundred random systems that the adversary may not refute, and false answers that it must."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.adversary import graphs, suite
from tests.adversary.answers import (
    BlowUp,
    Bound,
    Box,
    Classes,
    Conservation,
    Energy,
    Equivalence,
    Existence,
    Flow,
    Formula,
    Identifiability,
    Preflight,
    State,
    States,
    Step,
)
from tests.adversary.outcome import Question
from tests.adversary.runner import Plan, run
from tests.adversary.summary import Summary
from tests.adversary.systems import Drawn, Field
from tests.repository.drawn_system import drawn

SLICE = Plan(count=300, seed=20230723, questions=1, seconds=4.0)
#: Systems of one test: the slice is spread over processes.
SHARE = 20


# ---------------------------------------------------------------------- the slice
@pytest.mark.parametrize(
    "first", [pytest.param(k, marks=[pytest.mark.slow] if k > SHARE else []) for k in range(0, SLICE.count, SHARE)]
)
def test_no_answer_about_three_hundred_random_systems_is_refuted(first: int) -> None:
    others = frozenset(range(SLICE.count)) - frozenset(range(first, first + SHARE))
    summary = Summary.of(run(SLICE, skip=others))
    assert summary.systems == SHARE
    assert summary.decided > SHARE // 3
    assert not summary.refuted, "\n\n".join(map(str, summary.refuted))


def test_the_slice_asks_every_family() -> None:
    asked = {q.family for i in range(SLICE.count) for q in suite.planned(SLICE.seed, i, (), SLICE.questions)[1]}
    assert asked == set(suite.FAMILIES)


# ---------------------------------------------------------------------- false answers
def witness(text: str, name: str, answer: Any, tries: int = 3, **arguments: Any) -> str | None:
    """What the adversary has against an answer, over a few seeds."""
    question = Question(FAMILY_OF[name], name, arguments)
    found = (suite.check(drawn(text), question, answer, 1, i) for i in range(tries))
    return next(filter(None, found), None)


FAMILY_OF = {
    "lipschitz_global": "lipschitz", "lipschitz_local": "lipschitz", "one_sided": "lipschitz", "invariant_box": "boxes",
    "step_limit": "steps", "existence": "existence", "equivalent": "equivalence", "identify": "identifiability",
    "conserved": "conservation", "energy_law": "conservation", "response": "responses", "symbol": "responses",
    "classify": "responses", "fastest_frequency": "responses", "growth_rate": "responses", "reaction_flow": "flows",
    "preflight": "preflight", "steady_states": "states",
}  # fmt: skip
DIFFUSION = "-alpha*L@H"
FISHER = "-alpha*L@H + beta*H*(1 - H)"
ALLEN_CAHN = "-alpha*L@H + beta*H*(1 - H**2)"
BLUR = "-alpha*L@H + beta*(A@H - A@A@H)"
SOURCE = "-alpha*L@H + beta*H0"
MASKED = "-L@H + M*H**2"
TANH = "-alpha*L@H + tanh(H) - beta*H"


def bound(value: str | None, exact: bool = False) -> Bound:
    return Bound(value, exact, "")


@pytest.mark.parametrize(
    ("text", "name", "normalisation", "right", "wrong"),
    [
        (DIFFUSION, "lipschitz_global", "symmetric", bound("2*alpha", True), bound("alpha")),
        (DIFFUSION, "lipschitz_global", "symmetric", bound("5*alpha"), bound("2.5*alpha", True)),
        (DIFFUSION, "lipschitz_global", "row", bound("2*alpha", True), bound(None, True)),
        (BLUR, "lipschitz_global", "row", bound("Abs(beta - alpha) * 0 + 2*alpha + 3*beta"), bound("alpha + beta")),
        (FISHER, "lipschitz_local", "symmetric", bound("Max(2*R*beta + beta, 2*R*beta + 2*alpha - beta)", True),
         bound("beta + 2*R*beta")),
        (FISHER, "lipschitz_global", "symmetric", bound(None, True), bound("2*alpha + 3*beta")),
        (ALLEN_CAHN, "one_sided", "symmetric", bound("beta", True), bound("beta - alpha")),
        (ALLEN_CAHN, "one_sided", "column", bound("beta", True), bound("2*beta", True)),
        ("-L@H + k*tanh(H) where k node", "lipschitz_global", "symmetric", bound("2 + Abs(k)"), bound("1 + Abs(k)")),
        ("A@H@W", "lipschitz_global", "row", bound("norm_W"), bound("norm_W/2")),
        ("H*(A@H)", "lipschitz_local", "symmetric", bound("R*(1 + s)"), bound("R*s")),
    ],
)  # fmt: skip
def test_lipschitz_constants_too_small_or_not_reached_are_refuted(
    text: str, name: str, normalisation: str, right: Bound, wrong: Bound
) -> None:
    assert witness(text, name, right, normalisation=normalisation) is None
    assert witness(text, name, wrong, normalisation=normalisation)


@pytest.mark.parametrize(
    ("text", "normalisation", "right", "wrong"),
    [
        (FISHER, "row", ("0", "1"), ("0", "1/2")),
        (FISHER, "row", ("0", "2"), ("1/5", "1")),
        (FISHER, "symmetric", ("0", "(alpha*s - alpha + beta)/beta"), ("0", "1")),
        (DIFFUSION, "row", ("-R", "R"), ("R", "2*R")),
        (DIFFUSION, "row", ("-R", "R"), ("R", "-R")),
        ("-alpha*L@H + beta*(H0 - H)", "row", ("-R", "R"), ("-R/2", "-R/4")),
        (ALLEN_CAHN, "row", ("-1", "1"), ("-sqrt(-1)", "1")),
    ],
)
def test_boxes_that_are_left_are_refuted(
    text: str, normalisation: str, right: tuple[str, str], wrong: tuple[str, str]
) -> None:
    assert witness(text, "invariant_box", Box(*right, ""), normalisation=normalisation) is None
    assert witness(text, "invariant_box", Box(*wrong, ""), normalisation=normalisation)
    assert witness(text, "invariant_box", Box(*right, "", (wrong,)), normalisation=normalisation)


def test_a_box_that_is_kept_refutes_that_there_is_none() -> None:
    none = Box(None, None, "leaves every box that contains 0", left=True)
    assert witness(ALLEN_CAHN, "invariant_box", none, normalisation="row")
    assert witness("-alpha*L@H + beta*H**3", "invariant_box", none, normalisation="row") is None


@pytest.mark.parametrize(
    ("text", "normalisation", "right", "wrong"),
    [
        ("-alpha*L@H + beta*L@H", "row", Box("-R", "R", "", where="alpha >= beta"),
         Box("-R", "R", "", where="alpha < 3")),
        ("-alpha*L@H + beta*L@H", "row", Box("-R", "R", "elsewhere no box", where="alpha >= beta"),
         Box("-R", "R", "elsewhere no box", where="alpha >= 9*beta")),
        (DIFFUSION, "symmetric", Box(None, None, "", left=True, regular=("-R", "R")),
         Box(None, None, "", regular=("R", "2*R + 1/0.0001*R**2 - R**2*10000 - 2*R"))),
        (FISHER, "row", Box("0", "1", ""), Box(None, None, "", left=True, at=(("alpha", "1"), ("beta", "2")))),
        (f"{DIFFUSION} + beta*H0 where beta < 0", "row", Box(None, None, "", left=True),
         Box(None, None, "", left=True, at=(("alpha", "1"), ("beta", "2")))),
        ("-alpha*L@H + beta*(H0 - 2*H)", "row", Box("-R", "R", "", start=("-R", "R")), Box(None, None, "", left=True)),
    ],
)  # fmt: skip
def test_conditional_and_missing_boxes_are_attacked(text: str, normalisation: str, right: Box, wrong: Box) -> None:
    assert witness(text, "invariant_box", right, normalisation=normalisation) is None
    assert witness(text, "invariant_box", wrong, normalisation=normalisation)


@pytest.mark.parametrize(
    ("text", "method", "keeps", "means", "right", "wrong", "rate"),
    [
        ("-alpha*L@H - beta*sin(H)", "euler", "slopes", "at every state", "2/(2*alpha + beta)", "3/(2*alpha + beta)",
         None),
        ("-alpha*L@H - beta*H**3", "rk4", "slopes", "at every state with |h| <= R",
         "2.785/(2*alpha + 3*beta*R**2)", "2.785/(2*alpha)", None),
        ("alpha*A@tanh(H) - 3*H", "midpoint", "slopes", "at every state that is the same in all nodes",
         "2/(alpha + 3)", "2.5/(alpha + 3)", None),
        ("-3*H + H@W", "euler", "distances", "whatever its size", "1/3", "1.5", "norm_W - 3"),
        ("-3*H + k*(A@H) where k node", "euler", "distances", "whatever its size", "1/3", "1", "Abs(k) - 3"),
    ],
)  # fmt: skip
def test_limits_at_every_state_are_attacked(
    text: str, method: str, keeps: str, means: str, right: str, wrong: str, rate: str | None
) -> None:
    for value, refuted in ((right, False), (wrong, True)):
        answer = Step(value, keeps, means, rate=rate, assumes="undirected")
        assert bool(witness(text, "step_limit", answer, 6, method=method, normalisation="symmetric")) is refuted


def test_constants_that_are_infinite_in_part_are_attacked() -> None:
    text = "-L@H + beta*H**3 where beta real"
    right = bound("Piecewise((2, beta <= 0), (oo, True))")
    wrong = bound("Piecewise((oo, beta <= 0), (2, True))")
    assert witness(text, "one_sided", right, normalisation="row") is None
    assert witness(text, "one_sided", wrong, normalisation="row")


@pytest.mark.parametrize(
    ("text", "method", "normalisation", "keeps", "right", "wrong"),
    [
        (DIFFUSION, "euler", "symmetric", "stability", "1/alpha", "1.1/alpha"),
        (DIFFUSION, "euler", "symmetric", "stability", "1/alpha", "0.9/alpha"),
        (DIFFUSION, "rk4", "symmetric", "stability", "1.39264678170264/alpha", "1.5/alpha"),
        ("-alpha*L@H + beta*H where beta nonnegative, beta <= alpha", "heun", "symmetric", "stability",
         "2/(2*alpha - beta)", "oo"),
        (BLUR, "euler", "symmetric", "stability", "1/(alpha + beta)", "1/alpha"),
        (FISHER, "euler", "row", "box", "1/(alpha + beta)", "1.5/(alpha + beta)"),
        (FISHER, "euler", "row", "box", "1/(alpha + beta)", "0.8/(alpha + beta)"),
        (FISHER, "rk4", "symmetric", "linearised", "2.78529356340528/(2*alpha + beta)", "3.5/(2*alpha + beta)"),
    ],
)  # fmt: skip
def test_step_limits_too_large_or_too_small_are_refuted(
    text: str, method: str, normalisation: str, keeps: str, right: str, wrong: str
) -> None:
    means = "linear stability at the constant states 1 (regular graphs); undirected"
    box = ("0", "1") if keeps == "box" else None
    for value, refuted in ((right, False), (wrong, True)):
        answer = Step(value, keeps, means, box, sharp=keeps == "box")
        assert bool(witness(text, "step_limit", answer, method=method, normalisation=normalisation)) is refuted


def test_a_linearised_limit_names_states_that_rest() -> None:
    answer = Step("0.1/(alpha + beta)", "linearised", "linear stability at the constant states 1/2 (regular graphs)")
    assert "no constant state" in str(witness(FISHER, "step_limit", answer, method="rk4", normalisation="row"))


def test_directed_graphs_refute_a_limit_for_real_spectra() -> None:
    question = {"method": "euler", "normalisation": "row"}
    assert witness("-delta*A@H", "step_limit", Step("2/delta", "stability", "every frequency"), 8, **question)
    assert (
        witness(
            "-delta*A@H",
            "step_limit",
            Step("2/delta", "stability", "", assumes="the graph is undirected"),
            8,
            **question,
        )
        is None
    )


@pytest.mark.parametrize(
    ("text", "right", "wrong"),
    [
        (FISHER, BlowUp(-1, "h0 < 0", "log(1 - 1/h0)/beta"), BlowUp(-1, "h0 < 0", "log(1 - 1/h0)/(2*beta)")),
        (FISHER, BlowUp(-1, "h0 < 0", None), BlowUp(-1, "h0 < 1", None)),
        (FISHER, BlowUp(-1, None, None), BlowUp(-1, "h0 < -3", None)),
        (FISHER, BlowUp(-1, None, None), BlowUp(1, None, None)),
        ("beta*H**3", BlowUp(1, "h0 > 0", "1/(2*beta*h0**2)"), BlowUp(-1, "h0 > 0", "1/(2*beta*h0**2)")),
        ("beta*(H**2 - beta)", BlowUp(1, "h0 > sqrt(beta)", None), BlowUp(1, "h0 > -sqrt(beta)", None)),
    ],
)
def test_blow_ups_from_the_wrong_states_or_at_the_wrong_time_are_refuted(
    text: str, right: BlowUp, wrong: BlowUp
) -> None:
    assert witness(text, "existence", Existence("local", "", (right,))) is None
    assert witness(text, "existence", Existence("local", "", (wrong,)))


@pytest.mark.slow
def test_a_blow_up_that_depends_on_a_sign_must_happen_for_one() -> None:
    for text, way, happens in (("(beta - 3)*H**3", 1, True), ("(beta - 3)*H**3 where beta < 3", 1, False),
                               ("k**2*H**2 where k real", 1, True), ("k**2*H**2 where k real", -1, False)):  # fmt: skip
        told = Existence("local", "depending on the sign", (BlowUp(way, None, None),))
        assert (witness(text, "existence", told, 1) is None) is happens, (text, way)


def test_solutions_that_blow_up_refute_global_existence() -> None:
    lives = Existence("global", "")
    assert witness(FISHER, "existence", lives)
    assert witness(MASKED, "existence", lives)
    assert witness(ALLEN_CAHN, "existence", lives) is None
    assert witness("2*H", "existence", lives) is None


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
    assert witness(text, "energy_law", Energy(None, None, "never increases, on undirected regular graphs"), 6) is None
    assert witness(
        "alpha*L@H - exp(H)", "energy_law", Energy(None, None, "never increases, on undirected regular graphs")
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


@pytest.mark.parametrize(
    ("text", "right", "wrong"),
    [
        (DIFFUSION, Energy("-2*alpha*lam**2", None, "never increases, on every graph"),
         Energy("-2*alpha*lam", None, "")),
        (SOURCE, Energy("-2*alpha*lam**2", "2*beta*lam", ""), Energy("-2*alpha*lam**2", None, "")),
        ("alpha*L@H", Energy("2*alpha*lam**2", None, "increases for some states"),
         Energy("2*alpha*lam**2", None, "never increases, on every graph")),
        (DIFFUSION, Energy("-2*alpha*lam**2", None, ""), Energy("-2*alpha*lam**2", None, "increases for some states")),
        (TANH, Energy(None, None, "on undirected regular graphs never increases iff 1 - beta <= 0"),
         Energy(None, None, "on undirected regular graphs never increases iff 0.5 - beta <= 0")),
        (TANH, Energy(None, None, "on undirected regular graphs never increases where 2 - beta <= 0"),
         Energy(None, None, "never increases, on undirected regular graphs")),
        ("-alpha*L@H - beta*H**3", Energy(None, None, "never increases, on undirected regular graphs"),
         Energy(None, None, "increases for some states, whatever the coefficients, on undirected regular graphs")),
        ("(beta - alpha)*L@H", Energy("2*(beta - alpha)*lam**2", None, "never increases iff beta - alpha <= 0"),
         Energy("2*(beta - alpha)*lam**2", None, "never increases iff beta - 2*alpha <= 0")),
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
    run_of = {"normalisation": "symmetric", "T": 5.0, "method": "euler", "coefficients": {"alpha": 1.0}}
    safe = Preflight("safe", "", (("fidelity", "ok", ""),))
    assert witness(DIFFUSION, "preflight", safe, **run_of, step=0.05) is None
    assert witness(DIFFUSION, "preflight", safe, **run_of, step=2.0)
    boxed = {"normalisation": "row", "T": 5.0, "method": "euler", "coefficients": {"alpha": 1.0, "beta": 2.0}}
    kept = Preflight("safe if", "", (("step", "if", "H0 lies in [0, 1] and step 0.3 <= 1/3"),))
    assert witness(FISHER, "preflight", kept, **boxed, step=0.3) is None
    assert witness(FISHER, "preflight", kept, **boxed, step=1.0)
    lives = Preflight("safe", "", (("existence", "ok", "solutions exist for all time"),))
    assert witness(FISHER, "preflight", lives, **{**boxed, "method": "exact"}, step=None)
    grows = Preflight("unsafe", "", (("growth", "problem", ""),))
    assert witness(DIFFUSION, "preflight", grows, **run_of, step=0.05)
