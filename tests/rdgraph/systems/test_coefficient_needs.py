"""Divisions by coefficients and roots of coefficients: where an equation is defined at all, and answers that use it."""

from __future__ import annotations

import pytest
import sympy as sp

import rdgraph as rd


@pytest.mark.parametrize(
    ("text", "admitted", "refused"),
    [
        ("sqrt(alpha - 1)*H - H", {"alpha": 1}, {"alpha": sp.Rational(1, 2)}),
        ("-alpha*L@H + H/(alpha - beta)", {"alpha": 2, "beta": 1}, {"alpha": 2, "beta": 2}),
        ("-L@H - H/alpha where alpha real", {"alpha": -1}, {"alpha": 0}),
        ("u' = u/sqrt(a - b) - v - L@u; v' = u - v", {"a": 2, "b": 1}, {"a": 1, "b": 1}),
    ],
)
def test_the_domain_is_where_the_equation_is_defined(
    text: str, admitted: dict[str, sp.Expr], refused: dict[str, sp.Expr]
) -> None:
    system = rd.parse(text)
    for values, holds in ((admitted, True), (refused, False)):
        numbers = {system.algebra.symbols[name]: value for name, value in values.items()}
        assert all(bool(c.subs(numbers)) for c in system.domain.conditions) is holds


@pytest.mark.parametrize(
    "text", ["H/alpha", "sqrt(beta)*H - H/(1 + alpha)", "H/(1 - H) + sqrt(H)", "M*H/M", "u' = u/(t - a)"]
)
def test_signs_states_masks_and_times_need_no_condition(text: str) -> None:
    assert rd.parse(text).coefficient_needs == ()


def test_limits_have_no_case_where_nothing_is_defined() -> None:
    limit = rd.step_limit("sqrt(alpha - 1)*H - H", "euler", "row").value
    (alpha,) = limit.free_symbols
    half = sp.Rational(1, 2)
    for at, largest in ((1, 2), (1 + half, 2 / (1 - sp.sqrt(half))), (3, sp.oo)):
        assert sp.Eq(limit.subs(alpha, at), largest) == sp.true
    assert len(limit.args) == 2  # alpha < 1 is no case


def test_the_page_says_where_an_equation_is_defined() -> None:
    assert "alpha - 1 >= 0" in rd.analyse("sqrt(alpha - 1)*H - H", ["row"]).notes["coefficients"]
    assert "coefficients" not in rd.analyse("-alpha*L@H", ["row"]).notes
