"""Measures of states on graphs: worked out by hand, against dense numpy, as relations, and on bad input."""

from __future__ import annotations

import gc
import math
import weakref

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck

import rdgraph as rd
from analysis.measures import edge_sums as module
from analysis.measures.class_separation import fisher_ratio
from analysis.measures.distances import kernel_distance, mad
from analysis.measures.energies import dirichlet_energy, laplacian_energy, normalised_energy, rayleigh
from analysis.measures.laplacian_kernel import nullspace, symmetrised
from analysis.measures.ranks import effective_rank, numerical_rank
from analysis.measures.registry import MEASURES, make_measures, measure_all
from rdgraph.errors import InvalidArgument
from rdgraph.graphs.generators import barabasi_albert, complete, erdos_renyi, grid, path, ring, star
from rdgraph.graphs.normalisation import dense_operator
from rdgraph.graphs.operator import Operator
from rdgraph.graphs.operator_stack import stack
from rdgraph.testing import adjacency, graph_families, states

F64 = torch.float64
KINDS = ("symmetric", "row", "column", "none")
ON_A_GRAPH = (dirichlet_energy, laplacian_energy, normalised_energy, rayleigh, mad, kernel_distance)
QUOTIENTS = (normalised_energy, rayleigh, kernel_distance)


def column(*values: float) -> Tensor:
    return torch.tensor(values, dtype=F64)[:, None]


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, dtype=F64, generator=torch.Generator().manual_seed(seed))


def operator(graph: rd.Graph, kind: str = "none", loops: float = 0.0) -> Operator:
    return graph.operator(kind, self_loops=loops, dtype=F64)


def value(measure, H: Tensor, op: Operator) -> float:
    return measure(H, op).item()


#: Hub 0 and three leaves, degrees 3, 1, 1, 1; a state on it.
STAR = star(4)
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
@settings(max_examples=40)
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


@settings(max_examples=40)
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


@settings(max_examples=60)
@given(st.data())
def test_measures_equal_dense_numpy(data: st.DataObject) -> None:
    weighted, kind = data.draw(st.booleans()), data.draw(st.sampled_from(KINDS))
    W = data.draw(adjacency(2, 7, weighted=weighted))
    H = random(len(W), data.draw(st.integers(1, 3)), seed=data.draw(st.integers(0, 99)))
    graph = rd.Graph.from_dense(W)
    found = measure_all(H, plain=operator(graph), op=operator(graph, kind))
    for name, expected in dense_measures(H.numpy(), W, kind).items():
        assert found[name].item() == pytest.approx(expected, rel=1e-10, abs=1e-10, nan_ok=True), name


@settings(max_examples=30)
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


# ---------------------------------------------------------------------- shapes, precision, size
@pytest.mark.parametrize("kind", KINDS)
def test_members_do_not_know_of_each_other(kind: str) -> None:
    graph, H = erdos_renyi(10, 0.3, seed=2), random(2, 3, 10, 4)
    labels = torch.arange(10) % 3
    tools = {"plain": operator(graph), "op": operator(graph, kind), "labels": labels}
    together = measure_all(H, **tools)
    assert list(together) == list(MEASURES)
    for name, values in together.items():
        assert values.shape == (2, 3), name
        for place in np.ndindex(2, 3):
            torch.testing.assert_close(measure_all(H[place], **tools)[name], values[place], rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("kind", KINDS)
def test_renumbered_nodes_measure_the_same(kind: str) -> None:
    graph, order = barabasi_albert(15, 2, seed=3), np.random.default_rng(1).permutation(15)
    H, labels = random(15, 3), torch.arange(15) % 2
    other = graph.permute(order)
    one = measure_all(H, plain=operator(graph), op=operator(graph, kind), labels=labels)
    two = measure_all(H[order], plain=operator(other), op=operator(other, kind), labels=labels[order])
    torch.testing.assert_close(one, two, rtol=1e-12, atol=1e-14)


def test_soft_adjacency_has_a_kernel_and_no_inner_product() -> None:
    """Rows that sum to 1 with different weights in the two directions, one set per member."""
    base = operator(path(4), "row")
    share = torch.tensor([[1, 0.3, 0.7, 0.6, 0.4, 1], [1, 0.5, 0.5, 0.2, 0.8, 1]], dtype=F64)
    soft = base.with_weights(share, "row")
    found = kernel_distance(column(1, 0, 0, 0).expand(2, 4, 1), soft)
    torch.testing.assert_close(found, torch.full((2,), math.sqrt(3) / 2, dtype=F64))
    # a path is a tree, so any positive weights have an inner product; the triangle below has none
    assert rayleigh(column(1, 1, 1, 1), soft).abs().max() < 1e-15
    turning = operator(ring(3), "row").with_weights(torch.tensor([0.9, 0.1, 0.1, 0.9, 0.9, 0.1], dtype=F64), "row")
    assert value(kernel_distance, column(1, 1, 1), turning) < 1e-15
    with pytest.raises(rd.NotApplicable, match="undirected graph"):
        rayleigh(column(1, 2, 3), turning)


def test_nearly_constant_states_keep_their_digits() -> None:
    """Differences of 2^-40 on top of 1: the energies are exact where tr(H'(D - W)H) by a product would be rounding."""
    H = 1 + 2.0**-40 * column(0, 1, 3)
    assert value(dirichlet_energy, H, operator(path(3))) == pytest.approx(10 / 3 * 2.0**-80, rel=1e-14)
    assert value(laplacian_energy, H, operator(path(3))) == pytest.approx(5 * 2.0**-80, rel=1e-14)
    # on the ring sqrt(d) is constant: (1 + 4 + 9)/2
    assert value(laplacian_energy, H, operator(ring(3), "symmetric")) == pytest.approx(7 * 2.0**-80, rel=1e-3)
    angle = torch.tensor([[1.0, 0.0], [1.0, 2.0**-40]], dtype=F64)
    assert value(mad, angle, operator(path(2))) == pytest.approx(2.0**-81, rel=1e-12)


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e160, 4e307])
def test_size_cancels_in_quotients_and_overflows_to_infinity_in_energies(size: float) -> None:
    graph, H = erdos_renyi(8, 0.4, seed=0), random(8, 3)
    tools = {"plain": operator(graph), "op": operator(graph, "row"), "labels": [0, 1] * 4}
    one, two = measure_all(H, **tools), measure_all(size * H, **tools)
    for name in ("normalised_energy", "rayleigh", "mad", "kernel_distance", "effective_rank", "numerical_rank"):
        torch.testing.assert_close(two[name], one[name], rtol=1e-12, atol=0)
    torch.testing.assert_close(two["fisher_ratio"], one["fisher_ratio"], rtol=1e-12, atol=0)
    assert two["dirichlet_energy"].item() == (math.inf if size > 1 else pytest.approx(0, abs=1e-300))
    assert value(dirichlet_energy, torch.full((8, 1), size, dtype=F64), operator(graph)) == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("kind", KINDS)
def test_lower_precisions(kind: str, dtype: torch.dtype) -> None:
    graph, H = barabasi_albert(20, 2, seed=1), random(2, 20, 3).to(dtype)
    labels = torch.arange(20) % 2
    kinds = {"dtype": torch.float32}
    found = measure_all(H, plain=graph.operator("none", **kinds), op=graph.operator(kind, **kinds), labels=labels)
    exact = measure_all(H.double(), plain=operator(graph), op=operator(graph, kind), labels=labels)
    assert numerical_rank(H).tolist() == [3, 3]
    for name, values in found.items():
        assert values.dtype == (torch.int64 if name == "numerical_rank" else torch.float32), name
        torch.testing.assert_close(values.double(), exact[name].double(), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_state_and_operator_may_differ_in_precision(kind: str) -> None:
    graph, H = barabasi_albert(20, 2, seed=1), random(20, 3)
    single = {k: graph.operator(k, dtype=torch.float32) for k in ("none", kind)}
    exact = measure_all(H, plain=operator(graph), op=operator(graph, kind))
    for state, plain, op in ((H.float(), operator(graph), operator(graph, kind)), (H, single["none"], single[kind])):
        for name, values in measure_all(state, plain=plain, op=op).items():
            assert values.dtype in (state.dtype, torch.int64), name
            torch.testing.assert_close(values.double(), exact[name].double(), rtol=2e-5, atol=2e-6)


def test_a_large_graph_needs_no_dense_matrix() -> None:
    n = 200_000
    op, H = operator(ring(n), "symmetric"), random(n, 1)
    H[:, 0] = torch.cos(2 * math.pi * 3 / n * torch.arange(n, dtype=F64))
    assert value(rayleigh, H, op) == pytest.approx(1 - math.cos(2 * math.pi * 3 / n), rel=1e-6)
    assert value(kernel_distance, H, op) == pytest.approx(1, rel=1e-12)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_numbers_on_a_gpu(kind: str) -> None:
    graphs = [erdos_renyi(30, 0.1, seed=s) for s in range(3)]
    H, labels = random(2, 3, 30, 4), torch.arange(30) % 3
    found = {}
    for device in ("cpu", "cuda"):
        plain, op = (stack([operator(g, k) for g in graphs]).to(device) for k in ("none", kind))
        found[device] = measure_all(H.to(device), plain=plain, op=op, labels=labels.to(device))
    for name, values in found["cpu"].items():
        torch.testing.assert_close(found["cuda"][name].cpu(), values, rtol=1e-10, atol=1e-12)


# ---------------------------------------------------------------------- derivatives
@pytest.mark.parametrize("kind", KINDS)
def test_measures_are_differentiable_in_the_state(kind: str) -> None:
    graph = erdos_renyi(6, 0.5, seed=2)
    made = make_measures(plain=operator(graph), op=operator(graph, kind), labels=[0, 1, 2, 0, 1, 2])
    H = random(2, 6, 3).requires_grad_()
    for name, measure in made.items():
        if name != "numerical_rank":
            assert gradcheck(measure, (H,)), name
    assert not made["numerical_rank"](H).requires_grad


def test_a_zero_vector_does_not_spoil_the_gradient_of_the_others() -> None:
    H = torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]], dtype=F64, requires_grad=True)
    mad(H, operator(path(3))).backward()
    # 1 - cos of the angle between (1, 0) and (cos t, sin t)*sqrt 2 at t = 45 degrees: sin(t)/|h| along the turn
    turn = math.sqrt(0.5) * torch.tensor([[0.0, -1.0], [-0.5, 0.5], [0.0, 0.0]], dtype=F64)
    torch.testing.assert_close(H.grad, turn)


def test_energies_are_differentiable_in_the_weights() -> None:
    H = random(4, 2)
    plain, symmetric = operator(path(4)), operator(path(4), "symmetric")
    weights = plain.weights.clone().requires_grad_()
    dirichlet_energy(H, plain.with_weights(weights, "none")).backward()
    rows, columns = plain.pattern.rows.long(), plain.pattern.indices.long()
    torch.testing.assert_close(weights.grad, (H[rows] - H[columns]).square().sum(-1) / 4)
    weights = symmetric.weights.clone().requires_grad_()
    laplacian_energy(H, symmetric.with_weights(weights, "symmetric")).backward()
    torch.testing.assert_close(weights.grad, -(H[rows] * H[columns]).sum(-1))


# ---------------------------------------------------------------------- with solve
def test_measures_of_a_run() -> None:
    """Diffusion on an irregular graph: the Rayleigh quotient falls, the limit is sqrt(d), with an energy of its own."""
    graph = barabasi_albert(12, 2, seed=0)
    symmetric = operator(graph, "symmetric")
    field = rd.lower("-alpha*L@H", symmetric, {"alpha": 1.0}, batch=(3,))
    H0 = random(3, 12, 1)
    made = make_measures(plain=operator(graph), op=symmetric, labels=np.arange(12) % 2)
    run = rd.solve(field, H0, torch.linspace(0, 200, 21, dtype=F64), "exact", rtol=1e-12, measures=made)
    assert set(run.measures) == set(MEASURES)
    assert all(values.shape == (21, 3) for values in run.measures.values())
    assert bool((run.measures["rayleigh"].diff(dim=0) <= 1e-15).all())
    assert run.measures["kernel_distance"][-1].max() < 1e-8
    root = torch.tensor(np.sqrt(graph.degree))
    limit = root * (root @ H0[..., 0].T)[:, None] / root.square().sum()
    source, target = torch.tensor(graph.edge_index)
    plateau = (limit[:, source] - limit[:, target]).square().sum(-1) / 12
    torch.testing.assert_close(run.measures["dirichlet_energy"][-1], plateau, rtol=1e-6, atol=0)
    assert plateau.min() > 1e-6


def test_names_choose_measures() -> None:
    plain = operator(ring(4))
    assert list(make_measures(plain=plain)) == [name for name in MEASURES if name != "fisher_ratio"]
    assert list(make_measures(plain=plain, labels=[0, 0, 1, 1])) == list(MEASURES)
    assert list(make_measures(plain=plain, names=iter(["rayleigh", "mad"]))) == ["rayleigh", "mad"]
    assert all(label and latex.startswith("$") and isinstance(log, bool) for label, latex, log in MEASURES.values())


def test_a_graph_without_edges() -> None:
    nothing = rd.Graph.from_edges([[], []], num_nodes=2)
    H = column(3, 4)
    for kind, energy, distance in (("none", 0, 0), ("symmetric", 25, 1), ("row", 25, 1), ("column", 25, 1)):
        for op in (operator(nothing, kind), stack([operator(nothing, kind)] * 2)):
            assert laplacian_energy(H, op).tolist() == ([energy] * 2 if op.batch else energy)
            assert kernel_distance(H, op).max() == distance
            assert rayleigh(H, op).max() == energy / 25


def test_what_is_known_of_an_operator_follows_its_weights_and_is_forgotten_with_it() -> None:
    op = operator(path(3))
    H = column(0, 1, 3)
    before = value(kernel_distance, H, op)
    op.weights[2:] = 0.0  # cuts the edge 1-2
    op.degree[:] = torch.tensor([[1.0], [1.0], [0.0]])
    assert value(kernel_distance, H, op) == pytest.approx(math.sqrt(0.5 / 10), rel=1e-14)
    assert before != value(kernel_distance, H, op)
    for kind in KINDS:
        op = operator(path(3), kind)
        measure_all(H, plain=operator(path(3)), op=op)
        watch = weakref.ref(op)
        del op
        gc.collect()
        assert watch() is None


# ---------------------------------------------------------------------- the zero state and bad input
def test_the_zero_state() -> None:
    zero = torch.zeros(2, 4, 3, dtype=F64)
    zero[1] = random(4, 3)
    for kind in KINDS:
        found = measure_all(zero, plain=operator(STAR), op=operator(STAR, kind), labels=[0, 0, 1, 1])
        first = {name: values[0].item() for name, values in found.items()}
        assert first.pop("dirichlet_energy") == first.pop("laplacian_energy") == first.pop("numerical_rank") == 0
        assert all(math.isnan(x) for x in first.values())
        assert all(math.isfinite(values[1].item()) for values in found.values())


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_states_that_are_not_finite_are_refused(bad: float) -> None:
    H = random(3, 4, 2)
    H[1, 2, 0] = bad
    made = make_measures(plain=operator(STAR), op=operator(STAR, "row"), labels=[0, 0, 1, 1])
    for measure in made.values():
        with pytest.raises(InvalidArgument, match="finite states, got NaN or infinity in 1 of 3 members"):
            measure(H)


ARROW = rd.Graph.from_edges([[0, 1], [1, 2]])
LOPSIDED = rd.Graph.from_edges([[0, 1, 1, 2], [1, 0, 2, 1]], weight=[1.0, 2.0, 1.0, 1.0])
SIGNED = rd.Graph.from_edges([[0, 1, 1, 2], [1, 0, 2, 1]], weight=[1.0, 1.0, -1.0, -1.0], signed=True)
THREE = column(1, 2, 3)


def evenly(weight: float) -> Operator:
    """A triangle that calls itself symmetric, with weights that are not 1/2."""
    return Operator(operator(ring(3)).pattern, torch.full((6,), weight, dtype=F64), "symmetric")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: dirichlet_energy(THREE, operator(SIGNED)), "weights >= 0"),
        (lambda: rayleigh(THREE, operator(ARROW, "row")), r"undirected graph .* Graph.undirected\(\)"),
        (lambda: rayleigh(THREE, operator(LOPSIDED)), "undirected graph"),
        (lambda: kernel_distance(THREE, operator(ARROW, "column")), "undirected graph"),
        (lambda: kernel_distance(THREE, operator(SIGNED)), "weights >= 0"),
        (lambda: kernel_distance(THREE, operator(path(3)).with_weights(torch.ones(4, dtype=F64))), "free"),
        (lambda: fisher_ratio(THREE, [0, 0, 0]), "at least two classes"),
        (lambda: fisher_ratio(THREE, [[0, 1, 1], [-1, 1, 1]]), "at least two classes"),
    ],
)
def test_what_a_measure_cannot_answer_is_refused(call, words: str) -> None:
    with pytest.raises(rd.NotApplicable, match=words):
        call()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: dirichlet_energy(THREE, operator(path(3), "row")), r"normalisation none .* graph.operator\('none'\)"),
        (lambda: make_measures(plain=operator(path(3), "symmetric")), "normalisation none"),
        (
            lambda: kernel_distance(THREE, Operator(operator(path(3)).pattern, torch.ones(4, dtype=F64), "row")),
            "no positive v",
        ),
        (lambda: mad(column(1, 2), operator(path(3))), r"\(\.\.\., 3, channels\), got shape \(2, 1\)"),
        (lambda: mad(THREE[:, 0], operator(path(3))), r"state tensor .* got shape \(3,\)"),
        (lambda: mad([[1.0]], operator(path(3))), "state tensor .* got list"),
        (lambda: mad(THREE[:, :0], operator(path(3))), "none of the two empty"),
        (lambda: mad(THREE.long(), operator(path(3))), r"got torch.int64; use H.double\(\)"),
        (lambda: mad(THREE.expand(3, 3, 1), stack([operator(path(3))] * 2)), r"batch \(2,\).* got batch \(3,\)"),
        (lambda: numerical_rank(THREE, tol=1.0), "0 <= tol < 1"),
        (lambda: numerical_rank(THREE, tol=math.nan), "0 <= tol < 1"),
        (lambda: fisher_ratio(THREE, [0, 1]), r"labels \(\.\.\., 3\), one per node"),
        (lambda: fisher_ratio(THREE, [0, 1, -2]), "-1 for unknown, got -2"),
        (lambda: fisher_ratio(THREE, [0.0, 1.0, 1.0]), "whole numbers"),
        (lambda: fisher_ratio(THREE, "abc"), "whole numbers, got str"),
        (lambda: fisher_ratio(THREE.expand(2, 3, 1), torch.zeros(3, 3).long()), r"got shape \(3, 3\)"),
        (lambda: make_measures(plain=operator(path(3)), names=["fisher_ratio"]), "expected labels for fisher_ratio"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(call, words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        call()


def test_unknown_measures_are_named() -> None:
    with pytest.raises(rd.UnknownName, match="did you mean 'rayleigh'"):
        make_measures(plain=operator(path(3)), names=["raleigh"])
