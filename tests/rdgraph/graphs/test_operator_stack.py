"""`stack`: every member of the stacked operator does what its own operator does."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import rdgraph as rd
from analysis.measures.measure_records import measure_all
from rdgraph.graphs.generators import complete, csbm, erdos_renyi, path, ring, star
from rdgraph.graphs.operator import Operator, stack
from rdgraph.testing import adjacency
from tests.property_examples import examples

F64 = torch.float64
KINDS = ("symmetric", "row", "column", "none")


def some_graphs(n: int = 9) -> list[rd.Graph]:
    return [ring(n), star(n), path(n), complete(n), *(erdos_renyi(n, 0.3, seed=s) for s in range(3))]


def state(*shape: int) -> torch.Tensor:
    return torch.randn(shape, dtype=F64, generator=torch.Generator().manual_seed(5))


# ---------------------------------------------------------------------- the operator
def test_the_union_by_hand() -> None:
    # path 0-1-2 and the single edge 0-2: the union has 6 entries in rows 0: 1, 2; 1: 0, 2; 2: 0, 1
    both = stack(
        [path(3).operator("none", dtype=F64), rd.Graph.from_edges([[0, 2], [2, 0]]).operator("none", dtype=F64)]
    )
    assert both.pattern.indptr.tolist() == [0, 2, 4, 6]
    assert both.pattern.indices.tolist() == [1, 2, 0, 2, 0, 1]
    assert both.weights.tolist() == [[1, 0, 1, 1, 0, 1], [0, 1, 0, 0, 1, 0]]
    assert both.degree is not None
    assert both.degree[..., 0].tolist() == [[1, 2, 1], [1, 0, 1]]
    assert (both.normalisation, both.self_loops, both.batch) == ("none", 0.0, (2,))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loops", [0.0, 0.5])
def test_products_and_laplacians_are_the_members_own(kind: str, loops: float) -> None:
    single = [g.operator(kind, self_loops=loops, dtype=F64) for g in some_graphs()]
    both = stack(single)
    H = state(len(single), 9, 3)
    assert torch.equal(both.dense(), torch.stack([op.dense() for op in single]))
    torch.testing.assert_close(both @ H, torch.stack([op @ h for op, h in zip(single, H, strict=True)]))
    torch.testing.assert_close(
        both.laplacian(H), torch.stack([op.laplacian(h) for op, h in zip(single, H, strict=True)])
    )
    assert both.self_loops == loops


@settings(max_examples=examples(40))
@given(st.data())
def test_any_graphs_stack(data: st.DataObject) -> None:
    n = data.draw(st.integers(2, 6))
    graphs = data.draw(st.lists(adjacency(n, n, weighted=True), min_size=1, max_size=4))
    kind = data.draw(st.sampled_from(KINDS))
    single = [rd.Graph.from_dense(g).operator(kind, dtype=F64) for g in graphs]
    both = stack(single)
    assert torch.equal(both.dense(), torch.stack([op.dense() for op in single]))
    keys = both.pattern.rows.long() * n + both.pattern.indices.long()
    assert bool((keys.diff() > 0).all())
    assert len(keys) == len({k for g in graphs for k in g.ravel().nonzero()[0]})


def test_members_that_share_a_pattern_keep_it() -> None:
    op = ring(5).operator("row", dtype=F64)
    both = stack([op, op.with_weights(-op.weights, "row")])
    assert both.pattern is op.pattern
    assert torch.equal(both.weights, torch.stack([op.weights, -op.weights]))


def test_entries_in_any_order_and_repeated_ones_are_added_up() -> None:
    first = Operator.from_csr([0, 3, 3], [1, 0, 1], torch.tensor([1.0, 2.0, 4.0], dtype=F64))
    second = Operator.from_csr([0, 0, 1], [0], torch.tensor([8.0], dtype=F64))
    assert stack([first, second]).dense().tolist() == [[[2, 5], [0, 0]], [[0, 0], [8, 0]]]


def test_graphs_without_edges_stack() -> None:
    nothing = rd.Graph.from_edges([[], []], num_nodes=3).operator("none", dtype=F64)
    both = stack([nothing, nothing.with_weights(nothing.weights, "none")])
    assert (both @ torch.ones(2, 3, 1, dtype=F64)).abs().sum() == 0


def test_gradients_reach_the_members_weights() -> None:
    single = [g.operator("row", dtype=F64) for g in (path(4), star(4))]
    own = [op.weights.clone().requires_grad_() for op in single]
    H = state(2, 4, 2)
    both = stack([op.with_weights(w, "row") for op, w in zip(single, own, strict=True)])
    (both @ H).square().sum().backward()
    for op, w, h in zip(single, own, H, strict=True):
        alone = op.weights.clone().requires_grad_()
        (op.with_weights(alone, "row") @ h).square().sum().backward()
        torch.testing.assert_close(w.grad, alone.grad)


# ---------------------------------------------------------------------- fields, runs, measures
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["BS", "AC", "ST"])
def test_fields_and_runs_are_the_members_own(kind: str, name: str) -> None:
    single = [g.operator(kind, dtype=F64) for g in some_graphs(6)]
    values = {"alpha": 0.5, "beta": 0.3}
    H = 0.1 * state(len(single), 6, 2)
    field = rd.lower(name, stack(single), values, batch=(len(single),))
    fields = [rd.lower(name, op, values) for op in single]
    bound = field.bind(H) if field.uses_initial else field
    alone = [(f.bind(h) if f.uses_initial else f)(0.0, h) for f, h in zip(fields, H, strict=True)]
    torch.testing.assert_close(bound(0.0, H), torch.stack(alone), rtol=1e-13, atol=1e-14)
    together = rd.solve(field, H, [0.0, 1.0], "rk4", step=0.25).final
    runs = [rd.solve(f, h, [0.0, 1.0], "rk4", step=0.25).final for f, h in zip(fields, H, strict=True)]
    torch.testing.assert_close(together, torch.stack(runs), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_exact_runs_are_the_members_own(kind: str) -> None:
    single = [g.operator(kind, dtype=F64) for g in some_graphs(6)]
    H = state(len(single), 6, 2)
    field = rd.lower("-alpha*L@H", stack(single), {"alpha": 0.7}, batch=(len(single),))
    together = rd.solve(field, H, [0.0, 2.0], "exact").final
    runs = [
        rd.solve(rd.lower("-alpha*L@H", op, {"alpha": 0.7}), h, [0.0, 2.0], "exact").final
        for op, h in zip(single, H, strict=True)
    ]
    torch.testing.assert_close(together, torch.stack(runs), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_measures_are_the_members_own(kind: str) -> None:
    """Members differ in edges, in isolated nodes and in the number of components."""
    graphs = some_graphs()
    plain, own = ([g.operator(k, dtype=F64) for g in graphs] for k in ("none", kind))
    H = state(4, len(graphs), 9, 3)
    labels = torch.tensor([0, 1, 2] * 3)
    together = measure_all(H, plain=stack(plain), op=stack(own), labels=labels)
    for b in range(len(graphs)):
        alone = measure_all(H[:, b], plain=plain[b], op=own[b], labels=labels)
        for name, value in alone.items():
            torch.testing.assert_close(
                together[name][:, b], value, rtol=1e-12, atol=1e-13, msg=lambda m, n=name: f"{n}: {m}"
            )


def test_the_contextual_graphs_of_a_study_run_as_one_batch() -> None:
    drawn = [csbm(s, sizes=(15, 15)) for s in range(5)]
    op = stack([d.graph.operator("symmetric", dtype=F64) for d in drawn])
    assert op.batch == (5,)
    assert op.norm == ("2", 1.0)
    assert len({tuple(w.tolist()) for w in op.weights}) == 5


# ---------------------------------------------------------------------- bad input
@pytest.mark.parametrize(
    ("members", "words"),
    [
        (list, "at least one operator"),
        (lambda: [ring(4)], "got Graph as member 0"),
        (
            lambda: [ring(4).operator(), ring(5).operator()],
            "same number of nodes.* got 4 in member 0 and 5 in member 1; pad",
        ),
        (lambda: [ring(4).operator(), ring(4).operator("row")], "same normalisation.* symmetric .* row"),
        (lambda: [ring(4).operator(), ring(4).operator(self_loops=1.0)], "same self-loop weight"),
        (lambda: [ring(4).operator(), ring(4).operator(dtype=F64)], r"same dtype.* op.to\(dtype"),
        (
            lambda: [ring(4).operator("none"), stack([ring(4).operator("none")])],
            r"member 1 with weights of batch \(1,\)",
        ),
        (
            lambda: [
                (op := ring(4).operator("none")).with_weights(op.weights, degree=op.degree),
                op.with_weights(op.weights),
            ],
            "D - A in member 0 and I - A",
        ),
    ],
)
def test_what_does_not_fit_is_refused(members, words: str) -> None:
    with pytest.raises(rd.errors.InvalidArgument, match=words):
        stack(members())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_weights_that_repeat_in_memory_give_the_bits_of_copies(dtype):
    graphs = [rd.generators.erdos_renyi(12, 0.4, seed) for seed in range(3)]
    single = stack([g.operator("none", dtype=dtype) for g in graphs])
    spread = single.weights.expand(4, 3, -1)
    both = (spread, spread.contiguous())
    thin, thick = (Operator(single.pattern, w, "none", 0.0, degree=single.degree) for w in both)
    x = torch.randn(4, 3, 12, 2, dtype=dtype, generator=torch.Generator().manual_seed(0))
    factor = torch.arange(1.0, 13.0, dtype=dtype).reshape(4, 3, 1, 1)
    for arguments in ((x,), (x, factor, [(factor, x), (factor, x + 1)])):
        assert torch.equal(thin.product(*arguments), thick.product(*arguments))
    torch.testing.assert_close(thin @ x, single.dense() @ x)
