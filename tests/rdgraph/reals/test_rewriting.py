"""What the rewriting says about exp, sin, log and numbers: true of the functions, and nothing is forgotten."""

from __future__ import annotations

import math

import pytest
import sympy as sp

from rdgraph.reals.judge import always, possible
from rdgraph.reals.rewriting import NotRewritten, rewrite, split
from rdgraph.vocabulary.functions import sigmoid, softplus
from tests.naming import shown

X, Y = sp.symbols("x y", real=True)
P, N = sp.Symbol("p", positive=True), sp.Symbol("n", negative=True)
NN, NP = sp.Symbol("q", nonnegative=True), sp.Symbol("m", nonpositive=True)


def at_least(left: sp.Expr, right: sp.Expr | int = 0) -> sp.Basic:
    return sp.Ge(left, right, evaluate=False)


EXPONENTIAL = [
    "_y >= x + 1", "1 >= _y*(1 - x)", "_y >= x**3/6 + x**2/2 + x + 1",
    "(0 >= x) | (_y >= x**4/24 + x**3/6 + x**2/2 + x + 1)", "(x >= 0) | (x**2/2 + x + 1 >= _y)",
    "Eq(_y, 1) | Ne(x, 0)", "Eq(x, 0) | (_y > x + 1)",
]  # fmt: skip
CIRCLE = "Eq(_cosine**2 + _sine**2, 1)"
ANGLE = [
    CIRCLE, "x**2 >= _sine**2", "_cosine >= 1 - x**2/2", "(0 >= x) | (_sine >= -x**3/6 + x)",
    "(x >= 0) | (-x**3/6 + x >= _sine)",
]  # fmt: skip
LOGARITHM = ["(0 >= x) | (x - 1 >= _log)", "(0 >= x) | (_log*x >= x - 1)"]
SOFTPLUS = [
    "_softplus > 0", "(0 >= x) | (_softplus >= _number)", "(_number >= _softplus) | (x >= 0)",
    "(0 >= x) | (_number + x >= _softplus)", "(x >= 0) | (_softplus >= _number + x)", "_softplus > x",
    "_softplus >= _number + x/2",
]  # fmt: skip


@pytest.mark.parametrize(
    ("condition", "expected", "facts", "origins"),
    [
        (at_least(sp.exp(X), 2), "_y >= 2", [], ["log(_y)"]),
        (at_least(sp.exp(P), 2), "_y >= 2", ["_y > 1"], ["log(_y)"]),
        (at_least(sp.exp(N), 2), "_y >= 2", ["_y < 1"], ["log(_y)"]),
        (at_least(sp.exp(NN), 2), "_y >= 2", ["_y >= 1"], ["log(_y)"]),
        (at_least(sp.exp(NP), 2), "_y >= 2", ["1 >= _y"], ["log(_y)"]),
        (at_least(sp.exp(-X / 2), 2), "1/_y >= 2", [], ["2*log(_y)"]),
        (at_least(sp.exp(X), X), "_y >= x", EXPONENTIAL, []),
        (at_least(sp.sin(X), 2), "_sine >= 2", [CIRCLE], ["atan2(_sine, _cosine)"]),
        (at_least(sp.sin(NN), 2), "_sine >= 2", [CIRCLE], ["atan2(_sine, _cosine) + 2*pi"]),
        (at_least(sp.cos(NP), 2), "_cosine >= 2", [CIRCLE], ["atan2(_sine, _cosine) - 2*pi"]),
        (at_least(sp.sin(X), X), "_sine >= x", ANGLE, []),
        (at_least(sp.exp(X) + sp.sin(X), 2), "_sine + _y >= 2", EXPONENTIAL + ANGLE, []),
        (at_least(sp.tanh(X), Y), "1 - 2/(_y + 1) >= y", [], ["log(_y)/2"]),
        (at_least(sigmoid(X), Y), "1 - 1/(_y + 1) >= y", [], ["log(_y)"]),
        (at_least(sp.log(X), Y), "_log >= y", LOGARITHM, []),
        (at_least(softplus(X), Y), "_softplus >= y", SOFTPLUS, []),
        (at_least(softplus(-X), Y), "_softplus - x >= y", SOFTPLUS, []),
    ],
    ids=shown,
)
def test_functions_become_letters_with_facts(
    condition: sp.Basic, expected: str, facts: list[str], origins: list[str]
) -> None:
    rewritten = rewrite([condition])
    assert [str(c) for c in rewritten.conditions] == [expected]
    assert [str(f) for f in rewritten.facts][: len(facts)] == facts
    numbers = [f for f in rewritten.facts[len(facts) :] if "_number" not in str(f)]
    assert numbers == []
    assert [str(origin) for _, origin in rewritten.origins] == origins
    assert [letter for letter, _ in rewritten.origins] == ([next(iter(condition.lhs.free_symbols))] if origins else [])
    assert rewritten.bounded == (facts is SOFTPLUS)


@pytest.mark.parametrize("value", [-3.0, -0.7, -1e-3, 0.0, 1e-3, 0.4, 2.0, 3.0])
@pytest.mark.parametrize(
    ("condition", "letters"),
    [
        (at_least(sp.exp(X), X), {"y": math.exp}),
        (at_least(sp.sin(X), X), {"sine": math.sin, "cosine": math.cos}),
        (at_least(softplus(X), X), {"softplus": lambda x: math.log1p(math.exp(x)), "number": lambda x: math.log(2)}),
        (at_least(sp.log(X), X), {"log": lambda x: math.log(x) if x > 0 else 0.0}),
    ],
    ids=shown,
)
def test_facts_are_true_of_the_functions(condition: sp.Basic, letters: dict[str, object], value: float) -> None:
    """The fact holds in floating point wherever the two sides differ by more than rounding."""
    facts = rewrite([condition]).facts
    assert facts
    for fact in facts:
        known = {x: value if x == X else letters[x.name](value) for x in fact.free_symbols}  # type: ignore[operator]
        parts = fact.args if isinstance(fact, sp.Or) else (fact,)
        gaps = [float(part.lhs.subs(known) - part.rhs.subs(known)) for part in parts]
        near = any(abs(gap) < 1e-9 for gap in gaps)
        assert near or any(bool(part.subs(known)) for part in parts), (fact, value)


def test_arguments_share_the_largest_unit() -> None:
    (condition,) = rewrite([at_least(sp.exp(X / 2) + sp.exp(2 * X / 3), sp.exp(-X))]).conditions
    (y,) = condition.free_symbols
    assert condition == at_least(y**3 + y**4, y**-6)
    (condition,) = rewrite([at_least(sp.sin(3 * X) + sp.cos(2 * X), 2)]).conditions
    (s, c) = sorted(condition.free_symbols, key=lambda letter: -len(letter.name) * (letter.name == "sine"))
    assert {s.name, c.name} == {"sine", "cosine"}
    point = {letter: math.sin(0.7) if letter.name == "sine" else math.cos(0.7) for letter in (s, c)}
    assert float(condition.lhs.subs(point)) == pytest.approx(math.sin(2.1) + math.cos(1.4))


@pytest.mark.parametrize(
    ("term", "value"),
    [
        (sp.sin(X + Y), lambda x, y: math.sin(x + y)), (sp.cos(X - Y), lambda x, y: math.cos(x - y)),
        (sp.sin(2 * X - 3 * Y), lambda x, y: math.sin(2 * x - 3 * y)),
        (sp.exp(X - 2 * Y), lambda x, y: math.exp(x - 2 * y)),
        (sp.sin(X) * sp.sin(2 * X), lambda x, y: math.sin(x) * math.sin(2 * x)),
        (sp.cos(X) - sp.sin(4 * X), lambda x, y: math.cos(x) - math.sin(4 * x)),
        (sp.tanh(X) * sigmoid(3 * X), lambda x, y: math.tanh(x) / (1 + math.exp(-3 * x))),
    ],
    ids=shown,
)  # fmt: skip
def test_sums_of_arguments_keep_the_value(term: sp.Expr, value: object) -> None:
    """The value that each new variable stands for, by the origins."""
    rewritten = rewrite([at_least(term, 5)])
    (condition,) = rewritten.conditions
    at = {X: 0.3, Y: -0.8}
    known: dict[sp.Basic, float] = {}
    for letter, origin in rewritten.origins:
        argument = at[letter] / float(origin.as_coeff_Mul()[0])
        for new in origin.free_symbols:
            known[new] = {"y": math.exp, "sine": math.sin, "cosine": math.cos}[new.name](argument)
    assert float(condition.lhs.subs(known)) == pytest.approx(value(0.3, -0.8))  # type: ignore[operator]


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        (at_least(sp.exp(65 * X) + sp.exp(X), 2), "65 is a large multiple of the unit 1 of x"),
        (at_least(sp.exp(X) + sp.exp(-65 * X), 2), "-65 is a large multiple of the unit 1 of x"),
        (at_least(sp.exp(sp.sin(X)), 2), r"a function of a function: sin\(x\)"),
        (at_least(sp.sin(sp.log(P)), 2), r"a function of a function: log\(p\)"),
        (at_least(sp.exp(softplus(X)), 2), "a function of a function"),
    ],
    ids=shown,
)
def test_what_the_rewriting_does_not_know(condition: sp.Basic, reason: str) -> None:
    with pytest.raises(NotRewritten, match=reason):
        rewrite([condition])


def test_the_largest_multiple_is_still_rewritten() -> None:
    (condition,) = rewrite([at_least(sp.exp(64 * X) - sp.exp(X), 2)]).conditions
    assert sp.degree(condition.lhs) == 64


def test_quotients_of_a_high_degree_are_not_written_out() -> None:
    """The common denominator counts: two of degree 33 are of degree 66 together."""
    near, far = (sum(1 / (1 + sp.exp(k * X)) for k in powers) for powers in ((2, 30, 31), (2, 31, 33)))
    assert rewrite([at_least(near, 1)]).conditions
    with pytest.raises(NotRewritten, match="degree 66"):
        rewrite([at_least(far, 1)])
    with pytest.raises(NotRewritten, match="degree 70"):
        rewrite([at_least(sp.exp(40 * X) + sp.exp(39 * X) + 1 / (1 + sp.exp(30 * X)), 1)])


def test_an_argument_that_is_seen_elsewhere_stays_tied() -> None:
    """Without the tie the letter would be free, and what is impossible would look possible."""
    products = rewrite([at_least(sp.exp(X) - sp.exp(X * Y), 2)])
    assert products.origins == ()
    assert len(products.facts) == 2 * len(EXPONENTIAL)
    assert rewrite([at_least(sp.exp(X), Y), at_least(X, Y)]).origins == ()
    assert possible(sp.exp(X) < 1, X > 0).outcome.value == "unsat"
    assert possible(sp.sin(X) > 1, X > 0).outcome.value == "unsat"


@pytest.mark.parametrize(
    ("condition", "expected", "numbers"),
    [
        (at_least(sp.exp(2), X), "_number >= x", [sp.exp(2)]),
        (at_least(sp.pi * X, 1), "_number*x >= 1", [sp.pi]),
        (at_least(sp.pi + 1, X), "_number >= x", [sp.pi + 1]),
        (at_least(sp.E * X**2, 1), "_number*x**2 >= 1", [sp.E]),
        (at_least(sp.sqrt(2) + sp.sqrt(3) + sp.sqrt(5), X), "_number >= x", [sp.sqrt(2) + sp.sqrt(3) + sp.sqrt(5)]),
        (at_least(sp.sqrt(2) + sp.sqrt(3), X), "sqrt(2) + sqrt(3) >= x", []),
        (at_least(X + 1, 3), "x + 1 >= 3", []),
        (sp.Gt(X, sp.pi), "x > _number", [sp.pi]),
    ],
    ids=shown,
)
def test_numbers_become_letters_between_bounds(condition: sp.Basic, expected: str, numbers: list[sp.Expr]) -> None:
    rewritten = rewrite([condition])
    assert [str(c) for c in rewritten.conditions] == [expected]
    assert rewritten.bounded is bool(numbers)
    assert len(rewritten.facts) == 2 * len(numbers)
    for number, (below, above) in zip(numbers, [rewritten.facts[:2]] if numbers else [], strict=True):
        assert below.lhs == above.rhs
        assert below.rhs < sp.N(number, 60) < above.lhs
        assert above.lhs - below.rhs < sp.Rational(1, 10**30)


def test_one_number_is_one_letter_and_equations_hold_between_them() -> None:
    rewritten = rewrite([at_least(sp.pi * X, sp.pi * Y), at_least(sp.exp(2) * X, sp.pi)])
    assert len({x for c in rewritten.conditions for x in c.free_symbols} - {X, Y}) == 2
    assert len(rewritten.facts) == 4
    assert rewrite([at_least(sp.exp(X + 1), 2)]).bounded


def test_sums_are_split_into_multiples_of_cores() -> None:
    found = split(2 * X / 3 - Y + sp.Rational(1, 2))
    assert set(found) == {(sp.Rational(2, 3), X), (-1, Y), (sp.Rational(1, 2), 1)}
    assert split(sp.S.Zero) == []
    assert set(split(2 * (X + Y))) == {(2, X), (2, Y)}
    assert split(0.5 * X) == [(1, 0.5 * X)], "a number in floating point is no rational multiple"


@pytest.mark.parametrize(
    "claim",
    [
        sp.exp(X) >= 1 + X + X**2 / 2 + X**3 / 6, sp.Or(X <= 0, sp.exp(X) >= 1 + X + X**2 / 2 + X**3 / 6 + X**4 / 24),
        sp.Or(X >= 0, sp.exp(X) <= 1 + X + X**2 / 2), sp.Or(sp.Eq(X, 0), sp.exp(X) > 1 + X), sp.cos(X) >= 1 - X**2 / 2,
        sp.Or(X <= 0, sp.sin(X) >= X - X**3 / 6), sp.Or(X >= 0, sp.sin(X) <= X - X**3 / 6), sp.sin(X) ** 2 <= X**2,
        sp.Or(X <= 0, sp.log(X) <= X - 1), sp.Or(X <= 0, X * sp.log(X) >= X - 1), softplus(X) > 0,
        softplus(X) >= sp.log(2) + X / 2, sp.Or(X >= 0, softplus(X) <= sp.log(2)),
        sp.Or(X <= 0, softplus(X) <= sp.log(2) + X), sp.Ne(sp.exp(X), 1) | sp.Eq(X, 0),
    ],
    ids=shown,
)  # fmt: skip
def test_every_fact_is_of_use(claim: sp.Basic) -> None:
    assert always(claim) is True
