"""What is divided by a mask, or by H0, has no value where that is 0: no answer and no run hides it."""

from __future__ import annotations

import pytest
import torch

import rdgraph as rd
from rdgraph.errors import NotApplicable

GRAPH = rd.generators.path(4)
START = torch.tensor([[1.0], [0.0], [2.0], [3.0]], dtype=torch.float64)
MASKED = ["M*H/M - H", "M/M*H0 - L@H", "-L@H + M*H**2/M", "(1 - M)*H*(1 - M)**-1 - H"]
STARTED = ["H0/H0*H - H", "H*H0/H0", "-L@H + H0**2/H0"]


@pytest.mark.parametrize("text", MASKED + STARTED)
def test_questions_are_undecided(text: str) -> None:
    system = rd.parse(text)
    assert rd.existence(system).outcome == "undecided"
    assert rd.preflight(system, T=1, method="euler", step=0.1).outcome == "undecided"
    assert rd.theory.energy_law(system).decays.startswith("undecided")
    for bound in (rd.lipschitz_global(system), rd.theory.lipschitz_local(system), rd.theory.one_sided(system)):
        assert bound.value is None
        assert bound.reason.startswith("undecided")
    assert rd.step_limit(system, "euler").value is None
    with pytest.raises(NotApplicable, match=r"not defined|nonlinear|does not commute"):
        system.symbol()


@pytest.mark.parametrize("text", MASKED)
@pytest.mark.parametrize("hole", [True, False])
def test_runs_fail_exactly_where_the_mask_has_a_hole(text: str, hole: bool) -> None:
    inside = 1.0 if "1 - M" not in text else 0.0
    mask = torch.full((4,), inside, dtype=torch.float64)
    mask[1] = 1 - inside if hole else inside
    field = rd.lower(text, GRAPH.operator("symmetric", dtype=torch.float64), {"M": mask})
    assert bool(torch.isnan(field(0.0, START + 1)[1]) if "H0" not in text else hole) == hole
    for method in ("auto", "euler"):
        step = {} if method == "auto" else {"step": 0.1}
        # A quarter of the start: H' = H**2 - L@H from 3 has no value at 0.5.
        assert rd.solve(field, START / 4, t=[0.0, 0.5], method=method, **step).ok is not hole


@pytest.mark.parametrize("text", STARTED)
def test_runs_fail_exactly_where_the_start_is_zero(text: str) -> None:
    field = rd.lower(text, GRAPH.operator("symmetric", dtype=torch.float64), {})
    assert not rd.solve(field, START, t=[0.0, 0.5]).ok
    assert rd.solve(field, START + 1, t=[0.0, 0.5]).ok


def test_a_mask_in_front_divides_nothing() -> None:
    field = rd.lower(
        "-L@H + M*H0", GRAPH.operator("symmetric", dtype=torch.float64), {"M": torch.tensor([1.0, 0, 1, 1])}
    )
    assert rd.solve(field, START, t=[0.0, 0.5]).ok
