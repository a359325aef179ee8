"""Functions of the user: what is registered, what is refused with a witness, and what stays undecided."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import sympy as sp
import torch

import rdgraph as rd
from rdgraph.errors import InvalidArgument, LanguageError, UnknownName
from rdgraph.theory.equality.dense_oracle import evaluate
from rdgraph.vocabulary.functions import BUILT_IN, FUNCTIONS, Monotone, Span

GELU = "x*(1 + erf(x/sqrt(2)))/2"
x = sp.Symbol("x", real=True)


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    for name in set(FUNCTIONS) - {f.name for f in BUILT_IN}:
        rd.vocabulary.unregister_function(name)


def gelu(**facts: Any) -> None:
    rd.register_function("gelu", GELU, **facts)


# ---------------------------------------------------------------------- abbreviations of the language
def test_a_definition_in_the_language_is_what_proofs_see() -> None:
    record = rd.register_function("swish", "x/(1 + exp(-x))")
    system = rd.parse("-alpha*L@H + beta*swish(A@H)")
    assert str(system) == "-alpha*L@H + beta*swish(A@H)"
    assert rd.parse(str(system)) == system
    assert rd.equivalent(system, "-alpha*L@H + beta*(A@H)*sigmoid(A@H)")
    assert rd.equivalent("swish(H) - swish(-H)", "H")
    assert not rd.equivalent("swish(H)", "H*tanh(H)")
    assert r"\operatorname{swish}" in system.latex()
    assert (record.range, record.slope, record.monotone) == (None, None, None)
    assert system.sympy == rd.parse("-alpha*L@H + beta*((A@H)/(1 + exp(-(A@H))))").sympy


@pytest.mark.parametrize("definition", ["H**3/(1 + H**2)", "x**3/(1 + x**2)", x**3 / (1 + x**2)])
def test_letters_and_sympy_say_the_same(definition: Any) -> None:
    rd.register_function("hill", definition)
    assert rd.existence(rd.parse("hill(H)")).outcome == "global"
    assert rd.lipschitz_global(rd.parse("hill(H)")).value == sp.Rational(9, 8)
    assert rd.equivalent("hill(H)", "H - H/(1 + H**2)")


def test_kinks_are_known_inside_abbreviations() -> None:
    rd.register_function("leaky", "relu(x) - relu(-x)/10", slope=(0.1, 1), monotone="increasing")
    assert rd.equivalent("leaky(H)", "0.55*H + 0.45*abs(H)")
    assert rd.lipschitz_global(rd.parse("leaky(H)")).value is not None


def test_abbreviations_may_use_each_other_and_are_limited() -> None:
    rd.register_function("quartic", "x**4 + x")
    rd.register_function("quartic_twice", "quartic(quartic(x))")
    assert rd.equivalent("quartic_twice(H)", "quartic(quartic(H))")
    nested = "quartic_twice(" * 6 + "H" + ")" * 6
    with pytest.raises(rd.errors.NotApplicable, match="nest them less"):
        _ = rd.parse(nested).normal


def test_the_domain_of_an_abbreviation_is_part_of_the_verdict() -> None:
    rd.register_function("inverse", "1/x")
    answer = rd.equivalent("H*inverse(H)", "H**0")
    assert (answer.outcome, answer.domain) == ("proved where defined", ("H != 0",))
    assert rd.existence(rd.parse("inverse(H)")).status == "undecided"


# ---------------------------------------------------------------------- closed functions
def test_a_closed_function_is_proved_by_its_formula_and_bounded_by_its_facts() -> None:
    gelu(range=(-0.17, None), slope=(-0.13, 1.13))
    assert rd.equivalent("gelu(H)", "H + gelu(-H)")
    refuted = rd.equivalent("gelu(H)", "H*sigmoid(2*H)")
    assert "refuted" in str(refuted)
    system = rd.parse("-alpha*L@H + beta*gelu(H)")
    constant = rd.theory.one_sided(system)
    assert constant.value == sp.Rational(113, 100) * sp.Symbol("beta")
    assert not constant.is_sharp
    assert rd.existence(system).outcome == "global"
    assert rd.lipschitz_global(rd.parse("gelu(A@H)")).value == sp.Rational(113, 100)


def test_without_facts_answers_are_undecided() -> None:
    gelu()
    system = rd.parse("-alpha*L@H + beta*gelu(H)")
    for answer in (rd.lipschitz_global(system), rd.theory.lipschitz_local(system), rd.theory.one_sided(system)):
        assert answer.value is None
        assert answer.reason.startswith("undecided")
    assert rd.existence(system).outcome == "undecided"
    assert rd.equivalent("gelu(H)", "H + gelu(-H)")


def test_what_is_zero_in_disguise_is_not_denied() -> None:
    """asinh(sinh(x)) = x is not found by rewriting; nothing may be concluded from that."""
    rd.register_function("disguised", "asinh(sinh(x))")
    assert rd.equivalent("-L@H + disguised(H) - H", "-L@H").outcome == "undecided"
    with pytest.raises(rd.errors.Undecided, match="not known whether"):
        rd.theory.conserved(rd.parse("-L@H + disguised(H) - H"))
    assert not rd.theory.conserved(rd.parse("-L@H + disguised(H)")).exists
    gelu()
    assert not rd.theory.conserved(rd.parse("-L@H + beta*gelu(A@H)", assume="beta<0")).exists
    assert rd.theory.conserved(rd.parse("-alpha*L@gelu(H)")).exists


def test_ends_that_are_no_rationals_are_rounded_outwards() -> None:
    record = rd.register_function("erf", sp.erf(x), range=(-1, 1), slope=(0, 2 / sp.sqrt(sp.pi)), monotone="increasing")
    assert record.slope == Span.of(0, sp.Rational(1128380, 10**6), attained=True)
    assert record.monotone is Monotone.INCREASING
    system = rd.parse("-alpha*L@H - beta*erf(H)")
    bound = rd.lipschitz_global(rd.parse("erf(H)")).value
    assert bound == sp.Float("1.12838") > 2 / sp.sqrt(sp.pi)
    assert rd.existence(system).outcome == "global"
    assert rd.equivalent("erf(-H)", "-erf(H)")
    gelu()
    assert rd.equivalent("gelu(H)", "H*(1 + erf(H/sqrt(2)))/2")


def test_formulas_read_back_and_travel() -> None:
    gelu()
    normal = rd.parse("beta*gelu(H)").normal
    assert rd.theory.read_expression(str(normal)).func == normal.func
    assert pickle.loads(pickle.dumps(normal)) == normal
    assert rd.parse(sp.MatrixSymbol("H", sp.Symbol("n"), sp.Symbol("d")).applyfunc(FUNCTIONS["gelu"].sympy)).text == (
        "gelu(H)"
    )


# ---------------------------------------------------------------------- values
@pytest.mark.parametrize("torch_source", [None, "torch.nn.functional.gelu({})"])
def test_lowered_fields_agree_with_the_dense_evaluator_and_have_gradients(torch_source: str | None) -> None:
    gelu(torch=torch_source)
    rd.register_function("swish", "x/(1 + exp(-x))")
    system = rd.parse("-alpha*L@H + beta*gelu(A@H) - swish(H)*gelu(beta)")
    graph = rd.generators.ring(5)
    values = {"alpha": 0.7, "beta": -0.4}
    field = rd.lower(system, graph.operator(dtype=torch.float64), values)
    state = torch.linspace(-2, 2, 10, dtype=torch.float64).reshape(5, 2).requires_grad_()
    answer = field(0.0, state)
    dense = graph.operator(dtype=torch.float64).dense().numpy()
    wanted = evaluate(system.expression, {"A": dense, "H": state.detach().numpy(), **values})
    np.testing.assert_allclose(answer.detach().numpy(), wanted, rtol=1e-12, atol=1e-12)
    assert torch.autograd.gradcheck(lambda h: field(0.0, h), (state,))
    namespace: dict[str, Any] = {}
    exec(compile(field.source, "generated", "exec"), namespace)
    assert "field" in namespace


@pytest.mark.parametrize("definition", ["log(1 + x**2)", "2**x*erf(x)", "atan(x)/(2 + sin(x))", "(1 + x**2)**(1/4)"])
def test_formulas_that_are_proved_to_be_smooth(definition: str) -> None:
    name = "smooth_" + "".join(c if c.isalnum() else "_" for c in definition)
    record = rd.register_function(name, definition)
    field = rd.lower(f"{name}(H)", rd.generators.ring(4).operator(dtype=torch.float64))
    state = torch.linspace(-3, 3, 8, dtype=torch.float64).reshape(4, 2)
    np.testing.assert_allclose(field(0.0, state).numpy(), record.numpy(state.numpy()), rtol=1e-12)


def test_numpy_may_be_given() -> None:
    record = rd.register_function("hard", "relu(x) - relu(x - 1)", numpy=lambda v: np.clip(v, 0, 1))
    assert record.numpy(np.array([-1.0, 0.5, 3.0])).tolist() == [0.0, 0.5, 1.0]


# ---------------------------------------------------------------------- what is refused
@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"range": (0, None)}, r"expected f\(x\) in \[0, oo\) for gelu, got -.* at x = "),
        ({"range": (-1, 10)}, r"in \[-1, 10\] for gelu, got 12"),
        ({"slope": (0, 2)}, r"expected f'\(x\) in \[0, 2\]"),
        ({"slope": (-1, 1)}, r"expected f'\(x\) in \[-1, 1\]"),
        ({"monotone": "increasing"}, "to be increasing, got f"),
        ({"monotone": "nonincreasing"}, "to be nonincreasing"),
        ({"monotone": "upwards"}, "monotone among"),
        ({"numpy": np.tanh}, "numpy= to agree with the definition of gelu"),
        ({"range": (1, 0)}, "exchange them"),
        ({"range": 3}, r"as \(lower, upper\)"),
        ({"range": (0, "x")}, "end of the range"),
        ({"torch": "torch.erf"}, "source in torch"),
        ({"torch": "os.system({})"}, "source in torch"),
        ({"torch": "torch.erf({}"}, "source in torch"),
        ({"latex": r"\gelu{}{"}, "LaTeX"),
    ],
)
def test_false_facts_are_refused_with_a_witness(facts: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        gelu(**facts)
    assert "gelu" not in FUNCTIONS


def test_false_source_is_refused_when_it_is_lowered() -> None:
    rd.register_function("wrong_source", "x**2", torch="torch.abs({})")
    with pytest.raises(InvalidArgument, match="torch= of wrong_source to agree with its definition"):
        rd.lower("wrong_source(H)", rd.generators.ring(4).operator())


@pytest.mark.parametrize(
    ("definition", "words"),
    [
        ("log(x)", "H > 0 is not proved"),
        ("erf(x)**(1/3)", "> 0 is not proved"),
        ("log(x**2)", "> 0 is not proved"),
        ("Max(erf(x), 0)", "smooth functions"),
        ("Piecewise((erf(x), x > 0), (0, True))", "smooth functions"),
        (sp.Integral(sp.exp(-(x**2)), x), "smooth functions"),
        (sp.sqrt(-sp.S(2)) * sp.erf(x), "smooth functions"),
        ("erf(x)/x", "is not proved"),
        ("erf(abs(x))", "smooth functions"),
        ("floor(x)", "smooth functions"),
        ("tan(x)", "smooth functions"),
        ("erf(x)*y", "x, y"),
        ("A@x", "A@x"),
        ("2", "got '2'.*not depend"),
        (sp.Integer(3), "in one symbol"),
        (3, "text or sympy"),
    ],
)
def test_definitions_that_are_no_functions_of_all_reals(definition: Any, words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        rd.register_function("refused", definition)


@pytest.mark.parametrize("definition", ["__import__('os')", "x + ", "exp(x, x)", "open(x)"])
def test_definitions_that_cannot_be_read(definition: str) -> None:
    with pytest.raises(LanguageError):
        rd.register_function("refused", definition)


@pytest.mark.parametrize("name", ["tanh", "H", "lam", "where", "2x", "_f", "lambda"])
def test_names_that_the_language_needs(name: str) -> None:
    with pytest.raises(LanguageError):
        rd.register_function(name, "x**2")


def test_names_that_mean_something_else() -> None:
    for name in ("beta", "sinh"):
        with pytest.raises(InvalidArgument, match="_1"):
            rd.register_function(name, "x**2")


def test_a_name_keeps_its_meaning() -> None:
    rd.register_function("steady", "x**2")
    with pytest.raises(LanguageError, match="reserved for an elementwise function"):
        rd.register_function("steady", "x**2")
    rd.vocabulary.unregister_function("steady")
    with pytest.raises(LanguageError, match="a known function"):
        rd.parse("steady(H)")
    with pytest.raises(InvalidArgument, match="the definition that 'steady' had before"):
        rd.register_function("steady", "x**3")
    rd.register_function("steady", "x**2")
    with pytest.raises(UnknownName):
        rd.vocabulary.unregister_function("nobody")
    with pytest.raises(InvalidArgument, match="built in"):
        rd.vocabulary.unregister_function("exp")


def test_a_registered_name_is_taken_for_coefficients_and_declarations() -> None:
    rd.register_function("bump", "x**2")
    with pytest.raises(LanguageError, match="reserved for an elementwise function"):
        rd.parse("bump*H", ["bump"])
    with pytest.raises(LanguageError, match="reserved for an elementwise function"):
        rd.parse("bump(H) where bump = H")
