"""An adversary of `equivalent`: pairs built equal are never refuted, pairs built different are never proved.

Witnesses are read back from their text and evaluated by the dense interpreter in floating point.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import sympy as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import rdgraph as rd
from rdgraph.errors import NotApplicable
from rdgraph.graphs.normalisation import dense_operator
from rdgraph.language.assumptions import Assumptions
from rdgraph.language.reader import USUAL_COEFFICIENTS
from rdgraph.language.tree import Apply, Call, Kind, Minus, Name, Negative, Over, Plus, Power, Times, kind_of, names_in
from rdgraph.systems.system import System
from rdgraph.theory.equality import dense_oracle as dense
from rdgraph.theory.equality.equality_proof import CONDITIONAL, PROVED, REFUTED, RESTRICTED, Equivalence
from tests.property_examples import examples

KINDS = {"alpha": Kind.SCALAR, "beta": Kind.SCALAR, "k": Kind.CHANNEL, "n": Kind.NODE}
FIELDS = (Kind.FIELD, Kind.NODE, Kind.CHANNEL, Kind.SCALAR)
HALF, TWO = sp.Rational(1, 2), sp.Integer(2)
RELATIONS = (
    (),
    ("beta <= alpha",),
    ("alpha < 2*beta",),
    ("beta real",),
    ("beta real", "beta < alpha"),
    ("k negative",),
)
FUNCTIONS = ("tanh", "relu", "sigmoid", "exp", "abs", "softplus", "sin", "cos")


# ---------------------------------------------------------------------- random systems
class Builder:
    """A random field: a few terms, each a coefficient times a function, an image or a product of simple fields."""

    def __init__(self, generator: np.random.Generator) -> None:
        self.generator = generator

    def pick(self, *options: Any) -> Any:
        return options[int(self.generator.integers(len(options)))]

    def name(self, name: str) -> Name:
        return Name(
            name,
            {"H": Kind.FIELD, "H0": Kind.FIELD, "A": Kind.OPERATOR, "L": Kind.OPERATOR, "M": Kind.NODE}.get(name)
            or KINDS[name],
        )

    def coefficient(self) -> sp.Basic:
        letter = self.name(self.pick("alpha", "beta", "k", "n", "M"))
        gap = Minus(self.name("alpha"), self.name("beta"))
        return self.pick(letter, letter, sp.Integer(2), gap, Call("abs", gap), Call("sqrt", Power(gap, TWO)))

    def simple(self) -> sp.Basic:
        state = self.name(self.pick("H", "H", "H0"))
        return self.pick(
            state, Times(self.coefficient(), state), Apply(self.name(self.pick("A", "L")), state), Minus(state, HALF)
        )

    def term(self) -> sp.Basic:
        inner = self.simple()
        called = Call(self.pick(*FUNCTIONS), inner)
        outer = self.pick(called, called, Times(self.simple(), inner), Power(inner, TWO), inner)
        moved = self.pick(outer, outer, Apply(self.name("A"), outer), Apply(outer, Name("W", Kind.MATRIX)))
        return self.pick(moved, Times(self.coefficient(), moved))

    def field(self) -> sp.Basic:
        terms = [self.term() for _ in range(self.pick(1, 2))]
        total = terms[0]
        for term in terms[1:]:
            total = self.pick(Plus, Minus)(total, term)
        return total


def as_system(tree: sp.Basic, texts: tuple[str, ...]) -> System:
    letters = {n.name: n.kind for n in names_in(tree) if n.name in KINDS}
    declared = tuple(sorted((n, k) for n, k in letters.items() if n not in USUAL_COEFFICIENTS))
    return System.of(tree, declared, Assumptions.read(texts, KINDS).about(letters))


# ---------------------------------------------------------------------- rewriting that keeps the value
class Rewriter:
    """Random identities of functions, masks, operators and sums, applied anywhere in a tree."""

    def __init__(self, generator: np.random.Generator) -> None:
        self.generator = generator

    def __call__(self, node: sp.Basic) -> sp.Basic:
        if isinstance(node, Name | sp.Rational):
            inner = node
        elif isinstance(node, Power):
            inner = Power(self(node.base), sp.Integer(node.exponent))
        elif isinstance(node, Call):
            inner = Call(node.function, self(node.argument))
        else:
            inner = node.func(*map(self, node.args))
        return self.step(inner) if self.generator.random() < 0.4 else inner

    def step(self, node: sp.Basic) -> sp.Basic:
        match node:
            case Name(name="L"):
                return Minus(Name("I", Kind.OPERATOR), Name("A", Kind.OPERATOR))
            case Name(name="M"):
                return Power(node, TWO)
            case Call():
                return self.function(node.function, node.argument)
            case Plus():
                return Plus(node.right, node.left)
            case Minus():
                return Plus(Negative(node.right), node.left)
            case Power() if node.exponent == 2 and kind_of(node) in FIELDS:
                return Times(node.base, node.base)
            case Times(right=Plus()) if kind_of(node) in FIELDS:
                return Plus(Times(node.left, node.right.left), Times(node.left, node.right.right))
            case Apply(right=Plus()) if kind_of(node) is Kind.FIELD and kind_of(node.right) is Kind.FIELD:
                if Kind.FIELD is kind_of(node.right.left) is kind_of(node.right.right):
                    return Plus(Apply(node.left, node.right.left), Apply(node.left, node.right.right))
        return node

    def function(self, name: str, x: sp.Basic) -> sp.Basic:
        half, double = Times(HALF, x), Times(TWO, x)
        match name:
            case "relu":
                return Times(HALF, Plus(x, Call("abs", x)))
            case "abs":
                return Plus(Call("relu", x), Call("relu", Negative(x)))
            case "sigmoid":
                return Over(Plus(sp.S.One, Call("tanh", half)), TWO)
            case "tanh":
                return Minus(Times(TWO, Call("sigmoid", double)), sp.S.One)
            case "exp":
                return Over(sp.S.One, Call("exp", Negative(x)))
            case "softplus":
                return Plus(x, Call("softplus", Negative(x)))
            case "sin":
                return Times(TWO, Times(Call("sin", half), Call("cos", half)))
            case "cos":
                return Minus(sp.S.One, Times(TWO, Power(Call("sin", half), TWO)))
        return Call(name, x)


class Mutator(Rewriter):
    """One slip: another function, a sign, a factor, a shift."""

    def step(self, node: sp.Basic) -> sp.Basic:
        match node:
            case Call():
                return Call(str(self.generator.choice([f for f in FUNCTIONS if f != node.function])), node.argument)
            case Plus():
                return Minus(node.left, node.right)
            case Minus():
                return Minus(node.right, node.left)
            case Name(kind=Kind.FIELD):
                return Plus(node, Times(sp.Rational(1, 4), node))
            case Power():
                return node.base
        return node


# ---------------------------------------------------------------------- numbers
def sampled(systems: tuple[System, System], seed: int) -> dict[str, Any] | None:
    """Random values that satisfy every assumption of both systems; None where drawing fails."""
    generator = np.random.default_rng(seed)
    nodes, channels = 4, 2
    graph = np.array([[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 0], [1, 0, 0, 0]], dtype=float)
    values: dict[str, Any] = {"A": dense_operator(graph, "row"), "W": generator.normal(size=(channels, channels))}
    values |= {"H": generator.normal(size=(nodes, channels)), "H0": generator.normal(size=(nodes, channels))}
    values["M"] = generator.integers(0, 2, (nodes, 1)).astype(float)
    shapes = {Kind.SCALAR: (), Kind.CHANNEL: (channels,), Kind.NODE: (nodes, 1)}
    assumptions = systems[0].assumptions.joined(systems[1].assumptions)
    for _ in range(50):
        for name, kind in KINDS.items():
            size = generator.uniform(0.2, 2, shapes[kind])
            sign = assumptions.sign(name)
            values[name] = size * (-1 if sign == "negative" else generator.choice([-1, 1]) if sign == "real" else 1)
        if assumptions_hold(assumptions, values):
            return values
    return None


def assumptions_hold(assumptions: Assumptions, values: dict[str, Any]) -> bool:
    signs = {"positive": lambda x: x > 0, "negative": lambda x: x < 0, "real": lambda x: x == x}
    for name in KINDS:
        if name in values and not np.all(signs[assumptions.sign(name)](np.asarray(values[name]))):
            return False
    for relation in assumptions.relations:
        gap = dense.evaluate(relation.upper, values) - dense.evaluate(relation.lower, values)
        if not np.all(gap > 0 if relation.strict else gap >= 0):
            return False
    return True


def values_of(systems: tuple[System, System], values: dict[str, Any]) -> list[np.ndarray]:
    with np.errstate(all="ignore"):
        return [np.broadcast_to(dense.evaluate(s.expression, values), values["H"].shape) for s in systems]


def read_value(text: str) -> np.ndarray:
    """Nested lists of fractions and decimals."""
    words = text.replace("[", " [ ").replace("]", " ] ").replace(",", " , ").split()
    numbers = [w if w in "[]," else str(float(w.partition("/")[0]) / float(w.partition("/")[2] or 1)) for w in words]
    return np.array(sp.sympify("".join(numbers)) if "[" in numbers else float(numbers[0]), dtype=float)


def check_witness(found: Equivalence, systems: tuple[System, System]) -> None:
    """The witness is admissible, and both sides differ on it, in floats."""
    assert found.witness is not None
    values: dict[str, Any] = {name: read_value(text) for name, text in found.witness.letters}
    assert assumptions_hold(systems[0].assumptions.joined(systems[1].assumptions), values)
    assert set(np.unique(values.get("M", np.zeros(1)))) <= {0.0, 1.0}
    adjacency = np.zeros((found.witness.nodes,) * 2)
    for i, j in found.witness.edges:
        adjacency[i, j] = adjacency[j, i] = 1
    np.testing.assert_allclose(values["A"], dense_operator(adjacency, "row"))
    values.setdefault("H", np.zeros((found.witness.nodes, 2 if "W" in values or "k" in values else 1)))
    sides = values_of(systems, values)
    for side, text in zip(sides, (found.witness.left, found.witness.right), strict=True):
        np.testing.assert_allclose(side, np.broadcast_to(read_value(text), side.shape), rtol=1e-9, atol=1e-9)
    assert np.abs(sides[0] - sides[1]).max() > 1e-13 * (1 + np.abs(sides[0]).max())


def under(conditions: tuple[str, ...], values: dict[str, Any]) -> dict[str, Any] | None:
    """The values changed so that the conditions hold; None where an inequality does not."""
    changed = dict(values)

    def number(text: str) -> Any:
        formula = sp.sympify(text, locals={name: sp.Symbol(name) for name in (*KINDS, "M", "I")})
        letters = sorted(formula.free_symbols, key=str)
        known = {**changed, "I": np.eye(2)}
        return sp.lambdify(letters, formula, "numpy")(*(known[x.name] for x in letters))

    for text in (c for c in conditions if " = " in c):
        name, body = text.split(" = ")
        changed[name] = number(body) + 0 * values[name]
    for text in (c for c in conditions if " = " not in c):
        left, sign, right = text.partition(" <= ") if " <= " in text else text.partition(" >= ")
        gap = np.asarray(number(right)) - np.asarray(number(left))
        if not np.all(gap >= 0 if sign == " <= " else gap <= 0):
            return None
    return changed


def drawn(seed: int) -> tuple[np.random.Generator, sp.Basic, tuple[str, ...]]:
    generator = np.random.default_rng(seed)
    tree = Builder(generator).field()
    return generator, tree, RELATIONS[int(generator.integers(len(RELATIONS)))]


@settings(max_examples=examples(25))
@given(st.integers(0, 2**30))
def test_pairs_built_equal_are_never_refuted(seed: int) -> None:
    generator, tree, texts = drawn(seed)
    pair = as_system(tree, texts), as_system(Rewriter(generator)(tree), texts)
    assume(pair[0].expression != pair[1].expression)
    try:
        assert rd.equivalent(*pair).outcome not in (REFUTED, CONDITIONAL)
    except NotApplicable:
        assume(False)


@settings(max_examples=examples(12))
@given(st.integers(0, 2**30))
def test_pairs_built_different_are_never_proved(seed: int) -> None:
    generator, tree, texts = drawn(seed)
    changed = Rewriter(generator)(Mutator(generator)(tree))
    pair = as_system(tree, texts), as_system(changed, texts)
    assume(kind_of(changed) is Kind.FIELD)
    points = [values for attempt in range(6) if (values := sampled(pair, seed + attempt)) is not None]
    sides = [values_of(pair, values) for values in points]
    try:
        answer = rd.equivalent(*pair)
    except NotApplicable:
        assume(False)
    if any(np.isfinite(a - b).all() and np.abs(a - b).max() > 1e-6 * (1 + np.abs(a).max()) for a, b in sides):
        assert answer.outcome not in (PROVED, RESTRICTED)
    if answer.outcome == REFUTED:
        check_witness(answer, pair)
    for conditions, values in itertools.product(answer.conditions, points):
        met = under(conditions, values)
        if met is not None:
            one, other = values_of(pair, met)
            if np.isfinite(one).all() and np.isfinite(other).all():
                np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9 * (1 + np.abs(one).max()))


@pytest.mark.parametrize("texts", RELATIONS[:2])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_function_is_recognised_after_rewriting(name: str, texts: tuple[str, ...]) -> None:
    """abs((alpha - beta) H) and its like, rewritten once, are proved equal, not just not refuted."""
    inner = Times(Minus(Name("alpha", Kind.SCALAR), Name("beta", Kind.SCALAR)), Name("H", Kind.FIELD))
    tree = Plus(Call(name, inner), Apply(Name("A", Kind.OPERATOR), Call(name, Name("H", Kind.FIELD))))
    rewriter = Rewriter(np.random.default_rng(0))
    other = Plus(
        rewriter.function(name, inner), Apply(Name("A", Kind.OPERATOR), rewriter.function(name, Name("H", Kind.FIELD)))
    )
    assert rd.equivalent(as_system(tree, texts), as_system(other, texts)).outcome == PROVED
