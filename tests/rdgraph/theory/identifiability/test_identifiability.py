"""What a right-hand side reveals: dependent functions, signs, matrices, names, and what one graph hides."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
import sympy as sp
from flint import arb, ctx
from hypothesis import given, settings

import rdgraph as rd
from rdgraph.answers import Status
from rdgraph.graphs.normalisation import dense_operator
from rdgraph.language.tree import Kind
from rdgraph.systems.system import System
from rdgraph.testing import systems
from rdgraph.theory.equality import dense_oracle as dense
from rdgraph.theory.identifiability.entries import ALONE, ROOT, FieldEntries, certain_rank, descendants, forms
from rdgraph.theory.identifiability.examination import gauges
from rdgraph.theory.identifiability.question import identify
from tests.property_examples import examples

ANSWERS: dict[str, tuple[set[str], set[str], set[str], set[str]]] = {
    # equation: combinations, determined one by one, determined nearby only, hidden
    "alpha*abs(H) + beta*relu(H) + gamma*relu(-H)": ({"alpha + beta", "alpha + gamma"}, set(), set(), set()),
    "alpha*sigmoid(2*H) + beta*tanh(H) + gamma": ({"alpha + 2*beta", "alpha + 2*gamma"}, set(), set(), set()),
    "alpha*sin(H)**2 + beta*cos(H)**2 + gamma": ({"alpha - beta", "beta + gamma"}, set(), set(), set()),
    "alpha*cos(2*H) + beta*sin(H)**2": ({"alpha", "beta"}, {"alpha", "beta"}, set(), set()),
    "alpha*cos(2*H) + beta*sin(H)**2 + gamma": ({"alpha + gamma", "2*alpha - beta"}, set(), set(), set()),
    "alpha*softplus(H) + beta*softplus(-H) + c*H": ({"alpha + beta", "alpha - beta + 2*c"}, set(), set(), set()),
    "alpha*tanh(M*H) + beta*M*tanh(H)": ({"alpha + beta"}, set(), set(), set()),
    "alpha*relu(beta*H) + relu(gamma*H)": ({"alpha*beta + gamma"}, set(), set(), set()),
    "alpha**2*H where alpha real": ({"alpha**2"}, set(), {"alpha"}, set()),
    "alpha**2*H": ({"alpha"}, {"alpha"}, set(), set()),
    "alpha**3*H where alpha real": ({"alpha"}, {"alpha"}, set(), set()),
    "alpha*tanh(beta*H)": ({"alpha", "beta"}, {"alpha", "beta"}, set(), set()),
    "a*tanh(b*H) where a real, b real": ({"a*b", "a*b**3"}, set(), {"a", "b"}, set()),
    "tanh(alpha*H) + tanh(beta*H)": ({"alpha + beta", "alpha**3 + beta**3"}, set(), {"alpha", "beta"}, set()),
    "tanh(alpha*H) + tanh(beta*H) where alpha < beta": ({"alpha", "beta"}, {"alpha", "beta"}, set(), set()),
    "alpha*H@W": ({"alpha*W"}, set(), set(), set()),
    "H@W": ({"W"}, {"W"}, set(), set()),
    "H@W + alpha*H": ({"W + alpha*I"}, set(), set(), set()),
    "H@W + alpha*A@H": ({"W", "alpha"}, {"W", "alpha"}, set(), set()),
    "H@W@V where V matrix": ({"W@V"}, set(), set(), set()),
    "b*H + H@W where b channel": ({"W + b*I"}, set(), set(), set()),
    "kH*H + k*H**2 where kH scalar, k scalar": ({"k", "kH"}, {"k", "kH"}, set(), set()),
    "norm_W*H@W where norm_W scalar": ({"norm_W*W"}, set(), set(), set()),
    "sqrt(beta + H)": ({"beta"}, {"beta"}, set(), set()),
    "alpha/(beta + gamma*H**2)": ({"alpha/beta", "alpha*gamma/beta**2"}, set(), set(), set()),
    "alpha*exp(beta + H)": ({"alpha*exp(beta)"}, set(), set(), set()),
    "alpha*A@(H**2) + beta*(A@H)**2": ({"alpha", "beta"}, {"alpha", "beta"}, set(), set()),
    "alpha*A@(H**0) + beta*H**0": ({"alpha", "beta"}, {"alpha", "beta"}, set(), set()),
    "alpha*b*H where b channel": ({"alpha*b"}, set(), set(), set()),
    "(alpha + beta*b)*H where b channel": ({"alpha + beta*b"}, set(), set(), set()),
    "a*b*H where a channel, b node": ({"a*b"}, set(), set(), set()),
    "A@(k*H) - alpha*H where k node": ({"alpha", "k"}, {"alpha", "k"}, set(), set()),
    "alpha*A@relu(H) - beta*relu(A@H)": ({"alpha", "beta"}, {"alpha", "beta"}, set(), set()),
    "alpha*A@abs(H) + beta*abs(A@H) + c*H": ({"alpha", "beta", "c"}, {"alpha", "beta", "c"}, set(), set()),
    "alpha*A@relu(H) + (beta + c)*relu(A@H)": ({"alpha", "beta + c"}, {"alpha"}, set(), set()),
    "a*tanh(b*H) - c*H": ({"a", "b", "c"}, {"a", "b", "c"}, set(), set()),
    "a*sin(b*H) + c*H where a real, b real": ({"c", "a*b", "a*b**3"}, {"c"}, {"a", "b"}, set()),
    "-H + beta*(H - H)": (set(), set(), set(), {"beta"}),
    "sin(beta*H)**2 + cos(beta*H)**2 + alpha*H": ({"alpha"}, {"alpha"}, set(), {"beta"}),
}  # fmt: skip


def plain(formula: str) -> sp.Expr:
    expression = rd.theory.read_expression(formula)
    assert isinstance(expression, sp.Expr)
    return sp.expand(expression)


@pytest.mark.parametrize("text", ANSWERS)
def test_what_is_revealed(text: str) -> None:
    combinations, single, local, hidden = ANSWERS[text]
    answer = identify(rd.parse(text))
    assert {min(c, -c, key=str) for c in map(sp.expand, answer.combinations)} == {
        min(c, -c, key=str) for c in map(plain, combinations)
    }
    assert (set(answer.single), set(answer.local), set(answer.hidden)) == (single, local, hidden)
    assert answer.status == Status.PROVED
    assert answer.rank == len(combinations)


def test_a_free_sign_is_reported() -> None:
    assert "alpha = 1 and alpha = -1 give the same f" in identify(rd.parse("alpha**2*H where alpha real")).reason


def test_a_coefficient_that_another_one_can_hide() -> None:
    answer = identify(rd.parse("(alpha - beta)*tanh(gamma*H)"))
    assert answer.single == ("gamma",)
    assert "gamma where alpha != beta" in answer.reason


def test_the_answer_can_depend_on_signs() -> None:
    answer = identify(rd.parse("alpha*relu(beta*H) + relu(gamma*H) where beta real"))
    assert "beta > 0: alpha*beta + gamma" in answer.reason
    assert "beta < 0: gamma, alpha*beta" in answer.reason
    assert (answer.single, answer.rank) == ((), 1)
    assert identify(rd.parse("relu(beta)*H where beta real")).rank == 0


def test_equal_answers_for_both_signs_do_not_tell_the_sign() -> None:
    """|beta| is revealed, beta is not, although it is for each sign alone."""
    revealed = {
        "abs(beta*H) where beta real": "Abs(beta)",
        "relu(beta*H) + relu(-beta*H) where beta real": "Abs(beta)",
    }
    for text, formula in revealed.items():
        answer = identify(rd.parse(text))
        assert (answer.single, answer.local, answer.rank, answer.status) == ((), ("beta",), 1, Status.PROVED)
        assert [str(c) for c in answer.combinations] == [formula]
    assert identify(rd.parse("relu(beta*H) where beta real")).single == ("beta",)


def test_a_rank_that_differs_between_coefficients_is_measured() -> None:
    answer = identify(rd.parse("relu(alpha - beta)*H"))
    assert (answer.status, answer.single) == (Status.MEASURED, ())
    assert "differs between admissible coefficients" in answer.reason


@pytest.mark.parametrize(("text", "side"), [("relu(1 - alpha)*H", "alpha < 1"), ("relu(alpha - 2)*H", "alpha > 2")])
def test_a_kink_in_a_coefficient_names_its_side(text: str, side: str) -> None:
    answer = identify(rd.parse(text))
    assert (answer.status, answer.single) == (Status.MEASURED, ("alpha",))
    assert f"alpha where {side};" in answer.reason


def test_what_has_no_closed_form_is_not_called_unidentifiable() -> None:
    answer = identify(rd.parse("alpha*relu(beta - 5)*H"))
    assert (answer.rank, answer.combinations) == (1, ())
    assert answer.headline != identify(rd.parse("0*alpha*H")).headline


def test_a_network_is_known_only_up_to_the_order_of_its_units() -> None:
    answer = identify(rd.parse("tanh(H@W)@V where V matrix"))
    assert answer.single == ()
    assert set(answer.local) == {"W", "V"}
    assert answer.rank == 2


def test_assumptions_without_values_are_undecided_or_refused() -> None:
    answer = identify(rd.parse("alpha*H + beta*A@H where alpha <= beta, beta <= alpha"))
    assert (answer.status, answer.rank, answer.combinations) == (Status.UNDECIDED, None, ())
    assert "200" in answer.reason


def test_the_name_of_a_letter_does_not_matter() -> None:
    texts = ["tanh({0}*H) + {1}*A@tanh({1}*A@H)".format(*pair) for pair in (("alpha", "beta"), ("kH", "H1"))]
    answers = [identify(rd.parse(t, ["kH", "H1"])) for t in texts]
    assert [a.rank for a in answers] == [2, 2]
    assert [len(a.single) for a in answers] == [2, 2]


# ---------------------------------------------------------------------- the parts
def test_certain_ranks() -> None:
    with ctx.workprec(320):
        third, almost = arb(1) / 3, 3 + arb(10) ** -40
    assert certain_rank([[third, 1], [1, 3]]) == 1
    assert certain_rank([[third, 1], [1, almost]]) == 2
    assert certain_rank([[arb(0, 1), 0], [0, 0]]) == 0
    assert certain_rank([]) == 0


def test_shares_of_the_tree() -> None:
    assert sum(descendants(ROOT, 5).values()) == 1
    assert len(descendants(ROOT, 2)) == 4
    assert descendants(ALONE, 1) == {}


def test_entries_name_their_letters() -> None:
    form = forms(system := rd.parse("alpha*A@H@W + b*k*H where b channel, k node"), system.normal)[0]
    entries = FieldEntries(form)
    origins = {entries.origin(x) for x in entries.parameters}
    assert origins == {"alpha", "W", "b", "k"}
    assert {entries.origin(x) for x in entries.states} == {"H"}
    assert len(entries.parts(sp.Symbol("W"))) == 4
    assert entries.parts(sp.Symbol("b") * sp.Symbol("I"))[1] == 0


@pytest.mark.parametrize("text", list(ANSWERS)[:12])
def test_gauges_leave_f_alone(text: str) -> None:
    """A small step along a gauge changes f only in second order, measured on a graph."""
    system = rd.parse(text)
    generator = np.random.default_rng(0)
    A = dense_operator(nx.to_numpy_array(nx.lollipop_graph(3, 2)), "row")
    given: dict[str, Any] = {"A": A, "H": generator.normal(size=(5, 1)), "M": np.array([[1.0], [0], [1], [0], [1]])}
    values = {name: float(generator.uniform(0.5, 1)) for name in system.coefficients}
    for form in forms(system, system.normal):
        for gauge in gauges(form, rewritten=True):
            rates = {n: float(r.subs({sp.Symbol(k): v for k, v in values.items()})) for n, r in gauge.rates.items()}
            changes = []
            for step in (1e-3, -1e-3):
                moved = {name: value + step * rates.get(name, 0.0) for name, value in values.items()}
                changes.append(dense.evaluate(system.expression, {**given, **moved}))
            assert any(rates.values())
            assert np.abs(changes[0] - changes[1]).max() < 1e-8


def jacobian_rank(system: System, values: dict[str, float], adjacency: np.ndarray, normalisation: str = "row") -> int:
    """Rank of df/dtheta by central differences at random states, numpy alone."""
    generator = np.random.default_rng(3)
    A = dense_operator(adjacency, normalisation)
    rows = []
    for scale in (0.3, 1.0, 2.0, 1.0, 0.5, 1.5):
        state = {n: scale * generator.normal(size=(len(A), 1)) for n in ("H", "H0")}
        state["M"] = generator.integers(0, 2, (len(A), 1)).astype(float)
        columns = []
        for name in values:
            ends = [
                dense.evaluate(system.expression, {"A": A, **state, **values, name: values[name] * (1 + e)})
                for e in (1e-4, -1e-4)
            ]
            columns.append(np.broadcast_to(ends[0] - ends[1], (len(A), 1)).ravel() / 2e-4)
        rows.append(np.stack(columns, axis=1))
    matrix = np.concatenate(rows)
    matrix = matrix[np.isfinite(matrix).all(axis=1)]
    matrix = matrix / np.maximum(np.abs(matrix).max(axis=1, keepdims=True), 1e-12)
    return int((np.linalg.svd(matrix, compute_uv=False) > 1e-5).sum())


@settings(max_examples=examples(15))
@given(systems(linear=False, kinds=(Kind.SCALAR,)))
def test_the_rank_is_that_of_a_measured_jacobian(system: System) -> None:
    if not system.coefficients or system.assumptions.relations:
        return
    answer = identify(system)
    values = {
        n: (-1 if system.assumptions.sign(n) in ("negative", "nonpositive") else 1) * (0.7 + 0.1 * k)
        for k, n in enumerate(system.coefficients)
    }
    measured = jacobian_rank(system, values, nx.to_numpy_array(nx.barabasi_albert_graph(9, 2, seed=1)))
    assert answer.rank == measured
    assert len(answer.combinations) <= measured


# ---------------------------------------------------------------------- on one graph
@pytest.mark.parametrize(
    ("text", "graph", "combinations", "status"),
    [
        ("BS", nx.complete_graph(3), {"2*alpha + beta"}, Status.PROVED),
        ("BS", nx.complete_graph(2), {"alpha + beta"}, Status.PROVED),
        ("BS", nx.path_graph(3), {"alpha", "beta"}, Status.PROVED),
        ("BS", nx.cycle_graph(5), {"alpha", "beta"}, Status.PROVED),
        ("FB*", nx.complete_graph(4), {"alpha", "beta"}, Status.PROVED),
        ("FB*", nx.empty_graph(3), {"alpha - 2*beta"}, Status.PROVED),
        ("ST", nx.empty_graph(2), {"alpha", "beta"}, Status.PROVED),
        ("alpha*A@A@H + beta*H + gamma*H**3", nx.complete_graph(2), {"gamma", "alpha + beta"}, Status.PROVED),
        ("alpha*H - alpha*A@H + beta*A@A@H - beta*A@A@A@H", nx.cycle_graph(5), {"alpha", "beta"}, Status.MEASURED),
        ("alpha*A@A@(H**2) + beta*H**2", nx.complete_graph(2), set(), Status.MEASURED),
        ("alpha*A@A@(H**2) + beta*H**2", nx.path_graph(4), {"alpha", "beta"}, Status.MEASURED),
        ("-alpha*k*L@H where k node", nx.path_graph(4), {"alpha*k"}, Status.MEASURED),
    ],
)
def test_on_a_graph(text: str, graph: nx.Graph, combinations: set[str], status: str) -> None:
    system = rd.parse(text)
    answer = identify(system, graph)
    assert {min(c, -c, key=str) for c in map(sp.expand, answer.combinations)} == {
        min(c, -c, key=str) for c in map(plain, combinations)
    }
    assert answer.status == status
    if all(kind is Kind.SCALAR for kind in system.coefficients.values()):
        values = {name: 0.6 + 0.2 * k for k, name in enumerate(system.coefficients)}
        assert answer.rank == jacobian_rank(system, values, nx.to_numpy_array(graph), "symmetric")


def test_the_note_says_what_a_graph_hides() -> None:
    lost = identify(rd.parse("BS"), nx.complete_graph(3)).reason
    assert "1 of 2 combinations are lost: alpha, beta" in lost
    assert "eigenvalues 0, 3/2 (exactly)" in lost
    remaining = identify(rd.parse("BS"), nx.path_graph(6)).reason
    assert "nothing is lost: two nodes are 5 steps apart" in remaining


@pytest.mark.parametrize("normalisation", ["symmetric", "row", "column"])
def test_graphs_of_all_forms(normalisation: str) -> None:
    weights = np.ones((4, 4)) - np.eye(4)
    answer = [
        identify(rd.parse("BS"), g, normalisation)
        for g in (weights, rd.Graph.from_dense(weights), nx.complete_graph(4), rd.Graph.from_dense(weights).to_scipy())
    ]
    assert {f.combinations for f in answer} == {(3 * sp.Symbol("alpha") + sp.Symbol("beta"),)}


def test_a_directed_graph_is_measured_with_its_operator() -> None:
    ring = np.roll(np.eye(3), 1, axis=0)
    answer = identify(rd.parse("BS"), ring, "row")
    assert (answer.status, set(answer.single)) == (Status.MEASURED, {"alpha", "beta"})
    with pytest.raises(rd.errors.NotApplicable, match="undirected"):
        identify(rd.parse("BS"), ring, "symmetric")
    with pytest.raises(rd.errors.NotApplicable, match="normalisation none"):
        identify(rd.parse("BS"), ring, "none")


def _lazy(w: Any, own: Any, other: Any, column: Any) -> Any:
    return w / (2 * own**0.5 * other**0.5)


@pytest.mark.parametrize(
    ("text", "normalisation", "status"),
    [
        ("a*H + b*A@H + c*A@A@H", "none", Status.PROVED),
        ("a*H + b*L@H + c*L@L@H", "none", Status.PROVED),
        ("a*H + b*A@H + c*A@A@H", "lazy", Status.MEASURED),
    ],
)
def test_identifiability_on_one_graph_follows_from_its_operator(text: str, normalisation: str, status: str) -> None:
    """Every combination is constant along the direction in which f, evaluated densely, does not change."""
    rd.register_normalisation("lazy", _lazy, identity=0.5, is_symmetric=True, norm="2", spectrum=(0, 1))
    try:
        weights = np.ones((4, 4)) - np.eye(4)
        answer = identify(rd.parse(text), weights, normalisation)
        operator = {"none": weights, "lazy": np.eye(4) / 2 + weights / 6}[normalisation]
        operator = 3 * np.eye(4) - operator if "L@" in text else operator
        powers = np.stack([np.linalg.matrix_power(operator, k).ravel() for k in range(3)], axis=1)
        hidden = np.linalg.svd(powers)[2][-1]
        assert np.abs(powers @ hidden).max() < 1e-12
        assert (answer.rank, answer.status, len(answer.combinations)) == (2, status, 2)
        for formula in answer.combinations:
            slopes = [float(sp.diff(formula, sp.Symbol(name))) for name in "abc"]
            assert np.dot(slopes, hidden) == pytest.approx(0, abs=1e-9)
    finally:
        rd.vocabulary.unregister_normalisation("lazy")


def test_on_a_graph_what_is_measured_is_known_nearby_only() -> None:
    answer = identify(rd.parse("alpha**2*(A@H)**2 + beta*H"), nx.path_graph(4))
    assert (answer.single, set(answer.local)) == ((), {"alpha", "beta"})
    assert answer.rank == 2


def test_a_graph_for_a_system_without_coefficients() -> None:
    assert identify(rd.parse("A@tanh(H) - H"), nx.path_graph(3)).combinations == ()
