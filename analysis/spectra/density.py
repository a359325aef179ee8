"""Spectral densities of L, by a histogram of all eigenvalues or by the kernel polynomial method."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from analysis.spectra.eigenvalues import DENSE_LIMIT, spectrum, symmetric_laplacian
from rdgraph.errors import InvalidArgument
from rdgraph.graphs.operator import Operator


@dataclass(frozen=True, eq=False)
class Density:
    """Share of eigenvalues of L per unit of lam.

    Attributes:
        lam: (m,) midpoints.
        density: (m,), with integral 1.
        method: "histogram" or "polynomial".

    Example:
        See `spectral_density`.
    """

    lam: np.ndarray
    density: np.ndarray
    method: str

    def rows(self) -> list[dict[str, float | str]]:
        return [
            {"lam": float(x), "density": float(y), "method": self.method}
            for x, y in zip(self.lam, self.density, strict=True)
        ]


def spectral_density(
    op: Operator, *, points: int = 50, method: str | None = None, degree: int = 100, probes: int = 16, seed: int = 0
) -> Density:
    """Density of the spectrum of L on [0, bound], bound 2 for a normalised operator.

    "histogram" counts the whole spectrum in `points` bins. "polynomial" takes `degree` sparse products with `probes`
    columns: moments mu_m = E[z^T T_m(X) z]/n of X = 2L/bound - I over random signs z, damped by Jackson's kernel.

    Args:
        op: An operator, as in `spectrum`.
        points: The number of values of lam.
        method: "histogram" or "polynomial"; None to choose by the size of the graph.
        degree: The degree of the polynomial.
        probes: The number of random vectors over which the moments are averaged.
        seed: The seed of these vectors.

    Returns:
        The `Density`.

    Raises:
        InvalidArgument: For an unknown method or numbers below one.
        NotApplicable: As in `spectrum`.

    Example:
        >>> import analysis, rdgraph as rd
        >>> d = analysis.spectral_density(rd.generators.ring(64).operator("symmetric"), points=2)
        >>> d.method, d.density.round(2)
        ('histogram', array([0.48, 0.52]))
    """
    chosen = method or ("histogram" if op.num_nodes <= DENSE_LIMIT else "polynomial")
    if chosen not in ("histogram", "polynomial"):
        raise InvalidArgument(f"expected the method 'histogram' or 'polynomial', got {method!r}")
    if min(points, degree, probes) < 1:
        raise InvalidArgument(f"expected points, degree, probes >= 1, got {points}, {degree}, {probes}")
    if chosen == "histogram":
        whole = spectrum(op)
        edges = np.linspace(0.0, whole.bound, points + 1)
        # Rounding may put an end of the spectrum just outside, or a multiple eigenvalue on both sides of an edge.
        values = np.clip(whole.values + 1e-12 * whole.bound, 0.0, whole.bound)
        density = np.histogram(values, edges)[0] / (len(values) * np.diff(edges))
        return Density((edges[1:] + edges[:-1]) / 2, density, chosen)
    laplacian, _, bound = symmetric_laplacian(op)
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(op.num_nodes, probes))
    moments = chebyshev_moments(laplacian, bound, signs, degree)
    x = (np.arange(points) + 0.5) * 2 / points - 1
    return Density((x + 1) * bound / 2, 2 / bound * damped_series(moments, x), chosen)


def chebyshev_moments(laplacian: csr_array, bound: float, probes: np.ndarray, degree: int) -> np.ndarray:
    """mean over the probes z of z^T T_m(2L/bound - I) z / |z|^2, m = 0..degree: (degree + 1,)."""

    def shifted(y: np.ndarray) -> np.ndarray:
        return np.asarray(laplacian @ y * (2 / bound) - y)

    size = (probes**2).sum()
    last, now = probes, shifted(probes)
    moments = [1.0, float((probes * now).sum() / size)]
    for _ in range(degree - 1):
        last, now = now, 2 * shifted(now) - last
        moments.append(float((probes * now).sum() / size))
    return np.array(moments)


def damped_series(moments: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Density on (-1, 1) from Chebyshev moments, with Jackson's kernel: positive, integral 1; (m,) at x (m,).

    >>> damped_series(np.array([1.0, 0.0]), np.array([0.0])).round(4)  # 1/(pi sqrt(1 - x^2))
    array([0.3183])
    """
    count = len(moments)
    m, turn = np.arange(count), np.pi / (count + 1)
    jackson = ((count - m + 1) * np.cos(m * turn) + np.sin(m * turn) / np.tan(turn)) / (count + 1)
    waves = np.cos(np.outer(m, np.arccos(x)))
    weights = np.where(m == 0, 1.0, 2.0) * jackson * moments
    return np.asarray(weights @ waves / (np.pi * np.sqrt(1 - x**2)))
