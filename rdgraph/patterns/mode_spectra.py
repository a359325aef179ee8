"""The eigenvalues of a graph's L: the lam at which a dispersion relation is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rdgraph.errors import InvalidArgument

#: Matrices with more rows are not made dense.
MAX_NODES = 5000
#: Imaginary parts and sums of rows below this part of the largest entry are rounding.
TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class ModeSpectrum:
    """Eigenvalues of L in the order of their real parts, and whether L@1 = 0, as far as rounding tells."""

    eigenvalues: np.ndarray
    keeps_constants: bool | None
    source: str

    @property
    def is_real(self) -> bool:
        return not np.iscomplexobj(self.eigenvalues)

    @property
    def largest(self) -> float:
        """The largest real part."""
        return float(self.eigenvalues.real.max())


def mode_spectrum(operator: Any) -> ModeSpectrum:
    """The spectrum of an `Operator`, of a matrix L (n, n), dense or sparse, or of eigenvalues (n,) themselves.

    >>> spectrum = mode_spectrum([[1.0, -1.0], [-1.0, 1.0]])
    >>> spectrum.eigenvalues.round(12), spectrum.keeps_constants
    (array([0., 2.]), True)
    """
    matrix = _laplacian(operator)
    if matrix.ndim == 1:
        return ModeSpectrum(_ordered(matrix), None, "eigenvalues of L as given")
    size = float(np.abs(matrix).max())
    keeps = bool(np.abs(matrix.sum(axis=1)).max() <= TOLERANCE * max(size, 1.0))
    if np.allclose(matrix, matrix.T, rtol=TOLERANCE, atol=TOLERANCE * size):
        return ModeSpectrum(np.linalg.eigvalsh(matrix), keeps, "eigenvalues of the symmetric L, in double precision")
    return ModeSpectrum(_ordered(np.linalg.eigvals(matrix)), keeps, "eigenvalues of L, in double precision")


def _laplacian(operator: Any) -> np.ndarray:
    if hasattr(operator, "dense") and hasattr(operator, "degree"):
        if getattr(operator, "batch", ()):
            raise InvalidArgument(f"expected an operator with one set of weights, got a batch {operator.batch}")
        _check_size(operator.num_nodes)
        current = operator.current()
        matrix = _array(current.dense())
        degree = np.ones(len(matrix)) if current.degree is None else _array(current.degree).ravel()
        return np.diag(degree) - matrix
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
