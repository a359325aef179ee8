"""How a ruling is found: attempts, samples, points, reasons, records and counts."""

from __future__ import annotations

import builtins
import random
from typing import Any

import pytest
import sympy as sp

from rdgraph.errors import AssumptionError, Undecided
from rdgraph.reals import judge
from rdgraph.reals.basis import watched
from rdgraph.reals.budget import limited
from rdgraph.reals.domain import Domain, Sign
from rdgraph.reals.judge import Possibility, always, possible, recorded, remembered, statistics
from tests.naming import shown

A, B = sp.symbols("a b", positive=True)
X, Y = sp.symbols("x y", real=True)
N, Q, M = sp.Symbol("n", negative=True), sp.Symbol("q", nonnegative=True), sp.Symbol("m", nonpositive=True)


def no_square(number: int) -> sp.Basic:
    """An impossible question that sympy does not decide by itself, a new one for every number."""
    return sp.Lt(X**2 - X * Y + Y**2, -number)


# ---------------------------------------------------------------------- rulings
def test_trivial_questions() -> None:
    assert possible(sp.false, X > 0).outcome is Possibility.IMPOSSIBLE
    assert possible().outcome is Possibility.POSSIBLE
    assert possible(sp.true).point == {}
    assert (always(sp.true), always(sp.false), always(X > 0)) == (True, False, False)
    assert always(sp.gamma(X) > 1) is None
    assert always(X > 0, X > 1) is True


def test_points_are_exact_and_complete() -> None:
    ruling = possible(sp.Eq(X**2, 2), X > 0, A < 5, N < -1, sp.Ne(M * Y, 7))
    assert ruling.outcome is Possibility.POSSIBLE
    assert ruling.point is not None
    assert set(ruling.point) == {X, Y, A, N, M}
    assert ruling.point[X] in (sp.sqrt(2), sp.CRootOf(Y**2 - 2, 1))
    assert ruling.point[N] < -1
    assert 0 < ruling.point[A] < 5
    assert ruling.point[M] <= 0
    assert ruling.reason == ""


def test_points_of_letters_that_are_functions() -> None:
    """The way back from y = exp(x) and from a point of the circle."""
    for condition in (sp.exp(X) > 7, sp.exp(A) > 7, sp.sin(Q) > sp.Rational(9, 10), sp.cos(M) < -sp.Rational(9, 10)):
        ruling = possible(condition)
        assert ruling.outcome is Possibility.POSSIBLE, condition
        assert ruling.point is not None
        assert bool(sp.N(condition.lhs.subs(ruling.point) - condition.rhs) * (1 if condition.func is sp.Gt else -1) > 0)


def test_irrational_points_are_rounded_where_that_will_do() -> None:
    ruling = possible(X**3 > 2, sp.Rational(21, 10) > X**3)
    assert ruling.point is not None
    assert ruling.point[X].is_Rational
    rounded = judge._rounded({X: sp.sqrt(2), Y: sp.Rational(1, 3)})
    assert rounded == [
        {X: sp.Rational(n, d), Y: sp.Rational(1, 3)} for n, d in ((90, 64), (91, 64), (5792, 4096), (5793, 4096))
    ]
    assert judge._rounded({Y: sp.Rational(1, 3)}) == []
    many = judge._rounded({sp.Symbol(f"x{i}"): sp.sqrt(2) for i in range(5)})
    assert len(many) == 16


def test_letters_that_the_solver_does_not_need_have_a_value() -> None:
    assert [judge._default(x) for x in (X, A, N, Q, M)] == [1, 1, -1, 1, -1]


def test_samples_keep_the_signs_and_vary() -> None:
    generator = random.Random(1)
    drawn = {x: [judge._example(x, generator) for _ in range(60)] for x in (X, A, N, Q, M)}
    assert all(v > 0 for x in (A, Q) for v in drawn[x])
    assert all(v < 0 for x in (N, M) for v in drawn[x])
    assert 10 < sum(bool(v > 0) for v in drawn[X]) < 50
    assert {v.q for v in drawn[A]} >= {1, 2}
    assert max(drawn[A]) > 10
    assert min(drawn[A]) < sp.Rational(1, 2)
    assert max(abs(v) for values in drawn.values() for v in values) <= 40


def test_a_sample_is_found_between_the_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The solver does not decide; numbers at random do, but only where the question is asked thoroughly."""
    efforts: list[int] = []

    def tired(problem: Any, algebraic: Any, conditions: Any, effort: int) -> None:
        efforts.append(effort)

    monkeypatch.setattr(judge, "_attempt", tired)
    easy, hard = sp.Gt(X**2 + Y, -101), no_square(102)
    found = possible(easy)
    assert found.outcome is Possibility.POSSIBLE
    assert found.point is not None
    assert easy.subs(found.point) == sp.true
    assert efforts == [judge.EFFORTS[0]]
    given_up = possible(hard)
    assert given_up.outcome is Possibility.UNKNOWN
    assert given_up.reason == "no decision within the effort allowed to one question"
    assert efforts == [judge.EFFORTS[0], *judge.EFFORTS]
    assert possible(sp.Gt(X**2 + Y, -103), thorough=False).outcome is Possibility.UNKNOWN
    assert efforts == [judge.EFFORTS[0], *judge.EFFORTS, judge.EFFORTS[0]]


def test_the_long_attempt_decides_after_the_short_one(monkeypatch: pytest.MonkeyPatch) -> None:
    original = judge._attempt

    def short_fails(problem: Any, algebraic: Any, conditions: Any, effort: int) -> Any:
        return None if effort == judge.EFFORTS[0] else original(problem, algebraic, conditions, effort)

    monkeypatch.setattr(judge, "_attempt", short_fails)
    assert possible(no_square(104)).outcome is Possibility.IMPOSSIBLE


def test_effort_that_is_too_small_gives_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge, "EFFORTS", (1, 1))
    monkeypatch.setattr(judge, "SAMPLES", 0)
    assert possible(X**4 + Y**4 + X * Y < -105).outcome is Possibility.UNKNOWN


def test_time_that_ran_out_is_said_and_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    question = X**4 + Y**4 + X * Y < -106
    with monkeypatch.context() as patched:
        patched.setattr(judge, "EFFORTS", (1, 1))
        patched.setattr(judge, "remaining_time", lambda: 0.0)
        with pytest.raises(Undecided, match="time ran out"):
            possible(question)
    assert possible(question).outcome is Possibility.IMPOSSIBLE


def test_reasons() -> None:
    assert "gamma" in possible(sp.gamma(X) > 2).reason
    assert "a function of a function" in possible(sp.exp(sp.sin(X)) > 2).reason
    open_question = possible(sp.Eq(sp.exp(X), 2 + X, evaluate=False), X > 5)
    assert open_question.outcome is not Possibility.POSSIBLE
    attained = possible(sp.exp(X) < sp.Rational(3, 2) + X + X**2 / 2, X > 3)
    assert attained.outcome is Possibility.IMPOSSIBLE or "need not be attained" in attained.reason


def test_without_z3_nothing_is_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    load = builtins.__import__

    def refused(name: str, *rest: Any, **more: Any) -> Any:
        if name == "z3":
            raise ImportError(name)
        return load(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", refused)
    ruling = possible(no_square(107))
    assert (ruling.outcome, ruling.reason) == (Possibility.UNKNOWN, "z3-solver is not installed")


# ---------------------------------------------------------------------- counts, records, watches
def test_every_new_question_is_counted_once() -> None:
    before, outcomes = statistics.asked, dict(statistics.outcomes)
    questions = (no_square(108), X**2 > 109, sp.gamma(X) > 110)
    for _ in range(2):
        for question in questions:
            possible(question)
    assert statistics.asked == before + 3
    counted = {o: statistics.outcomes[o] - outcomes.get(o, 0) for o in ("unsat", "sat", "unknown")}
    assert counted == {"unsat": 1, "sat": 1, "unknown": 1}
    possible(questions[0], thorough=False)
    assert statistics.asked == before + 4, "a short attempt is another question"


def test_records_tell_the_question() -> None:
    with recorded() as obligations:
        possible(X > 0, sp.true, X > 0, X < -111)
        possible(sp.gamma(X) > 112)
        possible(sp.false)
        possible()
    assert [(o.statement, o.outcome) for o in obligations] == [
        ("x > 0, x < -111", Possibility.IMPOSSIBLE), ("true", Possibility.POSSIBLE),
    ]  # fmt: skip
    assert obligations[0].smt2.splitlines()[:2] == ["(set-logic QF_NRA)", "(set-info :status unsat)"]
    possible(X < -113)
    assert len(obligations) == 2, "the record ends with its block"


def test_remembered_answers_keep_their_name_and_arguments() -> None:
    @remembered(2)
    def question(n: int, *, more: int = 0) -> int:
        """What is asked."""
        calls.append(n)
        return n + more

    calls: list[int] = []
    assert (question.__name__, question.__doc__) == ("question", "What is asked.")
    assert [question(1), question(1), question(1, more=4)] == [1, 1, 5]
    assert calls == [1, 1]
    question(2), question(3), question(1)
    assert calls == [1, 1, 2, 3, 1]


def test_watches_see_numbers_that_were_bounded() -> None:
    bounded, plain = X * sp.exp(2) < -X * sp.pi, no_square(114)
    with watched() as outer:
        possible(plain)
        assert not outer.bounded
        with watched() as inner:
            possible(bounded, X > 0)
        assert inner.bounded
        assert outer.bounded, "what the inner block rests on the outer rests on too"
        with watched() as later:
            possible(plain)
        assert not later.bounded
        possible(plain)
        assert outer.bounded
    assert possible(bounded, X > 0).bounded
    assert not possible(plain).bounded


# ---------------------------------------------------------------------- domains
def test_domains_are_narrowed() -> None:
    domain = Domain((X > 0,)).where(sp.true, Y > 0)
    assert domain.conditions == (X > 0, Y > 0)
    assert Domain().given(X - 1).conditions == (sp.Ge(X - 1, 0, evaluate=False),)
    assert domain.where(X + Y < 0).is_empty()
    assert not domain.is_empty()
    assert (domain.proves(X * Y > 0), domain.proves(X > Y), domain.proves(sp.gamma(X) > 0)) == (True, False, None)
    point = domain.point(X > 2 * Y)
    assert point is not None
    assert point[X] > 2 * point[Y] > 0
    assert domain.point(X < 0) is None


def test_contradictions_are_named_without_the_rest() -> None:
    conditions = (Y > 5, sp.Gt(X, 3), sp.Lt(X, 2), A > B)
    with pytest.raises(AssumptionError) as problem:
        Domain(conditions).check()
    assert "x > 3 and x < 2" in str(problem.value)
    assert not any(name in str(problem.value) for name in ("y > 5", "a > b"))
    Domain().check()
    Domain((X > 3, Y > 5)).check()
    Domain((sp.gamma(X) > 3,)).check()


@pytest.mark.parametrize(
    ("conditions", "expression", "expected"),
    [
        ((), sp.oo, "+"), ((), -sp.oo, "-"), ((), sp.Add(X, sp.oo, evaluate=False), "?"), ((), sp.nan, "?"),
        ((), sp.zoo, "?"), ((), 0, "0"),
        ((), sp.sqrt(2) - 2, "-"), ((), sp.sin(1) ** 2 + sp.cos(1) ** 2 - 1, "?"), ((), Q, "0+"), ((), M, "0-"),
        ((Q > 0,), Q, "+"), ((M < 0,), M, "-"), ((sp.Eq(Q, 0, evaluate=False),), Q, "0"), ((X >= 0,), X, "0+"),
        ((X <= 0,), X, "0-"), ((X > 0,), -X, "-"), ((), X, "+-"), ((sp.Eq(X, 0),), X, "0"), ((), sp.gamma(X), "?"),
        ((X > 0,), sp.sqrt(-X), "?"), ((), X**2 + 1, "+"), ((), -(X**2) - 1, "-"), ((), A, "+"), ((A > 1,), 1 - A, "-"),
        ((), sp.gamma(A), "+"), ((), sp.exp(X) * 0, "0"), ((), sp.sqrt(2) * sp.sqrt(3) - sp.sqrt(6), "0"),
    ],
    ids=shown,
)  # fmt: skip
def test_signs_of_every_kind(conditions: tuple[Any, ...], expression: Any, expected: str) -> None:
    assert Domain(conditions).sign(expression) is Sign(expected)


def test_signs_know_themselves() -> None:
    signs = [Sign(v) for v in ("+", "0+", "0", "0-", "-", "+-", "?")]
    assert [(-s).value for s in signs] == ["-", "0-", "0", "0+", "+", "+-", "?"]
    assert [s for s in signs if s.is_nonnegative] == signs[:3]
    assert [s for s in signs if s.is_nonpositive] == signs[2:5]


def test_proved_to_be_nonnegative() -> None:
    domain = Domain((X > Y,))
    for expression, expected in ((X - Y, True), (Y - X, False), (sp.S.Zero, True), (sp.S(-1), False), (sp.oo, True),
                                 (-sp.oo, False), (Q, True), (A, True), (X, False), (sp.gamma(X), False)):  # fmt: skip
        assert domain.is_nonnegative(expression) is expected
        assert domain.is_nonnegative(expression, thorough=False) is expected


def test_the_sign_of_a_fraction_without_the_fraction() -> None:
    expected = ((1 / A - 1 / B, B - A), ((X - 1) / N, 1 - X), (X / Y, X * Y), (X + 1, X + 1))
    assert [Domain().cleared(e) for e, _ in expected] == [sp.expand(e) for _, e in expected]


def test_a_question_stops_at_the_limit_of_its_caller() -> None:
    letters = sp.symbols("u v w z", real=True)
    hard = sum(x**6 for x in letters) - 3 * sp.prod(letters) * sum(letters) + sum(letters) ** 4

    def ask_for_ever() -> None:
        for shift in range(1000):
            possible(sp.Lt(sp.expand(hard), -115 - shift))

    with pytest.raises(Undecided):
        limited(0.3, ask_for_ever)
