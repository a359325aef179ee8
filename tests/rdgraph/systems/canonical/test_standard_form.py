"""Functions that are equal have one presentation, with the same values, defined at the same states."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import rdgraph as rd
from rdgraph.language.normal_form import H
from rdgraph.systems.canonical.cancelled_parts import Nought
from rdgraph.systems.canonical.standard_form import in_trigonometric_factors, standard_form
from tests.adversary.rewriting import IDENTITIES

WRAPS = ("{}", "-alpha*L@H + beta*({})", "A@({})", "({})*H", "tanh({})")
#: Quotients of polynomials stay as they were written.
QUOTIENTS = ("H**2/(1 + H**2)", "H**3/(1 + H**2)")
NUMPY = {
    "relu": lambda x: np.maximum(x, 0), "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "softplus": lambda x: np.log1p(np.exp(x)),
}  # fmt: skip


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("pair", [pair for pair in IDENTITIES if pair[0] not in QUOTIENTS])
def test_equal_functions_have_one_normal_form(pair: tuple[str, str], wrap: str) -> None:
    first, second = (rd.parse(wrap.format(side)) for side in pair)
    assert first.normal == second.normal


@pytest.mark.parametrize(
    "text",
    [
        "tanh(H)", "sigmoid(H)", "relu(H)", "abs(H)", "sin(H)", "cos(3*H)", "softplus(H)", "exp(-H**2)*tanh(H)",
        "sigmoid(H - 1)", "tanh(relu(H))", "tanh(alpha*H)", "A@tanh(H)", "sigmoid(H)*(A@H)", "sqrt(1 + H**2)*tanh(H)",
        "exp(abs(H))", "sigmoid(H)*sigmoid(3*H)", "tanh(H)/(1 + H**2)", "H*sin(2*H)/(sin(H)*cos(H))", "sqrt(tanh(H))",
    ],
)  # fmt: skip
def test_what_is_in_that_form_or_has_none_stays(text: str) -> None:
    system = rd.parse(text)
    normal = system.algebra.normal(system.expression)
    assert standard_form(normal, system.algebra) == normal


@pytest.mark.parametrize(
    "text",
    [
        "tanh(H)*exp(H)", "tanh(H)*tanh(2*H)", "sigmoid(H)**3*cos(H)**2", "tanh(H + H0)*sigmoid(2*H)*exp(H0)",
        "sin(H)**2*cos(H0)**3", "relu(H - 1)*tanh(H)**2", "abs(H)*relu(H0) - relu(-H)*H", "tanh(H - H0)*exp(-H)",
        "1/(1 + exp(-H))**2*sin(H + 1)", "softplus(-H)*sigmoid(-2*H)", "sigmoid(H*H0 - H)**2",
    ],
)  # fmt: skip
def test_values_are_kept(text: str) -> None:
    system = rd.parse(text)
    letters = sorted(system.normal.free_symbols, key=str)
    before = system.algebra.normal(system.expression)
    points = np.random.default_rng(0).normal(size=(len(letters), 20))
    sides = [sp.lambdify(letters, form, [NUMPY, "numpy"])(*points) for form in (before, system.normal)]
    assert np.allclose(*sides, rtol=1e-9, atol=1e-9)


def test_what_cancels_is_still_not_defined_everywhere() -> None:
    assert rd.parse("cos(H)**2*H/H").normal == sp.cos(2 * H) / 2 + sp.S.Half + Nought(1 / H)


@pytest.mark.parametrize(
    ("sum_", "product"),
    [
        (sp.cos(2 * H) + 1, 2 * sp.cos(H) ** 2), (sp.cos(H) - 1, -2 * sp.sin(H / 2) ** 2),
        (1 - sp.sin(H), 2 * sp.sin(H / 2 - sp.pi / 4) ** 2), (sp.sin(H) - H, sp.sin(H) - H),
        (sp.cos(H) * (H**2 - 1), (H - 1) * (H + 1) * sp.cos(H)),
    ],
)  # fmt: skip
def test_sums_of_waves_as_products(sum_: sp.Expr, product: sp.Expr) -> None:
    assert in_trigonometric_factors(sum_) == product


PAIRS = (
    ("beta*cos(H)**2", "beta*(1 + cos(2*H))/2"),
    ("tanh(H)**2", "((exp(2*H) - 1)/(exp(2*H) + 1))**2"),
    ("relu(H - 1) + 1", "(H + 1 + abs(H - 1))/2"),
    ("sigmoid(A@H)*(1 - sigmoid(A@H))", "exp(A@H)/(1 + exp(A@H))**2"),
    ("sqrt((H - 1)**2)", "abs(H - 1)"),
    ("abs(tanh(H))", "tanh(abs(H))"),
    ("exp(softplus(H))", "1 + exp(H)"),
)


@pytest.mark.parametrize("pair", PAIRS)
def test_two_forms_get_the_same_answers(pair: tuple[str, str]) -> None:
    for question in (
        rd.lipschitz_global,
        rd.theory.lipschitz_local,
        rd.theory.one_sided,
        rd.steady_states,
        rd.invariant_box,
    ):
        first, second = map(question, pair)
        assert first == second
    assert rd.theory.energy_law(pair[0]).decays == rd.theory.energy_law(pair[1]).decays


def test_all_zeros_of_a_squared_cosine_are_found_in_either_form() -> None:
    for text in PAIRS[0]:
        found = rd.steady_states(text)
        assert len(found.states) == 64
        assert found.is_complete
