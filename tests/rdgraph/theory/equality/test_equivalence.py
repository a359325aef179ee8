"""Equivalence: proved, conditional and refuted pairs, layers as maps, rearranged copies, each against numbers."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import rdgraph as rd
from rdgraph.errors import AssumptionError, InvalidArgument
from rdgraph.graphs.normalisation import dense_operator
from rdgraph.language.tree import Apply, Kind, Minus, Name, Negative, Plus, Times
from rdgraph.systems.system import System
from rdgraph.testing import systems
from rdgraph.theory.equality import dense_oracle as dense
from rdgraph.theory.equality.derivations import compose, iterate
from rdgraph.theory.equality.equality_proof import CONDITIONAL, PROVED, REFUTED, Equivalence
from tests.property_examples import examples
from tests.rdgraph.theory.equality.small_graph import GRAPH


# ---------------------------------------------------------------------- proved, conditional, refuted
@pytest.mark.parametrize(
    ("first", "second", "given"),
    [
        ("BS", "-alpha*L@H + beta*(L - L@L)@H", ()),
        ("BS", "(beta - alpha)*L@H - beta*L**2@H", ()),
        ("BS", "-alpha*L@H + beta*A@L@H", ()),
        ("FB", "-(alpha - beta)*L@H", ()),
        ("FB-released", "2*beta*H - (alpha + beta)*L@H", ()),
        ("AC", "-alpha*L@H + beta*(1 - H)*H*(1 + H)", ()),
        ("Z", "-alpha*L@H + beta*H**2*(1 - H)", ()),
        ("diffusion", "GRAND-l", ("alpha = 1",)),
        ("BS", "-alpha*L@L@H", ("beta = alpha",)),
        ("ST", "CGNN", ("alpha = 1", "beta = 1", "W = 0")),
        ("A@A@H", "A@H", ("A@A = A",)),
        ("SGC", "-L@H", ()),
        ("H@W@W - H@W@W", "0*H", ()),
        ("A@(H@W)", "(A@H)@W", ()),
    ],
)
def test_proved(first: str, second: str, given: tuple[str, ...]) -> None:
    answer = rd.equivalent(first, second, given)
    assert answer
    assert answer.outcome == PROVED


@pytest.mark.parametrize(
    ("first", "second", "conditions"),
    [
        ("ST", "CGNN", {("W = 0", "alpha = 1", "beta = 1")}),
        ("diffusion", "GRAND-l", {("alpha = 1",)}),
        ("BS", "-alpha*L@L@H", {("beta = alpha",), ("alpha = beta",)}),
        ("-alpha*L@H + gamma*H", "-beta*L@H + H", {("alpha = beta", "gamma = 1")}),
        ("-alpha**2*L@H", "-4*L@H", {("alpha = 2",)}),
        ("GRAND++", "GRAND-l", {("M = 0",)}),
        ("GRAND++", "-L@H + beta*H0", {("M = 1", "beta = 1")}),
    ],
)
def test_conditional(first: str, second: str, conditions: set[tuple[str, ...]]) -> None:
    answer = rd.equivalent(first, second)
    assert answer.outcome == CONDITIONAL
    assert not answer
    assert set(answer.conditions) & conditions, answer.conditions
    assert len(answer.conditions) == 1


def substituted(system: System, conditions: tuple[str, ...]) -> dict[str, str]:
    return dict(tuple(part.strip() for part in c.split("=")) for c in conditions)  # type: ignore[misc]


@pytest.mark.parametrize(
    ("first", "second"),
    [("ST", "CGNN"), ("diffusion", "GRAND-l"), ("BS", "-alpha*L@L@H"), ("FB*", "gamma*H - delta*L@H")],
)
def test_conditions_suffice(first: str, second: str) -> None:
    """What is claimed to make two systems equal does so, in numbers."""
    s, t = rd.parse(first), rd.parse(second)
    generator = np.random.default_rng(0)
    for conditions in rd.equivalent(s, t).conditions:
        base = {n: float(generator.uniform(0.5, 2)) for n in {**s.coefficients, **t.coefficients}}
        values: dict[str, Any] = {"A": dense_operator(GRAPH, "row"), "W": generator.normal(size=(2, 2)), **base}
        values |= {n: generator.normal(size=(7, 2)) for n in ("H", "H0")}
        for name, text in substituted(s, conditions).items():
            replaced = sp.sympify(text, locals={n: sp.Symbol(n) for n in base}).subs(base)
            values[name] = np.zeros((2, 2)) if name == "W" else float(replaced)
        np.testing.assert_allclose(
            dense.evaluate(s.expression, values), dense.evaluate(t.expression, values), atol=1e-12
        )


REFUTED_PAIRS = [
    ("F", "AC", ()),
    ("BS", "FB", ()),
    ("GRAND++", "-L@H + 2*H0", ()),
    ("FB-released", "FB", ()),
    ("CGNN-authors", "CGNN", ()),
    ("A@A@H", "A@H", ()),
    ("H*(A@H)", "A@(H*H)", ()),
    ("tanh(A@H)", "A@tanh(H)", ()),
    ("APPNP", "ST", ()),
    ("M*(A@H)", "2*A@(M*H) + H0", ()),
]


@cache
def refuted(index: int) -> Equivalence:
    return rd.equivalent(*REFUTED_PAIRS[index])


def read_value(text: str) -> np.ndarray:
    """Nested lists of fractions from a witness."""
    parts = text.replace("[", " [ ").replace("]", " ] ").replace(",", " ").split()

    def build(position: int) -> tuple[Any, int]:
        if parts[position] != "[":
            top, _, bottom = parts[position].partition("/")
            return float(top) / float(bottom or 1), position + 1
        items, position = [], position + 1
        while parts[position] != "]":
            item, position = build(position)
            items.append(item)
        return items, position + 1

    return np.array(build(0)[0], dtype=float)


@pytest.mark.parametrize("index", range(len(REFUTED_PAIRS)))
def test_refuted_with_a_witness_that_holds(index: int) -> None:
    first, second, _ = REFUTED_PAIRS[index]
    answer = refuted(index)
    assert answer.outcome == REFUTED
    witness = answer.witness
    assert witness is not None
    adjacency = np.zeros((witness.nodes, witness.nodes))
    for i, j in witness.edges:
        adjacency[i, j] = adjacency[j, i] = 1
    values: dict[str, Any] = {name: read_value(text) for name, text in witness.letters if name not in ("A", "L")}
    values["A"] = dense_operator(adjacency, "row")
    sides = [dense.evaluate(rd.parse(text).expression, values) for text in (first, second)]
    np.testing.assert_allclose(sides[0], read_value(witness.left), atol=1e-12)
    np.testing.assert_allclose(sides[1], read_value(witness.right), atol=1e-12)
    assert np.abs(sides[0] - sides[1]).max() > 1e-9


def test_witnesses_respect_the_signs() -> None:
    answer = rd.equivalent(rd.parse("beta*H", assume="beta<0"), rd.parse("beta*A@H", assume="beta<0"))
    assert answer.outcome == REFUTED
    assert answer.witness is not None
    assert read_value(dict(answer.witness.letters)["beta"]) < 0


def test_excluded_conditions_are_named() -> None:
    answer = rd.equivalent("-alpha*L@H + beta*H", "-alpha*L@H")
    assert answer.outcome == REFUTED
    assert "beta = 0" in answer.reason
    assert "exclude" in answer.reason
    damped = rd.parse("-alpha*L@H + beta*H", assume="beta nonnegative")
    assert rd.equivalent(damped, "-alpha*L@H").outcome == CONDITIONAL


def test_any_speed_is_allowed_with_rescale_time() -> None:
    assert not rd.equivalent("-2*L@H", "-L@H")
    for first, second in (("-2*L@H", "-L@H"), ("diffusion", "GRAND-l")):
        answer = rd.equivalent(first, second, rescale_time=True)
        assert answer.outcome == PROVED
        assert "time_factor" in str(answer)
    assert rd.equivalent("-L@H", "L@H", rescale_time=True).outcome == REFUTED
    assert rd.equivalent("F", "AC", rescale_time=True).outcome == REFUTED


def test_kinds_must_agree() -> None:
    with pytest.raises(InvalidArgument, match="one kind"):
        rd.equivalent(rd.parse("beta*H"), rd.parse("beta*H", {"beta": "channel"}))


# ---------------------------------------------------------------------- layers as maps
def test_graph_convolution_is_an_euler_step() -> None:
    assert rd.equivalent(rd.theory.euler_map(rd.parse("diffusion").replace(alpha=1), 1), "A@H")
    assert not rd.equivalent(rd.theory.euler_map(rd.parse("diffusion").replace(alpha=1), 1), "A@H@W")


def test_blur_then_sharpen_is_an_euler_step() -> None:
    blur, sharpen = rd.parse("H - L@H"), rd.parse("H + L@H")
    assert rd.equivalent(compose(sharpen, blur), rd.theory.euler_map(rd.parse("BS").replace(alpha=1, beta=1), 1))


def test_gcnii_needs_the_leak() -> None:
    layer = rd.parse("(1 - a)*A@H + a*H0")
    source = rd.theory.euler_map(rd.parse("ST"))
    appnp = rd.theory.euler_map(rd.parse("APPNP"))
    conditional = rd.equivalent(appnp, layer)
    assert conditional.outcome == CONDITIONAL
    assert rd.equivalent(appnp.replace(alpha="1 - a", beta="a", epsilon=1), layer)
    assert rd.equivalent(source, layer).outcome == REFUTED


@pytest.mark.parametrize(("name", "degree"), [("diffusion", 1), ("FB", 1), ("BS", 2)])
def test_euler_steps_are_polynomial_filters(name: str, degree: int) -> None:
    """n steps are a GPR polynomial of degree n (2n for BS), the same one that the numbers give."""
    steps = 3
    repeated = iterate(rd.theory.euler_map(rd.parse(name), sp.Rational(1, 2)), steps)
    assert max(repeated.structure.generator) == degree * steps
    A, H = dense_operator(GRAPH, "row"), np.random.default_rng(1).normal(size=(7, 2))
    values = {"alpha": 0.7, "beta": 1.1}
    state = H
    for _ in range(steps):
        state = state + 0.5 * dense.evaluate(rd.parse(name).expression, {"A": A, "H": state, **values})
    gammas = {
        k: float(c.subs({x: values[x.name] for x in c.free_symbols})) for k, c in repeated.structure.generator.items()
    }
    filtered = sum(g * np.linalg.matrix_power(A, k) @ H for k, g in gammas.items())
    np.testing.assert_allclose(filtered, state, atol=1e-12)


# ---------------------------------------------------------------------- rearranged copies
def rearranged(tree: sp.Basic, generator: np.random.Generator) -> sp.Basic:
    if isinstance(tree, Name | sp.Rational):
        if isinstance(tree, Name) and tree.name == "L":
            return Minus(Name("I", Kind.OPERATOR), Name("A", Kind.OPERATOR))
        return tree
    match tree:
        case Plus():
            return Plus(rearranged(tree.right, generator), rearranged(tree.left, generator))
        case Minus():
            return Plus(Negative(rearranged(tree.right, generator)), rearranged(tree.left, generator))
        case Apply(right=Name()) if generator.random() < 0.5:
            whole = Apply(rearranged(tree.left, generator), tree.right)
            return Minus(Times(sp.Integer(3), whole), Times(sp.Integer(2), whole))
        case Apply():
            return Apply(rearranged(tree.left, generator), rearranged(tree.right, generator))
    return tree


@settings(max_examples=examples(60))
@given(st.booleans().flatmap(lambda linear: systems(linear=linear)), st.integers(0, 2**20))
def test_rearranged_copies_are_proved_equal(system: System, seed: int) -> None:
    copy = System.of(rearranged(system.expression, np.random.default_rng(seed)), system.kinds, system.assumptions)
    assume(copy.expression != system.expression)
    assert rd.equivalent(system, copy).outcome == PROVED


@settings(max_examples=examples(40))
@given(systems(linear=True), st.sampled_from(["A@H", "H0", "L@L@H", "H*H", "tanh(H)"]))
def test_an_added_term_is_never_proved_equal(system: System, text: str) -> None:
    changed = System.of(Plus(system.expression, rd.parse(text).expression), system.kinds, system.assumptions)
    assert rd.equivalent(system, changed).outcome == REFUTED


# ---------------------------------------------------------------------- speeds and signs at their borders
def test_a_speed_that_may_vanish_is_no_speed() -> None:
    """With kappa = 0 the second system stands still."""
    one, other = "-c*L@H - beta*H**2 where kappa >= 0", "kappa*(-c*L@H - beta*H**2) where kappa >= 0"
    assert rd.equivalent(one, other, rescale_time=True).outcome != "proved"
    sure = rd.equivalent("-c*L@H - beta*H**2", "kappa*(-c*L@H - beta*H**2)", rescale_time=True)
    assert (sure.outcome, sure.time_factor) == ("proved", "1/kappa")


def test_a_declared_sign_binds_hypotheses() -> None:
    with pytest.raises(AssumptionError, match="-nu > 0"):
        rd.equivalent("-mu*L@H + nu*H0 where mu positive", "-mu*L@H where mu positive", given=["mu = -nu"])
    left_open = rd.equivalent("-mu*L@H + nu*H0", "2*(-mu*L@H + nu*H0)", given=["mu = -nu"])
    assert left_open.outcome == "refuted"
    assert rd.parse("mu*H where mu positive") == rd.parse("mu*H")


def test_one_hypothesis_may_be_a_text() -> None:
    assert rd.equivalent("-alpha*L@H + beta*H", "-alpha*L@H", given="beta = 0").value is True
