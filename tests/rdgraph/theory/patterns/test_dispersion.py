"""Dispersion relations against dense Jacobians of whole graphs, and kinds against an oracle in numpy."""

from __future__ import annotations

import random

import numpy as np
import pytest
import sympy as sp

import rdgraph as rd
from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.theory.patterns.dispersion import MEANINGS, dispersion_of
from rdgraph.theory.patterns.kinetics import from_reaction

SCHNAKENBERG = "u' = a - u + u**2*v - Du*L@u; v' = b - u**2*v - Dv*L@v"
VALUES = {"a": 0.1, "b": 0.9, "Du": 0.02, "Dv": 1}


def ring(nodes: int, directed: bool = False) -> np.ndarray:
    step = np.roll(np.eye(nodes), 1, axis=1)
    return np.eye(nodes) - (step if directed else (step + step.T) / 2)


# ---------------------------------------------------------------------- whole graphs
@pytest.mark.parametrize("directed", [False, True])
def test_modes_are_the_spectrum_of_the_whole_jacobian(directed: bool) -> None:
    """Eigenvalues of the Jacobian (2 n x 2 n) at the steady state, against those of P at the eigenvalues of L."""
    laplacian = ring(9, directed)
    relation = rd.dispersion(SCHNAKENBERG, VALUES, operator=laplacian)
    u, v = 1.0, 0.9
    local = np.array([[-1 + 2 * u * v, u**2], [-2 * u * v, -(u**2)]])
    whole = np.kron(local, np.eye(9)) - np.kron(np.diag([0.02, 1.0]), laplacian)
    expected = np.sort(np.linalg.eigvals(whole).real)
    answer = np.sort(relation.linearisation.eigenvalues(relation.spectrum.eigenvalues).real.ravel())
    assert np.allclose(answer, expected, atol=1e-10)
    assert relation.modes.growth.max() == pytest.approx(expected[-1], abs=1e-10)
    assert len(relation.modes.unstable) == int((relation.modes.growth > 0).sum()) > 0


def test_terms_with_operators_on_products_are_linearised() -> None:
    """u' = ... - L@(u*v) + tanh(A@u): the Jacobian on a ring by finite differences."""
    text = "u' = 1 - u - L@(u*v) + tanh(A@u) - tanh(u); v' = 3*u - 3*v - 2*L@v"
    relation = rd.dispersion(text, {}, {"u": 1, "v": 1}, operator=ring(7))
    laplacian = ring(7)
    average = np.eye(7) - laplacian

    def field(state: np.ndarray) -> np.ndarray:
        u, v = state[:7], state[7:]
        return np.concatenate(
            [1 - u - laplacian @ (u * v) + np.tanh(average @ u) - np.tanh(u), 3 * u - 3 * v - 2 * laplacian @ v]
        )

    rest, size = np.ones(14), 1e-6
    assert abs(field(rest)).max() < 1e-14
    jacobian = np.stack([(field(rest + size * e) - field(rest - size * e)) / (2 * size) for e in np.eye(14)], axis=1)
    expected = np.linalg.eigvals(jacobian).real.max()
    assert relation.modes.growth.max() == pytest.approx(expected, abs=1e-7)


def test_second_order_fields() -> None:
    relation = rd.dispersion("H'' = -gamma*L@H - alpha*H'", {"gamma": 4, "alpha": 1})
    assert relation.fields == ("H", "H'")
    assert relation.kind == "marginal"
    assert relation.growth(1.0) == pytest.approx(-0.5)
    assert relation.frequency(1.0) == pytest.approx(np.sqrt(4 - 0.25))
    assert relation.growth(np.array([0.0, 1.0, 2.0])).shape == (3,)


def test_complex_eigenvalues_of_directed_graphs() -> None:
    relation = rd.dispersion("u' = -L@L@u; v' = -v - L@v", {})
    point = 1 - np.exp(1j * np.pi / 3)
    assert relation.growth(point) == pytest.approx(max((-(point**2)).real, (-1 - point).real))
    assert relation.kind == "marginal"  # on real lam; a directed ring has modes that grow
    assert rd.dispersion("u' = -L@L@u; v' = -v - L@v", {}, operator=ring(12, directed=True)).modes.unstable


def test_operators_must_keep_constants_where_the_state_is_not_zero() -> None:
    path = np.array([[1.0, -1 / np.sqrt(2), 0], [-1 / np.sqrt(2), 1, -1 / np.sqrt(2)], [0, -1 / np.sqrt(2), 1]])
    with pytest.raises(NotApplicable, match="constant"):
        rd.dispersion(SCHNAKENBERG, VALUES, operator=path)
    assert rd.dispersion("u' = -L@u + v; v' = -u", {}, operator=path).modes.eigenvalues[0] == pytest.approx(
        0, abs=1e-12
    )


def test_operators_of_the_package() -> None:
    graph = rd.Graph.from_edges([[0, 1, 2, 3], [1, 2, 3, 0]], num_nodes=4).undirected()
    for normalisation, largest in (("row", 2.0), ("none", 4.0)):
        relation = rd.dispersion(SCHNAKENBERG, VALUES, operator=graph.operator(normalisation), to=4)
        assert relation.modes.eigenvalues[-1] == pytest.approx(largest)
        assert np.allclose(relation.modes.growth, relation.growth(relation.modes.eigenvalues))


# ---------------------------------------------------------------------- kinds
def oracle(jacobian: np.ndarray, diffusion: np.ndarray, to: float) -> str | None:
    """The kind by dense sampling; None too near a border."""
    grid = np.linspace(0, to, 3001)
    values = np.linalg.eigvals(jacobian - grid[:, None, None] * diffusion)
    leading = values[np.arange(len(grid)), values.real.argmax(axis=1)]
    growth = leading.real
    if abs(growth[0]) < 1e-6 or abs(growth[1:].max()) < 1e-5:
        return None
    if growth[0] > 0:
        growing = int((values[0].real > 0).sum())
        if growing % 2 or (abs(values[0].real) < 1e-6).any() or 0 < abs(leading[0].imag) < 1e-4:
            return "unstable at 0" if growing % 2 else None
        lowest = np.linalg.det(grid[:, None, None] * diffusion - jacobian).min()
        if abs(lowest) < 1e-5:
            return None
        return "turing-hopf" if lowest < 0 and leading[0].imag != 0 else "hopf"
    if growth.max() < 0:
        return "stable"
    edges = np.flatnonzero(np.diff(np.concatenate([[0], (growth > 0).astype(int), [0]])))
    best = [a + growth[a:b].argmax() for a, b in zip(edges[::2], edges[1::2], strict=True)]
    if any(growth[k] < 1e-5 or 0 < abs(leading[k].imag) < 1e-3 for k in best):
        return None
    turning = {bool(leading[k].imag != 0) for k in best}
    return "turing-wave" if len(turning) == 2 else "wave" if True in turning else "turing"


@pytest.mark.slow
def test_kinds_agree_with_dense_sampling() -> None:
    """Linear reactions of two and three fields, many of them near Turing instabilities."""
    source = random.Random(2)
    seen: dict[str, int] = {}
    for _ in range(120):
        size = source.choice([2, 2, 3])
        names = ["u", "v", "w"][:size]
        letters = sp.symbols(names, real=True)
        matrix = sp.Matrix(size, size, lambda i, j: sp.Rational(source.randint(-6, 6), source.choice([1, 2])))
        matrix[0, 0], matrix[1, 1] = sp.Rational(source.randint(0, 3), 2), -abs(matrix[1, 1]) - source.randint(0, 2)
        rates = [sum(matrix[i, j] * letters[j] for j in range(size)) for i in range(size)]
        diffusion = [sp.Rational(source.choice([0, 1, 1, 8, 30]), 50 if k == 0 else 4) for k in range(size)]
        relation = dispersion_of(from_reaction(names, rates, sp.diag(*diffusion).tolist()))
        expected = oracle(np.array(matrix, dtype=float), np.diag(np.array(diffusion, dtype=float)), 2.0)
        if expected is None:
            continue
        seen[expected] = seen.get(expected, 0) + 1
        assert relation.kind == expected, (matrix, diffusion)
        if relation.fastest is not None:
            grid = np.linspace(0, 2, 2001)
            assert relation.fastest.is_proved
            assert relation.fastest.growth >= relation.growth(grid).max() - 1e-8
    assert {"stable", "turing", "hopf", "turing-hopf", "unstable at 0"} <= set(seen)
    assert set(seen) <= set(MEANINGS)


def test_three_fields_can_have_waves() -> None:
    """A stable reaction whose complex pair grows at finite lam: two fields that do not spread and one that does."""
    matrix = sp.Matrix([[2, 1, 4], [-1, -3, 2], [-3, -2, -1]])
    letters = sp.symbols("u v w", real=True)
    rates = [sum(matrix[i, j] * letters[j] for j in range(3)) for i in range(3)]
    kinetics = from_reaction(["u", "v", "w"], rates, sp.diag(0, 5, 0).tolist())
    relation = dispersion_of(kinetics, to=2)
    assert relation.kind == oracle(np.array(matrix, dtype=float), np.diag([0.0, 5, 0]), 2.0) == "wave"
    assert relation.fastest is not None
    assert relation.fastest.frequency > 1


def test_transport_that_amplifies_is_not_called_turing() -> None:
    assert rd.dispersion("u' = -u + 3*L@u - L@L@u", {}).kind == "anti-diffusion"
    assert rd.dispersion("u' = -u + 3*L@u; v' = -v - L@v", {}).kind == "anti-diffusion"


# ---------------------------------------------------------------------- irrational and certified states
def test_irrational_steady_states_have_enclosed_bands() -> None:
    text = "u' = u - u**3/3 - v + c - Du*L@u; v' = epsilon*(u + a - b*v) - Dv*L@v"
    values = {"a": 0.1, "b": 0.9, "c": 0.1, "epsilon": 1.2, "Du": 0.05, "Dv": 1.5}
    relation = rd.dispersion(text, values)
    u = float(relation.state.values["u"])
    local = np.array([[1 - u**2, -1.0], [1.2, -1.08]])
    grid = np.linspace(0, 2, 2001)
    growth = np.linalg.eigvals(local - grid[:, None, None] * np.diag([0.05, 1.5])).real.max(axis=1)
    (band,) = relation.unstable
    assert relation.kind == "turing"
    assert "enclosed" in relation.how
    assert grid[growth > 0].min() == pytest.approx(band.ends[0], abs=1e-3)
    assert relation.fastest is not None
    assert relation.fastest.growth == pytest.approx(growth.max(), abs=1e-6)


def test_certified_steady_states_have_a_dispersion_relation() -> None:
    relation = rd.dispersion("u' = -u + 2*tanh(v) - L@u; v' = -v + tanh(u) - L@v", {})
    assert relation.state is not None
    assert relation.state.how == "certified"
    assert relation.kind == "stable"
    assert rd.dispersion("u' = -u + 2*tanh(v) - L@u; v' = -v + tanh(u) - L@v", {}, 1).kind == "unstable at 0"


def test_a_kink_at_the_state_has_no_linearisation() -> None:
    with pytest.raises(NotApplicable, match="jumps"):
        rd.dispersion("u' = -u + relu(v); v' = u - v - L@v", {}, {"u": 0, "v": 0})
    relation = rd.dispersion("u' = 1 - 2*u + relu(v); v' = u - v - L@v", {}, {"u": 1, "v": 1})
    assert relation.symbol.subs(sp.Symbol("lam"), 0) == sp.ImmutableMatrix([[-2, 1], [1, -1]])


# ---------------------------------------------------------------------- arguments and answers
@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"values": {"a": 1}}, "expected"),
        ({"values": VALUES, "state": 5}, "among 0..0"),
        ({"values": VALUES, "state": {"u": 3, "v": 1}}, "not a steady state"),
        ({"values": VALUES, "state": {"u": 1}}, "for each of"),
        ({"values": VALUES, "to": -1}, "positive"),
        ({"values": VALUES, "operator": np.ones((2, 3))}, "matrix L"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict, reason: str) -> None:
    with pytest.raises(InvalidArgument, match=reason):
        rd.dispersion(SCHNAKENBERG, **arguments)


def test_modes_need_an_operator() -> None:
    with pytest.raises(InvalidArgument, match="operator"):
        _ = rd.dispersion(SCHNAKENBERG, VALUES).modes


def test_answers_can_be_read_and_written() -> None:
    relation = rd.dispersion(SCHNAKENBERG, VALUES, operator=ring(5))
    text = str(relation)
    assert text.startswith("kind: turing")
    assert "u = 1, v = 9/10" in text
    assert "of 5 grow" in text
    assert "<table>" in relation._repr_html_()
    assert "Dispersion of u, v" in repr(relation)
    answer = relation.to_dict()
    assert answer["symbol"] == [["4/5 - lam/50", "1"], ["-9/5", "-lam - 1"]]
    assert answer["kind"] == "turing"
    assert answer["modes"] == list(relation.modes.unstable)


# ---------------------------------------------------------------------- what "every mode decays" may be said of
def test_a_mode_that_neither_grows_nor_decays_is_not_stable() -> None:
    """-A@A has the growth -(1 - lam)^2, which is 0 at lam = 1 and nowhere positive."""
    answer = rd.dispersion("u' = -A@A@u", {})
    assert answer.growth(1.0) == 0
    assert answer.kind == "marginal"
    assert rd.dispersion("u' = -A@A@u - u", {}).kind == "stable"


def test_a_directed_graph_may_grow_where_no_real_lam_does() -> None:
    """A directed cycle of six: the oscillator decays for all real lam, and grows by 0.29 at a complex one."""
    text = "u' = v; v' = -u - L@u - v/10"
    alone = rd.dispersion(text, {})
    assert alone.kind == "stable"
    assert "real eigenvalues" in alone.assumes
    cycle = np.eye(6) - np.roll(np.eye(6), 1, axis=0)
    answer = rd.dispersion(text, {}, operator=cycle)
    assert answer.kind == "directed"
    assert float(answer.modes.growth.max()) == pytest.approx(0.29, abs=0.01)
    assert "real eigenvalues" not in answer.assumes
