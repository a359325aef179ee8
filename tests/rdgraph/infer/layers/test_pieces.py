"""Readings against definitions by hand, faults as trees, certificates, shapes of coefficients."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rdgraph as rd
from rdgraph.errors import InvalidArgument
from rdgraph.graphs.normalisation import dense_operator
from rdgraph.infer.layers.coefficient_fit import Unknowns, _searched, unknown_coefficients
from rdgraph.infer.layers.equation_target import Target, degree_of, longest_word, right_hand_side
from rdgraph.infer.layers.faults import single_faults
from rdgraph.infer.layers.layer_properties import monomials
from rdgraph.infer.layers.probe_graphs import (
    ProbeGraph,
    Reading,
    declared_readings,
    neighbouring_readings,
    probe_graphs,
    read_graph,
)
from rdgraph.infer.layers.probe_stack import Probe, Stack
from rdgraph.language.printer import to_text


@pytest.mark.parametrize("normalisation", ["symmetric", "row", "column", "none"])
def test_readings_are_the_operators_of_the_package(normalisation: str) -> None:
    for graph in probe_graphs(domain="undirected"):
        for loops, weight in (("none", 0.0), ("added", 1.0)):
            made = Reading(normalisation, loops).operators(graph)
            assert np.allclose(made["A"], dense_operator(graph.adjacency, normalisation, self_loops=weight))
            whole = np.diag((graph.adjacency + weight * np.eye(graph.num_nodes)).sum(axis=1))
            expected = (whole if normalisation == "none" else np.eye(graph.num_nodes)) - made["A"]
            assert np.allclose(made["L"], expected)


def test_rules_for_self_loops_and_directions() -> None:
    graph = ProbeGraph("loop", 2, ((0, 0), (0, 1)), (3.0, 2.0))
    weights = {loops: Reading("none", loops).operators(graph)["A"].tolist() for loops in
               ("none", "removed", "remaining", "added", "replaced")}  # fmt: skip
    assert weights == {
        "none": [[3.0, 0.0], [2.0, 0.0]], "removed": [[0.0, 0.0], [2.0, 0.0]], "remaining": [[3.0, 0.0], [2.0, 1.0]],
        "added": [[4.0, 0.0], [2.0, 1.0]], "replaced": [[1.0, 0.0], [2.0, 1.0]],
    }  # fmt: skip
    assert Reading("none", transposed=True).operators(graph)["A"].tolist() == [[3.0, 2.0], [0.0, 0.0]]
    assert Reading("none", weighted=False).operators(graph)["A"].tolist() == [[1.0, 0.0], [1.0, 0.0]]
    arrow = ProbeGraph("arrow", 2, ((0, 1),))
    assert Reading("symmetric").operators(arrow)["A"].tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert Reading("symmetric", degrees="both").operators(arrow)["A"].tolist() == [[0.0, 0.0], [1.0, 0.0]]


def test_neighbouring_readings_differ_and_are_declared() -> None:
    reading = Reading("row", "added")
    others = [other for _, _, other in neighbouring_readings(reading)]
    assert reading not in others
    assert len(set(others)) == len(others)
    assert {r.normalisation for r in declared_readings()} == {"symmetric", "row", "column", "none"}
    with pytest.raises(InvalidArgument, match="expected self_loops"):
        declared_readings(self_loops="some")


def test_single_faults_of_the_filter_bank() -> None:
    tree = right_hand_side(rd.parse("-alpha*L@H + beta*L@H"))
    found = {to_text(edit.tree): edit.kind for edit in single_faults(tree)}
    assert found["-alpha*L@H + beta*(I + A)@H"] == "operator"
    assert found["-alpha*L@H - beta*L@H"] == "sign"
    assert found["alpha*L@H + beta*L@H"] == "sign"
    assert found["-alpha*L@H"] == "missing term"
    assert found["-alpha*L@H + beta*(L@L)@H"] == "power"
    assert to_text(tree) not in found


def test_degrees_and_words() -> None:
    tree = right_hand_side(rd.parse("-L@H + H**2*(A@H)/alpha"))
    assert (degree_of(tree), longest_word(tree)) == (3, 1)
    assert Target(right_hand_side(rd.parse("H*(1 - H)")), "step", 2).degree == 4
    assert Target(right_hand_side(rd.parse("H*(1 - H)")), "flow").degree is None
    assert degree_of(right_hand_side(rd.parse("exp(alpha)*H + H/(1 + H)"))) is None


def test_monomials_are_all_of_a_degree() -> None:
    rng = np.random.default_rng(0)
    graph = ProbeGraph("edge", 2, ((0, 1),))
    probes = [Probe(graph, rng.normal(size=(2, 2)), rng.normal(size=(2, 2)), np.zeros((2, 2))) for _ in range(40)]
    for degree in (1, 2, 3):
        matrix = monomials(probes, degree, with_start=False)
        assert matrix.shape[1] == math.comb(4 + degree, degree) == np.linalg.matrix_rank(matrix)
    assert monomials(probes, 1, with_start=True).shape[1] == 9


def test_shapes_of_letters_follow_the_widths() -> None:
    kinds = {"V": "matrix", "U": "matrix", "b": "channel", "d1": "channel"}
    tree = right_hand_side(rd.parse("relu(H@V + d1)@U + b + alpha*H@W", kinds))
    found = dict(unknown_coefficients(tree, (), (3, 2), {"V": (3, 5)}).shapes)
    assert found == {"V": (3, 5), "U": (5, 2), "W": (3, 2), "alpha": (), "b": (2,), "d1": (5,)}
    assert unknown_coefficients(tree, ("V", "U", "W", "b", "d1"), (3, 2), {"V": (3, 5)}).names == ("alpha",)


def test_a_stack_is_the_sum_of_its_graphs() -> None:
    graphs = probe_graphs()
    rng = np.random.default_rng(1)
    probes = [Probe(g, s := rng.normal(size=(g.num_nodes, 2)), s, s) for g in graphs]
    stack = Stack(probes, {"D": lambda adjacency: np.diag(adjacency.sum(axis=1))})
    reading = Reading("row", "remaining")
    letters = {**stack.states, **stack.operators(reading)}
    rows = Target(right_hand_side(rd.parse("A@H - L@L@H", operators={"D": "operator"}))).values(letters)
    for probe, part in zip(probes, stack.per_probe(rows), strict=True):
        own = reading.operators(probe.graph)
        assert np.allclose(part, own["A"] @ probe.state - own["L"] @ own["L"] @ probe.state)
        assert np.allclose(letters["D"].toarray().sum(), sum(reading.looped(g).sum() for g in graphs))


def test_graphs_of_the_package_are_read() -> None:
    graph = rd.Graph.from_edges([[0, 1], [1, 2]], weight=[2.0, 3.0])
    assert np.array_equal(read_graph(graph).adjacency, graph.adjacency.toarray())
    assert str(ProbeGraph("edge", 2, ((0, 1), (1, 0)))) == "2 nodes, edges 0-1"
    assert str(read_graph(graph)) == "3 nodes, edges 0->1, 1->2, weights 2, 3"
    with pytest.raises(InvalidArgument, match="expected a Graph"):
        read_graph("ring")


@pytest.mark.parametrize("bend", [20.0, 30.0])
def test_a_search_along_a_bent_valley_is_not_given_up(bend: float) -> None:
    """Steps that gain and steps that are taken back alternate: what stood still once does not count for ever."""

    def residual(x: np.ndarray) -> np.ndarray:
        return np.array([bend * (x[1] - x[0] ** 2), 1 - x[0]])

    assert _searched(residual, np.array([-1.2, 1.0]), Unknowns((("a", ()), ("b", ())))).error < 1e-9
