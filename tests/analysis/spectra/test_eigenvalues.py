"""Spectra, densities, graph Fourier transform, and gains of integrators measured on eigenvectors."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from scipy.sparse import csr_array
from scipy.sparse.linalg import ArpackNoConvergence

from analysis.figure_files import save_figure
from analysis.spectra.density import chebyshev_moments, damped_series, spectral_density
from analysis.spectra.eigenvalues import reversing_scale, spectral_gap, spectrum, symmetric_laplacian
from analysis.spectra.mode_gains import empirical_gains, gains_figure
from rdgraph.errors import InvalidArgument, NotApplicable, RdgraphError, UnknownName
from rdgraph.graphs import generators
from rdgraph.graphs.graph import Graph
from rdgraph.graphs.operator import Operator
from rdgraph.run.lowering.vector_field import lower
from rdgraph.run.solvers.solver import solve
from rdgraph.testing import adjacency
from tests.property_examples import examples

DOUBLE = torch.float64
KINDS = ("symmetric", "row", "column", "none")


def operator(graph: Graph, kind: str = "symmetric", **options: float) -> Operator:
    return graph.operator(kind, dtype=DOUBLE, **options)


def dense_laplacian(op: Operator) -> np.ndarray:
    """L as a dense matrix, by its definition."""
    A = op.dense().numpy()
    return (np.eye(len(A)) if op.degree is None else np.diag(op.degree.numpy()[:, 0])) - A


# ---------------------------------------------------------------------- whole spectra
@pytest.mark.parametrize("kind", ["symmetric", "row", "column"])
def test_known_spectra(kind: str) -> None:
    ring = 1 - np.cos(2 * np.pi * np.arange(7) / 7)
    assert spectrum(operator(generators.ring(7), kind)).values == pytest.approx(np.sort(ring), abs=1e-12)
    star = spectrum(operator(generators.star(6), kind)).values  # bipartite: 0, 1 four times, 2
    assert star == pytest.approx([0, 1, 1, 1, 1, 2], abs=1e-12)


def test_the_unnormalised_laplacian_of_a_complete_graph() -> None:
    found = spectrum(operator(generators.complete(5), "none"))
    assert found.values == pytest.approx([0, 5, 5, 5, 5], abs=1e-12)
    assert found.kernel.tolist() == [True, False, False, False, False]


@given(matrix=adjacency(max_nodes=7, weighted=True), kind=st.sampled_from(KINDS), loops=st.sampled_from([0.0, 0.5]))
@settings(max_examples=examples(60))
def test_left_and_right_eigenvectors_of_any_undirected_graph(matrix: np.ndarray, kind: str, loops: float) -> None:
    op = operator(Graph.from_dense(matrix), kind, self_loops=loops)
    found, L = spectrum(op), dense_laplacian(op)
    size = 1 + np.abs(found.vectors).max() * np.abs(found.duals).max() * np.abs(L).max()
    assert np.abs(L @ found.vectors - found.vectors * found.values).max() <= 1e-11 * size
    assert np.abs(found.duals.T @ L - found.values[:, None] * found.duals.T).max() <= 1e-11 * size
    assert np.abs(found.duals.T @ found.vectors - np.eye(len(L))).max() <= 1e-11 * size
    assert np.abs(found.vectors.T @ (found.scale[:, None] * found.vectors) - np.eye(len(L))).max() <= 1e-11 * size
    assert (np.diff(found.values) >= 0).all()
    assert found.values[-1] <= found.bound * (1 + 1e-12)


def test_the_scale_of_row_and_column_operators_is_the_degree_per_component() -> None:
    graph = Graph.from_edges([[0, 1, 1, 2, 4, 5], [1, 0, 2, 1, 5, 4]], 6, weight=[2, 2, 1, 1, 3, 3])  # 3 is isolated
    degree = np.array([2.0, 3.0, 1.0, 1.0, 3.0, 3.0])
    first = np.array([2.0, 2.0, 2.0, 1.0, 3.0, 3.0])  # degree of the first node of each component, 1 if isolated
    assert symmetric_laplacian(operator(graph, "row"))[1] == pytest.approx(degree / first)
    assert symmetric_laplacian(operator(graph, "column"))[1] == pytest.approx(first / degree)
    assert symmetric_laplacian(operator(graph, "symmetric"))[1] == pytest.approx(np.ones(6))


def test_isolated_nodes_have_eigenvalue_one_or_zero() -> None:
    graph = Graph.from_edges([[0, 1], [1, 0]], num_nodes=3)
    assert spectrum(operator(graph, "row")).values == pytest.approx([0, 1, 2], abs=1e-12)
    assert spectrum(operator(graph, "none")).values == pytest.approx([0, 0, 2], abs=1e-12)


def test_soft_weights_of_a_reversible_chain_have_a_spectrum_and_others_do_not() -> None:
    base = operator(generators.ring(3), "row")
    turning = base.with_weights(torch.tensor([0.9, 0.1, 0.1, 0.9, 0.9, 0.1], dtype=DOUBLE), "row")
    with pytest.raises(NotApplicable, match="undirected"):
        spectrum(turning)  # goes round the ring, so its eigenvalues are complex
    assert reversing_scale(csr_array([[0.0, 1.0], [-1.0, 0.0]]), 1e-8) is None
    chain = operator(generators.path(3), "row").with_weights(torch.tensor([1.0, 0.3, 0.7, 1.0], dtype=DOUBLE), "row")
    assert spectrum(chain).values == pytest.approx([0, 1, 2], abs=1e-12)


# ---------------------------------------------------------------------- parts and the gap
@pytest.mark.parametrize("solver", ["lanczos", "lobpcg"])
@pytest.mark.parametrize("end", ["low", "high"])
@pytest.mark.parametrize("kind", ["symmetric", "row", "none"])
def test_parts_agree_with_the_whole(solver: str, end: str, kind: str) -> None:
    op = operator(generators.barabasi_albert(150, 2, seed=3), kind)
    whole, part = spectrum(op), spectrum(op, 4, end=end, solver=solver)
    expected = whole.values[:4] if end == "low" else whole.values[-4:]
    assert part.values == pytest.approx(expected, abs=1e-9)
    assert not part.is_whole
    L = dense_laplacian(op)
    assert np.abs(L @ part.vectors - part.vectors * part.values).max() < 1e-6


def test_a_large_graph() -> None:
    op = operator(generators.grid(60, 50), "none")
    expected = 2 - 2 * np.cos(np.pi / 60)  # eigenvalues of a grid add up from those of its two paths
    assert spectral_gap(op) == pytest.approx(expected, rel=1e-7)
    with pytest.raises(InvalidArgument, match="number k of eigenvalues"):
        spectrum(op)


def test_the_gap_of_disconnected_graphs_skips_the_whole_kernel() -> None:
    two = Graph.from_edges(
        [[0, 1, 2, 3, 3, 4], [1, 0, 3, 2, 4, 3]], 6
    )  # an edge (0, 2), a path (0, 1, 2), one node (1)
    assert spectral_gap(operator(two, "row")) == pytest.approx(1.0)
    assert spectral_gap(operator(two, "none")) == pytest.approx(1.0)  # path of 3: 0, 1, 3
    many = generators.sbm([5] * 30, np.eye(30), seed=0)  # thirty complete graphs: lam2 = 5/4
    assert spectral_gap(operator(many)) == pytest.approx(1.25)
    assert spectral_gap(operator(Graph.from_edges(np.zeros((2, 0), int), 4))) == pytest.approx(1.0)
    with pytest.raises(NotApplicable, match="no edges"):
        spectral_gap(operator(Graph.from_edges(np.zeros((2, 0), int), 4), "none"))


def test_multiplicities_that_lanczos_does_not_separate_are_solved_densely(monkeypatch: pytest.MonkeyPatch) -> None:
    def gives_up(*args: object, **options: object) -> None:
        raise ArpackNoConvergence("no convergence", np.zeros(1), np.zeros((1, 1)))

    monkeypatch.setattr("analysis.spectra.eigenvalues.eigsh", gives_up)
    many = operator(generators.sbm([5] * 30, np.eye(30), seed=0))
    assert spectrum(many, 8).values == pytest.approx(np.zeros(8))
    assert spectrum(many, 3, end="high").values == pytest.approx(np.full(3, 1.25))
    with pytest.raises(RdgraphError, match="use lobpcg"):
        spectrum(operator(generators.grid(60, 50)), 2)


def test_bad_requests_are_refused() -> None:
    op = operator(generators.ring(6))
    for k in (0, 7):
        with pytest.raises(InvalidArgument, match="1 <= k <= 6"):
            spectrum(op, k)
    with pytest.raises(InvalidArgument, match="'low' or 'high'"):
        spectrum(op, 2, end="middle")
    with pytest.raises(UnknownName, match="lanczos"):
        spectrum(op, 2, solver="lanczsos")
    with pytest.raises(NotApplicable, match="undirected"):
        spectrum(operator(Graph.from_edges([[0, 1], [1, 2]]), "row"))
    with pytest.raises(InvalidArgument, match="one member"):
        spectrum(op.with_weights(op.weights.expand(2, -1), "symmetric"))
    with pytest.raises(InvalidArgument, match="finite"):
        spectrum(Operator(op.pattern, op.weights * torch.nan, "symmetric"))


# ---------------------------------------------------------------------- Fourier transform
@pytest.mark.parametrize("kind", KINDS)
def test_the_transform_diagonalises_and_inverts(kind: str) -> None:
    op = operator(generators.barabasi_albert(12, 2, seed=1), kind)
    found, H = spectrum(op), torch.randn(2, 3, 12, 4, dtype=DOUBLE)
    coefficients = found.transform(H)
    torch.testing.assert_close(found.inverse(coefficients), H, rtol=0, atol=1e-12)
    lam = torch.as_tensor(found.values)[:, None]
    torch.testing.assert_close(found.transform(op.laplacian(H)), lam * coefficients, rtol=0, atol=1e-11)


def test_a_part_projects() -> None:
    op = operator(generators.star(9), "row")
    low, H = spectrum(op, 1), torch.randn(9, 2, dtype=DOUBLE)
    degree = torch.tensor([8.0] + [1.0] * 8, dtype=DOUBLE)[:, None]
    mean = (degree * H).sum(0) / degree.sum()  # the kernel of the row-normalised L: the degree-weighted mean
    torch.testing.assert_close(low.inverse(low.transform(H)), mean.expand(9, 2))
    with pytest.raises(InvalidArgument, match=r"\(\.\.\., 9, channels\)"):
        low.transform(H[:4])


# ---------------------------------------------------------------------- densities
def test_the_histogram_counts() -> None:
    density = spectral_density(operator(generators.complete(6)), points=4)  # 0 once, 6/5 five times
    assert density.density == pytest.approx([1 / 6 / 0.5, 0, 5 / 6 / 0.5, 0])
    assert density.rows()[2] == {"lam": 1.25, "density": pytest.approx(5 / 3), "method": "histogram"}


def test_moments_and_series_against_the_eigenvalues() -> None:
    laplacian, _, bound = symmetric_laplacian(operator(generators.barabasi_albert(20, 2, seed=2)))
    x = np.linalg.eigvalsh(laplacian.toarray()) - 1
    moments = chebyshev_moments(laplacian, bound, np.eye(20), 9)  # all unit vectors: the trace itself
    assert moments == pytest.approx([np.cos(m * np.arccos(np.clip(x, -1, 1))).mean() for m in range(10)], abs=1e-12)
    grid = np.cos((np.arange(400) + 0.5) * np.pi / 400)  # Gauss-Chebyshev: the series is integrated exactly
    series = damped_series(moments, grid)
    assert (series > 0).all()
    assert (series * np.sqrt(1 - grid**2)).sum() * np.pi / 400 == pytest.approx(1.0)


def test_the_polynomial_estimate_is_near_the_count() -> None:
    op = operator(generators.erdos_renyi(400, 0.05, seed=0))
    count = spectral_density(op, points=10)
    fine = spectral_density(op, points=200, method="polynomial", probes=32)
    estimate = fine.density.reshape(10, 20).mean(axis=1)
    assert np.abs(estimate - count.density).max() < 0.08  # bins up to 1.4; a kernel of degree 100 blurs over 0.03
    assert fine.density.mean() * 2 == pytest.approx(1.0, abs=5e-3)
    again = spectral_density(op, points=200, method="polynomial", probes=32)
    assert np.array_equal(fine.density, again.density)
    plain = spectral_density(operator(generators.erdos_renyi(80, 0.2, seed=0), "none"), method="polynomial")
    assert plain.density.mean() * (plain.lam[0] + plain.lam[-1]) == pytest.approx(1.0, abs=0.05)
    for bad in ({"method": "lanczos"}, {"points": 0}):
        with pytest.raises(InvalidArgument, match="expected"):
            spectral_density(op, **bad)


# ---------------------------------------------------------------------- gains
def test_kernels_survive_single_precision() -> None:
    """Row sums of thirds are off by 1e-8 in float32; the kernel is found all the same."""
    found = spectrum(generators.barabasi_albert(30, 3, seed=0).operator("row", dtype=torch.float32))
    assert found.kernel.tolist() == [True] + [False] * 29


LINEAR = ("diffusion", "BS", "ST", "FB", "FB*", "FB-released")


@pytest.mark.parametrize(("method", "step"), [("exact", None), ("euler", 0.75), ("rk4", 0.75)])
@pytest.mark.parametrize(("kind", "name"), [*(("symmetric", name) for name in LINEAR), ("row", "BS"), ("column", "ST")])
def test_measured_gains_are_the_symbolic_response(method: str, step: float | None, name: str, kind: str) -> None:
    """T is no multiple of the step, so that the last one is shortened."""
    op = operator(generators.barabasi_albert(9, 2, seed=0), kind)
    values = {"alpha": 0.5} if name == "diffusion" else {"alpha": 0.5, "beta": 0.8}
    found = empirical_gains(name, op, values, T=3.5, method=method, step=step)
    assert found.error.max() < 2e-13
    assert found.leak.max() < 2e-12 * np.abs(found.gain).max()


def test_adaptive_gains_are_near_the_flow_and_nonlinear_ones_leak() -> None:
    op = operator(generators.path(6))
    assert empirical_gains("BS", op, {"alpha": 0.5, "beta": 1.0}, T=3.0, method="dopri5").error.max() < 1e-6
    values = {"alpha": 0.5, "beta": 1.0}
    small = empirical_gains("AC", op, values, T=1.0, method="dopri5", amplitude=1e-3)
    linear = np.exp(1.0 - 0.5 * small.lam)  # at h = 0 Allen-Cahn is -alpha L + beta
    assert small.gain == pytest.approx(linear, rel=1e-5)
    assert empirical_gains("AC", op, values, T=1.0, method="dopri5", amplitude=1.0).leak.max() > 1e-2


def test_a_run_that_fails_has_no_gain() -> None:
    op = operator(generators.path(3))
    found = empirical_gains("F", op, {"alpha": 0.1, "beta": 5.0}, T=20.0, method="euler", step=0.5, amplitude=-9.0)
    assert np.isnan(found.gain).all()


def test_gains_want_scalars() -> None:
    op = operator(generators.path(3))
    with pytest.raises(NotApplicable, match="scalar coefficients"):
        empirical_gains("-k*L@H where k channel", op, {"k": 1.0}, T=1.0)
    with pytest.raises(InvalidArgument, match="none for beta"):
        empirical_gains("BS", op, {"alpha": 1.0}, T=1.0)
    with pytest.raises(InvalidArgument, match="at least one"):
        gains_figure([])


def test_gains_are_taken_with_left_eigenvectors() -> None:
    op = operator(generators.barabasi_albert(9, 2, seed=0), "row")
    found = empirical_gains("AC", op, {"alpha": 0.5, "beta": 1.0}, T=1.0, method="rk4", step=0.1)
    modes = spectrum(op)
    start = torch.as_tensor(modes.vectors.T.copy())[..., None]
    end = solve(lower("AC", op, {"alpha": 0.5, "beta": 1.0}, batch=(9,)), start, [0.0, 1.0], "rk4", step=0.1).final
    own = modes.transform(end)[:, :, 0].numpy().diagonal()  # what is left of mode k in run k
    assert found.gain == pytest.approx(own, abs=1e-12)


@pytest.mark.slow
def test_the_figure_and_its_numbers(tmp_path: Path) -> None:
    op = operator(generators.path(5))
    values = {"alpha": 0.5, "beta": 1.0}
    measured = [empirical_gains("BS", op, values, T=3.0, method=m, step=s) for m, s in (("exact", None), ("rk4", 1.0))]
    figure, rows = gains_figure(measured)
    assert len(rows) == 10
    assert len(figure.axes[0].lines) == 5  # a curve and points for each, and the line at 1
    paths = save_figure(figure, tmp_path / "new", "gains", rows)
    assert sorted(p.name for p in (tmp_path / "new").iterdir()) == ["gains.csv", "gains.pdf", "gains.png"]
    with paths[2].open() as file:
        read = list(csv.DictReader(file))
    assert [float(r["gain"]) for r in read] == pytest.approx([r["gain"] for r in rows], rel=1e-11)
    assert read[0]["step"] == ""
    assert read[5]["step"] == "1"


# ---------------------------------------------------------------------- saving
def test_columns_are_the_union_of_the_keys(tmp_path: Path) -> None:
    rows = [{"a": 1, "b": 0.1}, {"b": np.float64(1 / 3), "c": 'x,"y"'}]
    save_figure(Figure(), tmp_path, "t", rows)
    assert (tmp_path / "t.csv").read_bytes() == b'a,b,c\r\n1,0.1,\r\n,0.333333333333,"x,""y"""\r\n'


def test_nothing_is_left_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RdgraphError, match="cannot write"):
        save_figure(Figure(), tmp_path / "file", "t", [])

    def fill_the_disk(path: Path, *_: object, **__: object) -> None:
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", fill_the_disk)
    with pytest.raises(RdgraphError, match="No space left"):
        save_figure(Figure(), tmp_path / "out", "t", [])
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["t.pdf", "t.png"]
