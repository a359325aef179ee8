"""The benchmark of formulas from states: what counts as recovered, and that a wrong formula does not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import rdgraph as rd
from rdgraph.distillation.formula_letters import lettered
from rdgraph.distillation.prefix_terms import Word
from rdgraph.inverse.fitted_values import Fit
from studies.benchmarks.distil_recovery import CASES, drawn, is_recovered, summary

EMPTY = rd.Distillation("-alpha*L@H + phi(H)", "phi", None, None, None, (), 0.01, 1.25, 20, (np.zeros(1), np.zeros(1)))


def found(word: Word, constants: list[float], alpha: float) -> rd.Distillation:
    letters = lettered(word, np.array([constants]), ["alpha"])
    values = {"alpha": alpha, **letters.values(np.array(constants))}
    made = Fit.__new__(Fit)
    object.__setattr__(made, "values", values)
    return replace(EMPTY, formula=letters.text, fit=made, letters=letters, word=word)


@pytest.mark.parametrize(
    ("word", "constants", "alpha", "expected"),
    [
        (("*", "c", "*", "x", "-", "1", "x"), [1.23], 0.3, True),
        (("+", "*", "c", "x", "*", "c", "square", "x"), [1.2, -1.23], 0.31, True),
        (("+", "*", "c", "x", "*", "c", "square", "x"), [1.2, -1.3], 0.3, False),
        (("*", "c", "*", "x", "-", "1", "x"), [1.2], 0.35, False),
        (("*", "c", "tanh", "*", "x", "-", "1", "x"), [1.2], 0.3, False),
        (("+", "*", "c", "x", "+", "*", "c", "square", "x", "c"), [1.2, -1.2, 0.001], 0.3, False),
    ],
)
def test_only_the_true_formula_counts(word: Word, constants: list[float], alpha: float, expected: bool) -> None:
    truth = {"alpha": 0.3, "beta": 1.2}
    assert is_recovered(CASES[0], truth, found(word, constants, alpha))[0] is expected


def test_a_sine_is_told_by_amplitude_and_frequency() -> None:
    truth = {"alpha": 0.3, "beta": 1.0, "omega": 1.7}
    word = ("*", "c", "sin", "*", "c", "x")
    assert is_recovered(CASES[4], truth, found(word, [1.01, 1.69], 0.3))[0]
    assert not is_recovered(CASES[4], truth, found(word, [1.01, 1.9], 0.3))[0]
    assert not is_recovered(CASES[4], truth, EMPTY)[0]


def test_a_draw_is_noisy_and_the_same_again() -> None:
    one, same = drawn(CASES[1], 3), drawn(CASES[1], 3)
    np.testing.assert_array_equal(one.states, same.states)
    assert one.states.shape == (41, 30, 1)
    assert not np.array_equal(one.states, drawn(CASES[1], 4).states)
    rows = [{"case": "Fisher", "recovered": k > 0, "worst_error": 0.01 * k} for k in range(3)]
    assert summary(rows) == {"Fisher": {"recovered": 2, "draws": 3, "worst_error": 0.02}}
