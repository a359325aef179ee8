"""Answers read back: every formula that is printed, and nothing else, becomes the same sympy expression again."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import rdgraph as rd
from rdgraph.errors import InvalidArgument
from rdgraph.language.formula_reader import CONSTANTS, FURTHER
from rdgraph.testing import systems
from rdgraph.vocabulary.exact_numbers import exact_number
from rdgraph.vocabulary.functions import FUNCTIONS
from tests.property_examples import examples

FORMULAS = ("symbol", "response_exact", "lipschitz_global", "lipschitz_local", "one_sided", "invariant_box",
            "step_limit_euler", "step_limit_rk4", "identifiable", "conserved")  # fmt: skip
a, b, x = sp.symbols("alpha beta x")


def texts(value: Any) -> Iterator[str]:
    """Every string in an answer."""
    match value:
        case str():
            yield value
        case list():
            for part in value:
                yield from texts(part)
        case dict():
            yield from texts(list(value.values()))


def by_sympy(text: str) -> sp.Basic:
    """The expression sympy reads from a text with every name declared as a symbol."""
    names = set(text.replace("@", "_at_").translate(str.maketrans("()+-*/,<>=&|~", " " * 13)).split())
    own = {name: function.sympy for name, function in FUNCTIONS.items()}
    known = {**FURTHER, **own, **CONSTANTS, "Piecewise": sp.Piecewise, "True": sp.true, "False": sp.false}
    symbols = {n: sp.Symbol(n) for n in names if n.isidentifier() and n not in known}
    return sp.sympify(text.replace("@", "_at_"), locals={**known, **symbols})


def check(text: str) -> None:
    expression = rd.theory.read_expression(text)
    renamed = expression.xreplace({s: sp.Symbol(s.name.replace("@", "_at_")) for s in expression.free_symbols})
    assert renamed == by_sympy(text), text
    assert all(s == sp.Symbol(s.name) for s in expression.free_symbols)


@pytest.mark.parametrize("name", ["BS", "F", "AC", "ST", "FB*", "GRAFF", "CGNN"])
def test_every_answer_about_the_catalogue(name: str) -> None:
    answers = rd.analyse(name).to_dict()
    found = [text for key in FORMULAS for text in texts(answers[key])]
    assert found
    for text in found:
        check(text)


@pytest.mark.slow
@settings(max_examples=examples(8))
@given(systems())
def test_every_answer_about_random_systems(system: rd.System) -> None:
    try:
        answers = rd.analyse(system).to_dict()
    except rd.errors.RdgraphError:
        return
    for key in FORMULAS:
        for text in texts(answers[key]):
            check(text)


#: The symbols of answers are real numbers; of complex ones sympy also writes re(alpha).
REAL = {letter: sp.Symbol(letter.name, real=True) for letter in (a, b, x)}
EXPRESSIONS = st.recursive(
    st.sampled_from([*REAL.values(), sp.Integer(3), sp.Rational(-2, 7), sp.pi, sp.E, sp.oo]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda p: p[0] + p[1]),
        st.tuples(inner, inner).map(lambda p: p[0] * p[1]),
        st.tuples(inner, st.sampled_from([2, -1])).map(lambda p: p[0] ** p[1]),
        inner.map(lambda e: sp.sqrt(e) if e.is_nonnegative else e),
        inner.map(sp.exp), inner.map(sp.Abs), inner.map(sp.tanh),
        inner.map(lambda e: e if e.has(sp.oo) else sp.sin(e)),  # sin(oo) is no number
        st.tuples(inner, inner).map(lambda p: sp.Max(REAL[a] * p[0], REAL[b]) if p[0].is_extended_real else p[0]),
    ),
    max_leaves=8,
)  # fmt: skip


@settings(max_examples=examples(80))
@given(EXPRESSIONS)
def test_what_sympy_prints_is_read_back(expression: sp.Expr) -> None:
    if expression.has(sp.nan, sp.zoo, sp.I, sp.AccumBounds) or expression.is_infinite:
        return
    # sympy leaves Abs(Abs(2*alpha)) as 2*Abs(Abs(alpha)), and evaluates the rest when it is rebuilt
    rebuilt = expression.xreplace({real: plain for plain, real in REAL.items()}).xreplace(REAL)
    read = rd.theory.read_expression(str(expression)).xreplace(REAL)
    assert read == rebuilt or sp.expand(read - rebuilt) == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2*alpha + 2*beta", 2 * a + 2 * b),
        ("Piecewise((beta, alpha >= beta), (0, True))", sp.Piecewise((b, a >= b), (0, True))),
        ("Piecewise((x, Ne(x, 0) & (beta < 1)), (1, (x > 2) | ~(alpha <= beta)))",
         sp.Piecewise((x, sp.And(sp.Ne(x, 0), b < 1)), (1, sp.Or(x > 2, sp.Not(a <= b))))),
        ("Max(0, Min(alpha, Abs(beta)))", sp.Max(0, sp.Min(a, sp.Abs(b)))),
        ("LambertW(exp(-1)*alpha) + log(beta) - sqrt(x)", sp.LambertW(sp.exp(-1) * a) + sp.log(b) - sp.sqrt(x)),
        ("-oo", -sp.oo),
        ("2.78529356340528/(alpha + beta)", sp.Float("2.78529356340528") / (a + b)),
        ("W@V*alpha + I*beta", sp.Symbol("W@V") * a + sp.Symbol("I") * b),
        ("gamma*zeta + lam*N", sp.Symbol("gamma") * sp.Symbol("zeta") + sp.Symbol("lam") * sp.Symbol("N")),
        ("relu(x)*sigmoid(x)", rd.theory.read_expression("relu(x)") * rd.theory.read_expression("sigmoid(x)")),
        ("1e-3", sp.Float("1e-3")),
    ],
)  # fmt: skip
def test_known_texts(text: str, expected: sp.Basic) -> None:
    assert rd.theory.read_expression(text) == expected


@pytest.mark.parametrize(
    ("text", "needle"),
    [
        ("__import__('os').system('true')", "function"),
        ("().__class__", "Attribute"),
        ("[x for x in (1, 2)]", "ListComp"),
        ("lambda: 0", "Lambda"),
        ("alpha[0]", "Subscript"),
        ("'text'", "a number"),
        ("9**9**9", "power"),
        ("2**(10**9)", "power"),
        ("Max(alpha, key=1)", "keywords"),
        ("exp(*x)", "stars"),
        ("exp()", "arguments"),
        ("exp(re(alpha))", "a known function"),
        ("Exp(x)", "did you mean exp"),
        ("alpha +", "formula"),
        ("", "formula"),
        ("(alpha > 0) + 1", "condition"),
        ("Piecewise((x, x))", "condition"),
        ("Piecewise(x)", "pair"),
        ("1 < x < 2", "Compare"),
        ("α", "ASCII"),
        ("(W + V)@W", "matrices"),
        ("-" * 300 + "x", "deep"),
        ("x" * 100_001, "characters"),
    ],
)  # fmt: skip
def test_anything_else_is_refused_with_a_reason(text: str, needle: str) -> None:
    with pytest.raises(rd.errors.LanguageError) as problem:
        rd.theory.read_expression(text)
    assert needle in str(problem.value)


def test_only_texts_are_read() -> None:
    with pytest.raises(rd.errors.LanguageError, match="text of a formula"):
        rd.theory.read_expression(3)  # type: ignore[arg-type]


# ---------------------------------------------------------------------- numbers that are taken
NUMBERS = [
    (np.float64(0.1), sp.Rational(1, 10)), (np.float32(0.1), sp.Rational(1, 10)), (np.int64(2), sp.Integer(2)),
    (np.array(0.5), sp.S.Half), (Fraction(1, 3), sp.Rational(1, 3)), (Decimal("0.10"), sp.Rational(1, 10)),
    (sp.Float("0.25"), sp.Rational(1, 4)), (3, sp.Integer(3)), (1e-7, sp.Rational(1, 10**7)),
    (sp.sqrt(2), sp.sqrt(2)), (sp.Symbol("T"), sp.Symbol("T")),
]  # fmt: skip


@pytest.mark.parametrize(("value", "expected"), NUMBERS, ids=[repr(v) for v, _ in NUMBERS])
def test_numbers_of_every_library(value: Any, expected: sp.Expr) -> None:
    assert exact_number(value, "T") == expected


def test_numpy_numbers_as_time_step_and_coefficients() -> None:
    system = rd.parse("BS")
    assert system.response(T=np.float64(1)) == system.response(T=1)
    assert system.response(T=2, method="euler", step=np.float32(0.5)) == system.response(T=2, method="euler", step=0.5)
    assert system.replace(alpha=np.float64(0.5)) == system.replace(alpha=0.5)
    assert system.replace(alpha=np.int32(2), beta=np.array(1.5)) == system.replace(alpha=2, beta=1.5)
    runs = [
        rd.preflight("BS", T=t(1), method="euler", step=t(0.25), values={"alpha": t(1), "beta": t(1)}).to_dict()
        for t in (float, np.float64)
    ]
    assert runs[0] == runs[1]


def test_torch_numbers() -> None:
    torch = pytest.importorskip("torch")
    assert exact_number(torch.tensor(0.5), "T") == sp.S.Half


@pytest.mark.parametrize("value", ["2", float("nan"), np.inf, True, 1j, np.array([1.0]), sp.oo, [1], Decimal("NaN")])
def test_what_is_no_number_is_refused(value: Any) -> None:
    with pytest.raises(InvalidArgument, match="expected a"):
        exact_number(value, "T")
