"""Step limits, growth, conserved sums and verdicts on graphs with isolated nodes, directions and weights."""

from __future__ import annotations

from functools import cache
from typing import Any

import networkx as nx
import numpy as np
import pytest
import sympy as sp
from scipy.linalg import expm

import rdgraph as rd
from rdgraph.graphs.normalisation import dense_operator
from rdgraph.reports.preflight_report import SHARES
from rdgraph.reports.run_settings import GraphFacts
from rdgraph.theory.equality import dense_oracle as dense
from rdgraph.theory.filters import response_values, run_maps
from rdgraph.theory.step_limits import apart
from rdgraph.vocabulary.methods import methods

KINDS = ("undirected", "directed", "undirected, isolated", "directed, isolated")
CYCLE = np.roll(np.eye(8), 1, axis=0)
STAR = np.zeros((6, 6))
STAR[0, 1:5] = STAR[1:5, 0] = 1  # node 5 is alone


def random_graph(rng: np.random.Generator, kind: str, nodes: int = 7) -> np.ndarray:
    weights = rng.uniform(0.2, 3, (nodes, nodes)) * (rng.random((nodes, nodes)) < 0.4)
    np.fill_diagonal(weights, 0)
    weights = np.maximum(weights, np.roll(np.eye(nodes), 1, axis=0))
    if "undirected" in kind:
        weights = np.maximum(weights, weights.T)
    if "isolated" in kind:
        weights[-2:] = 0
        weights[:, -2:] = weights[:, -2:] * ("undirected" not in kind)
    return weights


def finding(report: rd.reports.Report, topic: str) -> Any:
    return next(f for f in report.findings if f.topic == topic)


# ---------------------------------------------------------------------- directed graphs
LINEAR = ("-alpha*L@H", "-L@L@H", "-alpha*L@H + beta*(A@H - A@A@H)", "-alpha*H + beta*A@A@H where beta <= alpha")


@pytest.mark.parametrize("text", LINEAR)
def test_growth_over_the_disc_bounds_directed_graphs(text: str) -> None:
    system, rng = rd.parse(text), np.random.default_rng(3)
    values = {"alpha": 1.1, "beta": 0.8}
    bounds = [float(rd.theory.growth_rate(system, directed=d).subs(values)) for d in (False, True)]
    p = sp.lambdify("lam", system.symbol().subs(values))
    for kind in KINDS * 2:
        A = dense_operator(random_graph(rng, kind), "row")
        largest = max(np.real(p(1 - x)) for x in np.linalg.eigvals(A))
        assert largest <= bounds["undirected" not in kind] + 1e-9
    long = 1 - np.exp(2j * np.pi * np.arange(400) / 400)
    assert np.real(p(long)).max() == pytest.approx(bounds[1], abs=1e-3)


def test_the_directed_cycle_grows_where_undirected_graphs_decay() -> None:
    system = rd.parse("-L@L@H")
    assert (rd.theory.growth_rate(system), rd.theory.growth_rate(system, directed=True)) == (0, sp.Rational(1, 2))
    open_graph = rd.preflight(system, normalisation="row", method="euler", step=0.1)
    assert finding(open_graph, "growth").text == "no frequency grows where the graph is undirected (real spectrum)"
    assert "up to 1/2" in finding(open_graph, "growth, directed").text
    given = rd.preflight(system, normalisation="row", method="euler", step=0.1, graph=CYCLE)
    assert "multiplies states of this graph by up to" in finding(given, "growth").text
    assert not any("no frequency grows" in f.text for f in given.findings)


@pytest.mark.parametrize("method", ["euler", "rk4", "dopri5"])
@pytest.mark.parametrize("text", LINEAR)
def test_directed_limits_hold_on_directed_graphs(text: str, method: str) -> None:
    limit, rng = rd.step_limit(rd.parse(text), method, "row"), np.random.default_rng(4)
    assert limit.assumes == "the graph is undirected (real spectrum)"
    if limit.directed is None:
        assert "A@A" in text or "L@L" in text
        return
    values = {"alpha": 1.1, "beta": 0.8}
    size = float(limit.directed.subs(values))
    p, R = sp.lambdify("lam", rd.parse(text).symbol().subs(values)), sp.lambdify("z", methods[method].stability)
    for kind in KINDS:
        spectrum = 1 - np.linalg.eigvals(dense_operator(random_graph(rng, kind), "row"))
        assert np.abs(R(size * p(spectrum))).max() <= 1 + 1e-9
    circle = 1 - np.exp(2j * np.pi * np.arange(400) / 400)
    assert np.abs(R(size * p(circle))).max() <= 1 + 1e-9


def test_what_grows_has_no_directed_limit() -> None:
    assert rd.step_limit(rd.parse("alpha*L@H"), "euler", "row").directed is None
    assert rd.step_limit(rd.parse("-alpha*L@H + beta*L@H"), "euler", "row").directed is None
    assert rd.step_limit(rd.parse("-alpha*L@H"), "euler", "symmetric").assumes == ""


# ---------------------------------------------------------------------- limits at constant states, and without any
def test_conditional_states_count_where_they_are_real() -> None:
    """h' = beta h^2 (a - h) - h: two more states from a^2 beta = 4 on, of which the upper one attracts strongly."""
    value = rd.step_limit(rd.parse("-alpha*L@H + beta*H**2*(a - H) - H"), "heun", "row").value
    few, many = ({"alpha": 0.7, "beta": 1.0, "a": a} for a in (1.0, 5.0))
    assert float(value.subs(few)) == pytest.approx(2 / (2 * 0.7 + 1))
    state = (5 + np.sqrt(21)) / 2
    assert float(value.subs(many)) == pytest.approx(2 / (2 * 0.7 + 1 - 10 * state + 3 * state**2))


def test_nothing_damped_is_no_limit_for_any_number_of_letters() -> None:
    value = rd.step_limit(rd.parse("-alpha*L@H + beta*L@H - gamma*L@L@H")).value
    assert value.subs({"alpha": 1, "beta": 4, "gamma": 1}) == sp.oo
    assert value.subs({"alpha": 1, "beta": 3, "gamma": 1}) == sp.oo
    assert value.subs({"alpha": 2, "beta": 1, "gamma": 1}) == sp.Rational(1, 3)


# ---------------------------------------------------------------------- Euler steps that keep a box
STEPPED = ("F", "AC", "Nagumo", "-alpha*L@H + beta*(H - 1)*(3 - H)", "-alpha*L@H + beta*tanh(H) - H")


@cache
def limit_of(text: str) -> Any:
    return rd.step_limit(rd.parse(text), "euler", "row")


@pytest.mark.parametrize("text", STEPPED)
def test_iterated_steps_stay_in_the_box(text: str) -> None:
    system, limit, rng = rd.parse(text), limit_of(text), np.random.default_rng(6)
    box = rd.invariant_box(system, "row")
    assert limit.keeps == "box"
    assert limit.is_sharp is ("tanh" not in text)  # its box has no face that rests, where a larger step would leave
    assert limit.assumes == box.assumes
    for kind in KINDS if not limit.assumes else ("undirected", "directed"):
        A, values = dense_operator(random_graph(rng, kind), "row"), {"alpha": 1.3, "beta": 0.7, "a": 0.4}
        lower, upper, step = (float(e.subs(values)) for e in (box.lower, box.upper, limit.value))
        state = rng.uniform(lower, upper, (len(A), 300))
        state[:, ::3] = rng.choice([lower, upper], size=state[:, ::3].shape)
        for _ in range(20):
            known = {n: v for n, v in values.items() if n in system.coefficients}
            state = state + step * dense.evaluate(system.expression, {"A": A, "H": state, **known})
            assert lower - 1e-9 <= state.min() <= state.max() <= upper + 1e-9


def test_isolated_nodes_need_another_box() -> None:
    loner = rd.step_limit(rd.parse("-L@H + (H - 1)*(3 - H)"), "euler", "row", isolated=True)
    assert loner.keeps == "slopes"
    assert limit_of("-L@H + (H - 1)*(3 - H)").keeps == "box"
    assert limit_of("F").value == rd.step_limit(rd.catalogue["F"], "euler", "row", isolated=True).value


# ---------------------------------------------------------------------- slopes
@pytest.mark.parametrize(
    ("text", "method", "normalisation", "value", "keeps"),
    [
        ("-alpha*L@H + beta*sin(2*H) + H0", "euler", "symmetric", "2/(2*alpha + 2*beta)", "slopes"),
        ("-alpha*L@H + beta*softplus(H)", "rk4", "symmetric", "2.78529356340528/(2*alpha)", "slopes"),
        ("-alpha*L@H - exp(H)", "midpoint", "row", "2/(2*alpha + exp(R))", "slopes"),
        ("alpha*A@tanh(H) - 3*H", "midpoint", "symmetric", "2/(alpha + 3)", "equal slopes"),
        ("-L@H + H@W", "euler", "row", "1", "distances"),
        ("-alpha*L@H + beta*H@W - 2*H", "heun", "symmetric", "1/(alpha + 2)", "distances"),
        ("k*(A@H) where k node", "rk4", "symmetric", "2.6/Abs(k)", "slopes"),
    ],
)
def test_steps_from_slopes(text: str, method: str, normalisation: str, value: str, keeps: str) -> None:
    limit = rd.step_limit(rd.parse(text), method, normalisation)
    names = {n: sp.Symbol(n) for n in ("alpha", "beta", "R", "k")}
    point = {"alpha": 0.7, "beta": 1.3, "R": 0.4, "k": 2}
    assert limit.keeps == keeps
    assert float(limit.value.subs(point)) == pytest.approx(float(sp.sympify(value, locals=names).subs(point)))


@pytest.mark.slow
def test_a_longer_step_amplifies_a_damped_mode() -> None:
    """The limit at every state is sharp where the steepest slope is reached: h = 0 on an even cycle."""
    limit = rd.step_limit(rd.parse("-0.5*L@H - sin(H) + 0*H0 + H0"), "euler", "symmetric")
    assert limit.is_sharp
    mode = -(2 * 0.5 + 1)
    assert abs(1 + float(limit.value) * mode) == pytest.approx(1)


def test_heun_keeps_the_box_of_euler() -> None:
    assert rd.step_limit(rd.catalogue["AC"], "heun", "row").value == limit_of("AC").value
    assert rd.step_limit(rd.catalogue["AC"], "heun", "row").keeps == "box"
    assert rd.step_limit(rd.catalogue["AC"], "midpoint", "row").keeps == "linearised"


def test_distances_grow_at_the_rate_of_the_answer() -> None:
    """At the limit 1/3 two runs of h' = h W - 3 h separate by at most 1 + step*m; twice the step breaks it."""
    limit = rd.step_limit(rd.parse("H@W - 3*H"), "euler", "row")
    assert str(limit.value) == "1/3"
    W = np.array([[0.0, -1.0], [1.0, 0.0]])
    norm, step = np.abs(W.T).sum(1).max(), float(limit.value)
    rate = float(limit.rate.subs({"norm_W": norm}))
    for size, holds in ((step, True), (3 * step, False)):
        gain = np.abs(np.eye(2) + size * (W - 3 * np.eye(2)).T).sum(1).max()
        assert bool(gain <= 1 + size * rate + 1e-12) is holds


@pytest.mark.parametrize(("method", "radius"), [("rk4", 2.6), ("euler", 0), ("heun", 0), ("midpoint", 0)])
def test_half_discs(method: str, radius: float) -> None:
    """Inside the half disc nothing grows; a little further out something does."""
    tableau = methods[method]
    assert float(tableau.half_disc) == radius
    factor = sp.lambdify(sorted(tableau.stability.free_symbols, key=str), tableau.stability, "numpy")
    angles = np.linspace(np.pi / 2, 3 * np.pi / 2, 400)
    assert np.abs(factor(radius * np.exp(1j * angles))).max() <= 1 + 1e-12
    assert np.abs(factor((radius + 0.1) * np.exp(1j * angles))).max() > 1


# ---------------------------------------------------------------------- responses without cancellation
@pytest.mark.parametrize("method", ["exact", "euler", "rk4"])
def test_response_values_are_the_response(method: str) -> None:
    system = rd.parse("-L@H + 0.5*A@H0")
    step = None if method == "exact" else 0.3
    grid = np.array([0.3, 0.9, 1.7])
    formula = rd.theory.response(system, T=2, method=method, step=step)
    expected = [float(formula.subs(sp.Symbol("lam"), sp.Rational(str(x)))) for x in grid]
    np.testing.assert_allclose(response_values(system, grid, 2, method, step), expected, rtol=1e-13)
    tiny = np.array([0.0, 1e-17, -3e-16, 1e-9]) + 0j
    near = response_values(system, tiny, 2, method, step)
    np.testing.assert_allclose(near, np.full(4, 2.0), rtol=1e-8)


def test_response_values_ask_for_numbers() -> None:
    with pytest.raises(rd.errors.NotApplicable, match="alpha"):
        response_values(rd.catalogue["diffusion"], [0.0], 1)


def test_run_maps_are_the_run() -> None:
    """The computed map step by step, the exact one by P^-1 (exp(P) - 1), where the decay makes P invertible."""
    system = rd.parse("-L@H - 0.5*L@L@H - 0.2*H + 0.3*A@H0")
    A = dense_operator(random_graph(np.random.default_rng(1), "directed"), "row")
    exact, computed = run_maps(system, A, 1, "heun", 0.3)
    start = np.eye(len(A))

    def f(state: np.ndarray) -> np.ndarray:
        return dense.evaluate(system.expression, {"A": A, "H": state, "H0": start})

    state = start
    for tau in (0.3, 0.3, 0.3, 0.1):
        first = f(state)
        state = state + tau / 2 * (first + f(state + tau * first))
    np.testing.assert_allclose(computed, state, atol=1e-14)
    L = start - A
    P = -L - 0.5 * L @ L - 0.2 * start
    flow = expm(P)
    np.testing.assert_allclose(exact, flow + np.linalg.solve(P, flow - start) @ (0.3 * A), atol=1e-12)


def test_a_source_on_a_complete_graph_is_safe() -> None:
    report = rd.preflight("-L@H + H0", T=1, step=0.01, method="rk4", graph=nx.complete_graph(4))
    assert report.outcome == "safe"
    assert GraphFacts.of(nx.complete_graph(4), "symmetric").spectrum[0] == 0.0


# ---------------------------------------------------------------------- conserved sums
@pytest.mark.parametrize("normalisation", ["symmetric", "row", "column"])
@pytest.mark.parametrize("text", ["-L@H", "-L@(H**3 - H) - L@L@H"])
def test_conserved_weights_vanish_at_isolated_nodes(text: str, normalisation: str) -> None:
    law, system = rd.theory.conserved(rd.parse(text)), rd.parse(text)
    state = np.random.default_rng(2).normal(size=(6, 3))
    speed = dense.evaluate(system.expression, {"A": dense_operator(STAR, normalisation), "H": state})
    degree = STAR.sum(axis=1)
    weights = {"sqrt(d)": np.sqrt(degree), "d": degree, "1": (degree > 0) * 1.0}[law.weights[normalisation]]
    np.testing.assert_allclose(weights @ speed, 0, atol=1e-12)
    assert np.abs(np.ones(6) @ speed).max() > 1e-3
    assert ("its weight is 0" in law.assumes.get(normalisation, "")) == (normalisation == "column")


def test_preflight_names_the_weights_of_this_graph() -> None:
    settings: dict[str, Any] = {"normalisation": "column", "step": 0.1}
    assert "w = 1 (0 for isolated nodes)" in finding(rd.preflight("-L@H", graph=STAR, **settings), "conserved").text
    assert "its weight is 0" in finding(rd.preflight("-L@H", **settings), "conserved").text
    assert "left eigenvector" in finding(rd.preflight("-L@H", graph=CYCLE, **settings), "conserved").text


# ---------------------------------------------------------------------- verdicts
def test_a_box_without_zero_is_not_safe_with_isolated_nodes() -> None:
    text = "-L@H + (H - 1)*(3 - H)"
    assert rd.preflight(text, normalisation="row", method="euler", step=0.1, graph=STAR).outcome == "unsafe"
    connected = rd.preflight(text, normalisation="row", method="euler", step=0.1, graph=STAR[:5, :5])
    assert connected.verdict == "safe if H0 lies in [1, 3] and step 1/10 <= 1/3"
    assert (
        "and no node is without incoming edges"
        in rd.preflight(text, normalisation="row", method="euler", step=0.1).verdict
    )


def test_a_regular_graph_keeps_the_row_box() -> None:
    report = rd.preflight("-L@H + H*(1 - H)", method="euler", step=0.1, graph=nx.cycle_graph(5))
    assert "H0 lies in [0, 1]" in report.verdict


@pytest.mark.parametrize("system", ["-L@L@H", "3*L@H"])
def test_the_exact_flow_on_a_directed_graph(system: str) -> None:
    report = rd.preflight(system, normalisation="row", T=20, method="exact", graph=CYCLE)
    assert report.outcome == ("safe" if system == "-L@L@H" else "unsafe")
    assert rd.preflight(system, normalisation="row", T=2000, method="euler", step=1, graph=CYCLE).outcome == "unsafe"


def test_the_parts_of_the_page_share_ten_seconds() -> None:
    assert sum(SHARES.values()) <= 10


@pytest.mark.parametrize("seed", range(6))
def test_safe_runs_follow_the_flow(seed: int) -> None:
    """Random linear systems, graphs and methods: a run that is called safe is computed and compared with expm."""
    rng = np.random.default_rng(seed)
    safe = 0
    for kind in KINDS:
        a, b, c = np.round(rng.uniform(0.1, 1.5, 3), 2)
        text = rng.choice(
            [f"-{a}*L@H + {b}*(A@H - H)", f"-{a}*L@H - {b}*L@L@H + {c}*H0", f"{a}*A@A@H - {b}*L@H - {a}*H"]
        )
        method, step = str(rng.choice(["euler", "rk4"])), float(np.round(rng.uniform(0.05, 0.6), 2))
        normalisation = str(rng.choice(["row", "column"]))
        weights = random_graph(rng, kind)
        report = rd.preflight(str(text), normalisation=normalisation, T=2, method=method, step=step, graph=weights)
        exact, computed = run_maps(rd.parse(str(text)), dense_operator(weights, normalisation), 2, method, step)
        if report.outcome == "safe":
            safe += 1
            order = np.inf if normalisation == "row" else 1
            error, size = (
                np.abs(np.linalg.eigvals(m)).max() if "undirected" in kind else np.linalg.norm(m, order)
                for m in (computed - exact, exact)
            )
            assert error <= 0.1 * size + 1e-9
    assert safe


@pytest.mark.parametrize("text", ["c*A@H - 1.5*abs(L@H)", "-c*L@H - alpha*relu(A@H - H) - 0.3*H**2"])
def test_kinks_at_equal_states_have_no_linearisation(text: str) -> None:
    """abs(L@H) and relu(A@H - H) bend exactly where all nodes are equal, so slopes there say nothing."""
    limit = rd.step_limit(rd.parse(text), "euler", "row")
    assert "same in all nodes" not in limit.reason
    smooth = rd.step_limit(
        rd.parse(text.replace("abs(L@H)", "tanh(A@H)").replace("relu(A@H - H)", "H")), "euler", "row"
    )
    assert smooth.value is not None


def test_a_kink_at_a_constant_state_has_no_linear_limit() -> None:
    """At 0 the slopes are -beta and 0; their mean would allow steps that are too long."""
    for method, limit in (("euler", 2), ("rk4-classical", 2.785293563405282)):
        answer = rd.step_limit("-alpha*L@H - beta*relu(H)", method, "row")
        assert answer.keeps == "slopes"
        value = answer.value.subs({sp.Symbol("alpha"): 0, sp.Symbol("beta"): 1})
        assert float(value) == pytest.approx(limit)
    smooth = rd.step_limit("-alpha*L@H + beta*H*(1 - abs(H))", "rk4", "row")
    assert smooth.keeps == "linearised"


def test_a_limit_that_depends_on_a_sign() -> None:
    answer = rd.step_limit("-b*L@H + mu*softplus(H)*(1 - H**2) where mu >= 0", "euler", "row")
    assert answer.value is not None
    assert "|h| <= R" in answer.reason


def test_a_slope_that_is_not_defined_for_all_values_gives_no_limit() -> None:
    line = "-L@H - c*H/(rho**2 + H**2) where rho {}"
    assert rd.step_limit(line.format("real"), "euler", "row").value is None  # at rho = 0 the constant state is a pole
    c, rho = sp.symbols("c rho")
    answer = rd.theory.read_expression(str(rd.step_limit(line.format("> 0"), "euler", "row").value))
    assert sp.simplify(answer - 2 * rho**2 / (c + 2 * rho**2)) == 0


@pytest.mark.parametrize(
    "text",
    ["-alpha*L@H + k*sigmoid(H)*(A@H - H) where k node", "tanh(H)*tanh(A@H) - H", "tanh(H0)*(A@H) - H",
     "sigmoid(H0)*tanh(H)*(A@H)"],
)  # fmt: skip
def test_no_constant_holds_a_state(text: str) -> None:
    """Bounds over all states, or over |h| <= R, are numbers: of sigmoid(H) and tanh(H0) the largest values count."""
    system = rd.parse(text)
    for kind in ("row", "symmetric"):
        rate = apart(system, system.domain, kind).rate
        answer = [q(system, kind).value for q in (rd.lipschitz_global, rd.theory.lipschitz_local, rd.theory.one_sided)]
        for value in (rate, *(x for x in answer if x is not None)):
            assert {x.name for x in value.free_symbols} <= {"R", "s", "alpha", "k"}


@pytest.mark.parametrize("normalisation", ["symmetric", "row"])
def test_a_symmetric_matrix_limits_the_step(normalisation: str) -> None:
    """The eigenvalues of -(L@H)@W are real and at most 2 |W|: on one edge with W = 1 the step 1 is the largest."""
    limit = rd.step_limit("-(L@H)@W where W symmetric", "euler", normalisation)
    assert limit.keeps == "slopes"
    assert limit.value is not None
    assert limit.value.subs(sp.Symbol("norm_W"), 2) == sp.Rational(1, 2)


@pytest.mark.parametrize("text", ["-(L@H)@W", "H@W", "A@H@W"])
def test_growth_of_distances_alone_is_no_limit(text: str) -> None:
    assert rd.step_limit(text, "euler").value is None


@pytest.mark.parametrize(("gamma", "limit"), [(1, sp.Rational(20, 7)), (7, sp.Rational(20, 67)), (0.1, None)])
def test_a_limit_takes_coefficients_at_which_a_constant_state_is_not_real(gamma: float, limit: sp.Expr | None) -> None:
    """With c = -3/10 there are two more zeros for gamma <= 169/400; else the slope at 0, -(c + gamma), decides."""
    value = rd.step_limit("-gamma*H + H*(H - 1)*(c - H) where c negative", "euler", "row").value
    assert value is not None
    answer = value.subs({sp.Symbol("c"): sp.Rational(-3, 10), sp.Symbol("gamma"): sp.nsimplify(gamma)})
    h = (0.7 - 1.29**0.5) / 2, (0.7 + 1.29**0.5) / 2
    worst = max(0.1 + 3 * x**2 - 1.4 * x - 0.3 for x in (0.0, *h))
    assert answer == limit if limit is not None else float(answer) == pytest.approx(2 / worst)


def test_a_limit_has_no_branch_that_no_coefficient_reaches() -> None:
    """The damping is Max of a piecewise minimum and 0: where it is 0 there is no limit, and no division by it."""
    limit = rd.step_limit("-a*A@L@H + a**2*(I - A)@H + alpha*H where a >= 0", "euler", "row")
    assert limit.status == rd.Status.PROVED
    assert not limit.value.has(sp.zoo)
    a, alpha = sorted(limit.value.free_symbols, key=str)
    assert limit.value.subs({a: sp.Rational(1, 2), alpha: 1}) == sp.oo
    numbers = {a: sp.Rational(1, 2), alpha: sp.Rational(1, 100)}
    assert limit.value.subs(numbers) == 2 / (sp.Rational(1, 32) - sp.Rational(1, 100))
