"""Spectra of the Laplacian L (I - A, or D - A if A is not normalised), whole or in part; graph Fourier transform.

Operators that are not symmetric are replaced by a similar symmetric one: if s_i A_ij = s_j A_ji with s > 0, as for the
row and the column normalisation of an undirected graph, S^1/2 A S^-1/2 is symmetric and has the same eigenvalues.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.linalg import eigh
from scipy.sparse import block_array, csr_array, diags_array
from scipy.sparse.csgraph import breadth_first_order, connected_components
from scipy.sparse.linalg import ArpackNoConvergence, eigsh, lobpcg
from torch import Tensor

from rdgraph.errors import InvalidArgument, NotApplicable, Undecided, UnknownName
from rdgraph.graphs.operator import Operator

# ---------------------------------------------------------------------- symmetric twin
# The symmetric matrix S^1/2 L S^-1/2 with the eigenvalues of L, where s_i A_ij = s_j A_ji for some s > 0.


def symmetric_laplacian(op: Operator) -> tuple[csr_array, np.ndarray, float]:
    """S^1/2 L S^-1/2 as a symmetric matrix, the scale s (n,) and an upper bound of its eigenvalues in size.

    >>> import rdgraph as rd
    >>> symmetric_laplacian(rd.generators.path(3).operator("row"))[1]  # the degrees, up to a factor per component
    array([1., 2., 1.])
    """
    matrix = scipy_matrix(op)
    scale = reversing_scale(matrix, tolerance=float(np.sqrt(torch.finfo(op.dtype).eps)))
    if scale is None:
        raise NotApplicable(
            f"expected an operator with s_i A_ij = s_j A_ji for some s > 0, got {op!r}; make the graph undirected "
            "(Graph.undirected()): directed graphs and free weights have no real orthogonal spectrum"
        )
    if not op.record.is_symmetric:
        back = csr_array(matrix.T)
        back.sort_indices()
        matrix = csr_array(
            (np.sign(matrix.data) * np.sqrt(np.abs(matrix.data * back.data)), matrix.indices, matrix.indptr),
            shape=matrix.shape,
        )
    diagonal = np.ones(op.num_nodes) if op.degree is None else op.degree.detach().double().cpu().numpy()[:, 0]
    laplacian = csr_array(diags_array(diagonal) - matrix)
    norm = 2.0 if op.record.norm is not None else float(abs(laplacian).sum(axis=1).max())
    return laplacian, scale, max(norm, np.finfo(float).tiny)


def scipy_matrix(op: Operator) -> csr_array:
    """A as a scipy matrix in float64, rows are targets; for operators without a member axis."""
    if op.batch:
        raise InvalidArgument(f"expected one set of weights, got those of {op.batch} members; pass op of one member")
    parts = (x.detach().cpu().numpy() for x in (op.weights.double(), op.pattern.indices, op.pattern.indptr))
    matrix = csr_array(tuple(parts), shape=(op.num_nodes, op.num_nodes))
    if not np.isfinite(matrix.data).all():
        raise InvalidArgument("expected finite edge weights, got NaN or infinity")
    matrix = matrix.copy()
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return matrix


def reversing_scale(matrix: csr_array, tolerance: float) -> np.ndarray | None:
    """s > 0 (n,) with s_i A_ij = s_j A_ji, 1 at the first node of every component; None if there is none.

    >>> reversing_scale(csr_array([[0.0, 1.0], [0.25, 0.0]]), 1e-8)
    array([1., 4.])
    >>> reversing_scale(csr_array([[0.0, 1.0], [0.0, 0.0]]), 1e-8) is None
    True
    """
    back = csr_array(matrix.T)
    back.sort_indices()
    same_places = np.array_equal(matrix.indptr, back.indptr) and np.array_equal(matrix.indices, back.indices)
    if not same_places or (matrix.data * back.data < 0).any():
        return None
    ratio = csr_array((matrix.data / back.data, matrix.indices, matrix.indptr), shape=matrix.shape)
    scale = _spread_along_tree(matrix, ratio)
    rows = np.repeat(np.arange(len(scale)), np.diff(matrix.indptr))
    here, there = scale[rows] * matrix.data, scale[matrix.indices] * back.data
    fits = np.abs(here - there) <= tolerance * np.maximum(np.abs(here), np.abs(there))
    return scale if fits.all() else None


def _spread_along_tree(matrix: csr_array, ratio: csr_array) -> np.ndarray:
    """s_j = s_i A_ij / A_ji from the first node of every component along a breadth-first tree, in one search."""
    n = matrix.shape[0]
    first = np.unique(connected_components(matrix, directed=False)[1], return_index=True)[1]
    root = csr_array((np.ones(len(first)), (np.zeros_like(first), first)), shape=(1, n))
    order, parent = breadth_first_order(block_array([[matrix, root.T], [root, None]], format="csr"), n, directed=False)
    nodes = order[1 + len(first) :]
    steps = np.asarray(ratio[parent[nodes], nodes]).ravel().tolist() if len(nodes) else []
    scale = [1.0] * n
    for node, above, step in zip(nodes.tolist(), parent[nodes].tolist(), steps, strict=True):
        scale[node] = scale[above] * step
    return np.array(scale)


# ---------------------------------------------------------------------- eigenvalues
#: Graphs up to this size are decomposed densely.
DENSE_LIMIT = 2000
#: Eigenvalues of L below this part of the largest possible one are zero, or below some rounding errors if larger.
ZERO = 1e-11
SOLVERS = ("lanczos", "lobpcg")


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenvalues of L with right and left eigenvectors, L V = V diag(lam) and W^T V = I; numpy, float64.

    Attributes:
        values: The eigenvalues (k,), ascending, zero in the kernel of L without rounding; k = n for a whole spectrum.
        vectors: V (n, k), the right eigenvectors as columns.
        duals: W (n, k), the left ones, equal to V for a symmetric operator.
        scale: (n,) the s of the symmetric twin, for which V^T diag(s) V = I.
        bound: An upper bound of all eigenvalues.

    Example:
        >>> import analysis, rdgraph as rd
        >>> path = analysis.spectrum(rd.generators.path(3).operator("row"))
        >>> path.values.round(6).tolist(), path.is_whole
        ([0.0, 1.0, 2.0], True)
    """

    values: np.ndarray
    vectors: np.ndarray
    duals: np.ndarray
    scale: np.ndarray
    bound: float

    @property
    def is_whole(self) -> bool:
        return len(self.values) == len(self.vectors)

    @property
    def kernel(self) -> np.ndarray:
        """Whether each eigenvalue is zero, (k,) bool."""
        return np.asarray(self.values == 0)

    def transform(self, H: Tensor) -> Tensor:
        """Graph Fourier transform W^T H: (*batch, n, d) to coefficients (*batch, k, d).

        >>> import torch, analysis, rdgraph as rd
        >>> s = analysis.spectrum(rd.generators.ring(4).operator("symmetric", dtype=torch.float64))
        >>> s.transform(torch.ones(4, 1, dtype=torch.float64)).abs().round(decimals=9).ravel()
        tensor([2., 0., 0., 0.], dtype=torch.float64)
        """
        return self._basis(self.duals, H, len(self.vectors)).mT @ H

    def inverse(self, coefficients: Tensor) -> Tensor:
        """V c, (*batch, k, d) to (*batch, n, d); after `transform` the state itself, or its part in these modes."""
        return self._basis(self.vectors, coefficients, len(self.values)) @ coefficients

    def _basis(self, matrix: np.ndarray, x: Tensor, rows: int) -> Tensor:
        if x.ndim < 2 or x.shape[-2] != rows:
            raise InvalidArgument(f"expected a tensor (..., {rows}, channels), got shape {tuple(x.shape)}")
        return torch.as_tensor(matrix, dtype=x.dtype, device=x.device)


def spectrum(op: Operator, k: int | None = None, *, end: str = "low", solver: str = "lanczos") -> Spectrum:
    """The whole spectrum of L, or its k lowest or highest eigenvalues (`end`), with eigenvectors.

    L V = V diag(lam). Whole spectra are dense, for graphs of up to 2000 nodes. Parts come from scipy's `eigsh`
    ("lanczos") or "lobpcg" with a fixed start, and every pair is checked by its residual.

    Args:
        op: An operator with s_i A_ij = s_j A_ji for some s > 0, as every normalisation of an undirected graph has.
        k: The number of eigenvalues; all by default.
        end: "low" for the lowest ones, "high" for the highest.
        solver: "lanczos" or "lobpcg", for a part of the spectrum.

    Returns:
        The `Spectrum`.

    Raises:
        InvalidArgument: For an invalid k or end, or an operator of several members.
        UnknownName: For an unknown solver.
        NotApplicable: For an operator without a real orthogonal spectrum, such as that of a directed graph.
        Undecided: If the solver does not reach the residual.

    Example:
        >>> import analysis, rdgraph as rd
        >>> analysis.spectrum(rd.generators.complete(4).operator("row")).values.round(6) + 0.0
        array([0.      , 1.333333, 1.333333, 1.333333])
        >>> analysis.spectrum(rd.generators.ring(100).operator("symmetric"), 2, end="high").values.round(4)
        array([1.998, 2.   ])
    """
    if end not in ("low", "high"):
        raise InvalidArgument(f"expected end 'low' or 'high', got {end!r}")
    if solver not in SOLVERS:
        raise UnknownName("solver", solver, SOLVERS)
    laplacian, scale, bound = symmetric_laplacian(op)
    n = len(scale)
    if k is None and n > DENSE_LIMIT:
        raise InvalidArgument(
            f"expected a number k of eigenvalues for {n} nodes, got None; whole spectra go up to {DENSE_LIMIT} nodes"
        )
    if k is not None and not 1 <= k <= n:
        raise InvalidArgument(f"expected 1 <= k <= {n} eigenvalues, got {k}")
    if k is None or n <= max(64, 5 * k):
        values, vectors = _dense_part(laplacian, k or n, end)
    else:
        values, vectors = _part(laplacian, k, end, solver, bound)
    vectors = vectors * np.where(vectors[np.abs(vectors).argmax(axis=0), np.arange(len(values))] < 0, -1.0, 1.0)
    values = np.where(np.abs(values) <= max(ZERO, 16 * torch.finfo(op.dtype).eps) * bound, 0.0, values)
    root = np.sqrt(scale)[:, None]
    return Spectrum(values, vectors / root, vectors * root, scale, bound)


def spectral_gap(op: Operator) -> float:
    """lam2 = min {lam > 0 : lam an eigenvalue of L}; in a connected graph the second eigenvalue.

    Args:
        op: An operator, as in `spectrum`.

    Returns:
        The smallest eigenvalue of L that is not zero.

    Raises:
        NotApplicable: For a graph without edges, and as in `spectrum`.

    Example:
        >>> import analysis, rdgraph as rd
        >>> round(analysis.spectra.spectral_gap(rd.generators.ring(6).operator("row")), 6)  # 1 - cos(2 pi/6)
        0.5
    """
    n, k = op.num_nodes, 2
    while True:
        part = spectrum(op, min(k, n))
        positive = part.values[~part.kernel]
        if len(positive):
            return float(positive[0])
        if k >= n:
            raise NotApplicable("expected an eigenvalue other than zero, got L = 0; the graph has no edges")
        k *= 4


def distinct(values: np.ndarray, gap: float) -> np.ndarray:
    """Ascending numbers without those that follow another at no more than a gap, such as rounding.

    >>> distinct(np.array([1.0, 1.0 + 1e-13, 2.0]), 1e-9).tolist()
    [1.0, 2.0]
    """
    ordered = np.sort(values)
    return ordered[np.diff(ordered, prepend=-np.inf) > gap]


def _dense_part(laplacian: csr_array, k: int, end: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    n = laplacian.shape[0]
    values, vectors = eigh(laplacian.toarray())
    chosen = slice(0, k) if end == "low" else slice(n - k, n)
    return values[chosen], vectors[:, chosen]


def _part(
    laplacian: csr_array, k: int, end: str, solver: str, bound: float
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    n = laplacian.shape[0]
    stream = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # lobpcg warns if it stops early; the residual below decides
        if solver == "lobpcg":
            start = stream.standard_normal((n, k + min(8, k)))
            values, vectors = lobpcg(laplacian, start, largest=end == "high", tol=1e-10 * bound, maxiter=2000)
            order = np.argsort(values)
            order = order[:k] if end == "low" else order[-k:]
        else:
            which, start = ("SA" if end == "low" else "LA"), stream.standard_normal(n)
            try:
                values, vectors = eigsh(laplacian, k, which=which, v0=start, ncv=min(n - 1, max(4 * k, 40)))
            except ArpackNoConvergence as problem:  # one vector at a time hardly sees an eigenvalue's multiplicity
                if n > DENSE_LIMIT:
                    count = len(problem.eigenvalues)
                    raise Undecided(f"expected {k} eigenvalues, got {count} from lanczos; use lobpcg") from None
                return _dense_part(laplacian, k, end)
            order = np.argsort(values)
    values, vectors = values[order], vectors[:, order]
    residual = np.linalg.norm(laplacian @ vectors - vectors * values, axis=0).max()
    if not residual <= 1e-7 * bound:
        raise Undecided(f"expected residuals below 1e-7, got {residual:.1e} from {solver}; use the other solver")
    return values, vectors
