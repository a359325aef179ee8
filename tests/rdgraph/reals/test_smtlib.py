"""The text of a question, word for word: what a solver reads decides what is proved."""

from __future__ import annotations

from fractions import Fraction

import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from rdgraph.reals.smtlib import NotTranslated, SmtProblem, _without_quotients, number, translate
from rdgraph.vocabulary.functions import relu
from tests.naming import shown

X, Y = sp.symbols("x y", real=True)


def at_least(left: sp.Expr, right: sp.Expr | int = 0) -> sp.Basic:
    return sp.Ge(left, right, evaluate=False)


def asserted(*conditions: sp.Basic) -> list[str]:
    """What the text asserts, facts about helper variables first."""
    lines = translate(conditions).text.splitlines()
    return [line.removeprefix("(assert ")[:-1] for line in lines if line.startswith("(assert ")]


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (X > 0, "(> x 0.0)"), (X < 2, "(< x 2.0)"), (sp.Le(X, 2, evaluate=False), "(<= x 2.0)"),
        (at_least(X), "(>= x 0.0)"), (sp.Ne(X, Y), "(distinct x y)"), (sp.Eq(X, 0.5), "(= x (/ 1.0 2.0))"),
        (at_least(X * sp.Rational(-3, 4), -2), "(>= (* (- (/ 3.0 4.0)) x) (- 2.0))"),
        (at_least(2 * X / 3), "(>= (* (/ 2.0 3.0) x) 0.0)"),
        (at_least(X + Y + 1), "(>= (+ 1.0 x y) 0.0)"),
        (at_least(X**3, 1), "(>= (* x x x) 1.0)"),
        (at_least((X + 1) ** 3), "(>= (let ((p!0 (+ 1.0 x))) (* p!0 p!0 p!0)) 0.0)"),
        (at_least(X / Y, 2), "(and (distinct y 0.0) (>= (/ x y) 2.0))"),
        (at_least(X / (3 * Y)), "(and (distinct (* 3.0 y) 0.0) (>= (/ x (* 3.0 y)) 0.0))"),
        (at_least(X**-2, 1), "(and (distinct x 0.0) (>= (/ 1.0 (* x x)) 1.0))"),
        (at_least(sp.Min(X, Y)), "(>= (let ((a!0 x) (b!0 y)) (ite (<= a!0 b!0) a!0 b!0)) 0.0)"),
        (at_least(sp.Max(X, Y, 1)),
         "(>= (let ((a!0 (let ((a!0 1.0) (b!0 x)) (ite (>= a!0 b!0) a!0 b!0))) (b!0 y))"
         " (ite (>= a!0 b!0) a!0 b!0)) 0.0)"),
        (at_least(sp.Abs(X)), "(>= (let ((x!0 x)) (ite (>= x!0 0.0) x!0 (- x!0))) 0.0)"),
        (at_least(relu(X)), "(>= (let ((x!0 x)) (ite (>= x!0 0.0) x!0 0.0)) 0.0)"),
        (at_least(sp.sign(X)), "(>= (let ((x!0 x)) (ite (> x!0 0.0) 1.0 (ite (< x!0 0.0) (- 1.0) 0.0))) 0.0)"),
        (at_least(sp.Heaviside(X)), "(>= (let ((x!0 x)) (ite (> x!0 0.0) 1.0 (ite (< x!0 0.0) 0.0 0.5))) 0.0)"),
        (at_least(sp.Piecewise((X, X > 0), (Y, X > -1), (-X, True))),
         "(>= (ite (> x 0.0) x (ite (> x (- 1.0)) y (* (- 1.0) x))) 0.0)"),
        (at_least(sp.Piecewise((1 / X, X > 0), (Y, True))),
         "(and (ite (> x 0.0) (distinct x 0.0) true) (>= (ite (> x 0.0) (/ 1.0 x) y) 0.0))"),
        (at_least(sp.Piecewise((1 / X, X > 0))),
         "(and (ite (> x 0.0) (distinct x 0.0) false) (>= (ite (> x 0.0) (/ 1.0 x) 0.0) 0.0))"),
        (at_least(sp.Piecewise((X, X > 0))), "(and (ite (> x 0.0) true false) (>= (ite (> x 0.0) x 0.0) 0.0))"),
        (sp.true, "true"), (sp.false, "false"),
    ],
    ids=shown,
)  # fmt: skip
def test_conditions_are_written(condition: sp.Basic, text: str) -> None:
    assert asserted(condition) == [text]


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (sp.Or(X > 0, sp.And(Y > 0, X < 1)), "(or (> x 0.0) (and (> y 0.0) (< x 1.0)))"),
        (sp.Not(sp.And(X > 0, Y > 0), evaluate=False), "(or (<= x 0.0) (<= y 0.0))"),
        (sp.Not(sp.Or(X > 0, Y >= 0), evaluate=False), "(and (<= x 0.0) (< y 0.0))"),
        (sp.Not(sp.Or(X > 0, sp.Not(Y > 0, evaluate=False), evaluate=False), evaluate=False),
         "(and (<= x 0.0) (> y 0.0))"),
        (sp.Not(sp.Eq(1 / X, Y), evaluate=False), "(and (distinct x 0.0) (distinct (/ 1.0 x) y))"),
        (sp.And(sp.Not(X > 0, evaluate=False), Y > 0, evaluate=False), "(and (> y 0.0) (<= x 0.0))"),
    ],
    ids=shown,
)  # fmt: skip
def test_negations_move_inwards(condition: sp.Basic, text: str) -> None:
    """A relation and its negation are both false where a side is undefined."""
    assert sorted(asserted(condition)[0].replace("(", " ").replace(")", " ").split()) == sorted(
        text.replace("(", " ").replace(")", " ").split()
    )
    assert asserted(condition)[0].startswith(text[:4])


def test_roots_are_letters_with_their_facts() -> None:
    half = "(=> (>= x 0.0) (and (>= root!1 0.0) (= (* root!1 root!1) x)))"
    assert asserted(at_least(X ** sp.Rational(3, 2))) == [half, "(and (>= x 0.0) (>= (* root!1 root!1 root!1) 0.0))"]
    assert asserted(at_least(1 / sp.sqrt(X))) == [
        half, "(and (>= x 0.0) (distinct root!1 0.0) (>= (/ 1.0 root!1) 0.0))",
    ]  # fmt: skip
    shared = translate([at_least(sp.sqrt(X) + Y * sp.sqrt(X)), at_least(sp.cbrt(X))])
    assert shared.text.count("declare-const root!") == 2
    third = "(assert (=> (>= x 0.0) (and (>= root!2 0.0) (= (* root!2 root!2 root!2) x))))"
    assert third in shared.text.splitlines()
    nested = asserted(at_least(sp.sqrt(1 / X)))
    assert nested[0].startswith("(=> (and (distinct x 0.0) (>= (/ 1.0 x) 0.0)) (and (>= root!1 0.0)")


def test_algebraic_numbers_are_letters_between_bounds() -> None:
    """How narrow the bounds are depends on what sympy was asked before."""
    root = sp.CRootOf(X**5 - X - 1, 0)
    fact, condition = asserted(at_least(root, Y))
    power = "(* number!1 number!1 number!1 number!1 number!1)"
    zero = f"(= (+ (- 1.0) {power} (* (- 1.0) number!1)) 0.0)"
    interval = root._get_interval()
    lower, upper = (number(sp.Rational(end)) for end in (interval.a, interval.b))
    assert fact == f"(and {zero} (>= number!1 {lower}) (<= number!1 {upper}))"
    assert condition == "(>= number!1 y)"
    assert float(interval.a) - 1e-9 <= 1.1673039782614187 <= float(interval.b) + 1e-9


@pytest.mark.parametrize(
    ("assumptions", "relations"),
    [
        ({"real": True}, []), ({"positive": True}, [">"]), ({"negative": True}, ["<"]), ({"zero": True}, ["="]),
        ({"nonnegative": True}, [">="]), ({"nonpositive": True}, ["<="]),
        ({"real": True, "nonzero": True}, ["distinct"]),
    ],
    ids=shown,
)  # fmt: skip
def test_signs_of_letters_are_asserted(assumptions: dict[str, bool], relations: list[str]) -> None:
    letter = sp.Symbol("n", **assumptions)
    assert asserted(at_least(letter + X)) == [*(f"({r} n 0.0)" for r in relations), asserted(at_least(letter + X))[-1]]


def test_letters_and_helpers_have_names_of_their_own() -> None:
    x = sp.Dummy("x")
    roots = [sp.CRootOf(x**5 - x - k, 0) for k in (1, 2, 3)]
    letters = [sp.Dummy("number", real=True) for _ in range(4)] + [
        sp.Symbol("root", real=True),
        sp.Dummy("root", real=True),
    ]
    conditions = [
        at_least(a + b * sp.sqrt(b)) for a, b in zip([*roots, *letters], [*letters, *letters[:3]], strict=True)
    ]
    for order in (conditions, conditions[::-1]):
        lines = translate(order).text.splitlines()
        declared = [line.split()[1] for line in lines if line.startswith("(declare-const")]
        assert len(declared) == len(set(declared)) > 9


def test_names_that_smtlib_cannot_take_are_replaced() -> None:
    names = ("or", "é", "x y", "ordinary", "or")
    letters = [
        sp.Symbol(names[0], real=True),
        *(sp.Symbol(n, real=True) for n in names[1:4]),
        sp.Dummy("or", real=True),
    ]
    problem = translate([at_least(letter) for letter in letters])
    assert problem.letters == dict(zip(["or!0", "letter", "letter!2", "ordinary", "or!4"], letters, strict=True))
    assert problem.text.splitlines()[0] == "(declare-const or!0 Real)"


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        (at_least(X**129), r"the power x\*\*129 is not algebraic, or too large"),
        (at_least(X**Y), r"the power x\*\*y is not algebraic"),
        (at_least(sp.exp(X)), r"exp\(x\) is not algebraic \(exp\)"),
        (at_least(sp.Function("f")(X)), r"f\(x\) is not algebraic \(an unknown function\)"),
        (sp.Ne(sp.Symbol("z", imaginary=True), 0, evaluate=False), "z is not real"),
        (sp.Eq(sp.CRootOf(X**3 - X - 1, 1), Y, evaluate=False), "is not real"),
        (X, "not a condition between real expressions: x"),
    ],
    ids=shown,
)
def test_what_is_not_algebraic_is_refused(condition: sp.Basic, reason: str) -> None:
    with pytest.raises(NotTranslated, match=reason):
        translate([condition])


def test_the_largest_power_is_still_written() -> None:
    assert asserted(at_least(X**128))[0].count("x") == 128
    assert asserted(at_least(X**-128))[0].count("x") == 129  # and once more to be different from zero


def test_numbers() -> None:
    values = (sp.Integer(7), sp.Integer(-7), sp.Rational(2, 3), sp.Rational(-2, 3), sp.Integer(0))
    assert [number(v) for v in values] == ["7.0", "(- 7.0)", "(/ 2.0 3.0)", "(- (/ 2.0 3.0))", "0.0"]


def test_a_script_says_what_to_expect() -> None:
    text = "(set-logic QF_NRA)\n(set-info :status unsat)\n(assert false)\n(check-sat)\n"
    assert SmtProblem("(assert false)\n", {}).script("unsat") == text
    assert translate([X > 0]).text == "(declare-const x Real)\n(assert (> x 0.0))\n"


ROOT = sp.sqrt(X**2 + 1)
PARTS = (
    1 / (ROOT - Y),
    ROOT * X / (1 + Y),
    X / Y,
    1 / (1 + X),
    X,
    (X - Y) / (X**2 - 2),
    -3 / (Y - X),
    Y**2 / (X + Y) ** 3,
    sp.Rational(2, 5),
)


@given(
    st.lists(st.sampled_from(PARTS), min_size=1, max_size=4),
    st.sampled_from([sp.Gt, sp.Ge, sp.Lt, sp.Le, sp.Eq, sp.Ne]),
    st.fractions(-3, 3, max_denominator=4), st.fractions(-3, 3, max_denominator=4),
)  # fmt: skip
def test_a_condition_without_quotients_holds_at_the_same_points(
    parts: list[sp.Expr], relation: type[sp.Basic], x: Fraction, y: Fraction
) -> None:
    at = {X: sp.Rational(x), Y: sp.Rational(y)}
    total = sp.Add(*parts)
    cleared = _without_quotients(relation(total, 0, evaluate=False))
    if all(power.base.subs(at) != 0 for power in total.atoms(sp.Pow) if power.exp.is_negative):
        assert bool(cleared.subs(at).doit()) == bool(relation(total.subs(at), 0))
    else:
        assert any(part.subs(at) == sp.false for part in sp.And.make_args(cleared) if isinstance(part, sp.Ne))
