"""Edges sorted by tensors against scipy: the same graphs, the same operators, the same errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import rdgraph as rd
from rdgraph.errors import InvalidArgument, UnknownName


@st.composite
def edge_lists(draw: st.DrawFn) -> tuple[np.ndarray, int, np.ndarray | None, bool]:
    nodes = draw(st.integers(1, 9))
    count = draw(st.integers(0, 30))
    pairs = np.array(draw(st.lists(st.integers(0, nodes - 1), min_size=2 * count, max_size=2 * count)), dtype=np.int64)
    signed = draw(st.booleans())
    # Quarters add up without rounding, in any order.
    least = -4 if signed else 0
    weights = draw(st.none() | st.lists(st.integers(least, 4), min_size=count, max_size=count))
    return pairs.reshape(2, count), nodes, None if weights is None else np.array(weights, dtype=float) / 4, signed


@given(edge_lists(), st.sampled_from(["sum", "once", "error"]))
def test_sorting_by_tensors_gives_the_graph_of_the_host(case: Any, duplicates: str) -> None:
    pairs, nodes, weights, signed = case
    options: dict[str, Any] = {"duplicates": duplicates, "signed": signed}
    told = []
    for device in (None, "cpu"):
        try:
            host = rd.Graph.from_edges(pairs, nodes, weights, device=device, **options)
        except InvalidArgument as problem:
            told.append(str(problem))
    if told:
        assert len(told) == 2
        assert told[0] == told[1]
        return
    host = rd.Graph.from_edges(pairs, nodes, weights, **options)
    found = rd.Graph.from_edges(torch.from_numpy(pairs), nodes, weights, device="cpu", **options)
    np.testing.assert_array_equal(found.edge_index, host.edge_index)
    np.testing.assert_allclose(found.weight, host.weight, rtol=1e-14)
    assert (found.num_nodes, found.names) == (host.num_nodes, None)
    assert found.edge_index.dtype == np.int64
    assert not found.edge_index.flags.writeable
    assert not found.weight.flags.writeable


@given(edge_lists(), st.sampled_from(["symmetric", "row", "column", "none"]), st.sampled_from([0.0, 1.0, 0.5]))
def test_operators_made_by_tensors_are_those_of_scipy(case: Any, normalisation: str, loops: float) -> None:
    pairs, nodes, weights, signed = case
    graph = rd.Graph.from_edges(pairs, nodes, weights, signed=signed)
    if normalisation == "symmetric":
        graph = graph.undirected()
    host = graph.operator(normalisation, self_loops=loops, dtype=torch.float64)
    found = graph._operator_on(normalisation, loops, torch.float64, "cpu")
    if found is None:
        assert not graph.num_edges
        return
    assert torch.equal(found.pattern.indptr, host.pattern.indptr)
    torch.testing.assert_close(found.dense(), host.dense(), rtol=1e-14, atol=0)
    assert found.pattern.indices.dtype == host.pattern.indices.dtype
    assert (found.degree is None) == (host.degree is None)
    if found.degree is not None and host.degree is not None:
        torch.testing.assert_close(found.degree, host.degree, rtol=1e-14, atol=0)
    rows = torch.repeat_interleave(found.pattern.indptr.long().diff())
    keys = rows * nodes + found.pattern.indices.long()
    assert bool((keys.diff() > 0).all())


def test_unweighted_graphs_agree_to_the_last_bit() -> None:
    random = np.random.default_rng(0)
    pairs = random.integers(0, 300, (2, 4000))
    pairs = np.concatenate([pairs, pairs[::-1]], axis=1)
    host = rd.Graph.from_edges(pairs, 300)
    found = rd.Graph.from_edges(pairs, 300, device="cpu")
    np.testing.assert_array_equal(found.edge_index, host.edge_index)
    np.testing.assert_array_equal(found.weight, host.weight)
    for normalisation in ("symmetric", "row", "column"):
        made = found._operator_on(normalisation, 1.0, torch.float32, "cpu")
        assert made is not None
        assert torch.equal(made.weights, host.operator(normalisation, self_loops=1.0).weights)


def test_a_registered_normalisation_with_an_identity_is_made_on_the_device_too() -> None:
    rd.register_normalisation("lazy-on-device", lambda w, own, other, column: w / own / 2, identity=0.5)
    try:
        graph = rd.generators.path(5)
        made = graph._operator_on("lazy-on-device", 0.0, torch.float64, "cpu")
        assert made is not None
        torch.testing.assert_close(made.dense(), graph.operator("lazy-on-device", dtype=torch.float64).dense())
    finally:
        rd.vocabulary.unregister_normalisation("lazy-on-device")


def test_errors_are_those_of_the_host() -> None:
    directed = rd.Graph.from_edges([[0, 1], [1, 2]], 3)
    assert directed._operator_on("symmetric", 0.0, None, "cpu") is None
    assert directed._operator_on("unknown", 0.0, None, "cpu") is None
    assert directed._operator_on("row", -1.0, None, "cpu") is None
    uneven = rd.Graph.from_edges([[0, 1], [1, 0]], 2, [1.0, 2.0])
    assert uneven._operator_on("symmetric", 0.0, None, "cpu") is None
    cases: list[tuple[Any, Any, str]] = [
        ([[0, 5], [1, 1]], None, "node 5 is out of range"),
        ([[0, -1], [1, 1]], None, "nodes are numbered from 0"),
        ([[0.5, 1], [1, 1]], None, "expected whole numbers"),
        ([[0, 1], [1, 1]], [1.0], "expected weights of shape"),
        ([[0, 1], [1, 1]], [1.0, -1.0], "expected weights >= 0"),
        ([[0, 1], [1, 1]], [1.0, np.inf], "expected finite weights"),
    ]
    for pairs, weight, words in cases:
        with pytest.raises(InvalidArgument, match=words):
            rd.Graph.from_edges(np.array(pairs), 3, weight, device="cpu")
    with pytest.raises(UnknownName):
        rd.Graph.from_edges([[0, 0], [1, 1]], 3, duplicates="twice", device="cpu")
    huge = np.array([1e308, 1e308])
    with pytest.raises(InvalidArgument, match="expected finite sums"):
        rd.Graph.from_edges([[0, 0], [1, 1]], 3, huge, device="cpu")


@given(edge_lists(), st.sampled_from(["sum", "once"]), st.sampled_from([None, "cpu"]))
def test_edges_both_ways_are_the_undirected_graph(case: Any, duplicates: str, device: str | None) -> None:
    pairs, nodes, weights, signed = case
    options: dict[str, Any] = {"duplicates": duplicates, "signed": signed, "device": device}
    try:
        expected = rd.Graph.from_edges(pairs, nodes, weights, **options).undirected()
    except InvalidArgument:
        return
    found = rd.Graph.from_edges(pairs, nodes, weights, undirected=True, **options)
    np.testing.assert_array_equal(found.edge_index, expected.edge_index)
    np.testing.assert_array_equal(found.weight, expected.weight)
    dense = expected.adjacency.toarray()
    np.testing.assert_array_equal(np.abs(dense), np.abs(dense.T))
    # What the constructor checks holds, though it was not asked.
    rd.Graph(found.edge_index, found.weight, found.num_nodes)
