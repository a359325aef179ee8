"""The parts of several equations: their sum is the normal form, and they are what independent computations give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import rdgraph as rd
from rdgraph.errors import NotApplicable
from rdgraph.graphs.normalisation import dense_operator
from rdgraph.language.answer_symbols import lam
from rdgraph.language.normal_form import Act, State
from rdgraph.language.reader import start_of
from rdgraph.language.tree import Kind
from rdgraph.systems.coupling import Coupling
from rdgraph.systems.system import System
from rdgraph.testing import adjacency, field_systems
from rdgraph.theory.equality.dense_oracle import evaluate
from tests.normal_values import CHANNELS, Evaluator, example
from tests.property_examples import examples

LARGEST = 1e4
NORMALISATIONS = st.sampled_from(["symmetric", "row", "column", "none"])
ANY = st.sampled_from([None, True, False]).flatmap(lambda linear: field_systems(linear=linear))


def values_of(system: System, operator: np.ndarray, seed: int) -> dict[str, Any]:
    """A value for every name with the assumed sign; M is a mask, B a further operator."""
    generator, nodes = np.random.default_rng(seed), len(operator)
    values: dict[str, Any] = {"A": operator, "t": 0.7, "W": generator.uniform(-1, 1, (CHANNELS, CHANNELS))}
    values["M"] = generator.integers(0, 2, (nodes, 1)).astype(float)
    for state in system.fields:
        for letter in (state, start_of(state)):
            values[letter] = generator.uniform(-1.2, 1.2, (nodes, CHANNELS))
    for letter in system.operators.names:
        values[letter] = generator.uniform(-1, 1, (nodes, nodes))
    for name, kind in system.coefficients.items():
        if name not in values:
            values[name] = example(kind, system.assumptions.sign(name), nodes, generator)
    return values


def dense_flow(system: System, values: dict[str, Any]) -> dict[str, np.ndarray]:
    shape = values[system.fields[0]].shape
    with np.errstate(all="ignore"):
        return {state: np.broadcast_to(evaluate(tree, values), shape) for state, tree in system.flow.items()}


def total(coupling: Coupling, i: str) -> sp.Expr:
    """The parts of one equation added up."""
    parts = [coupling.constant[i], coupling.reaction[i], coupling.coupled[i]]
    for terms, name in ((coupling.linear, str), (coupling.source, start_of)):
        for (row, j), words in terms.items():
            for word, coefficient in words.items() if row == i else ():
                state = State(name(j))
                parts.append(coefficient * (Act(map(sp.Symbol, word), state) if word else state))
    return sp.Add(*parts)


# ---------------------------------------------------------------------- normal forms
@settings(max_examples=examples(100), deadline=None)
@given(ANY, adjacency(max_nodes=5), NORMALISATIONS, st.integers(0, 2**20))
def test_normal_forms_have_the_values_of_the_trees(
    system: System, graph: np.ndarray, normalisation: str, seed: int
) -> None:
    values = values_of(system, dense_operator(graph, normalisation), seed)
    expected = dense_flow(system, values)
    assume(all(np.isfinite(x).all() and np.abs(x).max() < LARGEST for x in expected.values()))
    try:
        normals = system.normals
    except NotApplicable:
        assume(False)
    assert list(normals) == list(system.fields)
    for state, normal in normals.items():
        evaluator = Evaluator(values, expected[state].shape)
        with np.errstate(all="ignore"):
            got = evaluator(normal)
        assume(evaluator.largest < LARGEST)
        np.testing.assert_allclose(got, expected[state], rtol=0, atol=1e-9 * evaluator.largest**1.5)


# ---------------------------------------------------------------------- the parts
@settings(max_examples=examples(100), deadline=None)
@given(ANY)
def test_the_parts_add_up_to_the_normal_form(system: System) -> None:
    try:
        coupling = system.coupling
    except NotApplicable:
        assume(False)
    assert coupling.fields == system.fields
    for state, normal in system.normals.items():
        assert sp.expand(total(coupling, state) - normal) == 0


@settings(max_examples=examples(100), deadline=None)
@given(ANY)
def test_every_part_is_of_its_sort(system: System) -> None:
    try:
        coupling = system.coupling
    except NotApplicable:
        assume(False)
    kinds = system.algebra.kinds
    for words in (*coupling.linear.values(), *coupling.source.values()):
        for word, coefficient in words.items():
            assert set(word) <= {"A", *system.operators.names}
            assert coefficient != 0
            assert {kinds[s.name] for s in coefficient.free_symbols} <= {Kind.SCALAR, Kind.CHANNEL}
    states = {State(name) for name in system.fields}
    for i in system.fields:
        assert not coupling.constant[i].has(State, Act)
        reaction = coupling.reaction[i]
        assert not reaction.has(Act)
        assert {s for s in reaction.free_symbols if isinstance(s, State)} <= states
        for term in sp.Add.make_args(reaction):
            assert term == 0 or term.has(*states)
    silent = not any(x != 0 for part in (coupling.reaction, coupling.coupled, coupling.constant) for x in part.values())
    assert silent == (not coupling.obstacles)


@settings(max_examples=examples(60), deadline=None)
@given(field_systems(linear=True), adjacency(max_nodes=5), st.integers(0, 2**20))
def test_linear_systems_are_their_differences(system: System, graph: np.ndarray, seed: int) -> None:
    """f(x + y) - f(x) = f(y) - f(0) in numbers, and the linear part alone gives that difference."""
    assert system.coupling.is_linear
    values = values_of(system, dense_operator(graph, "row"), seed)
    shape = values[system.fields[0]].shape
    other = {state: np.random.default_rng(seed + 1).uniform(-1, 1, shape) for state in system.fields}
    at = dense_flow(system, values)
    moved = dense_flow(system, values | {state: values[state] + other[state] for state in system.fields})
    for i in system.fields:
        expected = moved[i] - at[i]
        got = np.zeros(shape)
        for (row, j), words in system.coupling.linear.items():
            for word, coefficient in words.items() if row == i else ():
                image = other[j]
                for letter in reversed(word):
                    image = values[letter] @ image
                got = got + Evaluator(values, shape)(coefficient) * image
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-6 * max(1, np.abs(expected).max()))


@settings(max_examples=examples(60), deadline=None)
@given(field_systems(linear=False))
def test_reactions_make_a_system_nonlinear(system: System) -> None:
    """Independent: linear is what has no second derivatives, where images under operators count as variables."""
    try:
        normals, coupling = system.normals, system.coupling
    except NotApplicable:
        assume(False)
    found = False
    for normal in normals.values():
        images = {x: sp.Dummy() for x in normal.atoms(Act)}
        flat = normal.xreplace(images)
        letters = [*(State(name) for name in system.fields), *(images[x] for x in images if _moves(x, system))]
        found |= any(sp.expand(sp.diff(flat, a, b)) != 0 for a in letters for b in letters)
        found |= any(not _is_plain(x.inner) for x in images if _moves(x, system))
    assert coupling.is_linear != found


def _moves(image: sp.Expr, system: System) -> bool:
    return image.has(*(State(name) for name in system.fields))


def _is_plain(inner: sp.Expr) -> bool:
    return isinstance(inner, State)


# ---------------------------------------------------------------------- the matrix symbol
@settings(max_examples=examples(60), deadline=None)
@given(
    field_systems(linear=True, kinds=("scalar",)),
    adjacency(min_nodes=2, max_nodes=6),
    st.sampled_from(["symmetric", "row"]),
    st.integers(0, 2**20),
)
def test_on_an_eigenvector_the_jacobian_is_the_symbol(
    system: System, graph: np.ndarray, normalisation: str, seed: int
) -> None:
    """The Jacobian by unit states in numbers, applied to v (x) e_j, is P(lam) e_j on v."""
    assume(system.is_autonomous and not system.operators.names)
    operator = dense_operator(graph, normalisation)
    values = values_of(system, operator, seed)
    P = system.generator_matrix
    symbols = {s: float(values[s.name]) for s in P.free_symbols if s != lam}
    eigenvalues, vectors = np.linalg.eig(np.eye(len(operator)) - operator)
    zero = values | {name: np.zeros_like(values[name]) for name in system.fields}
    still = dense_flow(system, zero)
    for value, vector in zip(eigenvalues, vectors.T, strict=True):
        assume(abs(value.imag) < 1e-9)
        mode = np.real(vector)[:, None] * np.ones((1, CHANNELS))
        for column, j in enumerate(system.fields):
            moved = dense_flow(system, zero | {j: mode})
            for row, i in enumerate(system.fields):
                entry = complex(P[row, column].subs(symbols).subs(lam, value.real)).real
                expected = moved[i] - still[i]
                np.testing.assert_allclose(expected, entry * mode, rtol=0, atol=1e-6 * max(1, abs(entry)))


def test_symbols_by_hand() -> None:
    alpha, gamma, lam = sp.symbols("alpha gamma lam")
    assert rd.parse("H'' = -gamma*H - alpha*H' + A@H").symbol() == sp.Matrix([[0, 1], [1 - gamma - lam, -alpha]])
    assert rd.parse("u' = L@L@v + u; v' = 0*u").symbol() == sp.Matrix([[1, lam**2], [0, 0]])
    assert rd.parse("u' = -L@u + 3; v' = u0").symbol() == sp.Matrix([[-lam, 0], [0, 0]])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("u' = u*v; v' = u", r"the reaction u\*v is nonlinear"),
        ("u' = M*u; v' = u", "the node coefficient in M\\*u does not commute with A"),
        ("u' = u@W; v' = u", "mixes channels"),
        ("u' = u*(A@v); v' = u", "is nonlinear and couples nodes"),
        ("u' = A@(u*v); v' = u", "is nonlinear and couples nodes"),
        ("u' = -u; v' = B@u where B signed", "the operator B"),
    ],
)
def test_what_has_no_symbol_says_why(text: str, reason: str) -> None:
    system = rd.parse(text)
    for ask in (System.symbol, lambda s: s.generator_matrix, rd.theory.symbol):
        with pytest.raises(NotApplicable, match=reason):
            ask(system)


def test_parts_by_hand() -> None:
    system = rd.parse("u' = a + 2*L@u - u**2*v + k*A@v0 + M*v + A@(u*v); v' = u@W + B@A@u where k channel, B signed")
    u, v = State("u"), State("v")
    a, k, M = (system.algebra.symbols[name] for name in ("a", "k", "M"))
    coupling = system.coupling
    assert coupling.linear == {("u", "u"): {(): 2, ("A",): -2}, ("v", "u"): {("B", "A"): 1}}
    assert coupling.source == {("u", "v"): {("A",): k}}
    assert coupling.constant == {"u": a, "v": 0}
    assert coupling.reaction == {"u": -(u**2) * v, "v": 0}
    assert coupling.coupled["u"] == M * v + Act((sp.Symbol("A"),), u * v)
    assert str(coupling.coupled["v"]) == "(u)@W"
    assert not coupling.is_linear
    assert len(coupling.obstacles) == 5
