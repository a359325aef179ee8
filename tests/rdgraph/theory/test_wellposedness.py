"""Existence, invariant boxes and step limits: every claim held in simulation, every limit shown to be sharp."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad, solve_ivp

import rdgraph as rd
from rdgraph.errors import NotApplicable
from rdgraph.graphs.normalisation import dense_operator
from rdgraph.identities import dense_oracle as dense
from rdgraph.methods.tableaux import methods
from rdgraph.systems.catalogue import catalogue
from rdgraph.systems.system import System
from rdgraph.testing import adjacency

H_SYMBOL = sp.Symbol("h")


def at(expression: sp.Expr, values: dict[str, float]) -> float:
    letters = sorted(expression.free_symbols, key=str)
    return float(sp.lambdify(letters, expression, modules="mpmath")(*(values[x.name] for x in letters)))


def scalar_rate(system: System, values: dict[str, float]) -> Callable[[float], float]:
    """h' on states equal in all nodes, from the dense interpreter on one node with A = 1."""
    one = np.ones((1, 1))

    def rate(h: float) -> float:
        return float(
            np.asarray(dense.evaluate(system.expression, {"A": one, "H": h * one, "H0": one, **values})).item()
        )

    return rate


def escape_time(rate: Callable[[float], float], start: float, horizon: float, wall: float = 50.0) -> float:
    """Time to reach infinity: to the wall by an ODE solver, from there by quadrature; infinite beyond the horizon."""

    def beyond(_: float, y: np.ndarray) -> float:
        return wall - abs(y[0])

    beyond.terminal = True  # type: ignore[attr-defined]
    found = solve_ivp(lambda _, y: [rate(y[0])], (0, horizon), [start], rtol=1e-10, atol=1e-12, events=beyond)
    if not len(found.t_events[0]):
        return np.inf
    way = np.sign(found.y_events[0][0][0])
    # With u = 1/h the rest is an integral over (0, 1/wall].
    rest, _ = quad(lambda u: 1 / (u**2 * way * rate(way / u)), 0, 1 / wall)
    return float(found.t_events[0][0] + rest)


# ---------------------------------------------------------------------- blow-up
BLOW_UP: dict[str, tuple[str, tuple[str, ...], dict[str, float], list[float]]] = {
    "F": ("F", (), {"beta": 1.3}, [-0.2, -1.0, -3.0]),
    "F, beta<0": ("F", ("beta<0",), {"beta": -0.8}, [1.1, 2.0, 5.0]),
    "AC, beta<0": ("AC", ("beta<0",), {"beta": -0.8}, [1.2, -1.2, 3.0, -4.0]),
    "Z, beta<0": ("Z", ("beta<0",), {"beta": -0.8}, [1.2, 3.0, -0.4, -2.0]),
    "square": ("-alpha*L@H + H**2", (), {}, [0.5, 2.0]),
    "cube": ("-alpha*L@H + H**3 - H", (), {}, [1.3, -1.3, 4.0]),
    "three zeros": ("-alpha*L@H + (H - 1)*(H - 2)*(H - 3)", (), {}, [3.2, 5.0, 0.7, -2.0]),
    "square minus one": ("-alpha*L@H + H**2 - 1", (), {}, [1.2, 3.0]),
    "scaled": ("-alpha*L@H + gamma*H**2 - beta*H", (), {"beta": 0.7, "gamma": 1.9}, [0.5, 2.0]),
    "fourth": ("-alpha*L@H + beta*H**4", (), {"beta": 0.5}, [0.8, 2.0]),
    "through A": ("-H + A@(H**2)", (), {}, [1.3, 4.0]),
    "quintic": ("-alpha*L@H + beta*H**5", (), {"beta": 0.5}, [0.9, -0.9]),
}


@cache
def lives(name: str) -> Any:
    text, assume, _, _ = BLOW_UP[name]
    return rd.existence(rd.parse(text, assume=assume))


@pytest.mark.parametrize("name", BLOW_UP)
def test_blow_up_times_against_an_ode_solver(name: str) -> None:
    text, assume, values, starts = BLOW_UP[name]
    found = lives(name)
    assert found.status == "local"
    rate = scalar_rate(rd.parse(text, assume=assume), {"alpha": 1.0, **values})
    for start in starts:
        exact = {**values, "h0": start}
        fitting = [b for b in found.blow_ups if b.condition is not None and bool(b.condition.subs(exact))]
        assert len(fitting) == 1, (start, [str(b) for b in found.blow_ups])
        assert fitting[0].time is not None
        claimed = at(fitting[0].time, exact)
        assert claimed > 0
        assert escape_time(rate, start, 2 * claimed + 1) == pytest.approx(claimed, rel=1e-7)


@pytest.mark.parametrize("name", BLOW_UP)
def test_nothing_blows_up_outside_the_conditions(name: str) -> None:
    text, assume, values, _ = BLOW_UP[name]
    rate = scalar_rate(rd.parse(text, assume=assume), {"alpha": 1.0, **values})
    for start in np.linspace(-4, 4, 17):
        exact = {**values, "h0": float(start)}
        claimed = any(b.condition is not None and bool(b.condition.subs(exact)) for b in lives(name).blow_ups)
        if not claimed:
            assert escape_time(rate, float(start), 20.0) == np.inf, start


def test_known_blow_up_times() -> None:
    values = {"beta": 2.0, "h0": -0.5}
    assert at(lives("F").blow_ups[0].time, values) == pytest.approx(np.log(1 + 1 / 0.5) / 2)
    times = {b.way: b.time for b in lives("Z, beta<0").blow_ups}
    x, y = 1 / 0.5, 1 / 3.0
    assert at(times[-1], {"beta": -2.0, "h0": -0.5}) == pytest.approx((x - np.log(1 + x)) / 2)
    assert at(times[1], {"beta": -2.0, "h0": 3.0}) == pytest.approx((-y - np.log(1 - y)) / 2)
    times = {b.way: b.time for b in lives("AC, beta<0").blow_ups}
    for way in (1, -1):
        assert at(times[way], {"beta": -2.0, "h0": way * 1.5}) == pytest.approx(np.log(2.25 / 1.25) / 4)


# ---------------------------------------------------------------------- global existence
GLOBAL = [
    *(n for n in catalogue.single if n != "F"),
    "-alpha*L@H + beta*tanh(H)",
    "-alpha*L@H - beta*H**5 + gamma*H**2",
    "-alpha*L@H + beta*sin(H) + H",
    "-alpha*L@H + H/(1 + H**2)",
    "-alpha*L@H - beta*exp(H)",
    "-alpha*L@H + beta*H**2/(1 + H**2)",
    "tanh(A@H) - H",
    "H*tanh(A@H)",
    "-L@H + relu(H)",
    "-L@H + abs(H)*tanh(H)",
    "-alpha*L@H + beta*H*(1 - H)*(H - 2)",
    "-alpha*L@H - beta*relu(H)*H",
    "H0*(A@H)",
    "-L@H + H0*H",
]


@pytest.mark.parametrize("text", GLOBAL)
def test_global_is_never_contradicted(text: str) -> None:
    system = rd.parse(text)
    if rd.existence(system).status != "global":
        return
    generator = np.random.default_rng(1)
    graph = np.array([[0, 1, 1, 0], [1, 0, 1, 1], [1, 1, 0, 0], [0, 1, 0, 0]], dtype=float)
    for normalisation in ("row", "symmetric"):
        values: dict[str, Any] = dict.fromkeys(system.coefficients, 0.8)
        values |= {"A": dense_operator(graph, normalisation)}
        values |= {name: generator.normal(size=(1, 1)) * 0.3 for name in ("W", "V")}
        values["M"] = np.array([[1.0], [0.0], [1.0], [0.0]])
        for spread in (1.0, 10.0):
            start = generator.uniform(-spread, spread, (4, 1))

            def f(_: float, y: np.ndarray, values: Any = values, start: np.ndarray = start) -> np.ndarray:
                H = y.reshape(4, 1)
                return np.broadcast_to(
                    dense.evaluate(system.expression, {**values, "H": H, "H0": start}), H.shape
                ).ravel()

            solved = solve_ivp(f, (0, 2.0), start.ravel(), method="LSODA", rtol=1e-6, atol=1e-8)
            assert solved.success
            assert np.isfinite(solved.y).all()
            assert np.abs(solved.y[:, -1]).max() < 1e12


@pytest.mark.parametrize("text", ["AC", "Z", "Nagumo", "ACMP", "BS", "ST", "-alpha*L@H + beta*tanh(H)", "H*tanh(A@H)"])
def test_what_must_be_proved_global(text: str) -> None:
    assert rd.existence(rd.parse(text)).status == "global"


def test_exponential_reactions() -> None:
    found = rd.existence(rd.parse("-alpha*L@H + beta*exp(H)"))
    assert found.status == "local"
    path = solve_ivp(lambda _, y: 0.5 * np.exp(y), (0, 2 - 1e-3), [0.0], rtol=1e-10, atol=1e-12).y[0]
    assert path[-1] == pytest.approx(np.log(2000), rel=1e-6)
    assert found.blow_ups[0].way == 1


@pytest.mark.parametrize("text", ["-L@H + sqrt(H)", "-L@H + 1/H", "-L@H + H/(1 - H)"])
def test_singular_fields_are_not_called_global(text: str) -> None:
    assert rd.existence(rd.parse(text)).status == "undecided"


# ---------------------------------------------------------------------- boxes
BOXES: dict[str, tuple[str, tuple[str, ...]]] = {
    "F": ("F", ()), "AC": ("AC", ()), "Z": ("Z", ()),
    "F, beta<0": ("F", ("beta<0",)), "AC, beta<0": ("AC", ("beta<0",)), "Z, beta<0": ("Z", ("beta<0",)),
    "Nagumo": ("Nagumo", ()), "diffusion": ("diffusion", ()), "APPNP": ("APPNP", ()),
    "FB": ("FB", ("beta <= alpha",)), "shifted": ("-alpha*L@H + beta*(H - 1)*(3 - H)", ()),
    "two hops": ("-(alpha + gamma)*H + alpha*A@H + gamma*A@A@H + beta*H*(1 - H)", ()),
    "damped": ("-alpha*L@H - beta*H**3", ()), "FB-released": ("FB-released", ()),
    "cubic": ("-alpha*L@H - beta*(H - 1)*(H + 2)*H", ()), "constant": ("-alpha*L@H + beta - gamma*H", ()),
    "leaking": ("-alpha*H + beta*A@H", ("beta <= alpha",)),
}  # fmt: skip


def coefficients_of(system: System, generator: np.random.Generator) -> dict[str, float]:
    values = {}
    for name in system.coefficients:
        size = float(generator.uniform(0.2, 2.0))
        values[name] = -size if system.assumptions.sign(name) == "negative" else size
    if system.name == "Nagumo":
        values["a"] /= 2.1
    for relation in system.assumptions.relations:
        if str(relation) == "beta <= alpha":
            values["beta"] = values["alpha"] * float(generator.uniform(0, 1))
    return values


@cache
def box_of(name: str, normalisation: str) -> Any:
    text, assume = BOXES[name]
    return rd.invariant_box(rd.parse(text, assume=assume), normalisation)


def leaves(
    system: System, A: np.ndarray, values: dict[str, float], lower: float, upper: float, start: np.ndarray
) -> float:
    """How far a trajectory gets out of the box."""

    def f(_: float, y: np.ndarray) -> np.ndarray:
        H = y.reshape(-1, 1)
        filled = {"A": A, "H": H, "H0": start, **values}
        return np.broadcast_to(dense.evaluate(system.expression, filled), H.shape).ravel()

    path = solve_ivp(f, (0, 4.0), start.ravel(), rtol=1e-8, atol=1e-10).y
    return float(max(path.max() - upper, lower - path.min()))


@pytest.mark.parametrize("normalisation", ["row", "symmetric"])
@pytest.mark.parametrize("name", BOXES)
def test_boxes_are_kept(name: str, normalisation: str) -> None:
    box = box_of(name, normalisation)
    if not box.exists:
        assert box.note
        return
    text, assume = BOXES[name]
    system = rd.parse(text, assume=assume)

    @settings(max_examples=8)
    @given(adjacency(min_nodes=3, max_nodes=6, connected=True, weighted=True), st.integers(0, 2**20))
    def check(graph: np.ndarray, seed: int) -> None:
        generator = np.random.default_rng(seed)
        A, values = dense_operator(graph, normalisation), coefficients_of(system, generator)
        known = {**values, "R": float(generator.uniform(0.5, 3)), "s": float(A.sum(axis=1).max())}
        ends = [(box.lower, box.upper), *box.others]
        for pair in ends:
            lower, upper = (at(e, known) for e in pair)
            assert lower < upper
            start = generator.uniform(lower, upper, (len(A), 1))
            start[0], start[-1] = lower, upper
            assert leaves(system, A, values, lower, upper, start) < 1e-6

    check()


@pytest.mark.parametrize(
    ("name", "lower", "upper"),
    [
        ("F", 0, 1),
        ("AC", -1, 1),
        ("Z", 0, 1),
        ("F, beta<0", 0, 1),
        ("AC, beta<0", -1, 1),
        ("Z, beta<0", 0, 1),
        ("Nagumo", 0, 1),
    ],
)
def test_known_row_boxes(name: str, lower: int, upper: int) -> None:
    assert (box_of(name, "row").lower, box_of(name, "row").upper) == (lower, upper)


@pytest.mark.parametrize(
    ("name", "upper", "lower"),
    [
        ("F", lambda q: 1 + q, lambda q: 0),
        ("AC", lambda q: np.sqrt(1 + q), lambda q: -np.sqrt(1 + q)),
        ("Z", lambda q: (1 + np.sqrt(1 + 4 * q)) / 2, lambda q: 0),
    ],
)
def test_known_symmetric_boxes(name: str, upper: Callable[[float], float], lower: Callable[[float], float]) -> None:
    box = box_of(name, "symmetric")
    for alpha, beta, s in ((1.0, 1.0, 1.0), (0.7, 1.3, 2.5), (2.0, 0.3, 7.0)):
        q = alpha / beta * (s - 1)
        values = {"alpha": alpha, "beta": beta, "s": s}
        assert at(box.upper, values) == pytest.approx(upper(q))
        assert at(box.lower, values) == pytest.approx(lower(q), abs=1e-12)


@pytest.mark.parametrize("name", ["F", "AC", "Z"])
def test_the_row_box_is_left_on_the_star(name: str) -> None:
    """Symmetric A on a star: from the upper face of the row box the hub moves out."""
    system, star = catalogue[name], np.zeros((6, 6))
    star[0, 1:] = star[1:, 0] = 1
    values = {"alpha": 1.0, "beta": 1.0}
    row = box_of(name, "row")
    lower, upper = float(row.lower), float(row.upper)
    assert leaves(system, dense_operator(star, "symmetric"), values, lower, upper, np.full((6, 1), upper)) > 0.05
    assert leaves(system, dense_operator(star, "row"), values, lower, upper, np.full((6, 1), upper)) < 1e-6


@pytest.mark.parametrize(
    "text", ["BS", "ST", "FB*", "CGNN", "GRAND++", "-alpha*L@H + beta*exp(H)", "-alpha*L@H + H**2 + 1"]
)
def test_no_box_where_none_exists(text: str) -> None:
    for normalisation in ("row", "symmetric"):
        box = rd.invariant_box(rd.parse(text), normalisation)
        assert not box.exists
        assert box.upper is None
        assert box.note


def test_blurring_sharpening_loses_positivity() -> None:
    path = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=float)
    start = np.array([[0.0], [0.0], [1.0]])
    values = {"alpha": 1.0, "beta": 1.0}
    assert leaves(catalogue["BS"], dense_operator(path, "row"), values, 0.0, 1.0, start) > 0.01
    assert "maximum principle" in rd.invariant_box(catalogue["BS"]).note


def test_boxes_know_two_normalisations() -> None:
    for question in (rd.invariant_box, lambda s, n: rd.step_limit(s, "euler", n)):
        with pytest.raises(NotApplicable, match="symmetric or row"):
            question(catalogue["F"], "column")


# ---------------------------------------------------------------------- Euler steps that keep the box
STEPPED = ["F", "AC", "Z", "F, beta<0", "AC, beta<0", "Z, beta<0", "Nagumo", "shifted", "two hops", "cubic"]


@cache
def euler_limit(name: str, normalisation: str) -> Any:
    text, assume = BOXES[name]
    return rd.step_limit(rd.parse(text, assume=assume), "euler", normalisation)


def overshoot(
    system: System, values: dict[str, float], lower: float, upper: float, step: float, reach: float = 1.0
) -> float:
    """Largest exit of one Euler step over own values h and neighbour averages in the box (scaled by row sums)."""
    own = np.linspace(lower, upper, 2001)[None, :]
    worst = -np.inf
    for average in (lower, upper, (lower + upper) / 2):
        # Two rows: a node with value h and no self-loop, and the neighbour it sees through A = [[0, reach], ...].
        H = np.vstack([own, np.full_like(own, average)])
        A = np.array([[0.0, reach], [0.0, 1.0]])
        after = (H + step * dense.evaluate(system.expression, {"A": A, "H": H, "H0": H, **values}))[0]
        worst = max(worst, float((after - upper).max()), float((lower - after).max()))
    return worst


@pytest.mark.parametrize("name", STEPPED)
def test_euler_limits_keep_the_box_and_are_sharp(name: str) -> None:
    text, assume = BOXES[name]
    system, limit, box = rd.parse(text, assume=assume), euler_limit(name, "row"), box_of(name, "row")
    assert limit.value is not None, limit.means
    assert limit.means.startswith("keeps the box")
    generator = np.random.default_rng(8)
    for _ in range(6):
        values = coefficients_of(system, generator)
        lower, upper, step = at(box.lower, values), at(box.upper, values), at(limit.value, values)
        assert step > 0
        assert overshoot(system, values, lower, upper, step) < 1e-9
        assert overshoot(system, values, lower, upper, 1.02 * step) > 1e-7


@pytest.mark.parametrize("name", ["F", "AC", "Z"])
def test_symmetric_euler_limits_keep_the_box(name: str) -> None:
    system, limit, box = catalogue[name], euler_limit(name, "symmetric"), box_of(name, "symmetric")
    assert limit.value is not None, limit.means
    generator = np.random.default_rng(9)
    for s in (1.0, 1.5, 3.0, 8.0):
        values = coefficients_of(system, generator)
        known = {**values, "s": s}
        lower, upper, step = at(box.lower, known), at(box.upper, known), at(limit.value, known)
        assert overshoot(system, values, lower, upper, step, reach=s) < 1e-9
        assert overshoot(system, values, lower, upper, 1.02 * step, reach=s) > 1e-7


@pytest.mark.parametrize(
    ("name", "rate"),
    [
        ("F", lambda a, b: a + b), ("Z", lambda a, b: a + b), ("AC", lambda a, b: a + 2 * b),
        ("F, beta<0", lambda a, b: a - b), ("Z, beta<0", lambda a, b: a - b / 4),
        ("AC, beta<0", lambda a, b: a - b / 4),
    ],
)  # fmt: skip
def test_known_euler_limits(name: str, rate: Callable[[float, float], float]) -> None:
    sign = -1 if "<" in name else 1
    for alpha, beta in ((1.0, 1.0), (0.3, 2.0), (2.0, 0.1)):
        got = at(euler_limit(name, "row").value, {"alpha": alpha, "beta": sign * beta})
        assert 1 / got == pytest.approx(rate(alpha, sign * beta))


def test_trajectories_stay_inside_at_the_limit() -> None:
    """On K2, stepping for long at the limit; just above it some state leaves at once."""
    K2 = np.array([[0.0, 1.0], [1.0, 0.0]])
    for name in ("F", "AC", "Z"):
        system, values = catalogue[name], {"alpha": 0.7, "beta": 1.1}
        step, box = at(euler_limit(name, "row").value, values), box_of(name, "row")
        lower, upper = float(box.lower), float(box.upper)
        H = np.random.default_rng(2).uniform(lower, upper, (2, 4000))
        for _ in range(50):
            H = H + step * dense.evaluate(system.expression, {"A": K2, "H": H, **values})
            assert lower - 1e-9 <= H.min() <= H.max() <= upper + 1e-9


# ---------------------------------------------------------------------- linear stability
LINEAR = {
    "diffusion": {"alpha": 0.7}, "BS": {"alpha": 1.0, "beta": 0.6}, "FB": {"alpha": 1.2, "beta": 0.3},
    "FB*": {"alpha": 1.2, "beta": 0.1}, "APPNP": {"alpha": 0.4, "beta": 0.9},
    "SGC": {}, "GRAND-l": {}, "ST": {"alpha": 0.5, "beta": 1.0},
    "-alpha*L@L@H": {"alpha": 0.8}, "-alpha*L@H - beta*H": {"alpha": 0.8, "beta": 0.3},
}  # fmt: skip


@pytest.mark.parametrize("method", methods)
@pytest.mark.parametrize("text", LINEAR)
def test_linear_limits_are_sharp_on_two_nodes(text: str, method: str) -> None:
    """K2 has the eigenvalues 0 and 2: modes that the flow damps are damped up to the limit, not beyond."""
    system, values = rd.parse(text), LINEAR[text]
    limit = rd.step_limit(system, method)
    assert limit.value is not None
    size = at(limit.value, values)
    K2, unit, zero = np.array([[0.0, 1.0], [1.0, 0.0]]), np.eye(2), np.zeros((2, 2))
    G = dense.evaluate(system.expression, {"A": K2, "H": unit, "H0": zero, **values})
    damped = np.array([g for g in np.linalg.eigvalsh(G) if g <= 1e-12])
    polynomial = methods[method].stability
    R = sp.lambdify(sorted(polynomial.free_symbols, key=str), polynomial)
    assert np.abs(R(size * damped)).max() <= 1 + 1e-9
    assert np.abs(R(1.01 * size * damped)).max() > 1


@pytest.mark.parametrize(("ratio", "stable"), [(0.5, True), (1.0, True), (1.5, False)])
def test_growth_of_the_flow_is_said(ratio: float, stable: bool) -> None:
    limit = rd.step_limit(rd.parse("BS", assume="beta <= alpha") if stable else rd.parse("BS"))
    assert ("grows" in limit.means) == (not stable)
    assert at(limit.value, {"alpha": 1.0, "beta": ratio}) == pytest.approx(1 / (1 + ratio))


def test_nothing_to_damp_is_no_limit() -> None:
    assert rd.step_limit(rd.parse("alpha*L@H")).value == sp.oo
    backward = rd.step_limit(rd.parse("FB")).value
    assert backward.subs({"alpha": 1, "beta": 2}) == sp.oo
    assert backward.subs({"alpha": 1, "beta": 1}) == sp.oo
    assert backward.subs({"alpha": 2, "beta": 1}) == 1


@pytest.mark.parametrize("method", ["midpoint", "rk4", "dopri5"])
@pytest.mark.parametrize("name", ["F", "AC", "Z"])
def test_limits_at_the_constant_states(name: str, method: str) -> None:
    """The step map's Jacobian on K2 at the attracting states: spectral radius 1 at the limit, more beyond it."""
    system, values = catalogue[name], {"alpha": 0.9, "beta": 0.7}
    limit = rd.step_limit(system, method, "row")
    assert limit.value is not None
    size = at(limit.value, values)
    K2, polynomial = np.array([[0.0, 1.0], [1.0, 0.0]]), methods[method].stability
    R = sp.lambdify(sorted(polynomial.free_symbols, key=str), polynomial)
    rates = []
    for state in {"F": [1.0], "AC": [1.0, -1.0], "Z": [0.0, 1.0]}[name]:
        bumps = [
            dense.evaluate(system.expression, {"A": K2, "H": state + e * np.eye(2), **values}) for e in (1e-6, -1e-6)
        ]
        rates += list(np.linalg.eigvalsh((bumps[0] - bumps[1]) / 2e-6))
    rates = np.minimum(np.array(rates), 0)
    assert np.abs(R(size * rates)).max() <= 1 + 1e-7
    assert np.abs(R(1.01 * size * rates)).max() > 1


def test_no_stability_limit_without_a_symbol() -> None:
    limit = rd.step_limit(rd.parse("-L@H + H@W"))
    assert limit.keeps == "distances"
    assert str(limit.rate) == "norm_W"
    undecided = rd.step_limit(rd.parse("-L@H + H@W"), "midpoint")
    assert undecided.value is None
    assert "midpoint does not damp" in undecided.means or "generator plus entrywise" in undecided.means


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("H**2 - H0**2", "global"),  # rests at its start
        ("exp(H) - exp(H0)", "global"),
        ("-L@H + H**2 - H0**2", "undecided"),  # states equal in all nodes rest
        ("-alpha*L@H + beta*H*(1 - H) + gamma*H0", "local"),
        ("H**3 - H0**2", "local"),
    ],
)
def test_a_source_starts_where_the_state_starts(text: str, status: str) -> None:
    assert rd.existence(rd.parse(text)).status == status
