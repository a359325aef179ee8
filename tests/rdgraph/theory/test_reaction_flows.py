"""Closed flows carry their conditions: the limit of a vanishing linear part, and the time up to which they hold."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp
import torch
from scipy.integrate import solve_ivp

import rdgraph as rd
from rdgraph.run.solvers.closed_reactions import bernoulli
from rdgraph.run.solvers.splitting import make_strang
from rdgraph.theory.reaction_flows import ReactionFlow


def value(flow: ReactionFlow, values: dict[str, sp.Expr]) -> float:
    """The branch that applies, in exact numbers."""
    chosen = next(e for c, e in flow.branches if sp.sympify(c).subs(values) == sp.true)
    return float(sp.N(chosen.subs(values), 30))


def solved(rate: sp.Expr, values: dict[str, sp.Expr], end: float) -> float:
    f = sp.lambdify(sp.Symbol("h"), rate.subs(values))
    start = float(values["h0"])
    return float(solve_ivp(lambda _, y: [f(y[0])], (0, end), [start], rtol=1e-11, atol=1e-13).y[0, -1])


@pytest.mark.parametrize("text", ["(alpha - beta)*H - H**3", "(alpha - beta)*H + H**2", "(alpha - beta)*H - H**4"])
@pytest.mark.parametrize("beta", ["1/2", "1", "3/2"])
def test_a_linear_part_that_can_vanish(text: str, beta: str) -> None:
    flow = rd.theory.reaction_flow(rd.parse(text))
    assert flow.branches[0][0] == sp.Eq(sp.Symbol("alpha") - sp.Symbol("beta"), 0)
    for start in ("1/3", "4/5"):
        values = {"alpha": sp.S.One, "beta": sp.Rational(beta), "h0": sp.Rational(start), "t": sp.Rational(3, 4)}
        assert flow.valid.subs(values) == sp.true
        assert value(flow, values) == pytest.approx(solved(flow.rate, values, 0.75), rel=1e-8)


def test_the_domain_decides_whether_the_linear_part_can_vanish() -> None:
    def count(text: str) -> int:
        return len(rd.theory.reaction_flow(rd.parse(text)).branches)

    assert count("(alpha - beta)*H - H**3") == 2
    assert count("(alpha - beta)*H - H**3 where alpha < beta") == 1
    assert count("(alpha + beta)*H - H**3") == 1
    same = rd.theory.reaction_flow(rd.parse("(alpha - beta)*H - H**3 where alpha <= beta, beta <= alpha"))
    assert same.branches == ((sp.true, sp.Symbol("h0") / sp.sqrt(2 * sp.Symbol("h0") ** 2 * sp.Symbol("t") + 1)),)


VALID = {
    "F": ({"beta": "1"}, "-1/2", np.log(3)),
    "AC": ({"beta": "1"}, "-1/2", np.inf),
    "-alpha*L@H + H**2": ({}, "2", 0.5),
    "-alpha*L@H + gamma*H**3 - H": ({"gamma": "1"}, "2", np.log(4 / 3) / 2),
    "Z": ({"beta": "1"}, "2", np.inf),
    "-alpha*L@H - beta*H**2*(1 - H)": ({"beta": "1"}, "2", np.log(2) - 0.5),
}


@pytest.mark.parametrize("text", VALID)
def test_a_flow_says_how_long_it_holds(text: str) -> None:
    coefficients, start, end = VALID[text]
    flow = rd.theory.reaction_flow(rd.parse(text))
    values = {k: sp.Rational(v) for k, v in {**coefficients, "h0": start}.items()}
    before, after = (0.99 * end, 1.01 * end) if np.isfinite(end) else (50.0, None)
    assert flow.valid.subs({**values, "t": sp.Rational(before)}) == sp.true
    if after is not None:
        assert flow.valid.subs({**values, "t": sp.Rational(after)}) == sp.false


@pytest.mark.parametrize("order", [2, 3, 4])
@pytest.mark.parametrize("a", [0.0, 1e-300, 1e-14, -1e-14, 1e-6, -1e-6])
def test_the_flow_is_evaluated_without_loss_near_a_vanishing_linear_part(order: int, a: float) -> None:
    h, linear, power, time = (torch.tensor(v, dtype=torch.float64) for v in ([0.3, 0.9, 0.7], a, -1.3, 0.8))
    answer = bernoulli(h, linear, power, order, time)
    n, exact = order - 1, []
    for start in h.tolist():
        x, rate, t = (sp.Float(v, 60) for v in (start, a, 0.8))
        span = n * t if abs(a) < 1e-100 else (sp.exp(n * rate * t) - 1) / rate
        exact.append(float(x * sp.exp(rate * t) / (1 + sp.Float(1.3, 60) * x**n * span) ** sp.Rational(1, n)))
    assert answer.tolist() == pytest.approx(exact, rel=1e-14, abs=0)


@pytest.mark.parametrize("text", ["-alpha*L@H + (alpha - beta)*H - H**3", "-alpha*L@H - H**2"])
def test_splitting_where_the_linear_part_vanishes(text: str) -> None:
    operator = rd.Graph.from_edges([[0, 1, 1, 2], [1, 0, 2, 1]]).operator("row", dtype=torch.float64)
    field = rd.lower(text, operator, dict.fromkeys(rd.parse(text).coefficients, 1.0))
    start = torch.full((3, 1), 0.6, dtype=torch.float64)
    answer = make_strang(field).advance(start, torch.tensor(1.0, dtype=torch.float64))
    expected = 0.6 / np.sqrt(1 + 2 * 0.36) if "H**3" in text else 0.6 / 1.6
    assert answer.ravel().tolist() == pytest.approx([expected] * 3, rel=1e-11, abs=0)
