"""`equivalent` for several fields: names, order, second-order forms; counter-examples checked by the dense oracle."""

from __future__ import annotations

import ast
from fractions import Fraction

import numpy as np
import pytest

import rdgraph as rd
from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.language.reader import start_of
from rdgraph.language.tree import field as field_name
from rdgraph.theory.equality.dense_oracle import evaluate
from rdgraph.theory.equality.equality_proof import CONDITIONAL, PROVED, REFUTED, Equivalence


@pytest.mark.parametrize(
    ("first", "second", "fields"),
    [
        ("H'' = -H - alpha*H'", "H' = V; V' = -alpha*V - H", {"H": "H", "H'": "V"}),
        ("H'' = -gamma*H + tanh(A@H)", "x' = -gamma*y + tanh(y - L@y); y' = x", {"H": "y", "H'": "x"}),
        ("u' = -L@u + v; v' = -u", "a' = -b; b' = -b + A@b + a", {"u": "b", "v": "a"}),
        ("u' = u*v + beta*u0; v' = -u*v", "x' = -x*y; y' = x*y + beta*y0", {"u": "y", "v": "x"}),
        ("u' = v; v' = w; w' = -L@u", "r' = -L@p; p' = q; q' = r", {"u": "p", "v": "q", "w": "r"}),
        ("u' = -L@u + sigma*xi; v' = u", "b' = a; a' = A@a - a + sigma*xi", {"u": "a", "v": "b"}),
    ],
)
def test_names_order_and_first_order_forms_do_not_matter(first: str, second: str, fields: dict[str, str]) -> None:
    answer = rd.equivalent(first, second)
    assert answer.outcome == PROVED
    assert dict(answer.fields) == fields
    assert rd.equivalent(first, second, fields=fields)
    assert rd.equivalent(second, first, fields={b: a for a, b in fields.items()})


def letters_of(witness: object) -> dict[str, object]:
    """Values of a witness, back from its text."""
    text = dict(witness.letters)  # type: ignore[attr-defined]

    def read(value: str) -> object:
        tree = ast.parse(value, mode="eval").body
        return np.array(_nested(tree), dtype=float)

    return {name: read(value) for name, value in text.items()}


def _nested(node: ast.expr) -> object:
    if isinstance(node, ast.List):
        return [_nested(x) for x in node.elts]
    return float(Fraction(ast.unparse(node).replace(" ", "")))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("u' = -L@u + v; v' = -u", "u' = -L@u + v; v' = -2*u"),
        ("u' = u*v - L@u; v' = -u*v", "u' = u*v - A@u; v' = -u*v"),
        ("H'' = -gamma*H - alpha*H'", "H' = V; V' = -gamma*H - alpha*H"),
        ("u' = v - u; v' = u0", "u' = v - u; v' = v0"),
    ],
)
def test_a_counterexample_is_one(first: str, second: str) -> None:
    answer = rd.equivalent(first, second)
    assert answer.outcome == REFUTED
    assert answer.witness is not None
    one, other = rd.parse(first), rd.parse(second)
    values = letters_of(answer.witness)
    pairs = dict(answer.fields)
    renamed = {field_name(b): field_name(a) for a, b in pairs.items()}
    renamed |= {field_name(start_of(b)): field_name(start_of(a)) for a, b in pairs.items()}
    differences = []
    for own, theirs in pairs.items():
        trees = one.flow[own], other.flow[theirs].xreplace(renamed)
        known = {name for tree in trees for name in map(str, (n.name for n in rd_names(tree)))}
        if known <= {"I", *values}:
            left, right = (evaluate(tree, values) for tree in trees)  # type: ignore[arg-type]
            differences.append(float(np.abs(np.asarray(left) - np.asarray(right)).max()))
    assert max(differences) > 0.1


def rd_names(tree: object) -> set[object]:
    from rdgraph.language.tree import names_in

    return set(names_in(tree))  # type: ignore[arg-type]


def test_the_wrong_pairing_is_refuted_where_the_right_one_is_proved() -> None:
    first, second = "u' = -L@u + v; v' = -u", "x' = -y; y' = x - L@y"
    assert rd.equivalent(first, second, fields={"u": "y", "v": "x"})
    assert rd.equivalent(first, second, fields={"u": "x", "v": "y"}).outcome == REFUTED


def test_conditions_hold_for_all_equations_together() -> None:
    answer = rd.equivalent("u' = -alpha*L@u + v; v' = -u", "u' = -beta*L@u + v; v' = -gamma*u")
    assert answer.outcome == CONDITIONAL
    assert answer.conditions == (("alpha = beta", "gamma = 1"),)
    opposed = rd.equivalent("u' = alpha*u + v; v' = alpha*v", "u' = u + v; v' = 2*v")
    assert opposed.outcome == REFUTED
    assert rd.equivalent("u' = alpha*u + v; v' = u", "u' = u + v; v' = u", given=["alpha = 1"])


def test_time_noise_and_further_operators() -> None:
    assert rd.equivalent("u' = -t*L@u", "u' = t*A@u - t*u")
    assert rd.equivalent("u' = -t*L@u", "u' = -L@u").outcome == REFUTED
    assert rd.equivalent("u' = -L@u + sigma*xi", "u' = -L@u + 2*sigma*xi").outcome == REFUTED
    assert rd.equivalent("u' = -L@u + sigma*xi", "u' = -L@u").outcome == REFUTED
    turned = "u' = -L@u {} B@u where B antisymmetric"
    assert rd.equivalent(turned.format("+"), turned.format("-")).outcome == REFUTED
    assert rd.equivalent(turned.format("+"), "u' = B@u - u + A@u where B antisymmetric")


FACTS = {
    "symmetric": lambda m: np.array_equal(m, m.T),
    "antisymmetric": lambda m: np.array_equal(m, -m.T),
    "stochastic": lambda m: bool((m >= 0).all()) and np.allclose(m.sum(axis=1), 1),
    "signed": lambda m: True,
}


@pytest.mark.parametrize("words", ["antisymmetric", "symmetric", "stochastic", "symmetric stochastic", "signed"])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("u' = -L@u + B@u", "u' = -L@u - B@u"),
        ("u' = A@B@u", "u' = B@A@u"),
        ("u' = u*(B@v); v' = -v", "u' = B@(u*v); v' = -v"),
        ("u' = B@B@u - L@u", "u' = B@u - L@u"),
        ("u' = tanh(B@u)", "u' = B@tanh(u)"),
        ("u' = B@C@u", "u' = C@B@u"),
    ],
)
def test_counterexamples_have_the_declared_properties(first: str, second: str, words: str) -> None:
    """Different systems get a witness whose B has every fact, and on which the oracle sees the difference."""
    names = [name for name in "BC" if f"{name}@" in first]
    reason = " where " + ", ".join(f"{name} {words}" for name in names)
    one, other = rd.parse(first + reason), rd.parse(second + reason)
    answer = rd.equivalent(one, other)
    assert answer.outcome == REFUTED
    values = letters_of(answer.witness)
    for name in names:
        assert all(FACTS[word](values[name]) for word in words.split())
    left, right = (evaluate(system.flow["u"], values) for system in (one, other))  # type: ignore[arg-type]
    assert float(np.abs(np.asarray(left) - np.asarray(right)).max()) > 1e-6


def test_what_holds_of_stochastic_operators_alone_is_not_refuted() -> None:
    """B@1 = 1 for stochastic B, which no proof uses and no counter-example breaks."""
    ones = "u' = {} - u where B {}"
    assert rd.equivalent(ones.format("B@(1 + 0*u)", "stochastic"), ones.format("1", "stochastic")).outcome != REFUTED
    assert rd.equivalent(ones.format("B@(1 + 0*u)", "signed"), ones.format("1", "signed")).outcome == REFUTED
    still = "u' = {}B@u - L@u where B {}"
    contradicting = rd.equivalent(still.format("", "symmetric"), still.format("-", "antisymmetric"))
    assert contradicting.outcome != REFUTED  # B = 0 alone is both


def test_other_numbers_of_states_and_wrong_pairs() -> None:
    answer = rd.equivalent("H'' = -L@H", "-L@H")
    assert answer.outcome == REFUTED
    assert "2 against 1" in answer.reason
    with pytest.raises(InvalidArgument, match="fields must map"):
        rd.equivalent("u' = v; v' = u", "x' = y; y' = x", fields={"u": "x"})
    with pytest.raises(NotApplicable, match="rescale_time"):
        rd.equivalent("u' = v; v' = u", "u' = v; v' = u", rescale_time=True)


def test_one_field_is_compared_as_before() -> None:
    answer: Equivalence = rd.equivalent("u' = -L@u", "A@H - H")
    assert answer.outcome == PROVED
    assert answer.fields == ()
    assert "M8.10" in {claim.id for claim in rd.verify("M8.10") if claim.as_expected}
