"""The eigenvalues of a graph's L: the lam at which a dispersion relation is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.patterns.kinetics import WITH_IDENTITY, Kinetics

#: Matrices with more rows are not made dense.
MAX_NODES = 5000
#: Imaginary parts and sums of rows below this part of the largest entry are rounding.
TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class ModeSpectrum:
    """Eigenvalues of L in the order of their real parts, and whether L@1 = 0, as far as rounding tells.

    `matrix` is L where it was given.
    """

    eigenvalues: np.ndarray
    keeps_constants: bool | None
    source: str
    matrix: np.ndarray | None = None

    @property
    def is_real(self) -> bool:
        return not np.iscomplexobj(self.eigenvalues)

    @property
    def is_symmetric(self) -> bool:
        """Whether L was given as a symmetric matrix."""
        return self.matrix is not None and _is_symmetric(self.matrix)

    def growing(self, growth: np.ndarray) -> tuple[int, ...]:
        """Which of the modes grow, by more than rounding."""
        size = max(1.0, float(np.abs(growth).max()))
        return tuple(int(i) for i in np.flatnonzero(growth > TOLERANCE * size))

    @property
    def largest(self) -> float:
        """The largest real part."""
        return float(self.eigenvalues.real.max())


def check_degrees(kinetics: Kinetics, operator: Any) -> None:
    """Refuse L = D - A where the equations have A, which is then not I - L."""
    if kinetics.modes_assume == WITH_IDENTITY and getattr(operator, "degree", None) is not None:
        raise NotApplicable(
            "the equations have A, which has eigenvectors of its own where L = D - A; expected "
            f"{kinetics.modes_assume}, or equations in L alone"
        )


def mode_spectrum(operator: Any) -> ModeSpectrum:
    """The spectrum of an `Operator`, of a matrix L (n, n), dense or sparse, or of eigenvalues (n,) themselves.

    >>> spectrum = mode_spectrum([[1.0, -1.0], [-1.0, 1.0]])
    >>> spectrum.eigenvalues.round(12), spectrum.keeps_constants
    (array([0., 2.]), True)
    """
    matrix = laplacian_of(operator)
    if matrix.ndim == 1:
        return ModeSpectrum(_ordered(matrix), None, "eigenvalues of L as given")
    size = float(np.abs(matrix).max())
    keeps = bool(np.abs(matrix.sum(axis=1)).max() <= TOLERANCE * max(size, 1.0))
    if _is_symmetric(matrix):
        source = "eigenvalues of the symmetric L, in double precision"
        return ModeSpectrum(np.linalg.eigvalsh(matrix), keeps, source, matrix)
    return ModeSpectrum(_ordered(np.linalg.eigvals(matrix)), keeps, "eigenvalues of L, in double precision", matrix)


def _is_symmetric(matrix: np.ndarray) -> bool:
    return np.allclose(matrix, matrix.T, rtol=TOLERANCE, atol=TOLERANCE * float(np.abs(matrix).max()))


def laplacian_of(operator: Any) -> np.ndarray:
    """L of an `Operator`, or the matrix or the eigenvalues that were given."""
    if _is_operator(operator):
        matrix, degree = _dense(operator)
        return np.diag(np.ones(len(matrix)) if degree is None else degree) - matrix
    if hasattr(operator, "toarray"):
        _check_size(operator.shape[0])
        operator = operator.toarray()
    values = np.asarray(operator)
    values = values.astype(complex if np.iscomplexobj(values) else float)
    square = values.ndim == 2 and values.shape[0] == values.shape[1]
    if not (values.ndim == 1 or square) or not values.size or not np.isfinite(values).all():
        raise InvalidArgument(
            f"expected an Operator, a finite matrix L (n, n) or eigenvalues (n,), got shape {values.shape}"
        )
    _check_size(len(values) if square else 1)
    return values


def matrix_of(operator: Any, name: str) -> np.ndarray:
    """The real matrix (n, n) of an operator itself, which may be an `Operator`, sparse or dense."""
    values = _dense(operator)[0] if _is_operator(operator) else laplacian_of(operator)
    if values.ndim != 2 or np.iscomplexobj(values):
        raise InvalidArgument(f"expected a real matrix (n, n) for {name}, got shape {values.shape} of {values.dtype}")
    return values


def _is_operator(operator: Any) -> bool:
    return hasattr(operator, "dense") and hasattr(operator, "degree")


def _dense(operator: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """A of an `Operator`, and its degrees where L = D - A."""
    if getattr(operator, "batch", ()):
        raise InvalidArgument(f"expected an operator with one set of weights, got a batch {operator.batch}")
    _check_size(operator.num_nodes)
    current = operator.current()
    return _array(current.dense()), None if current.degree is None else _array(current.degree).ravel()


def _array(tensor: Any) -> np.ndarray:
    return np.asarray(tensor.detach().cpu().double().numpy())


def _check_size(nodes: int) -> None:
    if nodes > MAX_NODES:
        raise InvalidArgument(
            f"expected at most {MAX_NODES} nodes, got {nodes}; compute the eigenvalues of L you need and pass those"
        )


def _ordered(values: np.ndarray) -> np.ndarray:
    size = max(1.0, float(np.abs(values).max()))
    if np.iscomplexobj(values) and np.abs(values.imag).max() <= TOLERANCE * size:
        values = values.real
    return values[np.argsort(values.real, kind="stable")]
