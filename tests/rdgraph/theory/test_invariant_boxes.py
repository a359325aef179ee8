"""Invariant boxes against graphs that make them fail: isolated nodes, directions, weights, masks, node coefficients."""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sp
from scipy.integrate import solve_ivp

import rdgraph as rd
from rdgraph.graphs.normalisation import dense_operator
from rdgraph.language.answer_symbols import R
from rdgraph.language.tree import Kind
from rdgraph.reals.branches import branches, is_above, is_at_least, is_defined
from rdgraph.reals.domain import Domain
from rdgraph.reals.line_pieces import all_zeros, zeros
from rdgraph.systems.system import System
from rdgraph.theory import invariant_boxes
from rdgraph.theory.equality import dense_oracle as dense
from rdgraph.theory.escapes import Escapes
from rdgraph.theory.face_search import Box, FaceSearch, no_box
from rdgraph.theory.several_fields.node_speeds import NodeSpeeds
from rdgraph.theory.several_fields.rectangle_faces import AVERAGING, AVERAGING_OR_ALONE, RectangleFaces

ISOLATED = "no node is without incoming edges"


@cache
def box_of(text: str, normalisation: str = "row") -> Any:
    return rd.invariant_box(rd.parse(text), normalisation)


def star_with_a_loner(leaves: int = 4) -> np.ndarray:
    weights = np.zeros((leaves + 2, leaves + 2))
    weights[0, 1 : leaves + 1] = weights[1 : leaves + 1, 0] = 1
    return weights


# ---------------------------------------------------------------------- known boxes
@pytest.mark.parametrize(
    ("text", "lower", "upper", "assumes"),
    [
        ("-alpha*L@H + beta*(H - 1)**2", "1 - R", "1", ISOLATED),
        ("-alpha*L@H + beta*H**2", "-R", "0", ""),
        ("-L@H + (H - 1)*(3 - H)", "1", "3", ISOLATED),
        ("-alpha*L@H - beta*H + gamma", "gamma/beta - R", "gamma/beta + R", ISOLATED),
        ("-alpha*L@H + beta*sin(H)", "0", "pi", ""),
        ("-alpha*L@H + beta*tanh(H) - H", "-beta", "beta", ""),
        ("-alpha*L@H + relu(H) - 2*H", "-R", "R", ""),
        ("A@tanh(H) - H", "-1", "1", ""),
        ("-2*H - A@H", "-R", "R", ""),
        ("-alpha*L@H + M*H*(1 - H)", "0", "1", ""),
        ("-k*L@H - c*H**3 where k node, c node", "-R", "R", ""),
    ],
)
def test_row_boxes(text: str, lower: str, upper: str, assumes: str) -> None:
    box = box_of(text)
    names = {n: sp.Symbol(n) for n in ("alpha", "beta", "gamma", "R")}
    assert sp.simplify(box.lower - sp.sympify(lower, locals=names)) == 0
    assert sp.simplify(box.upper - sp.sympify(upper, locals=names)) == 0
    assert box.assumes == assumes
    assert (box.with_isolated == (box.lower, box.upper)) == (not assumes)


@pytest.mark.parametrize(
    ("text", "start", "upper"),
    [
        ("-H + 2*H0", ("-R", "R"), "2*R"),
        ("-alpha*L@H - H + M*H0", ("-R", "R"), "R"),
        ("-alpha*L@H + beta*(H0 - H)", ("-R", "R"), "R"),
        ("-L@H + H*(1 - H) + gamma*H0", ("0", "R"), "Max(R, sqrt(4*R*gamma + 1)/2 + 1/2)"),
    ],
)
def test_sources_are_balanced(text: str, start: tuple[str, str], upper: str) -> None:
    box = box_of(text)
    names = {n: sp.Symbol(n) for n in ("gamma", "R")}
    assert sp.simplify(box.upper - sp.sympify(upper, locals=names)) == 0
    own = (str(box.lower), str(box.upper))
    assert tuple(map(str, box.start or (box.lower, box.upper))) == (start if own != start else own)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("-alpha*L@H + beta*exp(H)", "leaves every box:"),
        ("-alpha*L@H + beta*tanh(H)", "leaves every box but the point 0"),
        ("-L@H + M*H0", "leaves every box: on states equal in all nodes (A@1 = 1) and H0 = R in every node h' = R"),
        ("-alpha*L@H + beta*(A@H - A@A@H)", "no maximum principle"),
        ("-L@H - sqrt(abs(H))", "no box was found"),
        ("-alpha*H@W@W", "no box was derived: a matrix mixes the channels"),
        ("-L@H + H@W", "no box is invariant for all coefficients: with W = 1"),
        ("L@H - H0", "leaves every box: on states equal in all nodes (A@1 = 1) and H0 = R in every node h' = -R"),
        ("L@H - H0 + H", "leaves every box: on states h and -h at the two ends of one edge, H0 likewise,"),
    ],
)
def test_notes_claim_what_is_proved(text: str, says: str) -> None:
    box = box_of(text)
    assert not box.exists
    assert says in box.reason
    assert ("leaves" in box.reason) == ("leaves" in says)


def test_symmetric_boxes_grow_with_the_row_sums() -> None:
    box = box_of("-alpha*L@H + beta*H**2", "symmetric")
    assert sp.simplify(box.lower - sp.sympify("-R - alpha*(s - 1)/beta", locals={"beta": sp.Symbol("beta")})) == 0
    assert box.upper == 0
    regular = box_of("-alpha*L@H", "symmetric")
    assert "on regular graphs with edges the row box [-R, R] holds" in regular.reason
    assert tuple(map(str, regular.regular)) == ("-R", "R")
    assert not regular.exists


# ---------------------------------------------------------------------- some coefficients, or none
@pytest.mark.parametrize(
    ("text", "normalisation", "where", "elsewhere"),
    [
        ("-alpha*L@H + beta*L@H", "row", "alpha >= beta", True),
        ("-alpha*L@H + beta*L@H - 2*H", "row", "beta <= alpha + 1", True),
        ("-alpha*H - beta*A@H", "row", "alpha >= beta", True),
        ("-alpha*H + beta*A@H", "symmetric", "alpha >= beta*s", True),
        ("-alpha*H + beta*A@H - H0", "row", "alpha > beta", False),
        ("(alpha - 1)*H + beta*cos(H) where beta < 1", "row", "alpha < 1", False),
        ("-L@H + beta*(alpha - H**2) where alpha real", "row", "alpha > 0", False),
    ],
)
def test_boxes_of_some_coefficients(text: str, normalisation: str, where: str, elsewhere: bool) -> None:
    """The region is the one that was derived by hand."""
    box = box_of(text, normalisation)
    assert not box.exists
    assert box.is_decided
    assert ("elsewhere" in box.reason) is elsewhere
    rng = np.random.default_rng(3)
    names = {n: sp.Symbol(n) for n in ("alpha", "beta", "s")}
    expected, seen = sp.sympify(where, locals=names), set()
    for _ in range(60):
        alpha = float(rng.uniform(-2 if "alpha real" in text else 0.01, 3))
        beta = float(rng.uniform(0.01, 0.99 if "beta < 1" in text else 5))
        values = {names["alpha"]: alpha, names["beta"]: beta, names["s"]: float(rng.uniform(1, 3))}
        assert bool(box.where.subs(values)) == bool(expected.subs(values)), values
        seen.add(bool(expected.subs(values)))
    assert seen == {True, False}


@pytest.mark.parametrize(
    ("text", "normalisation", "size"),
    [
        ("alpha*L@H + beta*H*(1 - H**2)", "row", "sqrt(1 + 2*alpha/beta)"),
        ("-2*H + sin(A@H) + cos(H)", "row", "1"),
        ("-3*H + A@H + cos(A@H)", "symmetric", None),
        ("-alpha*A@A@H - beta*H**3", "symmetric", "s*sqrt(alpha/beta)"),
    ],
)
def test_damping_that_outgrows_the_rest(text: str, normalisation: str, size: str | None) -> None:
    """[-U, U] with U where the damping of the entry equals the largest push of the others."""
    box = box_of(text, normalisation)
    if size is None:
        assert not box.exists
        assert "s" in {x.name for x in box.where.free_symbols}
        return
    names = {n: sp.Symbol(n, positive=True) for n in ("alpha", "beta", "s")}
    upper = box.upper.subs({sp.Symbol(n): x for n, x in names.items()})
    assert sp.simplify(upper - sp.sympify(size, locals=names)) == 0
    assert box.lower == -box.upper
    assert box.exists


def test_a_slightly_smaller_box_is_not_invariant() -> None:
    """The cubic balance is sharp: at the size of the answer the speed on the face is zero, below it points outwards."""
    system, box = rd.parse("alpha*L@H + beta*H*(1 - H**2)"), box_of("alpha*L@H + beta*H*(1 - H**2)")
    upper = float(box.upper.subs({"alpha": 0.7, "beta": 1.3}))
    for size, leaves in ((upper, False), (0.99 * upper, True)):
        state = {"A": CYCLE_OF_FOUR, "H": np.array([[size], [-size], [size], [-size]]), "alpha": 0.7, "beta": 1.3}
        assert bool(dense.evaluate(system.expression, state)[0, 0] > 1e-9) is leaves


@pytest.mark.parametrize(
    ("text", "normalisation"),
    [
        ("alpha*L@H + beta*(H - 1)*(H - 2)", "row"),
        ("alpha*L@H - beta*H", "row"),
        ("-alpha*L@H + beta*L@H - gamma*H**2", "symmetric"),
        ("-2*L**3@H + alpha*H@W", "row"),
    ],
)
def test_coefficients_without_a_box(text: str, normalisation: str) -> None:
    """With the coefficients of the answer none of many boxes is invariant on a directed chain or a star."""
    box = box_of(text, normalisation)
    if box.where != sp.true:
        assert box.lower is not None
        return
    assert box.is_left
    assert box.at
    values = {name: float(value) for name, value in box.at}
    system = rd.parse(text)
    values |= {name: 1.0 for name in system.letters if name not in values and name not in ("A", "L", "I", "H", "H0")}
    chain = np.diag(np.ones(4), 1)
    chain[-1, -1] = 1
    filled = {n: np.array([[v]]) if n == "W" else v for n, v in values.items()}
    for lower, upper in ((-1, 1), (0, 1), (-1, 0), (-5, 5), (0.5, 3), (-0.1, 0.1), (1.2, 1.8)):
        corners = (np.array(c, float)[:, None] for c in itertools.product((lower, upper), repeat=5))
        speeds = ((c, dense.evaluate(system.expression, {"A": chain, "H": c, **filled})) for c in corners)
        assert any((np.where(c == upper, v, -v) > 0).any() for c, v in speeds)


CYCLE_OF_FOUR = np.array([[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]]) / 2


# ---------------------------------------------------------------------- isolated nodes
def test_an_isolated_node_leaves_a_box_without_zero() -> None:
    system = rd.parse("-L@H + (H - 1)*(3 - H)")
    box = box_of("-L@H + (H - 1)*(3 - H)")
    assert not box.allowing_isolated().exists
    assert "with isolated nodes no box was found" in box.reason
    A = dense_operator(star_with_a_loner(), "row")
    speed = dense.evaluate(system.expression, {"A": A, "H": np.full((6, 1), 2.0)})
    assert speed[:-1] == pytest.approx(1.0)
    assert speed[-1] == -1.0


def test_what_remains_with_isolated_nodes() -> None:
    """h' = -h + (h - 1)^2 at a node alone: the lower face moves down to a zero of it."""
    box = box_of("-L@H + (H - 1)**2")
    assert (str(box.lower), str(box.upper), box.assumes) == ("1 - R", "1", ISOLATED)
    remains = box.allowing_isolated()
    assert remains.exists
    assert remains.assumes == ""
    lower, upper = float(remains.lower), float(remains.upper)
    assert lower <= 0 < upper == 1
    assert (lower - 1) ** 2 - lower >= 0


def test_faces_tell_isolated_nodes_apart() -> None:
    field = NodeSpeeds.of_one(rd.parse("-L@H + (H - 1)*(3 - H)"))
    bounds = {"H": (sp.Integer(1), sp.Integer(3))}
    assert RectangleFaces(field, AVERAGING).keep(bounds)
    assert not RectangleFaces(field, AVERAGING_OR_ALONE).keep(bounds)
    assert RectangleFaces(field, AVERAGING_OR_ALONE).hold(bounds, "H", 1)


# ---------------------------------------------------------------------- random systems on random graphs
REACTIONS = (
    "beta*H*(1 - H)", "-beta*H**3", "beta*(H - 1)*(3 - H)", "beta*tanh(H) - H", "k*H*(1 - H) where k node",
    "-2*H + M*H0 + A@H0", "-beta*H + H*(1 - H)*(A@H)", "beta*relu(1 - H) - H", "beta*(A@(H*H)) - H*H*H",
)  # fmt: skip


def random_graph(rng: np.random.Generator, kind: str, nodes: int = 7) -> np.ndarray:
    """Weights of a directed or undirected graph; some nodes are alone where the kind says so."""
    weights = rng.uniform(0.2, 3, (nodes, nodes)) * (rng.random((nodes, nodes)) < 0.4)
    np.fill_diagonal(weights, 0)
    ring = np.roll(np.eye(nodes), 1, axis=0)
    weights = np.maximum(weights, ring)
    if "undirected" in kind:
        weights = np.maximum(weights, weights.T)
    if "isolated" in kind:
        weights[-2:] = 0
        weights[:, -2:] = weights[:, -2:] * ("undirected" not in kind)
    return weights


def values_for(system: System, rng: np.random.Generator, nodes: int) -> dict[str, Any]:
    values: dict[str, Any] = {"M": rng.integers(0, 2, (nodes, 1)).astype(float)}
    for name, kind in system.coefficients.items():
        values[name] = rng.uniform(0.3, 2, (nodes, 1) if kind is Kind.NODE else ())
    return values


def number(expression: sp.Expr, values: dict[str, Any]) -> float:
    known = {n: v for n, v in values.items() if np.ndim(v) == 0}
    return float(sp.N(expression.subs({sp.Symbol(n): v for n, v in known.items()})))


def run_out(
    system: System, A: np.ndarray, values: dict[str, Any], start: np.ndarray, ends: tuple[float, float]
) -> float:
    """How far a trajectory gets out of the box."""

    def f(_: float, flat: np.ndarray) -> np.ndarray:
        state = flat[:, None]
        return np.broadcast_to(
            dense.evaluate(system.expression, {"A": A, "H": state, "H0": start, **values}), state.shape
        ).ravel()

    path = solve_ivp(f, (0, 1.5), start.ravel(), rtol=1e-7, atol=1e-9).y
    return float(max(path.max() - ends[1], ends[0] - path.min()))


@pytest.mark.slow
@pytest.mark.parametrize("reaction", REACTIONS)
def test_boxes_are_invariant_on_every_graph(reaction: str) -> None:
    text = f"-alpha*L@H + {reaction}"
    system, rng = rd.parse(text), np.random.default_rng(len(reaction))
    answer = 0
    for kind in ("undirected", "directed", "undirected, isolated", "directed, isolated"):
        weights = random_graph(rng, kind)
        for normalisation in ("row", "symmetric") if "undirected" in kind else ("row",):
            box = box_of(text, normalisation)
            if box.exists and "isolated" in kind:
                box = box.allowing_isolated()
            if not box.exists:
                assert box.reason
                continue
            A = dense_operator(weights, normalisation)
            values = values_for(system, rng, len(A))
            known = {**values, "R": float(rng.uniform(0.3, 2)), "s": max(1.0, float(A.sum(axis=1).max()))}
            for pair in [(box.lower, box.upper), *box.others[:1]]:
                lower, upper = (number(e, known) for e in pair)
                begin = tuple(number(e, known) for e in box.start) if box.start else (lower, upper)
                start = rng.uniform(*begin, (len(A), 1))
                start[rng.random(len(A)) < 0.5] = begin[rng.integers(2)]
                assert run_out(system, A, values, start, (lower, upper)) < 1e-5
                answer += 1
    assert answer


# ---------------------------------------------------------------------- zeros and branches
def test_zeros_keep_their_conditions() -> None:
    x, a = sp.Symbol("x", real=True), sp.Symbol("a", positive=True)
    answer = all_zeros(x * (x**2 - x + a), x, Domain())
    assert (sp.S.Zero, ()) in answer
    assert {c for _, conditions in answer for c in conditions} == {1 - 4 * a}
    assert all_zeros(x**2 + a, x, Domain()) == []
    assert all_zeros(sp.tanh(x) * a, x, Domain()) == [(sp.S.Zero, ())]
    with pytest.raises(rd.errors.Undecided, match="which are all zeros"):
        all_zeros(sp.tanh(x) - a * x, x, Domain())
    with pytest.raises(rd.errors.Undecided, match="which are all zeros"):
        all_zeros(x**5 - x - a, x, Domain())
    assert zeros(x**5 - x - 1, x) == [sp.CRootOf(x**5 - x - 1, 0)]


def test_branches_are_compared_under_their_conditions() -> None:
    a = sp.Symbol("a", real=True)
    value = sp.Piecewise((a, a >= 1), (2 - a, a >= 0), (sp.oo, True))
    assert is_at_least(value, sp.S.One, Domain()) is True
    assert is_above(value, sp.S.One, Domain()) is False
    assert is_at_least(value, 2 * sp.S.One, Domain()) is False
    assert is_at_least(sp.S.One, value, Domain()) is not True
    assert [facts for _, facts in branches(value)][1] == (a < 1, a >= 0)
    assert is_defined(sp.Piecewise((sp.sqrt(a), a >= 0), (a, True)), Domain())
    assert not is_defined(sp.Piecewise((sp.sqrt(a), a >= -1), (a, True)), Domain())
    assert not is_defined(sp.Max(1 / a, 0), Domain())
    assert not is_defined(sp.sqrt(a), Domain((a >= 0,)), smooth=True)


def test_boxes_tell_where_their_faces_are_numbers() -> None:
    """Where kappa = 0 nothing is damped, and a logarithm of a negative number is no face."""
    box = box_of("-q*L@H + kappa*H**2*(q - H) where q scalar, kappa nonnegative, kappa*q <= 1", "symmetric")
    assert str(box.where) == "kappa > 0"
    assert not box.exists
    left = box_of("-rho_1*L@H - rho_1*nu*exp(-H) - 0.5 where rho_1 scalar, rho_1 real, nu**2 < rho_1", "symmetric")
    assert left.is_left
    assert left.regular is None


def test_a_box_whose_lower_face_attracts_for_some_coefficients_only() -> None:
    """h' = h*mu*(h - (mu - 4/mu)): above 2 the zero mu - 4/mu repels what lies below it."""
    box = box_of("-mu*H*(mu - H) + 2*(2*I - L)@H", "row")
    assert not box.exists
    mu = next(iter(box.where.free_symbols))
    assert [bool(box.where.subs(mu, value)) for value in (1, 3)] == [False, True]
    assert str(box.upper) == "mu - 4/mu"
    lower = float(box.lower.subs({mu: 3, sp.Symbol("R"): 2}))
    assert lower * (lower - (3 - 4 / 3)) >= 0


def test_the_box_does_not_depend_on_earlier_questions() -> None:
    field = NodeSpeeds.of_one(rd.parse("-alpha*H + beta*A@H - H0"))
    first, second = (FaceSearch(field, AVERAGING).conditional(Escapes(field)) for _ in range(2))
    assert first == second
    assert str(first.where) == "alpha - beta > 0"


def test_an_escape_under_a_mask_names_the_mask_that_it_is_for() -> None:
    """Without the mask the equation diffuses, and keeps every box."""
    for kind in ("row", "symmetric"):
        box = rd.invariant_box("-a**2*L@H - a*M*(H0 - H)", kind)
        assert box.is_left
        assert dict(box.at)["M"] == 1


def test_the_box_of_regular_graphs_tells_the_range_of_its_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """From H0 = R this solution runs away, so that a box of regular graphs is one for H0 <= 0 alone."""
    row = Box(-R, sp.S.Zero, start=(-R, sp.S.Zero))
    monkeypatch.setattr(invariant_boxes, "proved_box", lambda _, kind: row if kind == "row" else no_box("none"))
    box = invariant_boxes.raw_box.__wrapped__(rd.parse("-alpha*L@H + c*A@H0 + alpha*H**2"), "symmetric")
    assert not box.is_left  # [-R, 0] may be kept on irregular graphs, too, for large R
    assert str(box.regular) == str(box.regular_start) == "(-R, 0)"
    assert box.reason.endswith("the row box [-R, 0] holds for H0 in [-R, 0]")
