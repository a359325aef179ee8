"""Rulings against sampling: "impossible" is never refuted, points satisfy the conditions, questions can be exported."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time
from typing import Any

import numpy as np
import pytest
import sympy as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rdgraph.errors import Undecided
from rdgraph.interrupts import patient
from rdgraph.reals import judge
from rdgraph.reals.enclosure import NotEnclosed, bounds, enclose, holds, sign_of
from rdgraph.reals.judge import Possibility, Ruling, always, possible, recorded, remembered, statistics, within_effort
from rdgraph.reals.polynomials import factors, reduced
from rdgraph.reals.rewriting import rewrite
from rdgraph.reals.smtlib import translate
from rdgraph.vocabulary.functions import relu, sigmoid, softplus
from tests.property_examples import examples

A, B = sp.symbols("a b", positive=True)
X, Y, Z = sp.symbols("x y z", real=True)
FUNCTIONS = (sp.tanh, sigmoid, sp.exp, softplus, sp.sin, sp.cos, relu, sp.Abs)
NUMPY = [
    {
        "relu": lambda x: np.maximum(x, 0),
        "sigmoid": lambda x: 0.5 * (1 + np.tanh(0.5 * x)),
        "softplus": lambda x: np.logaddexp(0, x),
    },
    "numpy",
]


@pytest.mark.parametrize(
    ("claim", "conditions"),
    [
        (sp.Eq(relu((A - B) * X), (A - B) * relu(X)), [A >= B]),
        (X**3 + Y**3 + Z**3 >= 3 * X * Y * Z, [X >= 0, Y >= 0, Z >= 0]),
        ((A - B) ** 2 / (4 * B) >= (B - A) * X - B * X**2, [B > A, X >= 0, X <= 2]),
        (sp.Eq(sp.sqrt((A - B) ** 2), A - B), [A >= B]),
        (sp.Max(X, Y) + sp.Min(X, Y) <= X + Y, []),
        (sp.Piecewise((X, X > 0), (-X, True)) >= 0, []),
        (sp.tanh(X) < 1, []),
        (sp.Eq(2 * sigmoid(2 * X), 1 + sp.tanh(X)), []),
        (sp.Eq(softplus(X) - softplus(-X), X), []),
        (sp.Eq(sp.cos(2 * X), 1 - 2 * sp.sin(X) ** 2), []),
        (sp.sin(X) * sp.cos(X) <= sp.Rational(1, 2), []),
        (sp.exp(X) >= X**2, [X > 0]),
        (X * sp.tanh(X) >= 0, []),
        (softplus(X) > X, []),
        (sp.Rational(22, 7) > X, [sp.pi >= X]),
        (sp.Lt(X**5 - X - 1, 0), [sp.CRootOf(Z**5 - Z - 1, 0) > X, X > 0]),
    ],
    ids=str,
)
def test_what_is_true_is_proved(claim: sp.Basic, conditions: list[sp.Basic]) -> None:
    assert always(claim, *conditions) is True


@pytest.mark.parametrize(
    ("claim", "conditions"),
    [
        (sp.Eq(relu(X), sp.Abs(X)), []),
        (sp.Eq(relu((A - B) * X), (A - B) * relu(X)), []),
        (sp.Eq(sp.sqrt(X**2), X, evaluate=False), []),
        (X**2 < 2, [X > 0, sp.Rational(3, 2) > X]),
        (sp.tanh(X) < sp.Rational(1, 2), []),
        (sp.sin(X) * sp.cos(X) <= sp.Rational(49, 100), []),
        (sp.sin(A) >= 0, []),
        (sp.Rational(314, 100) > X, [sp.pi >= X]),
        (sp.Or(X > 0, sp.sqrt(-X) > 5), [X < 0]),
        (sp.Ne(X**2, 2), []),
    ],
    ids=str,
)
def test_what_is_false_has_a_point(claim: sp.Basic, conditions: list[sp.Basic]) -> None:
    ruling = possible(sp.Not(claim), *conditions)
    assert ruling.outcome is Possibility.POSSIBLE
    assert ruling.point is not None
    assert holds(claim, ruling.point, to_the_last_digit=False) is False
    assert all(holds(c, ruling.point, to_the_last_digit=False) for c in conditions)


@pytest.mark.parametrize(
    "condition",
    [
        sp.Gt(sp.sqrt(-1 - A), 0, evaluate=False),
        sp.And(sp.Ne(1 / (X - Y), 2), sp.Eq(X, Y)),
        sp.Not(sp.Gt(sp.sqrt(-1 - A), 0, evaluate=False)),
    ],
    ids=str,
)
def test_what_is_undefined_is_not_possible(condition: sp.Basic) -> None:
    assert possible(condition).outcome is Possibility.IMPOSSIBLE


def test_a_branch_that_does_not_apply_need_not_be_defined() -> None:
    pieces = sp.Piecewise((sp.sqrt(X), X >= 0), (-X, True))
    assert possible(sp.Gt(pieces, 1), X < 0).outcome is Possibility.POSSIBLE
    assert always(pieces >= 0) is True


@st.composite
def expressions(draw: Any, depth: int = 2) -> sp.Expr:
    """Sums and products of x, y, small numbers and functions of them."""
    if depth == 0:
        return draw(st.sampled_from([X, Y, sp.Integer(1), sp.Rational(-1, 2), 2 * X, X / 3, X - Y]))
    kind = draw(st.sampled_from(["add", "multiply", "call", "leaf", "power"]))
    if kind == "leaf":
        return draw(expressions(depth=0))
    if kind == "call":
        return draw(st.sampled_from(FUNCTIONS))(draw(expressions(depth=0)))
    if kind == "power":
        return draw(expressions(depth=depth - 1)) ** draw(st.integers(2, 3))
    left, right = draw(expressions(depth=depth - 1)), draw(expressions(depth=depth - 1))
    return left + right if kind == "add" else left * right


@settings(max_examples=examples(60))
@given(expressions(), expressions(depth=1), st.integers(0, 2**20))
def test_impossible_is_never_refuted(left: sp.Expr, right: sp.Expr, seed: int) -> None:
    """Sampled states never satisfy conditions that were called impossible; points that are claimed satisfy them."""
    conditions = (sp.Gt(left, 0, evaluate=False), sp.Ge(right, -1, evaluate=False))
    ruling = possible(*conditions)
    states = np.random.default_rng(seed).normal(scale=3, size=(2, 2000))
    values = [sp.lambdify((X, Y), e, NUMPY)(*states) * np.ones(2000) for e in (left, right)]
    hits = (values[0] > 1e-9) & (values[1] >= -1 + 1e-9)
    if ruling.outcome is Possibility.IMPOSSIBLE:
        assert not hits.any(), states[:, hits][:, 0]
    if ruling.point is not None:
        assert all(holds(c, ruling.point, to_the_last_digit=False) for c in conditions)


def test_polynomial_questions_always_check() -> None:
    """A point that the solver gives and we cannot confirm would be a defect of one of the two."""
    for index in range(-3, 4):
        possible(sp.Eq(X**3 - index * X * Y + 1, 0), index < Y, X**2 + Y**2 < 20)
    assert statistics.asked > 0
    assert statistics.unchecked == 0


# ---------------------------------------------------------------------- SMT-LIB
def test_recorded_questions_can_be_checked_elsewhere() -> None:
    import z3

    asked: list[int] = []

    @remembered(8)
    def question(n: int) -> bool | None:
        asked.append(n)
        return always(sp.sqrt(A**2 + n) > A)

    assert question(3) is True
    assert question(3) is True
    assert asked == [3]
    with recorded() as obligations:
        assert question(3) is True
    assert asked == [3, 3], "an answer that is remembered hides its questions"
    assert [o.outcome for o in obligations] == [Possibility.IMPOSSIBLE]
    solver = z3.Solver()
    solver.from_string(obligations[0].smt2)
    assert str(solver.check()) == "unsat"
    assert obligations[0].smt2.startswith("(set-logic QF_NRA)")


def test_letters_that_share_a_name_stay_apart() -> None:
    first, second = sp.Dummy("x", real=True), sp.Dummy("x", real=True)
    assert possible(first > 1, second < 0).outcome is Possibility.POSSIBLE
    assert len(translate([first > second]).letters) == 2
    assert possible(sp.Symbol("and", real=True) > 1, sp.Symbol("let", real=True) < 1).outcome is Possibility.POSSIBLE


def test_a_point_where_something_is_not_real_is_no_point() -> None:
    assert holds(sp.Gt(sp.Max(sp.log(X), Y), 0), {X: sp.Integer(-2), Y: sp.Integer(1)}) is None


def test_functions_nobody_knows_are_unknown() -> None:
    ruling = possible(sp.gamma(X) > 2)
    assert ruling.outcome is Possibility.UNKNOWN
    assert "gamma" in ruling.reason


def test_bounds_of_numbers_are_said() -> None:
    assert possible(X * sp.exp(2) > 1, sp.Rational(1, 10) > X).bounded
    assert not possible(A + B < 0).bounded


def test_rewriting_shares_letters() -> None:
    rewritten = rewrite([sp.exp(X / 2) + sp.exp(2 * X / 3) > sp.exp(-X)])
    (condition,) = rewritten.conditions
    (y,) = condition.free_symbols
    assert sp.simplify(condition.lhs - condition.rhs - (y**3 + y**4 - y**-6)) == 0
    assert rewritten.origins == ((X, 6 * sp.log(y)),)


# ---------------------------------------------------------------------- enclosures
@settings(max_examples=examples(60))
@given(expressions(depth=3), st.fractions(-3, 3, max_denominator=20), st.fractions(-3, 3, max_denominator=20))
def test_enclosures_hold_the_value(expression: sp.Expr, x: Any, y: Any) -> None:
    number = expression.xreplace({X: sp.Rational(x), Y: sp.Rational(y)})
    try:
        lower, upper = bounds(number)
    except NotEnclosed:
        assume(False)
    value = sp.N(number, 40)
    slack = sp.Float("1e-30", 40) * (1 + abs(value))
    assert lower - slack <= value <= upper + slack
    assert upper - lower <= sp.Float("1e-25", 40) * (1 + abs(value))


def test_signs_of_close_numbers() -> None:
    assert sign_of(sp.exp(sp.pi * sp.sqrt(163)) - 262537412640768744) == -1
    assert sign_of(sp.sqrt(2) * sp.sqrt(3) - sp.sqrt(6)) == 0
    assert sign_of(sp.sin(sp.S(1)) ** 2 + sp.cos(sp.S(1)) ** 2 - 1) is None
    assert sign_of(sp.log(sp.S(-1))) is None
    with pytest.raises(NotEnclosed, match="not a finite real number"):
        enclose(sp.Pow(sp.sin(sp.S(1)) ** 2 + sp.cos(sp.S(1)) ** 2 - 1, -1))


# ---------------------------------------------------------------------- polynomials
@settings(max_examples=examples(40))
@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=3))
def test_factors_multiply_back(terms: list[tuple[int, int, int]]) -> None:
    polynomial = sp.Add(*(c * X**i * Y**j for c, i, j in terms)) * (X - 2 * Y)
    assume(sp.expand(polynomial) != 0)
    product = sp.Mul(*(f**k for f, k in factors(sp.expand(polynomial))))
    assert sp.cancel(polynomial / product).is_number
    top, bottom = reduced(polynomial / (X**2 - 4 * Y**2))
    assert sp.cancel(top / bottom - polynomial / (X**2 - 4 * Y**2)) == 0
    assert sp.gcd(top, bottom).is_number


def test_no_coefficient_is_left_out_of_a_projection() -> None:
    """z3 4.15 with its own settings calls these impossible: it leaves coefficients out of its projections."""
    speed = -4 * B - A**2 * (A - B - 4 / A) + A * (A - B - 4 / A) ** 2 + 4 * A - 16 / A
    assert sp.simplify(speed - B * (A * B - A**2 + 4)) == 0
    ruling = possible(sp.Lt(speed, 0, evaluate=False))
    assert ruling.outcome is Possibility.POSSIBLE
    assert ruling.point is not None
    assert holds(sp.Lt(B * (A * B - A**2 + 4), 0, evaluate=False), ruling.point)
    assert possible(sp.Lt(speed, 0, evaluate=False), A <= 2).outcome is Possibility.IMPOSSIBLE


def test_an_effort_is_the_same_whatever_was_asked_before() -> None:
    claims = [X**2 + k * X + k**2 >= 0 for k in range(1, 6)]

    def count() -> int:
        return sum(always(claim) is True for claim in claims)

    assert within_effort(5, count) == 5
    for _ in range(2):
        with pytest.raises(Undecided, match="effort"):
            within_effort(4, count)
    with pytest.raises(Undecided, match="effort"):
        within_effort(4, lambda: within_effort(9, count))
    assert count() == 5


# ---------------------------------------------------------------------- Ctrl-C
def _long_question(monkeypatch: pytest.MonkeyPatch) -> Ruling:
    """The ruling on conditions that keep z3 busy for two seconds; a Ctrl-C arrives after the first third of one."""
    units, timer = judge._units, threading.Timer(1 / 3, os.kill, (os.getpid(), signal.SIGINT))

    def starting(solver: Any) -> int:
        if timer.ident is None:
            timer.start()
        return units(solver)

    monkeypatch.setattr(judge, "EFFORTS", (2**31, 2**31))
    monkeypatch.setattr(judge, "SECONDS", 2.0)
    monkeypatch.setattr(judge, "_units", starting)
    v, w, x, y, z = sp.symbols("v w x y z", real=True)
    return possible(
        sp.Eq(x**7 * y**5 + z**6 * w**3 * v - 3 * x * y * z + w**5, 1),
        y**7 * z - x**3 * w**2 + v**5 > 2,
        z**5 - w**7 * x + y * v**3 < -1,
        x * y * z * w * v > 3,
        sp.Eq(x**9 + y**9 + z**9 + w**9, v**7),
        x**4 + y**4 < z**4 * w,
        thorough=False,
    )


def test_ctrl_c_reaches_python_while_the_solver_works(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KeyboardInterrupt):
        _long_question(monkeypatch)


def test_a_deferred_ctrl_c_does_not_end_a_question(monkeypatch: pytest.MonkeyPatch) -> None:
    started, rulings = time.monotonic(), []
    with pytest.raises(KeyboardInterrupt), patient():
        rulings.append(_long_question(monkeypatch))
    assert [ruling.outcome for ruling in rulings] == [Possibility.UNKNOWN]
    assert time.monotonic() - started > 2.3  # a third of a second before the signal and two after it


@pytest.mark.parametrize(
    ("problem", "expected"), [(KeyboardInterrupt, KeyboardInterrupt), (TypeError, ctypes.ArgumentError)]
)
def test_ctrl_c_while_ctypes_reads_arguments_is_a_ctrl_c(
    problem: type[BaseException], expected: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """ctypes turns every exception of its readers into an ArgumentError that keeps the name alone."""

    def read(*_: object) -> None:
        raise ctypes.ArgumentError(f"argument 2: {problem.__name__}: ")

    monkeypatch.setattr(judge, "_checked", read)
    with pytest.raises(expected):
        possible(sp.Gt(A**2 + 7 * B, 3, evaluate=False))
