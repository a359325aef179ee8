"""What is proved of equations with learned functions: what is declared, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp
import torch
from flint import arb, fmpq

import rdgraph as rd
from rdgraph.errors import Undecided
from rdgraph.reals.judge import Possibility, possible
from rdgraph.run.lowering.splines import make_controls
from rdgraph.theory.rate_bounds import rate_bound
from rdgraph.vocabulary.functions import record_of
from rdgraph.vocabulary.learned_functions import LearnedFunction, LearnedValues, learned_class
from tests.rdgraph.language.test_learned_function import DECLARATIONS

PLAIN = "-alpha*L@H + phi(H)"


def test_every_learned_function_lets_solutions_live_for_ever() -> None:
    assert rd.existence(PLAIN).outcome == "global"
    assert rd.existence(f"{PLAIN} - H**3").outcome == "global"
    assert rd.existence("u' = phi(u) - v; v' = psi(u) - v").outcome == "global"
    assert rd.existence("H**2 + phi(H) where phi learned lipschitz=2").outcome == "local"


def test_a_lipschitz_constant_gives_constants_and_steps() -> None:
    text = f"{PLAIN} where phi learned lipschitz=2"
    alpha = sp.Symbol("alpha")
    assert rd.lipschitz_global(text).value == 2 * alpha + 2
    assert rd.theory.one_sided(text).value == 2
    assert rd.step_limit(text, "euler").value == 1 / (alpha + 1)
    assert not rd.lipschitz_global(text).is_sharp
    for open_text in (PLAIN, f"{PLAIN} where phi learned odd", f"{PLAIN} where phi learned nondecreasing"):
        assert rd.lipschitz_global(open_text).value is None


def test_a_bound_gives_a_box_and_slopes() -> None:
    text = "-alpha*L@H - H + phi(H) where phi learned bound=1"
    box = rd.invariant_box(text, "row")
    assert (box.lower, box.upper) == (-1, 1)
    assert rd.lipschitz_global("phi(H) where phi learned knots=5 range=-2:2 bound=3").value == 6


def test_signs_follow_from_odd_and_monotone() -> None:
    box = rd.invariant_box("-alpha*L@H - phi(H) where phi learned odd nondecreasing", "row")
    assert (str(box.lower), str(box.upper)) == ("-R", "R")
    assert rd.theory.one_sided("-alpha*L@H - phi(H) where phi learned nondecreasing").value == 0
    assert rd.parse("phi(H) + phi(-H) - H where phi learned odd").structure.linear


def test_what_hangs_on_phi_is_undecided() -> None:
    with pytest.raises(Undecided, match="phi"):
        rd.theory.conserved(PLAIN)
    assert rd.theory.conserved("-alpha*L@phi(H)").exists
    answer = rd.theory.identify("-alpha*H + phi(H)")
    assert (answer.status, answer.single) == ("undecided", ())
    assert rd.equivalent(PLAIN, "-alpha*L@H + psi(H)").outcome == "undecided"
    assert rd.equivalent(PLAIN, f"{PLAIN} where phi learned odd").outcome == "undecided"
    assert rd.equivalent(PLAIN, "phi(H) - alpha*L@H").outcome == "proved"
    assert rd.equivalent(f"{PLAIN} where phi learned bound=1", "-alpha*L@H + 2*H").outcome == "refuted"


def test_everything_is_asked_at_once() -> None:
    answers = rd.analyse(PLAIN)
    assert answers.answers["existence"] == "global"
    assert answers.answers["conserved"] is None
    assert "undecided: it is not known whether phi(H) vanishes" in answers.notes["conserved"]
    assert "phi: declare lipschitz=" in answers.notes["lipschitz_global"]
    report = rd.preflight(f"{PLAIN} where phi learned lipschitz=2", T=2, method="euler", step=0.2)
    assert "safe if" in str(report)


def test_bounds_of_rates_end_where_the_value_at_zero_is_unknown() -> None:
    bound = rate_bound(rd.parse("-alpha*L@H + phi(H)*H where phi learned lipschitz=1"))
    assert not bound.is_finite
    assert rate_bound(rd.parse("-alpha*L@H + phi(H)*H where phi learned odd lipschitz=1")).is_local


def test_a_state_that_is_known_by_bounds_alone_is_a_gap() -> None:
    answer = rd.steady_states("-L@H - 2*H + phi(H)/4 where phi learned nondecreasing bound=1 lipschitz=1")
    assert not list(answer)
    assert not answer.is_complete


@pytest.mark.parametrize("declared", DECLARATIONS, ids=str)
def test_records_hold_for_drawn_functions(declared: LearnedFunction) -> None:
    x, y = sp.Symbol("x", real=True), sp.Symbol("y", real=True)
    call = learned_class(declared.key)(x)
    record = record_of(call)
    assert record is not None
    slope = record_of(sp.diff(call, x))
    assert slope is not None
    rng = np.random.default_rng(3)
    theta = torch.as_tensor(rng.normal(scale=3.0, size=(4, declared.parameters)))
    values = LearnedValues(declared, make_controls(declared, theta).numpy())
    for point in (sp.Rational(-7, 2), sp.S.Zero, sp.Rational(1, 3), sp.Integer(5)):
        relations = [r.subs(x, point) for r in record.relations(x, y)]
        for value, steep in zip(values(float(point)), values.slope(float(point)), strict=True):
            exact = sp.Rational(float(value))
            assert all(bool(r.subs(y, exact)) for r in relations)
            assert record.ball(fmpq(int(point.p), int(point.q))).contains(arb(float(value))) or abs(value) < 1e-12
            assert slope.ball(fmpq(int(point.p), int(point.q))).contains(arb(float(steep)))


def test_the_judge_knows_what_is_declared() -> None:
    x = sp.Symbol("x", real=True)
    phi = learned_class(LearnedFunction("phi", odd=True, monotone="nondecreasing", lipschitz=1).key)
    assert possible(phi(x) > x, x > 0).outcome is Possibility.IMPOSSIBLE
    assert possible(phi(x) < 0, x > 0).outcome is Possibility.IMPOSSIBLE
