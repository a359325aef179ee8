"""The records of elementwise functions: every way to compute one agrees, and every fact survives a try to refute it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sympy as sp
import torch
from flint import arb, ctx

from rdgraph.errors import InvalidArgument, UnknownName
from rdgraph.reals.domain import Domain
from rdgraph.reals.enclosure import enclose, holds
from rdgraph.systems.canonical.function_identities import is_zero
from rdgraph.theory.equality.exact_values import array
from rdgraph.theory.equality.function_registration import POINTS, check_facts
from rdgraph.vocabulary.functions import (
    BUILT_IN,
    FUNCTIONS,
    REALS,
    ElementwiseFunction,
    Monotone,
    Span,
    at_zero,
    in_exponentials,
    record_of,
)  # fmt: skip
from tests.paths import ROOT

x = sp.Symbol("x", real=True)

every = pytest.mark.parametrize("function", BUILT_IN, ids=lambda f: f.name)


def points(function: ElementwiseFunction) -> list[sp.Rational]:
    return [p for p in POINTS if function.domain is REALS or p >= function.domain.lower]


def ball(function: ElementwiseFunction, point: sp.Rational) -> arb:
    before, ctx.prec = ctx.prec, 256
    try:
        return arb(function.ball(array(point)))
    finally:
        ctx.prec = before


# ---------------------------------------------------------------------- values
@every
def test_sympy_arb_numpy_and_torch_agree(function: ElementwiseFunction) -> None:
    places = points(function)
    exact = [ball(function, p) for p in places]
    for place, value in zip(places, exact, strict=True):
        assert abs(sp.N(at_zero(function.sympy(place)), 40) - sp.Float(value.mid().str(40, radius=False), 40)) <= (
            sp.Float("1e-30") * (1 + abs(sp.N(function.sympy(place), 40)))
        )
    wanted = np.array([float(v.mid()) for v in exact])
    given = np.array([float(p) for p in places])
    np.testing.assert_allclose(function.numpy(given), wanted, rtol=1e-13, atol=1e-300)
    assert function.torch is not None
    computed = eval(function.torch.format("y"), {"torch": torch, "y": torch.as_tensor(given)})
    np.testing.assert_allclose(computed.numpy(), wanted, rtol=1e-13, atol=1e-300)


@every
def test_a_ball_encloses_the_values_over_it(function: ElementwiseFunction) -> None:
    for left, right in ((sp.Rational(1, 3), sp.Rational(2, 3)), (sp.Integer(2), sp.Integer(9)), (-3, 4)):
        if function.domain is not REALS and left < 0:
            continue
        middle, radius = sp.Rational(left + right, 2), sp.Rational(right - left, 2)
        wide = arb(function.ball(arb(float(middle), float(radius))))
        for k in range(9):
            place = sp.Rational(left) + sp.Rational(k, 8) * (right - left)
            assert wide.overlaps(ball(function, place)), (left, right, place)


@every
def test_the_value_at_zero(function: ElementwiseFunction) -> None:
    assert function.at_zero is not None
    assert (arb(function.ball(array(sp.S.Zero))) - enclose(function.at_zero)).contains(0)
    assert at_zero(function.sympy(sp.S.Zero)) == function.at_zero


# ---------------------------------------------------------------------- symbolic facts
@every
def test_the_derivative_is_that_of_sympy(function: ElementwiseFunction) -> None:
    y = sp.Symbol("y", positive=True) if function.domain is not REALS else x
    gap = sp.diff(function.sympy(y), y) - function.derivative(y)
    assert gap == 0 or is_zero(gap)


@every
def test_rewriting_and_reflection_are_identities(function: ElementwiseFunction) -> None:
    if function.rewriting is not None:
        assert is_zero(function.sympy(x) - function.rewriting(x))
    if function.reflection is not None:
        assert is_zero(function.sympy(-x) - function.reflection(x, function.sympy(x)))
    if function.pieces is not None:
        for sign, side in zip(("negative", "positive"), function.pieces, strict=True):
            y = sp.Symbol("y", **{sign: True})
            assert function.sympy(y) == side * y


def _provable(function: ElementwiseFunction) -> Iterator[sp.Basic]:
    """What range, slope and ties say, of every x of the domain."""
    y = sp.Symbol("y", nonnegative=True) if function.domain is not REALS else x
    value = function.sympy(y)
    assert function.range is not None
    yield from function.range.relations(value)
    if function.slope is not None and function.domain is REALS:
        yield from (r for r in function.slope.relations(function.derivative(y)))


@every
def test_range_and_slope_are_proved_by_the_judge(function: ElementwiseFunction) -> None:
    for relation in _provable(function):
        if relation.lhs.has(sp.Heaviside, sp.sign):
            continue  # the derivative at the kink is a convention
        assert Domain().proves(relation) is True, relation


@every
def test_relations_hold_at_every_point(function: ElementwiseFunction) -> None:
    y = sp.Dummy("y", real=True)
    found = function.relations(x, y)
    assert found
    for place in points(function):
        value = at_zero(function.sympy(place))
        for relation in found:
            assert holds(relation, {x: place, y: value}, to_the_last_digit=False) is not False, (relation, place)


# ---------------------------------------------------------------------- facts by sampling
@every
def test_facts_survive_sampling(function: ElementwiseFunction) -> None:
    check_facts(function)


def _smaller(span: Span, shift: sp.Rational) -> list[Span]:
    """The span with either finite end moved in."""
    found = [replace(span, lower=span.lower + shift, has_lower=True)] if span.lower.is_finite else []
    return found + ([replace(span, upper=span.upper - shift, has_upper=True)] if span.upper.is_finite else [])


@every
@pytest.mark.parametrize("what", ["range", "slope"])
def test_the_intervals_are_the_smallest(function: ElementwiseFunction, what: str) -> None:
    """One hundredth less is refuted by a point; so the test of facts can fail, and the records are sharp."""
    span = getattr(function, what)
    assert span is not None
    assert function.is_sharp
    shift = sp.Rational(1, 10 if function.name == "sqrt" else 100)  # the slope of sqrt is 1/16 at the last point
    for smaller in _smaller(span, shift):
        with pytest.raises(InvalidArgument, match="correct the fact"):
            check_facts(replace(function, **{what: smaller}))


@every
def test_other_monotone_words_are_refuted(function: ElementwiseFunction) -> None:
    strong = {Monotone.INCREASING: Monotone.NONDECREASING, Monotone.DECREASING: Monotone.NONINCREASING}
    true = {function.monotone, strong.get(function.monotone)} if function.monotone is not None else set()
    for word in set(Monotone) - true:
        with pytest.raises(InvalidArgument, match=f"to be {word}"):
            check_facts(replace(function, monotone=word))


def test_a_false_way_to_compute_is_refuted() -> None:
    with pytest.raises(InvalidArgument, match="numpy= to agree with the definition of tanh"):
        check_facts(replace(FUNCTIONS["tanh"], numpy=np.sin))
    with pytest.raises(InvalidArgument, match="keep the shape"):
        check_facts(replace(FUNCTIONS["tanh"], numpy=np.sum))


def test_growth_follows_from_range_and_slope() -> None:
    growth = {name: f.growth for name, f in FUNCTIONS.items()}
    assert growth == {
        "tanh": "bounded", "relu": "linear", "sigmoid": "bounded", "exp": None, "sqrt": None, "abs": "linear",
        "softplus": "linear", "sin": "bounded", "cos": "bounded",
    }  # fmt: skip
    assert [f.name for f in BUILT_IN if f.is_injective] == ["tanh", "sigmoid", "exp", "sqrt", "softplus"]


# ---------------------------------------------------------------------- the registry
def test_the_registry_knows_names_and_classes() -> None:
    assert [FUNCTIONS[name] for name in FUNCTIONS] == list(BUILT_IN)
    assert record_of(sp.tanh(x)) is FUNCTIONS["tanh"]
    assert record_of(sp.erf(x)) is None
    with pytest.raises(UnknownName, match="did you mean 'tanh'"):
        FUNCTIONS["tan"]
    with pytest.raises(InvalidArgument, match="built in"):
        FUNCTIONS.remove("tanh")
    with pytest.raises(InvalidArgument, match="taken by another function"):
        FUNCTIONS.add(FUNCTIONS["tanh"], None)


def test_the_table_of_the_documentation_says_what_the_records_say() -> None:
    rows = []
    for function in BUILT_IN:
        written = function.rewriting or function.formula or function.sympy
        known = (f"`{function.name}`", f"`{written(x)}`", function.range, function.slope, function.monotone or "")
        rows.append(" ".join(f"| {' | '.join(map(str, known))} |".split()))
    page = (ROOT / "docs/guides/language.md").read_text(encoding="utf-8")
    table = page.split("## Functions\n")[1].strip().split("\n\n")[0]
    assert [" ".join(line.split()) for line in table.splitlines()[2:]] == rows


def test_exponentials_of_nested_calls() -> None:
    sigmoid = FUNCTIONS["sigmoid"].sympy
    assert not in_exponentials(sp.tanh(sigmoid(x))).has(sp.tanh, sigmoid)


#: Names that no module but the records needs; the rest have theorems of their own (addition, kinks, roots).
PLAIN = ("tanh", "relu", "sigmoid")


def _named(path: Path) -> Iterator[str]:
    """Where a file names a function in code: texts but not documentation, attributes, imports."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documentation = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        named = (
            (isinstance(node, ast.Constant) and node.value in PLAIN and id(node) not in documentation)
            or (isinstance(node, ast.Attribute) and node.attr in PLAIN)
            or (isinstance(node, ast.alias) and node.name in PLAIN)
        )
        if named:
            yield f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"


def test_no_other_module_names_a_function() -> None:
    # What conformance and distillation know of single functions, as numbers, is in one file.
    own = {"function_records.py", "functions.py", "slopes_and_inverses.py"}
    own |= {"standard_form.py"}  # the presentation of waves, exponentials and moduli
    files = [p for p in sorted((ROOT / "rdgraph").rglob("*.py")) if p.name not in own]
    assert list(_named(ROOT / "rdgraph/vocabulary/function_records.py"))
    assert [place for path in files for place in _named(path)] == []
