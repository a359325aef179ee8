"""`Normalisation`: how A is computed from the weights of a graph, and the facts that hold for every graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rdgraph.errors import InvalidArgument
from rdgraph.records import Records

if TYPE_CHECKING:
    import numpy as np


# ---------------------------------------------------------------------- normalisation
#: (w, d_i, d_j, c_j) -> entry [i, j]: a weight j -> i, the sums of |w| over the rows of i and j and the column of j.
Entry = Callable[[Any, Any, Any, Any], Any]

NORMS = ("2", "inf", "1")


@dataclass(frozen=True)
class Normalisation:
    """The operator A = identity*I + entry(w, d_i, d_j, c_j) of a graph with weights w.

    `entry` is plain arithmetic, so that it works for dense and sparse matrices and tensors alike; zero sums are
    passed as 1. The facts hold for every graph with weights >= 0:

    `has_degrees`: L is D - A; otherwise it is I - A.
    `is_symmetric`: A equals its transpose; needs an undirected graph.
    `norm`: |A| <= 1 in the 2-, inf- or 1-norm, None where nothing bounds A.
    `spectrum`: an interval that holds the eigenvalues of L of undirected graphs.
    `row_stochastic`, `column_stochastic`: sums of 1, or of 0 at a node without edges.
    `averages`: the form of A@h that boxes may use: "stochastic" (an average over neighbours, 0 without edges),
    "stretched" (a sum with weights that add up to at most s), "" for none.
    `is_similar`: A of an undirected graph has the eigenvalues of the symmetric normalisation.
    `conserved`: left eigenvector w A = w in terms of the degree d, and what it assumes of the graph.
    `is_sharp`: bounds over all graphs are attained. `transposed`: the normalisation of the transpose.
    """

    name: str
    formula: str
    entry: Entry | None
    identity: float = 0.0
    has_degrees: bool = False
    is_symmetric: bool = False
    norm: str | None = None
    spectrum: tuple[float, float] | None = None
    row_stochastic: bool = False
    column_stochastic: bool = False
    averages: str = ""
    is_similar: bool = False
    conserved: tuple[str, str] | None = None
    is_sharp: bool = False
    transposed: str = "free"

    @property
    def laplacian(self) -> str:
        """What L is."""
        return "D - A" if self.has_degrees else "I - A"

    @property
    def norm_name(self) -> str:
        """The norm in words, as in 2-norm."""
        return f"{self.norm}-norm"


# ---------------------------------------------------------------------- claims
# The declared facts of a normalisation, checked on random graphs; the error shows a counterexample.

#: Number of graphs of each kind, and the tolerance for rounding.
GRAPHS, TOLERANCE = 40, 1e-9


def dense_entries(record: Normalisation, weights: np.ndarray) -> np.ndarray:
    """A of a dense matrix of weights (n, n); sums that are zero count as 1, and entries without weight stay zero."""
    import numpy as np

    assert record.entry is not None
    row, column = (np.abs(weights).sum(axis=axis) for axis in (1, 0))
    row, column = (np.where(sums > 0, sums, 1.0) for sums in (row, column))
    entries = np.asarray(record.entry(weights, row[:, None], row[None, :], column[None, :]), dtype=float)
    return np.where(weights != 0, entries, 0.0) + record.identity * np.eye(len(weights))


def check_claims(record: Normalisation) -> None:
    """Raise `InvalidArgument` with the graph on which a claim is false."""
    import numpy as np

    for weights, undirected in _graphs(record.is_symmetric):
        try:
            A = dense_entries(record, weights)
        except (TypeError, ValueError, AttributeError, ZeroDivisionError) as problem:
            raise InvalidArgument(
                f"{record.name} must be a function (w, d_i, d_j, c_j) of plain arithmetic, got {problem}"
            ) from None
        if not np.isfinite(A).all():
            raise _refused(record, "finite entries", A, weights)
        for claim, holds in _claims(record, A, weights, undirected):
            if not holds:
                raise _refused(record, claim, A, weights)


def _claims(record: Normalisation, A: np.ndarray, weights: np.ndarray, undirected: bool) -> Iterator[tuple[str, bool]]:
    """The declared facts in words, each with whether it holds for this graph."""
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
        f"{record.name} does not satisfy: {claim}. On the graph with the weights {weights.round(4).tolist()}, "
        f"A is {A.round(4).tolist()}; omit the claim"
    )


# ---------------------------------------------------------------------- built in
# The built-in normalisations.


def _by_roots(w: Any, row: Any, other: Any, column: Any) -> Any:
    # One product of the two roots, so that entries [i, j] and [j, i] are equal to the last bit.
    return w / (row**0.5 * other**0.5)


def built_in_normalisations() -> tuple[Normalisation, ...]:
    """Records of the built-in normalisations, in the order in which they are listed."""
    return (
        Normalisation(
            "symmetric", "D^-1/2 A D^-1/2",
            _by_roots,
            is_symmetric=True, norm="2", spectrum=(0, 2), averages="stretched", is_similar=True,
            conserved=("sqrt(d)", ""), is_sharp=True, transposed="symmetric",
        ),
        Normalisation(
            "row", "D^-1 A", lambda w, row, other, column: w / row,
            norm="inf", spectrum=(0, 2), row_stochastic=True, averages="stochastic", is_similar=True,
            conserved=("d", "the graph is undirected"), is_sharp=True, transposed="column",
        ),
        Normalisation(
            "column", "A D^-1", lambda w, row, other, column: w / column,
            norm="1", spectrum=(0, 2), column_stochastic=True, is_similar=True, is_sharp=True, transposed="row",
            conserved=("1", "every node has an outgoing edge; where one is isolated its weight is 0"),
        ),
        Normalisation(
            "none", "A", lambda w, row, other, column: w, has_degrees=True, is_sharp=True, transposed="none"
        ),
        Normalisation("free", "weights of unknown kind", None),
    )  # fmt: skip


# ---------------------------------------------------------------------- registry
# The normalisations by name.


#: The records by name; "free" stands for weights of unknown kind.
records: Records[Normalisation] = Records("normalisation", built_in_normalisations)


#: The normalisations that a graph can be given.
NORMALISATIONS = records.names(lambda record: record.entry is not None)


def find_normalisation(name: str) -> Normalisation:
    """The record of a normalisation; the error for an unknown name offers the closest one.

    >>> find_normalisation("row").norm, find_normalisation("none").laplacian
    ('inf', 'D - A')
    """
    return records.find(name, NORMALISATIONS)


def register_normalisation(
    name: str,
    entry: Entry,
    *,
    identity: float = 0.0,
    formula: str = "",
    is_symmetric: bool = False,
    norm: str | None = None,
    spectrum: tuple[float, float] | None = None,
    row_stochastic: bool = False,
    column_stochastic: bool = False,
) -> Normalisation:
    """Register a normalisation A = identity*I + entry, with L = I - A, under a name that the whole package accepts.

    The declared facts are checked on random graphs, weighted, with isolated nodes and, unless it needs undirected
    ones, directed; bounds and answers then rely on them. Facts that are not declared are not assumed.

    Args:
        name: a free name of letters, digits, "-" and "_".
        entry: (w, d_i, d_j, c_j) -> A[i, j], plain arithmetic on the weight of the edge j -> i, the sums of |w| over
            the rows of i and j, and over the column of j.
        identity: the multiple of I that is added.
        formula: the formula of A, for pages.
        is_symmetric: A equals its transpose where the weights do; needs undirected graphs.
        norm: "2", "inf" or "1" where |A| <= 1 in that norm.
        spectrum: an interval of the eigenvalues of L = I - A of undirected graphs.
        row_stochastic: rows sum to 1, or to 0 at a node without edges.
        column_stochastic: columns do.

    Returns:
        The record.

    Raises:
        InvalidArgument: the name is taken, or a graph contradicts a declared fact; the error shows the graph.

    >>> import rdgraph as rd
    >>> lazy = lambda w, own, other, column: w / (2 * own**0.5 * other**0.5)
    >>> rd.register_normalisation("lazy", lazy, identity=0.5, is_symmetric=True, norm="2", spectrum=(0, 1)).laplacian
    'I - A'
    >>> rd.vocabulary.unregister_normalisation("lazy")
    """
    records.check_free(name)
    if norm is not None and norm not in NORMS:
        raise InvalidArgument(f"expected a norm among {', '.join(NORMS)}, got {norm!r}")
    record = Normalisation(
        name, formula or name, entry, float(identity), is_symmetric=is_symmetric, norm=norm, spectrum=spectrum,
        row_stochastic=row_stochastic, column_stochastic=column_stochastic,
        transposed=name if is_symmetric else "free",
    )  # fmt: skip
    check_claims(record)
    return records.add(record)


def unregister_normalisation(name: str) -> None:
    """Remove a registered normalisation; built-in ones cannot be removed.

    Args:
        name: the name of a registered normalisation.

    Raises:
        UnknownName: no normalisation is registered under this name.
    """
    records.remove(name)
