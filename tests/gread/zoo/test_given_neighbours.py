"""Networks with neighbours of their own making: Geom-GCN's positions and WRGAT's roles."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gread.models.features import Features
from gread.zoo.neighbour_networks import LANDMARKS, degree_profiles, landmarks, near_pairs, plane_positions, role_graph
from gread.zoo.neighbour_networks import geometric_relations as geometric
from gread.zoo.neighbour_networks import role_relations as structural
from rdgraph import Graph, generators
from tests.gread.zoo.test_classical import GRAPH, N, X, make, own, relu, same


def dense(graph: Graph) -> np.ndarray:
    found = np.zeros((graph.num_nodes, graph.num_nodes))
    sources, targets = graph.edge_index
    found[targets, sources] = graph.weight
    return found


def logits(model: object) -> np.ndarray:
    with torch.no_grad():
        return model(Features.make(X, dtype=torch.float64))[1].numpy()  # type: ignore[operator, no-any-return]


# ---------------------------------------------------------------------- Geom-GCN
@pytest.mark.parametrize("embedding", ["isomap", "poincare"])
def test_geom_gcn(embedding: str) -> None:
    model = make("geomgcn", hidden=4, embedding=embedding)
    kinds = [dense(graph) for graph in geometric(GRAPH, embedding)]
    scale = sum(kind.sum(1) for kind in kinds) ** -0.5
    scaled = [scale[:, None] * kind * scale for kind in kinds]
    weights = np.split(own(model, "first_weight"), 9, 1)
    h = relu(np.concatenate([kind @ X @ weight for kind, weight in zip(scaled, weights, strict=True)], 1))
    weights = np.split(own(model, "second_weight"), 9, 1)
    same(logits(model), np.mean([kind @ h @ weight for kind, weight in zip(scaled, weights, strict=True)], 0))


def test_quarters_share_the_edges_out() -> None:
    kinds = [dense(graph) for graph in geometric(GRAPH, "isomap")]
    np.testing.assert_array_equal(sum(kinds[:4]), dense(GRAPH))
    np.testing.assert_array_equal(kinds[8], np.eye(N))
    assert max(sum(kinds[4:8]).ravel()) == 1
    z = plane_positions(GRAPH, "isomap")
    targets, sources = kinds[3].nonzero()  # to the right and above
    assert (z[sources] - z[targets] >= 0).all()


def test_isomap_of_a_path_is_a_line_and_of_a_grid_a_square() -> None:
    line = plane_positions(generators.path(30), "isomap")
    np.testing.assert_allclose(np.abs(np.diff(line[:, 0])), 1, atol=1e-9)
    grid = plane_positions(generators.grid(6, 6), "isomap")
    assert np.linalg.norm(grid[0] - grid[35]) > 2.5 * np.linalg.norm(grid[0] - grid[2])


def test_hyperbolic_positions_lie_in_the_disc_and_keep_a_star_together() -> None:
    star = Graph.from_edges([[0] * 6 + list(range(1, 7)), list(range(1, 7)) + [0] * 6], 7)
    z = plane_positions(star, "poincare")
    lengths = np.linalg.norm(z, axis=1)
    assert lengths.max() < 1
    assert lengths[0] == lengths.min()


def test_positions_of_large_graphs_go_by_landmarks() -> None:
    ring = generators.ring(LANDMARKS + 500)
    assert len(set(landmarks(ring))) == LANDMARKS
    z = plane_positions(ring, "isomap")
    radius = np.linalg.norm(z, axis=1)
    assert radius.min() > 0.8 * radius.max()  # a ring stays round


def test_pairs_in_the_plane_are_the_closest() -> None:
    positions = np.random.default_rng(0).normal(size=(40, 2))
    pairs = near_pairs(positions, 60)
    gaps = np.linalg.norm(positions[:, None] - positions, axis=-1)
    chosen = np.zeros((40, 40), dtype=bool)
    chosen[pairs[0], pairs[1]] = True
    assert (chosen == chosen.T).all()
    assert gaps[chosen].max() <= np.sort(gaps[~chosen & ~np.eye(40, dtype=bool)])[0]
    assert 50 <= pairs.shape[1] <= 60


# ---------------------------------------------------------------------- WRGAT
def test_wrgat() -> None:
    model, h = make("wrgat", hidden=4, rings=2, neighbours=2), X
    kinds = [dense(graph) for graph in structural(GRAPH, 2, 2)]
    for k in range(2):
        out = h @ own(model, f"root_{k}_weight") + own(model, f"root_{k}_bias")
        for r, kind in enumerate(kinds):
            values = h @ own(model, f"layer_{k}_{r}_weight")
            left, right = (values @ own(model, f"layer_{k}_{r}_{end}")[0] for end in ("own", "neighbour"))
            for i in range(N):
                near = np.flatnonzero(kind[i])
                if not near.size:
                    continue
                score = left[i] + right[near]
                score = np.where(score > 0, score, 0.2 * score)
                soft = np.exp(score) / np.exp(score).sum()
                out[i] += (kind[i, near] * soft) @ values[near] / near.size
        h = relu(out) if k == 0 else out
    same(logits(model), h)


def test_roles_of_a_barbell_are_its_mirror_image() -> None:
    """Two cliques and a path: a node is closest to its counterpart on the other side."""
    left = [(i, j) for i in range(4) for j in range(i)]
    edges = [*left, *((i + 8, j + 8) for i, j in left), (3, 4), (4, 5), (5, 6), (6, 7), (7, 8)]
    both = np.array([*edges, *((j, i) for i, j in edges)]).T
    graph = Graph.from_edges(both, 12)
    profiles = degree_profiles(graph, 3)
    assert [p.shape[1] for p in profiles] == [10, 20, 30]
    for profile in profiles:
        np.testing.assert_allclose(profile[3], profile[8])
        np.testing.assert_allclose(profile[5], profile[6])
    near = dense(role_graph(profiles[-1], 1))
    assert near[5, 6] == pytest.approx(1)
    assert near[3, 8] == pytest.approx(1)
    assert near[5, 0] == 0
