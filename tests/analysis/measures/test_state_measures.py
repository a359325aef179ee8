"""Measures of states on graphs: worked out by hand, against dense numpy, as relations, and on bad input."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import rdgraph as rd
from analysis.measures import edge_sums as module
from analysis.measures.class_separation import fisher_ratio
from analysis.measures.distances import kernel_distance, mad
from analysis.measures.edge_sums import nullspace, symmetrised
from analysis.measures.energies import dirichlet_energy, laplacian_energy, normalised_energy, rayleigh
from analysis.measures.measure_records import measure_all
from analysis.measures.ranks import effective_rank, numerical_rank
from rdgraph.graphs.generators import barabasi_albert, complete, erdos_renyi, grid, path, ring, star
from rdgraph.graphs.normalisation import dense_operator
from rdgraph.graphs.operator import stack
from rdgraph.testing import adjacency, graph_families, states
from tests.analysis.measures.measured_states import F64, KINDS, STAR, column, operator, random, value
from tests.property_examples import examples

ON_A_GRAPH = (dirichlet_energy, laplacian_energy, normalised_energy, rayleigh, mad, kernel_distance)
QUOTIENTS = (normalised_energy, rayleigh, kernel_distance)


BRANCH = column(2, 1, 0, 0)
#: Two edges and a node without any.
PIECES = rd.Graph.from_edges([[0, 1, 2, 3], [1, 0, 3, 2]], num_nodes=5)


# ---------------------------------------------------------------------- energies by hand
def test_dirichlet_energy_by_hand() -> None:
    # |h0 - h1|^2 = 1 + 1 with weight 2, |h1 - h2|^2 = 4 with weight 1/2, each in both directions: 2(4 + 2)/3
    graph = rd.Graph.from_edges([[0, 1, 1, 2], [1, 0, 2, 1]], weight=[2.0, 2.0, 0.5, 0.5])
    H = torch.tensor([[0.0, 1.0], [1.0, 0.0], [3.0, 0.0]], dtype=F64)
    assert value(dirichlet_energy, H, operator(graph)) == pytest.approx(4.0, rel=1e-15)
    # a self-loop of any weight adds nothing
    assert value(dirichlet_energy, H, operator(graph, loops=7.0)) == pytest.approx(4.0, rel=1e-15)


def test_dirichlet_energy_of_a_directed_graph_counts_the_edges_that_are_there() -> None:
    # 0 -> 1 and 1 -> 2 with differences 1 and 2: (1 + 4)/3
    graph = rd.Graph.from_edges([[0, 1], [1, 2]])
    assert value(dirichlet_energy, column(0, 1, 3), operator(graph)) == pytest.approx(5 / 3, rel=1e-15)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("none", 9.0),  # edges with differences 1, 2, 2
        ("symmetric", 5 - 4 / math.sqrt(3)),  # |h|^2 - 2 h0 h1/sqrt(3*1)
        ("row", 7 / 3),  # |h|^2 - h0 h1/3 - h1 h0
        ("column", 7 / 3),  # the transpose has the same quadratic form
    ],
)
def test_laplacian_and_normalised_energy_by_hand(kind: str, expected: float) -> None:
    op = operator(STAR, kind)
    assert value(laplacian_energy, BRANCH, op) == pytest.approx(expected, rel=1e-14)
    assert value(normalised_energy, BRANCH, op) == pytest.approx(expected / 5, rel=1e-14)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("none", 9 / 5),
        ("symmetric", 1 - 4 / math.sqrt(75)),
        ("row", 9 / 13),  # h'(D - W)h = 9 over sum d_i h_i^2 = 3*4 + 1
        ("column", 3 / 7),  # g = h/d = (2/3, 1, 0, 0): g'(D - W)g = 1/9 + 4/9 + 4/9 over sum h_i^2/d_i = 4/3 + 1
    ],
)
def test_rayleigh_quotient_by_hand(kind: str, expected: float) -> None:
    assert value(rayleigh, BRANCH, operator(STAR, kind)) == pytest.approx(expected, rel=1e-14)


def test_energy_of_a_row_normalised_operator_may_be_negative_but_its_rayleigh_quotient_is_not() -> None:
    # hub 3, nine leaves 1: |h|^2 = 18, hub times mean of leaves 3, leaves times hub 27
    H = column(3, *[1] * 9)
    assert value(laplacian_energy, H, operator(star(10), "row")) == pytest.approx(-12, rel=1e-14)
    # nine differences of 2 over 9*9 + 9
    assert value(rayleigh, H, operator(star(10), "row")) == pytest.approx(36 / 90, rel=1e-14)


def test_nodes_without_edges_count_where_the_laplacian_is_normalised() -> None:
    H = column(1, 1, 2, 2, 5)
    assert value(laplacian_energy, H, operator(PIECES, "none")) == 0
    for kind in ("symmetric", "row", "column"):
        assert value(laplacian_energy, H, operator(PIECES, kind)) == pytest.approx(25, rel=1e-14)
        assert value(rayleigh, H, operator(PIECES, kind)) == pytest.approx(25 / 35, rel=1e-14)
    # a self-loop makes the lonely node its own neighbour: nothing is left
    assert value(laplacian_energy, H, operator(PIECES, "symmetric", loops=1.0)) == pytest.approx(0, abs=1e-14)


def test_signed_graphs_have_a_laplacian_energy() -> None:
    # weights 1 and -2, D = (1, 3, 2): (h0 - h1)^2 + 2 (h1 + h2)^2 = 1 + 2*25
    graph = rd.Graph.from_edges([[0, 1, 1, 2], [1, 0, 2, 1]], weight=[1.0, 1.0, -2.0, -2.0], signed=True)
    assert value(laplacian_energy, column(1, 2, 3), operator(graph)) == pytest.approx(51, rel=1e-15)


# ---------------------------------------------------------------------- angles, distances, ranks, classes by hand
def test_mad_by_hand() -> None:
    # directions 0, 90, 270 degrees on a path: distances 1 and 2; node means 1, 3/2, 2
    H = torch.tensor([[1.0, 0.0], [0.0, 2.0], [0.0, -1.0]], dtype=F64)
    for kind in KINDS:
        assert value(mad, H, operator(path(3), kind)) == pytest.approx(1.5, rel=1e-15)
        assert value(mad, H, operator(path(3), kind, loops=1.0)) == pytest.approx(1.5, rel=1e-15)
    # 45 degrees: 1 - sqrt(1/2) at both nodes
    pair = torch.tensor([[1.0, 0.0], [3.0, 3.0]], dtype=F64)
    assert value(mad, pair, operator(path(2))) == pytest.approx(1 - math.sqrt(0.5), rel=1e-14)


def test_mad_leaves_out_zero_vectors_and_lonely_nodes() -> None:
    # node 1 is zero: its pairs go, and with them node 0; the pair 2-3 is opposite
    assert value(mad, column(1, 0, 1, -1), operator(path(4))) == 2
    assert value(mad, column(1, -1, 1, -1, 3), operator(PIECES)) == 2
    assert math.isnan(value(mad, column(1, 0, 1), operator(path(3))))
    assert math.isnan(value(mad, column(1, 2, 3), operator(rd.Graph.from_edges([[], []], num_nodes=3))))


@pytest.mark.parametrize(
    ("kind", "loops", "part"),
    [
        ("none", 0.0, 1 / 4),  # constants: v0^2/|v|^2 = 1/4
        ("row", 0.0, 1 / 4),
        ("symmetric", 0.0, 3 / 6),  # v = sqrt(3, 1, 1, 1)
        ("column", 0.0, 9 / 12),  # v = (3, 1, 1, 1)
        ("symmetric", 1.0, 4 / 10),  # v = sqrt(4, 2, 2, 2)
        ("column", 0.5, 12.25 / 19),  # v = (3.5, 1.5, 1.5, 1.5)
    ],
)
def test_kernel_distance_by_hand(kind: str, loops: float, part: float) -> None:
    found = value(kernel_distance, column(1, 0, 0, 0), operator(STAR, kind, loops))
    assert found == pytest.approx(math.sqrt(1 - part), rel=1e-14)


def test_the_kernel_is_taken_per_component() -> None:
    H = column(1, 1, 5, 5, 7)
    assert value(kernel_distance, H, operator(PIECES, "none")) == pytest.approx(0, abs=1e-15)
    for kind in ("symmetric", "row", "column"):
        # the node without edges decays on its own: |7| over sqrt(1 + 1 + 25 + 25 + 49)
        assert value(kernel_distance, H, operator(PIECES, kind)) == pytest.approx(7 / math.sqrt(101), rel=1e-14)
        assert value(kernel_distance, H, operator(PIECES, kind, loops=2.0)) == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("kind", ["symmetric", "row", "column"])
def test_degrees_of_a_weighted_graph_are_found_behind_its_operator(kind: str) -> None:
    # path with weights 1 and 8: degrees 1, 9, 8; what is known is d up to a factor
    graph = rd.Graph.from_edges([[0, 1, 1, 2], [1, 0, 2, 1]], weight=[1.0, 1.0, 8.0, 8.0])
    expected = {"symmetric": [1, 3, math.sqrt(8)], "row": [1, 1, 1], "column": [1, 9, 8]}[kind]
    found = nullspace(operator(graph, kind)).vector
    torch.testing.assert_close(found / found[0], torch.tensor(expected, dtype=F64), rtol=1e-12, atol=0)
    symmetric, scaling = symmetrised(operator(graph, kind))
    torch.testing.assert_close(symmetric.dense(), operator(graph, "symmetric").dense(), rtol=1e-14, atol=0)
    power = {"symmetric": 0, "row": 0.5, "column": -0.5}[kind]
    degree = torch.tensor([1.0, 9.0, 8.0], dtype=F64)
    torch.testing.assert_close(scaling / scaling[0], degree**power, rtol=1e-12, atol=0)


def test_unweighted_graphs_have_their_own_degrees_with_self_loops_too() -> None:
    # degrees 3, 1, 1, 1 and a loop of weight 1/2: 3.5, 1.5, 1.5, 1.5; in pieces every lonely node has its loop alone
    _, scaling = symmetrised(operator(STAR, "row", loops=0.5))
    torch.testing.assert_close(scaling.square(), torch.tensor([3.5, 1.5, 1.5, 1.5], dtype=F64), rtol=1e-14, atol=0)
    _, scaling = symmetrised(operator(PIECES, "column", loops=0.25))
    torch.testing.assert_close(scaling**-2, torch.tensor([1.25] * 4 + [0.25], dtype=F64), rtol=1e-14, atol=0)


def test_components_are_numbered_within_every_member() -> None:
    found = nullspace(stack([operator(g) for g in (path(5), PIECES, ring(5))]))
    assert found.component.tolist() == [[0] * 5, [0, 0, 1, 1, 2], [0] * 5]
    assert found.num_components == 3


@pytest.mark.parametrize("kind", ["symmetric", "row", "column"])
def test_weighted_graphs_in_single_precision(kind: str) -> None:
    graph = barabasi_albert(60, 2, seed=5)
    size = np.exp(np.random.default_rng(0).normal(size=60))
    weighted = rd.Graph.from_edges(graph.edge_index, 60, size[graph.edge_index].prod(0))
    H = random(60, 2)
    found = measure_all(H.float(), plain=weighted.operator("none"), op=weighted.operator(kind))
    exact = measure_all(H, plain=operator(weighted), op=operator(weighted, kind))
    for name, values in found.items():
        torch.testing.assert_close(values.double(), exact[name].double(), rtol=1e-4, atol=1e-5)


def test_degrees_of_a_long_weighted_path() -> None:
    weight = np.exp(np.random.default_rng(3).normal(size=399))
    line = np.arange(399)
    pairs = np.concatenate([[line, line + 1], [line + 1, line]], axis=1)
    graph = rd.Graph.from_edges(pairs, 400, np.tile(weight, 2))
    found = nullspace(operator(graph, "symmetric")).vector.numpy()
    root = np.sqrt(graph.degree)
    np.testing.assert_allclose(found / np.linalg.norm(found), root / np.linalg.norm(root), rtol=1e-8)


def test_effective_and_numerical_rank_by_hand() -> None:
    # singular values 3 and 1: p = 3/4, 1/4, entropy log 4 - (3/4) log 3
    H = torch.tensor([[0.0, 3.0], [1.0, 0.0], [0.0, 0.0]], dtype=F64)
    assert effective_rank(H).item() == pytest.approx(4 / 3**0.75, rel=1e-14)
    assert effective_rank(torch.eye(5, 3, dtype=F64)).item() == pytest.approx(3, rel=1e-14)
    assert effective_rank(torch.ones(5, 3, dtype=F64)).item() == pytest.approx(1, rel=1e-12)
    assert [numerical_rank(H, tol=t).item() for t in (0.3, 1 / 3 + 1e-9, 0.9)] == [2, 1, 1]
    small = torch.diag(torch.tensor([1.0, 1e-12, 1e-17], dtype=F64))
    assert numerical_rank(small).item() == 2
    assert numerical_rank(torch.stack([small, torch.ones(3, 3, dtype=F64)])).tolist() == [2, 1]
    assert numerical_rank(small.float()).item() == 1


def test_fisher_ratio_by_hand() -> None:
    # class means (1, 0) and (5, 3), mean (3, 1.5): between 4(4 + 2.25) = 25, within 1 + 1 + 4 + 4 = 10
    H = torch.tensor([[0.0, 0.0], [2.0, 0.0], [5.0, 1.0], [5.0, 5.0]], dtype=F64)
    assert fisher_ratio(H, [0, 0, 1, 1]).item() == pytest.approx(2.5, rel=1e-15)
    # classes of unequal size, means 0 and 4, mean 1: between 3*1 + 1*9 = 12, within 1 + 1 = 2
    assert fisher_ratio(column(-1, 0, 1, 4), [0, 0, 0, 7]).item() == pytest.approx(6, rel=1e-15)


def test_fisher_ratio_leaves_out_unknown_nodes_and_knows_its_limits() -> None:
    H = column(0, 2, 4, 6)
    assert fisher_ratio(column(0, 2, 4, 6, 1e6), [0, 0, 1, 1, -1]).item() == fisher_ratio(H, [0, 0, 1, 1]).item() == 4
    assert fisher_ratio(column(1, 1, 2, 2), [0, 0, 1, 1]).item() == math.inf
    assert math.isnan(fisher_ratio(column(1, 1, 1, 1), [0, 0, 1, 1]).item())
    # every member its own labels: 4, and means 2 and 4 around 3: 4*1/(4*4)
    labels = torch.tensor([[0, 0, 1, 1], [0, 1, 0, 1]])
    assert fisher_ratio(H, labels).tolist() == pytest.approx([4, 0.25], rel=1e-15)


# ---------------------------------------------------------------------- relations between the energies
@settings(max_examples=examples(40))
@given(st.data())
def test_dirichlet_energy_is_twice_the_trace_over_the_nodes(data: st.DataObject) -> None:
    """E(H) = (2/N) tr(H'(D - W)H), and E(D^-1/2 G) = (2/N) tr(G' L_sym G) where every node has an edge."""
    graph = rd.Graph.from_dense(data.draw(adjacency(2, 7, connected=True, weighted=True)))
    H = torch.as_tensor(data.draw(states(graph.num_nodes, 2)))
    plain, symmetric = operator(graph), operator(graph, "symmetric")
    n, degree = graph.num_nodes, torch.tensor(graph.degree)[:, None]
    torch.testing.assert_close(dirichlet_energy(H, plain), 2 / n * laplacian_energy(H, plain), rtol=1e-12, atol=1e-12)
    through_roots = dirichlet_energy(H / degree.sqrt(), plain)
    torch.testing.assert_close(through_roots, 2 / n * laplacian_energy(H, symmetric), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("graph", [ring(7), complete(5), grid(3, 4, periodic=True)], ids=["ring", "complete", "torus"])
def test_the_two_energies_agree_on_regular_graphs(graph: rd.Graph) -> None:
    """E = (2d/N) tr(H' L_sym H) where every node has degree d."""
    d, n = graph.degree[0], graph.num_nodes
    H = random(6, n, 3)
    expected = 2 * d / n * laplacian_energy(H, operator(graph, "symmetric"))
    torch.testing.assert_close(dirichlet_energy(H, operator(graph)), expected, rtol=1e-12, atol=0)


def test_the_two_energies_disagree_on_a_star_and_neither_bounds_the_other() -> None:
    """1 costs L_sym 4 - 2 sqrt 3 and D - W nothing; sqrt(d) costs D - W 3 (sqrt 3 - 1)^2 and L_sym nothing."""
    plain, symmetric = operator(STAR), operator(STAR, "symmetric")
    constant, root = column(1, 1, 1, 1), column(math.sqrt(3), 1, 1, 1)
    assert value(dirichlet_energy, constant, plain) == 0
    assert value(laplacian_energy, constant, symmetric) == pytest.approx(4 - 2 * math.sqrt(3), rel=1e-13)
    assert value(laplacian_energy, root, symmetric) == pytest.approx(0, abs=1e-30)
    assert value(dirichlet_energy, root, plain) == pytest.approx(2 / 4 * 3 * (math.sqrt(3) - 1) ** 2, rel=1e-14)


@settings(max_examples=examples(40))
@given(st.data())
def test_quotients_stay_between_the_ends_of_the_spectrum(data: st.DataObject) -> None:
    matrix = data.draw(graph_families(4, 8))
    graph = rd.Graph.from_dense(matrix)
    H = random(graph.num_nodes, 2, seed=data.draw(st.integers(0, 99)))
    kind = data.draw(st.sampled_from(KINDS))
    plain = np.diag(matrix.sum(1)) - matrix
    L = plain if kind == "none" else np.eye(len(matrix)) - dense_operator(matrix, kind)
    lowest, *_, highest = np.sort(np.linalg.eigvals(L).real)
    assert lowest - 1e-12 <= value(rayleigh, H, operator(graph, kind)) <= highest + 1e-12
    assert 0 <= value(kernel_distance, H, operator(graph, kind)) <= 1 + 1e-15
    angle = value(mad, H, operator(graph, kind))
    assert math.isnan(angle) if not matrix.any() else 0 <= angle <= 2 + 1e-15


@pytest.mark.parametrize("kind", KINDS)
def test_eigenvectors_have_their_eigenvalue_as_rayleigh_quotient(kind: str) -> None:
    graph = barabasi_albert(12, 2, seed=4)
    op = operator(graph, kind)
    L = torch.stack([op.laplacian(e[:, None])[:, 0] for e in torch.eye(12, dtype=F64)], dim=1).numpy()
    values, vectors = np.linalg.eig(L)
    found = rayleigh(torch.as_tensor(vectors.real.T[..., None].copy()), op)
    np.testing.assert_allclose(found.numpy(), values.real, atol=1e-12)


# ---------------------------------------------------------------------- dense numpy as oracle
def dense_measures(H: np.ndarray, W: np.ndarray, kind: str) -> dict[str, float]:
    """The definitions, word by word, with dense matrices and loops; H without zero rows."""
    n, degree = len(W), W.sum(1)
    A = dense_operator(W, kind)
    L = np.diag(degree) - W if kind == "none" else np.eye(n) - A
    size = np.sum(H**2)
    energy = sum(W[i, j] * np.sum((H[i] - H[j]) ** 2) for i in range(n) for j in range(n)) / n
    means = []
    for i in range(n):
        near = np.flatnonzero(W[i])
        if near.size:
            cosines = [H[i] @ H[j] / (np.linalg.norm(H[i]) * np.linalg.norm(H[j])) for j in near]
            means.append(1 - np.mean(cosines))
    _, sizes, rows = np.linalg.svd(L)
    basis = rows[sizes < 1e-9 * max(1, sizes[0])]
    rest = H - basis.T @ (basis @ H)
    sigma = np.linalg.svd(H, compute_uv=False)
    share = sigma[sigma > 0] / sigma.sum()
    return {
        "dirichlet_energy": energy,
        "laplacian_energy": np.trace(H.T @ L @ H),
        "normalised_energy": np.trace(H.T @ (np.diag(degree) - W) @ H) / size,
        "mad": np.mean(means) if means else np.nan,
        "kernel_distance": np.linalg.norm(rest) / np.sqrt(size),
        "effective_rank": np.exp(-np.sum(share * np.log(share))),
        "numerical_rank": np.linalg.matrix_rank(H),
    }


@settings(max_examples=examples(60))
@given(st.data())
def test_measures_equal_dense_numpy(data: st.DataObject) -> None:
    weighted, kind = data.draw(st.booleans()), data.draw(st.sampled_from(KINDS))
    W = data.draw(adjacency(2, 7, weighted=weighted))
    H = random(len(W), data.draw(st.integers(1, 3)), seed=data.draw(st.integers(0, 99)))
    graph = rd.Graph.from_dense(W)
    found = measure_all(H, plain=operator(graph), op=operator(graph, kind))
    for name, expected in dense_measures(H.numpy(), W, kind).items():
        assert found[name].item() == pytest.approx(expected, rel=1e-10, abs=1e-10, nan_ok=True), name


@settings(max_examples=examples(30))
@given(st.data())
def test_rayleigh_quotient_equals_dense_numpy(data: st.DataObject) -> None:
    W = data.draw(adjacency(2, 7, connected=True, weighted=True))
    H = random(len(W), 2, seed=data.draw(st.integers(0, 99))).numpy()
    kind = data.draw(st.sampled_from(KINDS))
    degree = W.sum(1)
    weight = np.diag({"row": degree, "column": 1 / degree}.get(kind, np.ones(len(W))))
    L = np.diag(degree) - W if kind == "none" else np.eye(len(W)) - dense_operator(W, kind)
    expected = np.trace(H.T @ weight @ L @ H) / np.trace(H.T @ weight @ H)
    found = value(rayleigh, torch.as_tensor(H), operator(rd.Graph.from_dense(W), kind))
    assert found == pytest.approx(expected, rel=1e-10, abs=1e-12)


def test_long_edge_lists_are_taken_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, H = erdos_renyi(20, 0.4, seed=1), random(3, 20, 2)
    whole = [measure(H, operator(graph)) for measure in ON_A_GRAPH]
    monkeypatch.setattr(module, "MAX_GATHERED", (6 * 7, 6 * 7))  # seven edges at a time
    pieces = [measure(H, operator(graph)) for measure in ON_A_GRAPH]
    torch.testing.assert_close(pieces, whole, rtol=1e-13, atol=0)
