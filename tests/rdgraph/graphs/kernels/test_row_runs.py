"""Runs of rows: a product by runs is the sparse product, on any matrix."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sparse
from hypothesis import given
from hypothesis import strategies as st

import rdgraph as rd
from rdgraph.graphs.kernels.row_order import RowRuns, row_runs


def product(runs: RowRuns, x: np.ndarray) -> np.ndarray:
    """A@x row by row from the runs."""
    out = np.zeros(len(x))
    for r in range(runs.count):
        own = slice(runs.entries[r], runs.entries[r] + runs.degrees[r])
        for i in range(runs.starts[r], runs.starts[r + 1]):
            out[i] = runs.weights[own] @ x[i + runs.offsets[own]]
    return out


def runs_of(matrix: sparse.csr_array) -> RowRuns:
    return row_runs(matrix.indptr, matrix.indices, matrix.data)


@given(st.integers(1, 12), st.integers(0, 2**31), st.sampled_from([0.0, 0.2, 0.6]), st.booleans())
def test_a_product_by_runs_is_the_product(nodes, seed, density, equal):
    stream = np.random.default_rng(seed)
    dense = stream.random((nodes, nodes)) * (stream.random((nodes, nodes)) < density)
    matrix = sparse.csr_array(np.where(dense > 0, 0.5, 0) if equal else dense)
    x = stream.standard_normal(nodes)
    runs = runs_of(matrix)
    np.testing.assert_allclose(product(runs, x), matrix @ x, atol=1e-12)
    assert runs.starts[0] == 0
    assert runs.starts[-1] == nodes
    assert (np.diff(runs.starts) > 0).all()


def test_a_periodic_grid_has_three_runs_per_line():
    operator = rd.generators.grid(10, 20, periodic=True).operator("none")
    pattern = operator.pattern
    runs = row_runs(pattern.indptr.numpy(), pattern.indices.numpy(), operator.weights.numpy())
    assert runs.count == 30
    assert set(runs.degrees.tolist()) == {4}
    assert not runs.pays
    assert runs.mean_length == 20 / 3


def test_weights_that_differ_end_a_run():
    matrix = sparse.diags_array([np.array([1.0, 1.0, 2.0, 2.0, 2.0])], offsets=[1], shape=(6, 6)).tocsr()
    assert runs_of(matrix).starts.tolist() == [0, 2, 5, 6]


def test_empty_rows_are_runs_too():
    matrix = sparse.csr_array((4, 4))
    assert runs_of(matrix).starts.tolist() == [0, 4]
    assert runs_of(matrix).degrees.tolist() == [0]
