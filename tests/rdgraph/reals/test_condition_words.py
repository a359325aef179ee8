"""Formulas in words: no branch of sympy's, no uncomputed number."""

from __future__ import annotations

import pytest
import sympy as sp

from rdgraph.reals.condition_words import in_words
from rdgraph.vocabulary.functions import softplus

A, B, M = sp.symbols("a b m")


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


@pytest.mark.parametrize(("rounding", "words"), [(-1, "2.7852/a"), (0, "2.78523333333333/a"), (1, "2.7853/a")])
def test_limits_are_rounded_down_and_bounds_up(rounding: int, words: str) -> None:
    assert in_words(sp.Float("2.78523333333333") / A, rounding) == words
    both = sp.Piecewise((sp.Float("2.78523333333333") / A, A > 1), (sp.S.One, True))
    assert in_words(both, rounding) == f"{words} if a > 1, otherwise 1"
