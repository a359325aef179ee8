"""Domains that are split where an answer needs to know more, and answers that are joined again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sympy as sp

from rdgraph.errors import Undecided
from rdgraph.reals.domain import Domain
from rdgraph.reals.regions import MAX_DEPTH, Split, cases, reduced, strict_sign
from tests.naming import shown

X, Y, Z = sp.symbols("x y z", real=True)
A, N = sp.Symbol("a", positive=True), sp.Symbol("n", negative=True)
Q, M = sp.Symbol("q", nonnegative=True), sp.Symbol("m", nonpositive=True)


def signs(expression: sp.Expr) -> tuple[sp.Basic, ...]:
    return tuple(relation(expression, 0, evaluate=False) for relation in (sp.Gt, sp.Eq, sp.Lt))


@pytest.mark.parametrize(
    ("conditions", "expression", "expected"),
    [
        ((), A, 1), ((), N, -1), ((), X - X, 0), ((), X**2 + 1, 1), ((), A * N, -1), ((X > Y,), X - Y, 1),
        ((sp.Ne(X, 0),), X**2, 1), ((sp.Eq(X, 0),), X**2, 0), ((sp.Ne(X, 0),), -(X**2), -1),
        ((sp.Eq(Q, 0, evaluate=False),), Q, 0), ((Q > 0,), Q, 1), ((M < 0,), M, -1),
        ((sp.Eq(M, 0, evaluate=False),), M, 0),
    ],
)  # fmt: skip
def test_strict_signs(conditions: tuple[Any, ...], expression: sp.Expr, expected: int) -> None:
    assert strict_sign(Domain(conditions), expression) == expected


@pytest.mark.parametrize(
    ("expression", "asked"),
    [
        (X, X), (A * X, X), (X**2, X), (X - Y, X - Y), (A - X, A - X), (X * A - A**2, A - X),
        ((X - 1) / (A + 2), X - 1),
        (A / (X - 1), X - 1), (sp.sqrt(X), sp.sqrt(X)), (sp.exp(X) - 1, sp.exp(X) - 1), (Q, Q), (M, M),
    ],
    ids=shown,
)  # fmt: skip
def test_a_sign_that_differs_splits_at_the_factor_that_decides(expression: sp.Expr, asked: sp.Expr) -> None:
    with pytest.raises(Split) as split:
        strict_sign(Domain(), expression)
    assert split.value.parts in (signs(asked), signs(sp.expand(-asked)))
    assert str(split.value) == ", ".join(map(str, split.value.parts))


def test_an_unknown_sign_is_undecided() -> None:
    with pytest.raises(Undecided, match=r"the sign of gamma\(x\) is not known"):
        strict_sign(Domain(), sp.gamma(X))


def test_equations_are_put_in() -> None:
    assert reduced(Domain((sp.Eq(X - Y, 0),)), X**2 - X * Y + 1) == 1
    assert reduced(Domain((sp.Eq(2 * X, Y + 4),)), X) == Y / 2 + 2
    assert reduced(Domain((sp.Eq(X * Y, 1),)), X + Z) == X + Z, "no letter has a slope that is a number"
    assert reduced(Domain((sp.Gt(X, Y),)), X) == X
    assert reduced(Domain((sp.Eq(X, Y), sp.Eq(Y, Z))), X + Y) == 2 * Z
    assert reduced(Domain((sp.Eq(X - Y, 0),)), Z) == Z


def sign_of(letter: sp.Symbol) -> Callable[[Domain], int]:
    return lambda domain: strict_sign(domain, letter)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (sign_of(X), [(X > 0, 1), (sp.Eq(X, 0), 0), (X < 0, -1)]),
        (lambda d: max(strict_sign(d, X), 0), [(X > 0, 1), (X <= 0, 0)]),
        (lambda d: min(strict_sign(d, X), 0), [(X >= 0, 0), (X < 0, -1)]),
        (lambda d: abs(strict_sign(d, X)), [(sp.Ne(X, 0), 1), (sp.Eq(X, 0), 0)]),
        (lambda d: strict_sign(d, X) * 0, [(sp.true, 0)]),
        (lambda d: strict_sign(d, A), [(sp.true, 1)]),
        (lambda d: strict_sign(d, Q), [(Q > 0, 1), (sp.Eq(Q, 0), 0)]),
        (lambda d: max(strict_sign(d, X), 0) * max(strict_sign(d, Y), 0),
         [(sp.And(X > 0, Y > 0), 1), (sp.And(X > 0, Y <= 0), 0), (X <= 0, 0)]),
    ],
)  # fmt: skip
def test_answers_with_their_conditions(question: Callable[[Domain], int], expected: list[tuple[Any, int]]) -> None:
    assert cases(Domain(), question) == expected


def test_parts_outside_of_the_domain_are_left_out() -> None:
    assert cases(Domain((X >= 0,)), sign_of(X)) == [(X > 0, 1), (sp.Eq(X, 0), 0)]
    assert cases(Domain((X > 0,)), sign_of(X)) == [(sp.true, 1)]
    assert cases(Domain((X >= 0,)), lambda d: abs(strict_sign(d, X)) + 1 - abs(strict_sign(d, X))) == [(sp.true, 1)]


def test_unions_that_are_no_relation_are_written_out() -> None:
    parts = (sp.Lt(X, 1), sp.Ge(X, 1) & sp.Lt(X, 2), sp.Ge(X, 2))

    def ends(domain: Domain) -> str:
        for part, answer in zip(parts, ("end", "middle", "end"), strict=True):
            if domain.proves(part):
                return answer
        raise Split(*parts)

    (union, end), (middle, name) = cases(Domain(), ends)
    assert (end, name) == ("end", "middle")
    assert union == sp.Or(parts[0], parts[2])
    assert middle == parts[1]


def test_a_question_that_splits_for_ever_is_given_up() -> None:
    depths: list[int] = []

    def restless(domain: Domain) -> int:
        depths.append(len(domain.conditions))
        raise Split(sp.Gt(X, len(domain.conditions)), sp.Le(X, len(domain.conditions)))

    with pytest.raises(Undecided, match="too many conditions"):
        cases(Domain(), restless)
    assert max(depths) == MAX_DEPTH
