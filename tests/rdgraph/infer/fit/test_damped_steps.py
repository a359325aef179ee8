"""Damped least squares against scipy's, problem by problem."""

from __future__ import annotations

import numpy as np
from scipy.optimize import least_squares

from rdgraph.infer.fit.damped_steps import Array, minimise

X = np.linspace(0.0, 2.0, 15)
DATA = np.stack([1.5 * np.exp(-0.7 * X), 0.4 * np.exp(0.3 * X)]) + 0.01 * np.sin(9 * X)


def rest(rows: Array, which: Array) -> Array:
    return rows[:, :1] * np.exp(rows[:, 1:] * X) - DATA[which]


def slopes(rows: Array, _which: Array) -> Array:
    growth = np.exp(rows[:, 1:] * X)
    return np.stack([growth, rows[:, :1] * X * growth], -1)


def test_every_problem_ends_where_scipy_ends() -> None:
    end = minimise(rest, slopes, np.ones((2, 2)), gain=1e-12)
    assert end.settled.all()
    for k in range(2):
        known = least_squares(lambda row, k=k: rest(row[None], np.array([k]))[0], np.ones(2))
        np.testing.assert_allclose(end.rows[k], known.x, rtol=1e-4)
        np.testing.assert_allclose(end.squares[k], 2 * known.cost, rtol=1e-6)


def test_what_is_not_free_stays() -> None:
    end = minimise(rest, slopes, np.ones((2, 2)), np.array([True, False]), gain=1e-12)
    assert (end.rows[:, 1] == 1.0).all()
    growth = np.exp(X)
    np.testing.assert_allclose(end.rows[:, 0], DATA @ growth / (growth @ growth), rtol=1e-6)


def test_a_problem_without_a_value_leaves_the_others_alone() -> None:
    start = np.ones((2, 2))
    start[0, 1] = np.inf
    with np.errstate(all="ignore"):
        end = minimise(rest, slopes, start, gain=1e-12)
    alone = minimise(lambda rows, _: rest(rows, np.array([1])), slopes, np.ones((1, 2)), gain=1e-12)
    assert end.settled.tolist() == [False, True]
    np.testing.assert_array_equal(end.rows[1], alone.rows[0])


def test_steps_are_short_few_and_stopped() -> None:
    start = np.ones((2, 2))
    one = minimise(rest, slopes, start, max_steps=1, longest=0.01)
    assert 0 < np.abs(one.rows - start).max() <= 0.02 + 1e-12
    assert not one.settled.any()
    np.testing.assert_array_equal(minimise(rest, slopes, start, stop=lambda: True).rows, start)
