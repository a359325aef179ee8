"""Divisions and roots that cancel: answers about all states know where the equation as written has no value."""

from __future__ import annotations

import pytest
import sympy as sp
import torch

import rdgraph as rd
from rdgraph.language.normal_form import H
from rdgraph.systems.canonical.cancelled_parts import Nought, where_defined

#: Lines that are linear after cancelling, and what is written in a denominator or under a root.
CANCELLING = {
    "-alpha*L@H + beta*H**2/H": "1/H",
    "H/H": "1/H",
    "-alpha*L@H + beta*H*(A@H)/(A@H)": "1/(A@H)",
    "A@(H**2/H) - H": "1/H",
    "beta/H - beta/H - H": "1/H",
    "H*H**-1*H": "1/H",
    "sqrt(H)**2": "sqrt(H)",
}
SAFE = ("-alpha*L@H + beta*H*exp(H)/exp(H)", "2*H/2 - L@H", "alpha*H/alpha - L@H", "1/(1 + H**2) - 1/(1 + H**2) - H")


@pytest.mark.parametrize(("text", "part"), CANCELLING.items())
def test_what_cancels_is_not_linear_for_all_states(text: str, part: str) -> None:
    system = rd.parse(text)
    assert not system.structure.linear
    assert f"{part} cancels, but it is not defined for all states" in system.structure.obstacles
    with pytest.raises(rd.errors.NotApplicable, match="cancels, but it is not defined"):
        rd.theory.symbol(text)


@pytest.mark.parametrize(("text", "part"), CANCELLING.items())
def test_what_cancels_leaves_existence_and_bounds_undecided(text: str, part: str) -> None:
    found = rd.existence(text)
    assert found.status == "undecided"
    assert found.reason.startswith((f"{part} can be singular", f"{part} need not be defined"))
    assert rd.step_limit(text).value is None
    assert rd.lipschitz_global(text).value is None
    assert rd.theory.lipschitz_local(text).value is None
    assert rd.theory.one_sided(text).value is None
    box = rd.invariant_box(text, "row")
    assert not box.exists
    assert not box.is_left


@pytest.mark.parametrize("text", list(CANCELLING)[:3])
def test_reports_do_not_call_a_cancelling_line_safe(text: str) -> None:
    assert str(rd.preflight(text)).splitlines()[2].startswith("verdict: undecided: existence for all time")
    answers = rd.analyse(text).answers
    assert answers["linear"] is False
    assert answers["symbol"] is None
    assert answers["existence"] == "undecided"
    assert rd.theory.choose_method(text).method != "exact"


@pytest.mark.parametrize("text", list(CANCELLING)[:3])
def test_a_run_through_zero_fails_under_every_method(text: str) -> None:
    operator = rd.Graph.from_edges([[0, 1, 1, 2, 2, 3, 0, 2], [1, 0, 2, 1, 3, 2, 2, 0]]).operator(
        "row", dtype=torch.float64
    )
    system = rd.parse(text)
    field = rd.lower(system, operator, dict.fromkeys(system.coefficients, 0.5))
    start = torch.tensor([[0.0], [1.0], [-1.0], [2.0]], dtype=torch.float64)
    for options in ({}, {"method": "rk4", "step": 0.1}):
        assert not rd.solve(field, start, [0.0, 1.0], **options).ok
    with pytest.raises(rd.errors.NotApplicable, match="cancels, but it is not defined"):
        rd.solve(field, start, [0.0, 1.0], method="exact")


@pytest.mark.parametrize("text", SAFE)
def test_what_cannot_vanish_is_as_before(text: str) -> None:
    system = rd.parse(text)
    assert system.structure.linear
    assert not system.normal.has(Nought)
    assert rd.existence(text).outcome == "global"
    assert rd.theory.choose_method(text).method == "exact"


@pytest.mark.parametrize("text", ["beta/H - H", "H/(1 + H)", "beta*H/(1 + H**2) - L@H", "1/H + H**2/H", "sqrt(H)*H"])
def test_what_stays_is_not_said_twice(text: str) -> None:
    assert not rd.parse(text).normal.has(Nought)


def test_assumptions_decide_what_can_vanish() -> None:
    text = "1/(alpha + H**2) - 1/(alpha + H**2) - H"
    assert rd.existence(text).outcome == "global"
    assert rd.existence(f"{text} where alpha real").outcome == "undecided"


def test_bounds_of_slopes_see_factors_that_cancel() -> None:
    """H*(beta + H)/(beta + H) has the slope 1, and no value where H = -beta."""
    text = "-alpha*L@H + H*(beta + H)/(beta + H)"
    assert rd.lipschitz_global(text).value is None
    assert rd.step_limit(text).value is None
    assert rd.lipschitz_global("H*(1 + H**2)/(1 + H**2)").value == 1


def test_several_fields_and_noise() -> None:
    found = rd.existence("u' = u**2/u - L@u; v' = u - v")
    assert found.status == "undecided"
    assert "/u" in found.reason
    with pytest.raises(rd.errors.NotApplicable, match="1/u cancels"):
        rd.theory.symbol("u' = u**2/u - L@u; v' = u - v")
    assert rd.existence("-L@H + xi").outcome == "global"
    assert rd.existence("-L@H + xi*H/H").outcome == "undecided"


def test_laws_along_solutions_use_the_values_where_there_are_some() -> None:
    assert rd.theory.conserved("-alpha*L@H + H**2/H - H").rate == 0
    assert rd.theory.conserved("u' = u*v/v - v; v' = v - u").sums
    assert rd.theory.identify("-alpha*L@H + beta*H**2/H").single == ("alpha", "beta")


def test_nought_is_zero_where_its_argument_has_a_value() -> None:
    term = Nought(1 / H)
    assert term.xreplace({H: sp.Integer(2)}) == 0
    assert term.xreplace({H: sp.S.Zero}) != 0
    assert sp.diff(term, H) == term
    assert where_defined(3 * H + term) == 3 * H
    assert sp.latex(term) == r"0 \cdot \frac{1}{H}"
