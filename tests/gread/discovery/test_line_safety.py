"""Which equations may be trained: proofs are held against simulations that share no code with them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from gread.discovery.discovering import AheadExamination
from gread.discovery.line_safety import BOUNDED, LEFT_OUT, SAFE, STEP, STIFF, Examination
from gread.discovery.term_grammar import Line, Term, find_terms
from gread.settings.gread_settings import GreadSettings
from rdgraph.theory.equality.dense_oracle import evaluate

GRAMMAR = find_terms("default")
EXAMINED = Examination(GreadSettings())


def line(*terms: str) -> Line:
    """An equation of terms, those with a sign in front being signed."""
    return GRAMMAR.line([Term(t[1:], t[0]) if t[0] in "+-" else Term(t) for t in terms])


@pytest.mark.parametrize(
    ("terms", "state", "trained"),
    [
        (("L@H", "L@H0", "A@A@H"), SAFE, ("L@H", "L@H0", "A@A@H")),
        (("tanh(A@H)", "sigmoid(L@H)*H"), SAFE, ("tanh(A@H)", "sigmoid(L@H)*H")),
        (("A@H", "-H**3"), BOUNDED, ("A@H", "-tanh(H**3)")),
        (("A@H", "+H**3"), BOUNDED, ("A@H", "+tanh(H**3)")),
        (("+H*(1 - H)", "H"), BOUNDED, ("+tanh(H*(1 - H))", "H")),
        (("-H**3", "+(A@H)*(A@H)"), BOUNDED, ("-tanh(H**3)", "+tanh((A@H)*(A@H))")),
        (("exp(H)",), BOUNDED, ("tanh(exp(H))",)),
        (("H", "-tanh(H)*H**2"), BOUNDED, ("H", "-tanh(tanh(H)*H**2)")),
        (("+sin(H)*H**2", "H*exp(-H)"), BOUNDED, ("+tanh(sin(H)*H**2)", "tanh(H*exp(-H))")),
    ],
)
def test_what_becomes_of_an_equation(terms: tuple[str, ...], state: str, trained: tuple[str, ...]) -> None:
    found = EXAMINED(line(*terms))
    assert (found.state, found.line) == (state, line(*trained))
    assert found.reason
    assert bool(found.finding) == (state != SAFE)


def test_what_is_called_safe_stays_finite() -> None:
    """Random equations of the grammar: what is to be trained is simulated from large starts without a blow-up."""
    rng = np.random.default_rng(0)
    lines = list(GRAMMAR.lines(2))
    n, seen = 5, set[str]()
    weights = np.triu(rng.random((n, n)) < 0.6, 1)
    weights = (weights + weights.T).astype(float)
    A = weights / np.maximum(weights.sum(1, keepdims=True), 1)
    for k in rng.permutation(len(lines))[:12]:
        found = EXAMINED(lines[k])
        if found.state == LEFT_OUT:
            continue
        seen.add(found.state)
        system = found.line.system
        values = {c: (rng.normal() if t.is_free else rng.uniform())
                  for c, t in zip(found.line.coefficients, found.line.terms, strict=True)}  # fmt: skip
        start = 3 * rng.normal(size=(n, 1))

        def rate(_: float, h: np.ndarray, system=system, values=values, start=start) -> np.ndarray:
            fields = {"A": A, "H": h.reshape(n, 1), "H0": start}
            return np.broadcast_to(evaluate(system.expression, {**fields, **values}), (n, 1)).ravel()

        done = solve_ivp(rate, (0.0, 3.0), start.ravel(), rtol=1e-6)
        assert done.success, found.line.text
        assert np.isfinite(done.y).all()
    assert seen == {SAFE, BOUNDED}


def test_a_step_beyond_its_limit_leaves_an_equation_out() -> None:
    stepped = Examination(GreadSettings(method="euler", step=5.0, time=5.0))
    found = stepped(line("-L@H"))
    assert (found.state, found.finding) == (LEFT_OUT, STEP)
    assert "exceeds the limit" in found.reason
    assert Examination(GreadSettings(method="euler", step=0.5))(line("-L@H")).state == SAFE


@pytest.mark.parametrize("method", ["exact", "dopri5"])
def test_a_method_without_a_step_is_not_asked_for_one(method: str) -> None:
    assert Examination(GreadSettings(method=method))(line("-L@H")).state == SAFE


@pytest.mark.slow
def test_other_processes_give_the_same_answers() -> None:
    lines = list(GRAMMAR.lines(2))[40:400:12]
    with AheadExamination(GreadSettings(), lines, jobs=2) as ahead:
        assert [ahead(one) for one in lines] == [EXAMINED(one) for one in lines]


def test_damping_that_no_step_follows_from_large_states_is_bounded_where_there_are_steps() -> None:
    cubic = line("A@H", "-H**3")
    assert (EXAMINED(cubic).state, EXAMINED(cubic).finding) == (BOUNDED, STIFF)
    assert "damped" in EXAMINED(cubic).reason
    assert Examination(GreadSettings(method="dopri5"))(cubic).state == SAFE
