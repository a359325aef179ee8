"""Equations whose functions cancel are what they are without them; all others stay as they were written."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp
import torch
from hypothesis import given
from hypothesis import strategies as st

import rdgraph as rd
from rdgraph.language.normal_form import H0, H
from rdgraph.systems.canonical.cancelled_parts import without_cancelling

CANCELLING = [
    ("relu(H) - relu(-H)", "H"),
    ("softplus(H) - softplus(-H)", "H"),
    ("beta*H*sin(H)**2 + beta*H*cos(H)**2", "beta*H"),
    ("beta*(sin(2*H) - 2*sin(H)*cos(H))", "0*H"),
    ("2*sigmoid(2*H) - 1 - tanh(H) + A@H", "A@H"),
    ("A@relu(H) - A@relu(-H)", "A@H"),
    ("relu(A@H) - relu(-A@H)", "A@H"),
    ("relu(H)*relu(-H) + L@H", "L@H"),
    ("tanh(M*H) - M*tanh(H) + H", "H"),
    ("abs(tanh(H)) - tanh(abs(H)) + H0", "H0"),
    ("exp(H + H0) - exp(H)*exp(H0) + H", "H"),
    ("relu(H) - relu(-H) + tanh(H)", "H + tanh(H)"),
    ("cos(H)**2 + sin(H)**2 - H*relu(H0) + H*relu(-H0)", "1 - H*H0"),
]


@pytest.mark.parametrize(("text", "plain"), CANCELLING)
def test_functions_that_cancel_are_gone(text: str, plain: str) -> None:
    found, expected = rd.parse(text), rd.parse(plain)
    assert found.normal == expected.normal
    assert found.structure.linear == expected.structure.linear
    assert found.normals["H"] == expected.normals["H"]


@pytest.mark.parametrize(
    "text",
    [
        "relu(H) + relu(-H)", "tanh(H) - sigmoid(H)", "sin(2*H) - 2*sin(H)", "relu(H) - relu(-H0)", "tanh(H)*H",
        "A@relu(H) - relu(A@H)", "H*sin(2*H)/(sin(H)*cos(H))", "sqrt(H)*sqrt(H0) - sqrt(H*H0)",
        "sin(H)**2/(1 + H**2) + cos(H)**2/(1 + H**2)", "relu(H) - relu(-H) + abs(H)",
    ],
)  # fmt: skip
def test_others_stay_as_they_were_written(text: str) -> None:
    system = rd.parse(text)
    normal = system.algebra.normal(system.expression)
    assert without_cancelling(normal, system.algebra) == normal
    assert not system.structure.linear


def test_fractions_with_letters_below_alone_have_a_sign() -> None:
    """A mask leaves M/(2*exp(H)), whose part without M is 1/(2*exp(H)): no letter above, one below."""
    normal = rd.parse("softplus(M/(1 + M**2)/exp(H))").normal
    mask, state = sorted(normal.free_symbols, key=str, reverse=True)
    value = sp.lambdify([mask, state], normal, [{"softplus": lambda x: np.log1p(np.exp(x))}, "numpy"])
    points = np.linspace(-2, 2, 9)
    for m in (0.0, 1.0):
        np.testing.assert_allclose(value(m, points), np.log1p(np.exp(m / 2 * np.exp(-points))), rtol=1e-12)


def test_equations_of_several_fields_lose_them_too() -> None:
    system = rd.parse("du/dt = -L@u + relu(v) - relu(-v); dv/dt = -L@v - u")
    assert system.coupling.is_linear
    assert system.generator_matrix == rd.parse("du/dt = -L@u + v; dv/dt = -L@v - u").generator_matrix


def test_the_flow_is_that_of_the_plain_equation() -> None:
    operator = rd.generators.star(6).operator("symmetric", dtype=torch.float64)
    start = torch.linspace(-1, 1, 12, dtype=torch.float64).reshape(6, 2)
    written, plain = (
        rd.solve(rd.lower(text, operator, {"alpha": 0.7}), start, [0.0, 1.5]).final
        for text in ("-alpha*L@H + softplus(H) - softplus(-H)", "-alpha*L@H + H")
    )
    assert torch.allclose(written, plain, rtol=1e-9, atol=1e-12)


PIECES = [sp.sin(H), sp.cos(H), sp.tanh(H), sp.Abs(H), sp.Abs(H0), sp.exp(H), sp.exp(-H), sp.sin(2 * H), H, H0]
PAIRS = [sp.sin(H) ** 2, sp.cos(H) ** 2, sp.tanh(H) * (sp.exp(2 * H) + 1), -sp.exp(2 * H), sp.Abs(H) ** 2, sp.S.One]


@given(st.lists(st.tuples(st.integers(-2, 2), st.sampled_from(PIECES), st.sampled_from(PAIRS)), max_size=5))
def test_values_are_kept(terms: list[tuple[int, sp.Expr, sp.Expr]]) -> None:
    before = sp.expand(sp.Add(*(c * x * y for c, x, y in terms)))
    after = without_cancelling(before, rd.parse("H").algebra)
    points = np.random.default_rng(0).normal(size=(2, 20))
    values = [sp.lambdify([H, H0], e, "numpy")(*points) * np.ones(20) for e in (before, after)]
    np.testing.assert_allclose(values[1], values[0], rtol=1e-9, atol=1e-7)
