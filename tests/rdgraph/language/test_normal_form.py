"""Normal forms against the dense interpreter, under rewriting, and permutation of the nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import sympy as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import rdgraph as rd
from rdgraph.errors import NotApplicable
from rdgraph.graphs.normalisation import dense_operator
from rdgraph.language.normal_form import Act, H, Mix
from rdgraph.language.reader import STRUCTURAL
from rdgraph.language.tree import (
    Apply,
    Call,
    Kind,
    Minus,
    Name,
    Negative,
    Over,
    Plus,
    Power,
    Times,
    TypeMismatch,
    kind_of,
    names_in,
)
from rdgraph.systems.canonical.function_identities import is_zero
from rdgraph.systems.catalogue import catalogue
from rdgraph.systems.system import System
from rdgraph.testing import adjacency, expressions, systems
from rdgraph.theory.equality import dense_oracle as dense
from tests.normal_values import CHANNELS, Evaluator, example
from tests.property_examples import examples

LARGEST = 1e4


def values_for(system: System, operator: np.ndarray, seed: int) -> dict[str, Any]:
    """Every letter with a value that respects the assumed signs; M is a 0/1 mask."""
    generator, nodes = np.random.default_rng(seed), len(operator)
    values: dict[str, Any] = {"A": operator, "L": np.eye(nodes) - operator}
    for name in ("H", "H0"):
        values[name] = generator.uniform(-1.2, 1.2, (nodes, CHANNELS))
    values["W"] = generator.uniform(-1, 1, (CHANNELS, CHANNELS))
    values["M"] = generator.integers(0, 2, (nodes, 1)).astype(float)
    for name, kind in system.coefficients.items():
        values[name] = example(kind, system.assumptions.sign(name), nodes, generator)
    return values


def dense_value(system: System, values: Mapping[str, Any]) -> np.ndarray | None:
    with np.errstate(all="ignore"):
        result = dense.evaluate(system.expression, {k: v for k, v in values.items() if k != "L"})
    result = np.broadcast_to(result, values["H"].shape)
    return result if np.isfinite(result).all() and np.abs(result).max() < LARGEST else None


def check_normal_form(system: System, operator: np.ndarray, seed: int) -> bool:
    """Compare both values; False where there is none, or none of moderate size."""
    values = values_for(system, operator, seed)
    expected = dense_value(system, values)
    if expected is None:
        return False
    try:
        normal = system.normal
    except NotApplicable:
        return False
    evaluator = Evaluator(values, values["H"].shape)
    with np.errstate(all="ignore"):
        got = evaluator(normal)
    if not evaluator.largest < LARGEST:
        return False
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-9 * evaluator.largest**1.5)
    return True


@pytest.mark.slow
@settings(max_examples=examples(600))
@given(
    systems(), adjacency(max_nodes=5), st.sampled_from(["symmetric", "row", "column", "none"]), st.integers(0, 2**20)
)
def test_normal_form_has_the_value_of_the_tree(
    system: System, graph: np.ndarray, normalisation: str, seed: int
) -> None:
    assume(check_normal_form(system, dense_operator(graph, normalisation), seed))


@settings(max_examples=examples(80))
@given(
    st.booleans().flatmap(lambda linear: systems(linear=linear)),
    adjacency(max_nodes=5),
    st.integers(0, 2**20),
)
def test_normal_form_of_reaction_diffusion_systems(system: System, graph: np.ndarray, seed: int) -> None:
    assume(check_normal_form(system, dense_operator(graph, "row"), seed))


@pytest.mark.parametrize("name", list(catalogue.single))
@pytest.mark.parametrize("normalisation", ["symmetric", "row", "column", "none"])
def test_normal_form_of_the_catalogue(name: str, normalisation: str) -> None:
    graph = np.array([[0, 1, 1, 0], [1, 0, 1, 0], [1, 1, 0, 1], [0, 0, 1, 0]], dtype=float)
    for seed in range(5):
        assert check_normal_form(catalogue[name], dense_operator(graph, normalisation), seed)


A = sp.Symbol("A")
W = sp.Symbol("W")
K = sp.Symbol("k", positive=True)


@pytest.mark.parametrize(
    ("text", "declared", "expected"),
    [
        ("L@H", {}, H - Act((A,), H)),
        ("A@H - A@A@H", {}, Act((A,), H) - Act((A, A), H)),
        ("(I + L)@(I - L)@H", {}, 2 * Act((A,), H) - Act((A, A), H)),
        ("k*A@H", {"k": "channel"}, K * Act((A,), H)),
        ("A@(k*H)", {"k": "channel"}, K * Act((A,), H)),
        ("A@(k*H)", {"k": "node"}, Act((A,), K * H)),
        ("k*A@H", {"k": "node"}, K * Act((A,), H)),
        ("A@H@W", {}, Mix((W,), Act((A,), H))),
        ("(A@H)@W - A@(H@W)", {}, sp.S.Zero),
        ("M*M*H", {}, H * sp.Symbol("M", real=True)),
        ("H*H0 - H0*H", {}, sp.S.Zero),
        ("A@(H*H) - (A@H)*(A@H)", {}, Act((A,), H**2) - Act((A,), H) ** 2),
    ],
)
def test_known_normal_forms(text: str, declared: dict[str, str], expected: sp.Expr) -> None:
    assert rd.parse(text, declared).normal == expected


@pytest.mark.parametrize(
    ("text", "declared"),
    [
        ("A@(H*H) - (A@H)*(A@H)", {}),
        ("(A@H)**3 - A@(H**3)", {}),
        ("k*(A@H)*H - A@(k*H)", {"k": "node"}),
        ("2*A@H@W - 3*A@A@H", {}),
        ("tanh(A@H)*(H@W)", {}),
        ("H/(1 + (A@H)**2)", {}),
    ],
)
def test_a_printed_normal_form_reads_back(text: str, declared: dict[str, str]) -> None:
    """What a message shows means what it says: A@H**2 is not the square of A@H."""
    system = rd.parse(text, declared)
    assert rd.parse(str(system.normal), declared).normal == system.normal


# ---------------------------------------------------------------------- rewriting
class Rewriter:
    """Random steps that cannot change a value: commuting, associating, distributing, opening L, powers and signs."""

    def __init__(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)
        self.steps = 0

    def coin(self) -> bool:
        return bool(self.generator.random() < 0.5)

    def __call__(self, node: sp.Basic) -> sp.Basic:
        inner = node if isinstance(node, Name | sp.Rational) else self.rebuilt(node)
        changed = self.step(inner) if self.coin() else inner
        self.steps += changed != inner
        return changed

    def rebuilt(self, node: sp.Basic) -> sp.Basic:
        match node:
            case Power():
                return Power(self(node.base), sp.Integer(node.exponent))
            case Call():
                return Call(node.function, self(node.argument))
        return node.func(*map(self, node.args))

    def step(self, node: sp.Basic) -> sp.Basic:
        match node:
            case Name(name="L"):
                return Minus(Name("I", Kind.OPERATOR), Name("A", Kind.OPERATOR))
            case Plus():
                return Plus(node.right, node.left)
            case Minus():
                return Plus(Negative(node.right), node.left)
            case Negative():
                return Minus(Negative(Plus(node.inner, node.inner)), Negative(node.inner))
            case Times(right=Plus()):
                return Plus(Times(node.left, node.right.left), Times(node.left, node.right.right))
            case Times() if not (kind_of(node.left) is Kind.NODE and kind_of(node.right) is Kind.OPERATOR):
                return Times(node.right, node.left)
            case Apply(right=Plus()):
                return Plus(Apply(node.left, node.right.left), Apply(node.left, node.right.right))
            case Apply(left=Minus()):
                return Minus(Apply(node.left.left, node.right), Apply(node.left.right, node.right))
            case Apply(left=Apply()) if kind_of(node.left.left) is Kind.OPERATOR:
                return Apply(node.left.left, Apply(node.left.right, node.right))
            case Power() if node.exponent == 2:
                return (Apply if kind_of(node) is Kind.OPERATOR else Times)(node.base, node.base)
            case Power() if node.exponent == 3:
                product = Apply if kind_of(node) is Kind.OPERATOR else Times
                return product(node.base, product(node.base, node.base))
            case Over(left=Plus()):
                return Plus(Over(node.left.left, node.right), Over(node.left.right, node.right))
        return node


@settings(max_examples=examples(120))
@given(expressions(depth=2), st.integers(0, 2**20))
def test_normal_forms_are_blind_to_rewriting(tree: sp.Basic, seed: int) -> None:
    rewriter = Rewriter(seed)
    other = rewriter(tree)
    try:
        assume(rewriter.steps > 0 and kind_of(other) is Kind.FIELD)
    except TypeMismatch:  # A@(H + beta) is a field, A@H + A@beta is not written so
        assume(False)
    kinds = tuple(sorted((n.name, n.kind) for n in names_in(tree) if n.name not in STRUCTURAL))
    try:
        first, second = System.of(tree, kinds).normal, System.of(other, kinds).normal
    except NotApplicable:
        assume(False)
    assert first == second or is_zero(sp.expand(first - second))


@settings(max_examples=examples(80))
@given(systems(linear=True), st.integers(0, 2**20))
def test_polynomial_normal_forms_are_unique(system: System, seed: int) -> None:
    rewriter = Rewriter(seed)
    other = System.of(rewriter(system.expression), system.kinds, system.assumptions)
    assume(rewriter.steps > 0)
    assert other.normal == system.normal


@pytest.mark.parametrize(
    ("first", "second"),
    [("A@H", "H"), ("A@(H*H)", "(A@H)*(A@H)"), ("A@A@H", "A@H"), ("tanh(A@H)", "A@tanh(H)"), ("M*A@H", "A@(M*H)")],
)
def test_normal_forms_keep_apart_what_differs(first: str, second: str) -> None:
    assert not is_zero(sp.expand(rd.parse(first).normal - rd.parse(second).normal))


# ---------------------------------------------------------------------- permuting the nodes
@settings(max_examples=examples(150))
@given(systems(), adjacency(max_nodes=5), st.integers(0, 2**20))
def test_renaming_nodes_renames_the_result(system: System, graph: np.ndarray, seed: int) -> None:
    values = values_for(system, dense_operator(graph, "row"), seed)
    order = np.random.default_rng(seed).permutation(len(graph))
    kinds = {**STRUCTURAL, **system.coefficients}
    moved = {
        name: value[np.ix_(order, order)] if kinds[name] is Kind.OPERATOR
        else value[order] if kinds[name] in (Kind.FIELD, Kind.NODE) else value
        for name, value in values.items()
    }  # fmt: skip
    expected, got = dense_value(system, values), dense_value(system, moved)
    assume(expected is not None and got is not None)
    np.testing.assert_allclose(got, expected[order], rtol=1e-9, atol=1e-9)
