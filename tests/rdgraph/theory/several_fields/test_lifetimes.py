"""Existence of several fields: what is proved, from which starts, and what is not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import rdgraph as rd


@pytest.mark.parametrize(
    ("text", "starts", "words"),
    [
        ("u' = -L@u + 2*v; v' = -u", "", "affine"),
        ("u' = -alpha*exp(-t)*L@u + beta*sin(omega*t)", "", "continuous in t"),
        ("H'' = -gamma*H - alpha*H' + tanh(A@H)", "", "at most linear growth"),
        ("u' = u*tanh(v); v' = u/(1 + u**2)", "", "at most linear growth"),
        ("u' = u - u**3/3 - v + c - Du*L@u; v' = epsilon*(u + a - b*v)", "", "damped"),
        ("u' = -beta*u*(A@v); v' = beta*u*(A@v) - v; w' = v", "u, v, w >= 0", "u + v + w"),
        ("u' = a - u + u**2*v - Du*L@u; v' = b - u**2*v - Dv*L@v", "u, v >= 0", "u + v"),
        ("u' = alpha*u - a*u*v; v' = b*u*v - gamma*v", "u, v >= 0", "a/b*v"),
    ],
)
def test_solutions_that_live_for_all_time(text: str, starts: str, words: str) -> None:
    answer = rd.existence(text)
    assert (answer.outcome, answer.starts) == ("global", starts)
    assert words in answer.reason


def test_blow_up_is_shown_on_a_field_that_is_alone() -> None:
    answer = rd.existence("u' = u**2 - L@u; v' = v*u - v")
    assert answer.outcome == "local"
    assert answer.blow_ups
    done = solve_ivp(lambda t, y: [y[0] ** 2, y[1] * y[0] - y[1]], (0, 2), [1.0, 0.0])
    assert not done.success or np.abs(done.y).max() > 1e6


@pytest.mark.parametrize(
    "text",
    [
        "u' = u**2 + v; v' = -u",
        "u' = u**2*v; v' = u*v**2",
        "u' = u**2/v; v' = -v",
        "u' = sqrt(u); v' = -v",
        "u' = u/(t - 1)",
        "u' = abs(1 - t)*u**5/(1 + (1 - t)**2*u**4)",  # where u is large u' = u/|1 - t|: it is infinite at t = 1
    ],
)
def test_what_is_not_proved_is_not_global(text: str) -> None:
    assert rd.existence(text).outcome != "global"


def test_damping_by_one_laplacian_holds_for_it_alone() -> None:
    text = "u' = L@(u**3) + A@(u**3) - 2*u**3; v' = -v"  # -u**3 under L = I - A, (d - 2) u**3 under L = D - A
    assert "row normalisation" in rd.existence(text).starts


def test_noise_asks_for_lipschitz_drift_and_factors() -> None:
    assert rd.existence("u' = -L@u + sigma*u*xi").outcome == "global"
    assert "Ito" in rd.existence("u' = -L@u + sigma*u*xi").reason
    assert "drift of u" in rd.existence("u' = -u**3 + sigma*xi").reason
    assert "factor of xi in u" in rd.existence("u' = -u + u**2*xi").reason


def test_a_root_of_the_time_bends_nothing_in_the_states() -> None:
    assert rd.existence("u' = sqrt(t)*u - u**3").outcome == "global"
    assert "unique" not in rd.existence("u' = sqrt(t)*u - u**3").reason
    assert "unique" in rd.existence("u' = t*sqrt(abs(u)) - u**3").reason
