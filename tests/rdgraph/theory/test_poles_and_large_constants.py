"""Poles, constants beyond double precision and complex numbers leave answers open, or are refused; nothing else."""

from __future__ import annotations

import pytest

import rdgraph as rd
from rdgraph.errors import NotApplicable
from rdgraph.theory.gradient_flow import gradient_flow

POLES = ("1/sin(H)", "-alpha*L@H + 1/sin(H)", "cos(H)/sin(H)", "1/(1 - cos(H))")


@pytest.mark.parametrize("line", POLES)
def test_poles_of_waves_have_no_constants(line: str) -> None:
    system = rd.parse(line)
    assert rd.lipschitz_global(system).value is None
    assert rd.theory.one_sided(system).value is None
    assert rd.theory.energy_law(system).decays.startswith("undecided")


def test_a_quotient_that_is_not_defined_at_zero_has_no_box() -> None:
    assert not rd.invariant_box("H/sin(H)", "row").exists


@pytest.mark.parametrize("line", ["exp(-20000)*H", "exp(20000)*H", "exp(-99999999999)*H", "exp(2**30)*H"])
def test_constants_beyond_double_precision_are_refused(line: str) -> None:
    with pytest.raises(NotApplicable, match="at most 700"):
        rd.preflight(line)


@pytest.mark.parametrize(
    "line",
    ["-a - H**2 where a nonnegative", "-alpha*L@H - H**2 - a where a nonnegative", "H**4 + a where a nonnegative"],
)
def test_states_are_real_at_the_edge_of_what_is_assumed(line: str) -> None:
    answer = rd.steady_states(line)
    (state,) = answer
    assert answer.is_complete
    assert list(state.values.values()) == [0]
    assert [str(condition) for condition in state.conditions] == ["Eq(a, 0)"]


def test_a_state_at_which_the_equation_as_written_has_no_value_is_none() -> None:
    answer = rd.steady_states("2*relu(H - 3) - 1/(1/H + 1)")
    assert all(abs(state.numbers()["H"]) > 1e-9 for state in answer)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("-L@H + H**2 + H0", "symmetric"),
        pytest.param("0.3*H*(A@H) + 0.2*H0 + 0.45*tanh((A@H)**2) - 0.75*L@H", "row", marks=pytest.mark.slow),
    ],
)
def test_boxes_without_positive_states_are_not_ruled_out_by_a_positive_source(line: str, kind: str) -> None:
    """[-5, 0] and [-1, 0] are invariant for H0 in them."""
    assert not rd.invariant_box(line, kind).is_left


def test_a_bound_of_the_energy_names_its_graphs() -> None:
    decays = rd.theory.energy_law(rd.parse("-H*softplus(H) + beta*A@H")).decays
    assert "(2*beta + " in decays
    assert decays.endswith("on every undirected regular graph")


def test_a_potential_is_a_real_number() -> None:
    answer = gradient_flow(rd.parse("-alpha*L@H + beta*H*sigmoid(-H*H)"))
    assert answer.energy is not None
    assert answer.potential is None
    cubic = gradient_flow(rd.parse("-alpha*L@H + beta*H - H**3"))
    assert cubic.potential is not None
