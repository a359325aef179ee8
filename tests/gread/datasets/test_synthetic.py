"""cSBM and the synthetic Cora: homophily, degrees and features meet their targets and the published table."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from gread.datasets.meta import Meta
from gread.datasets.node_data import NodeData
from gread.datasets.splits import Masks, stream
from gread.datasets.synthetic import csbm, grow, published_degrees, synthetic_cora, synthetic_cora_levels
from rdgraph import generators
from rdgraph.errors import InvalidArgument
from tests.property_examples import examples

LEVELS = [k / 10 for k in range(11)]
SIZES = [351, 217, 418, 818, 426, 298, 180]  # of Cora's classes


@pytest.fixture(scope="module")
def stand_in() -> NodeData:
    """Classes as large as Cora's; the only feature of a node is its own number, sparse."""
    y = np.random.default_rng(0).permutation(np.repeat(np.arange(7), SIZES))
    n = y.size
    return NodeData(
        generators.path(n), csr_array(np.arange(1.0, n + 1)[:, None]), y, Masks.none(n),
        meta=Meta("stand_in", sources=(("a file", "its hash"),), variant=(("features", "raw"),)),
    )  # fmt: skip


@pytest.fixture(scope="module")
def grown(stand_in: NodeData) -> dict[float, list[NodeData]]:
    """Three graphs for every published level."""
    made = list(synthetic_cora_levels(cora=stand_in))
    return {level: made[3 * k : 3 * k + 3] for k, level in enumerate(LEVELS)}


# ---------------------------------------------------------------------- cSBM
@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("homophily", [0.0, 0.25, 0.8, 1.0])
def test_csbm_meets_homophily_and_degree(classes: int, homophily: float) -> None:
    graphs = [csbm(seed, n=601, classes=classes, homophily=homophily, degree=12) for seed in range(4)]
    # 4 graphs of 3,606 edges: standard errors are 0.004 and 0.1
    assert np.mean([g.graph.degree.mean() for g in graphs]) == pytest.approx(12, abs=0.4)
    assert np.mean([g.graph.homophily(g.y) for g in graphs]) == pytest.approx(homophily, abs=0.016)
    sizes = np.bincount(graphs[0].y)
    assert sizes.max() - sizes.min() <= 1


@given(st.integers(4, 40), st.integers(2, 4), st.integers(0, 20).map(lambda k: k / 20), st.floats(0.1, 0.9))
def test_csbm_probabilities_give_the_expected_homophily_exactly(n: int, classes: int, h: float, part: float) -> None:
    """Over all pairs of nodes, sum of p = n*degree/2 and sum of p over pairs of one class = h times that."""
    sizes = np.bincount(np.arange(n) % classes)
    y = np.repeat(np.arange(classes), sizes)
    alike = np.array([y[i] == y[j] for i, j in combinations(range(n), 2)])
    room = min(np.inf if h == 0 else alike.sum() / h, np.inf if h == 1 else (~alike).sum() / (1 - h))
    degree = 2 * part * room / n
    if degree == 0:
        with pytest.raises(InvalidArgument, match="degree > 0"):
            csbm(n=n, classes=classes, homophily=h, degree=degree)
        return
    chosen = dict(csbm(n=n, classes=classes, homophily=h, degree=degree).meta.variant)
    p = np.where(alike, float(chosen["within"]), float(chosen["between"]))
    assert p.sum() == pytest.approx(n * degree / 2, rel=1e-4)  # the record has six digits
    assert p[alike].sum() == pytest.approx(h * p.sum(), rel=1e-4, abs=1e-12)
    with pytest.raises(InvalidArgument, match="not enough pairs of nodes"):
        csbm(n=n, classes=classes, homophily=h, degree=1.01 * degree / part)


def test_csbm_defaults_are_the_network_of_the_paper() -> None:
    data = csbm()
    assert (data.num_nodes, data.num_classes, data.num_features, data.num_splits) == (100, 2, 2, 10)
    assert dict(data.meta.variant) == {"within": "0.9", "between": "0.1", "signal": "0.5", "sigma": "2", "seed": "0"}
    inside, across = 2 * 50 * 49 / 2 * 0.9, 50 * 50 * 0.1
    made = [csbm(seed) for seed in range(20)]
    assert np.mean([d.graph.homophily(d.y) for d in made]) == pytest.approx(inside / (inside + across), abs=0.01)
    assert np.mean([d.graph.degree.mean() for d in made]) == pytest.approx((inside + across) / 50, rel=0.01)


def test_csbm_features_have_their_means_and_spread() -> None:
    data = csbm(n=6000, classes=3, homophily=0.5, degree=1, signal=2.0, sigma=0.5, features=4)
    for label, mean in enumerate((-2.0, 0.0, 2.0)):
        own = data.x[data.y == label]
        np.testing.assert_allclose(own.mean(axis=0), mean, atol=0.06)  # 5 standard errors of 0.011
        np.testing.assert_allclose(own.std(axis=0), 0.5, atol=0.04)


def test_csbm_seeds() -> None:
    first, again, other = csbm(3), csbm(3), csbm(4)
    assert np.array_equal(first.graph.edge_index, again.graph.edge_index)
    assert np.array_equal(first.x, again.x)
    assert np.array_equal(first.masks.train, again.masks.train)
    assert not np.array_equal(first.graph.edge_index, other.graph.edge_index)
    assert not np.array_equal(first.masks.train, other.masks.train)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"homophily": 0.5}, "expected homophily and degree, or within and between"),
        ({"within": 0.5}, "expected homophily and degree, or within and between"),
        ({"homophily": 0.5, "degree": 4, "within": 0.5, "between": 0.5}, "determines"),
        ({"homophily": 1.2, "degree": 4}, r"homophily in 0\.\.1 and a degree > 0, got 1.2 and 4"),
        ({"homophily": 1, "degree": 60}, "degree of 49 at most for homophily 1 of 100 nodes, got 60"),
        ({"classes": 1}, "whole number >= 2 for classes"),
        ({"n": 5, "classes": 6}, "no more classes than nodes, got 6 and 5"),
        ({"seed": -1}, "for a seed, got -1"),
    ],
)
def test_csbm_that_is_refused(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidArgument, match=text):
        csbm(**arguments)


# ---------------------------------------------------------------------- growth
@settings(max_examples=examples(30))
@given(st.integers(2, 4), st.integers(2, 12), st.floats(0, 1), st.integers(0, 5))
def test_growth_by_its_rules(classes: int, size: int, homophily: float, seed: int) -> None:
    """Every node from 2 on brings one edge among the first, then two, to different earlier nodes."""
    rng = np.random.default_rng(seed)
    opening = rng.permutation(np.tile(np.arange(classes), 2))
    labels = np.append(opening, rng.permutation(np.repeat(np.arange(classes), size - 2)))
    newer, older = grow(labels, homophily, rng)
    assert (older < newer).all()
    assert np.unique(newer * labels.size + older).size == newer.size
    brought = np.bincount(newer, minlength=labels.size)
    assert (brought[2 * classes :] == 2).all()
    assert brought[:2].tolist() == [0, 0]
    if 0 < homophily < 1:
        assert (brought[2 : 2 * classes] == 1).all()
    else:
        assert set(brought[2 : 2 * classes]) <= {0, 1}
        assert ((labels[newer] == labels[older]) == (homophily == 1)).all()


def test_an_arriving_node_prefers_degree_and_class_as_stated() -> None:
    """The last node of a fixed start, drawn many times: chances of the first of its two picks are degree*affinity."""
    labels = np.array([0, 1, 0, 1, 0])
    homophily, times = 0.7, 4000
    counts = np.zeros(4)
    for seed in range(times):
        newer, older = grow(labels, homophily, np.random.default_rng(seed))
        counts[older[newer == 4]] += 1
    weight = np.maximum([0, 1, 2, 1], 1) * np.where(labels[:4] == 0, homophily, 1 - homophily)  # path 1 - 2 - 3
    p = weight / weight.sum()
    either = np.array([p[v] + sum(p[u] * p[v] / (1 - p[u]) for u in range(4) if u != v) for v in range(4)])
    np.testing.assert_allclose(counts / times, either, atol=0.04)  # 5 standard deviations


# ---------------------------------------------------------------------- the synthetic Cora
def test_size_classes_and_edges(grown: dict[float, list[NodeData]]) -> None:
    for level, graphs in grown.items():
        for data in graphs:
            assert data.num_nodes == 1490
            assert np.bincount(data.y).tolist() == [298] * 5
            assert data.graph.is_undirected
            assert not data.graph.has_self_loops
            # Where all neighbours are of one class, up to four of the first ten nodes find none.
            assert data.graph.num_edges == 5936 if level < 1 else 5928 <= data.graph.num_edges <= 5930
            assert data.meta.classes == ("3", "4", "2", "0", "5")


def test_homophily_meets_the_target(grown: dict[float, list[NodeData]]) -> None:
    for level, graphs in grown.items():
        measured = [data.graph.homophily(data.y) for data in graphs]
        assert measured == pytest.approx([level] * 3, abs=0.03)
        assert np.mean(measured) == pytest.approx(level, abs=0.02)


def test_other_classes_are_equally_likely(grown: dict[float, list[NodeData]]) -> None:
    pairs = np.zeros((5, 5))
    for data in grown[0.2]:
        np.add.at(pairs, tuple(data.y[data.graph.edge_index]), 1)
    shares = pairs / pairs.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(np.diag(shares), 0.2, atol=0.06)
    np.testing.assert_allclose(shares[~np.eye(5, dtype=bool)], 0.2, atol=0.06)


def test_degrees_beside_the_published_table(grown: dict[float, list[NodeData]]) -> None:
    """Average within 1 %; the largest degree of a graph scatters by a fifth, so means of three within 30 %."""
    table = published_degrees()
    assert [row.homophily for row in table] == LEVELS
    assert all("1,480 nodes" in row.source for row in table)
    largest = {}
    for row in table:
        degrees = [data.graph.degree for data in grown[row.homophily]]
        assert np.mean([d.mean() for d in degrees]) == pytest.approx(row.average_degree, rel=0.01)
        assert 1 <= np.mean([d.min() for d in degrees]) <= 2
        assert 1.6 < row.min_degree <= 2
        largest[row.homophily] = np.mean([d.max() for d in degrees])
        assert largest[row.homophily] == pytest.approx(row.max_degree, rel=0.3)
    published = {row.homophily: row.max_degree for row in table}
    assert np.mean(list(largest.values())) == pytest.approx(np.mean(list(published.values())), rel=0.1)
    for means in (largest, published):  # hubs shrink once edges stay within a class
        assert np.mean([means[h] for h in (0.8, 0.9, 1.0)]) < np.mean([means[h] for h in (0.0, 0.1, 0.2)])


def test_features_come_from_the_class_and_none_twice(stand_in: NodeData, grown: dict[float, list[NodeData]]) -> None:
    data = grown[0.3][1]
    assert data.is_sparse
    origin = data.x.toarray()[:, 0].astype(int) - 1
    assert np.unique(origin).size == 1490
    assert stand_in.y[origin].tolist() == [(3, 4, 2, 0, 5)[label] for label in data.y]  # largest classes first
    assert not np.array_equal(origin, grown[0.3][0].x.toarray()[:, 0].astype(int) - 1)


def test_splits_and_record(grown: dict[float, list[NodeData]]) -> None:
    data = grown[0.3][1]
    assert data.masks.train.sum(axis=1).tolist() == [373] * 3
    assert data.masks.val.sum(axis=1).tolist() == [372] * 3
    assert data.masks.covered.all()
    assert data.meta.split == "stratified 25/25/50, seed 1"
    assert data.meta.variant == (("features", "raw"), ("homophily", "0.3"), ("seed", "1"))
    assert data.meta.sources[1] == ("a file", "its hash")


def test_a_seed_fixes_the_graph(stand_in: NodeData, grown: dict[float, list[NodeData]]) -> None:
    again = synthetic_cora(0.3, 1, cora=stand_in, splits=1, train=0.48, val=0.32)
    assert np.array_equal(again.graph.edge_index, grown[0.3][1].graph.edge_index)
    assert np.array_equal(again.x.toarray(), grown[0.3][1].x.toarray())
    assert again.masks.train.sum(axis=1).tolist() == [715]
    assert not np.array_equal(again.graph.edge_index, grown[0.3][0].graph.edge_index)


def test_levels_are_made_one_at_a_time(stand_in: NodeData) -> None:
    made = synthetic_cora_levels(cora=stand_in, levels=[0.5], seeds=[4])
    assert isinstance(made, Iterator)
    (only,) = made
    assert dict(only.meta.variant)["seed"] == "4"
    assert only.graph.homophily(only.y) == pytest.approx(0.5, abs=0.03)


def test_what_is_refused(stand_in: NodeData) -> None:
    with pytest.raises(InvalidArgument, match=r"homophily between 0 and 1, got -0\.1"):
        synthetic_cora(-0.1, cora=stand_in)
    few = stand_in.subset(np.flatnonzero(stand_in.y < 4))
    with pytest.raises(InvalidArgument, match="expected 5 classes of 2 nodes or more"):
        synthetic_cora(0.5, cora=few)


@pytest.mark.skipif("RDGRAPH_DATA" not in os.environ, reason="Cora's files: set RDGRAPH_DATA to their folder")
def test_with_the_features_of_cora() -> None:
    from gread.datasets.loading import load_dataset
    from gread.datasets.variants import Variant

    data = synthetic_cora(0.4, 2)
    assert (data.num_nodes, data.num_features, data.num_classes) == (1490, 1433, 5)
    assert data.is_sparse
    cora = load_dataset("cora", variant=Variant(component="all"))
    assert np.sort(np.bincount(cora.y)).tolist() == sorted(SIZES)
    draw = stream(2, "features")
    first = draw.choice(np.flatnonzero(cora.y == np.bincount(cora.y).argmax()), 298, replace=False)
    assert (data.x[data.y == 0] != cora.x[first]).nnz == 0
