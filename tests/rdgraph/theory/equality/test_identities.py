"""Identities under assumptions and hypotheses: proofs, refusals, conditions, domains, speeds and witnesses."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import rdgraph as rd
from rdgraph.answers import Status
from rdgraph.errors import AssumptionError
from rdgraph.language.normal_form import completed
from rdgraph.language.reader import read_expression
from rdgraph.language.tree import Call, Kind, Name
from rdgraph.theory.equality import dense_oracle as dense
from rdgraph.theory.equality import exact_values
from rdgraph.theory.equality.equality_proof import CONDITIONAL, PROVED, REFUTED, RESTRICTED
from rdgraph.theory.equality.hypotheses import Hypotheses
from rdgraph.vocabulary.functions import FUNCTIONS
from tests.property_examples import examples


def verdict(first: str, second: str, *given: str, **options: Any) -> rd.theory.Equivalence:
    return rd.equivalent(first, second, given, **options)


# ---------------------------------------------------------------------- assumptions
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("relu((alpha - beta)*H) where beta <= alpha", "(alpha - beta)*relu(H) where beta <= alpha"),
        ("relu((alpha - beta)*H) where beta <= alpha", "(alpha - beta)*relu(H)"),
        ("tanh(sqrt((alpha - beta)**2)*H) where beta <= alpha", "tanh((alpha - beta)*H)"),
        ("abs(alpha - beta)*H where alpha < beta", "(beta - alpha)*H"),
        ("A@relu((alpha - beta)*H) where beta <= alpha", "(alpha - beta)*A@relu(H)"),
        ("relu(relu(H) - 1)", "relu(H - 1)"),
        ("abs(k*H) where k channel, k < 0", "-k*abs(H) where k channel, k < 0"),
    ],
)
def test_assumed_relations_are_used(first: str, second: str) -> None:
    assert verdict(first, second).outcome == PROVED


def test_without_the_relation_it_becomes_the_condition() -> None:
    answer = verdict("relu((alpha - beta)*H)", "(alpha - beta)*relu(H)")
    assert answer.conditions == (("beta <= alpha",),)
    assert answer.is_complete
    assert verdict("abs(alpha - beta)*H", "(alpha - beta)*H").conditions == (("beta <= alpha",),)
    assert verdict("abs(alpha - beta)*H", "(beta - alpha)*H").conditions == (("alpha <= beta",),)


@pytest.mark.parametrize(
    "text",
    [
        "alpha*H where alpha < beta, beta < alpha",
        "alpha*H where 1 < 0",
        "alpha*H where alpha + beta < 0",
        "alpha*H + beta*H where beta < 0, alpha <= beta",
        "k*H where k channel, k < 0, 1 < k",
    ],
)
def test_contradictory_assumptions_are_refused_where_they_are_read(text: str) -> None:
    with pytest.raises(AssumptionError, match="contradict"):
        rd.parse(text)


def test_assumptions_of_two_systems_must_agree() -> None:
    with pytest.raises(AssumptionError, match="one sign for beta"):
        verdict("beta*H where beta < 0", "beta*A@H where beta nonnegative")
    with pytest.raises(AssumptionError, match="contradict"):
        verdict("alpha*H + beta*H where beta < alpha", "alpha*H + beta*H where alpha < beta")


# ---------------------------------------------------------------------- hypotheses about coefficients
@pytest.mark.parametrize(
    ("first", "second", "given"),
    [
        ("alpha*H", "gamma*H", ("beta = alpha", "beta = gamma")),
        ("alpha*H", "beta*H", ("beta = alpha", "beta = gamma")),
        ("alpha*H", "3*H", ("alpha = beta", "beta = 3")),
        ("alpha*H + beta*H", "2*H", ("alpha = 1", "beta = alpha")),
        ("M*tanh(H)", "tanh(H)", ("M = 1",)),
        ("alpha*H", "beta*H", ("2*alpha = 2*beta",)),
        ("n*H where n node", "alpha*H", ("alpha = n",)),
        ("-alpha*L@H + beta*H", "-alpha*L@H", ("beta = 0",)),
    ],
)
def test_equations_between_coefficients_hold_together(first: str, second: str, given: tuple[str, ...]) -> None:
    assert verdict(first, second, *given).outcome == PROVED


@pytest.mark.parametrize(
    "given",
    [
        ("beta = alpha", "beta = 2*alpha"),
        ("alpha = 1", "alpha = 2"),
        ("beta = alpha", "alpha = beta + 1"),
        ("M = 2",),
        ("A@A = A", "A@A = A + I"),
        ("A = 2*A", "A@A = I"),
        ("beta = 0", "alpha*beta = 1"),
    ],
)
def test_contradictory_hypotheses_are_refused(given: tuple[str, ...]) -> None:
    with pytest.raises(AssumptionError, match="contradict"):
        verdict("alpha*H + beta*M*H", "alpha*H", *given)


def test_a_hypothesis_may_not_break_a_stated_sign() -> None:
    with pytest.raises(AssumptionError, match="contradict"):
        verdict("beta*H where beta negative", "0*H", "beta = 1")


# ---------------------------------------------------------------------- hypotheses about operators
@pytest.mark.parametrize(
    ("first", "second", "given"),
    [
        ("L@L@H", "L@H", ("L@L = L",)),
        ("A@A@H", "A@H", ("L@L = L",)),
        ("A@L@H", "0*H", ("A@L = 0*I",)),
        ("A@A@A@A@H", "A@A@H", ("A@A = A@A@A",)),
        ("A**5@tanh(H)", "A@tanh(H)", ("A@A = I",)),
        ("A@H", "0*H", ("A@A = A", "A@A = 2*A")),
        ("A@H", "H", ("2*A = A + I",)),
        ("L@H", "0*H", ("A = I",)),
        ("A@A@H", "alpha*A@H", ("A@A = alpha*A",)),
    ],
)
def test_operator_equations_are_completed(first: str, second: str, given: tuple[str, ...]) -> None:
    assert verdict(first, second, *given).outcome == PROVED


def test_what_no_graph_decides_stays_undecided() -> None:
    """A@A = A@A@A implies A@A = A for symmetrisable A, but not in the free algebra."""
    assert verdict("A@A@H", "A@H", "A@A = A@A@A").outcome == Status.UNDECIDED


def test_witnesses_meet_operator_equations() -> None:
    answer = verdict("A@H", "H", "A@A = A")
    assert answer.outcome == REFUTED
    assert answer.witness is not None
    A = read(dict(answer.witness.letters)["A"])
    np.testing.assert_allclose(A @ A, A)


def test_completion_of_words() -> None:
    one = sp.S.One
    commuting = completed([{("A", "B"): one, ("B", "A"): -one}, {("A", "A"): one, ("A",): -one}])
    assert {rule.word for rule in commuting.rules} == {("B", "A"), ("A", "A")}
    assert commuting.is_complete
    braid = completed([{("A", "B", "A"): one, ("B", "A", "B"): -one}])
    assert not braid.is_complete
    parameter = sp.Symbol("c", real=True)
    open_case = completed([{("A",): parameter, (): one}])
    assert not open_case.is_complete
    assert open_case.rules == ()


def test_words_rewrite_like_matrices() -> None:
    """Every rule holds for matrices that satisfy the relations."""
    rules = Hypotheses(("B@A = A@B", "A@A = A", "B@B = I"), (("B", "operator"),)).word_rules
    A, B = np.diag([1.0, 0.0, 1.0]), np.diag([1.0, -1.0, -1.0])
    matrices = {"A": A, "B": B}

    def product(word: tuple[str, ...]) -> np.ndarray:
        result = np.eye(3)
        for letter in word:
            result = result @ matrices[letter]
        return result

    assert rules.is_complete
    for rule in rules.rules:
        right = sum((float(c) * product(w) for w, c in rule.terms), np.zeros((3, 3)))
        np.testing.assert_allclose(product(rule.word), right)


# ---------------------------------------------------------------------- conditions
@pytest.mark.parametrize(
    ("first", "second", "conditions"),
    [
        ("alpha*abs(H)", "beta*relu(H) + beta*relu(-H)", {("alpha = beta",)}),
        ("alpha*sigmoid(2*H)", "beta*(1 + tanh(H))", {("alpha = 2*beta",)}),
        ("alpha*tanh(M*H)", "beta*M*tanh(H)", {("alpha = beta",), ("M = 0",)}),
        ("exp(M)*H", "H", {("M = 0",)}),
        ("M*(A@H)", "A@(M*H)", {("M = 0",), ("M = 1",)}),
        ("H@W", "H", {("W = I",)}),
        ("A@H@W", "-alpha*A@H", {("W = -alpha*I",)}),
        ("k*H where k channel", "alpha*H", {("k = alpha",)}),
        ("beta**2*H where beta real", "4*H", {("beta = -2",), ("beta = 2",)}),
    ],
)
def test_conditions_are_complete(first: str, second: str, conditions: set[tuple[str, ...]]) -> None:
    answer = verdict(first, second)
    assert answer.outcome == CONDITIONAL
    assert set(answer.conditions) == conditions
    assert answer.is_complete
    assert answer.witness is not None


@pytest.mark.parametrize(
    ("first", "second", "condition"),
    [
        ("tanh(alpha*H)", "tanh(beta*H)", ("alpha = beta",)),
        ("alpha*tanh(beta*H)", "gamma*tanh(delta*H)", ("alpha = gamma", "beta = delta")),
        ("H@W@W", "H", ("W = I",)),
    ],
)
def test_lists_that_may_not_be_complete_say_so(first: str, second: str, condition: tuple[str, ...]) -> None:
    answer = verdict(first, second)
    assert condition in answer.conditions
    assert not answer.is_complete
    assert "there may be other conditions" in str(answer)


def test_multiples_of_the_identity_do_not_stand_for_all_matrices() -> None:
    """Multiples of I commute, W and V need not."""
    assert verdict("H@W@V where V matrix", "H@V@W where V matrix").outcome == REFUTED


def test_conditions_that_assumptions_exclude_are_dropped() -> None:
    ordered = verdict("(alpha + beta)*H where alpha < beta", "2*beta*H")
    assert ordered.outcome == REFUTED
    assert "only at alpha = beta" in ordered.reason
    assert verdict("alpha**2*H where 3 < alpha", "4*H").outcome == REFUTED


# ---------------------------------------------------------------------- where the sides are defined
@pytest.mark.parametrize(
    ("first", "second", "domain", "truth"),
    [
        ("sqrt(H)*sqrt(H)", "H", ("H >= 0",), False),
        ("H**2/H", "H", ("H != 0",), False),
        ("sqrt(H**2)", "abs(H)", (), True),
        ("2*sqrt(H)", "sqrt(4*H)", ("H >= 0",), True),
        ("H0/H", "H0*H/H**2", ("H != 0",), True),
        ("beta*H/beta", "H", (), True),
        ("beta*H/beta where beta real", "H", ("beta != 0",), False),
        ("H/(1 + H**2)", "H/(H**2 + 1)", (), True),
        ("sqrt(H - H0)**2", "H - H0", ("H0 <= H",), False),
        ("A@(H/H)", "A@(H0/H0)", ("H != 0", "H0 != 0"), False),
    ],
)
def test_identities_say_where_they_hold(first: str, second: str, domain: tuple[str, ...], truth: bool) -> None:
    answer = verdict(first, second)
    assert answer.outcome == (PROVED if truth else RESTRICTED)
    assert answer.domain == domain
    assert bool(answer) is truth
    assert all(part in str(answer) for part in domain)


# ---------------------------------------------------------------------- speeds
@pytest.mark.parametrize(
    ("first", "second", "factor"),
    [
        ("-alpha*L@H + beta*H", "-2*alpha*L@H + 2*beta*H", "1/2"),
        ("H@W", "2*H@W", "1/2"),
        ("-alpha*L@H + alpha*beta*H", "-gamma*L@H + beta*gamma*H", "alpha/gamma"),
        ("alpha*tanh(H)", "sigmoid(2*H) - 0.5", "2*alpha"),
        ("time_factor*H where time_factor scalar", "2*time_factor*H where time_factor scalar", "1/2"),
    ],
)
def test_the_same_path_at_another_speed(first: str, second: str, factor: str) -> None:
    answer = verdict(first, second, rescale_time=True)
    assert answer
    assert answer.time_factor == factor


def test_speeds_are_positive_and_the_same_for_all_channels() -> None:
    for first, second in (("-L@H", "L@H"), ("k*H where k channel", "H"), ("beta*H where beta < 0", "H"), ("H", "H0")):
        assert verdict(first, second, rescale_time=True).outcome in (REFUTED, CONDITIONAL)
        assert not verdict(first, second, rescale_time=True)
    assert verdict("-L@H", "L@H", rescale_time=True).outcome == REFUTED
    speed = verdict("-alpha*L@H + beta*H0", "-L@H + H0", rescale_time=True)
    assert speed.outcome == CONDITIONAL
    assert speed.conditions[0] in (("alpha = beta",), ("beta = alpha",))


# ---------------------------------------------------------------------- witnesses
def read(text: str) -> np.ndarray:
    def number(e: Any) -> Any:
        return [number(x) for x in e] if isinstance(e, list) else float(e)

    return np.array(number(sp.sympify(text) if "[" in text else float(Fraction(text))), dtype=float)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("relu(H)", "H"),
        ("abs(H)", "H"),
        ("softplus(H)", "relu(H)"),
        ("sqrt(H)", "H"),
        ("1/H", "H"),
        ("tanh(H) where beta <= alpha", "tanh(2*H)"),
        ("alpha*H + beta*A@H where 10 < alpha, alpha < 11, beta <= alpha", "alpha*H + beta*H"),
        ("M*H", "H0"),
    ],
)
def test_witnesses_differ_in_floats_too(first: str, second: str) -> None:
    answer = verdict(first, second)
    assert answer.outcome == REFUTED
    assert answer.witness is not None
    values = {name: read(text) for name, text in answer.witness.letters}
    sides = [dense.evaluate(rd.parse(text).expression, values) for text in (first, second)]
    assert np.abs(sides[0] - sides[1]).max() > 1e-9
    for side, text in zip(sides, (answer.witness.left, answer.witness.right), strict=True):
        np.testing.assert_allclose(
            np.broadcast_to(side, values["H"].shape), np.broadcast_to(read(text), values["H"].shape)
        )
    if "alpha" in values:
        assert 10 < values["alpha"] < 11
        assert values["beta"] <= values["alpha"]


@settings(max_examples=examples(40))
@given(st.sampled_from(list(FUNCTIONS)), st.fractions(-3, 3, max_denominator=12))
def test_exact_values_are_those_of_the_dense_interpreter(function: str, x: Fraction) -> None:
    tree = Call(function, Name("H", Kind.FIELD))
    if function == "sqrt" and x < 0:
        with pytest.raises(exact_values.Undefined):
            exact_values.evaluate(tree, {"H": exact_values.array([[x]])})
        return
    exact = exact_values.evaluate(tree, {"H": exact_values.array([[x]])})[0, 0]
    expected = dense.evaluate(tree, {"H": np.array([[float(x)]])})[0, 0]
    assert abs(float(exact.mid() if hasattr(exact, "mid") else Fraction(int(exact.p), int(exact.q))) - expected) < 1e-12


def test_exact_values_of_operators_and_matrices() -> None:
    text = "k*(A - 2*A@A + I/2)@H@(W@W - W) + n**2*A@(H0/3) where k channel, n node"
    tree = rd.parse(text).expression
    generator = np.random.default_rng(0)
    shapes = {"A": (3, 3), "H": (3, 2), "H0": (3, 2), "W": (2, 2), "k": (2,), "n": (3, 1)}
    whole = {name: generator.integers(-4, 5, shape) for name, shape in shapes.items()}
    exact = exact_values.evaluate(tree, {n: exact_values.array(v.tolist()) for n, v in whole.items()})
    plain = dense.evaluate(tree, {n: v.astype(float) for n, v in whole.items()})
    np.testing.assert_allclose([[float(Fraction(int(x.p), int(x.q))) for x in row] for row in exact], plain)


def test_division_by_zero_is_undefined() -> None:
    tree = read_expression("H0/(H - H)")
    with pytest.raises(exact_values.Undefined):
        exact_values.evaluate(tree, {"H": exact_values.array([[1]]), "H0": exact_values.array([[1]])})
