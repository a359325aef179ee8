"""Shapes, precision, size, derivatives and bad input of the measures of states, and measures of runs."""

from __future__ import annotations

import gc
import math
import weakref

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

import rdgraph as rd
from analysis.measures.class_separation import fisher_ratio
from analysis.measures.distances import kernel_distance, mad
from analysis.measures.energies import dirichlet_energy, laplacian_energy, rayleigh
from analysis.measures.measure_records import MEASURES, make_measures, measure_all
from analysis.measures.ranks import numerical_rank
from rdgraph.errors import InvalidArgument
from rdgraph.graphs.generators import barabasi_albert, erdos_renyi, path, ring
from rdgraph.graphs.operator import Operator, stack
from tests.analysis.measures.measured_states import F64, KINDS, STAR, column, operator, random, value


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
    with pytest.raises(rd.errors.NotApplicable, match="undirected graph"):
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


@pytest.mark.gpu
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
    with pytest.raises(rd.errors.NotApplicable, match=words):
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
    with pytest.raises(rd.errors.UnknownName, match="did you mean 'rayleigh'"):
        make_measures(plain=operator(path(3)), names=["raleigh"])
