"""Lipschitz constants written down by hand, term by term: exact classes, chain rule, remarks."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy as sp

import rdgraph as rd
from rdgraph.errors import NotApplicable
from rdgraph.reals.judge import BOUNDED
from rdgraph.theory.lipschitz import MAX_SIGN_CHOICES

QUESTIONS = {"global": rd.lipschitz_global, "local": rd.theory.lipschitz_local, "one-sided": rd.theory.one_sided}
UPPER = "upper bound, not claimed to be attained"
alpha, beta, R, s, norm_W, k = sp.symbols("alpha beta R s norm_W k")


@pytest.mark.parametrize(
    ("text", "question", "normalisation", "value", "note"),
    [
        ("-alpha*L@H", "global", "symmetric", 2 * alpha, ""),
        ("-alpha*L@H", "global", "row", 2 * alpha, ""),
        ("-alpha*L@H", "one-sided", "symmetric", 0, ""),
        ("-alpha*L@H", "one-sided", "column", 0, ""),
        ("alpha*L@H", "one-sided", "row", 2 * alpha, ""),
        ("-alpha*H + beta*A@A@H", "global", "row", alpha + beta, ""),
        ("-alpha*H - beta*A@A@H", "one-sided", "row", beta - alpha, ""),
        ("-alpha*H + beta*A@H", "global", "symmetric", alpha + beta, ""),
        ("-alpha*H + beta*A@H", "one-sided", "symmetric", beta - alpha, ""),
        ("-alpha*L@H + beta*H0", "global", "symmetric", 2 * alpha, ""),
        ("beta*tanh(A@H)", "global", "symmetric", beta, UPPER),
        ("tanh(2*A@H) - H", "one-sided", "row", 1, UPPER),
        ("A@H@W", "global", "symmetric", norm_W, f"{UPPER}; norm_W is the norm of the matrix"),
        ("A@H@W@W", "global", "row", norm_W**2, f"{UPPER}; norm_W is the norm of the matrix"),
        ("(A@H)*(H@W)", "local", "row", 2*R*norm_W, f"{UPPER}; norm_W is the norm of the matrix"),
        ("H*(A@H)", "local", "column", R*s + R, f"{UPPER}; s is the largest row sum of A"),
        ("tanh(H)*(A@H)", "local", "column", R*s + 1, f"{UPPER}; s is the largest row sum of A"),
        ("H*(A@H)", "local", "symmetric", R + R * s, f"{UPPER}; s is the largest row sum of A"),
        ("H*(A@H)", "local", "row", 2 * R, UPPER),
        ("H*(A@A@H)", "local", "symmetric", R + R * s**2, f"{UPPER}; s is the largest row sum of A"),
        ("M*(A@H)*H", "local", "row", 2 * R, UPPER),
        ("(A@H)**2", "local", "row", 2 * R, UPPER),
        ("(A@H)**3", "local", "symmetric", 3 * R**2 * s**2, f"{UPPER}; s is the largest row sum of A"),
        ("exp(A@H)", "local", "row", sp.exp(R), UPPER),
        ("exp(A@H + H0)", "local", "row", sp.exp(2 * R), UPPER),
        ("tanh(H)*(A@H)", "local", "row", R + 1, UPPER),
        ("beta*H0*(A@H)", "local", "row", R * beta, UPPER),
        ("k*tanh(A@H) where k channel", "global", "row", k, UPPER),
        ("sigmoid(A@H)", "global", "row", sp.Rational(1, 4), UPPER),
        ("relu(A@H) + sin(A@H)", "global", "symmetric", 2, UPPER),
        ("A@tanh(A@H)", "global", "row", 1, UPPER),
        ("-L@H + tanh(A@H)", "global", "row", 3, UPPER),
    ],
)  # fmt: skip
def test_constants_by_hand(text: str, question: str, normalisation: str, value: sp.Expr, note: str) -> None:
    answer = QUESTIONS[question](rd.parse(text), normalisation)
    assert answer.value is not None
    letters = {x: sp.Symbol(x.name, positive=True) for x in answer.value.free_symbols | sp.sympify(value).free_symbols}
    assert sp.simplify(answer.value.subs(letters) - sp.sympify(value).subs(letters)) == 0
    assert answer.reason == note
    assert answer.is_sharp is (UPPER not in note)
    assert answer.norm == {"symmetric": "2-norm", "row": "inf-norm", "column": "1-norm"}[normalisation]


@pytest.mark.parametrize(
    ("text", "question", "normalisation", "exact", "note"),
    [
        ("-alpha*L@H + beta*H**2", "global", "symmetric", True,
         "no finite Lipschitz constant for all states: the slope 2*H*beta is unbounded"),
        ("-alpha*L@H + beta*H**2", "one-sided", "row", True,
         "no finite one-sided constant for all states: the slope 2*H*beta is unbounded"),
        ("H*(A@H)", "global", "symmetric", True,
         "no finite Lipschitz constant for all states: at states equal in all nodes the slopes of H*(A@H) grow"),
        ("(A@H)*(H@W)", "local", "column", False,
         "undecided: no finite bound for a Lipschitz constant on |h| <= R was found; "
         "tried exact slopes and the chain rule"),
        ("H*(A@H)", "one-sided", "row", True,
         "no finite one-sided constant for all states: at states equal in all nodes the slopes of H*(A@H) grow"),
        ("exp(A@H)", "global", "row", True,
         "no finite Lipschitz constant for all states: at states equal in all nodes the slopes of exp(A@H) grow"),
        ("(A@H)*(H@W)", "local", "symmetric", False, None),
        ("(A@H)**2", "global", "row", True,
         "no finite Lipschitz constant for all states: at states equal in all nodes the slopes of (A@H)**2 grow"),
    ],
)  # fmt: skip
def test_constants_that_are_absent(text: str, question: str, normalisation: str, exact: bool, note: str | None) -> None:
    answer = QUESTIONS[question](rd.parse(text), normalisation)
    assert (answer.value, answer.is_sharp) == (None, exact)
    assert answer.reason == note if note else answer.reason.startswith("undecided: no finite bound")


def test_signs_that_are_open_are_all_tried() -> None:
    """Both signs of a real coefficient, and one sign of the others; |c_1| + |c_2| either way."""
    answer = rd.lipschitz_global(rd.parse("beta*A@H - alpha*A@A@H where beta real"), "row").value
    assert answer is not None
    for value in (-3, 0, 5):
        assert answer.subs({"alpha": 2, "beta": value}) == 2 + abs(value)
    down = rd.lipschitz_global(rd.parse("beta*A@H + H where beta <= 0"), "row").value
    assert down is not None
    assert down.subs("beta", -3) == 4


def test_many_open_signs_are_absolute_values() -> None:
    names = [f"c{i}" for i in range(MAX_SIGN_CHOICES + 1)]
    text = " + ".join(f"{n}*{'A@' * (i + 1)}H" for i, n in enumerate(names))
    answer = rd.lipschitz_global(
        rd.parse(f"{text} where {', '.join(f'{n} scalar, {n} real' for n in names)}"), "row"
    ).value
    assert answer is not None
    values = {n: (-1) ** i * (i + 1) for i, n in enumerate(names)}
    assert answer.subs(values) == sum(range(1, len(names) + 1))


def test_bounds_that_rest_on_interval_arithmetic_say_so() -> None:
    """Whether e^2 exceeds the 2 of the diffusion is decided by an enclosure of e^2."""
    plain, bounded = (rd.theory.lipschitz_local(rd.parse(f"-L@H + {c}*tanh(H)"), "row") for c in ("7", "exp(2)"))
    assert (plain.value, plain.reason) == (7, "")
    assert (bounded.value, bounded.reason) == (sp.exp(2), BOUNDED)


@pytest.mark.parametrize("question", QUESTIONS)
def test_other_normalisations_are_refused(question: str) -> None:
    with pytest.raises(NotApplicable) as problem:
        QUESTIONS[question](rd.parse("-L@H"), "none")
    assert str(problem.value) == (
        "expected a normalisation among symmetric, row, column, got 'none'; "
        "without a norm in which |A| <= 1 there is no bound that holds for every graph"
    )


def test_formulas_that_are_not_defined_everywhere_are_no_answers() -> None:
    """At alpha = 1 the generator loses its highest power, and the formula for its extremum divides by zero."""
    answer = rd.theory.lipschitz_local(rd.parse("-c*(A - A@A)@H - (1 - alpha)*A@L@A@H where c <= 2, c*alpha <= 1"))
    assert answer.value is None
    assert answer.reason == "undecided: a candidate for the maximum is not defined where 27*(alpha - 1)**2 = 0"


@pytest.mark.parametrize("normalisation", ["symmetric", "row", "column"])
@pytest.mark.parametrize(
    ("text", "function"),
    [
        ("tanh((A@H)**2)", "tanh(x**2)"), ("A@tanh(H - H**3)", "tanh(x - x**3)"), ("tanh(H**5 + H)", "tanh(x**5 + x)"),
        ("exp(-(A@A@H)**2)", "exp(-x**2)"), ("sin(A@H)/(1 + (A@H)**2)", "sin(x)/(1 + x**2)"),
        ("(A@H)/(1 + (A@H)**2)", "x/(1 + x**2)"), ("(A@H)**2/(1 + (A@H)**4)", "x**2/(1 + x**4)"),
        ("H**3/(2 + H**4)", "x**3/(2 + x**4)"),
    ],
)  # fmt: skip
def test_functions_of_one_operand_have_the_constant_of_their_slope(
    text: str, function: str, normalisation: str
) -> None:
    x = sp.Symbol("x", real=True)
    places = np.linspace(-6, 6, 240001)
    largest = float(np.abs(sp.lambdify(x, sp.diff(sp.sympify(function, {"x": x}), x))(places)).max())
    answer = rd.lipschitz_global(f"beta*{text}", normalisation)
    assert answer.value is not None
    value = float(answer.value.subs(beta, 1))
    assert value >= largest
    if answer.value.has(sp.Float):  # five digits, rounded up
        unit = 10.0 ** (math.floor(math.log10(largest)) - 4)
        assert value == pytest.approx(math.ceil(largest / unit) * unit, rel=1e-12)
    else:
        assert value == pytest.approx(largest, rel=1e-8)


def test_bounds_with_thousands_of_digits_are_not_shown() -> None:
    """On wide intervals the parts of this exponent are far apart: where time runs out early, no bound is of any use."""
    constant = rd.lipschitz_global("exp(-((A@H)/4 + (A@H)**2 + (A@H)**3/2)**2)", "row")
    x = np.linspace(-4, 4, 100_001)
    slope = np.abs(np.gradient(np.exp(-((x / 4 + x**2 + x**3 / 2) ** 2)), x)).max()
    assert constant.status == ("undecided" if constant.value is None else "bounded")
    assert constant.value is None or slope <= float(constant.value) < 100 * slope


@pytest.mark.parametrize("text", ["tanh(H*(A@H))", "tanh((A@H)*(A@A@H))", "tanh(H0*(A@H))", "sin((A@H)**2)", "1/(A@H)"])
def test_functions_of_two_operands_and_steep_ones_have_no_constant(text: str) -> None:
    """For tanh(x*y) the slope in y is x at y = 0."""
    assert rd.lipschitz_global(text, "row").value is None


def test_bounds_are_decimals_in_every_answer() -> None:
    text = "alpha*tanh((A@H)**2)"
    assert str(rd.lipschitz_global(text).value) == "1.1132*alpha"
    assert str(rd.step_limit(text, "euler", "row").value) == "1.7966/alpha"
    assert "K = 1.1132*|alpha| = 1.113" in dict(rd.analyse(text).headlines)["method"]


def test_what_an_operator_makes_of_small_states_may_be_large() -> None:
    """On a star with 9 leaves the symmetric A has the row sum 3: |h| <= 0.1 leaves A@H up to 0.3 in the centre."""
    answer = rd.theory.lipschitz_local(rd.parse("(A@H)**2/(1 + (A@H)**2)"), "symmetric").value
    assert answer is not None
    assert float(answer.subs({R: 0.1, s: 3})) >= 2 * 0.3 / (1 + 0.3**2) ** 2
