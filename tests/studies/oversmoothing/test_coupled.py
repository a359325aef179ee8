"""Layers of second order and of two fields: energies against matrix exponentials, and what the verdicts follow."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.linalg import expm

from analysis.measures.energies import dirichlet_energy
from studies.oversmoothing import coupled_part as judged
from studies.oversmoothing import study as oversmoothing
from studies.oversmoothing.coupled_part import (
    COUPLED,
    DAMPED,
    EVEN,
    TURING,
    UNDAMPED,
    coupled_rows,
    growth_rows,
    solve_coupled,
)
from studies.oversmoothing.flows import GraphEnsemble
from studies.oversmoothing.rows import select
from studies.runs.study_run import NAME_PATTERN
from studies.runs.tables import MutableRow

TINY = {**oversmoothing.settings(True), "graphs": 2, "sizes": [10, 10]}


@pytest.fixture(scope="module")
def ensemble() -> GraphEnsemble:
    return GraphEnsemble.make(TINY, seed=1)


@pytest.fixture(scope="module")
def found(ensemble: GraphEnsemble) -> tuple[list[MutableRow], list[MutableRow]]:
    rows = [row for flow in COUPLED for row in coupled_rows(flow, ensemble, TINY)]
    return rows, [row for flow in COUPLED for row in growth_rows(flow, ensemble)]


@pytest.mark.parametrize(("flow", "gamma", "alpha"), [(UNDAMPED, 1.5, 0.0), (DAMPED, 1.0, 1.0), (EVEN, 1.5, 0.5)])
def test_energies_agree_with_the_matrix_exponential(flow, gamma, alpha, ensemble: GraphEnsemble) -> None:
    short = {**TINY, "coupled_time": 4.0, "coupled_saves": 2, "coupled_step": 0.02}
    solved = solve_coupled(flow, ensemble, short)
    member = ensemble.members[1]
    W = member.graph.adjacency.toarray()
    A, eye, zero = W / W.sum(1, keepdims=True), np.eye(20), np.zeros((20, 20))
    generator = np.block([[zero, eye], [A - gamma * eye, -alpha * eye]])
    end = expm(4 * generator) @ np.concatenate([member.features, np.zeros_like(member.features)])
    plain = member.graph.operator("none", dtype=torch.float64)
    for name, block in (("H", end[:20]), ("H'", end[20:]), ("all", np.concatenate([end[:20], end[20:]], axis=1))):
        expected = float(dirichlet_energy(torch.as_tensor(block), plain))
        assert solved.energies[name][-1, 1] == pytest.approx(expected, rel=1e-6)
        assert solved.sizes[name][-1, 1] == pytest.approx(np.square(block).sum(), rel=1e-6)


def test_growth_rates_are_the_roots() -> None:
    lam = np.array([0.0, 0.2, 1.0])
    np.testing.assert_allclose(DAMPED.growth(lam), [0, (-1 + np.sqrt(0.2)) / 2, -0.5], atol=1e-12)
    np.testing.assert_allclose(EVEN.growth(lam), [-0.25] * 3, atol=1e-12)
    np.testing.assert_allclose(UNDAMPED.growth(lam), [0.0] * 3, atol=1e-12)
    matrix = np.array([[1 - 0.1, -1.0], [3.0, -2 - 8.0]])
    assert TURING.growth(lam)[2] == pytest.approx(np.linalg.eigvals(matrix).real.max())


def test_the_layers_are_judged(found: tuple[list[MutableRow], list[MutableRow]]) -> None:
    answers = [answer.answer for answer in judged.coupled_verdicts(*found)]
    assert answers == ["holds", "fails", "holds", "holds", "fails", "holds", "fails"]


def test_verdicts_follow_the_numbers(found: tuple[list[MutableRow], list[MutableRow]]) -> None:
    rows, rates = found
    late = [{**row, "normalised": 1.0} for row in rows]
    assert judged.damped(late, rates).answer == "undecided"
    assert judged.theorem(late, rates).answer == "undecided"
    growing = [{**rate, "beyond_0": 1.0} for rate in rates]
    assert judged.damped(rows, growing).answer == "undecided"
    calm = [{**rate, "beyond_0": -1.0} for rate in rates]
    assert judged.turing(rows, calm).answer == "undecided"
    drifting = [{**row, "conserved": 0.5} for row in rows]
    assert judged.undamped(drifting).answer == "undecided"


def test_undamped_modes_keep_their_energy(found: tuple[list[MutableRow], list[MutableRow]]) -> None:
    rows = select(found[0], flow=UNDAMPED.name, field="H", t=0.0)
    assert all(float(row["conserved"]) < 1e-3 for row in rows)
    assert all(0 < float(row["predicted"]) < float(row["energy"]) for row in rows)


def test_names_are_names_of_files() -> None:
    keys = [flow.key for flow in COUPLED]
    assert len(set(keys)) == len(keys)
    assert all(NAME_PATTERN.fullmatch(key) for key in keys)
