"""Functions that are declared with an equation: `g(H) where g = H**3/(1 + H**2)`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import rdgraph as rd
from rdgraph.errors import AssumptionError, InvalidArgument, LanguageError
from rdgraph.language.printer import to_text
from rdgraph.language.reader import MAX_LENGTH
from rdgraph.language.unfolding import MAX_NODES
from rdgraph.theory.equality.dense_oracle import evaluate
from tests.property_examples import examples

HILL = "-alpha*L@H + beta*g(H) where g = H**3/(1 + H**2)"


def test_a_declared_function_is_kept_in_print_and_written_out_for_proofs() -> None:
    system = rd.parse(HILL)
    assert str(system) == HILL
    assert rd.parse(str(system)) == system
    assert system.text == "-alpha*L@H + beta*(H**3/(1 + H**2))"
    assert rd.equivalent(system, "-alpha*L@H + beta*H**3/(1 + H**2)")
    assert rd.parse(system.text) != system
    assert system.normal == rd.parse(system.text).normal


def test_latex_names_the_function_and_defines_it() -> None:
    text = rd.parse(HILL).latex()
    name = r"\operatorname{g}\left(\mathbf{H}\right)"
    assert text == (
        rf"-\alpha \mathbf{{L}} \mathbf{{H}} + \beta {name},\quad {name} = "
        r"\frac{\mathbf{H}^{\circ 3}}{1 + \mathbf{H}^{\circ 2}}"
    )
    assert r"\operatorname{g\_1}" in rd.parse("g_1(H) where g_1 = H**2").latex()


def test_definitions_use_coefficients_and_earlier_functions() -> None:
    system = rd.parse("f(A@H) - g(2*H) where g = k*tanh(H), f = g(H)**2 - g(-H), k channel, k negative")
    assert rd.parse(str(system)) == system
    assert set(system.coefficients) == {"k"}
    plain = rd.parse("(k*tanh(A@H))**2 - k*tanh(-(A@H)) - k*tanh(2*H)", {"k": "channel"}, assume="k<0")
    assert rd.equivalent(system, plain)
    assert system.assumptions.sign("k") == "negative"


def test_coefficients_are_replaced_and_declared_inside_definitions() -> None:
    system = rd.parse("g(H) where g = k*H**2, k channel")
    assert str(system.replace(k=3)) == "g(H) where g = 3*H**2"
    assert str(rd.parse("g(H) - beta*H where g = beta*H**2").declared({}, ["beta<0"])) == (
        "g(H) - beta*H where g = beta*H**2, beta negative"
    )


def test_what_is_not_called_is_left_out() -> None:
    assert str(rd.parse("f(H) where g = H**2, h1 = H**3, f = g(H) + 1")) == "f(H) where g = H**2, f = g(H) + 1"
    assert str(rd.parse("BS where g = H**2")) == str(rd.parse("BS"))
    assert rd.parse("beta*H where g = H**2") == rd.parse("beta*H")


def test_a_function_of_a_coefficient() -> None:
    system = rd.parse("g(beta)*H where g = H**2 + 1")
    assert system.symbol() == sp.Symbol("beta") ** 2 + 1
    assert rd.parse(str(system)) == system


def test_the_spelling_belongs_to_its_expression() -> None:
    system = rd.parse(HILL)
    with pytest.raises(InvalidArgument, match="spelling"):
        replace(system.equations[0], expression=rd.parse("H").expression)
    assert str(rd.theory.euler_map(system, step=1)) == "H + 1*(-alpha*L@H + beta*(H**3/(1 + H**2)))"


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("g(H) where g = A@H", 16, "an operator or a matrix product"),
        ("g(H) where g = H@W", 16, "an operator or a matrix product"),
        ("g(H) where g = H*H0", 16, "the letter H0"),
        ("g(H) where g = M*H", 16, "the letter M"),
        ("g(H) where g = 2", 16, "an expression without H"),
        ("g(H) where g = beta", 16, "an expression without H"),
        ("a(H) where a = H**2", 12, "'a', a letter of the equation"),
        ("k(H) where k channel, k = H", 23, "'k', a letter of the equation"),
        ("g(H) where g = H, g = H**2", 19, "'g', declared twice"),
        ("tanh(H) where tanh = H", 15, "reserved for an elementwise function"),
        ("lam(H) where lam = H", 14, "reserved for an eigenvalue"),
        ("H*g where g = H", 3, "g without brackets"),
        ("g(H, H) where g = H", 4, "','"),
        ("g(L) where g = H", 1, "operator"),
        ("g(H) where g = f(H), f = H", 16, "declared after it"),
        ("g(H) where g = g(H)", 16, "calls itself"),
        ("g(H) where g = H +* 2", 19, "'*'"),
        ("g(H) where g = H**40", 17, "40"),
        ("g(H) where g =", 15, "nothing"),
        ("f(H) where g = H", 1, "'f'"),
        ("g(H) where beta<0, g H", 19, "g H"),
    ],
)
def test_refusals_point_at_the_place(text: str, column: int, words: str) -> None:
    with pytest.raises(LanguageError) as caught:
        rd.parse(text)
    assert words in caught.value.got, caught.value.got
    assert caught.value.column == column, str(caught.value)


def test_declared_coefficients_clash_too() -> None:
    with pytest.raises(LanguageError, match="a letter of the equation"):
        rd.parse("k(H) where k = H", ["k"])
    with pytest.raises(AssumptionError, match="unknown name 'g'"):
        rd.parse("g(H) where g = H", assume="g<0")


@pytest.mark.parametrize(
    "text",
    [
        "f(f(f(f(f(f(f(f(H)))))))) where f = H*H*H*H + H*H*H",
        f"{'f(' * 30}H{')' * 30} where f = H + H",
        "f9(H) where f0 = H*H*H*H, " + ", ".join(f"f{k} = f{k - 1}(f{k - 1}(H))" for k in range(1, 10)),
        f"{'f(' * 50}H{')' * 50} where f = ((((((((H + 1)))))))) + 1 + 1 + 1",
        f"{'f(' * 50}H{')' * 50} where f = H + {'k' * 100}, {'k' * 100} scalar",
    ],
)
def test_functions_that_explode_are_refused_at_once(text: str) -> None:
    with pytest.raises(LanguageError, match=f"at most {MAX_LENGTH} characters with functions written out"):
        rd.parse(text)


def test_what_fits_before_printing_must_fit_after_it() -> None:
    body = "+".join(["H"] * 1900)
    assert len(body) < MAX_LENGTH <= MAX_NODES
    with pytest.raises(LanguageError):
        rd.parse(f"g(H) where g = {body}")


DEFINITIONS = st.recursive(
    st.sampled_from(["H", "H", "2", "0.5", "beta", "k"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from([" + ", " - ", "*"]), inner).map(lambda t: f"({t[0]}{t[1]}{t[2]})"),
        st.tuples(st.sampled_from(["tanh", "sin", "abs", "relu"]), inner).map(lambda t: f"{t[0]}({t[1]})"),
        inner.map(lambda t: f"({t})**2"),
        inner.map(lambda t: f"-{t}"),
    ),
    max_leaves=6,
)


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(DEFINITIONS, min_size=1, max_size=3), st.data())
def test_written_out_means_what_was_declared(bodies: list[str], data: st.DataObject) -> None:
    """Round trip, and values equal to those of the functions applied one by one."""
    functions = [f"f{i}" for i in range(len(bodies))]
    texts = []
    for i, body in enumerate(bodies):
        earlier = data.draw(st.sampled_from(["", *(f" + f{j}(H)" for j in range(i))]))
        texts.append(f"f{i} = H*({body}){earlier}")
    outer = data.draw(st.sampled_from(functions))
    system = rd.parse(f"-L@H + {outer}(A@H) where {', '.join(texts)}, k scalar")
    assert rd.parse(str(system)) == system
    generator = np.random.default_rng(3)
    values = {"A": generator.normal(size=(3, 3)), "H": generator.normal(size=(3, 2)), "beta": 0.7, "k": -1.2}
    assert system.spelling is not None
    definitions = dict(system.spelling.functions)

    def applied(name: str, x: np.ndarray) -> np.ndarray:
        text = to_text(definitions[name])
        local = {f: (lambda y, f=f: applied(f, y)) for f in definitions}
        known = {"tanh": np.tanh, "sin": np.sin, "abs": np.abs, "relu": lambda y: np.maximum(y, 0)}
        return eval(text, {"H": x, "beta": 0.7, "k": -1.2, **known, **local})

    state = values["H"] - values["A"] @ values["H"]
    wanted = -state + applied(outer, values["A"] @ values["H"])
    np.testing.assert_allclose(evaluate(system.expression, values), wanted, rtol=1e-9, atol=1e-9)
