"""Operators in addition to A: modes and bounds of the growth against dense generators that share no code with them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
import sympy as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import rdgraph as rd
from rdgraph.errors import InvalidArgument, NotApplicable, UnknownName
from rdgraph.language.answer_symbols import lam
from rdgraph.systems.system import System
from rdgraph.theory.equality.dense_oracle import evaluate
from rdgraph.theory.patterns.growth_bounds import BoundProblem, OperatorTerm
from rdgraph.theory.patterns.joint_dispersion import JointDispersion, words_of
from rdgraph.theory.patterns.linearisation import Linearisation
from rdgraph.theory.patterns.mode_spectra import RangeBox, growth_over, range_box
from tests.property_examples import examples

ROUNDING = 1e-9


def ring(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """L of a ring, and the difference of both neighbours."""
    step = np.roll(np.eye(nodes), 1, axis=1)
    return np.eye(nodes) - (step + step.T) / 2, (step - step.T) / 2


def dense_generator(system: System, values: dict[str, float], operators: dict[str, np.ndarray]) -> np.ndarray:
    """The matrix of a linear system, column by column, by the interpreter of the language."""
    nodes, fields = len(operators["A"]), system.fields
    columns = []
    for point in range(nodes * len(fields)):
        unit = np.eye(nodes * len(fields))[point].reshape(len(fields), nodes, 1)
        given = {**values, **operators, **dict(zip(fields, unit, strict=True))}
        columns.append(np.concatenate([np.ravel(evaluate(system.flow[f], given) + 0 * unit[0]) for f in fields]))
    return np.stack(columns, axis=1)


def joint(*args: object, **settings: object) -> JointDispersion:
    answer = rd.dispersion(*args, **settings)
    assert isinstance(answer, JointDispersion)
    return answer


# ---------------------------------------------------------------------- random systems and graphs
SHAPES = ("symmetric", "antisymmetric", "signed")


@st.composite
def operators(draw: st.DrawFn) -> tuple[dict[str, np.ndarray], str]:
    """A normalised graph, and B of some shape on the same nodes."""
    nodes = draw(st.integers(2, 6))
    source = np.random.default_rng(draw(st.integers(0, 10**6)))
    weights = np.triu(source.random((nodes, nodes)) * (source.random((nodes, nodes)) < 0.7), 1) + np.eye(nodes, k=1)
    weights = weights + weights.T
    degrees = weights.sum(axis=1)
    row = draw(st.booleans())
    average = weights / degrees[:, None] if row else weights / np.sqrt(np.outer(degrees, degrees))
    further = source.normal(size=(nodes, nodes)) * draw(st.sampled_from([0.2, 1.0, 3.0]))
    shape = draw(st.sampled_from(SHAPES))
    further = {"symmetric": further + further.T, "antisymmetric": further - further.T, "signed": further}[shape]
    return {"A": average, "B": further}, shape


@st.composite
def linear_texts(draw: st.DrawFn) -> str:
    """Linear equations of one to three fields with words of L and B."""
    fields = ["u", "v", "w"][: draw(st.sampled_from([1, 2, 2, 3]))]
    words = ["", "L@", "B@", "L@L@", "L@B@", "B@B@"]
    lines = []
    for name in fields:
        terms = [f"0.5*{name}", f"-L@{name}", f"B@{name}"]
        for _ in range(draw(st.integers(1, 3))):
            c = draw(st.integers(-4, 4))
            word = draw(st.sampled_from(words[:3] * 3 + words))
            other = draw(st.sampled_from(fields))
            terms.append(f"({c})*{word}{other}" if not word else f"({c})*({word}{other})")
        lines.append(f"{name}' = {' + '.join(terms)}")
    return "; ".join(lines)


@settings(max_examples=examples(25))
@given(linear_texts(), operators())
def test_modes_and_bound_against_the_dense_generator(text: str, graph: tuple[dict[str, np.ndarray], str]) -> None:
    held, shape = graph
    system = rd.parse(f"{text} where B {shape}")
    expected = np.linalg.eigvals(dense_generator(system, {}, held))
    size = max(1.0, np.abs(expected).max())
    answer = joint(system, {}, operator=np.eye(len(held["A"])) - held["A"], operators={"B": held["B"]})
    assert np.allclose(answer.modes.growth, expected.real.max(), atol=1e-7 * size)
    assert len(answer.modes.eigenvalues) == len(expected)
    bound = answer.bound
    assert bound is not None
    assert expected.real.max() <= bound.value + ROUNDING * size
    if np.allclose(held["A"], held["A"].T):
        norm = np.linalg.norm(held["B"], 2) * (1 + 1e-12)
        general = joint(system, {}, norms={"B": norm}).bound
        assert general is not None
        assert bound.value <= general.value + 1e-6 * max(1.0, abs(general.value))


@settings(max_examples=examples(10))
@given(linear_texts(), operators(), st.floats(0.0, 3.0))
def test_deviations_grow_no_faster_than_the_bound(
    text: str, graph: tuple[dict[str, np.ndarray], str], time: float
) -> None:
    """|exp(t G)| <= condition*exp(bound*t), which says more than eigenvalues do."""
    held, shape = graph
    system = rd.parse(f"{text} where B {shape}")
    answer = joint(system, {}, operator=np.eye(len(held["A"])) - held["A"], operators={"B": held["B"]})
    generator = dense_generator(system, {}, held)
    time = time / max(1.0, np.linalg.norm(generator, 2))
    grown = np.linalg.norm(scipy.linalg.expm(time * generator), 2)
    assert grown <= answer.bound.condition * np.exp(answer.bound.value * time) * (1 + 1e-9)


# ---------------------------------------------------------------------- what commutes is exact
def test_circulants_have_joint_modes() -> None:
    """Advection on a ring: P at (lam, mu) = (1 - cos k, i sin k) is the whole spectrum."""
    laplacian, difference = ring(8)
    text = "u' = a - u + u**2*v - Du*L@u + c*B@u; v' = b - u**2*v - Dv*L@v where B antisymmetric"
    values = {"a": 0.1, "b": 0.9, "Du": 0.02, "Dv": 1, "c": 0.5}
    answer = joint(text, values, operator=laplacian, operators={"B": difference})
    local = np.array([[0.8, 1.0], [-1.8, -1.0]])
    whole = (
        np.kron(local, np.eye(8)) - np.kron(np.diag([0.02, 1.0]), laplacian) + np.kron(np.diag([0.5, 0]), difference)
    )
    expected = np.linalg.eigvals(whole)
    assert answer.commutes
    assert "commute" in answer.modes.source
    assert np.allclose(np.sort(answer.modes.eigenvalues.real), np.sort(expected.real), atol=1e-9)
    assert len(answer.unstable) == int((expected.real > 1e-9).sum()) > 0
    k = 2 * np.pi * np.arange(8) / 8
    assert answer.growth(L=1 - np.cos(k), B=1j * np.sin(k)).max() == pytest.approx(expected.real.max(), abs=1e-9)
    fastest = expected[expected.real.argmax()]
    point = int(np.argmax(answer.growth(L=1 - np.cos(k), B=1j * np.sin(k))))
    assert answer.frequency(L=1 - np.cos(k[point]), B=1j * np.sin(k[point])) == pytest.approx(
        abs(fastest.imag), abs=1e-9
    )
    assert "B@1 = 0" in answer.assumes
    joint_values = answer.modes.joint
    assert np.allclose(np.sort(joint_values["L"].real), np.sort(1 - np.cos(k)), atol=1e-9)


def test_commuting_matrices_that_are_not_normal() -> None:
    """B a polynomial in a directed L: triangular in one basis, without orthogonal eigenvectors."""
    source = np.random.default_rng(3)
    weights = source.random((7, 7))
    average = weights / weights.sum(axis=1, keepdims=True)
    laplacian = np.eye(7) - average
    further = average @ average - 0.5 * average
    answer = joint("u' = -L@u + B@v; v' = 2*u - v where B operator", {}, operator=laplacian, operators={"B": further})
    whole = np.block([[-laplacian, further], [2 * np.eye(7), -np.eye(7)]])
    assert answer.commutes
    assert answer.modes.joint is not None
    assert answer.modes.growth == pytest.approx(np.linalg.eigvals(whole).real.max(), abs=1e-9)


def test_large_generators_are_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sparse generator: Arnoldi's fastest eigenvalue is that of the dense one."""
    monkeypatch.setattr("rdgraph.theory.patterns.joint_dispersion.MAX_ROWS", 50)
    laplacian, difference = ring(40)
    uneven = difference * np.linspace(0.5, 1.5, 40)[:, None]
    text = "u' = 0.3*u - L@u + B@u; v' = -v + u where B signed"
    answer = joint(
        text, {}, operator=scipy.sparse.csr_array(laplacian), operators={"B": scipy.sparse.csr_array(uneven)}
    )
    assert "Arnoldi" in answer.modes.source
    assert answer.commutes is False
    alone = np.linalg.eigvals(0.3 * np.eye(40) - laplacian + uneven)
    assert answer.modes.growth == pytest.approx(alone.real.max(), abs=1e-8)
    assert len(answer.unstable) > 0


# ---------------------------------------------------------------------- what does not is bounded
def test_the_box_of_numerical_ranges_is_no_bound_for_several_fields() -> None:
    """X and Y two Pauli matrices: P over the box grows by sqrt(2), the generator by 2, which the bound attains."""
    text = "u' = X@v + Y@u; v' = X@u - Y@v where X symmetric, Y symmetric"
    crossed, signs = np.array([[0.0, 1.0], [1.0, 0.0]]), np.diag([1.0, -1.0])
    answer = joint(text, {}, operators={"X": crossed, "Y": signs})
    grid = np.linspace(-1, 1, 41)
    x, y = np.meshgrid(grid, grid)
    assert answer.growth(X=x, Y=y).max() == pytest.approx(np.sqrt(2))
    assert answer.commutes is False
    assert answer.modes.growth == pytest.approx(2)
    assert answer.bound.value == pytest.approx(2, abs=1e-8)
    assert joint(text, {}, norms={"X": 1, "Y": 1}).bound.value == pytest.approx(2, abs=1e-8)


def test_advection_of_one_field_lets_nothing_grow() -> None:
    """However large B is: v* B v is imaginary."""
    answer = joint("u' = -alpha*L@u + c*B@u - beta*u where B antisymmetric", {"alpha": 2, "c": 50, "beta": 0.25})
    assert answer.bound.value == -0.25
    assert "-oo, oo" in str(answer.bound)
    assert joint("u' = -L@u + c*B@u where B signed", {"c": 1}).bound is None
    assert joint("u' = -L@u + c*B@u where B signed", {"c": 1}, norms={"B": 0.5}).bound.value == 0.5
    assert joint("u' = -L@u - B@u where B symmetric stochastic", {}).bound.value == 1
    assert joint("u' = -L@u + B@B@u where B antisymmetric", {}).bound.value == 0
    assert joint("u' = -L@u + B@B@B@u where B antisymmetric", {}).bound.value == 0


def test_fields_that_are_carried_at_different_speeds() -> None:
    """Speeds are no secret to a bound that weighs the fields: a diagonal W leaves advection antisymmetric."""
    text = "u' = -u + 9*v - L@u + 2*B@u; v' = -v - L@v - 7*B@v where B antisymmetric"
    assert joint(text, {}).bound.value == pytest.approx(-1, abs=1e-2)


def test_row_normalised_graphs_are_weighed_by_degrees() -> None:
    """D^-1 W is symmetric in another inner product, in which pure diffusion has no growth."""
    star = np.zeros((6, 6))
    star[0, 1:] = star[1:, 0] = 1
    average = star / star.sum(axis=1, keepdims=True)
    text = "u' = -L@u + 0*B@u - 0.5*u + 0.01*B@u where B signed"
    answer = joint(text, {}, operator=np.eye(6) - average, operators={"B": average @ average})
    assert answer.bound.value <= -0.48
    assert answer.bound.condition > 1


def test_irrational_steady_states_are_enclosed() -> None:
    text = "u' = 2 - u**2 - L@u + B@v; v' = -v - L@v - B@u where B antisymmetric"
    laplacian, difference = ring(6)
    answer = joint(text, {}, 0, operator=laplacian, operators={"B": difference})
    assert answer.state.values["u"] == sp.sqrt(2)
    whole = np.block([[-2 * np.sqrt(2) * np.eye(6) - laplacian, difference], [-difference, -np.eye(6) - laplacian]])
    expected = np.linalg.eigvals(whole).real.max()
    assert answer.modes.growth == pytest.approx(expected, abs=1e-9)
    assert expected <= answer.bound.value < 0


def test_weaker_inequalities_are_not_proved() -> None:
    """A bound that is too small by a millionth is refused, and the one that is returned is not."""
    matrix = sp.ImmutableMatrix([[1 - lam, 2], [-1, -2 - lam]])
    term = OperatorTerm(sp.ImmutableMatrix([[0, 1], [0, 0]]), RangeBox(sp.Integer(-1), sp.S.One, sp.S.Zero))
    problem = BoundProblem(matrix, (sp.S.Zero, sp.Integer(2)), [term], None)
    total = sp.Matrix([[1 - lam, sp.Rational(1, 2)], [sp.Rational(1, 2), -2 - lam]])
    exact = (-1 + sp.sqrt(10)) / 2
    assert not problem._is_above(total, sp.Rational(float(exact) - 1e-6))
    assert problem._is_above(total, sp.Rational(float(exact) + 1e-6))
    assert problem._above(sp.Matrix([[0, 3], [-3, 0]]), is_odd=True) == 3 * sp.eye(2)


# ---------------------------------------------------------------------- states, words, errors
def test_the_jacobian_at_a_state_with_operators_on_products() -> None:
    """B@(u*v) and tanh(B@u) at a constant state on which B is 1/2, against finite differences."""
    laplacian, difference = ring(7)
    further = difference + 0.5 * np.eye(7)
    text = "u' = 3 - u - 2*B@(u*v) - L@u; v' = 4*B@(2 - v) + tanh(B@u - u/2) + 2*L@B@v where B operator"
    found = joint(text, {}, {"u": 1, "v": 2}, operator=laplacian, operators={"B": further})

    def field(state: np.ndarray) -> np.ndarray:
        u, v = state[:7], state[7:]
        carried = 4 * further @ (2 - v) + np.tanh(further @ u - u / 2) + 2 * laplacian @ further @ v
        return np.concatenate([3 - u - 2 * further @ (u * v) - laplacian @ u, carried])

    rest, size = np.concatenate([np.ones(7), np.full(7, 2.0)]), 1e-6
    assert abs(field(rest)).max() < 1e-14
    jacobian = np.stack([(field(rest + size * e) - field(rest - size * e)) / (2 * size) for e in np.eye(14)], axis=1)
    expected = np.linalg.eigvals(jacobian)
    assert found.modes.growth == pytest.approx(expected.real.max(), abs=1e-7)
    assert np.allclose(np.sort(found.modes.eigenvalues.real), np.sort(expected.real), atol=1e-6)
    assert "B@1 = 1/2" in found.assumes


def test_words_keep_their_order() -> None:
    L, B = sp.symbols("L B", commutative=False)
    words = words_of(sp.ImmutableMatrix([[L * B, 0], [0, B * L]]))
    assert words[("L", "B")] == sp.Matrix([[1, 0], [0, 0]])
    assert words[("B", "L")] == sp.Matrix([[0, 0], [0, 1]])


def test_operators_of_the_package_and_texts() -> None:
    graph = rd.generators.ring(5)
    operator = graph.operator("row", dtype=torch.float64)
    _, difference = ring(5)
    answer = joint("u' = -L@u + B@u where B antisymmetric", {}, operator=operator, operators={"B": difference})
    assert answer.unstable == ()
    assert answer.modes.growth == pytest.approx(0, abs=1e-12)
    again = joint("u' = -L@u + B@u where B operator", {}, operator=operator, operators={"B": operator})
    assert again.modes.growth == pytest.approx(1)
    assert "P(lam, B)" in str(answer)
    assert "<table" in answer._repr_html_()
    assert answer.to_dict()["commutes"] is True
    assert joint("u' = -L@u + B@u where B antisymmetric", {}).to_dict()["growth"] is None


def test_steady_states_need_constants() -> None:
    text = "u' = u - u**3 - L@u + B@u where B signed"
    laplacian, difference = ring(5)
    assert joint(text, {}).state.values == {"u": 0}
    with pytest.raises(NotApplicable, match="B need not keep"):
        joint(text, {}, {"u": 1})
    assert joint(text, {}, {"u": 1}, operator=laplacian, operators={"B": difference}).state.values == {"u": 1}
    uneven = np.diag(np.arange(5.0))
    with pytest.raises(NotApplicable, match="B need not keep"):
        joint(text, {}, {"u": 1}, operator=laplacian, operators={"B": uneven})
    stochastic = joint("u' = u - u**3 - L@u + B@u - u where B stochastic", {}, {"u": 1})
    assert stochastic.state.values == {"u": 1}


def test_what_does_not_fit_is_refused() -> None:
    text = "u' = -L@u + B@u where B antisymmetric"
    laplacian, difference = ring(5)
    with pytest.raises(InvalidArgument, match="antisymmetric"):
        joint(text, {}, operator=laplacian, operators={"B": laplacian})
    with pytest.raises(InvalidArgument, match="without a matrix"):
        joint(text, {}, operator=laplacian)
    with pytest.raises(InvalidArgument, match="number of nodes"):
        joint(text, {}, operator=ring(4)[0], operators={"B": difference})
    with pytest.raises(UnknownName):
        joint(text, {}, operator=laplacian, operators={"B": difference, "C": difference})
    with pytest.raises(InvalidArgument, match="norms of B"):
        joint(text, {}, norms={"C": 1})
    with pytest.raises(InvalidArgument, match="operators of a graph"):
        _ = joint(text, {}).unstable
    with pytest.raises(InvalidArgument, match="eigenvalue of each"):
        joint(text, {}).growth(L=1)
    with pytest.raises(InvalidArgument, match="no operators but A"):
        rd.dispersion("u' = -L@u", {}, operators={"B": difference})
    none = rd.generators.path(4).operator("none", dtype=torch.float64)
    with pytest.raises(NotApplicable, match="L = D - A"):
        joint("u' = A@u + B@u where B operator", {}, operator=none, operators={"B": np.eye(4)})
    with pytest.raises(NotApplicable, match="L = D - A"):
        rd.dispersion("u' = A@u - v; v' = u", {}, operator=none)


# ---------------------------------------------------------------------- directed operators without others
@settings(max_examples=examples(40))
@given(st.integers(2, 7), st.integers(0, 10**6))
def test_numerical_ranges_lie_in_their_box(nodes: int, seed: int) -> None:
    source = np.random.default_rng(seed)
    matrix = source.normal(size=(nodes, nodes))
    box = range_box(matrix)
    vectors = source.normal(size=(nodes, 50)) + 1j * source.normal(size=(nodes, 50))
    vectors /= np.linalg.norm(vectors, axis=0)
    values = np.einsum("in,ij,jn->n", vectors.conj(), matrix, vectors)
    assert (values.real >= float(box.lower)).all()
    assert (values.real <= float(box.upper)).all()
    assert (np.abs(values.imag) <= float(box.height)).all()


@settings(max_examples=examples(12))
@given(st.integers(0, 10**6), st.sampled_from([(1, False), (1, True), (2, False)]))
def test_growth_over_the_numerical_range_of_directed_graphs(seed: int, shape: tuple[int, bool]) -> None:
    """No eigenvalue of the dense generator, and no P inside the box, grows faster than the bound."""
    size, squared = shape
    source = np.random.default_rng(seed)
    nodes = int(source.integers(3, 8))
    weights = source.random((nodes, nodes)) * (source.random((nodes, nodes)) < 0.5) + np.roll(np.eye(nodes), 1, axis=1)
    laplacian = np.eye(nodes) - weights / weights.sum(axis=1, keepdims=True)
    fields = ["u", "v"][:size]
    local, spread = source.integers(-3, 4, (size, size)), source.integers(0, 4, (size, size))
    power = "L@L@" if squared else "L@"
    lines = [
        f"{f}' = " + " + ".join(f"({local[i, j]})*{g} - ({spread[i, j]})*({power}{g})" for j, g in enumerate(fields))
        for i, f in enumerate(fields)
    ]
    relation = rd.dispersion("; ".join(lines), {}, operator=laplacian)
    moved = np.linalg.matrix_power(laplacian, 2 if squared else 1)
    expected = np.linalg.eigvals(np.kron(local, np.eye(nodes)) - np.kron(spread, moved)).real.max()
    bound = relation.bound
    assert bound.is_proved
    assert expected <= bound.value + ROUNDING * max(1.0, abs(expected))
    box = bound.box
    real = source.uniform(float(box.lower), float(box.upper), 200)
    inside = real + 1j * source.uniform(-1, 1, 200) * float(box.height)
    assert relation.growth(inside).max() <= bound.value + ROUNDING * max(1.0, abs(bound.value))
    assert relation.growth(bound.place) == pytest.approx(bound.value, abs=1e-6 * max(1.0, abs(bound.value)))


def test_symmetric_graphs_need_no_numerical_range() -> None:
    assert rd.dispersion("u' = -L@u + v; v' = -u", {}, operator=ring(5)[0]).bound is None
    assert rd.dispersion("u' = -L@u + v; v' = -u", {}).bound is None
    one = Linearisation(sp.ImmutableMatrix([[3 * lam - lam**2]]))
    assert growth_over(one, RangeBox(sp.S.Zero, sp.Integer(2), sp.S.Zero)).value == pytest.approx(2.25, abs=1e-7)


def test_the_constant_mode_does_not_grow_by_rounding() -> None:
    operator = rd.generators.path(5).operator("row", dtype=torch.float64)
    relation = rd.dispersion("u' = -L@u; v' = -v - L@v", {}, operator=operator)
    assert relation.modes.unstable == ()
