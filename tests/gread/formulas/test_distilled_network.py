"""A learned function of trained networks as a formula: where it starts, what it costs, what is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats

import gread
import rdgraph as rd
from gread.comparison import share_ratio
from gread.formulas.distilled_network import (
    TAKEN,
    LearnedCurves,
    chosen_name,
    curves_of,
    formula_cost,
    proofs_of,
    retrained,
    trained_equation,
)
from gread.models.resolution import link_of
from gread.settings.gread_settings import GreadSettings
from gread.training.trainer import Trained
from rdgraph.errors import InvalidArgument, NotApplicable, UnknownName
from rdgraph.infer.formulas.formula_search import Effort
from rdgraph.vocabulary.learned_functions import LearnedFunction, LearnedValues

QUICK = Effort(population=20, generations=1)
EQUATION = "-alpha*L@H + phi(H) where phi learned knots=8"


@pytest.fixture(scope="module")
def done() -> Trained:
    config = gread.Config().updated(
        {"reaction": EQUATION, "adjacency": "original", "hidden": 4, "epochs": 8, "method": "euler", "step": 0.5}
    )
    return gread.train(gread.karate(), gread.make_trials(config, range(2)), device="cpu")


def test_trainings_of_a_formula_that_diverged_are_told(done: Trained) -> None:
    found = gread.distil_network(done, tolerance=0.9, max_size=4, effort=QUICK, device="cpu")
    assert found.done is not None
    assert (found.diverged, "diverged" in found.answer) == (0, False)
    broken = replace(found, done=replace(found.done, status=["ok", "diverged"]))
    assert broken.diverged == 1
    assert broken.answer == f"{found.answer}; 1 of 2 trainings with it diverged"


def test_the_formula_starts_where_the_function_ended() -> None:
    x = np.linspace(-2, 2, 60)
    formula = rd.infer.find_formula(x, [1.2 * x - 0.4 * x**3, 0.8 * x - 0.2 * x**3], functions=(), taken=TAKEN).formula
    assert formula is not None
    line = trained_equation(EQUATION, "phi", formula)
    system = rd.parse(line)
    operator = rd.generators.path(3).operator(dtype=torch.float64)
    middle = dict.fromkeys(formula.names, 0.5)  # where a link by the sigmoid starts
    field = rd.lower(system, operator, {"alpha": 0.0, **middle})
    state = torch.tensor([[-1.0], [0.3], [1.5]], dtype=torch.float64)
    expected = 1.0 * state - 0.3 * state**3
    torch.testing.assert_close(field(None, state), expected, rtol=1e-3, atol=1e-3)
    assert {link_of(GreadSettings(line), n, k) for n, k in system.coefficients.items()} == {"sigmoid"}


def test_a_training_is_distilled_and_trained_again(done: Trained) -> None:
    curves = curves_of(done)
    assert curves.y.shape == (2, len(curves.x))
    np.testing.assert_allclose(curves.y[1], done.network(1).functions()["phi"](curves.x))
    search = rd.infer.find_formula(
        curves.x, curves.y, weights=curves.weights, tolerance=0.3, functions=(), taken=TAKEN, effort=QUICK
    )
    assert search.formula is not None
    found = retrained(gread.karate(), done.trials, curves, search, done.test_accuracy, device="cpu")
    assert found.after is not None
    assert found.done is not None
    assert [trial.split for trial in found.done.trials] == [0, 1]
    assert found.lost == pytest.approx(100 * float(np.mean(done.test_accuracy - found.after)))
    ratio = share_ratio(gread.karate())
    assert found.test_to_train == ratio
    gaps = 100 * (done.test_accuracy - found.after)
    low, high = stats.t.interval(0.95, 1, gaps.mean(), max(1e-12, gaps.std(ddof=1)) * math.sqrt(1 / 2 + ratio))
    assert found.interval == pytest.approx((low, high))
    assert set(search.formula.names) <= set(found.values)
    assert "phi learned" not in str(found.equation)
    assert rd.equivalent(rd.parse(str(found.equation)), str(found.equation))
    assert {proof.topic for proof in found.proofs} >= {"existence", "step"}
    assert "which costs" in found.answer


def test_that_there_is_no_formula_is_the_answer(done: Trained) -> None:
    found = gread.distil_network(done, tolerance=1e-9, max_size=2, functions=(), effort=QUICK, device="cpu")
    assert found.after is None
    assert found.equation is None
    assert "no formula of size <= 2" in found.answer
    assert np.isnan(found.lost)


@pytest.mark.slow
def test_a_polynomial_that_blows_up_is_not_called_safe() -> None:
    statuses = {
        formula: next(
            p.status
            for p in proofs_of(f"-alpha*L@H + phi(H) where phi = {formula}", GreadSettings())
            if p.topic == "existence"
        )
        for formula in ("gamma*H**3", "-gamma*H**3")
    }
    assert statuses["gamma*H**3"] != "ok"
    assert statuses["-gamma*H**3"] == "ok"


def test_what_cannot_be_distilled_is_refused(done: Trained, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="rdgraph distil FOLDER"):
        gread.distil_network(tmp_path)  # type: ignore[arg-type]
    with pytest.raises(UnknownName, match="psi"):
        curves_of(done, "psi")
    with pytest.raises(InvalidArgument, match="one learned function, got none"):
        chosen_name([], None)
    declared = LearnedFunction("phi", per_channel=True)
    own = LearnedValues(declared, np.zeros((3, declared.knots)))
    with pytest.raises(NotApplicable, match="one function for all channels"):
        LearnedCurves.of("phi", [own], np.zeros(0), np.zeros(0))
    assert np.isnan(formula_cost(np.array([1.0]), [0], 0.4).interval).all()
