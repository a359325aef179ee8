"""Spectra: three routes to every response, Runge-Kutta methods, filter classes and growth rates against numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import mpmath
import networkx as nx
import numpy as np
import pytest
import sympy as sp
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy.integrate import RK45
from scipy.linalg import expm

import rdgraph as rd
from rdgraph.errors import InvalidArgument, NotApplicable, Undecided, UnknownName
from rdgraph.graphs.normalisation import dense_operator
from rdgraph.identities import dense_oracle as dense
from rdgraph.methods.runge_kutta import Tableau, z
from rdgraph.methods.tableaux import methods, tableau
from rdgraph.syntax.answer_symbols import public
from rdgraph.syntax.tree import Kind
from rdgraph.systems.catalogue import catalogue
from rdgraph.systems.system import System
from rdgraph.testing import systems

LAM, END, TAU = sp.symbols("lam T tau")
CHANNELS = 2

GRAPHS: dict[str, nx.Graph] = {
    "path": nx.path_graph(7),
    "ring": nx.cycle_graph(6),
    "complete": nx.complete_graph(5),
    "star": nx.star_graph(5),
    "grid": nx.grid_2d_graph(3, 3),
    "tree": nx.random_labeled_tree(9, seed=4),
    "bipartite": nx.complete_bipartite_graph(2, 4),
    "random": nx.gnp_random_graph(9, 0.35, seed=11),
}
LINEAR = [name for name, s in catalogue.single.items() if s.structure.is_polynomial_in_operator]
VALUES = {"alpha": 0.7, "beta": 1.3, "omega": 0.9, "w": 0.6}


@cache
def operator(graph: str) -> np.ndarray:
    return dense_operator(nx.to_numpy_array(GRAPHS[graph]), "symmetric")


def test_the_linear_part_of_the_catalogue() -> None:
    assert LINEAR == [
        "diffusion", "BS", "ST", "FB", "FB*", "FB-released", "FB*-released", "GRAND-l", "GRAFF-diagonal",
        "APPNP", "SGC",
    ]  # fmt: skip


# ---------------------------------------------------------------------- the dense generator
def dense_generators(system: System, A: np.ndarray, values: dict[str, Any]) -> list[tuple[np.ndarray, np.ndarray]]:
    """(G, S) of H' = G H + S H0 per channel, column by column from the dense interpreter on unit vectors."""
    n = len(A)
    found = np.zeros((2, CHANNELS, n, n))
    for j in range(n):
        unit, zero = np.zeros((n, CHANNELS)), np.zeros((n, CHANNELS))
        unit[j] = 1.0
        for which, state in enumerate([(unit, zero), (zero, unit)]):
            out = dense.evaluate(system.expression, {"A": A, "H": state[0], "H0": state[1], **values})
            found[which, :, :, j] = np.broadcast_to(out, (n, CHANNELS)).T
    return [(found[0, c], found[1, c]) for c in range(CHANNELS)]


def per_channel(system: System, values: dict[str, Any], channel: int) -> dict[str, float]:
    kinds = system.coefficients
    return {n: float(v[channel] if kinds[n] is Kind.CHANNEL else v) for n, v in values.items()}


def gains(expression: sp.Expr, eigenvalues: np.ndarray, values: dict[str, float], **more: float) -> np.ndarray:
    """A symbolic response at the eigenvalues, in 150 digits and 1e-60 beside them: p close to 0 costs nothing."""
    names = sorted({x.name for x in expression.free_symbols} - {"lam"})
    known = {**values, **more}
    function = sp.lambdify([LAM, *(sp.Symbol(n) for n in names)], expression, modules="mpmath")
    with mpmath.workdps(150):
        return np.array(
            [
                float(function(mpmath.mpf(float(x)) + mpmath.mpf("1e-60"), *(mpmath.mpf(known[n]) for n in names)))
                for x in eigenvalues
            ]
        )


def read(text: str) -> sp.Expr:
    return sp.sympify(text, locals={n: sp.Symbol(n) for n in ("alpha", "beta", "lam", "T")})


def phi1(x: np.ndarray) -> np.ndarray:
    small = np.abs(x) < 1e-12
    return np.where(small, 1 + x / 2, np.expm1(x) / np.where(small, 1.0, x))


def assert_three_routes(system: System, A: np.ndarray, values: dict[str, Any], end: float) -> None:
    """Symbolic response in the eigenbasis = scalar formulas on diag(V^T G V) = expm of the augmented generator."""
    n = len(A)
    mu, V = np.linalg.eigh(A)
    symbolic = system.response(T=end)
    p, q = system.symbol(), public(system.source_symbol)
    for channel, (G, S) in enumerate(dense_generators(system, A, values)):
        own = per_channel(system, values, channel)
        rotated, rotated_source = V.T @ G @ V, V.T @ S @ V
        rounding = 1e-11 * (1 + np.abs(G).max() + np.abs(S).max())
        np.testing.assert_allclose(rotated, np.diag(gains(p, 1 - mu, own)), atol=rounding)
        np.testing.assert_allclose(rotated_source, np.diag(gains(q, 1 - mu, own)), atol=rounding)
        x = end * np.diag(rotated)
        first = V @ np.diag(gains(symbolic, 1 - mu, own)) @ V.T
        second = V @ np.diag(np.exp(x) + end * np.diag(rotated_source) * phi1(x)) @ V.T
        augmented = expm(end * np.block([[G, S], [np.zeros((n, 2 * n))]]))
        third = augmented[:n, :n] + augmented[:n, n:]
        scale = 1 + np.abs(third).max()
        np.testing.assert_allclose(first / scale, third / scale, atol=1e-10)
        np.testing.assert_allclose(second / scale, third / scale, atol=1e-10)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("name", LINEAR)
def test_three_routes_for_the_catalogue(name: str, graph: str) -> None:
    system = catalogue[name]
    values = {n: spread(VALUES[n], kind) for n, kind in system.coefficients.items()}
    assert_three_routes(system, operator(graph), values, 1.7)


def spread(value: float, kind: Kind) -> Any:
    """A number, or one for each channel."""
    return value * np.linspace(1.0, 0.5, CHANNELS) if kind is Kind.CHANNEL else value


def draw_values(system: System, seed: int) -> dict[str, Any]:
    """Coefficients of the assumed signs; relations between them are met or the example is dropped."""
    generator = np.random.default_rng(seed)
    values: dict[str, Any] = {}
    for name, kind in system.coefficients.items():
        shape = (CHANNELS,) if kind is Kind.CHANNEL else ()
        sign = system.assumptions.sign(name)
        flip = generator.choice([-1.0, 1.0], shape) if sign == "real" else 1.0
        values[name] = generator.uniform(0.1, 1.5, shape) * (-1 if sign in ("negative", "nonpositive") else flip)
    return values


def unit_of_time(system: System, A: np.ndarray, values: dict[str, Any]) -> float:
    """A time over which the system does something, but not too much: a round number near 1/|G|."""
    size = max(np.abs(X).sum(axis=1).max() for pair in dense_generators(system, A, values) for X in pair)
    return float(f"{1 / max(size, 0.1):.2g}")


@settings(max_examples=60)
@given(systems(linear=True), st.sampled_from(sorted(GRAPHS)), st.integers(0, 2**20), st.sampled_from([0.01, 1, 3]))
@example(rd.parse("(2*alpha*A + 0.1*A)@H + alpha*H0"), "bipartite", 0, 0.01)
def test_three_routes_for_random_systems(system: System, graph: str, seed: int, times: float) -> None:
    values = draw_values(system, seed)
    assert_three_routes(system, operator(graph), values, times * unit_of_time(system, operator(graph), values))


@pytest.mark.parametrize(
    ("name", "p", "response"),
    [
        ("diffusion", "-alpha*lam", "exp(-T*alpha*lam)"),
        ("BS", "(beta-alpha)*lam - beta*lam**2", "exp(T*((beta-alpha)*lam - beta*lam**2))"),
        ("FB", "(beta-alpha)*lam", "exp(T*(beta-alpha)*lam)"),
        ("FB*", "(beta-alpha)*lam + beta", "exp(T*((beta-alpha)*lam + beta))"),
        ("FB-released", "2*beta - (alpha+beta)*lam", "exp(T*(2*beta - (alpha+beta)*lam))"),
        ("FB*-released", "3*beta - (alpha+beta)*lam", "exp(T*(3*beta - (alpha+beta)*lam))"),
    ],
)
def test_symbols_and_responses_in_closed_form(name: str, p: str, response: str) -> None:
    assert sp.expand(catalogue[name].symbol() - read(p)) == 0
    assert sp.simplify(catalogue[name].response() - read(response)) == 0


def test_source_response_at_rest_and_in_general() -> None:
    response = catalogue["ST"].response()
    alpha, beta = sp.symbols("alpha beta")
    assert response.subs(LAM, 0) == 1 + beta * END
    decay = sp.exp(-alpha * END * LAM)
    wanted = (decay + beta / (alpha * LAM) * (1 - decay)).subs({alpha: 2, beta: 3, END: 1, LAM: sp.Rational(1, 2)})
    got = response.subs({alpha: 2, beta: 3, END: 1, LAM: sp.Rational(1, 2)})
    assert sp.simplify(got - wanted) == 0


@pytest.mark.parametrize(
    ("text", "declared", "why"),
    [
        ("-k*L@H", {"k": "node"}, "node coefficient"),
        ("A@(k*H)", {"k": "node"}, "node coefficient"),
        ("-L@H + H@W", {}, "mixes channels"),
        ("-alpha*L@H + beta*H*(1 - H)", {}, "nonlinear"),
        ("-L@tanh(H)", {}, "nonlinear"),
        ("H*(A@H)", {}, "nonlinear"),
        ("A@H*M", {}, "node coefficient"),
    ],
)
def test_no_symbol_and_the_reason(text: str, declared: dict[str, str], why: str) -> None:
    system = rd.parse(text, declared)
    for question in (system.symbol, system.response, lambda: rd.classify(system), lambda: rd.growth_rate(system)):
        with pytest.raises(NotApplicable, match="no symbol because") as caught:
            question()
        assert why in str(caught.value)


def test_a_masked_source_leaves_the_symbol_but_no_response() -> None:
    system = catalogue["GRAND++"]
    assert system.symbol() == -LAM
    with pytest.raises(NotApplicable, match="no response because"):
        system.response()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"T": -1}, "T >= 0"),
        ({"T": float("nan")}, "finite T"),
        ({"T": 1, "method": "euler", "step": 0}, "step > 0"),
        ({"T": 1, "method": "euler", "step": -0.5}, "step > 0"),
        ({"T": 1, "method": "euler", "step": float("inf")}, "finite step"),
        ({"T": 1j}, "real T"),
    ],
)
def test_refused_times_and_steps(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        catalogue["BS"].response(**options)


def test_unknown_methods_offer_the_nearest() -> None:
    with pytest.raises(UnknownName, match="did you mean 'euler'"):
        catalogue["BS"].response(T=1, method="eular", step=1)


# ---------------------------------------------------------------------- Runge-Kutta methods
INDEPENDENT: dict[str, tuple[np.ndarray, np.ndarray]] = {
    "euler": (np.zeros((1, 1)), np.array([1.0])),
    "midpoint": (np.array([[0, 0], [0.5, 0]]), np.array([0.0, 1.0])),
    "heun": (np.array([[0, 0], [1.0, 0]]), np.array([0.5, 0.5])),
    "rk4": (
        np.array([[0, 0, 0, 0], [1 / 3, 0, 0, 0], [-1 / 3, 1, 0, 0], [1, -1, 1, 0]]),
        np.array([1, 3, 3, 1]) / 8,
    ),
    "rk4-classical": (
        np.array([[0, 0, 0, 0], [0.5, 0, 0, 0], [0, 0.5, 0, 0], [0, 0, 1, 0]]),
        np.array([1, 2, 2, 1]) / 6,
    ),
    "dopri5": (np.hstack([RK45.A, np.zeros((6, 1))]), RK45.B),
}
ENDS = [(1.3, 0.4), (0.3, 0.5), (1.2, 0.4), (1.0, 0.3)]


def rk_step(field: Callable[[Any], Any], state: Any, size: float, weights: tuple[np.ndarray, np.ndarray]) -> Any:
    A, b = weights
    slopes: list[Any] = []
    for row in A:
        inner = sum((a * k for a, k in zip(row, slopes, strict=False)), 0 * state)
        slopes.append(field(state + size * inner))
    return state + size * sum(w * k for w, k in zip(b, slopes, strict=True))


def stepped(field: Callable[[Any], Any], state: Any, end: float, size: float, weights: Any) -> Any:
    """ceil(end/size) steps, the last shortened."""
    time = 0.0
    while end - time > 1e-12:
        now = min(size, end - time)
        state = rk_step(field, state, now, weights)
        time += now
    return state


def test_every_method_is_tested() -> None:
    assert set(INDEPENDENT) == set(methods)


@pytest.mark.parametrize("method", INDEPENDENT)
@pytest.mark.parametrize("name", LINEAR)
def test_runge_kutta_responses_are_what_stepping_gives(name: str, method: str) -> None:
    system = catalogue[name]
    values = {n: VALUES[n] for n in system.coefficients}
    for (end, size), graph in zip(ENDS, ("tree", "star", "grid", "random"), strict=True):
        A = operator(graph)
        n = len(A)
        mu, V = np.linalg.eigh(A)
        G, S = dense_generators(system, A, values)[0]
        expected = stepped(lambda H, G=G, S=S: G @ H + S, np.eye(n), end, size, INDEPENDENT[method])
        got = V @ np.diag(gains(system.response(T=end, method=method, step=size), 1 - mu, values)) @ V.T
        np.testing.assert_allclose(got, expected, atol=1e-11 * (1 + np.abs(expected).max()))


@settings(max_examples=40)
@given(
    systems(linear=True),
    st.sampled_from(sorted(GRAPHS)),
    st.sampled_from(sorted(INDEPENDENT)),
    st.integers(0, 2**20),
    st.sampled_from([(0.7, 0.2), (0.05, 0.1), (0.6, 0.2)]),
)
def test_runge_kutta_responses_of_random_systems(
    system: System, graph: str, method: str, seed: int, times: tuple[float, float]
) -> None:
    A = operator(graph)
    values = draw_values(system, seed)
    end, size = (float(f"{t * unit_of_time(system, A, values):.6g}") for t in times)
    mu, V = np.linalg.eigh(A)
    symbolic = system.response(T=end, method=method, step=size)
    for channel, (G, S) in enumerate(dense_generators(system, A, values)):
        expected = stepped(lambda H, G=G, S=S: G @ H + S, np.eye(len(A)), end, size, INDEPENDENT[method])
        got = V @ np.diag(gains(symbolic, 1 - mu, per_channel(system, values, channel))) @ V.T
        scale = 1 + np.abs(expected).max()
        np.testing.assert_allclose(got / scale, expected / scale, atol=1e-10)


@pytest.mark.parametrize("method", ["euler", "midpoint", "rk4"])
@pytest.mark.parametrize("name", ["BS", "ST", "FB*", "APPNP"])
def test_runge_kutta_responses_are_those_of_torchdiffeq(name: str, method: str) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: no torchdiffeq to compare with")
    torchdiffeq = pytest.importorskip("torchdiffeq", reason="torchdiffeq is not installed")
    system = catalogue[name]
    values = {n: VALUES[n] for n in system.coefficients}
    A = operator("tree")
    mu, V = np.linalg.eigh(A)
    G, S = (torch.tensor(x, dtype=torch.float64) for x in dense_generators(system, A, values)[0])
    for end, size in ENDS:
        times = torch.tensor([0.0, end], dtype=torch.float64)
        start = torch.eye(len(A), dtype=torch.float64)
        field = lambda t, H: G @ H + S  # noqa: E731  torchdiffeq wants (t, H)
        found = torchdiffeq.odeint(field, start, times, method=method, options={"step_size": size})[-1]
        got = V @ np.diag(gains(system.response(T=end, method=method, step=size), 1 - mu, values)) @ V.T
        np.testing.assert_allclose(got, found.numpy(), atol=1e-11)


def test_symbolic_step_agrees_with_numbers() -> None:
    for name in ("BS", "ST"):
        general = catalogue[name].response(method="rk4")
        special = catalogue[name].response(T=sp.Rational(3, 2), method="rk4", step=sp.Rational(1, 2))
        point = {"alpha": sp.Rational(1, 2), "beta": sp.Rational(2, 3), "lam": sp.Rational(5, 4)}
        settled = general.subs({END: sp.Rational(3, 2), TAU: sp.Rational(1, 2)}).subs(point)
        assert sp.simplify(settled - special.subs(point)) == 0


def test_blur_then_sharpen_is_one_euler_step_not_the_flow() -> None:
    system = rd.parse("BS").replace(alpha=1, beta=1)
    assert sp.expand(system.response(T=1, method="euler", step=1)) == 1 - LAM**2
    assert system.response(T=1).subs(LAM, 2) == sp.exp(-4)


def order_residuals(method: Tableau) -> dict[str, sp.Expr]:
    """The rooted trees with at most four nodes: sum b_i Phi_i(tree) - 1/gamma(tree)."""
    s = len(method.weights)
    A = sp.Matrix(s, s, lambda i, j: method.stages[i][j] if j < i else 0)
    b, one = sp.Matrix(method.weights).T, sp.ones(s, 1)
    c = A * one
    square, cube = c.multiply_elementwise(c), c.multiply_elementwise(c).multiply_elementwise(c)
    elementary = {
        "1": (one, 1),
        "2": (c, 2),
        "3 bush": (square, 3),
        "3 chain": (A * c, 6),
        "4 bush": (cube, 4),
        "4 mixed": (c.multiply_elementwise(A * c), 8),
        "4 fork": (A * square, 12),
        "4 chain": (A * A * c, 24),
    }
    return {name: (b * weight)[0] - sp.Rational(1, gamma) for name, (weight, gamma) in elementary.items()}


@pytest.mark.parametrize("method", methods.values(), ids=lambda m: m.name)
def test_order_conditions_up_to_the_declared_order(method: Tableau) -> None:
    residuals = order_residuals(method)
    due = {name: r for name, r in residuals.items() if int(name[0]) <= method.order}
    assert set(due.values()) == {0}
    if method.order < 4:
        assert any(r != 0 for name, r in residuals.items() if int(name[0]) == method.order + 1)


@pytest.mark.parametrize("method", methods.values(), ids=lambda m: m.name)
def test_observed_order_on_a_nonlinear_equation(method: Tableau) -> None:
    """y' = y(1 - y) from 1/5, stepped with the package's own tableau."""
    s = len(method.weights)
    A = np.array([[float(method.stages[i][j]) if j < i else 0.0 for j in range(s)] for i in range(s)])
    weights = (A, np.array([float(w) for w in method.weights]))
    exact = 0.2 / (0.2 + 0.8 * np.exp(-2.0))
    errors = [abs(stepped(lambda y: y * (1 - y), 0.2, 2.0, size, weights) - exact) for size in (0.25, 0.125, 0.0625)]
    observed = np.log2(np.array(errors[:-1]) / np.array(errors[1:]))
    assert abs(observed[-1] - method.order) < 0.35, observed


def test_declared_order_is_checked_when_a_tableau_is_made() -> None:
    half = sp.Rational(1, 2)
    with pytest.raises(rd.RdgraphError, match="declares order 2"):
        Tableau("wrong", ((), (half,)), (half, half), 2)
    with pytest.raises(rd.RdgraphError, match="stage i"):
        Tableau("implicit", ((half,),), (sp.S.One,), 1)


@pytest.mark.parametrize(
    ("name", "polynomial", "limit"),
    [
        ("euler", "1 + z", 2.0),
        ("midpoint", "1 + z + z**2/2", 2.0),
        ("heun", "1 + z + z**2/2", 2.0),
        ("rk4", "1 + z + z**2/2 + z**3/6 + z**4/24", 2.785293563405282),
        ("rk4-classical", "1 + z + z**2/2 + z**3/6 + z**4/24", 2.785293563405282),
        ("dopri5", "1 + z + z**2/2 + z**3/6 + z**4/24 + z**5/120 + z**6/600", 3.306567892634),
    ],
)
def test_stability_polynomials_and_real_limits(name: str, polynomial: str, limit: float) -> None:
    method = tableau(name)
    assert sp.expand(method.stability - sp.sympify(polynomial, locals={"z": z})) == 0
    assert float(method.real_limit) == pytest.approx(limit, abs=1e-11)
    R = sp.lambdify(z, method.stability)
    assert np.abs(R(-np.linspace(0, limit, 100_001))).max() <= 1 + 1e-10
    assert abs(R(-limit * 1.0001)) > 1


@pytest.mark.parametrize("name", methods)
def test_monotone_radius_makes_every_power_of_the_step_nonnegative(name: str) -> None:
    """R(-x + y) and (R - 1)/z have Taylor coefficients >= 0 at -x: for x up to the radius, not beyond."""
    method = tableau(name)
    radius = float(method.monotone_radius)
    pieces = [method.stability, sp.cancel((method.stability - 1) / z)]

    def lowest(x: float) -> float:
        shifted = [sp.Poly(sp.expand(piece.subs(z, z - sp.Rational(x))), z) for piece in pieces]
        return min(float(c) for polynomial in shifted for c in polynomial.all_coeffs())

    assert lowest(radius) >= -1e-12
    assert lowest(radius + 1e-3) < 0


# ---------------------------------------------------------------------- filter classes
CLASSIFIED: dict[str, System] = {
    "BS": rd.parse("BS"),
    "BS real": rd.parse("BS", assume="beta real"),
    "BS negative": rd.parse("BS", assume="beta<0"),
    "BS bounded": rd.parse("BS", assume="beta <= alpha"),
    "BS between": rd.parse("BS", assume="alpha <= beta <= 2*alpha"),
    "FB": rd.parse("FB"),
    "FB real": rd.parse("FB", assume="beta real"),
    "FB* real": rd.parse("FB*", assume="beta real"),
    "released real": rd.parse("FB-released", assume="beta real"),
    "ST": rd.parse("ST"),
    "APPNP": rd.parse("APPNP"),
    "one coefficient": rd.parse("-L@H + beta*L@L@H", assume="beta real"),
    "no coefficient": rd.parse("L@H - L@L@H"),
    "cubic": rd.parse("-alpha*L@H + beta*A**3@H"),
    "cubic real": rd.parse("-alpha*L@H + beta*L**3@H", assume="beta real"),
    "cubic inner": rd.parse("-alpha*L@(L - I)@(L - 2*I)@H + beta*L@H", assume="beta real"),
    "cubic half": rd.parse("alpha*(L - I)**3@H - beta*L@H"),
    "quartic": rd.parse("-alpha*L**4@H + beta*L**2@H"),
    "quartic real": rd.parse("-alpha*L**2@H + beta*A**4@H", assume="beta real"),
    "three": rd.parse("-alpha*L@H + beta*L@H - gamma*L@L@H"),
    "three real": rd.parse("-alpha*L@H + beta*L@H - gamma*L@L@H", assume=["beta real", "gamma real"]),
    "three flat": rd.parse("-alpha*L@H + beta*L@H + gamma*L@H"),
    "real base": rd.parse("alpha*L@H - beta*L@L@H", assume=["alpha real", "beta real"]),
    "nonnegative": rd.parse("alpha*L@H - beta*L@L@H", assume=["alpha nonnegative", "beta nonnegative"]),
}


@cache
def classes(name: str) -> tuple[Any, ...]:
    return rd.classify(CLASSIFIED[name])


def exact_values(system: System, generator: np.random.Generator, grid: int) -> dict[str, sp.Rational] | None:
    """Coefficients on a coarse rational grid, which hits the borders between classes often."""
    values = {}
    for name in system.coefficients:
        sign = system.assumptions.sign(name)
        low = {"real": -grid, "negative": -grid, "nonpositive": -grid, "nonnegative": 0}.get(sign, 1)
        high = {"negative": -1, "nonpositive": 0}.get(sign, grid)
        values[name] = sp.Rational(int(generator.integers(low, high + 1)), int(generator.choice([1, 2, 3, 4])))
    for relation in system.assumptions.relations:
        gap = (system.algebra.normal(relation.upper) - system.algebra.normal(relation.lower)).subs(
            {system.algebra.symbols[n]: v for n, v in values.items()}
        )
        if gap < 0 or (relation.strict and gap == 0):
            return None
    return values


GRID = np.arange(1, 2 * 1009, dtype=np.int64)


def brute_force_class(p: sp.Expr) -> str:
    """From the signs of p' at 0, 2 and the points k/1009, in exact integer arithmetic."""
    slope = sp.Poly(sp.diff(p, LAM), LAM)
    common = sp.ilcm(*(c.q for c in slope.all_coeffs()), 1)
    total = np.zeros_like(GRID)
    for power, c in zip(range(len(slope.all_coeffs()) - 1, -1, -1), slope.all_coeffs(), strict=True):
        total += int(c * common) * GRID**power * 1009 ** (4 - power)
    ends = [int(sp.sign(slope.eval(x))) for x in (0, 2)]
    signs = [x for x in (ends[0], *map(int, np.sign(total)), ends[1]) if x]
    changes = tuple(x for i, x in enumerate(signs) if i == 0 or signs[i - 1] != x)
    found = {(): "all-pass", (1,): "high-pass", (-1,): "low-pass", (1, -1): "band-pass", (-1, 1): "band-stop"}
    return found.get(changes, "multi-band")


def holds(condition: sp.Basic, values: dict[str, sp.Rational]) -> bool:
    decided = condition.subs({sp.Symbol(n): v for n, v in values.items()})
    assert decided in (sp.true, sp.false), decided
    return bool(decided)


@pytest.mark.slow
@pytest.mark.parametrize("name", CLASSIFIED)
def test_filter_classes_against_brute_force(name: str) -> None:
    system, generator = CLASSIFIED[name], np.random.default_rng(5)
    p = system.symbol()
    rounds = 120 if system.coefficients else 1
    for _ in range(rounds):
        values = exact_values(system, generator, 6)
        if values is None:
            continue
        true = [c for c in classes(name) if holds(c.condition, values)]
        assert len(true) == 1, (values, true)
        numeric = p.subs(values)
        assert true[0].kind == brute_force_class(numeric), (values, str(true[0]))
        if true[0].at is not None:
            place = true[0].at.subs(values)
            assert sp.diff(numeric, LAM).subs(LAM, place) == 0
            assert 0 < place < 2
        elif true[0].kind in ("band-pass", "band-stop"):
            assert sp.degree(p, LAM) > 2


@pytest.mark.parametrize("name", [n for n in CLASSIFIED if n != "no coefficient"])
def test_every_class_occurs(name: str) -> None:
    """No class with a condition that nothing meets."""
    system, generator = CLASSIFIED[name], np.random.default_rng(6)
    points = [v for _ in range(400) if (v := exact_values(system, generator, 6)) is not None]
    for found in classes(name):
        assert any(holds(found.condition, v) for v in points), str(found)


@pytest.mark.parametrize(
    ("name", "beta_over_alpha", "kind"),
    [
        ("BS real", "1", "low-pass"), ("BS real", "1.0001", "band-pass"), ("BS real", "-1/3", "low-pass"),
        ("BS real", "-0.3334", "band-stop"), ("BS real", "0", "low-pass"), ("BS real", "-1", "band-stop"),
        ("FB", "1", "all-pass"), ("FB", "1.0001", "high-pass"), ("FB", "0.9999", "low-pass"),
        ("released real", "-1", "all-pass"), ("released real", "-1.001", "high-pass"),
        ("released real", "-0.999", "low-pass"),
    ],
)  # fmt: skip
def test_classes_on_both_sides_of_each_border(name: str, beta_over_alpha: str, kind: str) -> None:
    for alpha in (sp.Rational(1), sp.Rational(7, 3)):
        values = {"alpha": alpha, "beta": alpha * sp.Rational(beta_over_alpha)}
        assert [c.kind for c in classes(name) if holds(c.condition, values)] == [kind]


def test_band_edges_of_blurring_sharpening() -> None:
    band = next(c for c in classes("BS") if c.kind == "band-pass")
    alpha, beta = sp.symbols("alpha beta")
    assert sp.simplify(band.at - (beta - alpha) / (2 * beta)) == 0
    stop = next(c for c in classes("BS negative") if c.kind == "band-stop")
    assert sp.simplify(stop.at - (sp.Rational(1, 2) - alpha / (2 * beta))) == 0


def test_a_source_that_could_turn_the_class_is_not_classified() -> None:
    for text in ("-alpha*L@H + beta*A@H0", "-alpha*L@H - beta*H0"):
        with pytest.raises(Undecided, match="source"):
            rd.classify(rd.parse(text))


@pytest.mark.parametrize("beta", [0.1, 1.0, 4.0])
def test_class_of_a_source_system_is_that_of_its_response(beta: float) -> None:
    assert [c.kind for c in classes("ST")] == ["low-pass"]
    grid = np.linspace(0, 2, 201)
    gain = gains(rd.response(rd.parse("ST"), T=2), grid, {"alpha": 0.8, "beta": beta})
    assert (np.diff(gain) < 0).all()


# ---------------------------------------------------------------------- growth
GROWING = [
    "BS", "BS real", "BS negative", "BS between", "FB", "FB real", "FB* real", "released real", "one coefficient",
    "cubic", "cubic real", "cubic inner", "cubic half", "quartic",
]  # fmt: skip


@cache
def growth(name: str) -> tuple[sp.Expr, sp.Expr]:
    return rd.growth_rate(CLASSIFIED[name]), rd.fastest_frequency(CLASSIFIED[name])


@pytest.mark.parametrize("name", GROWING)
def test_growth_and_fastest_frequency_against_a_grid(name: str) -> None:
    system, generator = CLASSIFIED[name], np.random.default_rng(7)
    rate, place = growth(name)
    grid = np.linspace(0, 2, 20_001)
    for _ in range(60):
        values = exact_values(system, generator, 5)
        if values is None:
            continue
        numeric = sp.lambdify(LAM, system.symbol().subs(values))
        best = np.max(numeric(grid) * np.ones_like(grid))
        assert float(rate.subs(values)) == pytest.approx(best, rel=1e-6, abs=1e-6), values
        where = float(place.subs(values))
        assert 0 <= where <= 2
        assert float(numeric(where)) == pytest.approx(best, rel=1e-6, abs=1e-6), values


@pytest.mark.slow
@pytest.mark.parametrize("name", ["three", "three real", "three flat", "real base", "nonnegative"])
def test_growth_rate_without_one_ratio(name: str) -> None:
    system, generator = CLASSIFIED[name], np.random.default_rng(8)
    rate = rd.growth_rate(system)
    grid = np.linspace(0, 2, 20_001)
    for _ in range(60):
        values = exact_values(system, generator, 5)
        assert values is not None
        best = np.max(sp.lambdify(LAM, system.symbol().subs(values))(grid) * np.ones_like(grid))
        assert float(rate.subs(values)) == pytest.approx(best, rel=1e-6, abs=1e-6), values


@pytest.mark.parametrize("name", ["three", "real base"])
def test_the_fastest_of_several_ratios_is_left_open(name: str) -> None:
    with pytest.raises(Undecided, match="several ratios"):
        rd.fastest_frequency(CLASSIFIED[name])


def test_roots_without_closed_form_are_left_open() -> None:
    with pytest.raises(Undecided, match="no closed form"):
        rd.growth_rate(CLASSIFIED["quartic real"])


def test_no_fastest_frequency_where_all_are_equal() -> None:
    with pytest.raises(NotApplicable, match="same rate"):
        rd.fastest_frequency(rd.parse("beta*H"))


@pytest.mark.slow
@settings(max_examples=60)
@given(systems(linear=True, kinds=("scalar",)), st.integers(0, 2**20))
def test_growth_rate_of_random_systems(system: System, seed: int) -> None:
    try:
        rate = rd.growth_rate(system)
    except Undecided:
        assume(False)
    values = exact_values(system, np.random.default_rng(seed), 5)
    assume(values is not None)
    grid = np.linspace(0, 2, 4001)
    best = np.max(sp.lambdify(LAM, system.symbol().subs(values))(grid) * np.ones_like(grid))
    assert float(rate.subs(values)) == pytest.approx(best, rel=1e-5, abs=1e-5)


@settings(max_examples=60)
@given(systems(linear=True, kinds=("scalar",)), st.integers(0, 2**20))
def test_classes_of_random_systems(system: System, seed: int) -> None:
    try:
        found = rd.classify(system)
    except Undecided:
        assume(False)
    values = exact_values(system, np.random.default_rng(seed), 5)
    assume(values is not None)
    true = [c.kind for c in found if holds(c.condition, values)]
    assert true == [brute_force_class(system.symbol().subs(values))], values


def test_generator_symbol_keeps_the_signs() -> None:
    assert all(x.is_nonnegative for x in rd.parse("BS").generator_symbol.free_symbols)


def test_classes_leave_out_where_a_coefficient_is_divided_by_zero() -> None:
    found = rd.classify("H - 1/epsilon*L@H where epsilon real")
    assert [str(c) for c in found] == ["high-pass if epsilon < 0", "low-pass if epsilon > 0"]
    (only,) = rd.classify("c*H - c/epsilon*L@H where epsilon nonpositive, c < 3")
    assert str(only) == "high-pass if epsilon < 0"


@pytest.mark.parametrize(
    "text",
    [
        "q**2*L@L@H + mu*(I + A)@H where q scalar",
        "-L@L@H - b*L@H - rho*(2*I - L)@H where rho scalar, b real",
        "-a*L@H + a*b*L@L@H where a scalar, b scalar",
        "-a*L@H + b**3*L@L@H where a scalar, b real",
    ],
)
def test_coefficients_of_different_degrees_have_no_common_factor(text: str) -> None:
    """The class depends on more than the ratio of the letters: against the sampled slope of the symbol."""
    system = rd.parse(text)
    lam, found = sp.Symbol("lam"), rd.classify(text)
    letters = sorted(rd.symbol(system).free_symbols - {lam}, key=str)
    assert len(letters) == 2
    rng, places = np.random.default_rng(0), np.linspace(0, 2, 4001)
    slope = sp.lambdify([lam, *letters], sp.diff(rd.symbol(system), lam))
    names = {(1,): "high-pass", (-1,): "low-pass", (1, -1): "band-pass", (-1, 1): "band-stop"}
    for _ in range(200):
        signs = [-1 if "real" in text and str(x) == "b" and rng.random() < 0.5 else 1 for x in letters]
        values = [float(s * np.exp(rng.uniform(-3, 3))) for s in signs]
        here = np.sign(slope(places, *values))
        runs = tuple(int(x) for k, x in enumerate(here) if x and (k == 0 or x != here[k - 1]))
        told = [
            c.kind for c in found if c.condition == sp.true or c.condition.subs(dict(zip(letters, values, strict=True)))
        ]
        assert told == [names[runs]], values
