"""The derivation checker: shipped chains, wrong hypotheses with verified witnesses, and every mutation of ten lines."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sp

from rdgraph.answers import Status
from rdgraph.errors import InvalidArgument, LanguageError, NotApplicable, UnknownName
from rdgraph.language.printer import to_text
from rdgraph.language.reader import read_expression
from rdgraph.language.tree import Apply, Kind, Minus, Name, Negative, Plus, Power, Times, kind_of
from rdgraph.theory.equality import dense_oracle as dense
from rdgraph.theory.equality.counterexample import Witness
from rdgraph.theory.equality.derivations import FAILS, HOLDS, Derivation, derivation, derivations, identity
from rdgraph.theory.equality.hypotheses import Hypotheses

APPENDIX = derivation("bs-appendix")


@pytest.mark.parametrize("name", derivations())
def test_shipped_derivations_hold(name: str) -> None:
    report = derivation(name).check()
    assert report.holds
    assert [s.status for s in report.steps] == [HOLDS] * (len(derivation(name).lines) - 1)
    assert report.first_failure is None


def test_unknown_derivations_offer_the_nearest() -> None:
    with pytest.raises(UnknownName, match="bs-appendix"):
        derivation("bs-apendix")


# ---------------------------------------------------------------------- wrong hypotheses
def array(text: str) -> np.ndarray:
    """A witness's value, read back without its own code."""
    return np.array(ast.literal_eval("".join(f"'{w}'" if "/" in w else w for w in _words(text))), dtype=object)


def _words(text: str) -> Iterator[str]:
    word = ""
    for c in text:
        if c in "[], ":
            if word:
                yield word
            word = ""
            yield c
        else:
            word += c
    if word:
        yield word


def as_float(value: np.ndarray) -> np.ndarray:
    def number(x: Any) -> float:
        top, _, bottom = str(x).partition("/")
        return float(top) / float(bottom or 1)

    return np.vectorize(number, otypes=[float])(value)


def graph_of(witness: Witness) -> np.ndarray:
    adjacency = np.zeros((witness.nodes, witness.nodes))
    for i, j in witness.edges:
        adjacency[i, j] = adjacency[j, i] = 1
    return adjacency


def verify_witness(step: Any, derivation_: Derivation) -> None:
    """Both sides once more in floats, from the witness's edges and values alone."""
    witness = step.witness
    letters = {name: as_float(array(text)) for name, text in witness.letters}
    adjacency = graph_of(witness)
    values = {**letters, "A": adjacency, "D": np.diag(adjacency.sum(axis=1))}
    values["L"] = values["D"] - adjacency
    if "B" in derivation_.letters:
        values["B"] = values["H"] - values["L"] @ values["H"]
    vocabulary = derivation_.rules.vocabulary
    sides = [dense.evaluate(read_expression(text, vocabulary), values) for text in (step.before, step.after)]
    np.testing.assert_allclose(sides[0], as_float(array(witness.left)))
    np.testing.assert_allclose(sides[1], as_float(array(witness.right)))
    assert np.abs(sides[0] - sides[1]).max() > 1e-9
    if "A" in letters:
        np.testing.assert_allclose(letters["A"], adjacency)
    if "L" in letters:
        np.testing.assert_allclose(letters["L"], values["L"])


@cache
def combinatorial(name: str) -> Any:
    return derivation(name).under("L = D - A").check()


def test_appendix_under_the_combinatorial_laplacian() -> None:
    statuses = {s.number: s.status for s in combinatorial("bs-appendix").steps}
    assert {n for n, s in statuses.items() if s == FAILS} == {1, 2, 5, 7, 9}
    assert {n for n, s in statuses.items() if s == HOLDS} == {3, 4, 6, 8}


@pytest.mark.parametrize("number", [1, 2, 5, 7, 9])
def test_appendix_witnesses_are_counter_examples(number: int) -> None:
    step = combinatorial("bs-appendix").steps[number - 1]
    assert step.witness is not None
    assert step.witness.nodes <= 3
    verify_witness(step, APPENDIX.under("L = D - A"))


def test_blur_under_the_combinatorial_laplacian() -> None:
    report = combinatorial("bs-blur")
    assert [s.status for s in report.steps] == [FAILS, HOLDS]
    assert report.first_failure is report.steps[0]
    verify_witness(report.steps[0], derivation("bs-blur").under("L = D - A"))


@pytest.mark.parametrize("name", ["bs-main", "bs-difference"])
def test_short_chains_under_the_combinatorial_laplacian(name: str) -> None:
    report = combinatorial(name)
    assert [s.status for s in report.steps] == [FAILS]
    verify_witness(report.steps[0], derivation(name).under("L = D - A"))


def test_no_hypothesis_no_derivation() -> None:
    free = Derivation("free", ("H - L@H", "A@H"), ())
    assert free.check().steps[0].status == FAILS


# ---------------------------------------------------------------------- mutations
def mutants(node: sp.Basic) -> Iterator[sp.Basic]:
    """Every tree that differs from `node` by one slip: a sign, a dropped term, a letter, a coefficient, a power."""
    yield from own_mutants(node)
    if isinstance(node, Name | sp.Rational):
        return
    for i, part in enumerate(node.args):
        if isinstance(node, Power) and i == 1:
            continue
        for changed in mutants(part):
            arguments = list(node.args)
            arguments[i] = changed
            yield node.func(*arguments)


def own_mutants(node: sp.Basic) -> Iterator[sp.Basic]:
    operators = [Name(letter, Kind.OPERATOR) for letter in "AIL"]
    match node:
        case Plus():
            yield from (Minus(*node.args), Plus(Negative(node.left), node.right), node.left, node.right)
        case Minus():
            yield from (Plus(*node.args), Minus(Negative(node.left), node.right), node.left, Negative(node.right))
            yield Minus(node.right, node.left)
        case Name(kind=Kind.OPERATOR):
            yield from (o for o in operators if o != node)
        case Name(name="B"):
            yield from (Name("H", Kind.FIELD), Negative(node))
        case Apply():
            yield from (node.right, Negative(node))
            if kind_of(node.left) is Kind.OPERATOR and isinstance(node.right, Apply):
                yield Apply(node.right.left, Apply(node.left, node.right.right))
        case Times(left=sp.Rational()):
            yield from (Times(node.left + 1, node.right), Times(sp.S.One, node.right), node.right)
        case Power():
            yield from (Power(node.base, sp.Integer(k)) for k in (1, 3))
            yield node.base


def well_typed(tree: sp.Basic) -> bool:
    try:
        return kind_of(tree) is Kind.FIELD
    except TypeError:
        return False


@cache
def matrices() -> list[dict[str, np.ndarray]]:
    """Random non-symmetric A with L = I - A: identities of the free algebra hold, others do not."""
    answer = []
    for seed in range(3):
        generator = np.random.default_rng(seed)
        A, H = generator.normal(size=(4, 4)), generator.normal(size=(4, 2))
        L = np.eye(4) - A
        answer.append({"A": A, "L": L, "H": H, "B": H - L @ H})
    return answer


def same_value(first: sp.Basic, second: sp.Basic) -> bool:
    pairs = [(dense.evaluate(first, v), dense.evaluate(second, v)) for v in matrices()]
    return all(np.allclose(a, b, rtol=1e-9, atol=1e-9) for a, b in pairs)


@cache
def trees() -> list[sp.Basic]:
    return [read_expression(line, APPENDIX.rules.vocabulary) for line in APPENDIX.lines]


@pytest.mark.parametrize("line", range(1, 11))
def test_mutations_of_the_appendix(line: int) -> None:
    """An error that changes the value breaks the neighbouring steps; one that does not is accepted."""
    tree, rules = trees()[line - 1], APPENDIX.rules
    answer = {m for m in mutants(tree) if m != tree and well_typed(m)}
    assert len(answer) >= 8
    changing = 0
    for mutant in sorted(answer, key=to_text):
        expected = HOLDS if same_value(mutant, tree) else FAILS
        changing += expected == FAILS
        for neighbour in (line - 1, line + 1):
            if 1 <= neighbour <= 10:
                status, witness = identity(trees()[neighbour - 1], mutant, rules)
                assert status == expected, to_text(mutant)
                assert (witness is not None) == (expected == FAILS)
    assert changing >= 6


def test_a_changed_line_breaks_exactly_its_steps() -> None:
    report = APPENDIX.with_line(4, "2*A@H + A**2@H").check()
    assert [s.number for s in report.failures] == [3, 4]
    assert report.first_failure is not None
    assert "counter-example" in str(report.first_failure)


# ---------------------------------------------------------------------- hypotheses
@pytest.mark.parametrize(
    ("texts", "error", "message"),
    [
        (("L",), InvalidArgument, "hypothesis such as"),
        (("L = I - A = D",), InvalidArgument, "hypothesis such as"),
        (("L = H",), InvalidArgument, "different kinds"),
        (("B = L@B",), NotApplicable, "recursive"),
        (("B = A@H", "B = H"), NotApplicable, "one definition"),
    ],
)
def test_refused_hypotheses(texts: tuple[str, ...], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Hypotheses(texts, (("B", "field"),)).algebra  # noqa: B018  the algebra is made when asked for


def test_errors_in_hypotheses_have_a_column() -> None:
    with pytest.raises(LanguageError, match="unknown name"):
        Derivation("x", ("H", "H"), ("L = I - Q",)).check()


@pytest.mark.parametrize(
    ("lines", "hypotheses", "status"),
    [
        (("A@A@H", "A@H"), ("L = I - A", "A@A = A"), HOLDS),
        (("A**5@H", "A@H"), ("L = I - A", "A@A = A"), HOLDS),
        (("L@L@H", "L@H"), ("L = I - A", "A@A = A"), HOLDS),
        (("A@L@H", "0*H"), ("L = I - A", "A@A = A"), HOLDS),
        (("A@A@H", "A@H"), ("L = I - A",), FAILS),
        (("A@A@A@H", "A@H"), ("A@A = I",), HOLDS),
        (("A@A@H", "A@H"), ("A@A = I",), FAILS),
        (("A@D@H", "D@A@H"), ("A@D = D@A",), HOLDS),
        (("A@D@H", "D@A@H"), (), FAILS),
        (("D@A@D@H", "D@D@A@H"), ("A@D = D@A",), HOLDS),
    ],
)
def test_relations_between_words(lines: tuple[str, str], hypotheses: tuple[str, ...], status: str) -> None:
    step = Derivation("words", lines, hypotheses).check().steps[0]
    assert step.status == status


def test_witnesses_respect_the_relations() -> None:
    """A@A = I holds on two nodes with one edge, so the witness must be such a graph."""
    step = Derivation("words", ("A@A@H", "A@H"), ("A@A = I",)).check().steps[0]
    assert step.witness is not None
    assert step.witness.nodes == 2
    A = graph_of(step.witness)
    np.testing.assert_array_equal(A @ A, np.eye(2))


def test_undecided_is_possible() -> None:
    """No graph without isolated nodes meets A@A = 0*A, so nothing refutes A@H = H under it."""
    step = Derivation("empty", ("A@H", "H"), ("A@A = 0*A",)).check().steps[0]
    assert step.status == Status.UNDECIDED
    assert step.witness is None


def test_operator_lines_are_compared_through_their_action() -> None:
    assert Derivation("op", ("(I + L)@(I - L)", "I - L**2"), ()).check().holds
    assert not Derivation("op", ("(I + L)@(I - A)", "I - L@A"), ()).check().holds
