"""Existence: growth at infinity, conditions and times of blow-up, and what is proved global, against ODE solvers."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sp
from scipy.integrate import quad, solve_ivp

import rdgraph as rd
from rdgraph.decisions.domain import Domain
from rdgraph.decisions.regions import cases, reduced, strict_sign
from rdgraph.decisions.zero_candidates import candidates
from rdgraph.errors import Undecided
from rdgraph.graphs.normalisation import dense_operator
from rdgraph.identities import dense_oracle as dense
from rdgraph.syntax.answer_symbols import h
from rdgraph.syntax.functions import relu, softplus
from rdgraph.systems.system import System
from rdgraph.theory.blowup import BlowUp, fate
from rdgraph.theory.blowup_times import escape_time
from rdgraph.theory.global_existence import Existence, existence_by_growth
from rdgraph.theory.growth_at_infinity import Trend, growth, order

a, b = sp.symbols("a b", real=True)
p, q = sp.symbols("p q", positive=True)
n = sp.Symbol("n", nonnegative=True)


# ---------------------------------------------------------------------- regions
def test_answers_are_joined_over_the_parts_of_a_domain() -> None:
    assert cases(Domain(), lambda domain: strict_sign(domain, a * p)) == [(a > 0, 1), (sp.Eq(a, 0), 0), (a < 0, -1)]
    assert cases(Domain(), lambda domain: strict_sign(domain, a) >= 0) == [(a >= 0, True), (a < 0, False)]
    assert cases(Domain((a > 1,)), lambda domain: strict_sign(domain, a)) == [(sp.true, 1)]
    assert cases(Domain(), lambda domain: strict_sign(domain, n)) == [(n > 0, 1), (sp.Eq(n, 0), 0)]


def test_a_question_that_is_split_for_ever_is_given_up() -> None:
    letters = sp.symbols("x:12", real=True)
    with pytest.raises(Undecided, match="too many"):
        cases(Domain(), lambda domain: [strict_sign(domain, x) for x in letters] and None)


def test_equations_of_a_domain_are_put_in() -> None:
    assert reduced(Domain((sp.Eq(4 * p - q**2, 0),)), p * h + h**2) == h**2 + q**2 * h / 4
    assert reduced(Domain((sp.Eq(p * q, 1),)), p * h) == p * h  # no letter occurs linearly with a number


# ---------------------------------------------------------------------- growth
ESCAPING, DAMPED, LINEAR = Trend.ESCAPING, Trend.DAMPED, Trend.LINEAR
GROWTH = {
    h**2: ((ESCAPING, 2), (DAMPED, 2)),
    -(h**3) + 7 * h**2: ((DAMPED, 3), (DAMPED, 3)),
    -sp.exp(-h): ((LINEAR, 1), (ESCAPING, sp.oo)),
    sp.exp(h) - h**2: ((ESCAPING, sp.oo), (ESCAPING, 2)),
    sp.exp(2 * h) - p * sp.exp(h) * h**5: ((ESCAPING, sp.oo), (LINEAR, 1)),
    sp.sqrt(1 + h**2): ((LINEAR, 1), (LINEAR, 1)),
    h * sp.sqrt(1 + h**2) - h * sp.Abs(h): ((LINEAR, 1), (LINEAR, 1)),
    h * sp.sqrt(p + h**4): ((ESCAPING, 3), (ESCAPING, 3)),
    h**4 / (1 + h**2): ((ESCAPING, 2), (DAMPED, 2)),
    h**3 / (1 + h**2): ((LINEAR, 1), (LINEAR, 1)),
    relu(h) ** 2: ((ESCAPING, 2), (LINEAR, 1)),
    relu(-h) ** 3: ((LINEAR, 1), (DAMPED, 3)),
    softplus(-h) ** 2: ((LINEAR, 1), (DAMPED, 2)),
    softplus(h) - h: ((LINEAR, 1), (LINEAR, 1)),
    h**2 * sp.tanh(h): ((ESCAPING, 2), (ESCAPING, 2)),
    (1 - sp.tanh(h)) * sp.exp(3 * h): ((ESCAPING, sp.oo), (LINEAR, 1)),
    (1 - sp.tanh(h)) * sp.exp(2 * h): ((LINEAR, 1), (LINEAR, 1)),
    h**3 * (2 + sp.sin(h)): ((ESCAPING, 3), (ESCAPING, 3)),
    h**3 * sp.cos(1 / (1 + h**2)): ((ESCAPING, 3), (ESCAPING, 3)),
    h**5 * sp.exp(-(h**2)): ((LINEAR, 1), (LINEAR, 1)),
    sp.exp(sp.sqrt(1 + h**2)): ((ESCAPING, sp.oo), (DAMPED, sp.oo)),
    sp.tanh(h**2 * sp.tanh(h)) - h**3: ((DAMPED, 3), (DAMPED, 3)),
    a * sp.tanh(h**2 * sp.sin(h)) ** 2 * sp.sin(sp.exp(h)): ((LINEAR, 1), (LINEAR, 1)),
    h * sp.tanh(sp.exp(h) * sp.exp(h**2)) + h**3: ((ESCAPING, 3), (ESCAPING, 3)),
    h * sp.tanh(sp.exp(sp.exp(h))): ((LINEAR, 1), (LINEAR, 1)),
}


@pytest.mark.parametrize("rate", GROWTH, ids=str)
def test_growth(rate: sp.Expr) -> None:
    for way, (trend, power) in zip((1, -1), GROWTH[rate], strict=True):
        found = growth(rate, h, way, Domain())
        assert (found.trend, found.order) == (trend, power)


def test_growth_that_depends_on_coefficients() -> None:
    def trends(rate: sp.Expr) -> dict[sp.Basic, Trend]:
        return {c: g.trend for c, g in cases(Domain(), lambda domain: growth(rate, h, 1, domain))}

    assert trends(a * h**3 - h**2) == {
        a > 0: ESCAPING, sp.Eq(a, 0): DAMPED, a < 0: DAMPED
    }  # fmt: skip
    assert trends(sp.exp(h) - sp.exp(a * h)) == {a - 1 > 0: DAMPED, sp.Eq(a - 1, 0): LINEAR, a - 1 < 0: ESCAPING}
    assert trends((p - q) * h**2) == {p - q > 0: ESCAPING, sp.Eq(p - q, 0): LINEAR, p - q < 0: DAMPED}


@pytest.mark.parametrize("rate", [h**2 * sp.sin(h), sp.exp(sp.exp(h))], ids=str)
def test_growth_that_is_not_found_is_undecided(rate: sp.Expr) -> None:
    with pytest.raises(Undecided):
        growth(rate, h, 1, Domain())


def test_orders_bound_the_modulus() -> None:
    assert order(-(h**3) / (1 + h**2) + sp.sin(h) * sp.sqrt(1 + h**4), h, Domain()) == 2
    assert order(1 / (1 + sp.exp(-h)), h, Domain()) == 0
    assert order(sp.exp(-h), h, Domain()) == sp.oo


# ---------------------------------------------------------------------- zeros and times
def test_candidates_are_zeros() -> None:
    values = {a: sp.Rational(-7, 3), p: sp.Rational(5, 4), q: sp.Rational(2, 7)}
    for rate in (
        h**3 - p * h,
        h**4 - 3 * p * h**2 + q,
        h**2 + a * h - q,
        p * h**5 - q,
        h * sp.Abs(h) - p,
        relu(h) ** 2,
    ):
        found = candidates(rate, h, Domain((a < 0,)))
        real = [z.value.subs(values) for z in found if all(need.subs(values) >= 0 for need in z.needs)]
        residuals = [bool(abs(sp.N(rate.subs(values).subs(h, z), 30)) < 1e-25) for z in real]
        assert sum(residuals) >= 1, rate


def test_a_time_that_is_not_that_of_the_equation_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    start = sp.Symbol("start", real=True)
    assert escape_time(h**2 - 1, h, start, (sp.S.One,), Domain()) is not None
    monkeypatch.setattr("rdgraph.theory.blowup_times._Primitive.remaining", lambda self, x, start: 1 / start)
    assert escape_time(h**2 - 1, h, start, (sp.S.One,), Domain()) is None


# ---------------------------------------------------------------------- answers that were wrong or missing
def existence(text: str) -> Existence:
    return rd.existence(rd.parse(text))


def texts(found: Existence) -> list[str]:
    return [str(blow_up) for blow_up in found.blow_ups]


def applies(blow_up: BlowUp, values: dict[str, float]) -> bool:
    condition = blow_up.condition if blow_up.condition is not None else blow_up.where
    return bool(condition.subs({sp.Symbol(k): sp.nsimplify(v, rational=True) for k, v in values.items()}))


@pytest.mark.slow
def test_zeros_that_are_real_for_some_coefficients_only() -> None:
    found = existence("H**3 - gamma*H**2 + delta*H")
    inside = {"gamma": 3.0, "delta": 2.0}
    assert [any(applies(u, {**inside, "h0": x}) for u in found.blow_ups) for x in (0.5, 1.5, 2.5, -0.5)] == [
        False, False, True, True,
    ]  # fmt: skip
    assert any(applies(u, {"gamma": 1.0, "delta": 1.0, "h0": 0.5}) for u in found.blow_ups)


def test_signs_of_coefficients_enter_the_condition() -> None:
    assert texts(existence("beta*H**2 where beta nonnegative")) == [
        "from beta > 0 and h0 > 0: blows up at t = 1/(beta*h0)"
    ]
    found = existence("beta*H**3 - gamma*H where beta real")
    assert [u.condition for u in found.blow_ups] == [
        sp.And(sp.Symbol("beta") > 0, sp.Symbol("h0") > sp.sqrt(sp.Symbol("gamma") / sp.Symbol("beta"))),
        sp.And(sp.Symbol("beta") > 0, sp.Symbol("h0") < -sp.sqrt(sp.Symbol("gamma") / sp.Symbol("beta"))),
    ]


def test_masks_are_zero_or_one() -> None:
    assert existence("-alpha*L@H + M*H**3 - H**3").status == "global"
    found = existence("-alpha*L@H + M*H**2 - beta*H")
    assert texts(found) == ["from M = 1 and h0 > beta: blows up at t = log(h0/(-beta + h0))/beta"]
    assert "M equal in all nodes" in found.reason


def test_what_a_blow_up_assumes_is_said() -> None:
    found = existence("-alpha*L@H + k*H**2 - H where k node")
    assert found.status == "local"
    assert "k equal in all nodes" in found.reason
    assert "no node is isolated" in found.reason
    assert "W the identity" in existence("-L@H + H@W + H**2").reason
    assert "isolated node" in existence("L@(H**2)").reason
    assert existence("H**2").reason.startswith("in every entry")


STATUS = {
    "beta*(H-1)*(H-a)*H where a<=1": "local", "-alpha*L@H - exp(-H)": "local", "exp(H) - H**2": "local",
    "-alpha*L@H + sqrt(1 + H**2)": "global", "-L@H + H*sqrt(1 + H**2)": "local", "-L@H + softplus(H)**2": "local",
    "-L@H - relu(H)**2 + relu(-H)**2": "global", "-L@H + relu(-H)**2": "global", "-L@H - relu(-H)**2": "local",
    "-H**3 + A@(H**2)": "global", "-H**3 + H*(A@H)": "global", "H**3 + A@(H**2)": "local", "H*(A@H)": "local",
    "-M*H**3 + A@(H**2)": "local", "H*(A@H)/(1 + H**2)": "global", "(A@H)**2/(1 + (A@H)**2)": "global",
    "H@W - H**3": "global", "k*H - H**3 where k node, k real": "global", "(A@H0)*H - H0**2*H**3": "global",
    "(A@H0)*H**3": "local", "-L@H + sqrt(abs(H))": "global", "-L@H + H*sqrt(abs(H))": "undecided",
    "-L@H + sqrt(H)": "undecided", "H/M": "undecided", "-alpha*L@H + H**2*sin(H)": "undecided",
    "(alpha - beta)*H**3 where alpha <= beta": "global", "(alpha - beta)*H**3": "local", "exp(tanh(A@H))": "global",
    "H**2*sigmoid(-H)": "global", "exp(A@H)": "local", "-exp(H) + exp(-H)": "global", "-L@(H**3)": "undecided",
}  # fmt: skip


@pytest.mark.parametrize("text", STATUS)
def test_status(text: str) -> None:
    found = existence(text)
    assert found.status == STATUS[text], found.reason
    assert bool(found.blow_ups) == (found.status == "local")


def test_a_field_without_lipschitz_constant_says_so() -> None:
    assert "unique" in existence("-L@H + sqrt(abs(H))").reason


def test_an_answer_that_takes_too_long_is_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(*_: Any) -> None:
        raise Undecided("time ran out after 10 s")

    module = sys.modules["rdgraph.theory.global_existence"]
    monkeypatch.setattr(module, "_energy_estimate", endless)
    monkeypatch.setattr(module, "fate", endless)
    assert existence("-L@H + 17*H**2") == Existence("undecided", "time ran out after 10 s")
    monkeypatch.undo()
    assert existence("-L@H + 17*H**2").status == "local"  # what ran out of time is not remembered


# ---------------------------------------------------------------------- random equations against an ODE solver
WALL, FAR = 40.0, 300.0


def scalar_rate(system: System, values: dict[str, float], start: float) -> Callable[[float], float]:
    """h' of one entry, from the dense interpreter."""
    one = np.ones((1, 1))
    filled = {"A": one, "H0": start * one, **values}

    def rate(state: float) -> float:
        with np.errstate(over="ignore"):
            return float(np.asarray(dense.evaluate(system.expression, {**filled, "H": state * one})).item())

    return rate


def escape(rate: Callable[[float], float], start: float, horizon: float) -> tuple[int, float]:
    """(way, time) of the escape to infinity, (0, inf) where the wall is not reached."""

    def beyond(_: float, y: np.ndarray) -> float:
        return max(WALL, 2 * abs(start)) - abs(y[0])

    beyond.terminal = True  # type: ignore[attr-defined]
    path = solve_ivp(
        lambda _, y: [rate(y[0])], (0, horizon), [start], method="LSODA", rtol=1e-9, atol=1e-11, events=beyond
    )
    if not len(path.t_events[0]):
        return 0, np.inf
    end = path.y_events[0][0][0]
    way = int(np.sign(end))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rest, _ = quad(lambda u: abs(end) / (u**2 * way * rate(end / u)), 0, 1)
    return way, float(path.t_events[0][0] + rest)


POLYNOMIAL = ["H", "H**2", "H**3", "1", "H**4"]
OTHERS = [
    "exp(H)", "exp(-H)", "tanh(H)", "relu(H)**2", "H*abs(H)", "sqrt(1 + H**2)", "H*sqrt(1 + H**2)",
    "H**3/(1 + H**2)", "softplus(H)", "H**4/(1 + H**2)",
]  # fmt: skip
SIGNS = ["positive", "real", "nonnegative", "negative"]


@cache
def random_system(seed: int) -> System:
    """A sum of two or three terms, coefficients of random signs, every third one not a polynomial."""
    generator = np.random.default_rng(seed)
    pool = list(generator.choice(POLYNOMIAL, size=2, replace=False))
    if seed % 3 == 0:
        pool[0] = str(generator.choice(OTHERS))
    if seed % 2 == 0:
        pool.append(str(generator.choice([term for term in ["H", "H**2", "1"] if term not in pool])))
    letters = ["beta", "gamma", "1/2"][: len(pool)]
    notes = [f"{x} {generator.choice(SIGNS)}" for x in letters if x != "1/2"]
    body = " + ".join(f"{c}*{term}" for c, term in zip(letters, pool, strict=True))
    return rd.parse(f"{body} + 0*H where {', '.join(notes)}")


def random_values(system: System, generator: np.random.Generator) -> dict[str, float]:
    values = {}
    for name in system.coefficients:
        size = float(np.round(generator.uniform(0.3, 2.0), 2))
        sign = system.assumptions.sign(name)
        values[name] = {"negative": -size, "real": float(generator.choice([-1, 1])) * size}.get(sign, size)
    return values


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(15))
def test_random_scalar_equations(seed: int) -> None:
    system = random_system(seed)
    found = rd.existence(system)
    generator = np.random.default_rng(1000 + seed)
    for _ in range(2):
        values = random_values(system, generator)
        for start in generator.uniform(-3, 3, 4).round(2):
            check_start(system, found, values, float(start))
        for u in found.blow_ups:
            if u.condition is None and applies(u, values):
                assert escape(scalar_rate(system, values, u.way * FAR), u.way * FAR, 5.0)[0] == u.way, str(system)


def check_start(system: System, found: Existence, values: dict[str, float], start: float) -> None:
    rate = scalar_rate(system, values, start)
    named = {**values, "h0": start}
    claims = [u for u in found.blow_ups if u.condition is not None and applies(u, named)]
    open_ways = {u.way for u in found.blow_ups if u.condition is None and applies(u, values)}
    told = (str(system), values, start, texts(found))
    assert len(claims) <= 1, told
    if not claims:
        way, _ = escape(rate, start, 8.0)
        # Large values that grow no faster than exponentially reach the wall too: their integral does not converge.
        assert way == 0 or way in open_ways or found.status != "local" or not diverges(rate, way), told
        assert found.status != "global" or way == 0 or not diverges(rate, way), told
        return
    (claim,) = claims
    if claim.time is not None:
        expected = float(
            sp.N(claim.time.subs({sp.Symbol(k): sp.nsimplify(v, rational=True) for k, v in named.items()}))
        )
        assert escape(rate, start, 2 * expected + 1) == (claim.way, pytest.approx(expected, rel=1e-5)), told
    else:
        path = start + claim.way * np.geomspace(1e-9, 30, 400)
        assert all(claim.way * rate(x) > 0 for x in (start, *path)), told


def diverges(rate: Callable[[float], float], way: int) -> bool:
    """Whether the rate outgrows every line: its value over h rises without end."""
    quotients = [way * rate(way * x) / x for x in (1e2, 1e3)]
    return bool(quotients[1] > 3 * max(quotients[0], 0.1))


# ---------------------------------------------------------------------- graphs
GRAPHS = {
    "isolated node": np.array([[0, 2, 0, 0], [2, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]], dtype=float),
    "directed": np.array([[0, 3, 0, 0], [0, 0, 1, 0], [1, 0, 0, 2], [0, 0, 0.5, 0]], dtype=float),
}
GLOBAL = [
    "-alpha*L@H + M*H**3 - H**3", "-H**3 + A@(H**2)", "-H**3 + H*(A@H)", "alpha*L@H + k*H - H**5 where k node, k real",
    "H*(A@H)/(1 + H**2)", "-alpha*L@H - relu(H)**2 + relu(-H)**2", "exp(tanh(A@H)) + H0*H", "(A@H0)*H - H**3",
]  # fmt: skip


@pytest.mark.parametrize("text", GLOBAL)
@pytest.mark.parametrize("graph", GRAPHS)
def test_global_holds_on_graphs(text: str, graph: str) -> None:
    system = rd.parse(text)
    assert rd.existence(system).status == "global"
    generator = np.random.default_rng(5)
    for normalisation in ("row", "column"):
        start = generator.uniform(-6, 6, (4, 1))
        values: dict[str, Any] = {
            "A": dense_operator(GRAPHS[graph], normalisation), "H0": start, "alpha": 0.7,
            "M": np.array([[1.0], [0.0], [0.0], [1.0]]), "k": generator.normal(size=(4, 1)),
        }  # fmt: skip

        def f(_: float, y: np.ndarray, values: dict[str, Any] = values) -> np.ndarray:
            return np.asarray(dense.evaluate(system.expression, {**values, "H": y.reshape(4, 1)})).ravel()

        solved = solve_ivp(f, (0, 3.0), start.ravel(), method="LSODA", rtol=1e-6, atol=1e-8)
        assert solved.success
        assert np.abs(solved.y[:, -1]).max() < 1e10


def test_an_isolated_node_blows_up_when_it_is_said_to() -> None:
    found = existence("L@(H**2)")
    operator = dense_operator(GRAPHS["isolated node"], "row")
    start = np.array([[0.1], [0.1], [0.1], [0.5]])
    assert [u.time.subs(sp.Symbol("h0"), sp.Rational(1, 2)) for u in found.blow_ups if u.time is not None] == [2]

    def f(_: float, y: np.ndarray) -> np.ndarray:
        values = {"A": operator, "H": y.reshape(4, 1)}
        return np.asarray(dense.evaluate(rd.parse("L@(H**2)").expression, values)).ravel()

    path = solve_ivp(f, (0, 2 - 1e-3), start.ravel(), rtol=1e-10, atol=1e-12).y
    assert path[3, -1] == pytest.approx(1000, rel=1e-5)


def test_states_equal_in_all_nodes_blow_up_when_they_are_said_to() -> None:
    found = existence("-alpha*L@H + k*H*(A@H) - H where k node")
    operator = dense_operator(GRAPHS["directed"], "row")
    (claim,) = found.blow_ups
    expected = float(claim.time.subs({sp.Symbol("k"): 2, sp.Symbol("h0"): sp.Rational(3, 4)}))  # type: ignore[union-attr]
    system = rd.parse("-alpha*L@H + k*H*(A@H) - H where k node")

    def f(_: float, y: np.ndarray) -> np.ndarray:
        values = {"A": operator, "H": y.reshape(4, 1), "alpha": 1.3, "k": np.full((4, 1), 2.0)}
        return np.asarray(dense.evaluate(system.expression, values)).ravel()

    path = solve_ivp(f, (0, expected - 1e-4), np.full(4, 0.75), rtol=1e-11, atol=1e-12).y
    assert path[:, -1] == pytest.approx(np.full(4, 1 / 2e-4), rel=1e-2)


def test_an_equation_that_depends_on_its_start_shows_an_example() -> None:
    found = fate(h**5 - h * sp.Symbol("h0", real=True) ** 2 - 1, Domain())
    assert {u.way for u in found.blow_ups} == {1, -1}


def test_what_rests_on_interval_arithmetic_says_so() -> None:
    said = "bounded by interval arithmetic"
    assert said in rd.existence(rd.parse("exp(0.3)*H**2 - H")).reason
    assert said not in rd.existence(rd.parse("2*H**2 - H")).reason


def test_an_example_is_called_one() -> None:
    (found,) = rd.existence(rd.parse("-1.5*L@H - alpha*(H0 - H) + c*(1 - H)**2*H where c <= alpha")).blow_ups[:1]
    assert found.example
    assert str(found).startswith("for example from alpha = 1")
    assert not any(b.example for b in rd.existence(rd.parse("F")).blow_ups)


@pytest.mark.parametrize("gate", ["sigmoid(L@H)", "softplus(L@H)"])
def test_functions_of_numbers_alone_do_not_hide_a_blow_up(gate: str) -> None:
    """On constant states L@H = 0, and the rate has sigmoid(0), which is no number to floating-point code."""
    found = rd.existence(rd.parse(f"alpha*{gate}*H + beta*H**2"))
    assert found.status == "local"
    assert found.blow_ups[0].time is not None


@pytest.mark.parametrize(
    ("text", "expected"), [("AC", "global"), ("-alpha*L@H + beta*tanh(H)", "global"), ("BS", "global")]
)
def test_bounds_of_growth_alone_prove_what_existence_does(text: str, expected: str) -> None:
    found = existence_by_growth(rd.parse(text))
    assert found is not None
    assert (found.status, found.reason) == (expected, rd.existence(rd.parse(text)).reason)


@pytest.mark.parametrize("text", ["F", "beta*H**2", "exp(H)", "sqrt(H)"])
def test_bounds_of_growth_say_nothing_where_they_prove_nothing(text: str) -> None:
    assert existence_by_growth(rd.parse(text)) is None
