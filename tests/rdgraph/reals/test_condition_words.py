"""Formulas in words: no branch of sympy's, no uncomputed number."""

from __future__ import annotations

import pytest
import sympy as sp

from rdgraph.reals.condition_words import condition_in_words, in_words, number_in_words
from rdgraph.vocabulary.functions import softplus

A, B, M = sp.symbols("a b m")
LIMIT = sp.Float("2.78529356340528")


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        (sp.Max(A, sp.Piecewise((B, B >= 1), (A, True))), "the largest of a and b (where b >= 1)"),
        (2 / sp.Max(A, sp.Piecewise((B, B >= 1), (A, True))), "2/m, m = the largest of a and b (where b >= 1)"),
        (
            M * sp.Min(A, sp.Piecewise((M, B > 1), (B, True))),
            "m*n, n = the smallest of a and (m if b > 1, otherwise b)",
        ),
        (A * sp.tanh(softplus(sp.S.Zero)), "0.6*a"),
        (sp.Float("1.0000001") * A, "1.0000001*a"),
        (12 * sp.sqrt(3), "12*sqrt(3) (about 20.78)"),
    ],
    ids=str,
)
def test_words(expression: sp.Expr, words: str) -> None:
    assert in_words(expression) == words


@pytest.mark.parametrize(("rounding", "words"), [(-1, "2.785/a"), (0, "2.785/a"), (1, "2.786/a")])
def test_limits_are_rounded_down_and_bounds_up(rounding: int, words: str) -> None:
    assert in_words(sp.Float("2.78523333333333") / A, rounding) == words
    both = sp.Piecewise((sp.Float("2.78523333333333") / A, A > 1), (sp.S.One, True))
    assert in_words(both, rounding) == f"{words} if a > 1, otherwise 1"


def test_a_direction_is_kept_in_sums_and_quotients() -> None:
    """A limit that is shown is never larger than the limit, a bound never smaller."""
    formulas = [LIMIT * A + LIMIT, LIMIT - LIMIT * A / 7, 1 / (LIMIT * A + LIMIT / 3), sp.Max(LIMIT * A, LIMIT)]
    for formula in formulas:
        exact = float(formula.subs(A, 2))
        shown = [float(sp.sympify(in_words(formula, d).replace("max", "Max")).subs(A, 2)) for d in (-1, 0, 1)]
        assert shown[0] <= exact <= shown[2]
        assert shown == pytest.approx([exact] * 3, rel=2e-3)


def test_no_text_has_more_than_six_digits() -> None:
    for text in (in_words(LIMIT * A), number_in_words(LIMIT), condition_in_words(LIMIT < A), number_in_words(1 / 3)):
        assert sum(c.isdigit() for c in text) <= 6


@pytest.mark.parametrize(
    "formula", [A - B, -A - B, (A - B) * (B - M), 2 * A + 2 * B, -(A - B) / (2 * B), (2 * A + 2) ** 2]
)
def test_what_is_written_means_the_formula(formula: sp.Expr) -> None:
    assert sp.expand(sp.sympify(in_words(formula)) - formula) == 0


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        (-A + B <= 0, "b <= a"),
        (-A < 0, "a > 0"),
        (A > -B, "a + b > 0"),
        (sp.Lt(sp.Rational(1, 3), A), "a > 1/3"),
        (sp.And(A > 0, sp.Or(B > 0, M > 0)), "(b > 0 or m > 0) and a > 0"),
        (sp.Eq(A, B), "a = b"),
        (A * (B - A) > 0, "a*(b - a) > 0"),
    ],
    ids=str,
)
def test_conditions_need_no_minus(condition: sp.Basic, words: str) -> None:
    assert condition_in_words(condition) == words


def test_a_condition_on_cases_is_in_words() -> None:
    rate = sp.Piecewise((2 - 2 * B, B <= A), (B, True))
    assert condition_in_words(sp.Le(rate, 0, evaluate=False)) == f"({in_words(rate)}) <= 0"
    assert "Piecewise" not in condition_in_words(sp.And(sp.Gt(rate, 0, evaluate=False), A > 1))
