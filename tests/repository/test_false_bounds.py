"""False answers that the adversary must refute: Lipschitz constants, boxes, step limits, blow-ups."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from tests.adversary.answers import BlowUp, Bound, Box, Existence, Step
from tests.adversary.integration import journey
from tests.repository.false_answers import ALLEN_CAHN, BLUR, DIFFUSION, FISHER, MASKED, bound, witness


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
        (f"{DIFFUSION} + (beta - beta)*H0", "symmetric", Box(None, None, "", left=True, regular=("-R", "R")),
         Box("-R", "R", "")),
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
        ("alpha*A@tanh(H) - 3*H", "midpoint", "equal slopes", "at every state that is the same in all nodes",
         "2/(alpha + 3)", "2.5/(alpha + 3)", None),
        ("-H - H*(L@H)", "euler", "equal slopes", "where all nodes are equal", "2/(1 + 2*R)", "2/(1 + R)", None),
        ("-H - H*(L@H)", "euler", "slopes", "at every state", "2/(1 + 4*R)", "2/(1 + 2*R)", None),
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


#: From far below h' = softplus(h)^2 is as small as e^(2h): blow-up comes after times that nothing integrates to.
LATE = "-delta*L@H + 3*softplus(H)**2 where delta < 1"


def test_a_blow_up_after_a_time_beyond_integration_holds() -> None:
    upward, downward = (Existence("local", "", (BlowUp(way, "True", None),)) for way in (1, -1))
    assert witness(LATE, "existence", upward, 12) is None
    assert "nothing passes" in (witness(LATE, "existence", downward) or "")


@pytest.mark.parametrize(
    ("text", "way", "words"),
    [
        ("3*softplus(-H)**2", 1, "nothing passes"), ("H + 2", 1, "no faster"), ("sqrt(abs(H)) + 1", 1, "no faster"),
        ("softplus(H)**2*((H - 200)**2 - 0.01)", 1, "nothing passes"), ("relu(H - 60)**2", 1, "nothing passes"),
    ],
)  # fmt: skip
def test_a_blow_up_that_never_comes_is_refuted(text: str, way: int, words: str) -> None:
    assert words in (witness(text, "existence", Existence("local", "", (BlowUp(way, "True", None),))) or "")


@pytest.mark.parametrize("start", [-21.5, -3.0, 0.0, 5.0])
def test_the_quadrature_of_a_blow_up_gives_its_time(start: float) -> None:
    seen = journey(lambda h: 3 * np.logaddexp(0, h) ** 2, start, 1)
    assert seen is not None
    assert seen.blows_up
    with mpmath.workdps(30):
        places = [start, *(h for h in (-15, -10, -5, 0, 5, 50) if h > start), mpmath.inf]
        exact = float(mpmath.quad(lambda h: 1 / (3 * mpmath.log(1 + mpmath.exp(h)) ** 2), places))
    assert seen.time == pytest.approx(exact, rel=1e-5)
    assert seen.is_followed is (exact < 1e4)


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
