"""The analysis of variance over terms: against planted effects, and against the textbook's two ways to a p."""

from __future__ import annotations

import numpy as np
import pytest

from gread.discovery.term_grammar import Line, Term
from gread.discovery.winner_checks import early_accuracy, term_effects
from gread.tuning.candidates import TrialResult

TERMS = [Term(body) for body in ("H", "A@H", "L@H", "H0", "tanh(H)", "sin(H)")]
PLANTED = dict(zip(map(str, TERMS), (0.06, 0.03, 0.0, 0.0, -0.02, -0.05), strict=True))


def drawn(rng: np.random.Generator, count: int = 80, noise: float = 0.02) -> list[tuple[TrialResult, Line]]:
    found = []
    for k in range(count):
        chosen = [TERMS[j] for j in rng.permutation(len(TERMS))[: rng.integers(1, 4)]]
        value = 0.5 + sum(PLANTED[str(term)] for term in chosen) + noise * rng.normal()
        names = ("alpha", "beta", "gamma")
        found.append((TrialResult(k, "complete", 9, (value,), (0.0,)), Line(tuple(chosen), names, "scalar")))
    return found


def test_intervals_hold_planted_effects_as_often_as_they_say() -> None:
    rng, held, total = np.random.default_rng(0), 0, 0
    for _ in range(60):
        for one in term_effects(drawn(rng)):
            held += one.low <= PLANTED[one.term] <= one.high
            total += 1
    assert total == 360
    assert 0.92 <= held / total <= 0.98


def test_p_is_that_of_students_t_and_effects_those_of_least_squares() -> None:
    from scipy.stats import t

    pairs = drawn(np.random.default_rng(1))
    found = {one.term: one for one in term_effects(pairs)}
    design = np.array([[1.0, *(float(term in line.terms) for term in TERMS)] for _, line in pairs])
    values = np.array([result.val_accuracy for result, _ in pairs])
    weights, rest, _, _ = np.linalg.lstsq(design, values, rcond=None)
    freedom = len(pairs) - len(TERMS) - 1
    errors = np.sqrt(np.diag(np.linalg.inv(design.T @ design)) * rest[0] / freedom)
    for k, term in enumerate(TERMS, start=1):
        one = found[str(term)]
        assert one.effect == pytest.approx(weights[k])
        assert one.p == pytest.approx(2 * t.sf(abs(weights[k] / errors[k]), freedom))
        assert (one.low < 0 < one.high) == (one.p > 0.05)


def test_all_are_compared_after_the_first_rung() -> None:
    dropped = TrialResult(0, "pruned", 40, (0.7,), (0.0,), ((20, 0.6), (40, 0.7)))
    assert early_accuracy(dropped) == 0.6
    assert early_accuracy(TrialResult(1, "complete", 20, (0.8,), (0.0,))) == 0.8


def test_too_few_equations_tell_nothing() -> None:
    assert term_effects([]) == []
    assert term_effects(drawn(np.random.default_rng(0), count=3)) == []
