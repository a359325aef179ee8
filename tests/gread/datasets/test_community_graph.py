"""The large synthetic graph: as many nodes and entries as asked, communities, a heavy tail, the same for a seed."""

from __future__ import annotations

import numpy as np
import pytest

import rdgraph as rd
from gread.datasets.community_graph import community_graph
from rdgraph.errors import InvalidArgument


def test_the_graph_is_what_was_asked_for() -> None:
    made = community_graph(4000, 60_000, features=6, classes=5, seed=3)
    graph = rd.Graph.from_edges(made.edges, 4000, duplicates="error")
    assert (graph.num_edges, graph.is_undirected, graph.has_self_loops) == (60_000, True, False)
    assert made.x.dtype == np.float32
    assert np.isfinite(made.x).all()
    assert sorted(np.unique(made.y)) == list(range(5))
    assert np.all(made.train.astype(int) + made.val + made.test == 1)
    inside = np.mean(made.y[made.edges[0]] == made.y[made.edges[1]])
    assert 0.65 < inside < 0.9, "communities"
    degree = graph.degree
    assert degree.max() > 10 * degree.mean(), "a heavy tail"
    # The tail of the degrees falls like a power: a decade in degree costs about EXPONENT - 1 = 1.5 decades of nodes.
    slope = np.log10(np.mean(degree > 30) / np.mean(degree > 120)) / np.log10(4)
    assert 1.0 < slope < 2.2
    centres = np.stack([made.x[made.y == k].mean(0) for k in range(5)])
    guesses = np.argmin(((made.x[:, None] - centres) ** 2).sum(-1), axis=1)
    assert np.mean(guesses == made.y) > 0.3, "features tell of the class"


def test_a_seed_gives_the_same_graph_and_another_another() -> None:
    one, same, other = (community_graph(300, 2000, features=3, classes=3, seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(one.edges, same.edges)
    np.testing.assert_array_equal(one.x, same.x)
    assert not np.array_equal(one.edges, other.edges)


def test_neighbouring_numbers_are_no_neighbours() -> None:
    """Numbers are drawn, so that the order of the nodes helps no product."""
    made = community_graph(2000, 20_000, features=2, classes=4)
    assert abs(np.mean(made.y[:-1] == made.y[1:]) - np.sum((np.bincount(made.y) / 2000) ** 2)) < 0.05


@pytest.mark.parametrize("entries", [7, 0, 10**6])
def test_impossible_sizes_are_refused(entries: int) -> None:
    with pytest.raises(InvalidArgument, match="expected an even number of entries"):
        community_graph(100, entries)
