"""The sparse product: Triton's kernels in their interpreter, and plain torch, against dense matrices."""

from __future__ import annotations

import os

os.environ.setdefault("TRITON_INTERPRET", "1")

import numpy as np
import pytest
import scipy.sparse
import torch
from torch import Tensor

from rdgraph.graphs.kernels import torch_reference as plain
from rdgraph.graphs.kernels.row_order import Rows

triton = pytest.importorskip("triton", reason="Triton is not installed")
fused = pytest.importorskip("rdgraph.graphs.kernels.triton_spmm")
sampled = pytest.importorskip("rdgraph.graphs.kernels.triton_sddmm")

pytestmark = pytest.mark.skipif(
    os.environ["TRITON_INTERPRET"] != "1" and not torch.cuda.is_available(), reason="no interpreter and no GPU"
)

DEVICE = "cuda" if torch.cuda.is_available() and os.environ["TRITON_INTERPRET"] != "1" else "cpu"
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 2e-2}


class Problem:
    """A random sparse matrix with rows of very different length, and dense copies of everything."""

    def __init__(self, nodes: int, channels: int, members: int, shared: bool, dtype: torch.dtype, index: torch.dtype):
        random = np.random.default_rng(nodes + 10 * channels + members)
        density = random.random((nodes, nodes)) < random.random((nodes, 1)) ** 2
        matrix = scipy.sparse.csr_array(density.astype(float))
        self.rows = Rows(torch.tensor(matrix.indptr, dtype=index), torch.tensor(matrix.indices, dtype=index))
        count = len(matrix.indices)
        self.weights = torch.tensor(random.standard_normal((1 if shared else members, count))).to(dtype)
        self.x = torch.tensor(random.standard_normal((members, nodes, channels))).to(dtype)
        self.y = torch.tensor(random.standard_normal((members, nodes, channels))).to(dtype)
        edge_rows = plain.edge_rows(self.rows.indptr, count).long()
        self.edges = edge_rows, self.rows.indices.long()
        self.dense = torch.zeros((members, nodes, nodes), dtype=torch.float64)
        self.dense[:, edge_rows, self.edges[1]] = self.weights.double().expand(members, -1)

    def on(self, *tensors: Tensor) -> list[Tensor]:
        return [t.to(DEVICE) for t in tensors]


def close(found: Tensor, expected: Tensor, dtype: torch.dtype) -> None:
    error = (found.double().cpu() - expected).norm() / expected.norm().clamp(min=1e-30)
    assert error <= TOLERANCE[dtype], float(error)


CASES = [
    (5, 1, 1, True, torch.float64, torch.int32),
    (9, 3, 2, True, torch.float32, torch.int64),
    (10, 17, 2, False, torch.float32, torch.int32),
    (7, 12, 1, True, torch.bfloat16, torch.int32),
    (5, 70, 2, True, torch.float64, torch.int32),
    (1, 2, 1, True, torch.float32, torch.int32),
]
BACKENDS = ["plain", "fused", "heavy", "long"]
SHAPES = [fused.Shape(1, 8, 2, 4), fused.Shape(2, 4, 1, 1), fused.Shape(4, 2, 3, 2)]


def arranged(p: Problem, backend: str) -> Rows:
    """Rows for a backend: as they come, or with few enough edges to be heavy and long on a small graph."""
    rows = {"plain": p.rows, "fused": p.rows.arrange(), "heavy": p.rows.arrange(2, 100), "long": p.rows.arrange(1, 2)}
    return Rows.from_tensors(p.on(*rows[backend].tensors))


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("backend", BACKENDS)
def test_product_is_the_dense_product(case, backend):
    p = Problem(*case)
    rows = arranged(p, backend)
    weights, x = p.on(p.weights, p.x)
    is_plain = backend == "plain"
    found = plain.spmm(rows.indptr, rows.indices, weights, x) if is_plain else fused.spmm(rows, weights, x)
    assert found.dtype == p.x.dtype
    close(found, p.dense @ p.x.double(), p.x.dtype)


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("backend", BACKENDS)
def test_sampled_product_is_the_dense_one_at_the_edges(case, backend):
    p = Problem(*case)
    shared = len(p.weights) == 1
    rows = arranged(p, backend)
    g, x = p.on(p.y, p.x)
    if backend == "plain":
        found = plain.sddmm(rows.indptr, rows.indices, g, x, shared)
    else:
        found = sampled.sddmm(rows, g, x, shared)
    full = (p.y.double() @ p.x.double().transpose(1, 2))[:, p.edges[0], p.edges[1]]
    close(found, full.sum(0, keepdim=True) if shared else full, p.x.dtype)


@pytest.mark.parametrize("backend", ["fused", "heavy", "long"])
@pytest.mark.parametrize("terms", [0, 2, 4])
def test_the_sum_is_taken_in_the_same_pass(backend, terms):
    p = Problem(9, 5, 3, False, torch.float64, torch.int32)
    random = torch.Generator().manual_seed(terms)
    shapes = [(), (5,), (3, 1, 1), (9, 1)]
    factors = [torch.randn(s, generator=random, dtype=torch.float64) for s in shapes[:terms]]
    fields = [torch.randn(3, 9, 5, generator=random, dtype=torch.float64) for _ in factors]
    scale = torch.randn(3, 1, 5, generator=random, dtype=torch.float64)
    rows = arranged(p, backend)
    found = fused.spmm(rows, *p.on(p.weights, p.x, scale), list(zip(p.on(*factors), p.on(*fields), strict=True)))
    expected = scale * (p.dense @ p.x) + sum((k * y for k, y in zip(factors, fields, strict=True)), torch.zeros(()))
    close(found, expected, torch.float64)


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("backend", ["fused", "heavy", "long"])
def test_every_launch_shape_gives_the_same_numbers(shape, backend):
    p = Problem(11, 5, 2, False, torch.float64, torch.int32)
    rows = arranged(p, backend)
    weights, x, y = p.on(p.weights, p.x, p.y)
    scale = torch.full((), 3.0, dtype=torch.float64, device=DEVICE)
    raw, found = fused.pull(rows, weights, x, scale, [(scale, y)], shape=shape)
    close(raw, p.dense @ p.x, torch.float64)
    close(found, 3 * (p.dense @ p.x) + 3 * p.y, torch.float64)
    for shared in (True, False):
        full = (p.y @ p.x.transpose(1, 2))[:, p.edges[0], p.edges[1]]
        found = sampled.sddmm(rows, y, x, shared, shape=shape)
        close(found, full.sum(0, keepdim=True) if shared else full, torch.float64)


@pytest.mark.parametrize("dtype", list(TOLERANCE), ids=str)
@pytest.mark.parametrize(("nodes", "channels"), [(1, 1), (700, 1), (700, 3), (520, 130)])
def test_inner_sums_over_the_nodes(nodes, channels, dtype):
    random = torch.Generator().manual_seed(nodes)
    left, right = (torch.randn(2, nodes, channels, generator=random).to(dtype) for _ in range(2))
    found = sampled.inner(left.to(DEVICE), right.to(DEVICE))
    assert found.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    close(found, (left.double() * right.double()).sum(1), dtype)


@pytest.mark.slow
def test_products_are_the_same_bits_every_time():
    p = Problem(20, 24, 2, False, torch.float32, torch.int32)
    rows = arranged(p, "long")
    runs = [fused.spmm(rows, *p.on(p.weights, p.x)) for _ in range(2)]
    assert all(torch.equal(runs[0], run) for run in runs[1:])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("repeats", "own"), [(1, 3), (4, 3), (4, 1)])
def test_members_that_share_weights_are_computed_together(repeats, own, dtype, monkeypatch):
    p = Problem(9, 3, repeats * own, False, dtype, torch.int32)
    rows, weights, x = p.rows, p.weights[:own], p.x  # the reference gives such bits on a processor
    found = plain.spmm(rows.indptr, rows.indices, weights, x)
    alone = [
        plain.matrix_product(rows.indptr, rows.indices, weights[b % own], member.contiguous())
        for b, member in enumerate(x)
    ]
    assert torch.equal(found, torch.stack(alone))
    monkeypatch.setattr(plain, "MAX_JOINED", 0)  # one after the other
    assert torch.equal(plain.spmm(rows.indptr, rows.indices, weights, x), found)
    for b in range(repeats * own):
        close(found[b], p.dense[b % own] @ p.x[b].double(), dtype)


def test_a_graph_without_edges_gives_zeros():
    rows = Rows(torch.zeros(4, dtype=torch.int32, device=DEVICE), torch.zeros(0, dtype=torch.int32, device=DEVICE))
    rows = rows.arrange()
    x = torch.ones(1, 3, 2, device=DEVICE)
    weights = torch.zeros(1, 0, device=DEVICE)
    assert torch.equal(fused.spmm(rows, weights, x), torch.zeros_like(x))
    assert torch.equal(plain.spmm(rows.indptr, rows.indices, weights, x), torch.zeros_like(x))


def test_rows_are_arranged():
    rows = Rows(torch.tensor([0, 1, 8, 8, 11, 13]), torch.zeros(13, dtype=torch.int64)).arrange(heavy=1, long=3)
    starts, ends, targets = rows.main
    assert targets.tolist() == [3, 4, 0, 2]
    assert (starts.tolist(), ends.tolist()) == ([8, 11, 0, 8], [11, 13, 1, 8])
    assert rows.heavy == 2
    assert rows.long_rows.tolist() == [1]
    assert [x.tolist() for x in rows.pieces] == [[1, 4, 7], [4, 7, 8], [1, 1, 1]]
    assert [x.tolist() for x in rows.sums] == [[0], [3], [1]]
    assert not Rows(torch.tensor([0, 1]), torch.tensor([0])).arrange().has_long


@pytest.mark.parametrize("long", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("heavy", [0, 2, 4, 9])
def test_every_row_has_one_place(heavy, long):
    """Rows of every length around the limits: each is light, heavy or long, and pieces cover the long ones."""
    degrees = torch.tensor([4, 0, 1, 3, 6, 2, 5, 4])
    indptr = torch.cat([torch.zeros(1, dtype=torch.int64), degrees.cumsum(0)])
    rows = Rows(indptr, torch.zeros(int(degrees.sum()), dtype=torch.int64)).arrange(heavy, long)
    targets = rows.main[2]
    placed = torch.arange(8) if targets is None else torch.cat([targets, rows.long_rows])
    assert sorted(placed.tolist()) == list(range(8))
    assert rows.long_rows.tolist() == (degrees > long).nonzero().ravel().tolist()
    starts, ends, owners = rows.pieces
    assert (ends - starts).tolist() == [min(long, int(indptr[o + 1] - s)) for s, o in zip(starts, owners, strict=True)]
    assert int((ends - starts).sum()) == int(degrees[rows.long_rows].sum())


@pytest.mark.skipif(DEVICE == "cpu", reason="nothing is compiled in the interpreter")
def test_the_product_is_compiled_once_for_all_numbers_of_members_and_nodes() -> None:
    """A training cut into pieces, or with members dropped on the way, is not to wait for the compiler again."""
    compiled = set[int]()
    for nodes, members in ((48, 10), (48, 1), (48, 16), (37, 7)):
        p = Problem(nodes, 16, members, True, torch.float32, torch.int32)
        fused.spmm(arranged(p, "fused"), *p.on(p.weights, p.x))
        compiled.add(len(fused._spmm_kernel.device_caches[torch.cuda.current_device()][0]))
    assert len(compiled) == 1
