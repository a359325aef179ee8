"""What existence is decided from: parts of a domain, growth at infinity, zeros of rates and times of escape."""

from __future__ import annotations

import pytest
import sympy as sp

from rdgraph.errors import Undecided
from rdgraph.language.answer_symbols import h
from rdgraph.reals.domain import Domain
from rdgraph.reals.regions import cases, reduced, strict_sign
from rdgraph.reals.zeros import candidates
from rdgraph.theory.blowup import escape_time
from rdgraph.theory.growth_at_infinity import Trend, growth, order
from rdgraph.vocabulary.functions import relu, softplus

a = sp.Symbol("a", real=True)
p, q = sp.symbols("p q", positive=True)
n = sp.Symbol("n", nonnegative=True)


# ---------------------------------------------------------------------- regions
def test_answers_are_joined_over_the_parts_of_a_domain() -> None:
    assert cases(Domain(), lambda domain: strict_sign(domain, a * p)) == [(a > 0, 1), (sp.Eq(a, 0), 0), (a < 0, -1)]
    assert cases(Domain(), lambda domain: strict_sign(domain, a) >= 0) == [(a >= 0, True), (a < 0, False)]
    assert cases(Domain((a > 1,)), lambda domain: strict_sign(domain, a)) == [(sp.true, 1)]
    assert cases(Domain(), lambda domain: strict_sign(domain, n)) == [(n > 0, 1), (sp.Eq(n, 0), 0)]


def test_a_question_that_is_split_for_ever_is_given_up() -> None:
    letters = sp.symbols("x:12", real=True)
    with pytest.raises(Undecided, match="too many"):
        cases(Domain(), lambda domain: [strict_sign(domain, x) for x in letters] and None)


def test_equations_of_a_domain_are_put_in() -> None:
    assert reduced(Domain((sp.Eq(4 * p - q**2, 0),)), p * h + h**2) == h**2 + q**2 * h / 4
    assert reduced(Domain((sp.Eq(p * q, 1),)), p * h) == p * h  # no letter occurs linearly with a number


# ---------------------------------------------------------------------- growth
ESCAPING, DAMPED, LINEAR = Trend.ESCAPING, Trend.DAMPED, Trend.LINEAR
GROWTH = {
    h**2: ((ESCAPING, 2), (DAMPED, 2)),
    -(h**3) + 7 * h**2: ((DAMPED, 3), (DAMPED, 3)),
    -sp.exp(-h): ((LINEAR, 1), (ESCAPING, sp.oo)),
    sp.exp(h) - h**2: ((ESCAPING, sp.oo), (ESCAPING, 2)),
    sp.exp(2 * h) - p * sp.exp(h) * h**5: ((ESCAPING, sp.oo), (LINEAR, 1)),
    sp.sqrt(1 + h**2): ((LINEAR, 1), (LINEAR, 1)),
    h * sp.sqrt(1 + h**2) - h * sp.Abs(h): ((LINEAR, 1), (LINEAR, 1)),
    h * sp.sqrt(p + h**4): ((ESCAPING, 3), (ESCAPING, 3)),
    h**4 / (1 + h**2): ((ESCAPING, 2), (DAMPED, 2)),
    h**3 / (1 + h**2): ((LINEAR, 1), (LINEAR, 1)),
    relu(h) ** 2: ((ESCAPING, 2), (LINEAR, 1)),
    relu(-h) ** 3: ((LINEAR, 1), (DAMPED, 3)),
    softplus(-h) ** 2: ((LINEAR, 1), (DAMPED, 2)),
    softplus(h) - h: ((LINEAR, 1), (LINEAR, 1)),
    h**2 * sp.tanh(h): ((ESCAPING, 2), (ESCAPING, 2)),
    (1 - sp.tanh(h)) * sp.exp(3 * h): ((ESCAPING, sp.oo), (LINEAR, 1)),
    (1 - sp.tanh(h)) * sp.exp(2 * h): ((LINEAR, 1), (LINEAR, 1)),
    h**3 * (2 + sp.sin(h)): ((ESCAPING, 3), (ESCAPING, 3)),
    h**3 * sp.cos(1 / (1 + h**2)): ((ESCAPING, 3), (ESCAPING, 3)),
    h**5 * sp.exp(-(h**2)): ((LINEAR, 1), (LINEAR, 1)),
    sp.exp(sp.sqrt(1 + h**2)): ((ESCAPING, sp.oo), (DAMPED, sp.oo)),
    sp.tanh(h**2 * sp.tanh(h)) - h**3: ((DAMPED, 3), (DAMPED, 3)),
    a * sp.tanh(h**2 * sp.sin(h)) ** 2 * sp.sin(sp.exp(h)): ((LINEAR, 1), (LINEAR, 1)),
    h * sp.tanh(sp.exp(h) * sp.exp(h**2)) + h**3: ((ESCAPING, 3), (ESCAPING, 3)),
    h * sp.tanh(sp.exp(sp.exp(h))): ((LINEAR, 1), (LINEAR, 1)),
}


@pytest.mark.parametrize("rate", GROWTH, ids=str)
def test_growth(rate: sp.Expr) -> None:
    for way, (trend, power) in zip((1, -1), GROWTH[rate], strict=True):
        answer = growth(rate, h, way, Domain())
        assert (answer.trend, answer.order) == (trend, power)


def test_growth_that_depends_on_coefficients() -> None:
    def trends(rate: sp.Expr) -> dict[sp.Basic, Trend]:
        return {c: g.trend for c, g in cases(Domain(), lambda domain: growth(rate, h, 1, domain))}

    assert trends(a * h**3 - h**2) == {
        a > 0: ESCAPING, sp.Eq(a, 0): DAMPED, a < 0: DAMPED
    }  # fmt: skip
    assert trends(sp.exp(h) - sp.exp(a * h)) == {a - 1 > 0: DAMPED, sp.Eq(a - 1, 0): LINEAR, a - 1 < 0: ESCAPING}
    assert trends((p - q) * h**2) == {p - q > 0: ESCAPING, sp.Eq(p - q, 0): LINEAR, p - q < 0: DAMPED}


@pytest.mark.parametrize("rate", [h**2 * sp.sin(h), sp.exp(sp.exp(h))], ids=str)
def test_unknown_growth_is_undecided(rate: sp.Expr) -> None:
    with pytest.raises(Undecided):
        growth(rate, h, 1, Domain())


def test_orders_bound_the_modulus() -> None:
    assert order(-(h**3) / (1 + h**2) + sp.sin(h) * sp.sqrt(1 + h**4), h, Domain()) == 2
    assert order(1 / (1 + sp.exp(-h)), h, Domain()) == 0
    assert order(sp.exp(-h), h, Domain()) == sp.oo


# ---------------------------------------------------------------------- zeros and times
def test_candidates_are_zeros() -> None:
    values = {a: sp.Rational(-7, 3), p: sp.Rational(5, 4), q: sp.Rational(2, 7)}
    for rate in (
        h**3 - p * h,
        h**4 - 3 * p * h**2 + q,
        h**2 + a * h - q,
        p * h**5 - q,
        h * sp.Abs(h) - p,
        relu(h) ** 2,
    ):
        answer = candidates(rate, h, Domain((a < 0,)))
        real = [z.value.subs(values) for z in answer if all(need.subs(values) >= 0 for need in z.needs)]
        residuals = [bool(abs(sp.N(rate.subs(values).subs(h, z), 30)) < 1e-25) for z in real]
        assert sum(residuals) >= 1, rate


def test_a_time_that_is_not_that_of_the_equation_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    start = sp.Symbol("start", real=True)
    assert escape_time(h**2 - 1, h, start, (sp.S.One,), Domain()) is not None
    monkeypatch.setattr("rdgraph.theory.blowup._Primitive.remaining", lambda self, x, start: 1 / start)
    assert escape_time(h**2 - 1, h, start, (sp.S.One,), Domain()) is None
