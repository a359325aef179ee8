"""Boxes between zeros without closed form."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import rdgraph as rd


def test_a_box_inside_repelling_zeros() -> None:
    box = rd.invariant_box("-alpha*L@H + H - tanh(2*H)", "row")
    assert float(box.lower) == -float(box.upper) == pytest.approx(-0.957504, abs=1e-5)
    for face, inward in ((float(box.lower), 1), (float(box.upper), -1)):
        assert inward * (face - np.tanh(2 * face)) >= 0
    assert box.assumes == "no node is without incoming edges"


def test_a_box_of_any_size_around_an_attracting_zero() -> None:
    box = rd.invariant_box("-alpha*L@H + 1 - softplus(H)", "row")
    R = sp.Symbol("R")
    zero = np.log(np.e - 1)
    assert float(box.lower.subs(R, 0)) <= zero <= float(box.upper.subs(R, 0))
    assert sp.diff(box.lower, R) == -1
    assert sp.diff(box.upper, R) == 1


def test_a_repelling_zero_alone_leaves_no_box() -> None:
    box = rd.invariant_box("-alpha*L@H + exp(H) - 2", "row")
    assert box.is_left
    assert box.lower is None


def test_a_bell_is_bounded() -> None:
    box = rd.invariant_box("-alpha*L@H + exp(-H**2) - beta*H", "row")
    assert (str(box.lower), str(box.upper)) == ("-1/beta", "1/beta")
