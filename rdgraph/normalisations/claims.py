"""Whether what is said of a normalisation is true on random graphs; a graph on which it is not is shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rdgraph.errors import InvalidArgument
from rdgraph.normalisations.normalisation import Normalisation

if TYPE_CHECKING:
    import numpy as np

#: Graphs of every kind that are tried, and what rounding may do.
GRAPHS, TOLERANCE = 40, 1e-9


def dense_entries(record: Normalisation, weights: np.ndarray) -> np.ndarray:
    """A of a dense matrix of weights (n, n); sums that are zero count as 1, and entries without weight stay zero."""
    import numpy as np

    assert record.entry is not None
    own, column = (np.abs(weights).sum(axis=axis) for axis in (1, 0))
    own, column = (np.where(sums > 0, sums, 1.0) for sums in (own, column))
    entries = np.asarray(record.entry(weights, own[:, None], own[None, :], column[None, :]), dtype=float)
    return np.where(weights != 0, entries, 0.0) + record.identity * np.eye(len(weights))


def check_claims(record: Normalisation) -> None:
    """Raise `InvalidArgument` with the graph on which a claim is false."""
    import numpy as np

    for weights, undirected in _graphs(record.is_symmetric):
        try:
            A = dense_entries(record, weights)
        except (TypeError, ValueError, AttributeError, ZeroDivisionError) as problem:
            raise InvalidArgument(
                f"expected of {record.name} an entry (w, d_i, d_j, c_j) of plain arithmetic, got {problem}"
            ) from None
        if not np.isfinite(A).all():
            raise _refused(record, "finite entries", A, weights)
        for claim, holds in _claims(record, A, weights, undirected):
            if not holds:
                raise _refused(record, claim, A, weights)


def _claims(record: Normalisation, A: np.ndarray, weights: np.ndarray, undirected: bool) -> Iterator[tuple[str, bool]]:
    """What is said, and whether it is so here."""
    import numpy as np

    if record.is_symmetric:
        yield "A = A^T", bool(np.abs(A - A.T).max() <= TOLERANCE)
    if record.norm is not None:
        order: Any = {"2": 2, "inf": np.inf, "1": 1}[record.norm]
        yield f"|A| <= 1 in the {record.norm_name}", bool(np.linalg.norm(A, order) <= 1 + TOLERANCE)
    for axis, claimed, word in ((1, record.row_stochastic, "rows"), (0, record.column_stochastic, "columns")):
        if claimed:
            sums = A.sum(axis=axis)
            fits = (np.abs(sums - 1) <= TOLERANCE) | ((np.abs(sums) <= TOLERANCE) & (weights.sum(axis=axis) == 0))
            yield f"A >= 0 with {word} that sum to 1", bool(fits.all() and (A >= 0).all())
    if record.spectrum is not None and undirected:
        low, high = record.spectrum
        values = 1 - np.linalg.eigvals(A)
        real = bool(np.abs(values.imag).max() <= 1e-6)
        inside = bool(values.real.min() >= low - 1e-6 and values.real.max() <= high + 1e-6)
        yield f"eigenvalues of L in [{low:g}, {high:g}]", real and inside


def _graphs(only_undirected: bool) -> Iterator[tuple[np.ndarray, bool]]:
    """An edge, a star, a path, a graph with an isolated node; then random ones, weighted and directed by turns."""
    import numpy as np

    rng = np.random.default_rng(0)
    star = np.zeros((6, 6))
    star[0, 1:] = star[1:, 0] = 1.0
    path = np.diag(np.ones(6), 1) + np.diag(np.ones(6), -1)
    lonely = np.zeros((3, 3))
    lonely[0, 1] = lonely[1, 0] = 2.0
    for weights in (np.array([[0.0, 1.0], [1.0, 0.0]]), star, path, lonely, np.zeros((2, 2))):
        yield weights, True
    for k in range(GRAPHS):
        nodes = int(rng.integers(2, 12))
        weights = rng.exponential(1.0, (nodes, nodes)) if k % 2 else np.ones((nodes, nodes))
        weights = weights * (rng.random((nodes, nodes)) < rng.uniform(0.1, 0.9))
        if only_undirected or k % 4 < 2:
            weights = np.triu(weights, 1 if k % 3 else 0)
            weights = weights + np.triu(weights, 1).T
        yield weights, bool((weights == weights.T).all())


def _refused(record: Normalisation, claim: str, A: np.ndarray, weights: np.ndarray) -> InvalidArgument:
    return InvalidArgument(
        f"expected of {record.name} {claim}, which is false on the graph with the weights {weights.round(4).tolist()}, "
        f"where A is {A.round(4).tolist()}; leave the claim out"
    )
