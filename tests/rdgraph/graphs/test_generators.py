"""Generated graphs: their edges, their statistics, their seeds."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rdgraph as rd
from rdgraph import generators
from rdgraph.graphs.graph import Graph


def matrix(g: Graph) -> np.ndarray:
    return np.asarray(g.adjacency.toarray())


def is_simple(g: Graph) -> bool:
    return g.is_undirected and not g.has_self_loops and bool((g.weight == 1).all())


# ---------------------------------------------------------------------- fixed graphs
@given(st.integers(1, 12))
def test_path_star_complete(n: int) -> None:
    steps = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    assert np.array_equal(matrix(generators.path(n)), steps == 1)
    assert np.array_equal(matrix(generators.complete(n)), steps > 0)
    hub = np.zeros((n, n))
    hub[0, 1:] = hub[1:, 0] = 1
    assert np.array_equal(matrix(generators.star(n)), hub)


@given(st.integers(3, 12))
def test_ring_is_the_circulant_with_its_known_spectrum(n: int) -> None:
    ring = matrix(generators.ring(n))
    assert np.array_equal(ring, np.roll(np.eye(n), 1, axis=0) + np.roll(np.eye(n), -1, axis=0))
    known = np.sort(2 * np.cos(2 * np.pi * np.arange(n) / n))
    np.testing.assert_allclose(np.linalg.eigvalsh(ring), known, atol=1e-12)


@given(st.integers(1, 5), st.integers(1, 5))
def test_grid_is_a_kronecker_sum_of_paths(rows: int, columns: int) -> None:
    r, c = matrix(generators.path(rows)), matrix(generators.path(columns))
    expected = np.kron(r, np.eye(columns)) + np.kron(np.eye(rows), c)
    assert np.array_equal(matrix(generators.grid(rows, columns)), expected)


@given(st.integers(3, 5), st.integers(3, 5))
def test_periodic_grid_is_a_kronecker_sum_of_rings(rows: int, columns: int) -> None:
    r, c = matrix(generators.ring(rows)), matrix(generators.ring(columns))
    expected = np.kron(r, np.eye(columns)) + np.kron(np.eye(rows), c)
    assert np.array_equal(matrix(generators.grid(rows, columns, periodic=True)), expected)


# ---------------------------------------------------------------------- random graphs
RANDOM = {
    "erdos_renyi": lambda seed: generators.erdos_renyi(40, 0.2, seed),
    "barabasi_albert": lambda seed: generators.barabasi_albert(40, 3, seed),
    "watts_strogatz": lambda seed: generators.watts_strogatz(40, 4, 0.3, seed),
    "sbm": lambda seed: generators.sbm([20, 25], [[0.3, 0.1], [0.1, 0.4]], seed),
    "csbm": lambda seed: generators.csbm(seed).graph,
}


@pytest.mark.parametrize("name", RANDOM)
def test_a_seed_fixes_the_graph(name: str) -> None:
    make = RANDOM[name]
    first, again, other = make(3), make(3), make(4)
    assert is_simple(first)
    assert np.array_equal(first.edge_index, again.edge_index)
    assert not np.array_equal(first.edge_index, other.edge_index)
    assert np.array_equal(make(np.random.default_rng(3)).edge_index, first.edge_index)
    stream = np.random.default_rng(3)
    assert not np.array_equal(make(stream).edge_index, make(stream).edge_index)


@pytest.mark.parametrize("name", RANDOM)
def test_global_generators_are_left_alone(name: str) -> None:
    before = np.random.get_state()[1].copy()  # type: ignore[index, union-attr]  # noqa: NPY002
    RANDOM[name](0)
    assert np.array_equal(np.random.get_state()[1], before)  # type: ignore[index]  # noqa: NPY002


def test_erdos_renyi_has_the_right_density() -> None:
    n, p = 300, 0.1
    pairs = n * (n - 1) / 2
    counts = np.array([generators.erdos_renyi(n, p, seed).num_edges / 2 for seed in range(10)])
    assert abs(counts.mean() - p * pairs) < 4 * np.sqrt(p * (1 - p) * pairs / 10)
    assert generators.erdos_renyi(20, 0, 0).num_edges == 0
    assert generators.erdos_renyi(20, 1, 0).num_edges == 380
    assert generators.erdos_renyi(20, 1e-20, 0).num_edges == 0
    assert generators.erdos_renyi(1, 0.5, 0).num_nodes == 1


def test_barabasi_albert_grows_by_m_links() -> None:
    for n, m in ((2, 1), (30, 1), (30, 4)):
        g = generators.barabasi_albert(n, m, seed=1)
        assert g.num_edges == 2 * (m + m * (n - m - 1))
        assert g.components().max() == 0
    assert generators.barabasi_albert(400, 2, seed=1).degree.max() > 20  # hubs: G(n, p) of this density stays below


def test_watts_strogatz_moves_edges_of_a_ring() -> None:
    steps = np.abs(np.subtract.outer(np.arange(12), np.arange(12)))
    near = np.minimum(steps, 12 - steps)
    assert np.array_equal(matrix(generators.watts_strogatz(12, 4, 0.0, seed=1)), (near > 0) & (near <= 2))
    moved = generators.watts_strogatz(200, 4, 0.5, seed=1)
    assert moved.num_edges == 800
    share = 1 - sum(abs(a - b) in (1, 2, 198, 199) for a, b in moved.edge_index.T.tolist()) / 800
    assert 0.4 < share < 0.6


def block_densities(g: Graph, sizes: list[int]) -> np.ndarray:
    """Share of the possible edges that exist, by pair of blocks."""
    labels = np.repeat(np.arange(len(sizes)), sizes)
    onto = np.eye(len(sizes))[labels]
    possible = np.outer(sizes, sizes) - np.diag(sizes)
    return np.asarray(onto.T @ matrix(g) @ onto / possible)


def test_sbm_joins_blocks_with_their_probabilities() -> None:
    sizes, p = [60, 90, 150], np.array([[0.5, 0.1, 0.0], [0.1, 0.3, 0.2], [0.0, 0.2, 1.0]])
    g = generators.sbm(sizes, p, seed=5)
    assert is_simple(g)
    found = block_densities(g, sizes)
    np.testing.assert_allclose(found, p, atol=0.04)
    assert found[0, 2] == 0
    assert found[2, 2] == 1


def test_sbm_numbers_its_blocks_one_after_the_other() -> None:
    sizes = [100, 50, 107]  # networkx keeps blocks as sets, whose order is not the order of numbers
    g = generators.sbm(sizes, np.eye(3), seed=0)
    assert g.components().tolist() == np.repeat(np.arange(3), sizes).tolist()


def test_sbm_with_a_probability_too_small_for_logarithms() -> None:
    assert generators.sbm([5, 5], [[1e-20, 1e-20], [1e-20, 1e-20]], seed=0).num_edges == 0


# ---------------------------------------------------------------------- cSBM
def test_csbm_is_the_network_of_the_paper() -> None:
    samples = [generators.csbm(seed) for seed in range(40)]
    labels = np.repeat([0, 1], 50)
    for sample in samples:
        assert sample.graph.num_nodes == 100
        assert sample.features.shape == (100, 2)
        assert sample.labels.tolist() == labels.tolist()
        assert is_simple(sample.graph)
    densities = np.mean([block_densities(s.graph, [50, 50]) for s in samples], axis=0)
    np.testing.assert_allclose(densities, [[0.9, 0.1], [0.1, 0.9]], atol=0.005)
    features = np.stack([s.features for s in samples])
    for k, mean in ((0, -0.5), (1, 0.5)):
        mine = features[:, labels == k]  # 40 * 50 rows of two channels
        np.testing.assert_allclose(mine.mean(axis=(0, 1)), mean, atol=4 * 2 / np.sqrt(2000))
        np.testing.assert_allclose(mine.std(axis=(0, 1)), 2.0, rtol=0.07)
    noise = (features - features.mean(axis=0)).reshape(-1, 2)
    assert abs(np.corrcoef(noise.T)[0, 1]) < 0.07


def test_csbm_energy_and_homophily_of_the_paper() -> None:
    """E = (1/n) sum_ij a_ij |h_i - h_j|^2 is near 49.1 neighbours times 2 channels times 2 sigma^2."""
    energies, shares = [], []
    for seed in range(20):
        sample = generators.csbm(seed)
        source, target = sample.graph.edge_index
        energies.append(((sample.features[source] - sample.features[target]) ** 2).sum() / 100)
        shares.append(sample.graph.homophily(sample.labels))
    assert np.mean(energies) == pytest.approx(49.1 * 16, rel=0.1)
    assert np.mean(shares) == pytest.approx(44.1 / 49.1, abs=0.01)


def test_csbm_streams_are_apart() -> None:
    one, two = generators.csbm(7), generators.csbm(7, within=0.5, sigma=1.0)
    centres = np.repeat([-0.5, 0.5], 50)[:, None]
    np.testing.assert_allclose(one.features - centres, 2 * (two.features - centres), rtol=1e-12)
    assert np.array_equal(generators.csbm(7, sigma=0.0).graph.edge_index, one.graph.edge_index)


def test_csbm_with_other_settings() -> None:
    sample = generators.csbm(0, sizes=[2, 3, 4], means=[1.0, 2.0, 3.0], sigma=0.0, channels=5, within=1.0, between=0.0)
    assert sample.features.tolist() == [[k] * 5 for k in [1.0] * 2 + [2.0] * 3 + [3.0] * 4]
    assert sample.graph.components().tolist() == sample.labels.tolist() == [0, 0, 1, 1, 1, 2, 2, 2, 2]
    assert sample.graph.num_edges == 2 + 6 + 12


# ---------------------------------------------------------------------- bad input
@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: generators.path(0), "expected 1 to"),
        (lambda: generators.path(2.5), "expected a whole number of nodes, got 2.5"),
        (lambda: generators.star(0), "expected 1 to"),
        (lambda: generators.complete(-1), "got -1"),
        (lambda: generators.ring(2), "whole number >= 3 for nodes in a ring, got 2"),
        (lambda: generators.grid(0, 3), "whole number >= 1 for rows, got 0"),
        (lambda: generators.grid(3, "x"), "for columns, got 'x'"),
        (lambda: generators.grid(3, 2, periodic=True), ">= 3 for columns in a periodic grid, got 2"),
        (lambda: generators.erdos_renyi(5, 1.5, 0), "probabilities between 0 and 1, got 1.5"),
        (lambda: generators.erdos_renyi(5, np.nan, 0), "probabilities between 0 and 1, got nan"),
        (lambda: generators.erdos_renyi(5, "p", 0), "expected probabilities of shape (), got 'p'"),
        (lambda: generators.erdos_renyi(5, 0.5, None), "expected a seed, an int >= 0 or a numpy Generator, got None"),
        (lambda: generators.erdos_renyi(5, 0.5, -1), "got -1; pass seed=0"),
        (lambda: generators.barabasi_albert(5, 0, 0), "whole number >= 1 for links per node, got 0"),
        (lambda: generators.barabasi_albert(5, 5, 0), "fewer links per node than nodes, got m = 5 and n = 5"),
        (lambda: generators.watts_strogatz(9, 3, 0.1, 0), "an even number of neighbours below the number of nodes"),
        (lambda: generators.watts_strogatz(4, 4, 0.1, 0), "got k = 4 and n = 4"),
        (lambda: generators.sbm([], [], 0), "the size of one block at least"),
        (lambda: generators.sbm([2, 0], np.eye(2), 0), "nodes in a block, got 0"),
        (lambda: generators.sbm([2, 2], [0.5, 0.5], 0), "probabilities of shape (2, 2), got (2,)"),
        (lambda: generators.sbm([2, 2], [[1, 0.5], [0.4, 1]], 0), "expected symmetric probabilities"),
        (lambda: generators.csbm(0, means=[1.0]), "expected 2 finite means, one per class, got [1.0]"),
        (lambda: generators.csbm(0, means=[1.0, np.nan]), "finite means"),
        (lambda: generators.csbm(0, sigma=-1.0), "standard deviation sigma >= 0, got -1.0"),
        (lambda: generators.csbm(0, channels=0), "whole number >= 1 for channels, got 0"),
        (lambda: generators.csbm(0, within=2.0), "between 0 and 1, got 2.0"),
    ],
)
def test_bad_settings_are_refused(make: Any, text: str) -> None:
    with pytest.raises(rd.errors.InvalidArgument, match=re.escape(text)):
        make()
