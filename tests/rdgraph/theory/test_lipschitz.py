"""Lipschitz and one-sided constants: held by random graphs and states, and reached where they are called exact."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import rdgraph as rd
from rdgraph.errors import NotApplicable
from rdgraph.graphs.normalisation import dense_operator
from rdgraph.language.tree import Kind
from rdgraph.systems.catalogue import catalogue
from rdgraph.systems.system import System
from rdgraph.testing import graph_families
from rdgraph.theory.equality import dense_oracle as dense
from rdgraph.theory.lipschitz import Constant
from tests.property_examples import examples

#: Those with a norm in which |A| <= 1.
NORMALISATIONS = ("symmetric", "row", "column")

ORDER = {"symmetric": 2, "row": np.inf, "column": 1}
#: The matrices that systems of the catalogue have.
MATRICES = ("W", "V")
QUESTIONS: dict[str, Callable[[System, str], Constant]] = {
    "global": rd.lipschitz_global,
    "local": rd.theory.lipschitz_local,
    "one-sided": rd.theory.one_sided,
}

EQUATIONS: dict[str, tuple[str, list[str]]] = {
    **{name: (name, []) for name in catalogue.single},
    **{f"{name}, beta<0": (name, ["beta<0"]) for name in ("F", "AC", "Z", "BS", "FB", "FB*", "ST")},
    **{f"{name}, beta real": (name, ["beta real"]) for name in ("BS", "FB*")},
    "tanh": ("-alpha*L@H + beta*tanh(H)", []),
    "tanh slow": ("-alpha*L@H - beta*tanh(2*H)", []),
    "sigmoid": ("-alpha*L@H + beta*sigmoid(H)", []),
    "sigmoid down": ("-alpha*L@H - beta*sigmoid(3*H)", []),
    "exp": ("-alpha*L@H + beta*exp(H)", []),
    "exp down": ("-alpha*L@H - beta*exp(H)", []),
    "sin": ("-alpha*L@H + beta*sin(H)", []),
    "cos": ("-alpha*L@H + beta*cos(2*H)", []),
    "rational": ("-alpha*L@H + beta*H/(1 + H**2)", []),
    "hill": ("-alpha*L@H + beta*H**2/(1 + H**2)", []),
    "relu": ("-alpha*L@H + beta*relu(H)", []),
    "abs": ("-alpha*L@H + beta*abs(H)", []),
    "softplus": ("-alpha*L@H + beta*softplus(H)", []),
    "mixed functions": ("-alpha*L@H + beta*(tanh(H) + sin(H))", []),
    "shifted": ("-alpha*L@H + beta*tanh(H + 1)", []),
    "quadratic": ("-alpha*L@H + beta*H**2", []),
    "cubic": ("-alpha*L@H + beta*(H - H**3) + gamma*H**2", []),
    "quintic": ("-alpha*L@H - beta*H**5", []),
    "third order": ("-alpha*L@H + beta*A**3@H - beta*A@A@H", []),
    "inside": ("-alpha*L@(H**3 - H)", []),
    "outside": ("tanh(A@H) - H", []),
    "gated": ("-L@H + H*(A@H)", []),
    "channel": ("-k*L@H + beta*H*(1 - H) where k channel", []),
}


@cache
def system_of(name: str) -> System:
    text, assume = EQUATIONS[name]
    return rd.parse(text, assume=assume)


@cache
def constant(name: str, question: str, normalisation: str) -> Constant:
    return QUESTIONS[question](system_of(name), normalisation)


def coefficient(sign: str, generator: np.random.Generator) -> float:
    value = float(generator.choice([0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0]))
    flip = {"negative": -1, "nonpositive": -1, "real": generator.choice([-1, 1])}.get(sign, 1)
    return value * float(flip)


def draw_values(system: System, n: int, channels: int, generator: np.random.Generator) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, kind in system.coefficients.items():
        value = coefficient(system.assumptions.sign(name), generator)
        values[name] = np.full((n, 1), value) if kind is Kind.NODE else value
    if "a" in values and system.name == "Nagumo":
        values["a"] = values["a"] / 4
    for name in MATRICES:
        values[name] = generator.uniform(-1, 1, (channels, channels))
    values["M"] = generator.integers(0, 2, (n, 1)).astype(float)
    return values


def number(found: Constant, values: dict[str, Any], A: np.ndarray, R: float, order: float) -> float:
    """The bound with every letter set; a matrix enters by its norm, s by the largest row sum."""
    assert found.value is not None
    # For X = H@W the operator norm on the flattened state in the inf- and 1-norm is that of W^T and W.
    turned = {2: 2, np.inf: 1, 1: np.inf}[order]
    known: dict[str, float] = {"R": R, "s": float(A.sum(axis=1).max())}
    known |= {f"norm_{name}": float(np.linalg.norm(values[name], turned)) for name in MATRICES}
    others = {n: v for n, v in values.items() if n not in (*MATRICES, "M")}
    known |= {n: float(np.max(np.abs(v))) if np.ndim(v) else float(v) for n, v in others.items()}
    letters = sorted(found.value.free_symbols, key=str)
    return float(sp.lambdify(letters, found.value, modules="mpmath")(*(known[x.name] for x in letters)))


def field(system: System, A: np.ndarray, values: dict[str, Any], H: np.ndarray) -> np.ndarray:
    filled = {"A": A, "H": H, "H0": np.zeros_like(H), **values}
    return np.broadcast_to(dense.evaluate(system.expression, filled), H.shape)


def jacobian(system: System, A: np.ndarray, values: dict[str, Any], state: np.ndarray) -> np.ndarray:
    """Central differences of the dense interpreter; without mixing, one channel per column of the Jacobian."""
    size = 1e-5
    if state.shape[1] == 1:
        ends = [field(system, A, values, state + e * size * np.eye(len(state))) for e in (1, -1)]
        return (ends[0] - ends[1]) / (2 * size)
    columns = []
    for index in np.ndindex(state.shape):
        bump = np.zeros_like(state)
        bump[index] = size
        ends = [field(system, A, values, state + e * bump) for e in (1, -1)]
        columns.append((ends[0] - ends[1]).ravel() / (2 * size))
    return np.array(columns).T


def logarithmic_norm(J: np.ndarray, order: float) -> float:
    if order == 2:
        return float(np.linalg.eigvalsh((J + J.T) / 2)[-1])
    off = np.abs(J) - np.diag(np.abs(np.diag(J)))
    return float(np.max(np.diag(J) + off.sum(axis=1 if order == np.inf else 0)))


# ---------------------------------------------------------------------- held
#: One question about each equation is asked by `make test`, in turn; the others are slow.
PAIRS = [
    pytest.param(name, question, marks=() if (i + k) % len(QUESTIONS) == 0 else pytest.mark.slow)
    for i, name in enumerate(EQUATIONS)
    for k, question in enumerate(QUESTIONS)
]


@pytest.mark.parametrize(("name", "question"), PAIRS)
def test_constants_are_held(name: str, question: str) -> None:
    """Differences and Jacobians on random graphs and states never exceed the constant."""
    system = system_of(name)
    constants = {normalisation: constant(name, question, normalisation) for normalisation in NORMALISATIONS}

    @settings(max_examples=examples(4))
    @given(graph_families(max_nodes=8), st.integers(0, 2**20))
    def check(graph: np.ndarray, seed: int) -> None:
        generator = np.random.default_rng(seed)
        for normalisation, answer in constants.items():
            if answer.value is None:
                continue
            A = dense_operator(graph, normalisation)
            n, channels, R = (
                len(A),
                2 if set(MATRICES) & set(system.letters) else 1,
                float(generator.choice([0.5, 1.0, 2.0])),
            )
            reach = R if question == "local" else 3.0
            values = draw_values(system, n, channels, generator)
            X, Y = generator.uniform(-reach, reach, (2, n, channels)) * (1 - 1e-4)
            order = ORDER[normalisation]
            bound = number(answer, values, A, R, order)
            J = jacobian(system, A, values, X)
            if question == "one-sided":
                assert logarithmic_norm(J, order) <= bound + 1e-6 * (1 + abs(bound))
                continue
            gap, change = (X - Y).ravel(), (field(system, A, values, X) - field(system, A, values, Y)).ravel()
            assert np.linalg.norm(change, order) <= bound * np.linalg.norm(gap, order) * (1 + 1e-9)
            assert np.linalg.norm(J, order) <= bound * (1 + 1e-6) + 1e-6

    check()


# ---------------------------------------------------------------------- reached
NODES = 12
RING = (np.roll(np.eye(NODES), 1, axis=1) + np.roll(np.eye(NODES), -1, axis=1)) / 2
CYCLE = np.roll(np.eye(NODES), 1, axis=1)
GRAPH = {"symmetric": RING, "row": CYCLE, "column": CYCLE.T}


def first_columns(system: System, values: dict[str, Any], A: np.ndarray, heights: np.ndarray) -> np.ndarray:
    """First column of the Jacobian at every uniform state: one channel per height, and the graph is circulant."""
    bump = np.zeros((NODES, len(heights)))
    bump[0] = 1e-5 * (1 + np.abs(heights))
    ends = [field(system, A, values, heights + sign * bump) for sign in (1, -1)]
    return (ends[0] - ends[1]) / (2 * bump[0])


def reached(system: System, values: dict[str, Any], normalisation: str, question: str, heights: np.ndarray) -> float:
    """The largest (logarithmic) norm of the Jacobian at uniform states, on rings or on a directed cycle."""
    columns = first_columns(system, values, GRAPH[normalisation], heights)
    own, others = columns[0], columns[1:]
    if normalisation == "symmetric":
        # p(lam) + r' for lam all over [0, 2]: rings of any length share this band.
        theta = np.linspace(0, np.pi, 401)[:, None]
        spectrum = own + sum(2 * columns[k] * np.cos(k * theta) for k in range(1, NODES // 2))
        return float(spectrum.max() if question == "one-sided" else np.abs(spectrum).max())
    rest = np.abs(others).sum(axis=0)
    return float(np.max((own if question == "one-sided" else np.abs(own)) + rest))


def having(name: str, questions: Iterable[str], wanted: Callable[[Constant], bool]) -> list[tuple[str, str]]:
    """The questions and normalisations whose answer is of the wanted sort."""
    return [(q, n) for q in questions for n in NORMALISATIONS if wanted(constant(name, q, n))]


def is_exact(found: Constant) -> bool:
    return found.value is not None and found.is_sharp


def is_absent(found: Constant) -> bool:
    return found.value is None and not found.reason.startswith("undecided")


@pytest.mark.slow
def test_most_constants_are_exact_or_absent() -> None:
    """What the next two tests look at; the rest are upper bounds or open."""
    assert sum(len(having(name, QUESTIONS, is_exact)) for name in catalogue.single) >= 125
    assert sum(len(having(name, QUESTIONS, is_absent)) for name in catalogue.single) >= 15


@pytest.mark.parametrize("name", EQUATIONS)
def test_exact_constants_are_reached(name: str) -> None:
    for question, normalisation in having(name, QUESTIONS, is_exact):
        check_reached(name, question, normalisation)


def check_reached(name: str, question: str, normalisation: str) -> None:
    answer, system = constant(name, question, normalisation), system_of(name)
    generator = np.random.default_rng(3)
    for _ in range(3):
        values = draw_values(system, NODES, 1, generator)
        R = float(generator.choice([0.25, 0.5, 1.0, 2.0]))
        heights = np.linspace(-R, R, 1001) if question == "local" else np.linspace(-20, 20, 4001)
        bound = number(answer, values, np.eye(2), R, ORDER[normalisation])
        best = reached(system, values, normalisation, question, heights)
        assert best >= 0.999 * bound - 1e-6 if bound > 0 else best >= bound * 1.001 - 1e-6, (values, R)


@pytest.mark.parametrize("name", EQUATIONS)
def test_absent_constants_are_unbounded(name: str) -> None:
    """Where the answer is "none", the Jacobian grows without bound."""
    system = system_of(name)
    for question, normalisation in having(name, ("global", "one-sided"), is_absent):
        values = draw_values(system, NODES, 1, np.random.default_rng(4))
        sizes = [reached(system, values, normalisation, question, np.array([-h, h])) for h in (4.0, 12.0, 36.0)]
        assert sizes[0] < sizes[1] < sizes[2]
        assert sizes[2] > 5 * sizes[0]


# ---------------------------------------------------------------------- known values
@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("diffusion", {"alpha": 3}, 6),
        ("ST", {"alpha": 3, "beta": 7}, 6),
        ("BS", {"alpha": 1, "beta": 2}, 6),
        ("FB", {"alpha": 1, "beta": 3}, 4),
        ("FB", {"alpha": 3, "beta": 1}, 4),
        ("FB*", {"alpha": 1, "beta": 3}, 7),
        ("FB*", {"alpha": 3, "beta": 1}, 3),
        ("BS, beta<0", {"alpha": 1, "beta": -3}, 4),
        ("BS, beta<0", {"alpha": 1, "beta": -1}, 1),
        ("BS, beta<0", {"alpha": 3, "beta": sp.Rational(-1, 2)}, 5),
        ("BS, beta real", {"alpha": 1, "beta": 2}, 6),
        ("BS, beta real", {"alpha": 1, "beta": -3}, 4),
    ],
)
def test_known_linear_constants(name: str, values: dict[str, Any], expected: int) -> None:
    answer = constant(name, "global", "symmetric")
    assert answer.is_sharp
    assert answer.value is not None
    assert answer.value.subs(values) == expected


def test_known_one_sided_constants() -> None:
    beta = sp.Symbol("beta")
    assert constant("AC", "one-sided", "symmetric").value == beta
    assert sp.expand(constant("Z", "one-sided", "symmetric").value - beta / 3) == 0
    assert constant("F", "one-sided", "symmetric").value is None


@pytest.mark.parametrize(
    ("name", "slope"),
    [("F", lambda R: 1 + 2 * R), ("AC", lambda R: max(1, 3 * R**2 - 1)), ("Z", lambda R: 2 * R + 3 * R**2)],
)
def test_known_slopes_on_a_box(name: str, slope: Callable[[float], float]) -> None:
    """With a diffusion that is tiny the constant tends to beta sup |r'|."""
    answer = constant(name, "local", "row").value
    assert answer is not None
    for R in (0.25, 0.6, 1.0, 1.7):
        got = answer.subs({"alpha": sp.Rational(1, 10**9), "beta": 2, "R": sp.Rational(repr(R))})
        assert float(got) == pytest.approx(2 * slope(R), abs=1e-6)


def test_the_combinatorial_laplacian_has_no_such_constant() -> None:
    with pytest.raises(NotApplicable, match="normalisation among"):
        rd.lipschitz_global(system_of("diffusion"), "none")


# ---------------------------------------------------------------------- random polynomial reactions
@st.composite
def reactions(draw: Any) -> System:
    powers = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3, unique=True))
    numbers = [draw(st.sampled_from([-2, -1, 1, 2, 3])) for _ in powers]
    body = " ".join(f"{'-' if c < 0 else '+'} {abs(c)}*H**{k}" for c, k in zip(numbers, powers, strict=True))
    return rd.parse(f"-alpha*L@H {body}")


@settings(max_examples=examples(30))
@given(reactions(), st.sampled_from(NORMALISATIONS), st.sampled_from(sorted(QUESTIONS)), st.integers(0, 2**20))
def test_random_polynomial_reactions(system: System, normalisation: str, question: str, seed: int) -> None:
    """One test for both: the constant is the largest Jacobian over uniform states, no more and no less."""
    answer = QUESTIONS[question](system, normalisation)
    generator = np.random.default_rng(seed)
    values, R = draw_values(system, NODES, 1, generator), float(generator.choice([0.5, 1.0, 2.0]))
    heights = np.linspace(-R, R, 1001) if question == "local" else np.linspace(-5, 5, 2001)
    best = reached(system, values, normalisation, question, heights)
    if answer.value is None:
        assert not answer.reason.startswith("undecided")
        assert reached(system, values, normalisation, question, np.array([-50.0, 50.0])) > 5 * best
        return
    assert answer.is_sharp
    bound = number(answer, values, np.eye(2), R, ORDER[normalisation])
    assert best <= bound + 1e-5 * (1 + abs(bound))
    assert best >= bound - 2e-3 * (1 + abs(bound))


@pytest.mark.parametrize("sign", ["0 >= delta", "delta >= 0", "delta real"])
def test_bounds_that_may_be_infinite_are_no_bounds(sign: str) -> None:
    """-oo*delta is nan where delta can vanish."""
    for question in (rd.theory.one_sided, rd.lipschitz_global):
        answer = question(rd.parse(f"-delta*H*tanh(gamma*H)*sin(H) where {sign}"), "row")
        assert answer.value is None
        assert answer.reason.startswith("undecided")


# ---------------------------------------------------------------------- coefficients that decide
@pytest.mark.parametrize(
    ("text", "question", "finite"),
    [
        ("-L@H + beta*H**2 where beta real", "global", lambda b: b == 0),
        ("-L@H + beta*H**2 where beta real", "one-sided", lambda b: b == 0),
        ("-L@H + beta*H**3 where beta real", "one-sided", lambda b: b <= 0),
        ("-L@H + (beta - 1)*H*(1 - H**2) where beta real", "one-sided", lambda b: b >= 1),
    ],
)
def test_constants_are_infinite_where_slopes_are(text: str, question: str, finite: Callable[[float], bool]) -> None:
    answer = QUESTIONS[question](rd.parse(text), "symmetric")
    assert answer.is_sharp
    for beta in (-1.5, -0.25, 0, 1, 2):
        value = answer.value.subs(sp.Symbol("beta"), beta)
        assert (value != sp.oo) is finite(beta), (beta, value)


@pytest.mark.parametrize(
    ("text", "question", "grows"),
    [
        ("-L@H + H*(A@H)", "global", True),
        ("-L@H + H*(A@H)", "one-sided", True),
        ("L@(H**3)", "global", True),
        ("-L@H + M*H**2", "one-sided", True),
        ("-L@H + abs(H) + H**2", "one-sided", True),
        ("-L@H + abs(H) - H**3", "one-sided", False),
        ("-L@H + k*exp(H) where k node, k positive", "one-sided", True),
        ("-L@H + tanh(A@H)", "global", False),
    ],
)
def test_growing_slopes_differ_from_bounded_ones(text: str, question: str, grows: bool) -> None:
    answer = QUESTIONS[question](rd.parse(text), "row")
    assert (answer.value is None) is grows
    assert answer.reason.startswith("no finite") is grows


@pytest.mark.parametrize(("text", "bound"), [("H/sqrt(1 + H**2)", 1), ("sqrt(4 + H**2)", 1), ("1/(1 + H**2)", 0.65)])
def test_slopes_of_algebraic_functions_are_bounded(text: str, bound: float) -> None:
    value = float(rd.lipschitz_global(rd.parse(text), "row").value)
    points = np.linspace(-20, 20, 4001)
    steepest = np.abs(np.gradient(sp.lambdify("H", sp.sympify(text), "numpy")(points), points)).max()
    assert steepest <= value + 1e-6
    assert value <= 2.5 * bound
