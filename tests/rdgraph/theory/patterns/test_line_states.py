"""Steady states of one field on the whole line, and what becomes of small deviations."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import rdgraph as rd


def told(text: str, values: dict[str, float] | None = None) -> list[tuple[float, str]]:
    return sorted((float(next(iter(s.values.values()))), s.stability) for s in rd.steady_states(text, values))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("F", [(0, "unstable"), (1, "stable")]),
        ("AC", [(-1, "stable"), (0, "unstable"), (1, "stable")]),
        ("Z", [(0, "unstable"), (1, "stable")]),
        ("-alpha*L@H + beta*tanh(H)", [(0, "unstable")]),
        ("-alpha*L@H - beta*tanh(H)", [(0, "stable")]),
        ("-alpha*L@H + H/(H**2 + 1)", [(0, "unstable")]),
        ("-alpha*L@H + exp(-H)", []),
        ("-alpha*L@H + H*tanh(1 - H)", [(0, "unstable"), (1, "stable")]),
        ("-alpha*L@H + abs(H) - H**2", [(-1, "unstable"), (0, "unstable"), (1, "stable")]),
        ("-alpha*L@H + H*(1 - abs(H))", [(-1, "stable"), (0, "unstable"), (1, "stable")]),
        ("-alpha*L@H + relu(H) - H**3", [(0, "unstable"), (1, "stable")]),
        ("-alpha*L@H + tanh(sin(H)) - H", [(0, "marginal")]),
        ("-L@H - 3*A@H + tanh(H)", [(0, "unstable for some lam")]),
    ],
)
def test_states_and_their_stability(text: str, expected: list[tuple[float, str]]) -> None:
    answer = rd.steady_states(text)
    assert answer.is_complete
    assert "box" not in answer.reason
    assert told(text) == expected


def test_a_threshold_in_the_coefficients() -> None:
    (state,) = rd.steady_states("-alpha*L@H + tanh(H) - beta*H")
    assert state.stability == "stable iff 1 - beta < 0"
    assert told("-alpha*L@H + tanh(H) - beta*H", {"alpha": 1, "beta": 1.5}) == [(0, "stable")]
    low, middle, high = told("-alpha*L@H + tanh(H) - beta*H", {"alpha": 1, "beta": 0.5})
    assert [low[1], middle[1], high[1]] == ["stable", "unstable", "stable"]
    assert np.isclose(np.tanh(high[0]), high[0] / 2)


def test_waves_repeat() -> None:
    answer = rd.steady_states("-alpha*L@H + beta*sin(H)")
    assert answer.reason.endswith("repeat these with the period 2*pi")
    values = {state.values["H"]: state.stability for state in answer}
    assert values[sp.pi] == "stable"
    assert values[2 * sp.pi] == "unstable"


def test_only_the_given_box_is_searched() -> None:
    answer = rd.steady_states("-alpha*L@H + sin(H)", {"alpha": 1}, box=(1, 7))
    assert sorted(float(s.values["H"]) / np.pi for s in answer) == pytest.approx([1, 2])
    assert "all in the box [1, 7]" in answer.reason


def test_what_jumps_times_zero_has_a_linearisation() -> None:
    relation = rd.dispersion("-alpha*L@H + H*(1 - abs(H))", {"alpha": 1}, state={"H": 0})
    assert relation.kind == "unstable at 0"
    with pytest.raises(rd.errors.NotApplicable, match="jumps there"):
        rd.dispersion("-alpha*L@H + abs(H) - H**2", {"alpha": 1}, state={"H": 0})
