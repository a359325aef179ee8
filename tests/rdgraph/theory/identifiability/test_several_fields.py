"""What several fields reveal of their coefficients."""

from __future__ import annotations

import pytest
import sympy as sp

import rdgraph as rd


@pytest.mark.parametrize(
    ("text", "combinations"),
    [
        ("u' = a - u + u**2*v - Du*L@u; v' = b - u**2*v - Dv*L@v", {"Du", "Dv", "a", "b"}),
        ("u' = alpha*L@u - beta*L@u; v' = -v", {"alpha - beta"}),
        ("u' = alpha*L@u - beta*L@u; v' = alpha*v", {"alpha", "beta"}),
        ("u' = a*b*u*v; v' = -v", {"a*b"}),
        (
            "u' = -Du*L@u + u*(1 - u) - a*u*v/(1 + u); v' = -Dv*L@v + b*u*v/(1 + u) - c*v",
            {"Du", "Dv", "a", "b", "c"},
        ),
        ("H'' = -(alpha + gamma)*H - beta*H'", {"beta", "alpha + gamma"}),
        ("u' = -alpha*exp(-t)*u + beta*sin(t)", {"alpha", "beta"}),
    ],
)
def test_combinations(text: str, combinations: set[str]) -> None:
    answer = rd.theory.identify(text)
    assert answer.status == "proved"
    assert {str(c) for c in answer.combinations} == combinations
    assert answer.rank == len(combinations)
    assert all(isinstance(c, sp.Expr) for c in answer.combinations)


@pytest.mark.parametrize("text", ["u' = B@u - a*u where B signed", "u' = -a*u + sigma*xi"])
def test_unsupported_systems_are_undecided(text: str) -> None:
    answer = rd.theory.identify(text)
    assert answer.status == "undecided"
    assert "not supported" in answer.reason


def test_one_graph_is_undecided() -> None:
    assert rd.theory.identify("u' = -a*u; v' = u", graph=[[0, 1], [1, 0]]).status == "undecided"
