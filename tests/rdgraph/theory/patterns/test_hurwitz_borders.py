"""What conditions for patterns leave open: vanishing Hurwitz determinants, and the complex lam of directed graphs."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import rdgraph as rd

#: s^4 + a*b = 0 where all nodes agree: no damping, and eigenvalues at angles of 45 degrees.
UNDAMPED = "u'' = a*v - L@u; v'' = -b*u - L@v"


def _growth(system: str, values: dict[str, int], lam: float = 0.0) -> complex:
    """The fastest eigenvalue of P(lam), with numpy."""
    symbol = rd.turing(system).symbol.subs({**values, sp.Symbol("lam"): lam})
    eigenvalues = np.linalg.eigvals(np.array(symbol, dtype=float))
    return complex(max(eigenvalues, key=lambda z: (z.real, z.imag)))


def test_growing_oscillations_with_vanishing_determinants_are_not_called_impossible() -> None:
    fastest = _growth(UNDAMPED, {"a": 1, "b": 1})
    assert fastest.real == pytest.approx(np.sqrt(0.5))
    assert abs(fastest.imag) == pytest.approx(np.sqrt(0.5))
    answer = rd.turing(UNDAMPED)
    assert answer.hopf.outcome == "undecided"
    assert "vanish" in answer.hopf.reason
    with pytest.raises(rd.errors.Undecided, match="vanishes"):
        answer.holds({"a": 1, "b": 1}, "hopf")


def test_damped_oscillators_still_have_no_hopf_instability() -> None:
    system = "u'' = -a*u - u' - L@u; v'' = -b*v - v' - L@v"
    answer = rd.turing(system)
    assert _growth(system, {"a": 1, "b": 2}).real < 0
    assert answer.holds({"a": 1, "b": 2}, "hopf") is False
    assert rd.turing("u'' = -u - u' - L@u; v'' = -2*v - v' - L@v").hopf.outcome == "impossible"


def test_conditions_about_real_lam_say_so() -> None:
    """Weakly damped waves decay for every real lam, and grow on a directed cycle of six nodes."""
    waves = "u' = v; v' = -u - c*L@u - v/10"
    cycle = np.eye(6) - np.roll(np.eye(6), 1, axis=1)
    zero, one = np.zeros((6, 6)), np.eye(6)
    flow = np.block([[zero, one], [-one - cycle, -one / 10]])
    assert np.linalg.eigvals(flow).real.max() > 0.29
    answer = rd.turing(waves)
    assert {result.outcome for result in answer.sets.values()} == {"impossible"}
    assert "undirected" in answer.assumes
    assert "undirected" in rd.turing_threshold(waves, "c", {}).assumes
    assert "undirected" not in rd.turing("u' = v; v' = -u - v").assumes
